"""Loops of NumPy's called at once on small arrays, and the life of handles and stores."""

import gc
import operator
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from callers import together

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.core.store import COMPILED
from dcarray.core.ufunc_loops import ALIASES, UFUNCS

CHARS = "".join(sorted(COMPILED))
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, 0.75)
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 300, -300, 2**31, 2**40, -(2**63), 2**63, 2**64, 10**400, 0.0, 0.1, 1e300, -2.5,
    float("nan"), float("inf"), True, 1j, np.float64(0.1), np.float32(0.1), np.int64(3), np.bool_(True),
)  # fmt: skip
OPERATORS: tuple[Callable[..., Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le,
    operator.eq, operator.ne, operator.gt, operator.ge,
)  # fmt: skip
FLAT = [
    name for name, f in sorted(UFUNCS.items()) if f.signature is None and f.nin < 3 and name not in ALIASES
]


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Small arrays are those of the defaults, whatever the environment says."""
    with dc.options(eager_below=16384, jit="off"):
        yield


def sample(char: str, n: int, seed: int) -> np.ndarray[Any, Any]:
    """Some values of a dtype, special ones among them."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if char in "efdFD":
            values = rng.normal(0, 3, n)
            values[:: max(n // 5, 1)] = rng.choice(SPECIAL, values[:: max(n // 5, 1)].size)
            return (
                (values + 1j * rng.permutation(values)).astype(char) if char in "FD" else values.astype(char)
            )
        return rng.integers(-5, 6, n).astype(char)


def laid_out(a: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """The same values in memory of another layout."""
    if layout == "strided":
        spread = np.zeros((a.size, 2), a.dtype)
        spread[:, 1] = a
        return spread[:, 1]
    if layout == "reversed":
        return a[::-1].copy()[::-1]
    if layout == "rows":
        return a.reshape(2, -1)
    if layout == "columns":
        return a.reshape(2, -1).copy("F")
    if layout == "unaligned":
        raw = np.zeros(a.nbytes + 1, np.uint8)
        shifted = raw[1:].view(a.dtype)
        shifted[...] = a
        return shifted
    return a


def seen(f: Callable[..., Any], *args: Any) -> Any:
    """The result's bits and geometry, or the error, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = error
    said = [(w.category, str(w.message)) for w in told]
    if isinstance(result, Exception):
        return type(result), str(result), said
    a = np.asarray(result)
    shown = (
        np.where(np.isnan(a), 0, a) if a.dtype.kind in "fc" else a
    )  # which of the NaNs is nobody's promise
    # the sign of zeros is; and whether it is an array at all
    return (
        isinstance(result, (dc.ndarray, np.ndarray)), a.dtype.char, a.shape, a.strides, shown.tobytes(),
        said,
    )  # fmt: skip


@pytest.mark.parametrize("layout", ["plain", "strided", "reversed", "rows", "columns", "unaligned"])
@pytest.mark.parametrize("name", FLAT)
def test_ufuncs_are_as_numpys(name: str, layout: str) -> None:
    ufunc = UFUNCS[name]
    for k, char in enumerate(CHARS):
        a = laid_out(sample(char, 36, k), layout)
        for other in (char, "d", "l") if ufunc.nin == 2 else ("",):
            plain = [a, laid_out(sample(other, 36, 100 + k), layout)] if other else [a]
            ours = [dc.asarray(x.copy("K") if layout in ("plain", "rows") else x) for x in plain]
            for _ in range(2):  # found, and found again
                assert seen(ufunc, *ours) == seen(ufunc, *plain), (char, other)
            with np.errstate(all="raise"):
                assert seen(ufunc, *ours)[:2] == seen(ufunc, *plain)[:2]


@pytest.mark.parametrize("operate", OPERATORS)
def test_operators_with_numbers_are_as_numpys(operate: Callable[..., Any]) -> None:
    for k, char in enumerate(CHARS):
        a = sample(char, 20, k)
        x = dc.asarray(a.copy())
        for number in NUMBERS:
            assert seen(operate, x, number) == seen(operate, a, number), (char, number)
            assert seen(operate, number, x) == seen(operate, number, a), (char, number)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 4096, 4097, 9000])
def test_sizes(n: int) -> None:
    a, b = sample("d", n, 1), sample("d", n, 2)
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    for f in (operator.add, operator.truediv, operator.lt, np.hypot, np.maximum):
        assert seen(f, x, y) == seen(f, a, b)
    for g in (operator.neg, abs, np.sqrt, np.exp, np.isnan):
        assert seen(g, x) == seen(g, a)
    for shape in ((n, 1), (1, n), (1, 1, n)) if n < 100 else ():  # broadcast
        assert seen(operator.add, x, y.reshape(shape)) == seen(operator.add, a, b.reshape(shape))


def test_exceptions_are_told_each_time() -> None:
    a = np.array([1.0, 0.0, -1.0])
    x = dc.asarray(a.copy())
    for _ in range(200):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
            r = 1.0 / x
        assert np.array_equal(r, [1.0, np.inf, -1.0])
    told: list[Any] = []
    with np.errstate(all="call", call=lambda *args: told.append(args)):
        np.sqrt(x)
    assert told and told[0][0] == "invalid value"
    i = dc.asarray(np.array([2, 3]))
    for _ in range(3):
        with pytest.raises(ValueError, match="negative integer powers"):
            np.power(i, dc.asarray(np.array([1, -1])))
        assert np.array_equal(i**2, [4, 9])


def test_a_target_given_by_name_stays_so() -> None:
    a, b = sample("d", 20, 1), sample("d", 20, 2)
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of a third positional argument, by some ufuncs
        for name in FLAT:
            if any(t in ("dd->d", "d->d") for t in UFUNCS[name].types):
                ours, plain = ((x, y), (a, b)) if UFUNCS[name].nin == 2 else ((x,), (a,))
                with np.errstate(all="ignore"):
                    result = UFUNCS[name](*ours, out=y)
                    expected = UFUNCS[name](*plain, out=b)
                assert result is y
                np.testing.assert_array_equal(np.asarray(y), expected)


def test_another_ufunc_of_the_same_name_is_its_own() -> None:
    strange = np.frompyfunc(lambda a, b: "both", 2, 1)
    x = dc.asarray(np.arange(3.0))
    for _ in range(2):
        assert list(np.asarray(strange(x, x))) == ["both"] * 3
        assert np.array_equal(np.add(x, x), [0, 2, 4])


def test_handles_come_and_go() -> None:
    gone: list[int] = []
    kept = []
    for k in range(300):
        x = dc.asarray(np.arange(5.0)) + k
        kept.append(weakref.ref(x, lambda _, k=k: gone.append(k)))
        if k % 3:
            x = x[1:]
        y = x * 2
        assert y._small is not None and not hasattr(y, "_store")
        del x, y
    assert gone == list(range(300)) and all(r() is None for r in kept)

    class Named(dc.ndarray):
        __slots__ = ("name",)

    for _ in range(100):
        named = object.__new__(Named)
        named._small, named.name = np.arange(3.0), [1]
        inner = weakref.ref(named)
        del named
        assert inner() is None
    ring = dc.asarray(np.arange(40_000.0))[1:]
    ring._origin = (ring, 0)
    held = weakref.ref(ring)
    del ring
    gc.collect()
    assert held() is None
    deep: Any = dc.asarray(np.arange(100_000.0))
    for _ in range(50_000):  # each holds the one before
        deep = deep[:]
    del deep


@pytest.mark.skipif(not BUILT, reason="without the C module all arrays have stores")
def test_stores_are_made_when_they_are_wanted() -> None:
    a = np.arange(20_000.0)
    with dc.options(eager_below=16384, jit="off"):
        x = dc.asarray(a.copy())

        def made() -> Any:
            y = np.roll(x, 1)  # at once
            dc.evaluate(y)
            return y

        for _ in range(4):
            y = made()
        assert y._small is None and "_store" not in _slots(y)
        assert (y.shape, y.dtype, y.nbytes, y.ndim) == (a.shape, a.dtype, a.nbytes, 1)
        assert "_store" not in _slots(y)
        found: list[Any] = []
        wait = threading.Barrier(4)

        def ask(_: int) -> None:
            wait.wait()
            found.append(y._store)

        together(4, ask)
        assert all(store is y._store for store in found)
        z = y * y + y * 2.0 - np.sin(y)
        b = np.roll(a, 1)
        np.testing.assert_array_equal(np.asarray(z), b * b + b * 2.0 - np.sin(b))
        view = made()[10:]
        view[...] = 3.0
        assert view.base is not None and np.all(np.asarray(view) == 3.0)
        turned = made().reshape(2, -1).T
        assert np.array_equal(np.asarray(turned), b.reshape(2, -1).T)
        exported = np.asarray(y := made())
        exported[0] = 77.0
        assert y[0] == 77.0 and (y + 0.0)[0] == 77.0
        with pytest.raises(AttributeError):
            dc.asarray(np.arange(3))._store  # noqa: B018


def _slots(x: Any) -> set[str]:
    """The slots of an array that hold something, by the descriptors alone."""
    held = set()
    for cls in type(x).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if name != "__weakref__":
                try:
                    vars(cls)[name].__get__(x)
                except AttributeError:
                    continue
                held.add(name)
    return held


def test_a_users_ufunc_and_what_it_holds_are_let_go():
    class Large:
        def __call__(self, x):
            return 0

    large = Large()
    gone = weakref.ref(large)
    f = np.frompyfunc(large, 1, 1)
    for x in (np.arange(10), np.arange(10.0), np.arange(10.0)):
        assert np.array_equal(f(dc.asarray(x)), f(x))
    del f, large
    gc.collect()
    assert gone() is None
