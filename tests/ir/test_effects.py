"""Reads, writes and dependences of statements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_regions import cases

from dcarray.ir import interp
from dcarray.ir.analysis import effects
from dcarray.ir.nodes import Index, Region, Window
from dcarray.ir.text import parse
from dcarray.ir.verify import verify

BASE = """region() {
  in A: f64[9]; inout B: f64[9]; inout V: f64[3] strides[3] base B; out s: f64[]; temp t: f64[9]
  %s
}"""


def region(*lines: str) -> Region:
    return parse(BASE % "\n".join(lines))


def test_reads_and_writes():
    r = region("B[i+1] = add(A[i], gather(V, iota(i))) for i<3", "s[] add= B[i] for i<9")
    first, second = r.body
    assert effects.writes(first) == (Window("B", (3,), (Index(1, 1, 0),)),)
    assert effects.reads(first) == (Window("A", (3,), (Index(0, 1, 0),)), effects.anywhere("V"))
    assert [w.array for w in effects.reads(second)] == ["B", "s"]
    assert effects.touched_arrays(second) == {"B", "s"}


def test_what_moves_with_a_loop_is_all_it_comes_by_or_anywhere():
    (loop,) = region("for k in range(0, 3, 1) {", "B[k] = A[0]", "}").body
    assert effects.writes(loop) == effects.definite_writes(loop) == (Window("B", (3,), (Index(0, 1, 0),)),)
    assert effects.reads(loop) == (Window("A", (), (Index(0),)),)
    (loop,) = region("for k in range(7, 1, -2) {", "B[k+1] = A[k]", "}").body
    assert effects.writes(loop) == (Window("B", (3,), (Index(8, -2, 0),)),)
    (loop,) = region("for k in range(0, 3, 1) {", "B[i+k] = A[i] for i<3", "}").body
    assert effects.writes(loop) == (Window("B", (5,), (Index(0, 1, 0),)),)
    assert effects.definite_writes(loop) == ()
    (loop,) = region("for k in range(0, 3, 1) {", "B[k+i] = A[i] for i<3-k", "}").body
    assert effects.writes(loop) == (Window("B", (3,), (Index(0, 1, 0),)),)
    (loop,) = region("for k in range(0, 3, 1) {", "B[2*i+k] = A[i] for i<3", "}").body
    assert effects.writes(loop) == (effects.anywhere("B"),)
    (loop,) = region("for k in range(3, 3, 1) {", "B[0] = 1.0", "}").body
    assert effects.definite_writes(loop) == (Window("B", (0,), (Index(0),)),)


def test_a_branch_surely_writes_what_both_sides_write():
    (branch,) = region("if true {", "B[0] = 1.0", "B[1] = 1.0", "} else {", "B[i] = 2.0 for i<1", "}").body
    assert len(effects.writes(branch)) == 3
    assert effects.definite_writes(branch) == (Window("B", (), (Index(0),)),)


def test_families():
    assert effects.families(region()) == {"A": "A", "B": "B", "V": "B", "s": "s", "t": "t"}


def test_depends_says_why():
    r = region(
        "B[i] = A[i] for i<4",  # 0
        "t[i] = B[i+4] for i<5",  # 1 apart
        "t[i] = B[i+3] for i<5",  # 2 reads B[3]
        "V[i] = 0.0 for i<3",  # 3 may share memory
        "s[] add= A[i] init 0.0 for i<9",  # 4 apart
    )
    a = r.body
    assert effects.depends(a[0], a[1], r) is None
    assert effects.depends(a[0], a[4], r) is None
    flow = effects.depends(a[0], a[2], r)
    assert str(flow) == "reads what the earlier statement writes: B"
    assert [w.array for w in flow.windows] == ["B", "B"]
    assert "may share memory" in str(effects.depends(a[0], a[3], r))
    assert str(effects.depends(a[1], a[2], r)) == "overwrites what the earlier statement writes: t"
    assert str(effects.depends(a[2], a[0], r)) == "overwrites what the earlier statement reads: B"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cases(), st.data())
def test_independent_neighbours_may_change_places(case, data):
    body = case.region.body
    if len(body) < 2:
        return
    k = data.draw(st.integers(0, len(body) - 2))
    if effects.depends(body[k], body[k + 1], case.region) is not None:
        return
    swapped = Region((), case.region.arrays, (*body[:k], body[k + 1], body[k], *body[k + 2 :]))
    verify(swapped)
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory())
        got = interp.run(swapped, case.memory())
    for name, array in want.items():
        assert array.tobytes() == got[name].tobytes()


def test_an_empty_fold_is_still_a_write():
    r = region("s[] add= A[i] init 0.0 for i<0", "B[0] = s[]")
    assert effects.depends(*r.body, r) is not None
    verify(r)


@pytest.mark.parametrize(("body", "wanted"), [
    ("b[i+1] = a[i] for i<7\n a[i+1] = b[i] for i<7\n b[i+1] = a[i] for i<7", ("a",)),
    ("b[i+1] = a[i] for i<7\n a[i] = b[i] for i<8\n b[i] = a[i] for i<8", ("a", "b")),  # one more
    ("b[i+1] = a[i] for i<7\n b[i+2] = a[i] for i<6", ()),
    ("b[i] = add(b[i], a[i]) for i<8", ("b",)),
    ("b[i] add= a[i] for i<8", ("b",)),
    ("a[0] = b[3] for i<1\n b[i] = a[0] for i<8", ("b",)),
    ("for t in range(0, 3, 1) {\n b[i] = 1.0 for i<8\n }", ("b",)),
    ("b[i] = 1.0 for i<8\n c[i] = 2.0 for i<8", ("b", "c")),  # one memory
])  # fmt: skip
def test_what_another_run_would_miss(body, wanted):
    more = "" if "c[" not in body else "inout c: f64[8] base b"
    made = parse(f"region() {{\n inout a: f64[8]; inout b: f64[8]\n {more}\n {body}\n}}")
    verify(made)
    assert effects.overwritten_inputs(made) == wanted
