"""Loops on copies whose rows are aligned."""

import random

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from loop_regions import Loops
from plan_runs import run_plan

from dcarray.ir import interp
from dcarray.ir.nodes import Array, Compute, Index, Loop, Nest, Window
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu import aligned_copies
from dcarray.ir.passes.cpu.time_tiling import CacheLimits
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify
from dcarray.lowering.compilation import compile_region

STEP = """
    b[i+1,j+1] = add(a[i,j+1], subtract(a[i+2,j+1], a[i+1,j])) for i<4, j<37
    a[i+1,j+1] = multiply(b[i+1,j+1], subtract(b[i+1,j+2], b[i+1,j])) for i<4, j<37
"""


@pytest.fixture
def any_size(monkeypatch):
    """As if copies cost nothing."""
    monkeypatch.setattr(aligned_copies, "MIN_ITERATIONS", 1)
    monkeypatch.setattr(aligned_copies, "MIN_POINTS", 0)
    monkeypatch.setattr(aligned_copies, "MIN_ROW", 0)


def region(body=STEP, arrays="inout a: f64[6, 39];  inout b: f64[6, 39]", bounds="0, 5, 1", more=""):
    found = parse(f"region() {{\n{arrays}\nfor t in range({bounds}) {{{body}}}\n{more}}}")
    verify(found)
    return found


def changed(before, limits=None):
    log = Log()
    after = aligned_copies.aligned_copies(limits or CacheLimits()).fn(before, log)
    verify(after)
    assert parse(dump(after)) == after
    again = aligned_copies.aligned_copies(limits or CacheLimits()).fn(after, Log())
    assert again is after, dump(again)
    return after


def test_interior_points(any_size, same_meaning):
    before = region()
    after = changed(before)
    same_meaning(before, after)
    assert [type(stmt) for stmt in after.body] == [Nest, Nest, Compute, Compute, Loop, Nest]
    for array in after.arrays[2:]:
        assert (array.role, array.shape) == ("temp", (6, 48))
    loop = after.body[4]
    assert loop.bounds == (1, 5, 1)
    for stmt in loop.body:
        assert stmt.target.array in ("a_rows", "b_rows") and stmt.target.index[1].offset == 8


@pytest.mark.parametrize(("shape", "begin", "made", "ahead"), [
    ((4, 40), 1, (4, 48), 7),
    ((4, 48), 8, (4, 48), 0),
    ((4, 57), 1, (4, 72), 7),  # eight lines would be crowded
    ((57,), 1, (64,), 7),
    ((4, 41), 0, (4, 48), 0),
])  # fmt: skip
def test_rows(shape, begin, made, ahead):
    array = Array("a", np.dtype("d"), shape)
    assert aligned_copies.padded_array(array, begin, "b") == (Array("b", np.dtype("d"), made), ahead)


@pytest.mark.parametrize("arrays", ["temp", "out"])
def test_what_is_made_in_the_loop_is_not_copied_before(any_size, same_meaning, arrays):
    body = "\nb[i,j] = a[i,j] for i<6, j<39" + STEP
    before = region(body, f"inout a: f64[6, 39];  {arrays} b: f64[6, 39]")
    after = changed(before)
    same_meaning(before, after)
    # what is around a, the first iteration, the loop, and one copy or both after it
    assert [type(stmt) for stmt in after.body[:7]] == [
        *[Nest] * 2,
        *[Compute] * 3,
        Loop,
        type(after.body[-1]),
    ]


def test_a_temporary_that_lives_on(any_size, same_meaning):
    fill = "w[i,j] = a[i,j] for i<6, j<39\n"
    more = "a[i,j] = w[i,j] for i<6, j<39\n"
    text = dump(region(STEP.replace("b[", "w["), "inout a: f64[6, 39];  temp w: f64[6, 39]", more=more))
    before = parse(text.replace("for t in", fill + "for t in", 1))
    verify(before)
    after = changed(before)
    same_meaning(before, after)
    assert [type(stmt) for stmt in after.body[1:6]] == [Nest, Nest, Compute, Compute, Loop]


@pytest.mark.parametrize("box", [(0, 0), (1, 2), (3, 0), (0, 4), (2, 2)])
def test_around(box):
    array = Array("a", np.dtype("d"), (5, 6))
    shape = tuple(n - low for n, low in zip((3, 4), box, strict=True))
    inner = Window("a", shape, tuple(Index(low, 1, k) for k, low in enumerate(box)))
    found = np.zeros(array.shape, int)
    for window in (inner, *aligned_copies.border(array, inner)):
        at = tuple(slice(ix.offset, ix.offset + n) for ix, n in zip(window.index, window.shape, strict=True))
        found[at] += 1
    assert (found == 1).all()


