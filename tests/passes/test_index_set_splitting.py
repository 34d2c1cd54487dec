"""Statements that read arrays made in parts are cut where the parts meet."""

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


def test_golden(golden):
    golden(INDEX_SET_SPLITTING)


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
