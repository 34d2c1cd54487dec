"""Statements that read arrays made in parts are cut where the parts meet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir.nodes import Compute
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable import index_set_splitting
from dcarray.ir.passes.portable.index_set_splitting import INDEX_SET_SPLITTING
from dcarray.ir.text import parse
from dcarray.ir.verify import verify


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(index_set_splitting, "MIN_POINTS", 4)


def test_a_periodic_difference(check):
    log = check(
        INDEX_SET_SPLITTING,
        """region() {
          in x: f64[8];  out y: f64[8];  temp r: f64[8]
          r[i+1] = x[i] for i<7
          r[i] = x[i+7] for i<1
          y[i] = subtract(x[i], r[i]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8];  temp r: f64[8]
          y[i] = subtract(x[i], x[7]) for i<1
          y[i+1] = subtract(x[i+1], x[i]) for i<7
        }
        """,
    )
    assert "y is made in 2 pieces, which read through r" in str(log)


def test_along_two_axes_and_through_a_shift_of_a_shift(check):
    check(
        INDEX_SET_SPLITTING,
        """region() {
          in x: f64[6, 7];  out y: f64[6, 7];  temp r: f64[6, 7];  temp q: f64[6, 7]
          r[i+1,j] = x[i,j] for i<5, j<7
          r[i,j] = x[i+5,j] for i<1, j<7
          q[i,j] = r[i,j+1] for i<6, j<6
          q[i,j+6] = r[i,j] for i<6, j<1
          y[i,j] = subtract(x[i,j], q[i,j]) for i<6, j<7
        }
        """,
        """region() {
          in x: f64[6, 7];  out y: f64[6, 7];  temp r: f64[6, 7];  temp q: f64[6, 7]
          y[i,j] = subtract(x[i,j], x[5,j+1]) for i<1, j<6
          y[i,j+6] = subtract(x[i,j+6], x[5,0]) for i<1, j<1
          y[i+1,j] = subtract(x[i+1,j], x[i,j+1]) for i<5, j<6
          y[i+1,j+6] = subtract(x[i+1,j+6], x[i,0]) for i<5, j<1
        }
        """,
    )


def test_sizes_may_be_unknown(check):
    check(
        INDEX_SET_SPLITTING,
        """region(N: int>=3, M: int>=4) {
          in x: f64[N, M];  out y: f64[N, M];  temp r: f64[N, M]
          r[i,j] = x[i,j+1] for i<N, j<M-1
          r[i,j+M-1] = x[i,j] for i<N, j<1
          y[i,j] = add(x[i,j], r[i,j]) for i<N, j<M
        }
        """,
        """region(N: int>=3, M: int>=4) {
          in x: f64[N, M];  out y: f64[N, M];  temp r: f64[N, M]
          y[i,j] = add(x[i,j], x[i,j+1]) for i<N, j<M-1
          y[i,j+M-1] = add(x[i,j+M-1], x[i,0]) for i<N, j<1
        }
        """,
    )


def test_in_place_by_way_of_a_copy(check):
    check(
        INDEX_SET_SPLITTING,
        """region() {
          inout x: f64[8];  temp r: f64[8];  temp q: f64[8]
          r[i+1] = x[i] for i<7
          r[i] = x[i+7] for i<1
          q[i] = x[i+1] for i<7
          q[i+7] = x[i] for i<1
          x[i] = add(x[i], subtract(r[i], q[i])) for i<8
        }
        """,
        """region() {
          inout x: f64[8];  temp r: f64[8];  temp q: f64[8];  temp w0: f64[8]
          w0[i] = add(x[i], subtract(x[7], x[1])) for i<1
          w0[i+1] = add(x[i+1], subtract(x[i], x[i+2])) for i<6
          w0[i+7] = add(x[i+7], subtract(x[6], x[0])) for i<1
          x[i] = w0[i] for i<8
        }
        """,
    )


def test_inside_of_a_loop(check):
    """What an iteration makes in parts is its own."""
    check(
        INDEX_SET_SPLITTING,
        """region() {
          inout x: f64[8];  out y: f64[8];  temp r: f64[8]
          for k in range(0, 3, 1) {
            r[i+1] = x[i] for i<7
            r[i] = x[i+7] for i<1
            y[i] = subtract(x[i], r[i]) for i<8
            x[i] = y[i] for i<8
          }
        }
        """,
        """region() {
          inout x: f64[8];  out y: f64[8];  temp r: f64[8]
          for k in range(0, 3, 1) {
            y[i] = subtract(x[i], x[7]) for i<1
            y[i+1] = subtract(x[i+1], x[i]) for i<7
            x[i] = y[i] for i<8
          }
        }
        """,
    )


def test_the_parts_may_be_computed_and_read_elsewhere(check):
    check(
        INDEX_SET_SPLITTING,
        """region() {
          in x: f64[8];  out y: f64[6];  temp r: f64[10]
          r[i+1] = multiply(x[i], x[i]) for i<8
          r[i] = 0.0 for i<1
          r[i+9] = x[i+7] for i<1
          y[i] = subtract(x[i], r[i+4]) for i<6
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[6];  temp r: f64[10]
          y[i] = subtract(x[i], multiply(x[i+3], x[i+3])) for i<5
          y[i+5] = subtract(x[i+5], x[7]) for i<1
        }
        """,
    )


SHIFT = """
          r[i+1] = x[i] for i<15
          r[i] = x[i+15] for i<1
