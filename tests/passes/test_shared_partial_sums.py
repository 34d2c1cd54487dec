"""Sums that get a term longer or shorter in each iteration, begun for several iterations at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runs import agree, interpreted, run_plan

from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
from dcarray.ir.passes.cpu.shared_partial_sums import SHARED_PARTIAL_SUMS
from dcarray.ir.passes.cpu.time_tiling import CacheLimits
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify
from dcarray.lowering.compilation import compile_region

SIZE, WIDE = 43, 50


def region(body: str, iterations: str = "0, 43, 1"):
    arrays = f"inout a: f64[{SIZE}, {SIZE}];  inout b: f64[{SIZE}, {WIDE}];  inout x: f64[{SIZE}]\n"
    arrays += f"inout n: i64[{SIZE}];  temp t: f64[{WIDE}];  temp s: f64[]"
    found = parse(f"region() {{\n{arrays}\nfor i in range({iterations}) {{\n{body}\n}}\n}}")
    verify(found)
    return found


def given_to(region: Any) -> dict[str, Any]:
    """Small whole numbers, few of which are not zero: sums are exact in any order."""
    rng = np.random.default_rng(5)
    made = {}
    for array in region.arrays:
        if array.role == "inout":
            values = rng.integers(-1, 2, array.shape) * (rng.random(array.shape) < 0.15)
            made[array.name] = values.astype(array.dtype)
    return made


def changed(before: Any) -> Any:
    after = SHARED_PARTIAL_SUMS.fn(before, Log())
    verify(after)
    assert parse(dump(after)) == after
    want, got = (interpreted(one, given_to(one)) for one in (before, after))
    agree(got, want, what=dump(after))
    return after


SHRINKS = "t[j] add= multiply(a[k+i+1,i], b[k+i+1,j]) init 0.0 for k<42-i, j<50\n"
GROWS = "t[j] add= multiply(a[i,k], b[k,j]) init 0.5 for j<50, k<i\n"
ROW = "b[i,j] = add(b[i,j], t[j]) for j<50"
ONE = "s[] add= multiply(a[i,k], x[k]) init 0.0 for k<i-1\nx[i] = subtract(x[i], s[])"

MOVED = {
    "rows below": (SHRINKS + ROW,),
    "rows above": (GROWS + ROW,),
    "what the iteration before has made": (ONE, "1, 43, 1"),
    "rows above, but the last ones": (GROWS.replace("k<i", "k<i-4") + ROW, "4, 43, 1"),
    "numbers": (ONE.replace("k<i-1", "k<i-5"), "5, 43, 1"),
    "a few iterations are left over": (SHRINKS + ROW, "2, 37, 1"),
    "and a loop beside": (SHRINKS + ROW + "\nfor q in range(0, i, 1) { a[q,q] = add(x[q], x[i]) }",),
    "right where they are wanted": (
        "x[i] add= multiply(a[i,k], b[k,3]) init 0.0 for k<i",
    ),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("parts", MOVED.values(), ids=MOVED)
def test_begun(parts, threads):
    before = region(*parts)
    assert changed(before) is not before
    final = cpu_pipeline(CacheLimits(threads=threads)).run(before, debug=True)
    memory = given_to(before)
    want = interpreted(before, memory)
    run_plan(compile_region(final, threads=threads), memory, (), threads)
    agree(memory, want)


STAYS = {
    "rows of which one changes": (GROWS + "a[2,j] = t[j] for j<43",),
    "rows of which the last is new": (GROWS.replace("k<i", "k<i+1") + ROW, "0, 42, 1"),
    "a row that the iteration itself writes before": (
        "b[42,j] = x[i] for j<50\n" + SHRINKS + "x[i] = t[0]",
    ),
    "what an iteration changes below": (SHRINKS + "b[42,j] = t[j] for j<50",),
    "nothing in common": (SHRINKS.replace("b[k+i+1,j]", "b[i,j]") + ROW,),
    "the same terms in each iteration": (SHRINKS.replace("k+i+1", "k").replace("42-i", "43") + ROW,),
    "two terms shorter": (SHRINKS.replace("k+i+1", "k+2*i").replace("42-i", "42-2*i") + ROW, "0, 21, 1"),
    "rows that are shorter in each iteration": (SHRINKS.replace("j<50", "j<50-i") + "x[i] = t[0]",),
    "whole numbers": ("n[i] add= n[k+i+1] init 0 for k<42-i",),
    "backwards": (SHRINKS + ROW, "42, -1, -1"),
    "few iterations": (SHRINKS + ROW, "0, 12, 1"),
}  # fmt: skip


@pytest.mark.parametrize("parts", STAYS.values(), ids=STAYS)
def test_left_as_they_are(parts):
    before = region(*parts)
    assert changed(before) is before


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_whatever_is_read(data: st.DataObject) -> None:
    """Sums over rows and columns near by, and iterations that write anywhere."""
    grows = data.draw(st.booleans())
    gap, shift = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 3))
    extent = f"i-{gap}" if grows else f"{43 - 6}-i"
    along = f"k+{shift}" if grows else f"k+i+{data.draw(st.integers(0, 6))}"
    factors = data.draw(
        st.sampled_from([("a[i,{0}]", "b[{0},j]"), ("a[{0},i]", "b[{0},j]"), ("x[{0}]", "b[{0},j]")])
    )
    one, two = (factor.format(along) for factor in factors)
    sums = f"t[j] add= multiply({one}, {two}) init 1.0 for k<{extent}, j<20\n"
    into = st.sampled_from(
        ["b[i,j]", "b[i+1,j]", "b[i-1,j]", "b[j,i]", "b[42,j]", "a[i,j]", "a[j,i]", "b[i-4,j]"]
    )
    body = sums + f"{data.draw(into)} = minimum(t[j], 2.0) for j<20"
    if data.draw(st.booleans()):
        body = f"x[{data.draw(st.sampled_from(['i', 'i+1', 'i-1', '0', '42']))}] = b[i,0]\n" + body
    changed(region(body, "6, 37, 1"))
