"""NumPy's loops over large arrays, called at once and in parts: the same bits, warnings and errors."""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray import alone, sharing
from dcarray.loops import UFUNCS
from dcarray.lowering.llvm.pool import exceptions
from dcarray.speedups import BUILT

pytestmark = pytest.mark.skipif(not BUILT, reason="in C alone")

N = 70_001
_EXACT = """
absolute add bitwise_and bitwise_or bitwise_xor ceil copysign divide equal floor fmax fmin greater
greater_equal invert isfinite isinf isnan left_shift less less_equal logical_and logical_not
logical_or logical_xor maximum minimum multiply negative not_equal positive reciprocal right_shift
rint sign signbit sqrt square subtract trunc
"""
EXACT = frozenset(_EXACT.split())  # of these each result is the exact one, rounded
R = np.random.default_rng(5)
ALL = sum(exceptions())  # flags of the hardware
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 1e300, 5e-324])


def sample(kind: str, n: int = N) -> np.ndarray:
    """Values of all kinds, the odd ones anywhere."""
    if kind == "?":
        return R.random(n) < 0.5
    if kind in "fd":
        a = (R.normal(size=n) * 10.0 ** R.integers(-3, 4, n)).astype(kind)
        with np.errstate(over="ignore"):
            a[R.integers(0, n, 200)] = R.choice(ODD, 200).astype(kind)
        return a
    if kind in "FD":
        return (sample("d", n) + 1j * sample("d", n)).astype(kind)
    return R.integers(0, 120, n).astype(kind) - (0 if kind in "BHILQ" else 60)  # type: ignore[no-any-return]


@pytest.fixture
def at_once() -> Iterator[None]:
    """NumPy does at once whatever is asked for."""
    assert alone.begin(60.0)
    yield
    alone.end()


@pytest.fixture
def in_parts() -> Iterator[list[int]]:
    """A launch that cuts each job anywhere; gives how many elements each job had."""
    from dcarray._speedups import share_loops

    jobs: list[int] = []
    raised = ctypes.CDLL(None).fetestexcept
    phase = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    def launch(pool: Any, packed: Any) -> int:
        table, phases, extent, _work = np.ctypeslib.as_array((ctypes.c_int64 * 4).from_address(packed))
        assert phases == 1
        part = phase(ctypes.c_int64.from_address(int(table)).value)
        jobs.append(int(extent))
        cuts = [0, *sorted(int(k) for k in R.integers(0, extent, 3)), int(extent)]
        for first, last in reversed(list(pairwise(cuts))):
            part(packed + 32, first, last)
        return int(raised(ALL) != 0)

    share_loops(lambda threads: (ctypes.cast(launch, ctypes.c_void_p).value or 0, 64))
    with dc.options(threads=2):
        yield jobs
    share_loops(sharing.pool)


def rested() -> None:
    """A loop that has raised a flag is not called for some time: have that be over."""
    x = dc.asarray(np.full(3, 2.0))
    for _ in range(70):
        assert all(len(y) == 3 for y in (x + x, np.sqrt(x), x < x, 2.0 * x, -x, x / x))


def same_bits(found: Any, expected: np.ndarray) -> None:
    assert type(found) is dc.ndarray and found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)
    if expected.dtype.kind == "f":
        signs = np.signbit(expected) == np.signbit(np.asarray(found))
        assert np.all(signs | np.isnan(expected))


@pytest.mark.parametrize("name", sorted(UFUNCS))
@pytest.mark.parametrize("parts", [False, True])
def test_the_same_bits(name: str, parts: bool, at_once: None, request: pytest.FixtureRequest) -> None:
    jobs = request.getfixturevalue("in_parts") if parts else []
    ufunc = UFUNCS[name]
    if ufunc.nout != 1 or ufunc.nin > 2 or ufunc.signature is not None:
        pytest.skip("has no such loop")
    with np.errstate(all="ignore"):
        for kind in "?bBhHiIlLfdFD":
            given = [sample(kind) for _ in range(ufunc.nin)]
            try:
                expected = ufunc(*given)
            except (TypeError, ValueError):
                continue
            for _ in range(2):
                same_bits(ufunc(*map(dc.asarray, given)), expected)
            if ufunc.nin == 2:
                number = 0.5 if kind in "fdFD" else 3
                with_number = ufunc(given[0], number)
                same_bits(ufunc(dc.asarray(given[0]), number), with_number)
            square = [a[:70_000].reshape(200, 350) for a in given]
            same_bits(ufunc(*map(dc.asarray, square)), ufunc(*square))
            far = [sample(kind, 3 * N)[::-3] for _ in given]
            same_bits(ufunc(*[dc.asarray(a.base)[::-3] for a in far]), ufunc(*far))
    if parts:
        assert set(jobs) <= {N, 70_000}
        assert bool(jobs) == (name in EXACT)


def test_parts_are_shared_and_small_arrays_are_not(at_once: None, in_parts: list[int]) -> None:
    rested()
    a, b = np.abs(R.normal(size=(2, N))) + 1.0
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    calls = (
        lambda u, v: u + v,
        lambda u, v: np.sqrt(u),
        lambda u, v: u < v,
        lambda u, v: 2.0 * u,
        lambda u, v: -u,
    )
    for f in calls:
        before = len(in_parts)
        same_bits(f(x, y), f(a, b))
        assert in_parts[before:] == [N]
    same_bits(x[:40_000] + y[:40_000], a[:40_000] + b[:40_000])
    same_bits(np.exp(x), np.exp(a))  # whose last bits might be others at the end of a part
    with dc.options(threads=1):
        same_bits(x + y, a + b)
    assert len(in_parts) == 5


@pytest.mark.parametrize("parts", [False, True])
def test_floating_point_errors_are_numpys(parts: bool, at_once: None, request: pytest.FixtureRequest) -> None:
    jobs = request.getfixturevalue("in_parts") if parts else []
    rested()
    a = np.abs(R.normal(size=N)) + 1.0
    b = a.copy()
    b[N // 2] = 0.0
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
            found = x / y
        with np.errstate(all="ignore"):
            same_bits(found, a / b)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            x / y
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            same_bits(x * y, a * b)
    assert len(jobs) == (4 if parts else 0)  # where a flag was raised, NumPy is left alone for some time


def test_a_pool_of_ours(at_once: None) -> None:
    """With threads, and those of a child that has none."""
    with alone.suspended(), dc.options(jit="eager", eager_below=0, threads=2):
        warm = dc.asarray(np.ones(2_000_000))
        dc.evaluate(warm * 2.0 + 1.0)
    a, b = R.normal(size=(2, 300_000))
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    with dc.options(threads=2):
        from dcarray._speedups import share_loops

        share_loops(sharing.pool)
        assert sharing.pool(2) is not None
        for _ in range(300):
            same_bits(x + y, a + b)
        if hasattr(os, "fork"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(np.asarray(x * y), a * b) else 1)
            assert os.waitpid(child, 0)[1] == 0
        same_bits(np.sqrt(np.abs(x)), np.sqrt(np.abs(a)))
    assert sharing.pool(77) is None
