"""Results lie in memory as NumPy's do."""

import itertools

import numpy as np
import pytest

import dcarray as dc

SHAPE = (3, 4, 5)
VALUES = np.random.default_rng(5).normal(size=(4, 5, 6))
OPERANDS = {
    "C": lambda: np.arange(60.0).reshape(SHAPE),
    "F": lambda: np.asfortranarray(np.arange(60.0).reshape(SHAPE)),
    "mixed": lambda: np.arange(60.0).reshape(4, 5, 3).transpose(2, 0, 1),
    "other": lambda: np.arange(60.0).reshape(4, 3, 5).transpose(1, 0, 2),
    "backwards": lambda: np.asfortranarray(np.arange(60.0).reshape(SHAPE))[::-1, :, ::-1],
    "steps": lambda: np.asfortranarray(np.arange(240.0).reshape(6, 8, 5))[::2, ::2],
    "wide": lambda: np.broadcast_to(np.arange(20.0).reshape(5, 4).T, SHAPE),
    "row": lambda: np.arange(5.0),
    "columns": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4))[..., None],
}


@pytest.fixture(params=["interpreted", "compiled"])
def recorded(request):
    with dc.options(eager_below=0, jit="off" if request.param == "interpreted" else "eager"):
        yield


def steps(a):
    return [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1]


def same(function, *plain):
    want, got = function(*plain), np.asarray(function(*map(dc.asarray, plain)))
    assert got.dtype == want.dtype and np.array_equal(got, want) and steps(got) == steps(want)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("a", OPERANDS)
def test_one_operand(a):
    same(np.negative, OPERANDS[a]())
    same(lambda x: np.sqrt(x * 2 + 1) - x, OPERANDS[a]())
    same(lambda x: x.astype("f4"), OPERANDS[a]())
    same(lambda x: x.astype("f4", order="C"), OPERANDS[a]())
    same(lambda x: x.astype("f4", order="F"), OPERANDS[a]())
    same(lambda x: x.astype("f8", order="F", copy=False), OPERANDS[a]())
    same(lambda x: x.flatten("F"), OPERANDS[a]())
    same(lambda x: x.ravel("F"), OPERANDS[a]())
    same(lambda x: x.copy(), OPERANDS[a]())
    same(lambda x: x.T + 1, OPERANDS[a]())
    same(lambda x: (x[..., 1:] + x[..., :-1]) * 0.5, OPERANDS[a]())


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("b", OPERANDS)
@pytest.mark.parametrize("a", OPERANDS)
def test_two_operands(a, b):
    x, y = OPERANDS[a](), OPERANDS[b]()
    same(np.add, x, y)
    same(lambda x, y: np.where(x > 3, y, 2.0), x, y)
    same(lambda x, y: (x * y).T - (y * y).T * 2 if y.ndim == 3 else x * y * x, x, y)
    plain = y.copy()
    same(lambda x: x + plain, x)


def test_a_result_in_another_order_is_written_and_viewed():
    a = OPERANDS["F"]()
    with dc.options(eager_below=0):
        for x in (a, dc.asarray(a)):
            r = x * 2
            r[1:] += r[:-1]
            r.T[0] = 7
            r[..., 0] = r[..., 1]
            if x is a:
                want = r
        assert np.array_equal(np.asarray(r), want) and np.asarray(r).strides == want.strides
        assert np.array_equal(np.asarray(r.reshape(-1)), want.reshape(-1))
        assert np.array_equal(np.asarray(r.ravel("K")), want.ravel("K"))


@pytest.mark.one_process("blocks lie in one order")
def test_one_loop_over_what_lies_in_one_order():
    a = np.asfortranarray(np.ones((300, 200)))
    with dc.options(eager_below=0, jit="eager"):
        x = dc.asarray(a)
        text = str(dc.explain(np.sqrt(x * 2 + 1) - x))
    assert "1 kernel" in text and text.count("for (int64_t") == 1


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [*itertools.permutations(range(3))])
def test_reductions_keep_the_order_of_the_axes_that_stay(axes, keepdims):
    with dc.options(eager_below=0, jit="off"):
        for plain in (VALUES.transpose(axes), VALUES[::-1].transpose(axes), VALUES.transpose(axes)[:, 1:]):
            x = dc.asarray(plain)
            for axis, function in itertools.product((0, 1, 2, (0, 1), (2, 0)), (np.sum, np.max, np.mean)):
                ours, theirs = function(x, axis, keepdims=keepdims), function(plain, axis, keepdims=keepdims)
                np.testing.assert_allclose(ours, theirs)
                long = [n > 1 for n in theirs.shape]
                assert [*itertools.compress(ours.strides, long)] == [
                    *itertools.compress(theirs.strides, long)
                ]


def test_joined_arrays_keep_the_order_of_their_parts():
    rng = np.random.default_rng(2)
    for _ in range(60):
        ndim = int(rng.integers(2, 5))
        axis = int(rng.integers(ndim))
        parts = []
        order = rng.permutation(ndim)
        for n in rng.integers(2, 4, 2):
            shape = [2, 3, 4, 2][:ndim]
            shape[axis] = int(n)
            plain = rng.random([shape[k] for k in order]).transpose(np.argsort(order))
            parts.append(plain)
        joined = np.concatenate([dc.asarray(p) for p in parts], axis=axis)
        expected = np.concatenate(parts, axis=axis)
        assert np.array_equal(joined, expected)
        assert np.asarray(joined).strides == expected.strides


@pytest.mark.parametrize("join", [np.concatenate, np.stack, np.vstack, np.hstack, np.dstack])
def test_joined_in_order_of_strides(recorded, join):
    """Those of repeated elements count, too; and where the parts do not agree, C order wins."""
    plain = [a()[:3, :4, :5] for k, a in OPERANDS.items() if k not in ("row", "columns")]
    for a, b in itertools.product(plain, plain):
        for pair in ([a, b], [a[0], b[0]], [a[:, 0], b[:, 0]], [a[:, :1], b[:, :1]]):
            want, got = join(pair), np.asarray(join([*map(dc.asarray, pair)]))
            assert np.array_equal(got, want) and steps(got) == steps(want)


@pytest.mark.parametrize("name", [k for k in OPERANDS if k != "row"])
def test_rounded_in_order_of_c(recorded, name):
    """But for what is in Fortran's."""
    for decimals in (2, 0, -1):
        same(lambda x, n=decimals: x.round(n), OPERANDS[name]())
        same(lambda x, n=decimals: np.round(x * 1.01, n), OPERANDS[name]())
    same(np.nan_to_num, OPERANDS[name]())
