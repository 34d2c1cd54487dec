"""Places in sorted tables, and values between points: NumPy's, to the bit."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.api.functions import searching
from dcarray.execution.executor import EXECUTOR

RNG = np.random.default_rng(8)
EAGER: dict[str, Any] = {"jit": "eager", "eager_below": 0}
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, -1e308, 1e308])
X = RNG.normal(size=300_003)
X[::7] = np.round(X[::7], 1)
X[1::1001] = np.nan


def equal(got: Any, want: Any) -> None:
    assert type(got) is dc.ndarray
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(np.asarray(got).view("l"), want.view("l"))


def tables(kind: str) -> list[np.ndarray]:
    found = []
    for n in (1, 2, 3, 15, 16, 17, 31, 32, 33, 100, 257, 1000):
        found += [RNG.integers(-n, n, n).astype(kind), np.zeros(n, kind)]
        if kind == "d":
            found += [np.round(RNG.normal(size=n), 1), RNG.choice(ODD, n), np.full(n, np.inf)]
    return [np.sort(a) for a in found]


def sought(a: np.ndarray) -> np.ndarray:
    """Elements of a table, others near them, and odd ones."""
    extremes = ODD if a.dtype == float else np.array([0, -(1 << 63), (1 << 63) - 1])
    beside = np.nextafter(a, np.inf) if a.dtype == float else a + 1
    return RNG.permutation(np.concatenate([a, beside, -a, extremes, extremes[:1]])).astype(a.dtype)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["d", "l"])
def test_searchsorted(kind: str, side: str) -> None:
    for a in tables(kind):
        v = sought(a)
        want = np.searchsorted(a, v, side)
        with dc.options(**EAGER):
            table, x = dc.asarray(a), dc.asarray(v)
            for got in (np.searchsorted(a, x, side), np.searchsorted(table, x, side=side)):
                equal(got, want)
            equal(table.searchsorted(x, side), want)
            if a.size > 1:
                equal(np.searchsorted(table, v, side), want)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("kind", ["d", "l"])
def test_digitize(kind: str, right: bool) -> None:
    for bins in tables(kind):
        v = sought(bins)
        with dc.options(**EAGER):
            for edges in (bins, bins[::-1]):
                try:
                    want = np.digitize(v, edges, right)
                except ValueError:
                    with pytest.raises(ValueError, match="monoton"):
                        np.digitize(dc.asarray(v), edges, right)
                else:
                    equal(np.digitize(dc.asarray(v), edges, right), want)
                    equal(np.digitize(dc.asarray(v), dc.asarray(edges), right), want)


def interpolated(x: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with np.errstate(all="warn"):
            found = np.interp(x, *args, **kwargs)
            one = np.add(found, 0)  # nothing is left behind for what comes next
            assert one.shape == x.shape
            np.asarray(one)
    return found, [str(w.message) for w in caught]


@pytest.mark.parametrize(("left", "right"), [(None, None), (-1, 2.5), (np.nan, None), (None, -0.0)])
def test_interp(left: Any, right: Any) -> None:
    for points in tables("d") + tables("l"):
        x = sought(points.astype(float))
        n = points.size
        lines = RNG.normal(size=n), RNG.choice(ODD, n), np.full(n, np.inf), np.arange(n)
        for values in lines:
            want = interpolated(x, points, values, left, right)
            with dc.options(**EAGER):
                got = interpolated(dc.asarray(x), points, dc.asarray(values), left, right)
                equal(got[0], want[0])
                assert got[1] == want[1]


NUMBERS = st.floats(width=16) | st.integers(-3, 3).map(float)


def compared(table: list[float], elements: list[float], right: bool, ordered: bool) -> None:
    a, v = np.array(table), np.array(elements)
    a = np.sort(a) if ordered else a
    side = "right" if right else "left"
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.searchsorted(a, x, side),
        lambda x: np.digitize(x, a, right),
        lambda x: np.digitize(x, a[::-1], right),
        lambda x: np.interp(x, a, a[::-1]),
        lambda x: np.interp(x, a.tolist(), np.abs(a)),
    ]
    for call in calls:
        try:
            with np.errstate(all="ignore"):
                want = call(v)
        except ValueError:
            with dc.options(**EAGER), pytest.raises(ValueError, match="monoton"):
                call(dc.asarray(v))
            continue
        with dc.options(**EAGER), np.errstate(all="ignore"):
            np.testing.assert_array_equal(call(dc.asarray(v)), want)


@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.lists(NUMBERS, min_size=1, max_size=40), st.lists(NUMBERS, min_size=1, max_size=80), st.booleans())
def test_any_numbers(table: list[float], elements: list[float], right: bool) -> None:
    compared(table, elements, right, ordered=True)


@pytest.mark.one_process("over ranks a table is taken to be in order")
@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.lists(NUMBERS, min_size=1, max_size=9), st.lists(NUMBERS, min_size=1, max_size=80), st.booleans())
def test_without_order(table: list[float], elements: list[float], right: bool) -> None:
    compared(table, elements, right, ordered=False)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "searchsorted": lambda x, a: np.searchsorted(a, x),
    "right": lambda x, a: np.searchsorted(a, x, "right"),
    "method": lambda x, a: (a if type(a) is type(x) else dc.asarray(a)).searchsorted(x),
    "digitize": lambda x, a: np.digitize(x, a),
    "decreasing": lambda x, a: np.digitize(x, a[::-1], right=True),
    "interp": lambda x, a: np.interp(x, a, a * a),
    "numbers": lambda x, a: np.digitize(x, [-1, 0, 2.5]),
    "ints": lambda x, a: np.searchsorted([-2, 0, 1], x),
    "pending": lambda x, a: np.interp(x + 1, a, a * a),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", list(CALLS))
def test_large(name: str, threads: int) -> None:
    a = np.sort(RNG.normal(size=200))
    for x in (X, X[::-1], X[:300_000].reshape(400, 750), X[:300_000].reshape(400, 750).T):
        want = CALLS[name](x, a)
        with dc.options(jit="eager", threads=threads, strict=True):
            equal(CALLS[name](dc.asarray(x), a), want)
            equal(CALLS[name](dc.asarray(x), dc.asarray(a)), want)


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("jit", ["off", "background"])
def test_before_the_code_is_there(name: str, jit: str) -> None:
    a = np.sort(RNG.normal(size=50))
    want = CALLS[name](X, a)
    with dc.options(jit=jit):
        x = dc.asarray(X)
        for _ in range(4):
            equal(CALLS[name](x, a), want)
        EXECUTOR.background.wait()
        equal(CALLS[name](x, a), want)


@pytest.mark.one_process("over ranks it is the form of blocks")
def test_it_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    run = searching._run
    monkeypatch.setattr(searching, "_run", lambda *args: calls.append(1) or run(*args))
    a = np.sort(RNG.normal(size=50))
    with dc.options(jit="eager"):
        x = dc.asarray(X)
        for call in CALLS.values():
            call(x, a)
        assert len(calls) == len(CALLS)
        del calls[:]
        np.searchsorted(X, x)  # not in order
        np.searchsorted(a, x, sorter=np.arange(50))
        np.searchsorted(np.tile(a, 3), x)
        np.interp(x, np.tile(a, 3), np.tile(a, 3))
        np.interp(x, a, a, period=3)
        np.interp(x, a, a * 1j)
        np.interp(x, a[:1], a[:1])
    assert not calls


def test_errors(same: Callable[..., None]) -> None:
    x = X[:500]
    for bins in ([1.0, 3.0, 2.0], [np.nan, 1.0], [1.0, np.nan, 2.0], [], [np.nan], [np.nan] * 3, [[1.0]]):
        same(np.digitize, x, np.array(bins))
    for table in ([], [np.nan], [np.nan] * 3, [[1.0]]):
        same(np.searchsorted, np.array(table), x)
    same(np.digitize, x, np.array([1.0, 2.0]), "yes")
    same(np.digitize, x * 1j, np.array([1.0, 2.0]))
    same(np.searchsorted, np.sort(x[:3]), x, "middle")
    same(np.searchsorted, np.sort(x[:3]), x, "right", np.arange(3))
    same(np.searchsorted, np.arange(3), x)
    same(np.searchsorted, np.arange(3.0), np.arange(9))
    same(np.searchsorted, np.arange(3, dtype="f4"), x.astype("f4"))
    same(np.interp, x, np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0]))
    same(np.interp, x, np.array([]), np.array([]))
    same(np.interp, x[:0], np.array([0.0, 1.0]), np.arange(2.0))


@pytest.mark.one_process("over ranks edges are compared as what they are")
def test_edges_that_are_the_same_as_doubles(same: Callable[..., None]) -> None:
    same(np.digitize, np.arange(5), np.array([(1 << 53) + 1, 1 << 53]))


@pytest.mark.one_process("over ranks what lies outside may be anything that an array takes")
def test_ends_that_are_no_doubles(same: Callable[..., None]) -> None:
    for end in ("low", 10**400, (1 << 53) + 1, np.float32(0.1), True, [1.0], 1j):
        same(np.interp, X[:500], np.array([0.0, 1.0]), np.arange(2.0), end)
