"""Regions that are changed by hand: what is legal keeps the meaning, what is not says why."""

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ir_regions
import numpy as np
import pytest
from program_runs import module
from symbolic_sources import FAMOUS, random_program

import dcarray as dc
from dcarray.ir import dims, interp
from dcarray.ir.nodes import Compute, Loop
from dcarray.ir.ops import CALLS
from dcarray.ir.parse import parse
from dcarray.ir.statements import all_statements, around, count, with_statement
from dcarray.lowering import targets

SUM = """region(N: int>=0, M: int>=0) {
  in a: f64[N, M];  inout b: f64[N, M];  temp t: f64[N, M];  out s: f64[N]
  t[i,j] = multiply(a[i,j], 2.0) for i<N, j<M
  b[i,j] = add(t[i,j], b[i,j]) for i<N, j<M
  s[i] add= b[i,j] init 0.0 for i<N, j<M
}"""
NESTED = """region() {
  inout a: f64[20, 30];  inout skewed: f64[20, 30];  inout c: f64[20]
  for k in range(0, 20, 1) {
    for l in range(0, 30, 1) {
      a[k,l] = multiply(a[k,l], 3.0)
    }
  }
  for m in range(1, 20, 1) {
    for n in range(0, 29, 1) {
      skewed[m,n] = add(skewed[m-1,n+1], 1.0)
    }
  }
  for p in range(0, 20, 1) {
    for q in range(0, p, 1) {
      c[p] = add(c[p], a[p,q])
    }
  }
}"""


