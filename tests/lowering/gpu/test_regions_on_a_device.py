"""Random regions on a device, against the region interpreter."""

import itertools

import ir_regions
import numpy as np
import pytest
from device_runs import execute
from devices import DEVICE, KIND, needs_device
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices

pytestmark = needs_device

TYPES = "?bhilBHILefdFD"
SHORT = itertools.cycle([True, False])


def differential(case, **agree):
    memory = {name: np.array(array, order="C") for name, array in case.memory().items()}
    plan = compile_region(case.region, KIND)
    there = devices.get(DEVICE)
    usual, there.short_indices = there.short_indices, next(SHORT)
    got = execute(plan, memory, case.values, there)
    there.short_indices = usual
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory(), case.values)
    ir_regions.assert_agree(
        {name: want[name] for name in got if name in want}, got, zero_signs=case.zero_signs, **agree
    )
    return plan


@settings(max_examples=24, deadline=None, derandomize=True)
@given(ir_regions.cases(numpy_bits=False))
def test_random_regions(case):
    differential(case)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(ir_regions.cases(symbolic=True, numpy_bits=False))
def test_random_regions_with_symbols(case):
    differential(case)


@pytest.mark.parametrize("dtype", TYPES)
def test_random_regions_of_one_dtype(dtype):
    for seed in range(6):
        differential(ir_regions.make_case(seed, 4, dtypes=dtype + "?", numpy_bits=False))


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_functions_and_sums_within_the_promise(seed):
    differential(ir_regions.make_case(seed, 4, dtypes="dddd?", rounding=True), rtol=1e-12)


@pytest.mark.parametrize("short", [False, True], ids=["64-bit indices", "32-bit indices"])
@pytest.mark.parametrize("shape", [(1 << 20,), (1500, 1301), (70, 70, 130), (90, 61, 223), (30000, 20)])
def test_statements_with_many_blocks(shape, short, monkeypatch):
    there = devices.get(DEVICE)
    monkeypatch.setattr(there, "short_indices", short)
    names = "ijk"[: len(shape)]
    sides = [
        "a[" + ",".join(f"{n}+{2 if n == turned else 1}" for n in names) + "]" for turned in (*names, "none")
    ]
    value = sides[0]
    for side in sides[1:]:
        value = f"add({value}, {side})"
    extents, target = ", ".join(map(str, shape)), ",".join(f"{n}+1" for n in names)
    bounds = ", ".join(f"{n}<{extent - 2}" for n, extent in zip(names, shape, strict=True))
    declared = f"in a: f64[{extents}];  inout b: f64[{extents}]"
    region = parse(f"region() {{\n  {declared}\n  b[{target}] = {value} for {bounds}\n}}")
    rng = np.random.default_rng(0)
    memory = {"a": rng.random(shape), "b": rng.random(shape)}
    got = execute(compile_region(region, KIND), memory, {}, there)
    interp.run(region, memory)
    np.testing.assert_array_equal(got["b"], memory["b"])


def test_what_no_kernel_does_runs_on_the_host():
    region = parse("""region() {
      in a: f64[100];  temp t: f64[100];  out b: f64[100]
      t[i] = spacing(a[i]) for i<100
      b[i] = add(t[i], a[i]) for i<100
    }""")
    plan = compile_region(region, KIND)
    a = np.linspace(1, 50, 100)
    got = execute(plan, {"a": a}, {}, devices.get(DEVICE))
    assert plan.stats == {"kernels": 1, "calls": 0, "interpreted": 1}
    assert (got["b"] == np.spacing(a) + a).all()
