"""Elements by arrays of integers and by masks, which threads select a part of each: as NumPy selects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core import parts
from dcarray.execution import index_parts

RNG = np.random.default_rng(23)
MANY = 300_000

pytestmark = pytest.mark.one_process("several ranks share the processors")


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However little there is to do, three threads do it."""
    monkeypatch.setattr(parts, "LEAST", 1e-12)
    with dc.options(threads=3, eager_below=0, jit="off"):
        yield


def alike(got: Any, want: Any) -> None:
    assert type(got) is type(want) is np.ndarray
    assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
    np.testing.assert_array_equal(got, want)


def arrays() -> Iterator[np.ndarray]:
    for char in "dfliBF?e":
        for shape in ((9,), (1,), (5, 4), (3, 1, 6), (6, 2, 3, 2), (4, 0)):
            yield RNG.integers(0, 99, shape).astype(char)
    a = RNG.random((6, 8))
    yield from (a.T, a[::2], a[:, ::2], a[::-1], a[0, ::2], np.broadcast_to(a[0], (3, 8)))
    yield from (a.astype(">f8"), a.astype("M8[s]"), a.astype(object))


def test_indices(numbers: list[int]) -> None:
    for a in arrays():
        n = a.shape[0]
        for char in "lbihBHIL":
            low = 0 if char in "BHIL" else -n
            for shape in ((7,), (40,), (5, 8), (2, 3, 4), (0,), ()):
                key = RNG.integers(low, n, shape).astype(char)
                for one in (key, key.T, np.asfortranarray(key), key[::-1] if key.ndim else key):
                    got = index_parts.take(a, one)
                    if got is not None:
                        alike(got, a[one])
                        assert not np.shares_memory(got, a)
    assert numbers and min(numbers) > 1


def test_points(numbers: list[int]) -> None:
    for a in arrays():
        if not a.size:
            continue
        for shape in ((7,), (40,), (5, 8)):
            key = tuple([RNG.integers(-n, n, shape) for n in a.shape])
            got = index_parts.take(a, key)
            if got is not None:
                alike(got, a[key])
    assert numbers and min(numbers) > 1
    a = RNG.random((6, 8))
    assert index_parts.take(a, (np.arange(5), np.arange(5)[:, None])) is None
    assert index_parts.take(a, (np.arange(5), 1)) is None
    assert index_parts.take(a, (np.arange(6) > 3, np.arange(6))) is None


def test_masks(numbers: list[int]) -> None:
    for a in arrays():
        if not (a.flags.c_contiguous and a.size and a.dtype.kind in "biufc"):
            continue
        for k in range(1, a.ndim + 1):
            for share in (0.0, 0.5, 1.0):
                mask = RNG.random(a.shape[:k]) < share
                alike(index_parts.choose(a, mask), a[mask])
                with dc.options(threads=1):
                    alike(index_parts.choose(a, mask), a[mask])
    assert numbers and min(numbers) > 1


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "vector": lambda a, k: a[:, 0].copy()[k], "rows": lambda a, k: a[k],
    "matrix": lambda a, k: a[k.reshape(20, -1)],
    "points": lambda a, k: a[k, k % 3], "pending": lambda a, k: (a + 1)[k % 50],
    "plain": lambda a, k: a[np.asarray(k)],
    "take": lambda a, k: np.take(a[:, 0].copy(), k), "take rows": lambda a, k: np.take(a, k, axis=0),
    "method": lambda a, k: a.take(k, 0), "take of few": lambda a, k: np.take(a[:40, 0].copy(), k % 40),
    "mask": lambda a, k: a[a > 0.5], "rows by a mask": lambda a, k: a[a[:, 1] > 0.5],
    "small": lambda a, k: a[:40, 0].copy()[k % 40], "in a sum": lambda a, k: (a[k] * 2).sum(axis=1),
}  # fmt: skip


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name: str, below: int, numbers: list[int]) -> None:
    a, k = RNG.random((100_000, 3)), RNG.integers(0, 100_000, MANY)
    want = PROGRAMS[name](a, k)
    with dc.options(eager_below=below):
        for _ in range(3):
            got = PROGRAMS[name](dc.asarray(a.copy()), dc.asarray(k.copy()))
            assert isinstance(got, dc.ndarray)
            np.testing.assert_array_equal(np.asarray(got), want)
            assert np.asarray(got).strides == want.strides
    assert numbers


def test_results_are_new_arrays() -> None:
    a, k = RNG.random(1000), RNG.integers(0, 1000, MANY)
    x = dc.asarray(a.copy())
    y, z = x[dc.asarray(k)], x[x > 0.5]
    x[:] = 0
    y += 1
    np.testing.assert_array_equal(np.asarray(y), a[k] + 1)
    np.testing.assert_array_equal(np.asarray(z), a[a > 0.5])


@pytest.mark.parametrize("bad", [1000, -1001, 1 << 40])
def test_what_is_out_of_bounds(bad: int, same: Callable[..., None]) -> None:
    k = RNG.integers(0, 1000, MANY)
    k[-5] = bad
    same(lambda a, k: a[k], RNG.random(1000), k)
    same(lambda a, k: a[k], RNG.random(1000), k.astype("u8"))
    same(lambda a, k: a[k, k], RNG.random((1000, 2)), k)


def test_takes_that_are_numpys(same: Callable[..., None], numbers: list[int]) -> None:
    a, k = RNG.random((500, 6)), RNG.integers(0, 6, 2000)
    same(np.take, a, k)
    same(np.take, a, k, 1)
    same(np.take, a, k, axis=0, mode="wrap")
    same(np.take, a, k.astype("u8"), 0)
    same(np.take, a, k > 3, 0)
    same(np.take, a, k * 1.0, 0)
    same(np.take, a, k, 0, np.empty((2000, 6)))
    assert not numbers
    same(np.take, a, k.astype("u1").reshape(40, 50), 0)
    same(np.take, a[:, 0].copy(), k - 6)
    same(np.take, a, k + 496, 0)


def test_little_work_is_numpys(monkeypatch: pytest.MonkeyPatch, numbers: list[int]) -> None:
    a, k = RNG.random(1000), RNG.integers(0, 1000, MANY)
    with dc.options(threads=1):
        dc.asarray(a)[k]
    monkeypatch.setattr(parts, "LEAST", 1.0)
    dc.asarray(a)[k]
    assert not numbers
