"""Joining, repeating, rolling and padding."""

import numpy as np
import pytest

import dcarray as dc

A = np.arange(6.0).reshape(2, 3)
V = np.arange(3, dtype=np.int32)
Z = np.zeros((0, 3), dtype=np.float32)
CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("parts", [
    [A, A], [A, A.astype(np.float32)], [A, Z], [V, V], [V, [1.5]], [A, V], [A, A[:1]], [A, A[:, :1]],
    [CUBE, CUBE], [A > 1, A], [np.array(1.0), np.array(2.0)], [np.asfortranarray(A)] * 2, [A], [],
    (A, A * 1j), [V.astype("U3"), V],
])  # fmt: skip
def test_joining(same, parts):
    for f in (np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block):
        same(f, parts)
    for axis in (-4, -2, -1, 0, 1, 2, None):
        same(np.concatenate, parts, axis)
        same(np.concatenate, parts, axis=axis, dtype=np.float32)
        if axis is not None:
            same(np.stack, parts, axis)
    same(np.concatenate, parts, dtype=np.int8)
    same(np.concatenate, parts, dtype=np.int8, casting="unsafe")
    same(np.vstack, parts, dtype=float)
    same(np.append, A, A)
    same(np.append, A, 1.5)
    same(np.append, A, V, 0)
    same(np.append, A, [V], 0)


def test_concatenate_out(same):
    same(lambda a, b, out: np.concatenate([a, b], out=out), A, A, np.zeros((4, 3)))
    same(lambda a, b, out: np.concatenate([a, b], out=out), A, A, np.zeros((3, 3)))


def test_block(same):
    same(np.block, [[A, A], [A, A]])
    same(np.block, [[A], [V]])
    same(np.block, [V, 1, [2]])
    same(np.block, [[V, 1.5], [V, 2]])
    same(np.block, [[A, A], A])
    same(np.block, A)


@pytest.mark.parametrize("a", [np.array(3.0), V, A, Z, CUBE, A > 2])
def test_tile_and_repeat(same, a):
    for reps in (0, 1, 2, (2,), (2, 1), (1, 2, 3), (2, 0), -1, 1.5, [2, 2]):
        same(np.tile, a, reps)
    for repeats in (0, 1, 3, -1, [2], [1, 2], [0, 1, 2]):
        same(np.repeat, a, repeats)
        for axis in (0, 1, -1, 3):
            same(np.repeat, a, repeats, axis)


@pytest.mark.parametrize("a", [np.array(3.0), V, A, Z, CUBE, A.T])
def test_roll(same, a):
    for shift in (0, 1, -1, 4, 7, -100, 1.0):
        same(np.roll, a, shift)
        for axis in (0, 1, -1, 3):
            same(np.roll, a, shift, axis)
        same(np.roll, a, shift, (0, 1))
        same(np.roll, a, (shift, 1), (0, 0))
    same(np.roll, a, (1, 2), 0)


@pytest.mark.parametrize("a", [np.array(3.0), V, A, Z, CUBE, A > 2, np.asfortranarray(A), np.ones((1, 3))])
def test_pad(same, a):
    for mode in ("constant", "edge", "wrap", "reflect", "symmetric", "empty", "mean", "bad"):
        for width in (0, 1, 2, 5, (1, 0), ((1, 2),), ((1, 2), (0, 1)), -1, 1.5):
            if mode != "empty":
                same(np.pad, a, width, mode)
    same(np.pad, a, 1, constant_values=3)
    same(np.pad, a, 1, constant_values=((1, 2),))
    same(np.pad, a, 1, constant_values=2.7)
    for value in (2**31, 2**63, -300, 1e300, np.nan, -np.inf):
        same(np.pad, a, 1, constant_values=value)
    same(np.pad, a, 1, "reflect", reflect_type="odd")
    same(np.pad, a, 1, "edge", constant_values=3)


@pytest.mark.one_process("tiles of blocks are gathered")
def test_nothing_of_this_falls_back():
    with dc.options(eager_below=0, jit="off", strict=True):
        x = dc.asarray(CUBE.copy())
        dc.report(reset=True)
        for f in (np.concatenate, np.stack, np.vstack, np.hstack, np.dstack):
            f([x, x])
        for mode in ("constant", "edge", "wrap", "reflect", "symmetric"):
            np.pad(x, 1, mode)
        np.roll(x, 2, 1)
        np.tile(x, 2)
        np.repeat(x, 2)
        np.block([x, x])
        assert dc.report().fallbacks == ()