"""
STAYS = {
    "x changes before r is read": SHIFT
    + """
          x[i] = 0.0 for i<16
          y[i] = add(x[i], r[i]) for i<16
    """,
    "y is written at other points than it is read": """
          r[i+1] = y[i] for i<15
          r[i] = y[i+15] for i<1
          y[i] = add(x[i], r[i]) for i<16
    """,
    "r is read by more than element-wise statements": SHIFT
    + """
          y[0] add= r[i] init 0.0 for i<16
    """,
    "r is read in steps": SHIFT
    + """
          y[i] = add(x[i], r[2*i]) for i<8
    """,
    "r changes before it is read": SHIFT
    + """
          r[i+8] = 2.0 for i<3
          y[i] = add(x[i], r[i]) for i<16
    """,
    "r is read where its parts meet": """
          r[i+1] = x[i] for i<14
          y[i] = add(x[i], r[i]) for i<16
    """,
    "no piece has most of the points": """
          r[i+10] = x[i] for i<6
          r[i+5] = x[i] for i<5
          r[i] = x[i+8] for i<5
          y[i] = add(x[i], r[i]) for i<16
    """,
    "r would be computed 2 times": """
          r[i+1] = negative(x[i]) for i<15
          r[i] = x[i+15] for i<1
          y[i] = add(r[i+1], r[i]) for i<15
    """,
    "r is used by more than plain statements": SHIFT
    + """
          if less(x[0], x[1]) {
            y[i] = add(x[i], r[i]) for i<16
          }
    """,
}


@pytest.mark.parametrize("reason", STAYS)
def test_what_stays(check, reason):
    body = STAYS[reason]
    check(
        INDEX_SET_SPLITTING,
        f"region() {{\n inout x: f64[16];  inout y: f64[16];  temp r: f64[16]\n{body}}}",
        None,
    )


def test_too_many_pieces(check, monkeypatch):
    monkeypatch.setattr(index_set_splitting, "MAX_PIECES", 1)
    log = check(
        INDEX_SET_SPLITTING,
        f"region() {{\n in x: f64[16];  out y: f64[16];  temp r: f64[16]\n{SHIFT}\n"
        "y[i] = add(x[i], r[i]) for i<16\n}",
        None,
    )
    assert "2 pieces are too many" in str(log)


# ---- any regions of shifts ----------------------------------------------------------------------------
N, M = 6, 7


def _shift(name: str, source: str, rows: int, columns: int) -> str:
    """The statements that shift an array cyclically."""

    def halves(n: int, by: int) -> list[tuple[int, int, int]]:
        return [(n - by, by, 0), (by, 0, n - by)] if by else [(n, 0, 0)]

    return "\n".join(
        f"{name}[i+{to},j+{into}] = {source}[i+{at},j+{fro}] for i<{n}, j<{m}"
        for n, to, at in halves(N, rows)
        for m, into, fro in halves(M, columns)
    )


@st.composite
def regions(draw: st.DrawFn) -> str:
    """Shifts of two arrays and of one another, and statements that read, and may overwrite, any of them."""
    names = ["x", "y"]
    lines = []
    for k in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            name = f"r{sum(n[0] == 'r' for n in names)}"
            source = draw(st.sampled_from(names))
            lines.append(_shift(name, source, draw(st.integers(0, N - 1)), draw(st.integers(0, M - 1))))
            names.append(name)
            continue
        terms = [draw(st.sampled_from(names)) for _ in range(draw(st.integers(1, 4)))]
        target = draw(st.sampled_from(["x", "y", "z", f"t{k}"]))
        low, high = draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 2)]))
        size = N - low - high
        value = f"{terms[0]}[i+{low},j]"
        for term in terms[1:]:
            value = f"add({value}, multiply({term}[i+{low},j], 2.0))"
        lines.append(f"{target}[i+{low},j] = {value} for i<{size}, j<{M}")
        if size == N and target not in names:
            names.append(target)
    temps = "  ".join(f"temp {n}: f64[{N}, {M}];" for n in dict.fromkeys([*names, *_targets(lines)]))
    held = f"inout x: f64[{N}, {M}];  inout y: f64[{N}, {M}];  inout z: f64[{N}, {M}];"
    rest = temps
    for name in "xyz":
        rest = rest.replace(f"temp {name}: f64[{N}, {M}];", "")
    return f"region() {{\n{held} {rest.strip().rstrip(';')}\n" + "\n".join(lines) + "\n}"


def _targets(lines: list[str]) -> list[str]:
    return [line.partition("[")[0] for line in lines]


@given(regions())
@settings(max_examples=80, deadline=None)
def test_any_shifts_keep_their_meaning(same_meaning, text):
    before = parse(text)
    verify(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_set_splitting, "MIN_POINTS", 4)
        patch.setattr(index_set_splitting, "PART", 64)
        after = INDEX_SET_SPLITTING.fn(before, Log())
        verify(after)
        same_meaning(before, after)
        same_meaning(before, CPU.run(before, debug=True))


def test_a_stencil_is_one_pass(monkeypatch):
    """After all passes no shifted array is left, and the interior is one statement."""
    lines = [
        _shift("r0", "x", 1, 0), _shift("r1", "x", N - 1, 0),
        _shift("r2", "x", 0, 1), _shift("r3", "x", 0, M - 1),
        f"y[i,j] = add(add(r0[i,j], r1[i,j]), add(r2[i,j], r3[i,j])) for i<{N}, j<{M}",
    ]  # fmt: skip
    temps = ";  ".join(f"temp r{k}: f64[{N}, {M}]" for k in range(4))
    text = f"region() {{ in x: f64[{N}, {M}];  out y: f64[{N}, {M}];  {temps}\n" + "\n".join(lines) + "\n}"
    monkeypatch.setattr(index_set_splitting, "PART", 4)
    after = INDEX_SET_SPLITTING.fn(parse(text), Log())
    assert [stmt.target.array for stmt in after.body if isinstance(stmt, Compute)] == ["y"] * 9
    assert (4, 5) in [stmt.target.shape for stmt in after.body if isinstance(stmt, Compute)]
    assert {array.name for array in CPU.run(parse(text)).arrays} == {"x", "y"}
