"""Elements that the iterations of a loop go on with, in scalars."""

import pytest

from dcarray.ir.nodes import Loop
from dcarray.ir.passes import Log
from dcarray.ir.passes.portable.scalar_replacement import SCALAR_REPLACEMENT
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

HEAD = "region() {\ninout c: i64[9, 9];  inout d: i64[9, 9];  in x: i64[9];  inout s: i64[]\n"


def region(body: str):
    found = parse(HEAD + body + "\n}")
    verify(found)
    return found


FOLD = """for i in range(0, 8, 1) {
  for j in range(i+1, 9, 1) {
    for k in range(i+1, j, 1) { c[i,j] = maximum(c[i,j], add(c[i,k], c[k,j])) }
  }
}"""
DOWN = """for i in range(7, -1, -1) {
  for j in range(i, 9, 1) {
    for k in range(j-1, i-1, -1) { c[i,j] = add(multiply(c[i,j], 3), c[i,k]) }
  }
}"""
DEEP = """for i in range(0, 4, 1) {
  for k in range(5, 8, 1) {
    for l in range(0, 2, 1) {
      if less(c[i,2], x[k]) { c[i,2] = add(c[i,2], c[k,l]) } else { d[k,l] = c[i,2] }
    }
  }
}"""
SLOPE = """for i in range(1, 8, 2) {
  for j in range(2, 9, 1) {
    c[i,j] = add(multiply(c[i,j-1], 3), c[i-1,j])
    c[i+1,j-1] = add(multiply(c[i+1,j-2], 5), c[i,j])
  }
}"""
BACK = SLOPE.replace("range(2, 9, 1)", "range(7, 0, -1)").replace("j-2", "j").replace("[i,j-1]", "[i,j+1]")


@pytest.mark.parametrize("body", [FOLD, DOWN, DEEP, SLOPE, BACK])
def test_scalars(body, same_meaning):
    before = region(body)
    log = Log()
    after = SCALAR_REPLACEMENT.fn(before, log)
    verify(after)
    assert after is not before and str(log), dump(after)
    assert parse(dump(after)) == after
    same_meaning(before, after)
    assert SCALAR_REPLACEMENT.fn(after, Log()) is after


@pytest.mark.parametrize("body", [
    FOLD.replace("c[i,k]", "d[i,k]").replace("c[k,j]", "d[k,j]"),
    FOLD.replace("c[i,j]", "d[i,j]"),  # as any compiler does it
    FOLD.replace("c[i,j] =", "c[i,k] =").replace("c[i,j], add(c[i,k]", "c[i,k], add(c[i,k]"),
    "for k in range(0, 5, 1) { c[8,8] = maximum(c[8,8], c[k,k]) }",  # there would be three kernels
    """for i in range(0, 4, 1) {
      for k in range(5, 8, 1) { for l in range(0, 2, 1) { c[i,2] = x[k]\nc[k,l] = 0 } }
    }""",  # nothing reads it, so that it may have no value before
    SLOPE.replace("c[i+1,j-1] =", "c[i,j-1] ="),  # written again before it is read
    SLOPE.replace("c[i+1,j-1] =", "c[i,j] ="),
    SLOPE.replace("c[i+1,j-1] =", "d[i+1,j-1] ="),
])  # fmt: skip
def test_what_stays(body):
    before = region(body)
    after = SCALAR_REPLACEMENT.fn(before, Log())
    assert after is before, dump(after)


def test_a_loop_without_iterations_writes_nothing(same_meaning):
    """Its element need not even be there."""
    before = region(FOLD.replace("c[i,j]", "c[i,j+0]").replace("range(i+1, j, 1)", "range(j, j-1, 1)"))
    after = SCALAR_REPLACEMENT.fn(before, Log())
    same_meaning(before, after)
    loop = after.body[0]
    assert isinstance(loop, Loop)
