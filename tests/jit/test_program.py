"""``dc.program``: calls of compiled programs give what the functions give as they are written."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters, settle
from dcarray.core.errors import ProgramError

N, M = dc.symbol("N"), dc.symbol("M")
SCALE = 2.0


@dc.program
def jacobi(A: dc.types.float64[N, N], B: dc.types.float64[N, N], T: int):  # type: ignore[no-untyped-def]
    for _ in range(1, T):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


@dc.program
def axpy(a: float, x: np.float64[N], y: np.float64[N]):  # type: ignore[no-untyped-def, valid-type, type-arg]
    y += a * x


@dc.program
def sums(x: dc.types.float64[N], y: dc.types.float64[N]):  # type: ignore[no-untyped-def]
    return x + SCALE * y, np.zeros(N + 1), x.sum(), N


@dc.program
def calls(x: dc.types.float64[M], y: dc.types.float64[M], k: int):  # type: ignore[no-untyped-def]
    axpy(0.5, x[k:], y[k:])
    first, zeros, total, size = sums(x[1:], y[1:])
    return first.sum() + total * size + zeros[size], y


def served(function: Any, *args: Any) -> tuple[Any, int]:
    """A call's result, and how many compiled loops it ran."""
    before = settle().loops
    return function(*args), settle().loops - before


@pytest.mark.parametrize("wrap", [np.asarray, dc.asarray])
def test_one_compile_serves_all_sizes(wrap: Any) -> None:
    jacobi.compile()
    dc.wait()  # for what earlier tests have asked for
    compiled = counters.compiles
    for n in (17, 2, 3, 1, 0, 300, 17):
        r = np.random.default_rng(n)
        a, b = r.random((n, n)), r.random((n, n))
        mine, theirs = [wrap(a.copy()), wrap(b.copy())], [a, b]
        _, loops = served(jacobi, *mine, 4)
        jacobi.written(*theirs, 4)
        assert all(np.array_equal(np.asarray(x), y) for x, y in zip(mine, theirs, strict=True))
        assert loops == (n >= 2)  # below, guards fail, and it runs as it is written
    assert counters.compiles == compiled


def test_results_and_called_programs() -> None:
    x, y = np.arange(7.0), np.ones(7)
    first, zeros, total, size = sums(x, y)
    assert np.array_equal(first, x + 2.0) and type(first) is np.ndarray and zeros.shape == (8,)
    assert total == 21.0 and type(total) is np.float64 and size == 7 and type(size) is int
    assert type(sums(dc.asarray(x), y)[0]) is dc.ndarray
    (total, same), loops = served(calls, x, y, 2)
    expected = np.ones(7)
    expected[2:] += 0.5 * x[2:]
    assert loops == 1 and same is y and np.array_equal(y, expected)
    assert total == (x[1:] + 2.0 * y[1:]).sum() + x[1:].sum() * 6


def test_a_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(3)
    assert sums(x, x)[0][0] == 3.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert sums(x, x)[0][0] == 6.0


def test_what_compiled_code_does_not_serve_runs_as_it_is_written() -> None:
    x = np.ones(6)
    assert served(axpy, 1.0, x[:-1], x[1:])[1] == 0 and np.array_equal(x, [1, 2, 2, 2, 2, 2])  # shared memory
    y = np.zeros(12)
    axpy(1.0, x, y[::2])
    assert np.array_equal(y[::2], x) and not y[1::2].any()
    y.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            axpy(1.0, np.ones(12), y)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        axpy(1e300, np.full(3, 1e300), np.zeros(3))
    with dc.options(jit="off"):
        assert served(axpy, 1.0, x, np.zeros(6))[1] == 0


@pytest.mark.parametrize(("args", "error", "words"), [
    ((1.0, np.ones(4), np.ones(3)), ValueError, r"axpy\(\): the argument y .* float64\[N\].*\(4,\).*\(3,\)"),
    ((1.0, np.ones(4, "f4"), np.ones(4)), TypeError, "argument x .* float64.*float32"),
    ((1.0, np.ones((4, 1)), np.ones(4)), TypeError, r"argument x .* float64\[N\].*\(4, 1\)"),
    (("a", np.ones(4), np.ones(4)), TypeError, "argument a .* float.*'a'"),
    ((1.0, [1.0], np.ones(1)), TypeError, "argument x .*list"),
    ((1.0, np.ones(4)), TypeError, "'y'"),
])  # fmt: skip
def test_errors_at_the_call(args: Any, error: Any, words: str) -> None:
    before = copy.deepcopy(args)
    with dc.options(strict=True), pytest.raises(error, match=words):
        axpy(*args)
    assert all(np.array_equal(a, b) for a, b in zip(args, before, strict=True))


