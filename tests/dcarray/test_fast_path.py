"""The short ways into the log give what NumPy gives: other shapes, arrays to write into, outer products."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.recording import fast_path
from dcarray.recording.session import session

RECORDED = {"eager_below": 0, "jit": "eager"}
Program = Callable[[Any, Any], Any]


def same(got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


@pytest.mark.parametrize("dtype", ["i2", "i8", "f4", "f8", "c16"])
def test_shapes_that_were_not_met_before(dtype: str) -> None:
    rng = np.random.default_rng(1)
    with dc.options(**RECORDED):
        for shape in ((4,), (7,), (3, 5), (0,), (2, 0), (1,), (), (6, 1, 2)):
            a, b = (rng.integers(1, 9, shape).astype(dtype) for _ in "ab")
            x, y = dc.asarray(a), dc.asarray(b)
            for function in (np.add, np.multiply, np.equal):
                same(function(x, y), function(a, b))
                same(function(x, 3), function(a, 3))
            same(x - y, a - b)
            same(-x, -a)
            same(np.square(x), np.square(a))
            same(abs(x) > 2, abs(a) > 2)


def test_integers_that_do_not_fit_are_refused_in_every_shape() -> None:
    with dc.options(**RECORDED):
        for n in (3, 4, 5):
            x = dc.asarray(np.ones(n, np.int8))
            same(x + 1, np.full(n, 2, np.int8))
            with pytest.raises(OverflowError):
                x + 1000
            with pytest.raises(OverflowError):
                np.add(x, 1000, x)
            same(x, np.ones(n, np.int8))


INTO: list[Program] = [
    lambda a, b: np.add(a, b, a),
    lambda a, b: np.multiply(a, a, out=a),
    lambda a, b: np.subtract(a[1:], a[:-1], a[1:]),
    lambda a, b: np.subtract(a[:-1], a[1:], out=a[1:]),
    lambda a, b: np.maximum(a, 2, out=b),
    lambda a, b: np.add(2.5, b, out=a),
    lambda a, b: np.negative(b, a),
    lambda a, b: np.sqrt(a, out=(b,)),
    lambda a, b: np.add(a[0], b, a),
    lambda a, b: np.add(a[:, :1], b[:1], b),
    lambda a, b: np.add(a.T, a, out=a),
    lambda a, b: np.add(b.T, b, out=a.T),
    lambda a, b: np.add(a, b, out=a, casting="no"),
    lambda a, b: np.add(a.real, b, out=a),
    lambda a, b: np.add(np.ones(4, np.float32), b, out=a),
]


@pytest.mark.parametrize("program", INTO)
def test_into_arrays(program: Program) -> None:
    rng = np.random.default_rng(2)
    for _ in range(3):
        a, b = rng.random((4, 4)), rng.random((4, 4))
        p, q = a.copy(), b.copy()
        want = program(p, q)
        with dc.options(**RECORDED):
            x, y = dc.asarray(a), dc.asarray(b)
            same(program(x, y), want)
            same(x, p)
            same(y, q)


def test_into_arrays_that_must_not_be_written_or_are_of_another_kind() -> None:
    with dc.options(**RECORDED):
        a = np.arange(6.0)
        x = dc.asarray(a.copy())
        same(np.add(x, x, x), a + a)
        fixed = x[:]
        fixed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            np.add(x, x, fixed)
        with pytest.raises(TypeError):
            np.add(x, x, dc.asarray(np.arange(6)))
        low = dc.asarray(np.zeros(6, np.float32))
        same(np.add(x, x, low), (4 * a).astype("f4"))
        with pytest.raises(ValueError, match="broadcast"):
            np.add(x, x, dc.asarray(np.zeros(5)))
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            big = dc.asarray(np.full(6, 1e308))
            dc.evaluate(np.multiply(big, big, big))


OUTER: list[Program] = [
    lambda a, u: u.outer(a[:, 1, 2], a[1, :, 0]),
    lambda a, u: u.outer(a[0], a[:, ::-1, 1]),
    lambda a, u: u.outer(a, a),
    lambda a, u: u.outer(a[0].T, a[1, 2]),
    lambda a, u: u.outer(a[0, 0], a[0, 0]),
    lambda a, u: u.outer(a + 1, a[:, 0, 0] * 2),
    lambda a, u: u.outer(a[0, 0], 2.0),
    lambda a, u: u.outer(a[0, 0], a[0, 0] > 0.5),
]


@pytest.mark.parametrize("program", OUTER)
@pytest.mark.parametrize("ufunc", [np.add, np.less, np.arctan2])
def test_outer(program: Program, ufunc: Any) -> None:
    a = np.random.default_rng(3).random((6, 5, 4))
    want = program(a, ufunc)
    with dc.options(**RECORDED):
        x = dc.asarray(a.copy())
        for _ in range(3):
            found = program(x, ufunc)
        x[...] = 0
        same(found, want)


@pytest.mark.parametrize("ufunc", [np.multiply, np.logical_and])
def test_outer_of_arrays_without_axes(ufunc: Any) -> None:
    a, b = np.array(2.0), np.arange(3.0)
    with dc.options(**RECORDED):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        for _ in range(3):
            same(ufunc.outer(y, y), ufunc.outer(b, b))
            same(ufunc.outer(x, y), ufunc.outer(a, b))
            same(ufunc.outer(y, x), ufunc.outer(b, a))
            assert type(ufunc.outer(x, x)) is type(ufunc.outer(a, a))


def test_outer_in_a_loop_of_updates() -> None:
    a = np.random.default_rng(4).integers(1, 99, (12, 12)).astype(np.int32)
    with dc.options(**RECORDED):
        x = dc.asarray(a.copy())
        for k in range(12):
            a[:] = np.minimum(a[:], np.add.outer(a[:, k], a[k, :]))
            x[:] = np.minimum(x[:], np.add.outer(x[:, k], x[k, :]))
        same(x, a)


def test_what_is_remembered_of_shapes_has_an_end() -> None:
    with dc.options(eager_below=0, jit="off"):
        for n in range(1, fast_path._MOST_SIGNATURES + 100):
            x = dc.asarray(np.ones(n))
            np.add(x, 1.0, x)
            x + x
            x + dc.asarray(np.ones((2, n)))
    assert 0 < len(fast_path.SIGNATURES) <= fast_path._MOST_SIGNATURES + 2


def test_under_masks_with_plain_operands() -> None:
    rng = np.random.default_rng(5)
    with dc.options(**RECORDED):
        for ours in range(16):
            a, b, out, mask = (
                rng.random((5, 6)),
                rng.random((5, 6)),
                np.zeros((5, 6)),
                rng.random((5, 6)) < 0.5,
            )
            want = np.add(a, b, out=out.copy(), where=mask)
            x, y, z, m = (
                dc.asarray(v) if ours >> k & 1 else v for k, v in enumerate((a, b, out.copy(), mask.copy()))
            )
            result = np.add(x, y, out=z, where=m)
            same(result, want)
            same(z, want)


# ---- little of what is pending ---------------------------------------------------------------------
LITTLE: list[Program] = [
    lambda a, b: a[0] + a[1], lambda a, b: a[0] * 2.0, lambda a, b: 1 - a[-1], lambda a, b: -a[2],
    lambda a, b: np.sqrt(a[:2, :3]), lambda a, b: np.subtract(a[0], a[1], out=b[3]),
    lambda a, b: a[3:3] + a[2:2],
    lambda a, b: b.__setitem__(0, a[1]), lambda a, b: b.__setitem__((slice(None), -1), b[:, -2]),
    lambda a, b: np.add(b[0], b[1], out=b[1]), lambda a, b: np.negative(a[1], out=a[0]),
    lambda a, b: b.__setitem__((0, slice(1, None)), b[0, :-1]), lambda a, b: a[:, :1] + a[0],
    lambda a, b: a[0] > a[1], lambda a, b: b.__setitem__(slice(0, 0), a[:0]),
    lambda a, b: a[0].sum() + a[0, 0],
]  # fmt: skip


@given(st.lists(st.integers(0, len(LITTLE) - 1), min_size=1, max_size=6), st.sampled_from(["f8", "i4", "c8"]))
@settings(max_examples=32, deadline=None)
def test_little_of_what_is_pending(steps: list[int], dtype: str) -> None:
    rng = np.random.default_rng(3)
    given_ = [rng.integers(1, 9, (150, 200)).astype(dtype) for _ in "ab"]
    with dc.options(eager_below=16384, jit="off"), np.errstate(all="ignore"):
        found: list[list[Any]] = []
        for wrap in (dc.asarray, np.asarray):
            x, y = (wrap(a.copy()) for a in given_)
            a, b = x + y, x * y  # pending, for ours
            outcomes: list[Any] = []
            for k in steps:
                try:
                    outcomes.append(LITTLE[k](a, b))
                except TypeError as error:  # complex numbers have no order
                    outcomes.append(str(error))
            found.append([*outcomes, a, b, x, y])
    for got, want in zip(*found, strict=True):
        if isinstance(want, str) or want is None:
            assert got == want
        else:
            same(got, want)


def test_little_of_what_is_pending_is_recorded() -> None:
    dc.evaluate()  # what an earlier test left pending
    x = dc.asarray(np.ones((150, 200)))
    with dc.options(eager_below=16384, jit="off"):
        x[0] + x[1]  # met before, on memory that is settled
        assert not session().rec.log
        y = x + 1
        for _ in range(2):
            y += 0.0  # else this would be a sweep over parts
            before = len(session().rec.statements())
            row = y[0] + y[1]
            y[2] = y[3]
            np.multiply(y[4], 2.0, out=y[5])
            assert len(session().rec.statements()) == before + 3
        same(row, np.full(200, 4.0))
        same(y[5], np.full(200, 4.0))


@pytest.mark.parametrize("dtype", ["i1", "i8", "u4", "f4", "f8", "c16", "?"])
def test_choices_that_have_been_met(dtype: str) -> None:
    """Between arrays and numbers, Python's and NumPy's, in either place."""
    rng = np.random.default_rng(2)
    numbers = [
        3, 300, -1, 2.5, 1e300, True, 2j, np.dtype(dtype).type(1), np.float64(1.5), np.int8(2),
        np.uint64(7),
    ]  # fmt: skip
    with dc.options(**RECORDED):
        for shape in ((40,), (5, 8), (40,)):
            a, b = (rng.integers(0, 2, shape).astype(dtype) for _ in "ab")
            x, y, chosen = dc.asarray(a), dc.asarray(b), a > 0
            c = dc.asarray(chosen)
            for _ in range(2):
                same(np.where(c, x, y), np.where(chosen, a, b))
                same(np.where(x, c, y), np.where(a, chosen, b))
                same(np.where(c, x.T.copy().T, y), np.where(chosen, a, b))
                for number in numbers:
                    for order in (1, -1):
                        try:
                            want = np.where(chosen, *(a, number)[::order])
                        except OverflowError:
                            with pytest.raises(OverflowError):
                                np.where(c, *(x, number)[::order])
                        else:
                            same(np.where(c, *(x, number)[::order]), want)


def test_empty_parts_raise_what_numpy_raises() -> None:
    with dc.options(**RECORDED):
        x, z = dc.zeros((5, 0, 3)), dc.zeros((5, 0, 3), dtype="c16")
        with pytest.warns(np.exceptions.ComplexWarning):
            x[:3] = z[:3]
        with pytest.raises(ValueError, match="broadcast"):
            x[:3] = z[:2].real


def test_ufuncs_of_other_libraries_are_not_numpys() -> None:
    special = pytest.importorskip("scipy.special")
    a = np.linspace(-2, 2, 50)
    with dc.options(**RECORDED):
        x = dc.asarray(a)
        for name in ("expm1", "log1p", "exp2", "cbrt"):
            ours = getattr(np, name)(abs(x)), getattr(special, name)(abs(x))  # known, then another
            for got, module in zip(ours, (np, special), strict=True):
                same(got, getattr(module, name)(abs(a)))
