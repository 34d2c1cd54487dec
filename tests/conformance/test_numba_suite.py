"""The command that runs Numba's benchmarks, on a suite of our own, and its stand-in for the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance import numba as command
from conformance.numba_standin import Ufunc, standing_in

LOOPS = """\
import numpy as np

x = np.random.rand(5000)
out = np.zeros(3)


def setup():
    global lagged, half
    from numba import float64, guvectorize, int32, jit

    @jit(nopython=True)
    def half(v):
        return v * 0.5

    @jit(float64(float64[:], int32))
    def lagged(x, k):
        s = 0.0
        for i in range(k, len(x)):
            s += x[i] * half(x[i - k])
        out[1] = s
        return s


class Lagged:
    N = 10**9

    def setup(self):
        self.k = min(self.N, 10**6) - 10**6 + 2
        [][0]

    def time_lagged(self):
        for _ in range(2):
            lagged(x, self.k)
"""
FAILS = "class Fails:\n    def time_fails(self):\n        return 1 / 0\n"


def suite(folder: Path) -> Path:
    benchmarks = folder / command.FOLDER
    benchmarks.mkdir(parents=True)
    (benchmarks / "bench_loops.py").write_text(LOOPS)
    (benchmarks / "bench_fails.py").write_text(FAILS)
    (benchmarks / "bench_cuda.py").write_text("from numba import cuda\n")
    (benchmarks / "bench_typed.py").write_text("from numba.typed import Dict\n")
    return folder


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DCARRAY_JIT", "eager")  # of the processes: also on a busy machine
    figures, docs = tmp_path / "figures.json", tmp_path / "conformance.md"
    words = ["--suite", str(suite(tmp_path)), "--seconds", "2", "--json", str(figures), "--docs", str(docs)]
    assert command.main(words) == 0
    said = capsys.readouterr().out
    rows: dict[str, Any] = {one["name"]: one for one in json.loads(figures.read_text())}
    assert [*rows] == ["bench_cuda", "fails fails", "loops lagged", "bench_typed"]
    assert rows["bench_cuda"]["left out"] == "it is for CUDA"
    assert "numba.typed" in rows["bench_typed"]["left out"]
    assert "ZeroDivisionError" in rows["fails fails"]["skipped"]
    found = rows["loops lagged"]
    assert found["differs"] == "" and found["loops"] > 0 and found["settled"] > 0
    assert "1 programs, 1 right, 1 with compiled code" in said and "for CUDA" in docs.read_text()


def test_the_results_of_the_outermost_functions_are_kept(tmp_path: Path) -> None:
    file = suite(tmp_path) / command.FOLDER / "bench_loops.py"
    words = [str(file), "Lagged", "time_lagged"]
    plain, other = command._Method(words, "plain"), command._Method(words, "dcarray")
    assert plain.call() > 0
    found = plain.result()
    assert [name for name, _, _ in found] == ["lagged", "lagged"] and found[0][1] > 0
    assert found[0][2][1] == 2 and len(found[0][2][0]) == 5000
    assert other.result()[0][1] == pytest.approx(found[0][1])


def test_decorators_leave_functions_as_they_are() -> None:
    def add(x: Any, y: Any) -> Any:
        return x + y

    decorated: list[Any] = []
    before = sys.modules.get("numba")
    with standing_in(decorated):
        from numba import float32, int64, jit, njit, prange
        from numba.experimental import jitclass

        assert jit(add) is njit(add) is jit(nopython=True)(add) is jit(int64(int64, int64))(add) is add
        assert jit([float32[:](float32[:, ::1])], cache=True)(add) is add and [*prange(2)] == [0, 1]
        assert jitclass([("val", int64)])(Ufunc) is Ufunc and type(float32(2)) is np.float32
    assert decorated == [add] * 5 + [Ufunc] and sys.modules.get("numba") is before


def test_what_vectorize_and_guvectorize_make() -> None:
    def shifted(x: Any, by: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = x[i] + by[0]

    def total(x: Any, out: Any) -> None:
        out[0] = x.sum()

    with standing_in([]):
        from numba import guvectorize, vectorize

        twice = vectorize(["float64(float64)"])(lambda x: 2 * x)
        shift = guvectorize(["void(float64[:], float64[:], float64[:])"], "(n), () -> (n)")(shifted)
        sums = guvectorize(["void(float64[:], float64[:])"], "(n)->()")(total)
    x, out = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    assert (twice(x) == 2 * x).all() and twice(x, out) is not None and (out == 2 * x).all()
    assert (shift(x, 1.0) == x + 1).all() and (shift(x[0], np.array([[1.0], [5.0]]))[1] == x[0] + 5).all()
    assert (sums(x) == [3, 12]).all() and sums(x[0]) == 3
    assert sums(x, out[:, 0]) is not None and (out[:, 0] == [3, 12]).all()