@pytest.mark.parametrize("args", [
    (1.5, np.arange(4, dtype="f4"), np.ones(4)),
    (2, np.arange(4), np.ones(4, "f4")),
    (1.5, np.ones((4, 1)), np.ones((4, 3))),
    (1.5 + 2j, np.ones(4), np.ones(4, complex)),
    (np.ones(4), np.ones(4), np.ones(4)),
])  # fmt: skip
def test_other_types_run_as_written(args: Any) -> None:
    """Types are hints: a call with others gives what Python does, and a line in the report."""
    want, given = copy.deepcopy(args), copy.deepcopy(args)
    found = axpy.written(*want)
    dc.report(reset=True)
    assert repr(axpy(*given)) == repr(found) and repr(given) == repr(want)
    (line,) = [one for one in dc.report().fallbacks if "is expected to be" in one.function]
    assert line.count == 1 and "test_program.py" in line.where


def test_sizes_of_arguments_of_other_types() -> None:
    @dc.program
    def sized(x: dc.types.float64[N], y: dc.types.float64[M]) -> Any:
        return x[: N - 1] + y[0] * M

    x, y = np.arange(5, dtype="f4"), np.ones(3)
    assert repr(sized(x, y)) == repr(x[:4] + y[0] * 3)
    with pytest.raises(TypeError, match=r"argument y .* float64\[M\].*\(3, 1\)"):  # M is not known
        sized(x.astype("f8"), y[:, None])


def test_errors_at_compile_have_file_and_line() -> None:
    @dc.program
    def wrong(A: dc.types.float64[N]):  # type: ignore[no-untyped-def]
        for i in range(len(A)):
            A[i + 1] = 0.0

    with pytest.raises(ProgramError, match=r"test_program\.py") as caught:
        wrong.compile()
    assert caught.value.line == wrong.written.__code__.co_firstlineno + 3


@pytest.mark.parametrize("size", [10, 3000])
def test_calls_that_are_taken_back_and_calls_that_are_not_take_turns(size: int) -> None:
    """Undo copies of small arrays stay between calls: each call restores what it has found."""
    large = np.full(size, 1e308)
    for k in range(6):
        x, y = np.arange(size) * 0.5 + k, np.arange(size) * 1.0 - k
        axpy(2.0, x, y)
        np.testing.assert_array_equal(y, np.arange(size) * 1.0 - k + 2.0 * x)
        y = large + k
        want = large + k
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            axpy.written(1.0, large, want)
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            axpy(1.0, large, y)
        np.testing.assert_array_equal(y, want)
        y = large + k
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            axpy(1.0, large, y)


def test_without_types_it_is_an_accelerated_function() -> None:
    @dc.program
    def double(x):  # type: ignore[no-untyped-def]
        return x * 2.0

    assert np.array_equal(double(np.ones(3)), [2.0, 2.0, 2.0])
    with pytest.raises(ProgramError, match="argument x has no type"):
        double.compile()
    with pytest.raises(TypeError):
        dc.program(3)  # type: ignore[arg-type]


def test_region_and_explanation() -> None:
    region = jacobi.region()
    assert [s.name for s in region.symbols] == ["N", "T"] and len(region.guards) == 2
    assert "where N-1 >= 0" in jacobi.explain() and repr(jacobi) == "<program jacobi>"


def test_types_and_symbols() -> None:
    assert str(dc.types.float32[2 * N - M + 1, 3]) == "float32[-M + 2*N + 1, 3]"
    assert dc.symbol("N") == N and dc.symbol("M") * 0 + 3 == N - N + 3
    for wrong in ("1", "for", "_n", ""):
        with pytest.raises(ValueError, match="identifier"):
            dc.symbol(wrong)
    with pytest.raises(TypeError):
        dc.types.float64[1.5]
    with pytest.raises(ValueError, match="negative"):
        dc.types.float64[-1]
    assert dc.float64 is np.float64  # programs that use dcarray as their NumPy compare types
