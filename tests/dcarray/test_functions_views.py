"""Functions that give views or ask about shapes."""

import numpy as np
import pytest

import dcarray as dc

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 1), (2, 0), (2, 3, 4), (1, 4, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_axes(same, shape):
    a = np.arange(np.prod(shape), dtype=float).reshape(shape)
    for f in (np.shape, np.ndim, np.size, np.transpose, np.squeeze, np.ravel, np.flip, np.flipud, np.fliplr):
        same(f, a)
    for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.real, np.imag, np.iscomplexobj, np.isrealobj):
        same(f, a)
    for axis in (-4, -3, -2, -1, 0, 1, 2, 3):
        for f in (np.flip, np.expand_dims, np.squeeze, np.size, np.rollaxis):
            same(f, a, axis)
        same(np.swapaxes, a, 0, axis)
        same(np.moveaxis, a, axis, 0)
        same(np.moveaxis, a, 0, axis)
        same(np.rollaxis, a, 0, axis)
        same(np.expand_dims, a, (axis, 0))
    for k in range(-1, 5):
        same(np.rot90, a, k)
        same(np.rot90, a, k, (1, 0))
    same(np.moveaxis, a, [0, 1], [-1, 0])
    same(np.moveaxis, a, [0, 0], [-1, 0])
    same(np.transpose, a, (1, 0))
    same(np.transpose, a, (0, -1))
    if hasattr(np, "matrix_transpose"):
        same(np.matrix_transpose, a)
    if hasattr(np, "unstack"):
        same(np.unstack, a)
        same(np.unstack, a, axis=-1)


@pytest.mark.parametrize("shape", SHAPES)
def test_reshape(same, shape):
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    for to in (-1, (-1,), (1, -1), (2, -1), (3, 2), (-1, -1), (7,), ()):
        same(np.reshape, a, to)
        same(np.reshape, a, to, order="F")
        same(np.reshape, a, to, copy=True)
        if a.ndim > 1:
            same(np.reshape, a.T, to)
            same(lambda x, to=to: np.reshape(x.T, to), a)


@pytest.mark.parametrize("shape", SHAPES)
def test_broadcasting(same, shape):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for to in ((), 3, (3,), (5,), (2, 3), (4, 2, 3), (3, 3), (2, 5), (1, 4, 6), (-1,)):
        same(np.broadcast_to, a, to)
    same(np.broadcast_arrays, a, np.ones((3, 1)))
    same(np.broadcast_arrays, a, a)
    same(np.broadcast_arrays, a, 1.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_diagonals(same, shape):
    a = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    for k in range(-3, 4):
        for f in (np.diagonal, np.diag, np.diagflat, np.tril, np.triu, np.trace):
            same(f, a, k)
    same(np.diagonal, a, 0, -1, 0)
    same(np.diagonal, a, 1, 1, 2)
    same(np.trace, a, 0, -1, -2, float)


@pytest.mark.parametrize("shape", SHAPES)
def test_splits(same, shape):
    a = np.arange(np.prod(shape), dtype=float).reshape(shape)
    for sections in (0, 1, 2, 3, -1, [1], [1, 2], [2, 1, 9], [-1], 2.5, [0.5]):
        for f in (np.array_split, np.split, np.hsplit, np.vsplit, np.dsplit):
            same(f, a, sections)
        same(np.split, a, sections, axis=-1)
        same(np.array_split, a, sections, 5)


def test_a_view_writes_through():
    with dc.options(eager_below=0, jit="off"):
        a = dc.asarray(np.zeros((4, 4)))
        np.flip(a)[0, 0] = 1
        np.moveaxis(a, 0, 1)[3, 0] = 2
        np.split(a, 2)[1][0] += 5
        np.expand_dims(a, 0)[0, 1, 1] = 7
        want = np.zeros((4, 4))
        want[3, 3], want[0, 3], want[1, 1] = 1, 2, 7
        want[2] += 5
        assert np.array_equal(np.asarray(a), want)
        for view in (np.broadcast_to(a, (2, 4, 4)), np.diagonal(a), np.diag(a)):
            with pytest.raises(ValueError):
                view[...] = 1
