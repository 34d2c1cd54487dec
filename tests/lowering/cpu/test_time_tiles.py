"""Time-tiled kernels: against the interpreter, without races, on any number of threads."""

import random
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from band_regions import Chains
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_machine import Machine

from dcarray.ir import dims, interp, verify
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.time_tiling import CacheLimits, time_tiling
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.schedules import time_tiles as lowered
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.kernel.verify import check
from dcarray.lowering.program import small_statements

SMALL = CacheLimits(last=0, near=1 << 20, again=0, points=0, tiles=2, sides=1, height=2)


def memory(region, values, seed):
    rng = np.random.default_rng(seed)
    made = {}
    for array in region.arrays:
        shape = [dims.evaluate(n, values) for n in array.shape]
        made[array.name] = (rng.integers(-9, 10, shape) * 0.37).astype(array.dtype)
    return made


def wanted(region, values, seed):
    found = memory(region, values, seed)
    with np.errstate(all="ignore"):
        interp.run(region, found, values)
    return {name: array.tobytes() for name, array in found.items()}


@contextmanager
def nearest(nbytes):
    """Another first cache: with a few bytes rows are cut into strips of a few elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowered, "NEAREST", nbytes)
        yield


@settings(max_examples=48, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans(), st.sampled_from([24, 60, 1 << 20]))
def test_without_races(seed, height, symbolic, cache):
    """The slow machine runs tiles in the opposite order and sees who touches what."""
    with nearest(cache):
        without_races(seed, height, symbolic)


def without_races(seed, height, symbolic):
    chains = Chains(random.Random(seed), symbolic=symbolic)
    region, values = chains.region(), chains.values
    with dims.Guards(values):
        made = time_tiling(replace(SMALL, height=height)).fn(region, Log())
        verify.verify(made)
        want, found = wanted(region, values, seed), memory(region, values, seed)
        for stmt in made.body:
            kernel, binding = schedule(stmt, made)
            check(kernel)
            Machine(kernel, binding, {name: (a.reshape(-1), 0) for name, a in found.items()}, values)
    assert {name: array.tobytes() for name, array in found.items()} == want


@settings(max_examples=12, derandomize=True, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.sampled_from(["f8", "f4", "i8"]),
    st.sampled_from([60, 1 << 20]),
)
def test_compiled(seed, height, dtype, cache):
    region = Chains(random.Random(seed), dtype).region()
    made = time_tiling(replace(SMALL, height=height)).fn(region, Log())
    with nearest(cache), mock.patch.object(small_statements, "MOST_WORK", 0):
        plan = compile_region(made, fallback=lambda reason, loc: pytest.fail(reason))
    assert plan.stats["kernels"] == len(made.body)
    want = wanted(region, {}, seed)
    for threads in (1, 2, 5):
        found = memory(region, {}, seed)
        with np.errstate(all="ignore"):
            plan.run(tuple(found.values()), tuple(a.ctypes.data for a in found.values()), (), threads)
        assert {name: array.tobytes() for name, array in found.items()} == want


def jacobi(rows, columns, steps):
    names = [("a", "b"), ("b", "a")]
    body = "".join(
        f"{b}[i+1,j+1] = multiply(0.2, add(add(add(add({a}[i+1,j+1], {a}[i+1,j]), {a}[i+1,j+2]),"
        f" {a}[i+2,j+1]), {a}[i,j+1])) for i<{rows - 2}, j<{columns - 2}\n"
        for a, b in (names * steps)[:steps]
    )
    return parse(f"region() {{\n inout a: f64[{rows},{columns}]; inout b: f64[{rows},{columns}]\n{body}}}")


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_enough_work_for_threads(threads):
    """Large enough that the pool does take its threads."""
    region = jacobi(800, 300, 9)
    made = time_tiling(replace(SMALL, tiles=8, parts=5, height=4)).fn(region, Log())
    assert [len(stmt.body) for stmt in made.body] == [5, 4]
    plan = compile_region(made)
    for seed in range(5):
        found = memory(region, {}, seed)
        plan.run(tuple(found.values()), tuple(a.ctypes.data for a in found.values()), (), threads)
        assert {name: array.tobytes() for name, array in found.items()} == wanted(region, {}, seed)


def test_long_rows_are_cut_into_strips():
    long, short = jacobi(60, 2001, 4), jacobi(60, 301, 4)
    for region, strips in ((long, True), (short, False)):
        made = time_tiling(SMALL).fn(region, Log())
        (stmt,) = made.body
        kernel, _ = schedule(stmt, made)
        assert ("b1" in repr(kernel)) is strips
    plan = compile_region(time_tiling(SMALL).fn(long, Log()))
    found = memory(long, {}, 1)
    plan.run(tuple(found.values()), tuple(a.ctypes.data for a in found.values()), (), 1)
    assert {name: array.tobytes() for name, array in found.items()} == wanted(long, {}, 1)


def test_one_text_for_all_sizes_and_tiles():
    texts = set()
    for rows, tiles in ((800, 8), (801, 4)):
        made = time_tiling(replace(SMALL, tiles=tiles)).fn(jacobi(rows, 300, 4), Log())
        (stmt,) = made.body
        texts.add(repr(schedule(stmt, made)[0]))
    assert len(texts) == 1
