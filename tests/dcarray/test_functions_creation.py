"""Creation, and arrays like others."""

import resource

import numpy as np
import pytest

import dcarray as dc

SHAPES = [(), 3, (0,), (2, 3), [2, 2], (-1,), 2.5, "x", (2, 3.5)]
DTYPES = [None, float, np.int8, "c8", bool, object, "U3", "M8[s]"]


@pytest.mark.parametrize("mode", [{}, {"eager_below": 0, "jit": "off"}])
@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "full"])
def test_filled(mode, name):
    with dc.options(**mode):
        for shape in SHAPES:
            for dtype in DTYPES:
                for order in "CF":
                    more = (1,) if name == "full" else ()
                    try:
                        want = getattr(np, name)(shape, *more, dtype, order)
                    except Exception as error:
                        with pytest.raises(type(error)):
                            getattr(dc, name)(shape, *more, dtype, order)
                        continue
                    got = getattr(dc, name)(shape, *more, dtype, order)
                    assert type(got) is dc.ndarray
                    assert got.dtype == want.dtype and got.shape == want.shape
                    assert got.strides == want.strides
                    if name != "empty":
                        assert np.array_equal(np.asarray(got), want)


def test_like(same):
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    cube = np.zeros((2, 3, 4)).transpose(1, 2, 0)
    for x in (a, a.T, np.asfortranarray(a), a[:, ::2], np.array(1.0), cube, a.astype(object)):
        for more in ({}, {"dtype": float}, {"shape": (4,)}, {"order": "F"}, {"order": "C"}, {"shape": 7}):
            same(np.zeros_like, x, **more)
            same(np.ones_like, x, **more)
            same(np.full_like, x, 7, **more)
            with dc.options(eager_below=0, jit="off"):
                assert np.zeros_like(dc.asarray(x), **more).strides == np.zeros_like(x, **more).strides
    same(np.full_like, a, 7.5)
    same(np.full_like, a, 1 << 40)
    same(np.full_like, a, [1, 2, 3])
    same(np.zeros_like, a, device="cpu")
    same(np.zeros_like, a, device="gpu")
    same(np.zeros_like, a, order="X")


def test_conversion():
    a = np.arange(20000.0)
    for small in (a[:5].copy(), a):
        x = dc.asarray(small)
        assert type(x) is dc.ndarray and dc.asarray(x) is x and dc.asarray(x, float) is x
        x[0] = 5
        assert np.asarray(x)[0] == 5 and np.shares_memory(np.asarray(x), small)
        assert dc.asarray(x, np.float32).dtype == np.float32
        assert not np.shares_memory(np.asarray(dc.array(x)), small)
        assert dc.array(x, copy=None) is x
        with pytest.raises(ValueError):
            dc.asarray(x, np.float32, copy=False)
        with pytest.raises(ValueError):
            dc.asarray(x, device="gpu")
    assert dc.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert dc.array([dc.asarray([1, 2]), [3, 4]]).shape == (2, 2)
    assert dc.asarray(3).shape == () and type(dc.asarray(3)) is dc.ndarray
    assert dc.asarray(np.array(["a", None], object)).dtype == object
    assert type(dc.asanyarray(np.matrix([[1]]))) is np.matrix
    f = dc.asarray(np.zeros((3, 4)).T)
    assert dc.ascontiguousarray(f).flags.c_contiguous and dc.asfortranarray(f) is f


def test_like_another_library():
    class Other:
        def __array_function__(self, func, types, args, kwargs):
            return func.__name__

    assert dc.zeros(3, like=Other()) == "zeros" and dc.asarray([1], like=Other()) == "asarray"
    with pytest.raises(TypeError):
        dc.zeros(3, like=3)


def test_like_argument():
    x = dc.asarray([1.0])
    for made in (
        np.zeros(3, like=x), np.ones(3, like=x), np.full(3, 2, like=x), np.empty(3, like=x),
        np.eye(3, like=x), np.arange(3, like=x), np.asarray([1], like=x), np.array([1], like=x),
        np.identity(2, like=x),
    ):  # fmt: skip
        assert type(made) is dc.ndarray


@pytest.mark.one_process("each rank writes its zeros")
def test_huge_zeros_are_not_touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x = dc.zeros(1 << 31, "b")
    x[7] = 1
    assert type(x) is dc.ndarray and x[5] == 0 and x[7] == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


@pytest.mark.parametrize("make", [dc.empty, dc.zeros, dc.ones, lambda *a, **k: dc.full(*a, None, **k)])
def test_arrays_of_objects_hold_what_they_are_given(make):
    held = dc.arange(2)
    for made in (make(2, object), make(2, dtype=object), make((1,), dtype="O")):
        made[0] = held
        assert made[0] is held and made.item(0) is held and np.asarray(made)[0] is held
        assert dc.random.choice(made[:1]) is held


@pytest.mark.parametrize(
    "args",
    [(1100,), (1000, 1100), (1100, 1000, 3), (1100, 1100, -5), (1100, 1100, 2000), (3, 400_000, -1)]
    + [
        (1100, None, 0, np.float32),
        (1100, None, 1, int, "F"),
        (1100, None, 0, bool),
        (1100, None, 0, "M8[s]"),
    ],
    ids=str,
)
def test_large_identity_matrices(args):
    pending = dc.asarray(np.ones((300, 300))) * 2
    try:
        want = np.eye(*args)
    except TypeError:
        with pytest.raises(TypeError):
            dc.eye(*args)
        return
    found = dc.eye(*args)
    assert type(found) is dc.ndarray and found.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(found), want)
    assert np.asarray(found).flags.f_contiguous == want.flags.f_contiguous
    assert (np.asarray(pending) == 2).all()
