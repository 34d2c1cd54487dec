"""Rows of sums, several at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runs import agree, interpreted, run_plan

from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.triangular_jam import TRIANGULAR_JAM
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify
from dcarray.lowering.compilation import compile_region

SIZE = 43


def region(iteration: str, last: str = "", rows: str = "0, 43, 1", columns: str = "0, i, 1"):
    arrays = "".join(f"inout {name}: f64[{SIZE}, {SIZE}];  " for name in "ab")
    arrays += f"temp t: f64[];  temp s: f64[];  inout x: f64[{SIZE}]"
    loops = f"for i in range({rows}) {{\nfor j in range({columns}) {{ {iteration} }}\n{last}\n}}"
    found = parse(f"region() {{\n{arrays}\n{loops}\n}}")
    verify(found)
    return found


def given_to(region: Any) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    made = {a.name: rng.uniform(-1, 1, a.shape) for a in region.arrays if a.role == "inout"}
    for name in "ab":
        made[name] += 4 * np.eye(SIZE)
    return made


def bits(region: Any) -> dict[str, bytes]:
    with np.errstate(all="ignore"):
        return {n: np.asarray(v).tobytes() for n, v in interpreted(region, given_to(region)).items()}


def changed(before: Any) -> Any:
    after = TRIANGULAR_JAM.fn(before, Log())
    verify(after)
    assert parse(dump(after)) == after
    assert bits(after) == bits(before), dump(after)
    return after


SUM = "t[] add= multiply(a[i,k], a[j,k]) init 0.0 for k<j\n"
POINT = "a[i,j] = divide(subtract(a[i,j], t[]), a[j,j])"
LAST = "s[] add= multiply(a[i,k], a[i,k]) init 0.0 for k<i\na[i,i] = subtract(a[i,i], s[])"

MOVED = {
    "the factors of a matrix": (SUM + POINT, LAST),
    "without a diagonal": (SUM + POINT, ""),
    "rows that are all as long": (
        SUM.replace("a[i,k]", "b[i,k]") + "b[i,j] = subtract(b[i,j], t[])", "", "0, 43, 1", "0, 43, 1"
    ),
    "only the last row left over": (SUM + POINT, LAST, "10, 43, 1", "3, i-4, 1"),
    "two sums": (SUM + "s[] add= multiply(b[i,k], a[j,k]) init 0.0 for k<j\na[i,j] = add(t[], s[])", ""),
    "two sums in one loop": (
        "nest {\nt[] add= multiply(a[i,k], a[j,k]) init 0.0 for k<j\n"
        "s[] add= multiply(b[i,k], a[j,k]) init 0.0 for k<j\n}\na[i,j] = add(t[], s[])",
        "",
    ),
    "a sum that is the element": (
        "b[i,j] add= multiply(b[i,k], a[j,k]) init a[i,j] for k<j", "x[i] add= b[i,k] init 0.0 for k<i"
    ),
    "the number of a row": (
        SUM.replace("multiply(a[i,k]", "multiply(cast:f64(size(i))") + "b[i,j] = t[]",
        "x[i] = cast:f64(size(i))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("parts", MOVED.values(), ids=MOVED)
def test_rows_at_once(parts):
    before = region(*parts)
    after = changed(before)
    assert after is not before
    final = CPU.run(before)
    verify(final)
    memory = given_to(before)
    want = interpreted(before, memory)
    run_plan(compile_region(final), memory)
    agree(memory, want, 1e-11)


STAYS = {
    "a sum over the row above": (SUM.replace("a[j,k]", "a[i-1,k]") + POINT, LAST, "1, 43, 1"),
    "an element of the row above": (SUM + POINT.replace("a[j,j]", "a[i-1,j]"), LAST, "1, 43, 1"),
    "what the row above ends with": (SUM + POINT.replace("a[j,j]", "x[j]"), "x[i-1] = t[]", "1, 43, 1"),
    "what all rows write": (SUM + "x[j] = t[]", ""),
    "a sum that goes on": ("x[0] = add(x[0], a[i,j])\n" + SUM + POINT, ""),
    "nothing in common": (SUM.replace("a[j,k]", "a[i,k]") + POINT, ""),
    "rows that may not begin": (SUM + POINT, LAST, "0, 43, 1", "2, i, 1"),
    "every second row": (SUM + POINT, LAST, "0, 43, 2"),
    "few rows": (SUM + POINT, LAST, "30, 43, 1"),
    "few columns": (SUM + POINT, LAST, "0, 25, 1"),
    "as many terms as the row is long": (SUM.replace("k<j", "k<i") + POINT, LAST),
}


@pytest.mark.parametrize("parts", STAYS.values(), ids=STAYS)
def test_what_stays(parts):
    before = region(*parts)
    assert changed(before) is before


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_whatever_is_read(data: st.DataObject) -> None:
    """Sums and elements that read any rows and columns near by."""
    row = st.sampled_from(["i", "j", "j", "i-1", "i+1", "j+1"])
    column = st.sampled_from(["j", "j-1", "i", "j+1"])
    array = st.sampled_from("aab")
    factors = [f"{data.draw(array)}[{data.draw(row)},k]" for _ in range(2)]
    terms = [f"{data.draw(array)}[{data.draw(row)},{data.draw(column)}]" for _ in range(2)]
    sums = f"t[] add= multiply({factors[0]}, {factors[1]}) init 0.0 for k<j\n"
    point = f"s[] = add(multiply(t[], 0.01), multiply({terms[0]}, {terms[1]}))\n"
    point += f"{data.draw(array)}[i,j] = s[]"
    lasts = ["", "a[i,i] = add(a[i,i], x[i])", "b[i,i] = a[i,i]", "x[i] = a[i,3]\na[i,3] = b[2,i]"]
    columns = data.draw(st.sampled_from(["1, i, 1", "1, i-1, 1", "1, 42, 1"]))
    changed(region(sums + point, data.draw(st.sampled_from(lasts)), "2, 42, 1", columns))