def arrays(region: Any, seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    sizes = {"N": 37, "M": 21}
    return {
        a.name: r.random(tuple([dims.evaluate(n, sizes) for n in a.shape]))
        for a in region.arrays
        if a.role in ("in", "inout")
    }


def check(made: Any, region: Any) -> None:
    """A schedule means what the region does, interpreted and compiled."""
    want = interp.run(region, arrays(region), {"N": 37, "M": 21} if region.symbols else {})
    for got in (made.interpret(**arrays(region)), made.run(**arrays(region))):
        ir_regions.assert_agree(got, want, rtol=1e-13)
    assert made.plan.stats["interpreted"] == 0


# ---- passes -------------------------------------------------------------------------------------------
def test_a_pass_by_name() -> None:
    region = parse(SUM)
    first = dc.schedule(region)
    fused = first.apply("fuse")
    assert len(fused.region.body) == 2 and first.region is region and fused.steps == ("fuse",)
    assert [note.kind for note in fused.notes if "t is computed" in note.text] == ["done"]
    check(fused, region)
    again = fused.apply("fuse")
    assert again.region is fused.region and again.notes


def test_a_pass_that_changes_nothing_says_why() -> None:
    region = parse("""region() {
      in a: f64[9];  inout b: f64[9];  temp t: f64[9]
      t[i] = add(a[i], b[i]) for i<9
      b[i] = t[-i+8] for i<9
    }""")
    made = dc.schedule(region).apply("fuse")
    assert made.region is region
    assert [note.kind for note in made.notes] == ["refused"]
    assert "b is written at other points than it is read" in made.notes[0].text
    (note,) = dc.schedule(region).apply("unroll").notes
    assert (note.kind, note.text) == ("refused", "it finds nothing to change")


def test_passes_run_in_loops_too() -> None:
    region = parse("""region() {
      in a: f64[9];  inout b: f64[9, 9];  temp t: f64[9]
      for k in range(1, 9, 1) {
        t[i] = add(a[i], b[k-1,i]) for i<9
        b[k,i] = multiply(t[i], 2.0) for i<9
      }
    }""")
    made = dc.schedule(region).apply("fuse")
    assert count(made.region.body) == 2
    check(made, region)


def test_unknown_passes_are_refused_with_those_there_are() -> None:
    made = dc.schedule(parse(SUM))
    with pytest.raises(
        ValueError, match=r"no pass is called 'fusion'; the passes are .*fuse, .*strip_mining"
    ):
        made.apply("fusion")
    with pytest.raises(ValueError, match="no pass is called 'nested'"):
        made.apply("nested")
    for name in made.passes:
        assert made.apply(name).steps == (name,)
    with pytest.raises(TypeError, match=r"fn\(region, log\)"):
        made.apply(3)


def test_a_pass_of_ones_own() -> None:
    def fn(region: Any, log: Any) -> Any:
        log.done("mine", "the last statement is gone")
        return region.__class__(region.symbols, region.arrays, region.body[:-1], region.guards)

    made = dc.schedule(parse(SUM)).apply(SimpleNamespace(name="mine", fn=fn))
    assert len(made.region.body) == 2 and made.notes[0].text == "the last statement is gone"

    def wrong(region: Any, log: Any) -> Any:
        return region.__class__(region.symbols, region.arrays, region.body[1:], region.guards)

    with pytest.raises(dc.ScheduleError, match="wrong: t is read before it is written"):
        dc.schedule(parse(SUM)).apply(SimpleNamespace(name="wrong", fn=wrong))
    with pytest.raises(TypeError, match="returns a region, not NoneType"):
        dc.schedule(parse(SUM)).apply(SimpleNamespace(name="none", fn=lambda region, log: None))


# ---- statements ---------------------------------------------------------------------------------------
def test_tiles() -> None:
    region = parse(SUM)
    made = dc.schedule(region).tile(1, (8, 5)).tile(0, (None, 4))
    assert str(made).split("\n") == [
        "   0  parallel for b2 in range(0, M, 4) {",
        "   1    t[i,j+b2] = multiply(a[i,j+b2], 2.0) for i<N, j<min(4, M-b2)",
        "   2  parallel for b0 in range(0, N, 8) {",
        "   3    for b1 in range(0, M, 5) {",
        "   4      b[i+b0,j+b1] = add(t[i+b0,j+b1], b[i+b0,j+b1]) for i<min(8, N-b0), j<min(5, M-b1)",
        "   5  s[i] add= b[i,j] init 0.0 for i<N, j<M",
    ]
    check(made, region)
    rows = made.tile(5, (16, None))
    check(rows, region)
    with pytest.raises(dc.ScheduleError, match="the values along axis 1 are folded"):
        made.tile(5, (None, 8))
    with pytest.raises(dc.ScheduleError, match="2 axes, and there are 1 sizes"):
        made.tile(5, (8,))
    with pytest.raises(dc.ScheduleError, match="a loop has no domain"):
        made.tile(0, (8, 8))
    with pytest.raises(dc.ScheduleError, match="no axis is divided"):
        made.tile(5, (None, None))
    for sizes in ((0, None), (2.0, None), (True, None)):
        with pytest.raises(ValueError, match="a positive int"):
            made.tile(5, sizes)
    for position in (6, -1, "s"):
        with pytest.raises(ValueError, match="there is no statement"):
            made.tile(position, (8, 8))  # type: ignore[arg-type]


def test_scans_are_not_cut_along_their_axis() -> None:
    region = parse("""region() {
      in a: f64[20, 30];  out c: f64[20, 30]
      c[i,j] scan j add= a[i,j] init 0.0 for i<20, j<30
    }""")
    made = dc.schedule(region).tile(0, (6, None))
    check(made, region)
    with pytest.raises(dc.ScheduleError, match="accumulated from the first to the last"):
        made.tile(1, (None, 6))


def test_interchange() -> None:
    region = parse(NESTED)
    made = dc.schedule(region)
    swapped = made.interchange(0, (1, 0))
    outer = swapped.statements[0]
    assert isinstance(outer, Loop) and outer.var == "l" and outer.parallel
    check(swapped, region)
    with pytest.raises(dc.ScheduleError, match="an iteration may need skewed of another one"):
        made.interchange(3, (1, 0))
    with pytest.raises(dc.ScheduleError, match="the range of q depends on p"):
        made.interchange(6, (1, 0))
    with pytest.raises(dc.ScheduleError, match="3 nested loops are needed, and there are 2"):
        made.interchange(0, (2, 0, 1))
    with pytest.raises(dc.ScheduleError, match="have no order of their own"):
        made.interchange(2, (0,))
    with pytest.raises(ValueError, match="each of 0, 1"):
        made.interchange(0, (0, 0))


def test_interchange_of_three() -> None:
    region = parse("""region() {
      in a: f64[7, 8, 9];  out c: f64[7, 8, 9]
      c[i,j,k] = add(a[i,j,k], 1.0) for i<7, j<8, k<9
    }""")
    tiled = dc.schedule(region).tile(0, (2, 3, 4))
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        made = tiled.interchange(0, order)
        found = [stmt.var for stmt in made.statements if isinstance(stmt, Loop)]
        assert found == [f"b{place}" for place in order]
        check(made, region)


def test_unrolling() -> None:
    region = parse(NESTED)
    made = dc.schedule(region)
    unrolled = made.unroll(4, 4)  # 29 iterations
    assert count(unrolled.region.body) == count(region.body) + 3 + 2
    check(unrolled, region)
    check(made.unroll(6, 5), region)
    with pytest.raises(dc.ScheduleError, match="it is not known how many iterations q takes"):
        made.unroll(7, 2)
    with pytest.raises(dc.ScheduleError, match="has only 20 iterations"):
        made.unroll(0, 21)
    with pytest.raises(dc.ScheduleError, match="is not a loop"):
        made.unroll(2, 2)
    with pytest.raises(ValueError, match="from 2 on"):
        made.unroll(0, 1)


# ---- random programs ----------------------------------------------------------------------------------
def random_step(made: Any, rng: random.Random) -> Any:
    """A schedule after a random change, or None if that is refused."""
    position = rng.randrange(len(made.statements))
    stmt = made.statements[position]
    try:
        if rng.random() < 0.3:
            return made.apply(rng.choice(made.passes))
        if isinstance(stmt, Loop) and rng.random() < 0.5:
            return made.unroll(position, rng.randint(2, 4))
        if isinstance(stmt, Loop):
            return made.interchange(position, (1, 0))
        rank = len(stmt.target.shape) if isinstance(stmt, Compute) else 1
        return made.tile(position, tuple([rng.choice([None, 1, 2, 3]) for _ in range(rank)]))
    except dc.ScheduleError:
        return None


@pytest.mark.parametrize("seed", range(24))
def test_random_regions(seed: int) -> None:
    """Each step keeps the meaning; of every third region the last one is compiled."""
    rng = random.Random(seed)
    compiled = seed % 3 == 0
    case = ir_regions.make_case(seed, 5, aliases=not compiled)
    made = dc.schedule(case.region)
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory(), case.values)
    for _ in range(8):
        found = random_step(made, rng) if case.region.body else None
        if found is not None and found.region is not made.region:
            made = found
            with np.errstate(all="ignore"):
                got = interp.run(made.region, case.memory(), case.values)
            ir_regions.assert_agree(got, want, zero_signs=case.zero_signs)
    if compiled:
        memory = {name: np.array(x, order="C") for name, x in case.memory().items()}
        ir_regions.assert_agree(made.run(**memory), want, zero_signs=case.zero_signs)


