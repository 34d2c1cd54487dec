"""Copies of what a run overwrites, and those that are not needed after all."""

from dataclasses import replace

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.analysis import effects, undo_copies, value_ranges
from dcarray.ir.nodes import Compute, Nest, Window
from dcarray.ir.text import parse
from dcarray.ir.verify import verify

LOOP = """region() {
  inout a: f64[6, 8];  in c: f64[];  inout b: f64[6, 8];  temp t: f64[6, 16]
  temp s: f64[6, 8];  temp u: f64[6, 6]
  t[i,j+3] = a[i,j] for i<6, j<8
  s[i,j] = a[i,j] for i<6, j<8
  for n in range(0, 5, 1) {
    u[i,j] = add(t[i,j+3], t[i,j+5]) for i<6, j<6
    t[i,j+4] = multiply(c[], u[i,j]) for i<6, j<6
    MORE
  }
  a[i,j] = t[i,j+3] for i<6, j<8
  b[i,j] = LAST for i<6, j<8
}"""


def kept(more="", last="s[i,j]", names=("a", "b")):
    before = parse(LOOP.replace("MORE", more).replace("LAST", last))
    verify(before)
    with_copies, found = undo_copies.with_undo_copies(before, names)
    verify(with_copies)
    after, left, stop = undo_copies.end_before_overwrites(with_copies, found)
    verify(after)
    data = {array.name: np.random.default_rng(3).random(array.shape) for array in before.arrays[:3]}
    one = interp.run(before, {k: v.copy() for k, v in data.items()}, {})
    two = interp.run(after, {k: v.copy() for k, v in data.items()}, {})
    assert all((one[name] == two[name]).all() for name in ("a", "b"))
    for each in left:
        np.testing.assert_array_equal(two[each.copy], data[each.array])
    if stop is not None:  # up to there all is as it was, but for what is kept
        early = interp.run(replace(after, body=after.body[:stop]), {k: v.copy() for k, v in data.items()}, {})
        for name in {"a", "b"} - {each.array for each in left}:
            np.testing.assert_array_equal(early[name], data[name])
    return [each.array for each in left], stop


def test_what_the_last_copies_overwrite_is_not_kept():
    assert effects.overwritten_inputs(parse(LOOP.replace("MORE", "").replace("LAST", "s[i,j]"))) == ("a",)
    assert kept() == ([], 3)
    assert kept(names=("a",)) == ([], 3)


@pytest.mark.parametrize(("more", "last", "left", "stop"), [
    ("b[i,j] = a[i,j] for i<6, j<8", "s[i,j]", ["b"], 4),  # written before
    ("a[0,j] = b[0,j] for j<8", "s[i,j]", ["a"], 4),
    ("", "add(s[i,j], c[])", ["a", "b"], None),  # the last may raise
    ("", "cast:f64(cast:f32(s[i,j]))", ["a", "b"], None),
])  # fmt: skip
def test_what_else_is_overwritten_is(more, last, left, stop):
    assert kept(more, last) == (left, stop)


@pytest.mark.parametrize(("guards", "rows"), [(" where 0 <= K, K <= 5", "K, K+1"), ("", "0, 6")])
def test_of_a_row_at_a_known_place_only_that_row_is_kept(guards, rows):
    region = parse(f"region(K: int>=-9){guards} {{\n inout a: f64[6, 8]\n a[K,j] = exp(a[K,j]) for j<8\n}}")
    _, (copy,) = undo_copies.with_undo_copies(region, ("a",))
    assert copy.slices == f"(slice({rows}, 1), slice(0, 8, 1), )"
    assert value_ranges.worth_checking(region, [copy.window], 6 * 8 * 8, {"K": 2}) is not bool(guards)


def test_nothing_to_spare():
    region = parse("region() {\n inout a: f64[3]\n a[i] = add(a[i], a[i]) for i<3\n}")
    assert undo_copies.end_before_overwrites(region, ()) == (region, (), None)


LATE = """region() {
  in x: f64[6, 8];  in y: f64[8, 5];  inout c: f64[6, 5];  in s: f64[];  temp t: f64[6, 5];  SOME
  call blas.matmul(x, y) -> t
  BODY
}"""
SUM = "c[i,j] = add(t[i,j], multiply(s[], c[i,j])) for i<6, j<5"


