"""Programs whose arrays change their lengths: as NumPy, and done at once where recording is in vain."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.core.errors import StrictError
from dcarray.core.native import BUILT

built = pytest.mark.skipif(not BUILT, reason="in C alone")
N = 3000


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(eager_below=512, jit="off", strict=False):
        yield


def flushes(f: Callable[[int], Any], turns: int) -> list[int]:
    """How many recordings each turn runs."""
    found = []
    for turn in range(turns):
        before = counters.flushes
        f(turn)
        found.append(counters.flushes - before)
    return found


@built
def test_rows_are_chosen_at_once_where_that_was_learned() -> None:
    rng = np.random.default_rng(5)
    for order in ("C", "F"):
        a = np.array(rng.random((N, 3)), order=order)
        x, m = dc.asarray(a), rng.random(N) < 0.5
        for _ in range(6):
            got = x[dc.asarray(m)]
            assert len(got) == m.sum()
        assert type(got) is dc.ndarray
        np.testing.assert_array_equal(np.asarray(got), a[m])
        got[:] = 0.0  # a copy
        np.testing.assert_array_equal(np.asarray(x), a)


def test_masks_that_do_not_fit_are_refused_as_ever() -> None:
    x = dc.asarray(np.random.default_rng(5).random((N, 2)))
    m = x[:, 0] < 0.5

    def choose(mask: Any) -> Any:
        return x[mask]

    for _ in range(6):
        choose(m).sum(), len(choose(m))
    with pytest.raises(IndexError):
        choose(m[1:])
    with pytest.raises(IndexError):
        choose(dc.asarray(np.ones((N, 3), bool)))
    np.testing.assert_array_equal(np.asarray(choose(m)), np.asarray(x)[np.asarray(m)])


def test_what_is_pending_is_gathered_as_it_will_be() -> None:
    a = np.random.default_rng(6).random(N)
    x = dc.asarray(a.copy())

    def choose(values: Any, mask: Any) -> Any:
        return values[mask]

    for _ in range(6):
        len(choose(x, dc.asarray(a < 0.5)))
    y = np.sin(np.sin(x))
    mask = np.sin(y) < 0.3
    x[:] = 7.0
    np.testing.assert_array_equal(
        np.asarray(choose(y, mask)), np.sin(np.sin(a))[np.sin(np.sin(np.sin(a))) < 0.3]
    )
    assert np.asarray(choose(x, x > 6.0)).tolist() == [7.0] * N


@built
def test_strict_refuses_indices_where_they_were_learned() -> None:
    x = dc.asarray(np.arange(float(N)))
    k = np.arange(N) // 2

    def take() -> Any:
        return x[k]

    def put() -> None:
        x[k] = 1.0

    for _ in range(4):
        take(), put()
    with dc.options(strict=True):
        for f in (take, put):
            with pytest.raises(StrictError):
                f()
    assert len(take()) == N


@pytest.mark.parametrize(
    "shapes", [((40,), (40,)), ((1,), (600,)), ((30, 1), (1, 30)), ((0,), (1,)), ((700,), ())]
)
def test_elements_by_several_indices(shapes: Any) -> None:
    rng = np.random.default_rng(7)
    a = rng.random((90, 70))
    x = dc.asarray(a.copy())
    i, j = (rng.integers(0, 70, shape) for shape in shapes)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(x[i, j]), a[i, j])
        x[dc.asarray(i), j] = a[dc.asarray(i), j] = -1.0
        np.testing.assert_array_equal(np.asarray(x), a)
    with pytest.raises(IndexError):
        x[np.arange(40), np.arange(39)] = 0.0


STEPS: dict[str, Callable[..., Any]] = {
    "drop": lambda x, y, k: (x[y > 0.1], y[y > 0.1], k[y > 0.1]),
    "keep": lambda x, y, k: (lambda m: (x[~m], y[~m], k[~m]))(x < 0.05),
    "grow": lambda x, y, k: tuple(np.concatenate([v, v[: len(v) // 3]]) for v in (x, y, k)),
    "move": lambda x, y, k: (x * 0.9 + 0.05, np.sqrt(y), k),
    "some": lambda x, y, k: (lambda i: (x[i], y[i], k[i]))(np.nonzero(x > 0.3)[0]),
    "sum": lambda x, y, k: (x, y * (1.0 - 1.0 / (2.0 + x[x > 0.5].max(initial=0.5))), k),
    "count": lambda x, y, k: (x, y, k + len(x[y > 0.5])),
}


@settings(deadline=None, max_examples=16)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12), st.sampled_from([200, 3000]))
def test_as_numpy(steps: list[str], n: int) -> None:
    """Arrays that are filtered by the same masks, and what was dropped written to where it belongs."""

    def program(x: Any, y: Any, k: Any, out: Any) -> Any:
        for name in steps:
            x, y, k = STEPS[name](x, y, k)
            far = x > 0.8
            out[k[far] % len(out)] = y[far]
        return x, y, k, out

    rng = np.random.default_rng(8)
    given_ = [rng.random(n), rng.random(n), np.arange(n), np.zeros(n)]
    expected = program(*[a.copy() for a in given_])
    got = program(*[dc.asarray(a.copy()) for a in given_])
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
        assert ours.dtype == theirs.dtype
