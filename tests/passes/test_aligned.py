"""Loops on copies whose rows are aligned."""

import random

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from loop_regions import Loops

from dcarray.ir import interp
from dcarray.ir.nodes import Array, Loop, Nest
from dcarray.ir.passes import Log, aligned
from dcarray.ir.passes.bands import Limits
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify
from dcarray.lowering.plan import compile_region

STEP = """
    b[i+1,j+1] = add(a[i,j+1], subtract(a[i+2,j+1], a[i+1,j])) for i<4, j<37
    a[i+1,j+1] = multiply(b[i+1,j+1], subtract(b[i+1,j+2], b[i+1,j])) for i<4, j<37
"""


@pytest.fixture
def any_size(monkeypatch):
    """As if copies cost nothing."""
    monkeypatch.setattr(aligned, "MIN_TURNS", 1)
    monkeypatch.setattr(aligned, "MIN_POINTS", 0)
    monkeypatch.setattr(aligned, "MIN_ROW", 0)


def region(body=STEP, arrays="inout a: f64[6, 39];  inout b: f64[6, 39]", bounds="0, 5, 1", more=""):
    found = parse(f"region() {{\n{arrays}\nfor t in range({bounds}) {{{body}}}\n{more}}}")
    verify(found)
    return found


def changed(before, limits=None):
    log = Log()
    after = aligned.aligned(limits or Limits()).fn(before, log)
    verify(after)
    assert parse(dump(after)) == after
    again = aligned.aligned(limits or Limits()).fn(after, Log())
    assert again is after, dump(again)
    return after


def test_interior_points(any_size, same_meaning):
    before = region()
    after = changed(before)
    same_meaning(before, after)
    assert [type(stmt) for stmt in after.body] == [Nest, Loop, Nest]
    for array in after.arrays[2:]:
        assert (array.role, array.shape) == ("temp", (6, 48))
    loop = after.body[1]
    for stmt in loop.body:
        assert stmt.target.array in ("a_rows", "b_rows") and stmt.target.index[1].offset == 8


@pytest.mark.parametrize(
    ("shape", "begin", "made", "ahead"),
    [
        ((4, 40), 1, (4, 48), 7),
        ((4, 48), 8, (4, 48), 0),
        ((4, 57), 1, (4, 72), 7),  # eight lines would be crowded
        ((57,), 1, (64,), 7),
        ((4, 41), 0, (4, 48), 0),
    ],
)
def test_rows(shape, begin, made, ahead):
    array = Array("a", np.dtype("d"), shape)
    assert aligned.padded(array, begin, "b") == (Array("b", np.dtype("d"), made), ahead)


@pytest.mark.parametrize("arrays", ["temp", "out"])
def test_what_is_made_in_the_loop_is_not_copied_before(any_size, same_meaning, arrays):
    body = "\nb[i,j] = a[i,j] for i<6, j<39" + STEP
    before = region(body, f"inout a: f64[6, 39];  {arrays} b: f64[6, 39]")
    after = changed(before)
    same_meaning(before, after)
    assert len(after.body) == 3  # one copy before, and one or both after it


def test_a_temporary_that_lives_on(any_size, same_meaning):
    fill = "w[i,j] = a[i,j] for i<6, j<39\n"
    more = "a[i,j] = w[i,j] for i<6, j<39\n"
    text = dump(region(STEP.replace("b[", "w["), "inout a: f64[6, 39];  temp w: f64[6, 39]", more=more))
    before = parse(text.replace("for t in", fill + "for t in", 1))
    verify(before)
    after = changed(before)
    same_meaning(before, after)
    assert len(after.body) == 5


@pytest.mark.parametrize(
    "before",
    [
        region(STEP.replace("add(", "divide(")),  # takes longer than loads
        region("\na[i+1,j] = b[i,j] for i<2, j<39\n"),  # little of it
        region("\na[t,j] = b[t,j] for j<39\n"),  # moves on
        region("\na[i,j] = b[i, 38-j] for i<6, j<39\n", "inout a: c128[6, 39];  inout b: c128[6, 39]"),
    ],
)
def test_what_stays(any_size, before):
    assert changed(before) is before


def test_arrays_in_two_shapes_stay(any_size):
    before = region(arrays="inout a: f64[6, 39];  inout b: f64[6, 39];  inout v: f64[234] base a")
    after = changed(before)
    assert [array.name for array in after.arrays[3:]] == ["b_rows"]


def test_few_turns_and_large_arrays_stay(any_size, monkeypatch):
    before = region()
    assert changed(before, Limits(near=1000)) is before
    monkeypatch.setattr(aligned, "MIN_TURNS", 6)
    assert changed(before) is before


def results(found, seed, plan=None):
    rng = np.random.default_rng(seed)
    given_ = {a.name: rng.integers(-3, 4, a.shape).astype(a.dtype) for a in found.arrays if a.base is None}
    for array in found.arrays:
        if array.base is not None:
            given_[array.name] = given_[array.base].reshape(array.shape)
    mine = {a.name: given_[a.name] for a in found.arrays if a.role != "temp"}
    with np.errstate(all="ignore"):
        if plan is None:
            interp.run(found, mine, {})
        else:
            arrays = [mine[name] for name in plan.arrays]
            plan.run(tuple(arrays), tuple(a.ctypes.data for a in arrays))
    return {name: array.tobytes() for name, array in mine.items()}


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_random_loops(seed):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_TURNS", "MIN_POINTS", "MIN_ROW"):
            patch.setattr(aligned, name, 0)
        before = Loops(random.Random(seed)).region()
        try:
            verify(before)
        except VerifyError:  # the generator asks where relations may be guarded
            reject()
        after = changed(before)
    assert results(after, seed) == results(before, seed)


@pytest.mark.parametrize("width", [17, 38, 39, 40, 47, 64, 130])
@pytest.mark.parametrize("dtype", ["f64", "f32", "i32"])
def test_compiled(any_size, width, dtype):
    body = STEP.replace("37", str(width - 2))
    before = region(body, f"inout a: {dtype}[6, {width}];  inout b: {dtype}[6, {width}]", "0, 3, 1")
    after = changed(before)
    assert len(after.body) == 3
    assert results(after, width, compile_region(after)) == results(before, width)
