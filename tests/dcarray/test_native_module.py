"""Small arrays through the C module, and without it."""

import gc
import operator
import sys
from typing import Any

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.core import window
from dcarray.core.native import BUILT

BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.pow, divmod, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip
INPLACE = (
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod,
    operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift, operator.ipow,
)  # fmt: skip


class Sub(dc.ndarray):
    """A subclass that says nothing."""

    __slots__ = ()


class Other:
    """Somebody else's operand."""

    def __radd__(self, other: Any) -> str:
        return f"after {type(other).__name__}"

    def __add__(self, other: Any) -> str:
        return f"before {type(other).__name__}"

    __array_ufunc__ = None


OPERANDS: tuple[Any, ...] = (
    np.arange(1, 7), np.arange(1.0, 7).reshape(2, 3), np.arange(6) % 2 == 0, np.float64(2), np.array(3), 2,
    2.5, True, 1 + 2j, np.int8(3), "text", None, [1, 2, 3, 4, 5, 6], np.array(list("abcdef"), object),
    np.arange(4.0), np.zeros((0, 3)), np.float32(1.5), 2**70,
)  # fmt: skip


def outcome(f: Any, *args: Any) -> Any:
    """What a call gives: plain values with their kind, or the kind of error."""
    try:
        result = f(*args)
    except Exception as error:
        return type(error)
    return [described(r) for r in result] if isinstance(result, tuple) else described(result)


def described(r: Any) -> Any:
    if isinstance(r, dc.ndarray | np.ndarray):
        a = np.asarray(r)
        return "array", a.dtype, a.shape, a.tolist() if a.dtype.kind == "O" else a.tobytes()
    return type(r), repr(r)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", BINARY, ids=lambda f: f.__name__)
def test_binary_operators(f: Any) -> None:
    for a in OPERANDS:
        if isinstance(a, np.ndarray) and a.ndim:
            for b in OPERANDS:
                x, y = dc.asarray(a.copy()), dc.asarray(b.copy()) if isinstance(b, np.ndarray) else b
                assert outcome(f, x, y) == outcome(f, a, b), (a, b)
                if not isinstance(b, np.ndarray | np.generic):
                    assert outcome(f, b, x) == outcome(f, b, a), (b, a)
                assert outcome(f, a, y) == outcome(f, a, b), (a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", INPLACE, ids=lambda f: f.__name__)
def test_inplace_operators(f: Any) -> None:
    for a in OPERANDS:
        if isinstance(a, np.ndarray) and a.ndim:
            for b in OPERANDS:
                c, x = a.copy(), dc.asarray(a.copy())
                y = dc.asarray(b.copy()) if isinstance(b, np.ndarray) else b
                kept = x
                assert outcome(f, x, y) == outcome(f, c, b), (a, b)
                assert described(kept) == described(c)


KEYS: tuple[Any, ...] = (
    0, -1, slice(1, None), (0, slice(None, None, 2)), (None, 1), Ellipsis, (slice(None), -1), [0, 1], (0, 1),
    9, "name", np.array([1, 0]), np.array([[True, False, True], [False, True, True]]), 1.5, (0, 0, 0),
    np.int64(1),
)  # fmt: skip


def test_indexing() -> None:
    a = np.arange(6.0).reshape(2, 3)
    for key in KEYS:
        for k in (key, dc.asarray(key)) if isinstance(key, np.ndarray) else (key,):
            c, x = a.copy(), dc.asarray(a.copy())
            assert outcome(operator.getitem, x, k) == outcome(operator.getitem, c, key), key
            for value in (7, np.float32(2), "no", np.arange(3.0), dc.asarray(np.arange(3.0)), None):
                plain = np.asarray(value) if isinstance(value, dc.ndarray) else value
                assert outcome(operator.setitem, x, k, value) == outcome(operator.setitem, c, key, plain)
                assert described(x) == described(c)
    with pytest.raises(ValueError):
        del x[0]


def test_other_operands_and_subclasses() -> None:
    x = dc.asarray(np.arange(3))
    assert x + Other() == "after ndarray"
    assert Other() + x == "before ndarray"
    sub = object.__new__(Sub)
    sub._small = np.arange(3)
    for result in (sub + x, x + sub, sub + 1, 1 + sub, sub * sub):
        assert isinstance(result, dc.ndarray)
        assert result.shape == (3,)
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_a_large_result_of_small_arrays_is_recorded() -> None:
    x, y = dc.asarray(np.arange(300.0)[:, None]), dc.asarray(np.arange(300.0))
    for outer in (x + y, np.add(x, y), x < y):
        assert outer._small is None
    assert np.array_equal(x + y, np.asarray(x) + np.asarray(y))


def test_references_are_counted() -> None:
    a, b = np.arange(5.0), np.arange(5.0)
    x, y = dc.asarray(a), dc.asarray(b)
    key, wrong = slice(1, 3), "name"

    def work() -> None:
        assert (x + y - 2.0) is not None
        np.sqrt(x)
        np.divmod(x, 3.0)
        x < y  # noqa: B015
        x[key] = x[key] * -y[key]
        for bad in (lambda: x + wrong, lambda: x[wrong], lambda: np.add(x, y, casting="no", dtype="i1")):
            with pytest.raises((TypeError, IndexError)):
                bad()

    work()
    counted = (a, b, x, y, key, wrong, np.sqrt, type(x))
    gc.collect()
    before = [sys.getrefcount(o) for o in counted]
    for _ in range(200):
        work()
    gc.collect()
    after = [sys.getrefcount(o) for o in counted]
    assert max(n - m for n, m in zip(after, before, strict=True)) < 100, (before, after)


WITHOUT = """
import sys
sys.modules["dcarray._native.extension"] = None
import pytest
sys.exit(pytest.main([*sys.argv[1:], "-p", "no:cacheprovider"]))
"""


def test_everything_works_without_the_module() -> None:
    here = __file__
    if sys.modules.get("dcarray._native.extension", here) is None:
        pytest.skip("this is the run without it")
    others = [here.replace("native_module", name) for name in ("like_ndarray", "functions_views")]
    python("-c", WITHOUT, here, *others)


def test_windows_of_slices() -> None:
    rng = np.random.default_rng(1)

    def number(low: int, high: int) -> Any:
        return None if rng.random() < 0.3 else int(rng.integers(low, high))

    served = 0
    for _ in range(3000):
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(0, 6, ndim))
        parts = [
            (int(rng.integers(0, 5)), int(rng.integers(-2, 3)), k) for k in rng.permutation(ndim).tolist()
        ]
        index = None if rng.random() < 0.5 else (*parts, (7, 0, None))
        steps = (None, None, 1, 1, 2, -1)
        key = tuple(
            slice(number(-7, 8), number(-7, 8), steps[int(rng.integers(6))])
            for _ in range(int(rng.integers(1, ndim + 1)))
        )
        found = window.slice_window(shape, index, key)
        if found is not None:
            served += 1
            assert found == window.getitem(shape, index or window.identity(ndim), key)
    assert served > 500
    assert window.slice_window((3, 4), None, (0, slice(1, None))) is None
    with pytest.raises(TypeError):
        window.slice_window((3,), None, (slice("a", None),))


