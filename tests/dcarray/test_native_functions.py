"""What is answered, multiplied, overwritten, lent and cut without NumPy's functions is what NumPy's give."""

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.core.store import COMPILED
from dcarray.core.ufunc_loops import ALIASES, UFUNCS

CHARS = sorted(COMPILED)
BINARY = [
    name for name, f in sorted(UFUNCS.items()) if f.signature is None and f.nin == 2 and name not in ALIASES
]
SHAPES = [(1000,), (3, 4), (4, 1), (1, 5), (7,), (1,), (0, 3), (2, 3, 4), ()]


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    with dc.options(eager_below=16384, jit="off"):
        yield


def sample(char: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        values = rng.normal(0, 3, shape) if char in "efdFD" else rng.integers(-3, 6, shape)
        return np.asarray(values).astype(char)


def told(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What it gives, or which exception, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value: Any = work()
        except Exception as error:  # to be the same as NumPy's
            value = type(error)
    return value, sorted(str(one.message) for one in caught)


def windows(layout: str) -> tuple[Any, Any]:
    """The parts of one array that are read and written."""
    return {
        "apart": (np.s_[:10], np.s_[10:20]), "same": (np.s_[:10], np.s_[:10]),
        "behind": (np.s_[1:11], np.s_[:10]), "before": (np.s_[:10], np.s_[1:11]),
        "spread": (np.s_[:20:2], np.s_[:10]), "backwards": (np.s_[9::-1], np.s_[:10]),
    }[layout]  # fmt: skip


@pytest.mark.parametrize("layout", ["apart", "same", "behind", "before", "spread", "backwards"])
@pytest.mark.parametrize("name", BINARY)
def test_ufuncs_into_parts_of_their_operands(name: str, layout: str) -> None:
    read, write = windows(layout)
    ufunc = getattr(np, name)
    for first, second in [("d", "d"), ("l", "l"), ("f", "f"), ("D", "D"), ("?", "?"), ("b", "b"), ("d", "f")]:
        for number in (False, True):
            whole, other = sample(first, (24,), 1), sample(second, (10,), 2)
            mine = dc.asarray(whole.copy())
            beside: Any = 2 if number else other

            def theirs(whole: Any = whole, beside: Any = beside) -> Any:
                return ufunc(whole[read], beside, out=whole[write])

            def ours(mine: Any = mine, beside: Any = beside) -> Any:
                return ufunc(mine[read], beside, out=mine[write])

            want, got = told(theirs), told(ours)
            assert got[1] == want[1]
            assert (got[0] if isinstance(got[0], type) else 0) == (
                want[0] if isinstance(want[0], type) else 0
            )
            assert np.asarray(mine).tobytes() == whole.tobytes()


@settings(deadline=None)
@given(m=st.integers(1, 40), n=st.integers(1, 40), char=st.sampled_from("fdDl"), seed=st.integers(0, 99))
def test_products_have_the_bits_of_numpys(m: int, n: int, char: str, seed: int) -> None:
    a, v, w, u = (sample(char, shape, seed + k) for k, shape in enumerate([(m, n), (n,), (n,), (m,)]))
    strided = sample(char, (n, 2), seed)[:, 0]
    for p, q in ((a, v), (u, a), (v, w), (a, strided), (a.T, u), (v, strided)):
        x, y = dc.asarray(p), dc.asarray(q)
        want = np.asarray(p @ q)
        for got in (x @ y, np.matmul(x, y), p @ y, x @ q):
            assert np.asarray(got).tobytes() == want.tobytes() and np.asarray(got).dtype == want.dtype
            assert isinstance(got, dc.ndarray) == (want.ndim > 0)
        dotted = np.asarray(np.dot(p, q))
        for got in (np.dot(x, y), np.dot(p, y), np.dot(x, q), dc.dot(x, y)):
            assert np.asarray(got).tobytes() == dotted.tobytes()


def test_products_tell_their_exceptions() -> None:
    a, v = np.full((3, 3), 1e308), np.full(3, 1e308)
    for p, q in ((a, v), (v, v), (v, a)):
        want = told(lambda p=p, q=q: p @ q)
        assert want[1] and told(lambda p=p, q=q: dc.asarray(p) @ dc.asarray(q))[1] == want[1]
        want = told(lambda p=p, q=q: np.dot(p, q))
        assert told(lambda p=p, q=q: np.dot(dc.asarray(p), dc.asarray(q)))[1] == want[1]


QUESTIONS: tuple[Any, ...] = (
    np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.atleast_1d, np.atleast_2d, np.squeeze,
    np.transpose, np.flip, np.real, np.imag,
)  # fmt: skip


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers(question: Any, below: int) -> None:
    with dc.options(eager_below=below):
        for shape in SHAPES:
            for char in "dDl?e":
                plain = sample(char, shape, 3)
                x = dc.asarray(plain.copy())
                pending = x + x
                for function in (question, getattr(dc, question.__name__)):
                    for one, of in ((x, plain), (pending, plain + plain)):
                        got, want = function(one), question(of)
                        if isinstance(want, np.ndarray) and isinstance(one, dc.ndarray):
                            assert isinstance(got, dc.ndarray) and got.shape == want.shape
                            assert got.dtype == want.dtype and np.array_equal(np.asarray(got), want)
                        else:
                            assert np.array_equal(got, want)
                            assert type(got) is type(want) or not isinstance(one, dc.ndarray)
                # views are views
                view = question(x)
                if isinstance(view, dc.ndarray) and view.size and question not in (np.imag,):
                    view[...] = 1
                    assert (np.asarray(x).real == 1).all()


def test_the_type_of_two() -> None:
    for first in CHARS:
        for second in (first, "d"):
            a, b = np.ones(3, first), np.ones(2, second)
            for p in (dc.asarray(a), a):
                for q in (dc.asarray(b), 2, 2.5):
                    want = np.result_type(a, b if isinstance(q, dc.ndarray) else q)
                    if p is not a or isinstance(q, dc.ndarray):
                        assert np.result_type(p, q) == want


def test_copies() -> None:
    for char in CHARS:
        for shape in SHAPES:
            plain = sample(char, shape, 7)
            x = dc.asarray(plain.copy())
            for one, of in (
                (x, plain),
                (x.T, plain.T),
                (x[..., ::2] if shape else x, plain[..., ::2] if shape else plain),
            ):
                for got in (np.copy(one), dc.copy(one)):
                    assert isinstance(got, dc.ndarray) and np.asarray(got).tobytes() == of.tobytes()
                    assert (
                        got.dtype == of.dtype and got.shape == of.shape and got.strides == np.copy(of).strides
                    )
                    assert not np.shares_memory(np.asarray(got), np.asarray(one))


def test_copies_into_arrays() -> None:
    for shape in SHAPES:
        x, y = dc.asarray(np.zeros(shape)), np.random.default_rng(1).random(shape)
        assert np.copyto(x, dc.asarray(y)) is None
        assert np.array_equal(np.asarray(x), y)
        np.copyto(x, y + 1)
        assert np.array_equal(np.asarray(x), y + 1)
    whole = dc.asarray(np.arange(9.0))
    np.copyto(whole[1:], whole[:-1])
    assert whole.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7]
    fixed = dc.asarray(np.zeros(3))
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.copyto(fixed, dc.asarray(np.ones(3)))


@pytest.mark.parametrize("below", [0, 16384])
def test_arrays_that_nobody_has_written(below: int) -> None:
    with dc.options(eager_below=below):
        for made in (
            dc.empty(20_000),
            dc.empty((200, 100), np.int32),
            dc.empty([20_001], dtype="f4"),
            dc.empty(3),
        ):
            like = np.empty_like(made)
            for x in (made, like, dc.empty_like(made)):
                assert (x.shape, x.dtype) == (made.shape, made.dtype)
                assert dc.evaluate(x) is x
                x[...] = 3
                x += 1
                assert (np.asarray(x) == 4).all()
        turned = np.empty_like(dc.asarray(np.zeros((200, 100))).T)
        assert turned.flags.f_contiguous
        assert dc.empty((0, 20_000)).shape == (0, 20_000)
        with pytest.raises(ValueError, match="negative"):
            dc.empty(-20_000)
        with pytest.raises((MemoryError, ValueError)):
            dc.empty((1 << 40, 1 << 20))


def test_large_arrays_of_numbers() -> None:
    for got, want in (
        (dc.arange(30_000), np.arange(30_000)),
        (dc.arange(0, 9e4, 3.0), np.arange(0, 9e4, 3.0)),
        (dc.arange(30_000, dtype="i2"), np.arange(30_000, dtype="i2")),
        (dc.eye(200), np.eye(200)),
        (dc.array(list(range(20_000))), np.arange(20_000)),
    ):
        assert isinstance(got, dc.ndarray) and got.dtype == want.dtype
        assert np.array_equal(np.asarray(got * 2), want * 2)


def test_arrays_as_they_are() -> None:
    for n in (5, 30_000):
        x = dc.asarray(np.zeros((n, 2)))
        assert dc.asarray(x) is x and dc.asanyarray(x) is x and dc.ascontiguousarray(x) is x
        turned = dc.ascontiguousarray(x.T)
        assert turned.flags.c_contiguous and turned.shape == (2, n)
    assert dc.ascontiguousarray(dc.asarray(np.array(2.0))).shape == (1,)


@pytest.mark.parametrize("n", [6, 20_000])
def test_memory_is_lent(n: int) -> None:
    for key in (np.s_[:], np.s_[::2], np.s_[:, ::3], np.s_[1:, 1], np.s_[::-1], np.s_[:, :1]):
        for char in CHARS:
            plain = sample(char, (n, 6), 2)
            x, want = dc.asarray(plain.copy())[key], memoryview(plain[key])
            view = memoryview(dc.evaluate(x))
            for name in (
                "shape", "strides", "format", "itemsize", "nbytes", "readonly", "ndim", "contiguous",
            ):  # fmt: skip
                assert getattr(view, name) == getattr(want, name), name
            a = np.asarray(x)
            a[...] = 1
            assert (np.asarray(x) == 1).all()


def test_work_on_lent_memory_does_not_wait() -> None:
    x = dc.asarray(np.zeros(30_000)) + 0.0
    lent, again = np.asarray(x), np.asarray(x)[5:]
    del lent
    x += 1
    assert again[0] == 1.0
    y = x * 2
    again[0] = 5.0  # what was asked for before does not see it
    assert y[5] == 2.0 and x[5] == 5.0
    del again
    held = memoryview(x)
    x += 1
    assert held[5] == 6.0
    held.release()
    x += 1
    assert x[5] == 7.0
    assert dc.asarray(np.asarray(x)).base is not None  # known as the same memory
    other = dc.asarray(np.asarray(x))
    other[7] = -1.0
    assert x[7] == -1.0


@pytest.mark.skipif(not BUILT, reason="the C module was not built")
def test_references() -> None:
    n = 20_000
    x, s = dc.asarray(np.ones(n)), dc.asarray(np.ones(40))
    m, plain = dc.asarray(np.ones((5, 5))), np.ones(40)
    row = dc.asarray(np.ones(5))

    def work() -> None:
        for a in (x, s):
            np.asarray(a)
            memoryview(a)
            np.empty_like(a)
            np.flip(a), np.transpose(a), np.real(a), np.squeeze(a), np.atleast_2d(a)
            np.shape(a), np.ndim(a), np.result_type(a, a), dc.asarray(a)
        np.tril(m), m @ row, row @ row, np.matmul(m, row)
        s.__iadd__(s * 0), np.add(s, plain * 0, out=s), np.add(plain, s * 0, out=plain)
        np.copyto(s, plain)
        dc.empty(n), dc.arange(n)

    held = [x, s, m, plain, row, np.dtype("d"), None, s._small, m._small, row._small]
    for _ in range(5):
        work()
    gc.collect()
    before = [sys.getrefcount(one) for one in held]
    blocks = sys.getallocatedblocks()
    for _ in range(200):
        work()
    gc.collect()
    after = [sys.getrefcount(one) for one in held]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    assert sys.getallocatedblocks() - blocks < 400


def test_results_of_other_kinds_are_not_computed_twice() -> None:
    """Windows of large arrays beside edges in a sequence: what NumPy returns may be either's memory."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 20_000))
    edges = np.linspace(-3.0, 3.0, 33)

    def call(wrap: Any) -> list[Any]:
        e = wrap(edges.copy())
        found = []
        for _ in range(3):  # the call site has been learned
            found = [*np.histogram2d(wrap(x), wrap(y), bins=(e, e))]
        return [*found, np.shares_memory(np.asarray(found[1]), np.asarray(e))]

    counts, first, second, shared = call(dc.asarray)
    want = call(np.asarray)
    assert all(type(a) is dc.ndarray for a in (counts, first, second))
    for got, expected in zip((counts, first, second), want, strict=False):
        np.testing.assert_array_equal(np.asarray(got), expected)
    assert shared == want[-1]


def test_results_are_wrapped_by_what_their_memory_is() -> None:
    from dcarray.api.functions.fallback import wrap_results_of

    whole = np.arange(40_000.0)
    large, small, foreign = dc.asarray(whole), dc.asarray(np.arange(4.0)), np.arange(3.0)
    part, few = large[1:], np.asarray(small)
    plain = whole[1:], few, foreign
    for inner in (False, True):
        pairs = (
            ((part, (small, [foreign])), (plain[0], (few, [foreign])))
            if inner
            else ((part, small, foreign), plain)
        )
        given = [*plain, whole[2:5], few[1:], foreign[1:], np.ones(2), 3.5]
        view, same, kept, few_elements, of_small, of_foreign, new, number = wrap_results_of(given, *pairs)
        assert view is part and same is small and kept is foreign
        assert number == 3.5 and type(of_foreign) is np.ndarray and type(new) is dc.ndarray
        few_elements += 1.0
        of_small += 1.0
        assert dc.evaluate(large)[2] == whole[2] and small[1] == few[1]
        np.testing.assert_array_equal(np.asarray(large[2:5]), whole[2:5])
