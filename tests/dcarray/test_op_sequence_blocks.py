"""Sums of op sequences that NumPy's own loops compute block by block: its values to the last bit."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
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


SUMS = [
    "np.sum((x - y) ** 2)", "(x * y).sum()", "np.mean(np.abs(x - y))", "abs(x).max()", "np.min(-x)",
    "np.sum(np.square(x - y))", "(x > 1.5).mean()", "np.count_nonzero(x < y)", "np.any(x > 5.9)",
    "(x < 99).all()", "np.any((x > 5.9) & (y > 5.9))", "np.sum(x >= 0.5)", "np.sum(x * x)",
    "(x * 2 + y).mean()",
    "np.max(np.maximum(x, y) - 1)", "np.sum(np.exp(-x) * y)", "np.all(x - y == x - y)", "(2 - x).min()",
    "np.sum((x + y) * (x - y))", "np.sum(x ** 2)", "(x // 2 + y % 3).sum()", "np.amax(x - y)",
    "np.mean((x - y) ** 2, axis=0)", "np.sum(x - y, axis=-1)", "(x - y).sum(keepdims=True)", "(x - y).std()",
    "np.any(x > -99)", "np.all(x > 99)", "np.sum(x * 1e300)",
]  # fmt: skip


KERNELS = (".std", "//", "exp")  # in what kernels may do, which add up in another order


@pytest.mark.parametrize("text", SUMS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("shape", [N, (150, 301), (20, 30, 40)])
def test_values_are_numpys(text: str, dtype: str, shape: Any) -> None:
    if "exp" in text and dtype == "i8":
        pytest.skip("the integers are converted")
    f, (a, b) = fresh(text), arrays(dtype, shape)
    x, y = dc.asarray(a), dc.asarray(b)
    with np.errstate(all="ignore"):
        want = f(a, b)
        for _ in range(6):
            got = f(x, y)
            if isinstance(want, np.ndarray) or any(word in text for word in KERNELS):
                np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6 if dtype == "f4" else 1e-12)
            else:
                assert same(got, want)


def test_a_sum_of_a_chain_is_not_recorded() -> None:
    f, x, y = learned("(x - y) ** 2")
    flushes = counters.flushes
    assert same(np.sum(f(x, y)), np.sum(f(*arrays())))
    assert counters.flushes == flushes
    assert x._idle()


def test_other_arrays_shapes_and_numbers_at_the_same_places() -> None:
    def f(x: Any, y: Any, k: Any) -> Any:
        return np.sum(x * k + y)

    a, b = arrays()
    x, y = dc.asarray(a), dc.asarray(b)
    for _ in range(4):
        f(x, y, 2.0)
    cases: list[tuple[Any, Any, Any]] = [
        (x, y, 7.5), (x, y, -1), (x[:30_000].copy(), y[:30_000].copy(), 2.0), (x, y, np.float64(3.0)),
        (x, y, True), (x, x, 2.0), (x, y, 2 + 1j), (x[::-1], y, 2.0), (x[5:20_005], y[:20_000], 1.0),
        (x.astype("f4"), y, 2.0), (x.astype("f4"), y.astype("f4"), 1e39), (x, y, float("nan")), (x, b, 2.0),
        (x, y, x), (x, 2.0, 1), (x[:50], y[:50], 2.0), (np.tile(x, 3), np.tile(y, 3), 2.0), (x, y, 7.5),
    ]  # fmt: skip
    for turn in range(3):
        for u, v, k in cases:
            plain = [
                np.asarray(t).copy() if isinstance(t, (dc.ndarray, np.ndarray)) else t for t in (u, v, k)
            ]
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(f(u, v, k), f(*plain), rtol=1e-5 if u.dtype == "f4" else 1e-12)
        assert turn or same(f(x, y, 3.5), f(a, b, 3.5))


def test_minus_zero_and_what_is_no_number() -> None:
    for text in ("np.sum(x * y)", "(x * y).mean()", "(x - y).max()", "np.sum((x - y) ** 2)"):
        f = fresh(text)
        for first, second in ((-0.0, 1.0), (0.0, 1.0), (np.nan, 1.0), (np.inf, 1.0), (np.inf, np.inf)):
            a, b = np.full(N, first), np.full(N, second)
            x, y = dc.asarray(a), dc.asarray(b)
            with np.errstate(all="ignore"):
                for _ in range(5):
                    got, want = f(x, y), f(a, b)
                    assert (same(got, want) and np.signbit(got) == np.signbit(want)) or np.isnan(want)


def test_exceptions_are_told_as_ever() -> None:
    for text, word in (("np.sum(x / y)", "divide by zero"), ("np.any(x / y > 9e99)", "divide by zero")):
        f, (a, b) = fresh(text, __file__), arrays()
        x, y = dc.asarray(a), dc.asarray(np.abs(b) + 1)
        for _ in range(4):
            f(x, y)
        b[-3] = 0.0
        with pytest.warns(RuntimeWarning, match=word) as said:
            got = f(x, dc.asarray(b))
        assert said[0].filename == __file__
        with np.errstate(all="ignore"):
            assert same(got, f(a, b))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            f(x, dc.asarray(b))


def test_a_sum_that_overflows() -> None:
    f = fresh("np.sum(x * y)")
    a = np.full(N, 1e304)
    x, y = dc.asarray(a), dc.asarray(np.ones(N))
    small = dc.asarray(np.ones(N))
    for _ in range(4):
        f(small, y)
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        assert f(x, y) == np.inf


def test_what_somebody_keeps() -> None:
    a, b = arrays()
    f, x, y = learned("(x - y) ** 2")
    want = (a - b) ** 2
    for _ in range(5):  # after some times they are no op sequence any more
        r = f(x, y)
        assert same(r.sum(), want.sum()) and same(r.max(), want.max())
        np.testing.assert_array_equal(np.asarray(r), want)
        r += 1.0
        np.testing.assert_array_equal(np.asarray(r), want + 1.0)
    assert not deferred(f(x, y))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_operands_that_are_written_meanwhile(order: int) -> None:
    f, x, y = learned("x * 2.0 - y")
    want = f(*arrays())
    r = f(x, y)
    assert deferred(r)
    if order == 0:
        x += 1.0
    elif order == 1:
        y[3:70] = 0.0
    else:
        np.asarray(x)[:] = 0.0
    assert same(r.sum(), want.sum())
    np.testing.assert_array_equal(np.asarray(r), want)


def test_what_is_done_with_a_result_that_is_pending() -> None:
    a, b = arrays()
    want = a * 2.0 - b
    uses: list[Callable[[Any], Any]] = [
        lambda r: r[5:100], lambda r: r[::-1] + 1.0, lambda r: r.reshape(1, -1).T, lambda r: np.sqrt(abs(r)),
        lambda r: r[7], lambda r: r[r > 1.0], lambda r: np.concatenate((r, r)), lambda r: r @ r,
        lambda r: memoryview(r)[3], lambda r: r.tolist()[:3], lambda r: r.view("i8")[:9], lambda r: str(r),
        lambda r: r.sum(axis=0), lambda r: r.argmax(), lambda r: np.sort(r), lambda r: r.astype("i4"),
        lambda r: dc.evaluate(r) * 2, lambda r: r.std(),
    ]  # fmt: skip
    for use in uses:
        f, x, y = learned("x * 2.0 - y")
        got, expected = use(f(x, y)), use(want)
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(np.asarray(got), expected)
        else:
            assert np.allclose(got, expected, rtol=1e-12) if isinstance(expected, float) else got == expected


def test_memory_is_dropped_with_what_was_to_be_computed() -> None:
    f, x, y = learned("x * 2.0 - y")
    r = f(x, y)
    assert deferred(r)
    gone = weakref.ref(x._store)
    r.sum()
    del x
    assert gone() is not None
    del r
    assert gone() is None and y._idle()


def test_several_threads() -> None:
    f, x, y = learned("(x - y) ** 2")
    want = f(*arrays()).sum()
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(np.sum(f(x, y)) for _ in range(50))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 150 and all(np.isclose(one, want, rtol=1e-13) for one in found)


def test_several_chains_of_one_recording() -> None:
    def f(x: Any, y: Any) -> Any:
        a = x * (1 - y) + y * 0.5
        b = np.abs(x - y) < 0.25
        c = a * 2
        x += 1
        d = a * x - y
        return a.sum(), np.count_nonzero(b), c, d * (2 - x) + x

    a, b = arrays()
    x, y = dc.asarray(a.copy()), dc.asarray(b)
    for _ in range(6):
        for got, want in zip(f(x, y), f(a, b), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_array_equal(np.asarray(x), a)


OPERANDS = ["x", "y", "t", "2.0", "3"]
LINES = st.lists(
    st.sampled_from(
        [f"{a} {op} {b}" for a in "xyt" for op in "+-*/<>" for b in OPERANDS]
        + [f"np.{f}({a})" for f in ("abs", "square", "sqrt", "isnan", "negative") for a in "xyt"]
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip
ENDS = [
    "np.sum(t)",
    "t.mean()",
    "np.max(t)",
    "np.any(t)",
    "t.all()",
    "t.sum() + t.min()",
    "np.count_nonzero(t)",
]


@settings(deadline=None, max_examples=20)
@given(LINES, st.sampled_from(ENDS), st.sampled_from(["f8", "f4", "i8", "u1"]), st.booleans())
def test_programs_that_come_again(lines: list[str], end: str, dtype: str, more: bool) -> None:
    """The same program several times, at the same places, with arrays that go on changing."""
    text = ["def program(x, y):", "    t = x", *(f"    t = {line}" for line in lines)]
    text += [f"    s = {end}", "    x += 1" if more else "    pass", "    return s"]
    scope: dict[str, Any] = {"np": np}
    exec("\n".join(text), scope)
    program = scope["program"]
    a, b = arrays(dtype, 20_000)
    x, y = dc.asarray(a.copy()), dc.asarray(b)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            try:
                want = program(a, b)
            except TypeError:  # which NumPy does not do with truths
                with pytest.raises(TypeError):
                    program(x, y)
                return
            assert np.allclose(program(x, y), want, rtol=1e-5, equal_nan=True)
            np.testing.assert_array_equal(np.asarray(x), a)
    gc.collect(1)  # what is old are the other tests' things