def test_windows_of_any_basic_key(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)

    def one(n: int) -> Any:
        kind = int(rng.integers(6))
        if kind == 0:
            return None
        if kind < 3:
            return int(rng.integers(-n - 1, n + 1))
        ends = [None if rng.random() < 0.3 else int(rng.integers(-7, 8)) for _ in "ab"]
        return slice(*ends, (None, 1, 2, -1, -3)[int(rng.integers(5))])

    def found(*args: Any) -> Any:
        try:
            return window.getitem(*args)
        except IndexError as error:
            return str(error)

    cases: list[Any] = []
    for _ in range(4000):
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(0, 6, ndim))
        index = (*((int(rng.integers(9)), int(rng.integers(-2, 3)), k) for k in range(ndim)), (7, 0, None))
        key: Any = tuple(one(shape[min(k, ndim - 1)]) for k in range(int(rng.integers(0, ndim + 2))))
        if rng.random() < 0.2:
            key = one(shape[0])
        elif rng.random() < 0.1:
            key = (..., *key)
        cases.append((shape, index, key, found(shape, index, key)))
    monkeypatch.setattr(window, "index_window", None)
    for shape, index, key, was in cases:
        assert was == found(shape, index, key)


@pytest.mark.parametrize("below", [0, 100, 16384])
def test_little_windows_of_large_arrays(below: int) -> None:
    rng = np.random.default_rng(below)
    statements: tuple[Any, ...] = (
        lambda a, i, j: operator.setitem(a, (slice(None), j), a[:, i] * 2 + a[:, j]),
        lambda a, i, j: operator.setitem(a, i, a[j] - a[i]),
        lambda a, i, j: operator.setitem(a, (i, j), a[j, i] + 1),
        lambda a, i, j: operator.setitem(a, slice(i, i + 3), a[j : j + 3]),
        lambda a, i, j: operator.setitem(a, (Ellipsis, j), i),
        lambda a, i, j: operator.iadd(a[i], a[j]),
        lambda a, i, j: operator.imul(a[1:-1, j], 0.5),
        lambda a, i, j: operator.iadd(a, 1),  # pending
        lambda a, i, j: operator.setitem(a, slice(None), a[::-1] * 0.5),
        lambda a, i, j: operator.setitem(a.T, (i, slice(2, 9)), -a[j, 2:9]),
        lambda a, i, j: operator.setitem(a[i:], (0, None, slice(None, None, 2)), abs(a[j, ::2])),
        lambda a, i, j: a[i].tolist(),
    )
    with dc.options(eager_below=below, jit="off"):
        for _ in range(8):
            plain = rng.random((150, 150))
            ours = dc.asarray(plain.copy())
            for _ in range(30):
                f, i, j = statements[int(rng.integers(len(statements)))], *rng.integers(0, 140, 2).tolist()
                assert outcome(f, plain, i, j) == outcome(f, ours, i, j)
            assert np.array_equal(plain, ours)
            view, seen = ours[3], ours[:, 4]
            assert view[5] == plain[3, 5] and seen.shape == (150,)
            view[...] = 7
            assert np.all(np.asarray(ours)[3] == 7)


