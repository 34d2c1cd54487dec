"""Several rows at once, each some columns behind the one before it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import interp
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.wavefront import WAVEFRONT
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

ROWS, COLUMNS = 13, 70


def region(row: str, point: str, rows: str = "1, 12, 1", columns: str = "1, 69, 1"):
    found = parse(
        f"region() {{\ninout a: f64[{ROWS}, {COLUMNS}];  inout b: f64[{ROWS}, {COLUMNS}];  temp t: f64[68]\n"
        f"inout s: f64[]\nfor i in range({rows}) {{\n{row}\nfor j in range({columns}) {{ {point} }}\n}}\n}}"
    )
    verify(found)
    return found


def bits(region: Any) -> dict[str, bytes]:
    rng = np.random.default_rng(3)
    given = {a.name: rng.uniform(-1, 1, a.shape) for a in region.arrays if a.role == "inout"}
    with np.errstate(all="ignore"):
        return {name: np.asarray(value).tobytes() for name, value in interp.run(region, given, {}).items()}


def changed(before: Any) -> Any:
    log = Log()
    after = WAVEFRONT.fn(before, log)
    verify(after)
    assert parse(dump(after)) == after
    assert bits(after) == bits(before), dump(after)
    final = CPU.run(before)
    verify(final)
    assert bits(final) == bits(before), dump(final)
    return after


SEIDEL = "a[i,j] = divide(add(add(a[i,j-1], a[i,j+1]), add(a[i-1,j], a[i+1,j])), 3.0)"
ROW = "t[k] = add(a[i,k+1], add(a[i-1,k], a[i,k+2])) for k<68\na[i,k+1] = t[k] for k<68"

LEFT = "a[i,j] = divide(add(a[i,j], a[i,j-1]), 3.0)"


@pytest.mark.parametrize(("row", "point", "rows", "columns"), [
    ("", SEIDEL, "1, 12, 1", "1, 69, 1"),
    ("", SEIDEL, "11, 0, -1", "1, 69, 1"),
    ("", SEIDEL, "1, 12, 1", "68, 0, -1"),
    ("", SEIDEL, "10, 2, -1", "68, 2, -1"),
    ("", SEIDEL, "1, 4, 1", "1, 69, 1"),
    ("", SEIDEL.replace("a[i-1,j]", "a[i-1,j+1]"), "1, 12, 1", "1, 69, 1"),
    ("", SEIDEL + "\nb[i,j] = add(a[i,j], b[i,j-1])", "1, 12, 1", "1, 69, 1"),
    (ROW, LEFT, "1, 12, 1", "1, 69, 1"),
    (ROW, LEFT, "11, 0, -1", "1, 69, 1"),
    ("t[k] = multiply(a[i,k+1], cast:f64(size(i))) for k<68", SEIDEL.replace("a[i,j+1]", "t[j-1]"),
     "1, 12, 1", "1, 69, 1"),
])  # fmt: skip
def test_rows_at_once(row, point, rows, columns):
    before = region(row, point, rows, columns)
    assert changed(before) is not before


@pytest.mark.parametrize(("row", "point", "rows", "columns"), [
    ("", SEIDEL.replace("a[i-1,j]", "a[i-1,69-j]"), "1, 12, 1", "1, 69, 1"),  # which comes later
    ("", "s[] = add(s[], a[i,j])\n" + SEIDEL, "1, 12, 1", "1, 69, 1"),
    ("", SEIDEL.replace("a[i-1,j]", "s[]") + "\ns[] = a[i,j]", "1, 12, 1", "1, 69, 1"),
    ("", SEIDEL, "1, 2, 1", "1, 69, 1"),
    ("", SEIDEL, "1, 12, 2", "1, 69, 1"),
    ("", SEIDEL, "1, 12, 1", "1, 9, 1"),  # too short
    ("", "a[i,j] = add(b[i,j-1], b[i,j])", "1, 12, 1", "1, 69, 1"),  # whose elements wait for nothing
    (ROW, SEIDEL, "1, 12, 1", "1, 69, 1"),  # which reads elements before their row is there
    (ROW.replace("a[i,k+2]", "a[i,68-k]"), LEFT, "1, 12, 1", "1, 69, 1"),
    (
        ROW.replace("a[i,k+1] =", "a[i,k+2] ="),
        SEIDEL,
        "1, 12, 1",
        "1, 69, 1",
    ),  # which a point reads before
    ("t[k] = a[i,k] for k<60", LEFT, "1, 12, 1", "1, 69, 1"),
    ("s[] add= a[i,k] for k<68", LEFT, "1, 12, 1", "1, 69, 1"),
])  # fmt: skip
def test_what_stays(row, point, rows, columns):
    before = region(row, point, rows, columns)
    assert changed(before) is before


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_whatever_is_read(data: st.DataObject) -> None:
    """Points that read any others near by, forwards and backwards."""
    near = st.sampled_from([-2, -1, 0, 1, 2])
    array = st.sampled_from("aab")
    terms = [
        f"{data.draw(array)}[i{data.draw(near):+},j{data.draw(near):+}]"
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    value = "a[i,j-1]"
    for term in terms:
        value = f"add(multiply({value}, 0.5), {term})"
    point = f"{data.draw(array)}[i,j] = {value}"
    row = ""
    if data.draw(st.booleans()):
        reads = [f"{data.draw(array)}[i{data.draw(near):+},k+{data.draw(near) + 2}]" for _ in range(2)]
        row = f"t[k] = add({reads[0]}, {reads[1]}) for k<66\n{data.draw(array)}[i,k+2] = t[k] for k<66"
    rows = data.draw(st.sampled_from(["2, 11, 1", "10, 1, -1", "2, 5, 1"]))
    columns = data.draw(st.sampled_from(["2, 68, 1", "67, 1, -1"]))
    changed(region(row, point, rows, columns))