def late(body=SUM, some="out o: f64[6, 5]", names=("c",)):
    before = parse(LATE.replace("BODY", body).replace("SOME", some))
    verify(before)
    with_copies, found = undo_copies.with_undo_copies(before, names)
    # as passes leave it: copies are made beside what overwrites
    (save,), call, *more, last = (with_copies.body[:1], *with_copies.body[1:])
    parts = last.body if isinstance(last, Nest) else (last,)
    fused = replace(with_copies, body=(call, *more, Nest((save, *parts))))
    verify(fused)
    after, left, stop = undo_copies.compute_aside(fused, found)
    verify(after)
    if stop is None:
        assert after is fused and left == found
        return False
    rng = np.random.default_rng(4)
    data = {a.name: rng.random(a.shape) for a in before.arrays if a.role in ("in", "inout")}
    one = interp.run(before, {k: v.copy() for k, v in data.items()}, {})
    two = interp.run(after, {k: v.copy() for k, v in data.items()}, {})
    for name in {"c", "o"} if "o[" in body else {"c"}:
        np.testing.assert_array_equal(one[name], two[name])
    early = interp.run(replace(after, body=after.body[:stop]), {k: v.copy() for k, v in data.items()}, {})
    np.testing.assert_array_equal(early["c"], data["c"])
    assert left == ()
    return True


def test_what_the_last_statement_overwrites_is_made_aside():
    assert late()
    assert late("nest {\n" + SUM + "\n o[i,j] = t[i,j] for i<6, j<5\n }")
    assert late("nest {\n o[i,j] = c[i,j] for i<6, j<5\n" + SUM + "\n }")


@pytest.mark.parametrize("body", [
    "c[i,j] = multiply(s[], c[i,j]) for i<6, j<5",  # there is no memory for it
    "c[i,j] = add(s[], c[i,j]) for i<6, j<5\n  " + SUM,  # overwritten before
    "nest {\n" + SUM + "\n o[i,j] = c[i,j] for i<6, j<5\n }",  # read afterwards
    "c[5-i,j] = add(t[i,j], s[]) for i<6, j<5\n  " + SUM,
])  # fmt: skip
def test_where_copies_are_kept_after_all(body):
    assert not late(body)


CALLS = """region() {
  inout a: f64[4, 4];  inout b: f64[4, 4];  in x: f64[4, 4];  temp t: f64[4, 4]
  a[i,j] = add(a[i,j], x[i,j]) for i<4, j<4
  LOOP
  b[i,j] = add(b[i,j], t[i,j]) for i<4, j<4
}"""


@pytest.mark.parametrize(("loop", "gone"), [
    ("call blas.matmul(x, a) -> t", ["a"]),
    (
        "for n in range(0, 3, 1) {\n call blas.matmul(x, b) -> t\n b[i,j] = t[i,j] for i<4, j<4\n }",
        ["a", "b"],
    ),
    ("t[i,j] = x[i,j] for i<4, j<4", []),
])  # fmt: skip
def test_one_copy_of_what_a_library_call_may_find_overwritten(loop, gone):
    before = parse(CALLS.replace("LOOP", loop))
    with_copies, found = undo_copies.with_undo_copies(before, ("a", "b"))
    after, left, names = undo_copies.caller_copies(with_copies, found)
    verify(after)
    assert list(names) == gone
    assert [one.array for one in left] == [name for name in ("a", "b") if name not in gone]
    assert len(after.body) == len(with_copies.body) - len(gone)


def test_memory_in_several_geometries():
    region = parse(
        "region() {\n inout a: f64[6];  inout b: f64[2, 3] base a;  inout c: f64[6]\n"
        "  a[i] = add(a[i], 1.0) for i<6\n  b[i,j] = add(b[i,j], c[j]) for i<2, j<3\n"
        "  c[i] = add(c[i], 1.0) for i<6\n}"
    )
    assert undo_copies.aliased_arrays(region, ("a", "b", "c")) == ("a", "b")


ROWS = """region() {
  inout a: f64[6, 8];  in v: f64[8];  out y: f64[6];  temp k: f64[6, 8]
  rows 1 {
    nest { k[i,j] = a[i,j] for i<6, j<8;  a[i,j] = add(a[i,j], v[j]) for i<6, j<8 }
    y[i] add= multiply(a[i,j], OTHER) init 0.0 for i<6, j<8
  }
}"""


@pytest.mark.parametrize(("other", "parts"), [("v[j]", 2), ("k[i,j]", None)])
def test_copies_beside_what_goes_row_by_row(other, parts):
    region = parse(ROWS.replace("OTHER", other))
    verify(region)
    left = undo_copies.without_copies(
        region, [undo_copies.UndoCopy("a", "k", Window("k", (6, 8), ()))], beside=True
    )
    verify(left)
    if parts is None:  # somebody else needs it
        assert left is region
        return
    (rows,) = left.body
    assert len(rows.body) == parts and all(isinstance(part, Compute) for part in rows.body)
    data = {"a": np.arange(48.0).reshape(6, 8), "v": np.arange(8.0)}
    one, two = (interp.run(r, {k: v.copy() for k, v in data.items()}, {}) for r in (region, left))
    assert all((one[name] == two[name]).all() for name in ("a", "y"))