def test_little_windows_that_are_not_for_writing_or_not_of_numbers() -> None:
    fixed = np.zeros((200, 200))
    fixed.flags.writeable = False
    x = dc.asarray(fixed)
    with pytest.raises(ValueError, match="read-only"):
        x[3] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        x[3, 4] = 1.0
    things = dc.asarray(np.full((200, 200), None))
    small = dc.asarray(np.arange(3))
    things[5, 5] = small
    assert things[5, 5] is small or np.array_equal(things[5, 5], small)
    with pytest.raises(IndexError):
        x[200]
    with pytest.raises(IndexError):
        x[0, 0, 0]


def test_functions_and_methods_of_small_arrays():
    """In C or not, results are arrays of ours, views are views, and what is no array stays what it is."""
    a = np.arange(12.0).reshape(3, 4)
    x = dc.asarray(a)
    for got, want in [
        (np.dot(x, x.T), np.dot(a, a.T)),
        (np.concatenate((x, x[:1]), axis=0), np.concatenate((a, a[:1]))),
        (np.where(x > 3), np.where(a > 3)),
        (np.linalg.svd(x, compute_uv=False), np.linalg.svd(a, compute_uv=False)),
        (x.copy("F"), a.copy("F")),
        (x.astype(np.int8, copy=True), a.astype(np.int8)),
        (np.linalg.qr(x), np.linalg.qr(a)),
    ]:
        if isinstance(want, tuple):
            assert type(got) is type(want) and len(got) == len(want)
            assert all(type(g) is dc.ndarray for g in got)
        else:
            assert type(got) is dc.ndarray and got.flags.f_contiguous == want.flags.f_contiguous
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
    x.reshape(4, 3)[0, 0] = 50
    np.flip(x)[0, 0] = 60
    assert a[0, 0] == 50 and a[2, 3] == 60
    assert x.astype(float, copy=False) is x and np.add(x, 1, out=x) is x
    assert type(x.sum()) is np.float64 and x.item(1) == 2.0 and x.fill(2) is None and x[1, 1] == 2
    out = dc.asarray(np.empty(4))
    assert np.sum(x, axis=0, out=out) is out and x.sum(axis=0, out=out) is out
    with pytest.raises(TypeError):
        x.copy(nonsense=1)
    with pytest.raises(ValueError):
        x.reshape(5, 5)
    plain = np.arange(3.0)
    assert type(np.concatenate((x[0], plain))) is dc.ndarray
    assert np.broadcast_to(x[0], (5000, 4)).shape == (5000, 4)


def test_methods_of_little_windows():
    """NumPy works on them while nothing is pending; what is a view of theirs is a window."""
    a = np.arange(40000.0).reshape(200, 200)
    x = dc.asarray(a.copy())
    row = x[3]
    row.reshape(20, 10)[0, 1] = -1
    np.flip(row)[0] = -2
    assert x[3, 1] == -1 and x[3, 199] == -2
    x *= 2  # pending now
    assert row.sum() == x[3].sum() == np.asarray(x)[3].sum()
    copied = x[3].copy()
    x += 1
    assert copied[1] == -2 and row.copy()[1] == -1 and row.max() == 2 * a[3, 198] + 1
    np.testing.assert_array_equal(
        np.tensordot(x[:5, :5], x[:5, :5], 1), np.asarray(x)[:5, :5] @ np.asarray(x)[:5, :5]
    )


KEYWORDS: tuple[dict[str, Any], ...] = (
    {}, {"casting": "unsafe"}, {"casting": "no"}, {"dtype": "f4"}, {"dtype": np.float32}, {"order": "F"},
    {"where": np.arange(6) > 2}, {"nonsense": 1},
)  # fmt: skip


