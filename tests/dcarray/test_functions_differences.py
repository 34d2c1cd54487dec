"""Differences, gradients, integrals, cross products."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.recording.session import session

V = np.array([1.0, 4.0, 9.0, 16.0, 25.5])
M = np.arange(20.0).reshape(4, 5) ** 2
ARRAYS = [V, M, M.astype(np.float32), M.astype(np.int32), M.astype(np.uint8), M > 50, M * 1j, M.T, M[:1],
          M[:, :0], np.array(2.0), np.arange(24.0).reshape(2, 3, 4)]  # fmt: skip


@pytest.mark.parametrize("a", ARRAYS)
def test_diff(same, a):
    for n in (0, 1, 2, 3, -1):
        for axis in (-1, 0, 1, 4):
            same(np.diff, a, n, axis)
    same(np.diff, a, prepend=0)
    same(np.diff, a, append=[1.5])
    same(np.diff, a, axis=0, prepend=a[:1] if a.ndim else 1, append=2)
    same(np.ediff1d, a)


@pytest.mark.parametrize("a", ARRAYS)
def test_numbers_before_and_after(same, a):
    two = {"prepend": np.uint8(200), "append": np.array(7)}, {"prepend": 1, "append": np.float32(2.5)}
    for ends in ({"prepend": 0}, {"append": 3}, {"append": True}, {"prepend": 1j}, {"append": np.nan}, *two):
        same(np.diff, a, **ends)
        same(np.diff, a, axis=0, **ends)
        same(np.diff, a, 2, **ends)


def test_nothing_is_joined_for_numbers_before_and_after():
    a = np.arange(40_000, dtype=np.int16) % 7
    with dc.options(eager_below=16384, jit="eager"):
        x = dc.asarray(a) * np.int16(3)
        flushes = counters.flushes
        found = np.diff(x, prepend=2, append=-1)
        assert counters.flushes == flushes  # all is recorded
        whole = [entry for entry in session().rec.log if entry[1] == "l" and entry[2][0] > a.size]
        assert len(whole) == 1  # the result
        np.testing.assert_array_equal(np.asarray(found), np.diff(a * np.int16(3), prepend=2, append=-1))


@pytest.mark.parametrize("a", ARRAYS)
def test_gradient(same, a):
    for edge in (1, 2, 3):
        same(np.gradient, a, edge_order=edge)
        for axis in (0, -1, 1, (0, 1), 5):
            same(np.gradient, a, axis=axis, edge_order=edge)
            same(np.gradient, a, 2, axis=axis, edge_order=edge)
        same(np.gradient, a, 0.5, 2, edge_order=edge)
    same(np.gradient, a, np.float64(0.1))
    same(np.gradient, a, V if a.shape == V.shape else np.arange(3))
    same(np.gradient, a, V[:4], np.arange(5) ** 2)


@pytest.mark.parametrize("a", ARRAYS)
def test_trapezoid(same, a):
    if not hasattr(np, "trapezoid"):
        pytest.skip("NumPy 2.0 and later")
    for axis in (-1, 0, 1, 3):
        same(np.trapezoid, a, axis=axis)
        same(np.trapezoid, a, dx=0.5, axis=axis)
        same(np.trapezoid, a, V, axis=axis)
        same(np.trapezoid, a, V[:4], axis=axis)
        same(np.trapezoid, a, a, axis=axis)


def test_cross(same):
    a, b = np.arange(12.0).reshape(4, 3), np.arange(3) ** 2
    same(np.cross, a, b)
    same(np.cross, b, a)
    same(np.cross, a.T, a, 0)
    same(np.cross, a.T, a, 0, -1, 0)
    same(np.cross, a.T, a.T, axis=0)
    same(np.cross, a.astype(np.float32), b.astype(np.int8))
    same(np.cross, a, a[:2])
    same(np.cross, a, b[:2])
    same(np.cross, a, 1.0)
    same(np.cross, a[:, :1], a[:, :1])
    same(np.cross, a, a, axisa=4)