SIZES = [{"N": n, "M": m, "T": t} for n, m, t in ((7, 9, 2), (9, 7, 1), (33, 40, 2), (2, 3, 0))]


def values_of(region: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Random inputs for a region of a program, and all its symbols."""
    r = np.random.default_rng(0)
    made = {
        a.name: (r.random(tuple([dims.evaluate(n, sizes) for n in a.shape])) + 0.5).astype(a.dtype)
        for a in region.arrays
        if a.role in ("in", "inout") and a.name not in ("inf", "nan")
    }
    return {**made, **{symbol.name: sizes[symbol.name] for symbol in region.symbols}}


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    """Changes of a program serve all sizes."""
    rng = random.Random(seed)
    first = dc.program(module(tmp_path, random_program(seed), f"scheduled_{seed}").f).schedule()
    made = first
    for _ in range(5):
        made = random_step(made, rng) or made
    for sizes in SIZES:
        if all(dims.evaluate(guard, sizes) for guard in first.region.guards):
            want = first.interpret(**values_of(first.region, sizes))
            for got in (
                made.interpret(**values_of(first.region, sizes)),
                made.run(**values_of(first.region, sizes)),
            ):
                ir_regions.assert_agree(got, want, rtol=1e-9)


# ---- runs ---------------------------------------------------------------------------------------------
def test_a_program_by_hand(tmp_path: Path) -> None:
    jacobi = dc.program(module(tmp_path, FAMOUS, "by_hand").jacobi)
    made = jacobi.schedule()
    tiled = made.tile(1, (16, 32)).apply("strip_mining")
    assert tiled.steps == ("tile(1, (16, 32))", "strip_mining")
    a = np.random.default_rng(1).random((100, 100))
    want = a.copy(), a.copy()
    jacobi.written(*want, 5)
    b, c = a.copy(), a.copy()
    found = tiled.run(A=b, B=c, T=5)
    assert found["A"] is b and found["B"] is c
    np.testing.assert_allclose(b, want[0], rtol=1e-13)
    np.testing.assert_allclose(c, want[1], rtol=1e-13)


def test_constants_of_programs_are_known(tmp_path: Path) -> None:
    text = """
def thirds(A: np.float64[N, M]):
    one = 1.0
    A *= one / 3.0
    A[A > 0.2] = np.sqrt(A[A > 0.2])
"""
    thirds = dc.program(module(tmp_path, text, "with_constants").thirds)
    made = thirds.schedule()
    assert made.known
    a = np.random.default_rng(1).random((6, 3))
    want = a.copy()
    thirds.written(want)
    made.apply("fuse").run(A=a)
    np.testing.assert_array_equal(a, want)


def test_arguments_that_do_not_fit() -> None:
    made = dc.schedule(parse(SUM))
    a, b = np.ones((4, 3)), np.ones((4, 3))
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TypeError, "the array b has to be given", {"a": a}),
        (TypeError, "no array or symbol x", {"a": a, "b": b, "x": 1}),
        (TypeError, "a is float64 with 2 axes, not float32", {"a": a.astype("f4"), "b": b}),
        (TypeError, "a is float64 with 2 axes, not list", {"a": a.tolist(), "b": b}),
        (ValueError, r"b has the shape \(4, 2\), and \(4, 3\) is expected", {"a": a, "b": b[:, :2].copy()}),
        (ValueError, "a has the shape", {"a": a, "b": b, "N": 5}),
        (ValueError, "contiguous in C order", {"a": np.ones((3, 4)).T, "b": b}),
        (ValueError, "share memory", {"a": b, "b": b}),
    ]
    for kind, text, values in wrong:
        for run in (made.run, made.interpret):
            with pytest.raises(kind, match=text):
                run(**values)
    b.flags.writeable = False
    with pytest.raises(ValueError, match="b is written, and read-only"):
        made.run(a=a, b=b)
    guarded = dc.schedule(parse("""region(N: int>=0, K: int>=2) where N-K >= 0 {
      inout a: f64[N]
      a[i] = add(a[i], 1.0) for i<K
    }"""))  # fmt: skip
    guarded.run(a=np.ones(5), K=5)
    with pytest.raises(ValueError, match="the region needs"):
        guarded.run(a=np.ones(5), K=6)
    with pytest.raises(ValueError, match="K is at least 2"):
        guarded.run(a=np.ones(5), K=1)
    with pytest.raises(TypeError, match="the value of K has to be given"):
        guarded.run(a=np.ones(5))
    with pytest.raises(TypeError, match="takes a region, not str"):
        dc.schedule("region")  # type: ignore[arg-type]


# ---- library calls of one's own -----------------------------------------------------------------------
FFT = """
from dataclasses import replace

import numpy as np

from dcarray.ir.nodes import Call
from dcarray.ir.ops import CALLS, CallOp
from dcarray.ir.passes.base import Pass
from dcarray.lowering.targets import get

calls = []


def meaning(writes, reads, attrs):
    writes[0][...] = np.fft.fft(reads[0], axis=0)


CALLS["mine.fft"] = CallOp("mine.fft", meaning)


def find(region, log):  # the user knows that W is the matrix of the transform
    body = []
    for stmt in region.body:
        if isinstance(stmt, Call) and stmt.op == "blas.matmul" and stmt.reads[0].array == "W":
            stmt = Call("mine.fft", stmt.reads[1:], stmt.writes, loc=stmt.loc)
            log.done("fft", "a product with W is a transform", stmt.loc)
        body.append(stmt)
    return region if tuple(body) == region.body else replace(region, body=tuple(body))


def fft(writes, reads, attrs, own):
    calls.append(reads[0].shape)
    np.fft.fft(reads[0], axis=0, out=writes[0])
    return 0


PASS = Pass("fft", find)
TARGET = get("cpu").with_library_call("mine.fft", "my_transforms:fft", lambda call, region: True)
"""
DFT = """
def transformed(W: np.complex128[N, N], x: np.complex128[N, M]):
    return np.abs(W @ x)
"""


def test_a_library_call_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_transforms.py").write_text(FFT)
    monkeypatch.syspath_prepend(str(tmp_path))
    function = dc.program(module(tmp_path, DFT, "transforms").transformed)
    n, m = 64, 5
    w = np.exp(-2j * np.pi / n * np.outer(np.arange(n), np.arange(n)))
    x = np.random.default_rng(0).random((n, m)) + 1j
    try:
        with dc.options(target="my_transforms:TARGET"):
            mine = sys.modules["my_transforms"]
            made = function.schedule().apply(mine.PASS)
            assert [note.text for note in made.notes] == ["a product with W is a transform"]
            (found,) = made.run(W=w, x=x).values()
        assert mine.calls == [(n, m)]
        (want,) = made.interpret(W=w, x=x).values()
        np.testing.assert_allclose(found, want, rtol=1e-12)
        np.testing.assert_allclose(found, abs(w @ x), rtol=1e-10, atol=1e-10)
    finally:
        sys.modules.pop("my_transforms", None)
        targets._loaded.pop("my_transforms:TARGET", None)
        targets.module_digest.cache_clear()
        CALLS.pop("mine.fft", None)


# ---- statements by position ---------------------------------------------------------------------------
def test_positions_count_statements_in_loops_and_branches() -> None:
    region = parse("""region() {
      in c: bool[];  inout a: f64[4]
      if c[] {
        a[i] = 1.0 for i<4
        for k in range(0, 4, 1) {
          a[k] = 2.0
        }
      } else {
        a[i] = 3.0 for i<4
      }
      a[i] = 4.0 for i<4
    }""")
    every = list(all_statements(region.body))
    assert len(every) == count(region.body) == 6
    assert [len(around(region.body, k)) for k in range(6)] == [0, 0, 0, 1, 0, 0]
    for k in range(6):
        assert with_statement(region.body, k, (every[k],)) == region.body
        left = list(all_statements(with_statement(region.body, k, ())))
        assert len(left) == 6 - count((every[k],))
    assert str(dc.schedule(region)).split("\n") == [
        "   0  if c[] {", "   1    a[i] = 1.0 for i<4", "   2    for k in range(0, 4, 1) {",
        "   3      a[k] = 2.0", "      } else {", "   4    a[i] = 3.0 for i<4",
        "   5  a[i] = 4.0 for i<4",
    ]  # fmt: skip
