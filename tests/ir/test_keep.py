"""Copies of what a run overwrites, and those that are not needed after all."""

from dataclasses import replace

import numpy as np
import pytest

from dcarray.ir import effects, interp, keep
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
    with_copies, found = keep.keeping(before, names)
    verify(with_copies)
    after, left, stop = keep.spare(with_copies, found)
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
    assert effects.lost(parse(LOOP.replace("MORE", "").replace("LAST", "s[i,j]"))) == ("a",)
    assert kept() == ([], 3)
    assert kept(names=("a",)) == ([], 3)


@pytest.mark.parametrize(
    ("more", "last", "left", "stop"),
    [
        ("b[i,j] = a[i,j] for i<6, j<8", "s[i,j]", ["b"], 4),  # written before
        ("a[0,j] = b[0,j] for j<8", "s[i,j]", ["a"], 4),
        ("", "add(s[i,j], c[])", ["a", "b"], None),  # the last may raise
        ("", "cast:f64(cast:f32(s[i,j]))", ["a", "b"], None),
    ],
)
def test_what_else_is_overwritten_is(more, last, left, stop):
    assert kept(more, last) == (left, stop)


def test_nothing_to_spare():
    region = parse("region() {\n inout a: f64[3]\n a[i] = add(a[i], a[i]) for i<3\n}")
    assert keep.spare(region, ()) == (region, (), None)