@pytest.mark.parametrize("more", KEYWORDS, ids=str)
def test_results_into_arrays(more: dict[str, Any]) -> None:
    frozen = np.zeros(6)
    frozen.flags.writeable = False
    for out in (np.zeros(6), np.zeros((2, 6)), np.zeros(6, "f4"), np.zeros(6, int), np.zeros(5), frozen):
        for f, args in (
            (np.add, (np.arange(6.0), 2.5)),
            (np.sqrt, (np.arange(6),)),
            (np.less, (np.ones(6), 2)),
        ):

            def plain(f: Any = f, args: Any = args, out: Any = out) -> Any:
                x = out.copy() if out is not frozen else out
                return f(*args, out=x, **more) is x, x

            def ours(f: Any = f, args: Any = args, out: Any = out) -> Any:
                x = dc.asarray(out.copy() if out is not frozen else out)
                return f(dc.asarray(args[0]), *args[1:], out=x, **more) is x, np.asarray(x)

            assert outcome(ours) == outcome(plain)


def test_text_into_arrays() -> None:
    for a in (
        np.array(["a", "b"]),
        np.array([b"a", b"b"]),
        np.zeros(2),
        np.zeros(2, object),
        np.zeros((), "U2"),
    ):
        for key in (0, (), slice(1, None), 5):
            for text in ("cd", b"cd", "1.5", b"1"):

                def put(x: Any, key: Any = key, text: Any = text) -> Any:
                    x[key] = text
                    return np.asarray(x)

                assert outcome(put, dc.asarray(a.copy())) == outcome(put, a.copy())


def test_elements_of_large_arrays() -> None:
    x = dc.arange(40_000.0)
    twice = x * 2  # is to see what was there
    part = x[1:-1]
    part[3] = 7
    part[-1] = x[4]
    x[(0,)] = -1
    assert (x[4], x[39_998], x[0], part[3]) == (7, 7, -1, 7)
    assert (twice[4], twice[39_998], twice[0]) == (8, 79_996, 0)
    square = (dc.zeros((200, 200)) + 1)[:, ::-1]
    square[2, 3] = "5"
    square[-1, -1] += 1
    assert (square[2, 3], square[199, 199], square.sum()) == (5, 2, 40_005)
    with pytest.raises(IndexError):
        part[39_998] = 0
    with pytest.raises(ValueError, match="could not convert"):
        square[0, 0] = "text"


def test_small_arrays_as_keys() -> None:
    a = np.arange(12.0).reshape(3, 4)
    wrapped: tuple[Any, ...] = (
        a > 5, np.array([True, False, True]), np.array([2, 0, 0]), np.array(1), np.array([], bool),
        np.array([], np.intp), np.array([3, 9]), np.array([0.5]), (np.array([0, 2]), np.array([1, -1])),
        (np.array([0, 2]), slice(1, None)), (slice(None), np.array([True, False, False, True])),
        (None, np.array([1, 1]), ...), (np.array([0, 1, 2]), np.array([0, 1])),
    )  # fmt: skip

    def done(f: Any, *args: Any) -> Any:
        try:
            return np.array(f(*args))
        except Exception as error:
            return type(error)

    def assigned(x: Any, key: Any, value: Any) -> Any:
        x[key] = value
        return x

    for key in wrapped:
        ours = tuple(map(wrap, key)) if type(key) is tuple else wrap(key)
        pairs = [(done(operator.getitem, a, key), done(operator.getitem, dc.asarray(a), ours))]
        for value in (7, np.float32(2), np.arange(2.0), a[0], "x"):
            x = dc.asarray(a.copy())
            pairs.append((done(assigned, a.copy(), key, value), done(assigned, x, ours, wrap(value))))
        for want, got in pairs:
            assert got is want or (got.dtype == want.dtype and np.array_equal(got, want)), key


def wrap(x: Any) -> Any:
    return dc.asarray(x.copy()) if isinstance(x, np.ndarray) else x


def test_turned() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = dc.asarray(a)
    assert type(x.T) is dc.ndarray and np.array_equal(x.T, a.T)
    x.T[0, 1] = 9
    assert a[1, 0] == 9
    with pytest.raises(AttributeError):
        x.T = x  # type: ignore[misc]
    large = dc.asarray(np.arange(40_000.0).reshape(200, 200))
    assert np.array_equal(large.T[3], np.asarray(large)[:, 3])


def test_small_arrays_know_all_functions_whatever_is_asked_first() -> None:
    if not BUILT:
        pytest.skip("it is the C module that knows them")
    program = """
import numpy as np, dcarray as dc
{}
from dcarray.api.functions import native_routes as small
missing = [f.__name__ for f in small.functions() if f not in small._behind]
assert not missing, missing
"""
    for first in (
        "import dcarray.api.functions",
        "np.sum(dc.asarray(np.arange(3.0)))",
        "dc.roll",
        "import dcarray.api.functions.histograms",
    ):
        python("-c", program.format(first))
