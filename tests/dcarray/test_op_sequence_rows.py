"""Op sequences of rows of arrays, one after the other: NumPy's values, whatever is done meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from deferred_sequences import N, arrays, deferred, fresh, learned, same
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.native import BUILT

pytestmark = [
    pytest.mark.skipif(not BUILT, reason="the C module has op sequences"),
    pytest.mark.one_process("several ranks learn no places"),
]


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(eager_below=16384, jit="background", debug=False, strict=False):
        yield


ROWS = [
    "np.sum((x[1:] - x[:-1]) ** 2)",
    "np.max(np.abs(x[1:] - x[:-1]))",
    "((x[1:] + x[:-1]) * (y[1:] - y[:-1])).mean()",
    "0.5 * (x[1:] + x[:-1])",
    "(x[2:] * 2 - y[2:]) * x[:-2]",
    "np.any(x[1:] < x[:-1])",
    "(x[3:] - x[3:] * y[:-3]).min()",
    "x[1:] - 2 * x[:-1]",
    "(x[:-1] - y[:-1]) + x[1:]",
    "np.sum(x[5:-5] * x[5:-5])",
    "(x[1:][1:] - x[:-1][:-1]) * 2",
    "np.count_nonzero(x[1:] != x[:-1])",
    "x[2:] - 2 * x[1:-1] + x[:-2]",
    "np.sum(x[:, 1:] - y[:, 1:])",
    "(x[::-1] - y) * 2",
    "np.sum((x.reshape(-1)[1:] - x.ravel()[:-1]) * 2)",
    "np.sum((x.T[1:] - x.T[:-1]) * 3)",
    "np.sum(x[1:] * x[:-1] + x[1:] * 3)",
    "np.sum(x[1:] * 1e300)",
]


@pytest.mark.parametrize("text", ROWS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("shape", [(N,), (150, 301), (20, 50, 40)])
def test_rows_that_follow_each_other(text: str, dtype: str, shape: tuple[int, ...]) -> None:
    if ":, " in text and len(shape) < 2:
        pytest.skip("for matrices")
    f, (a, b) = fresh(text), arrays(dtype, shape)
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    with np.errstate(all="ignore"):
        for k in range(7):
            want, got = f(a, b), f(x, y)
            if isinstance(want, np.ndarray):
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(np.asarray(got), want)
            elif "reshape" in text or ".T" in text:  # which kernels may do
                assert np.allclose(got, want, rtol=1e-5 if dtype == "f4" else 1e-12)
            else:
                assert same(got, want)
            if k % 2:
                a[k] += 1
                x[k] += 1


def test_rows_are_not_recorded() -> None:
    f, x, y = learned("(x[1:] - x[:-1]) * (y[1:] + y[:-1])")
    flushes = counters.flushes
    a, b = arrays()
    assert same(np.sum(f(x, y)), np.sum(f(a, b)))
    assert counters.flushes == flushes and x._idle() and y._idle()


@pytest.mark.parametrize("order", range(6))
def test_rows_that_are_written_meanwhile(order: int) -> None:
    f, x, y = learned("(x[1:] - x[:-1]) * y[1:]")
    a, b = arrays()
    x, y = dc.asarray(a), dc.asarray(b)
    want = f(a, b)
    r = f(x, y)
    assert deferred(r)
    if order == 0:
        x[1:] = r
        np.testing.assert_array_equal(np.asarray(x)[1:], want)
    elif order == 1:
        x[:-1] += r
    elif order == 2:
        y[:] = x
    elif order == 3:
        a[5] = np.asarray(x)[5]  # plain memory, handed out
        np.asarray(x)[:] = 0.0
    elif order == 4:
        x[1:] *= 2.0
        del x, y
    else:
        y.fill(0.0)
    np.testing.assert_array_equal(np.asarray(r), want)


def test_other_rows_at_the_same_places() -> None:
    def f(x: Any, y: Any) -> Any:
        t = (x - y) * x
        return t

    a, b = arrays(float, (300, 200))
    x, y = dc.asarray(a.copy()), dc.asarray(b)
    pairs: list[Callable[[Any, Any], Any]] = [
        lambda x, y: (x[1:], x[:-1]),
        lambda x, y: (x[2:], y[:-2]),
        lambda x, y: (x, y),
        lambda x, y: (x[:-1], x[:-1]),
        lambda x, y: (x[1:-1], x[2:]),
        lambda x, y: (x[5:200], y[5:200]),
        lambda x, y: (x[:, 1:], x[:, :-1]),
        lambda x, y: (x[1:], y[0]),
        lambda x, y: (x[1:].T, x[:-1].T),
        lambda x, y: (x[::2], x[1::2]),
        lambda x, y: (x[:150], x[150:]),
        lambda x, y: (x.reshape(-1)[1:], x.reshape(-1)[:-1]),
        lambda x, y: (x[:150].reshape(-1), x[150:].reshape(-1)),
        lambda x, y: (x[1:].view("i8"), x[:-1].view("i8")),
        lambda x, y: (x[None, 1:], x[None, :-1]),
        lambda x, y: (x[1:], x[:-1].astype("f4")),
        lambda x, y: (x[3:], 2.0),
        lambda x, y: (np.broadcast_to(x[:1], x.shape)[1:], x[1:]),
        lambda x, y: (x[:0], y[:0]),
    ]
    for pair in [*pairs[:1] * 5, *pairs, *pairs[:1] * 4, *pairs[::-1]]:
        want, got = f(*pair(a, b)), f(*pair(x, y))
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(np.asarray(got), want)


def test_what_of_rows_somebody_keeps() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x, keep):\n    t = x[1:] - x[:-1]\n    keep.append(t)\n    return t * t + x[1:]", scope)
    f = scope["f"]
    a, _ = arrays()
    x = dc.asarray(a)
    for k in range(9):
        mine, theirs = list[Any](), list[Any]()
        want, got = f(a, theirs), f(x, mine)
        if k < 5:
            mine.clear()
        np.testing.assert_array_equal(np.asarray(got), want)
        for one, other in zip(mine, theirs, strict=False):
            np.testing.assert_array_equal(np.asarray(one), other)


PARTS = ["x[1:-1]", "x[2:]", "x[:-2]", "y[1:-1]", "y[:-2]", "t", "2.0", "3"]
LINES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(PARTS[:6]), st.sampled_from("+-*<"), st.sampled_from(PARTS)).map(
            lambda parts: f"t = {parts[0]} {parts[1]} {parts[2]}"
        ),
        st.sampled_from(["t = abs(t)", "u = t", "t = np.square(t)", "u = t[1:] - t[:-1]", "t = t + u[:1]"]),
        st.sampled_from(["x[1:-1] = t", "x[2:] += 1", "y[:-2] = x[2:]", "y[3] = 5", "x = y", "s += t.sum()"]),
    ),
    min_size=2,
    max_size=7,
)


@settings(deadline=None, max_examples=60)
@given(LINES, st.sampled_from(["f8", "f4", "i8"]), st.sampled_from([(20_000,), (200, 100)]))
def test_programs_of_rows_that_come_again(lines: list[str], dtype: str, shape: tuple[int, ...]) -> None:
    """The same program several times, at the same places, with arrays that go on changing."""
    text = ["def program(x, y):", "    t = x[1:-1]", "    s, u = 0, t", *(f"    {line}" for line in lines)]
    text += ["    return t * 1, t.max(), u, s"]
    scope: dict[str, Any] = {"np": np}
    exec("\n".join(text), scope)
    program = scope["program"]
    a, b = arrays(dtype, shape)
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    with np.errstate(all="ignore"):
        for _ in range(6):
            try:
                want = program(a, b)
            except (TypeError, ValueError) as error:  # of truths, and of shapes
                with pytest.raises(type(error)):
                    program(x, y)
                return
            for got, one in zip(program(x, y), want, strict=True):
                if np.ndim(one) and "sum" not in "".join(lines):
                    np.testing.assert_array_equal(np.asarray(got), one)
                else:
                    np.testing.assert_allclose(np.asarray(got), one, rtol=1e-4 if dtype == "f4" else 1e-9)
            np.testing.assert_array_equal(np.asarray(x), a)
            np.testing.assert_array_equal(np.asarray(y), b)
