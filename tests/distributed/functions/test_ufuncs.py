"""Distributed ufuncs and products without a kernel."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run, world

CALLS: dict[str, Callable[..., Any]] = {
    "powers of integers": lambda x, i, z, u: (np.power(i, 3), i**u[:, :7], x**i),
    "several results": lambda x, i, z, u: (*np.frexp(x), *np.divmod(i, 3), np.ldexp(x, i)),
    "broadcast": lambda x, i, z, u: (np.power(i, i[0]), np.power(i[:, :1], [[1, 2, 3]]), np.gcd(i, u[0, 0])),
    "products of integers": lambda x, i, z, u: (i @ i.T, i[:, 0] @ u, u.T @ u, np.dot(i.T, u)),
    "products of unlike factors": lambda x, i, z, u: (x @ i.T, z @ x.T, (i > 4) @ x.T, u.T @ x[:, 0]),
    "products of nothing": lambda x, i, z, u: (x[:, :0] @ x[:0], x[:0] @ x.T, x[:, :0] @ i[:0, 0]),
    "sums of complex numbers": lambda x, i, z, u: (z.sum(), z.sum(0), z.mean(1), z.prod(0, keepdims=True)),
    "spread of complex numbers": lambda x, i, z, u: (z.var(axis=0), z.std(), z.max(), z[2:, ::2].min(axis=1)),
    "sums of halves": lambda x, i, z, u: (x.astype("f2").sum(0), x.astype("f2").mean()),
    "running sums": lambda x, i, z, u: (z.cumsum(0), np.cumprod(z, 1), np.add.accumulate(x, 0)),
    "no numbers": lambda x, i, z, u: (np.nan_to_num(z / 0), np.nan_to_num(x / 0, nan=3), np.nansum(z, 0)),
    "padded transforms": lambda x, i, z, u: (np.fft.fft2(x, s=(16, 9)), np.fft.irfft2(z, (4, 6), (0, 1))),
    "columns first": lambda x, i, z, u: (x.reshape(-1, order="F"), np.reshape(i, (7, 12), "F")),
    "meshes of views": lambda x, i, z, u: np.meshgrid(x[:, 0], i[2]),
    "keys of few bits": lambda x, i, z, u: (x[u[:, 0]], np.tile(x, (30, 1))[u], x[u[:, 1], u[:, 2] % 7]),
    "negative keys": lambda x, i, z, u: (np.tile(x, (20, 1))[u.astype("i1") - 12], x.ravel()[u.astype("i2")]),
}  # fmt: skip


def _arrays() -> tuple[Any, ...]:
    draw = np.random.default_rng(0)
    x, z = draw.random((12, 7)), draw.random((12, 7)) + 1j * draw.random((12, 7))
    return x, draw.integers(0, 9, (12, 7)), z, draw.integers(0, 12, (12, 8)).astype(np.uint8)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    def program() -> None:
        with np.errstate(all="ignore"):
            want = CALLS[name](*_arrays())
            with dc.options(distribute_above=0, eager_below=0, strict=True):
                got = CALLS[name](*map(dc.distribute, _arrays()))
                dc.evaluate()
        for one, other in zip(want, got, strict=True):
            a, b = np.asarray(one), np.asarray(other)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(b, a, rtol=2e-3 if a.dtype == np.float16 else 1e-12)

    for ranks in (2, 3, 5):
        run(ranks, program)


@on_ranks(3)
def test_numpys_errors_and_warnings_on_all_ranks() -> None:
    with dc.options(distribute_above=0, eager_below=0):
        x = dc.distribute(np.arange(-6, 6))
        with pytest.raises(ValueError, match="negative"):
            np.power(3, x)
        y = dc.distribute(np.arange(6.0))
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            np.divide(1, y, dtype=np.float64)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = np.divide(1, y, dtype=np.float64)
        assert any("divide by zero" in str(one.message) for one in told) and np.isinf(found[0])
        assert world().size == 3


def test_operands_that_do_not_broadcast() -> None:
    def program() -> None:
        x, z = np.ones((4, 6)), np.ones((4, 6), "D")
        for ufunc, a in ((np.divmod, z), (np.divmod, x), (np.gcd, x), (np.power, x.astype(int))):
            with pytest.raises((TypeError, ValueError)) as wanted:
                ufunc(a, a.T)
            with pytest.raises(type(wanted.value)) as caught:
                ufunc(dc.distribute(a), dc.distribute(a.T))
            assert str(caught.value) == str(wanted.value)

    with dc.options(distribute_above=0, eager_below=0):
        run(3, program)


def test_object_arrays_are_not_sent() -> None:
    """They do not travel; and a function of the user's is called for each element on every rank."""

    def program() -> None:
        calls: list[int] = []
        counted = np.frompyfunc(lambda v: calls.append(v) or v * 2, 1, 1)
        a = np.arange(1, 30)
        with dc.options(distribute_above=0, eager_below=0):
            x = dc.distribute(a)
            pairs: list[tuple[Any, Any]] = [(counted(x), a * 2)]
            assert calls == a.tolist()
            pairs += [
                (x * Fraction(1, 3), a * Fraction(1, 3)),
                (np.add(x, 1, dtype=object), a.astype(object) + 1),
                (np.cumprod(x, dtype=object), np.cumprod(a, dtype=object)),
                (np.multiply.reduce(x, dtype="O"), np.multiply.reduce(a, dtype="O")),
            ]
            for got, want in pairs:
                found = np.asarray(got)
                assert found.dtype == object and found.tolist() == np.asarray(want).tolist()

    for ranks in (2, 3):
        run(ranks, program)
