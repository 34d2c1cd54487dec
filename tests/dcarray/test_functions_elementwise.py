"""Functions of single elements, choices and comparisons."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dcarray as dc

F = np.array([[0.5, -0.0, np.nan], [np.inf, -np.inf, 2.5]])
I = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)  # noqa: E741
ARRAYS = [
    F, F.astype(np.float32), F.astype(np.float16), I, I.astype(np.uint8), I > 0, F * (1 + 2j), F[:0],
    np.array(1.5), F.T, I.astype(object),
]  # fmt: skip


@pytest.mark.parametrize("a", ARRAYS)
def test_of_one_array(same, a):
    for f in (np.angle, np.sinc, np.fix, np.isposinf, np.isneginf, np.real, np.imag, np.nan_to_num, np.copy):
        same(f, a, views=f is not np.real)
    for f in (np.iscomplex, np.isreal):
        same(f, a)
    for p in ([1, 2.5, 3], [], [1, -1], [[1, 2]]):
        same(np.polyval, p, a)
    same(np.result_type, a, np.float32, 1)
    same(np.can_cast, a, np.float32)
    same(np.common_type, a, a)
    for decimals in (0, 1, -1, 3):
        same(np.round, a, decimals)
        same(np.around, a, decimals)
    same(np.angle, a, deg=True)
    same(np.nan_to_num, a, copy=False)
    same(np.nan_to_num, a, nan=7, posinf=8.5)
    same(np.nan_to_num, a, nan=None)
    for order in "CFAK":
        same(np.copy, a, order)
    if hasattr(np, "astype"):
        same(np.astype, a, np.float32)
        same(np.astype, a, a.dtype, copy=False)


@pytest.mark.parametrize("a", ARRAYS)
def test_clip(same, a):
    for low, high in ((0, 1), (-1.5, 1.5), (None, 1), (0, None), (None, None), (-1000, 1000), (1, 0)):
        same(np.clip, a, low, high)
    same(np.clip, a, 0.0, 1.0)
    same(np.clip, a, np.nan, 1.0)
    same(np.clip, a, -0.0, 0.0)
    same(np.clip, a, np.zeros(3), np.ones((2, 1)))
    same(np.clip, a, np.zeros(3, np.int8), np.float32(2))
    same(np.clip, a, min=0)
    same(np.clip, a)
    same(np.clip, a, 0, 1, min=2)
    same(lambda x, out: np.clip(x, 0, 1, out=out), a, np.zeros((2, 3)))
    same(lambda x, out: np.clip(x, 0, 1, out), a, np.zeros((2, 3), np.int8))
    same(lambda x, out: np.clip(x, 0, 1, out), a, np.zeros(2))
    same(lambda x: x.clip(0), a)  # the method does with one
    same(lambda x: x.clip(max=1), a)
    same(lambda x: x.clip(None, 1), a)
    same(lambda x: x.clip(), a)
    same(lambda x, out: x.clip(0, 1, out), a, np.zeros((2, 3)))
    same(lambda x: x.clip(0, min=2), a)


def test_clip_keeps_the_sign_of_zero():
    z = np.array([-0.0, 0.0, -0.0, 0.0])
    for low, high in ((0.0, 1.0), (-0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0)):
        want = np.clip(z, low, high)
        with dc.options(eager_below=0, jit="off"):
            got = np.asarray(np.clip(dc.asarray(z.copy()), low, high))
        assert np.array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("a", ARRAYS)
def test_where(same, a):
    same(np.where, a, a, 0)
    same(lambda x: np.where(x > 0, 1, 2.5), a[None])
    same(np.where, a, a.T, a)
    same(np.where, a, np.float32(3), a)
    same(np.where, a, a, [1, 2, 3])
    same(np.where, a, "x", "y")
    same(np.where, a)
    same(np.where, a, 1)
    same(np.where, np.bool_(True), a, 0)


def test_select(same):
    same(np.select, [I > 1, I > 0], [F, I], 9)
    same(np.select, [I > 1, I > 0], [I, 2])
    same(np.select, [I > 1], [F, F])
    same(np.select, [I], [F])
    same(np.select, [I[0] > 0], [F * 1j], 1.5)
    same(np.select, [], [])


@pytest.mark.parametrize("a", ARRAYS[:-1])
@pytest.mark.parametrize("equal_nan", [False, True])
def test_comparisons(same, a, equal_nan):
    for b in (a, F, I, 0, 1.5, np.zeros((4, 4))):
        for f in (np.isclose, np.allclose):
            same(f, a, b, equal_nan=equal_nan)
        same(np.array_equal, a, b, equal_nan=equal_nan)
        same(np.array_equiv, a, b)
    same(np.isclose, a, a, atol=np.inf)
    same(np.isclose, a, a, rtol=np.ones(3))
    same(np.isclose, 1, a, 1, 1)


@pytest.mark.parametrize("a", [*ARRAYS[:6], np.zeros((2, 3), "U4")])
def test_copyto(same, a):
    for source in (F, I, 1, 300, 2.5, np.float64(2.5), 1j, True, F[0], np.zeros((4, 4)), [1, 2, 3], F[None]):
        same(np.copyto, a, source)
        same(np.copyto, a, source, casting="unsafe")
        same(np.copyto, a, source, casting="no")
        same(lambda d, s: np.copyto(d, s, where=[True, False, True]), a, source)


DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_, np.complex64])


@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.data())
def test_where_and_clip_promote_as_numpy(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    a, b = (data.draw(hnp.arrays(data.draw(DTYPES), shape, elements={"allow_nan": False})) for _ in "ab")
    mask = data.draw(hnp.arrays(np.bool_, shape))
    with dc.options(eager_below=0, jit="off"), np.errstate(all="ignore"):
        x, y, m = (dc.asarray(v.copy()) for v in (a, b, mask))
        for want, got in (
            (np.where(mask, a, b), np.where(m, x, y)),
            (np.where(mask, a, 1.5), np.where(m, x, 1.5)),
            (np.where(a, b, 2), np.where(x, y, 2)),
        ):
            assert got.dtype == want.dtype and got.shape == want.shape
            assert np.array_equal(np.asarray(got), want)
        if a.dtype.kind in "iuf" and b.dtype.kind in "iuf":
            want, got = np.clip(a, b, b), np.clip(x, y, y)
            assert got.dtype == want.dtype and np.array_equal(np.asarray(got), want)


def test_rules_of_casting(same):
    """Also without ``out``, and rules that depend on values or that there are none."""
    for rule in ("no", "equiv", "safe", "same_kind", "unsafe", "same_value", "none", None, 3):
        same(np.add, F, I, casting=rule)
        same(np.add, I, I, casting=rule)
        same(np.add, I, 1, casting=rule)
        same(np.sqrt, I, casting=rule)
        same(np.less, F, I, casting=rule)
        same(np.add, F, F, casting=rule, dtype=np.float32)
        same(np.astype, I, np.uint8)
        for dtype in (np.int16, np.uint8, np.float32, np.int8):
            same(lambda x, **k: x.astype(**k), I, dtype=dtype, casting=rule)
            same(lambda x, **k: x.astype(**k), F, dtype=dtype, casting=rule)


def test_integers_that_c_has_not(same):
    for n in (2**31, 2**63, -(2**63) - 1, 2**70):
        for a in (I, F):
            same(np.round, a, n)
            same(lambda x, n=n: x.round(n), a)
        if n > 2**31:
            same(np.repeat, F, n)
            same(np.repeat, F, n, 1)
        for f in (np.logical_and, np.logical_or, np.logical_xor):
            for a in (F, F.astype(np.float32), I, I > 0, I.astype(np.uint64)):
                same(f, a, n)
                same(f, n, a)


def test_clip_names_all_shapes():
    a = np.arange(6.0)
    for bounds in (([1, 2], 5), (0, [1, 2]), (np.zeros(6), np.zeros(4)), (np.zeros((2, 3)), None)):
        with pytest.raises(ValueError, match="broadcast") as want:
            np.clip(a, *bounds)
        with dc.options(eager_below=0, jit="off"), pytest.raises(ValueError, match="broadcast") as got:
            np.clip(dc.asarray(a), *bounds)
        assert str(got.value) == str(want.value)


def test_bounds_that_overflow_warn_once():
    for dtype in (np.float32, np.float16):
        for bounds in ((1e300, 5), (0, 1e300), (-1e40, 2.5)):
            results = []
            for wrapped in (lambda a: a, dc.asarray):
                with dc.options(eager_below=0, jit="off"), warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    results.append(np.asarray(np.clip(wrapped(np.arange(4, dtype=dtype)), *bounds)))
                assert [str(w.message) for w in said] == ["overflow encountered in cast"]
            assert np.array_equal(*results) and results[1].dtype == dtype
