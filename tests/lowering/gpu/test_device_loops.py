"""Loops of statements on devices: by threads, by blocks, by one block and by one thread."""

import random
from dataclasses import replace

import numpy as np
import pytest
from device_statements import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_machine import Machine
from loop_regions import Loops, agree, existing, memory, wanted

from dcarray.ir import dims, interp
from dcarray.ir.nodes import Loop
from dcarray.ir.text import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.gpu.schedules import loops as loops_module
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check

LIMITS = replace(SMALL, threads=4, narrow=2)
MODES = {"threads": {}, "blocks": {"ALONE": 0, "EACH": 0}}


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    """Whether statements are done by threads alone, or by blocks."""
    monkeypatch.setattr(loops_module, "MAX_LOCAL_BYTES", 32)
    monkeypatch.setattr(loops_module, "ALONE", 1 << 20)
    for name, value in MODES[request.param].items():
        monkeypatch.setattr(loops_module, name, value)
    return request.param


def slowly(loops, seed, rtol=0):
    """Check the kernels on the slow machine; return the numbers of their blocks."""
    region, values = loops.region(), loops.values
    want, found = wanted(region, values, seed), memory(region, values, seed)
    flat = {name: (array.reshape(-1), 0) for name, array in found.items()}
    blocks = []
    with dims.Guards(values), np.errstate(all="ignore"):
        for stmt in region.body:
            try:
                kernel, binding = schedule(stmt, region, LIMITS)
            except Unsupported as reason:  # a fold over one element or none of itself
                assert "overlap" in str(reason)
                interp.run(replace(region, body=(stmt,), arrays=existing(region)), found, values)
                continue
            check(kernel)
            assert kernel_text(kernel)
            Machine(kernel, binding, flat, values)
            if isinstance(stmt, Loop):
                blocks.append(dims.evaluate(binding.extents[0], values))
    agree(found, want, rtol)
    return blocks


@pytest.mark.parametrize("block", [False, True])
@settings(max_examples=24, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_without_races(block, seed, symbolic, floats):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops_module, "ALONE", 0 if block else 1 << 20)
        patch.setattr(loops_module, "EACH", 0 if block else 1 << 12)
        options = {"dtype": np.dtype("d"), "sums": True} if floats else {}
        slowly(Loops(random.Random(seed), symbolic=symbolic, **options), seed, 1e-12 if floats else 0)


def test_iterations_that_are_independent(mode):
    several = 0
    for seed in range(60):
        options = {"dtype": np.dtype("d"), "sums": True} if seed % 3 else {}
        loops = Loops(random.Random(seed), symbolic=seed % 2 > 0, apart=True, **options)
        several += sum(count > 1 for count in slowly(loops, seed, 1e-12))
    assert several > 8


PARALLEL = """region() {{
  inout A: f64[9, 20];  in B: f64[50, 20];  inout c: f64[9, 20];  inout y: f64[9]
   temp t: f64[20];  temp s: f64[]
  for k in range({0}) {{
    t[i] = multiply(A[k,i], 2.0) for i<20
    s[] add= multiply(t[i], A[k,i]) init 0.0 for i<20
    c[k,i] add= multiply(B[j,k], B[j,i+k]) init 0.0 for j<50, i<20-k
    for j in range(1, k, 1) {{
      A[k,j] = add(A[k,j-1], s[])
    }}
    y[k] = add(s[], t[k])
  }}
}}"""


@pytest.mark.parametrize("bounds", ["0, 9, 1", "8, -1, -1", "1, 9, 3", "8, 0, -3"])
def test_each_iteration_has_arrays_of_its_own(mode, bounds):
    region = parse(PARALLEL.format(bounds))
    kernel, binding = schedule(region.body[0], region, LIMITS)
    check(kernel)
    trips = len(range(*map(int, bounds.split(","))))
    assert binding.extents == ((-(-trips // 4),) if mode == "threads" else (trips,))
    found = memory(region, {})
    Machine(kernel, binding, {name: (a.reshape(-1), 0) for name, a in found.items()}, {})
    agree(found, wanted(region, {}), 1e-13)


SEQUENTIAL = """region() {{
  inout x: f64[{0}];  in a: f64[{0}]
  for t in range(0, 30, 1) {{
    x[i+1] = add(multiply(a[i], x[0]), a[i+1]) for i<{1}
    x[0] = multiply(x[1], 0.5)
  }}
}}"""


def test_a_loop_over_short_arrays_is_run_by_one_block():
    region = parse(SEQUENTIAL.format(100, 99))
    kernel, binding = schedule(region.body[0], region, LIMITS)
    assert binding.extents == (1,) and kernel.phases[0].threads == 4
    assert [b.access for b in kernel.buffers if b.noalias] == ["r"]  # threads read what others have written
    found = memory(region, {})
    Machine(kernel, binding, {name: (a.reshape(-1), 0) for name, a in found.items()}, {})
    agree(found, wanted(region, {}), 1e-13)


def test_a_loop_over_few_elements_is_run_by_one_thread():
    region = parse(SEQUENTIAL.format(5, 4))
    kernel, _ = schedule(region.body[0], region, LIMITS)
    assert kernel.phases[0].threads == 1


def test_a_loop_over_large_arrays_is_left_to_the_driver():
    region = parse(SEQUENTIAL.format(100001, 100000))
    with pytest.raises(Unsupported, match="large enough for a device"):
        schedule(region.body[0], region)
