"""Convolutions and correlations with short lines: NumPy's, to the bit where it adds up term by term."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.api.functions import sliding
from dcarray.execution.executor import EXECUTOR

RNG = np.random.default_rng(5)
EAGER: dict[str, Any] = {"jit": "eager", "eager_below": 0}
MODES = ("full", "same", "valid")
FUNCTIONS: tuple[Callable[..., Any], ...] = (np.convolve, np.correlate)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, 1e308])
SHORT = 11  # terms that NumPy adds up one after the other


def close(got: Any, want: Any, terms: int, largest: float) -> None:
    assert type(got) is dc.ndarray
    assert got.dtype == want.dtype and got.shape == want.shape
    if terms <= SHORT:
        np.testing.assert_array_equal(np.asarray(got), want)
        signs = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(np.asarray(got))[signs], np.signbit(want)[signs])
    else:
        bound = terms * largest * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=bound)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("mode", MODES)
def test_lines_of_all_lengths(mode: str, dtype: str, threads: int) -> None:
    with dc.options(**EAGER, threads=threads):
        for n in (8, 63, 64, 65, 300, 1023, 1060, 4100, 9000):
            x = RNG.normal(size=n).astype(dtype)
            for terms in {1, 2, 3, 4, 8, 11, 12, 16, 17, 33, 100, n // 8} & set(range(1, n // 8 + 1)):
                v = RNG.normal(size=terms).astype(dtype)
                largest = float(np.abs(x).max() * np.abs(v).max())
                for function in FUNCTIONS:
                    want = function(x, v, mode)
                    close(function(dc.asarray(x), v, mode), want, terms, largest)
                    close(function(dc.asarray(x), dc.asarray(v), mode=mode), want, terms, largest)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_given_in_other_ways(function: Callable[..., Any]) -> None:
    x = RNG.normal(size=900)
    pairs: list[tuple[Any, Any]] = [
        (x, [1, 2, 3]), (x, (0.5, 0.25)), (x, np.array([True, False, True])), (x, np.arange(5, dtype="i2")),
        (x, np.arange(6, dtype="f4")), (x[::-1], x[:20:3]), (x[::3], x[5:0:-1]),
        (x.astype(">f8"), x[:5]), (x, x[:5].astype(">f8")),
        (np.frombuffer(b"?" + x.tobytes(), "f8", 899, 1), x[:3]),
    ]  # fmt: skip
    for a, v in pairs:
        for mode in MODES:
            with dc.options(**EAGER):
                got = function(dc.asarray(x)[::-1][::-1] if a is x else dc.asarray(a), v, mode)
                close(got, function(a, v, mode), 11, 1.0)


def test_the_shorter_line_may_come_first() -> None:
    x, v = RNG.normal(size=900), RNG.normal(size=7)
    with dc.options(**EAGER):
        for mode in MODES:
            close(np.convolve(v, dc.asarray(x), mode), np.convolve(v, x, mode), 7, 1.0)
            close(np.convolve(dc.asarray(v), x, mode), np.convolve(v, x, mode), 7, 1.0)
            for a, b in ((dc.asarray(v), x), (v, dc.asarray(x))):
                np.testing.assert_allclose(np.correlate(a, b, mode), np.correlate(v, x, mode), atol=1e-13)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.lists(st.floats(width=16) | st.sampled_from(ODD.tolist()), min_size=1, max_size=120),
    st.lists(st.floats(width=16) | st.sampled_from(ODD.tolist()), min_size=1, max_size=SHORT),
    st.sampled_from(MODES),
)
def test_any_numbers(line: list[float], terms: list[float], mode: str) -> None:
    x, v = np.array(line), np.array(terms)
    for function in FUNCTIONS:
        want = function(x, v, mode)
        with dc.options(**EAGER), warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy says nothing of what overflows here
            got = np.asarray(function(dc.asarray(x), v, mode))
        np.testing.assert_array_equal(got, want)


def test_nothing_is_said_later_of_what_overflows_here() -> None:
    x = np.full(500, 1e308)
    with dc.options(**EAGER), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = np.convolve(dc.asarray(x), [1e308, np.inf, 1.0])
        np.testing.assert_array_equal(np.add(found[:5], 0.0), [np.inf] * 5)


@pytest.mark.one_process("over ranks it is the form of blocks")
def test_it_is_ours_where_it_is_worth_while(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    run = sliding._run
    monkeypatch.setattr(sliding, "_run", lambda *args: calls.append(1) or run(*args))
    x = dc.asarray(RNG.normal(size=200_000))
    with dc.options(jit="eager", eager_below=16384, strict=True):
        np.convolve(x, np.ones(5))
        np.convolve(x + 1, np.ones(5))
        np.correlate(x[:30_000], np.ones(20))
        assert len(calls) == 3
        np.convolve(x[:20_000], np.ones(3))
        np.convolve(x, np.ones(5, complex))
        np.convolve(x, x[:100_000])
        np.convolve(x.astype("f4"), np.ones(5))
        np.convolve(x.astype("i8"), np.ones(5, "i8"))
    assert len(calls) == 3


@pytest.mark.parametrize("jit", ["off", "background"])
def test_before_the_code_is_there(jit: str) -> None:
    x = RNG.normal(size=200_000)
    want = np.convolve(x, x[:9])
    with dc.options(jit=jit):
        for _ in range(4):
            np.testing.assert_array_equal(np.convolve(dc.asarray(x), x[:9]), want)
        EXECUTOR.background.wait()
        np.testing.assert_array_equal(np.convolve(dc.asarray(x), x[:9]), want)


def test_errors(same: Callable[..., None]) -> None:
    x = RNG.normal(size=500)
    for function in FUNCTIONS:
        same(function, x, np.array([]))
        same(function, x[:0], np.array([1.0]))
        same(function, x, np.ones((2, 2)))
        same(function, x.reshape(2, 250), np.ones(3))
        same(function, x, np.ones(3), "middle")
        same(function, x, np.ones(3), "s")
        same(function, x, np.ones(3), 7)
        same(function, x, 2.0)
        same(function, x, ["a", "b"])
