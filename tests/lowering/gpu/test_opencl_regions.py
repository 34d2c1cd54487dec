"""Random regions on an OpenCL device, against the region interpreter."""

import ir_regions
import numpy as np
import pytest
from device_runs import execute
from devices import needs_opencl
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import device as devices

pytestmark = needs_opencl

TYPES = "?bhilBHILefdFD"


def differential(case, **agree):
    memory = {name: np.array(array, order="C") for name, array in case.memory().items()}
    plan = compile_region(case.region, "opencl")
    got = execute(plan, memory, case.values, devices.get("opencl"))
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory(), case.values)
    ir_regions.assert_agree(
        {name: want[name] for name in got if name in want}, got, zero_signs=case.zero_signs, **agree
    )
    return plan


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ir_regions.cases(numpy_bits=False))
def test_random_regions(case):
    differential(case)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(ir_regions.cases(symbolic=True, numpy_bits=False))
def test_random_regions_with_symbols(case):
    differential(case)


@pytest.mark.parametrize("dtype", TYPES)
def test_random_regions_of_one_dtype(dtype):
    for seed in range(6):
        differential(ir_regions.make_case(seed, 4, dtypes=dtype + "?", numpy_bits=False))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_functions_and_sums_within_the_promise(seed):
    differential(ir_regions.make_case(seed, 4, dtypes="dddd?", rounding=True), rtol=1e-12)


def test_what_no_kernel_does_runs_on_the_host():
    region = parse("""region() {
      in a: f64[100];  temp t: f64[100];  out b: f64[100]
      t[i] = spacing(a[i]) for i<100
      b[i] = add(t[i], a[i]) for i<100
    }""")
    plan = compile_region(region, "opencl")
    a = np.linspace(1, 50, 100)
    got = execute(plan, {"a": a}, {}, devices.get("opencl"))
    assert plan.stats == {"kernels": 1, "calls": 0, "interpreted": 1}
    assert (got["b"] == np.spacing(a) + a).all()
