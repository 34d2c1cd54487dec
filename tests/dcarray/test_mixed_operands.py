"""Plain arrays beside wrapped ones, and small arrays made of numbers: the short way gives what NumPy does."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.native import BUILT


def distance(a: Any, b: Any) -> Any:
    return np.linalg.norm(a - b)


def first_of_both(a: Any, b: Any) -> Any:
    return np.broadcast_arrays(a, b)[0]


OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.eq, operator.matmul,
    operator.pow, np.maximum, np.arctan2, np.dot, np.outer, np.copysign,
    lambda a, b: np.concatenate((a, b)), lambda a, b: np.where(a > 0.5, a, b), lambda a, b: np.stack([a, b]),
    first_of_both, distance,
)  # fmt: skip
SIZES = st.sampled_from([3, 100, 16383, 16384, 40_000])


def outcome(f: Callable[[], Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return f()
    except (ValueError, TypeError, IndexError) as error:
        return type(error)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(OPERATORS), SIZES, st.sampled_from("dfliF"), st.booleans(), st.integers(0, 3))
def test_a_plain_array_on_either_side(
    op: Callable[[Any, Any], Any], size: int, char: str, left: bool, times: int
) -> None:
    if op is np.outer and size > 1000:
        size = 100
    rng = np.random.default_rng(size)
    a = (rng.random(size) * 4 - 1).astype(char)
    b = (rng.random(size) * 4 - 1).astype(char)
    expected = outcome(lambda: op(a, b))
    for _ in range(times + 1):
        x, y = (dc.asarray(a.copy()), b) if left else (a, dc.asarray(b.copy()))
        found = outcome(lambda x=x, y=y: op(x, y))
        if isinstance(expected, type):
            assert found is expected
            return
        if not (left is False and op is first_of_both):  # a view of plain memory, which is somebody's
            assert type(found) is (dc.ndarray if isinstance(expected, np.ndarray) else type(expected))
        got, expected_array = np.asarray(found), np.asarray(expected)
        assert got.dtype == expected_array.dtype
        rounded = op in (operator.matmul, np.dot, distance) and char in "dfF"
        np.testing.assert_allclose(got, expected_array, rtol=1e-4 if rounded else 0)


@pytest.mark.parametrize("size", [5, 20_000])
def test_into_a_plain_array(size: int) -> None:
    a, b = np.arange(size) + 1.0, np.arange(size) * 2.0
    x = dc.asarray(a.copy())
    for _ in range(4):
        p, expected = b.copy(), b.copy()
        held = p
        p -= x
        expected -= a
        assert p is held
        np.testing.assert_array_equal(p, expected)
        out = np.empty(size)
        assert np.add(x, b, out=out) is out
        np.testing.assert_array_equal(out, a + b)


def test_a_view_of_a_plain_array_stays_plain_or_sees_what_is_written() -> None:
    a = np.arange(6.0)
    x = dc.asarray(np.ones(6))
    for _ in range(3):
        first, second = np.broadcast_arrays(a, x[:, None])
        a[0] += 1.0
        assert first[0, 0] == a[0] and second.shape == (6, 6)


@pytest.mark.skipif(not BUILT, reason="the short way is in the C module")
def test_small_plain_arrays_do_not_take_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with dc.options(eager_below=16384):
        a, x = np.arange(10.0), dc.asarray(np.arange(10.0))
    monkeypatch.setattr("dcarray.api.protocols.ufunc", None)
    for result in (x + a, a + x, a < x, np.maximum(a, x), np.add(a, x)):
        assert type(result) is dc.ndarray
    a *= x
    np.testing.assert_array_equal(a, np.arange(10.0) ** 2)


MAKERS = (
    "zeros(3)", "zeros((2, 3), dtype='f4')", "ones([2, 0])", "empty(0)", "full((2, 2), 1j)", "full(3, True)",
    "full(3, 2, dtype=float)", "arange(5)", "arange(1, 7, 2)", "arange(5, 1, -2)", "arange(3.5)", "eye(3)",
    "eye(2, 4)", "eye(3, k=1)", "identity(2)", "array([1, 2.5])", "array([[1, 2], [3, 4]])", "array([])",
    "array((1, 2, 3), dtype=np.int8)", "array([True, 1j])", "array([1, None])", "array(['a', 'bc'])",
    "array([[[[1.0]]]])", "zeros(20_000)", "arange(20_000)", "array([0.0] * 20_000)", "eye(200)", "zeros(())",
    "zeros(3, dtype='i4,f8')", "array([np.float64(1), np.float32(2)])", "array([1], ndmin=2)", "array(3.5)",
    "zeros(-1)", "zeros((2, -3))", "array([[1, 2], [3]])", "zeros(3, dtype='xx')", "arange()", "full(3)",
    "zeros('a')", "eye('a')", "zeros(10 ** 30)", "arange(10 ** 400)", "zeros(3, device='gpu')",
)  # fmt: skip


@pytest.mark.parametrize("eager_below", [0, 16384])
@pytest.mark.parametrize("call", MAKERS)
def test_arrays_made_of_numbers(call: str, eager_below: int) -> None:
    def made(module: Any) -> Any:
        try:
            return eval(call, {**{n: getattr(module, n) for n in ("array", "full")}, "np": np, "m": module})
        except NameError:
            return eval("m." + call, {"np": np, "m": module})

    def told(module: Any) -> Any:
        try:
            return made(module)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            return type(error)

    with dc.options(eager_below=eager_below):
        expected, found = told(np), told(dc)
        if isinstance(expected, type):
            assert found is expected
            return
        assert type(found) is dc.ndarray
        assert found.shape == expected.shape and found.dtype == expected.dtype
        if "empty" not in call:
            np.testing.assert_array_equal(np.asarray(found), expected)


def test_makers_do_not_become_methods() -> None:
    class Holder:
        make = dc.zeros

    assert Holder().make(3).shape == (3,)