@pytest.mark.parametrize(("before", "why"), [
    (region(bounds="0, 1, 1"), "one iteration"),
    (region(STEP + "\n    a[i,0] = b[i,1] for i<6\n"), "written twice"),
    (
        region(
            STEP.replace("b[i+1,j+1] = add(", "b[i+1,j+1] = multiply(size:f64(t), add(", 1).replace(
                " for", ") for", 1
            )
        ),
        "iterations differ",
    ),
])  # fmt: skip
def test_copied_whole(any_size, same_meaning, before, why):
    after = changed(before)
    same_meaning(before, after)
    copies = after.body[0].body if isinstance(after.body[0], Nest) else after.body[:1]
    assert any(part.target.shape == (6, 39) for part in copies), why


@pytest.mark.parametrize(
    ("order", "step"), [(1, "a[i,j]"), (1, "b[i+1,j+1]"), (-1, "b[i,j]"), (-1, "a[i+1,j+1]")]
)
def test_the_first_iteration_reads_what_was_there(any_size, same_meaning, order, step):
    """Whatever it reads before and after it is written."""
    lines = [line for line in STEP.splitlines() if line][::order]
    lines[0] = lines[0].replace("= ", f"= add({step}, ").replace(" for", ") for")
    before = region("\n" + "\n".join(lines) + "\n", bounds="0, 3, 1")
    same_meaning(before, changed(before))


@pytest.mark.parametrize("before", [
    region(STEP.replace("add(", "divide(")),  # takes longer than loads
    region("\na[i+1,j] = b[i,j] for i<2, j<39\n"),  # little of it
    region("\na[t,j] = b[t,j] for j<39\n"),  # moves on
    region("\na[i,j] = b[i, 38-j] for i<6, j<39\n", "inout a: c128[6, 39];  inout b: c128[6, 39]"),
])  # fmt: skip
def test_what_stays(any_size, before):
    assert changed(before) is before


def test_arrays_in_two_shapes_stay(any_size):
    before = region(arrays="inout a: f64[6, 39];  inout b: f64[6, 39];  inout v: f64[234] base a")
    after = changed(before)
    assert [array.name for array in after.arrays[3:]] == ["b_rows"]


def test_few_iterations_and_large_arrays_stay(any_size, monkeypatch):
    before = region()
    assert changed(before, CacheLimits(near=1000)) is before
    monkeypatch.setattr(aligned_copies, "MIN_ITERATIONS", 6)
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
            run_plan(plan, mine, (), 0)
    return {name: array.tobytes() for name, array in mine.items()}


def same_results(before, seed):
    """Of a region and what the pass makes of it, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_ITERATIONS", "MIN_POINTS", "MIN_ROW"):
            patch.setattr(aligned_copies, name, 0)
        after = changed(before)
    assert results(after, seed) == results(before, seed)


@settings(max_examples=14, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_random_loops(seed):
    before = Loops(random.Random(seed)).region()
    try:
        verify(before)
    except VerifyError:  # the generator asks where relations may be guarded
        reject()
    same_results(before, seed)


def stencils(rng):
    """Statements that write the inner points of one of three arrays by those of others."""
    rows, columns = rng.randint(3, 6), rng.randint(9, 40)
    lines = []
    for _ in range(rng.randint(1, 3)):
        to, low = rng.choice("abc"), (rng.randint(0, 2), rng.randint(0, 2))
        m, n = rows - low[0] - rng.randint(0, 1), columns - low[1] - rng.randint(0, 2)
        if m < 1:
            continue

        def read(name, low=low, m=m, n=n):
            i, j = rng.randint(0, rows - m), rng.randint(0, columns - n)
            return f"{name}[i+{i},j+{j}]"

        others = [name for name in "abc" if name != to]
        value = f"subtract({read(rng.choice(others))}, {read(rng.choice(others))})"
        if rng.random() < 0.3:
            value = f"add({to}[i+{low[0]},j+{low[1]}], {value})"
        lines.append(f"{to}[i+{low[0]},j+{low[1]}] = {value} for i<{m}, j<{n}")
    arrays = ";  ".join(f"inout {name}: f64[{rows}, {columns}]" for name in "abc")
    return region("\n" + "\n".join(lines) + "\n", arrays, f"0, {rng.randint(1, 4)}, 1")


@settings(max_examples=14, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_random_stencils(seed):
    same_results(stencils(random.Random(seed)), seed)


@pytest.mark.parametrize("width", [17, 38, 39, 40, 47, 64, 130])
@pytest.mark.parametrize("dtype", ["f64", "f32", "i32"])
def test_compiled(any_size, width, dtype):
    body = STEP.replace("37", str(width - 2))
    before = region(body, f"inout a: {dtype}[6, {width}];  inout b: {dtype}[6, {width}]", "0, 3, 1")
    after = changed(before)
    assert len(after.body) == 6
    assert results(after, width, compile_region(after)) == results(before, width)
