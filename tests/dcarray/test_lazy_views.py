"""Views that NumPy makes of large arrays at once: their windows are found when they are wanted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.comm import run
from dcarray.core.native import BUILT
from dcarray.core.store import Store

VIEWS: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, k: x.T, lambda x, k: np.transpose(x), lambda x, k: x.reshape(-1), lambda x, k: x.reshape(2, -1),
    lambda x, k: np.reshape(x, (-1, 3)), lambda x, k: np.reshape(x, (3, -1), order="F"),
    lambda x, k: x.ravel(), lambda x, k: np.ravel(x), lambda x, k: x.ravel("F"), lambda x, k: np.flip(x),
    lambda x, k: np.flip(x, 0),
    lambda x, k: np.squeeze(x), lambda x, k: np.expand_dims(x, k % 2), lambda x, k: x[None],
    lambda x, k: x[::-1],
    lambda x, k: x[k % 3 :: 2], lambda x, k: x[..., 0], lambda x, k: x[1], lambda x, k: np.atleast_2d(x),
    lambda x, k: np.atleast_3d(x), lambda x, k: np.moveaxis(x, 0, -1), lambda x, k: x.swapaxes(0, -1),
    lambda x, k: np.rot90(x, k), lambda x, k: x.diagonal(), lambda x, k: np.diagonal(x, 1),
    lambda x, k: np.split(x, 2)[k % 2], lambda x, k: np.array_split(x, 3)[k % 3], lambda x, k: x.real,
    lambda x, k: x.imag, lambda x, k: np.real(x), lambda x, k: np.broadcast_to(x, (2, *x.shape)),
    lambda x, k: x.squeeze(),
    lambda x, k: x.transpose(), lambda x, k: np.unstack(x)[0] if hasattr(np, "unstack") else x[0],
    lambda x, k: np.diag(x, k % 3 - 1),
)  # fmt: skip
LOOKS: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, k: np.shape(x), lambda x, k: np.ndim(x), lambda x, k: np.size(x), lambda x, k: np.size(x, 0),
    lambda x, k: np.result_type(x, 1.0), lambda x, k: np.iscomplexobj(x), lambda x, k: np.isrealobj(x),
    lambda x, k: x.item(k), lambda x, k: x.item(), lambda x, k: x.nbytes, lambda x, k: x.itemsize,
)  # fmt: skip


def told(f: Callable[..., Any], *args: Any) -> Any:
    """The result, or the kind of error."""
    try:
        return f(*args)
    except Exception as error:
        return type(error)


def changed(x: Any, k: int) -> None:
    """Write into an array; recorded or not."""
    if k % 3 == 0:
        x += 1
    elif k % 3 == 1:
        x[...] = x * 2 - x[:1]
    else:
        x[..., -1] = k


def a_program(seed: int, below: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [(12, 10), (120,), (4, 5, 6), (11, 11)][seed % 4]
    start = rng.integers(-9, 10, shape) * (1 + 1j if seed % 3 == 0 else 1.0)
    if seed % 5 == 0:
        start = np.asfortranarray(start)
    both = [(dc.asarray(start.copy("K")), start.copy("K"))]
    for _ in range(12):
        x, a = both[int(rng.integers(len(both)))]
        k, kind = int(rng.integers(0, 8)), rng.random()
        if kind < 0.6:
            f = VIEWS[int(rng.integers(len(VIEWS)))]
            y, b = told(f, x, k), told(f, a, k)
            assert isinstance(y, dc.ndarray) == isinstance(b, np.ndarray), (y, b)
            if isinstance(b, np.ndarray) and b.size and b is not a and y is not x:
                assert y.shape == b.shape and y.dtype == b.dtype
                both.append((y, b))
        elif kind < 0.75:
            f = LOOKS[int(rng.integers(len(LOOKS)))]
            assert told(f, x, k) == told(f, a, k)
        elif kind < 0.9:
            steps = zip(a.strides, a.shape, strict=True)
            if not any(s == 0 and n > 1 for s, n in steps) and a.flags.writeable:
                assert told(changed, x, k) == told(changed, a, k)
        elif kind < 0.95:
            both.append((x * 3.0 + 1.0, a * 3.0 + 1.0))
        elif a.flags.c_contiguous and a.ndim:
            x.shape = a.shape = (a.size,)
    for x, a in both:
        np.testing.assert_array_equal(np.asarray(x), a)
        assert x.shape == a.shape
    for x, a in both:  # the windows are right too
        with dc.options(eager_below=0):
            np.testing.assert_array_equal(np.asarray(x * 2.0 + x), a * 2.0 + a)


@pytest.mark.parametrize("below", [0, 20, 100])
@pytest.mark.parametrize("jit", ["off", "eager"])
def test_programs_of_views(below: int, jit: str) -> None:
    with dc.options(eager_below=below, jit=jit, cache_dir=None):
        for seed in range(400 if jit == "off" else 25):
            a_program(seed, below)


def test_a_view_stays_one_when_its_array_gets_another_shape() -> None:
    a = np.arange(40_000.0)
    x = dc.asarray(a.copy())
    part, turned, whole = x[::2], x.reshape(200, -1).T, x.reshape(2, -1)
    x.shape = (200, 200)
    with dc.options(eager_below=0):
        np.testing.assert_array_equal(np.asarray(part + 1), a[::2] + 1)
        np.testing.assert_array_equal(np.asarray(turned + 1), a.reshape(200, -1).T + 1)
        np.testing.assert_array_equal(np.asarray(whole + 1), a.reshape(2, -1) + 1)
    x[0, 0] = -5.0
    assert part[0] == turned[0, 0] == whole[0, 0] == -5.0


def test_views_and_pending_writes() -> None:
    a = np.arange(40_000.0).reshape(200, 200)
    with dc.options(eager_below=0):
        x = dc.asarray(a.copy())
        flipped = np.flip(x)
        x += 1.0  # pending
        assert np.shape(flipped) == (200, 200) and flipped.item(0) == 40_000.0
        x *= 2.0
        again = np.flip(x.T)
        again[0, 0] = -1.0
        b = (a + 1.0) * 2.0
        b[-1, -1] = -1.0
        np.testing.assert_array_equal(np.asarray(x), b)
        np.testing.assert_array_equal(np.asarray(flipped), b[::-1, ::-1])
        for fixed in (np.broadcast_to(x, (3, 200, 200)), np.broadcast_arrays(x, np.ones((3, 1, 1)))[0]):
            np.testing.assert_array_equal(np.asarray(fixed), np.broadcast_to(b, (3, 200, 200)))
            with pytest.raises(ValueError, match="read-only"):
                fixed[0] = 1.0


def made_at_once(view: Any) -> bool:
    """Is the window of this view still to be found?"""
    return isinstance(getattr(view, "_origin", None), Store)


@pytest.mark.skipif(not BUILT, reason="these views are the C module's")
def test_views_are_recorded_on_simulated_ranks_alone() -> None:
    """That such ranks can be had, `dcarray.comm` being imported, changes nothing."""
    a = np.arange(40_000.0)

    def rank() -> bool:
        x = dc.asarray(a.copy())
        view = x.reshape(2, -1)
        found = made_at_once(view)
        np.testing.assert_array_equal(np.asarray(view), a.reshape(2, -1))
        return found

    with dc.options(distribute_above=None):
        assert run(2, rank) == [False, False]
    assert rank()


def test_evaluated_arrays_come_back_at_once_and_are_up_to_date() -> None:
    a = np.arange(40_000.0).reshape(200, 200)
    x = dc.asarray(a.copy())
    part = x[1:, 1:]
    assert dc.evaluate(part) is part
    x += 1.0
    other = x[1:, 1:]
    y = part * 2.0
    assert dc.evaluate(part) is part and dc.evaluate(other) is other and dc.evaluate(y) is y
    np.testing.assert_array_equal(np.asarray(part), a[1:, 1:] + 1.0)
    np.testing.assert_array_equal(np.asarray(other), a[1:, 1:] + 1.0)
    np.testing.assert_array_equal(np.asarray(y), (a[1:, 1:] + 1.0) * 2.0)


@pytest.mark.parametrize("seed", range(60))
def test_windows_are_seen_by_numpy_as_they_are(seed: int) -> None:
    """NumPy works on the memory of windows that nobody has looked at before."""
    rng = np.random.default_rng(seed)
    a = rng.random((40, 45, 42))
    a = (a, np.asfortranarray(a), a[::-1, :, ::2])[seed % 3]
    x, expected = dc.asarray(a), a
    with dc.options(eager_below=16384):
        for _ in range(int(rng.integers(1, 4))):
            key = tuple(
                (slice(None), slice(int(rng.integers(3)), -1), slice(None, None, -1), slice(1, None))[k]
                for k in rng.choice(4, 3, p=[0.3, 0.4, 0.1, 0.2])
            )
            x, expected = x[key], expected[key]
            if seed % 4 == 0:
                x, expected = x.T, expected.T
        before = expected.copy()
        y = -x
        x += 1.0
    np.testing.assert_array_equal(np.asarray(y), -before)
    np.testing.assert_array_equal(expected, before + 1.0)
    assert np.asarray(x).ctypes.data == expected.ctypes.data


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("pending", [False, True])
def test_views_of_parts_that_have_no_name(below: int, pending: bool) -> None:
    def program(x: Any) -> list[Any]:
        if pending:
            x += 1.0
        a = x[100:39700].reshape(198, 200)
        b = x[1000:].ravel()
        c = x.reshape(200, 200)[3:, 1:-1].T
        d = np.reshape(x[::2], (100, 200))  # no view
        a[3, 5] = -7.0
        x[101] = -9.0
        c[0, :] *= 2.0
        b[-1] = 0.5
        d[0, 0] = 12.0
        return [a * 1, b.sum(), c + c[::-1], d + 0, x + 0, np.trace(a), a.max()]

    plain = np.arange(40_000.0)
    with dc.options(eager_below=below, jit="off"):
        got = program(dc.asarray(plain.copy()))
        for one, other in zip(got, program(plain), strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-13)
