"""What NumPy makes at once of small arrays may be large, and then it is recorded; and what it makes of large
ones is an array of ours that nobody else has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.config import current
from dcarray.recording.session import session

GROWING: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, k: np.repeat(x, k), lambda x, k: np.repeat(x, k, axis=0), lambda x, k: np.repeat(x, repeats=k),
    lambda x, k: np.repeat(x, [k] * len(x), 0), lambda x, k: np.repeat(x, np.array([k]), 0),
    lambda x, k: np.repeat(x, dc.asarray(np.full(len(x), k)), 0),
    lambda x, k: np.tile(x, k), lambda x, k: np.tile(x, (k, 2)), lambda x, k: np.tile(x, [2, k, 1]),
    lambda x, k: np.tile(x, ()), lambda x, k: np.tile(x, reps=k), lambda x, k: np.outer(x, x),
    lambda x, k: np.outer(x, [1.0] * k), lambda x, k: np.outer(x, [1] * k), lambda x, k: np.outer(k, x),
    lambda x, k: np.eye(k, like=x), lambda x, k: np.eye(k, 2 * k, -1, like=x),
    lambda x, k: np.eye(k, dtype=np.int8, like=x), lambda x, k: np.tri(k, like=x),
    lambda x, k: np.tri(k, k=-1, dtype=bool, like=x), lambda x, k: np.identity(k, like=x),
    lambda x, k: np.repeat(x, -1), lambda x, k: np.tile(x, 1.5), lambda x, k: np.eye(2.5, like=x),
    lambda x, k: np.repeat(x, k, 7),
)  # fmt: skip


@pytest.mark.parametrize("shape", [(3,), (150,), (2, 40), (0,)])
@pytest.mark.parametrize("k", [1, 3, 130])
def test_results_that_may_be_large(shape: tuple[int, ...], k: int) -> None:
    a = np.arange(float(np.prod(shape))).reshape(shape)
    x = dc.asarray(a.copy())
    for call in GROWING:
        try:
            expected = call(a, k)
        except Exception as error:
            with pytest.raises(type(error)):
                call(x, k)
            continue
        found = call(x, k)
        assert type(found) is dc.ndarray and found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(found), expected)
        found[...] = 0
        np.testing.assert_array_equal(np.asarray(x), a)


def test_large_results_of_small_arrays_are_recorded() -> None:
    x = dc.asarray(np.arange(200.0))
    for call in (lambda: np.repeat(x, 200), lambda: np.tile(x, (100, 2)), lambda: np.outer(x, x)):
        before = len(session().rec.log)
        y = call()
        assert len(session().rec.log) > before
        dc.evaluate(y)


@pytest.mark.parametrize(("first", "second"), [
    ((3, 400), (400, 3)), ((400, 3), (3, 400)), ((400,), (400, 3)), ((2, 400), (400,)),
    ((200, 200), (200, 200)), ((5, 3, 400), (400, 2)), ((9, 1, 70, 2), (8, 2, 70)), ((400, 1), (1, 400)),
    ((1, 400), (400, 1)), ((1,), (3,)), ((3, 4), (3, 4)),
])  # fmt: skip
def test_products_are_as_large_as_their_rows_and_columns(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    a, b = (np.arange(float(np.prod(shape))).reshape(shape) % 7 for shape in (first, second))
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    calls: tuple[Callable[[Any, Any], Any], ...] = (
        lambda p, q: p @ q, np.matmul, np.dot, lambda p, q: p.dot(q),
    )  # fmt: skip
    for call in calls:
        for p, q in ((x, y), (x, b), (a, y)):
            if p is a and call is calls[-1]:
                continue
            try:
                expected = call(a, b)
            except ValueError:
                with pytest.raises(ValueError, match=r"mismatch|aligned|dimension"):
                    call(p, q)
                continue
            before = len(session().rec.log)
            found = call(p, q)
            few = expected.size <= 2 * 16384 and a.ndim < 3 and current().eager_below == 16384
            assert not few or len(session().rec.log) == before
            np.testing.assert_array_equal(np.asarray(found), expected)


def test_what_somebody_else_has_stays_shared() -> None:
    """A result that is large is an array of its own only if nobody else has its memory."""
    n = 40_000
    x = dc.asarray(np.arange(2.0 * n).reshape(2, n))
    out = np.zeros(n)
    for y in (np.add.reduce(x, 0, out=out), np.sum(x, axis=0, out=out), np.add.accumulate(x, 0)[1]):
        mine = dc.asarray(out) if y is not out else y
        np.testing.assert_array_equal(np.asarray(y), np.arange(n) * 2.0 + n)
        if np.shares_memory(np.asarray(y), out):
            mine += 1.0
            dc.evaluate()
            np.testing.assert_array_equal(np.asarray(y), out)
            out -= 1.0


@pytest.mark.parametrize("call", [
    lambda x: np.roll(x, 3), lambda x: np.tile(x, 2), lambda x: np.modf(x)[0], lambda x: np.append(x, x),
    lambda x: np.meshgrid(x[:200], x[:200])[1], lambda x: np.diag(x[:200]),
    lambda x: np.multiply.outer(x[:200], x[:100]), lambda x: np.argwhere(x > 1.0), lambda x: np.modf(x)[1],
])  # fmt: skip
def test_large_results_made_at_once_take_part_in_all(call: Callable[[Any], Any]) -> None:
    a = np.arange(20_000.0)
    x = dc.asarray(a.copy())
    for _ in range(4):  # NumPy works there at once in the end
        y = call(x)
        dc.evaluate(y)
    expected = call(a)
    view = y.reshape(-1)
    y *= 2
    z = view + 1.0
    y[0] = 7.0
    expected = expected * 2
    np.testing.assert_array_equal(np.asarray(z), expected.reshape(-1) + 1.0)
    expected[0] = 7.0
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(np.asarray(view), expected.reshape(-1))
    np.testing.assert_array_equal(np.asarray(x), a)


def test_what_is_up_to_date_is_given_back() -> None:
    """Arrays, and tuples and lists of them, also with something pending among them, or nested."""
    a = np.arange(40_000.0)
    x, small = dc.asarray(a), dc.asarray(a[:3].copy())
    nested = (x, (x * 2.0,))
    for given in (a, small, x, (x, a), [x, small], np.linalg.qr(small[:, None]), (), [], nested, {"x": x}):
        assert dc.evaluate(given) is given
    assert nested[1][0]._idle()
    y, z = x * 2.0, x + 1.0
    given = [small, y, (z, 3)]
    assert dc.evaluate(given) is given
    assert y._idle() and z._idle()
    np.testing.assert_array_equal(np.asarray(z), a + 1.0)
