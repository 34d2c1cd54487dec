"""Memory of temporaries while NumPy does everything at once: it is used again where nobody can see that."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core.multiarray import get_handler_name  # type: ignore[attr-defined]
from written import written

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.plans.background import Background
from dcarray.recording import session
from dcarray.tiering import eager_period

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module does it")
if BUILT:
    from dcarray._native import extension
SHAPE = 150, 200
BYTES = 150 * 200 * 8


@pytest.fixture(autouse=True)
def _options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    background = Background()
    monkeypatch.setattr(session.EXECUTOR, "background", background)
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False, strict=False):
        yield
        eager_period.end()
    background._stop()  # what has begun must not meet another one


def arrays(dtype: Any = float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return (rng.random(SHAPE) * 9).astype(dtype), (rng.random(SHAPE) * 9 + 1).astype(dtype)


def address(x: Any) -> int:
    return int(np.asarray(x).ctypes.data)


# ---- memory --------------------------------------------------------------------------------------------
def test_what_is_dropped_is_used_again_and_given_back() -> None:
    x, y = (dc.asarray(a) for a in arrays())
    assert eager_period.begin(60.0) and get_handler_name() == "dcarray"
    z = x + y
    where = address(z)
    del z
    assert extension.kept_memory() == BYTES
    z = x * y
    assert address(z) == where and extension.kept_memory() == 0
    del z
    eager_period.end()
    assert extension.kept_memory() == 0 and get_handler_name() == "default_allocator"
    np.testing.assert_array_equal(np.asarray(x * y), arrays()[0] * arrays()[1])


def test_nothing_is_kept_when_the_time_is_over() -> None:
    x, y = (dc.asarray(a) for a in arrays())
    assert eager_period.begin(60.0)
    z, late = x + y, x - y
    del z
    assert extension.kept_memory() == BYTES
    eager_period.end()
    assert eager_period.begin(1e-9)
    del late
    assert extension.kept_memory() == 0
    assert not eager_period.is_active() and get_handler_name() == "default_allocator"


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from("ez")), max_size=30))
def test_there_is_never_more_than_was_in_use_at_once(steps: list[tuple[bool, int, str]]) -> None:
    held: list[Any] = []
    assert eager_period.begin(60.0)
    most = used = 0
    for make, k, how in steps:
        if make:
            held.append((np.empty if how == "e" else np.zeros)(20000 + 3000 * k))
            used += held[-1].nbytes
            held[-1][:] = k
        elif held:
            used -= held.pop(k % len(held)).nbytes
        most = max(most, used)
        assert extension.kept_memory() + used <= most
    eager_period.end()
    assert extension.kept_memory() == 0


def test_it_is_numpys_memory_anywhere() -> None:
    """Resized, written to a file, and dropped after its time or by another context."""
    assert eager_period.begin(60.0)
    a = np.arange(30000.0)
    a.resize(70000)
    a[30000:] = 1.0
    b = np.zeros(50000)
    eager_period.end()
    assert a[:30000].sum() == 29999 * 15000 and a[30000:].sum() == 40000 and not b.any()
    del a, b
    assert extension.kept_memory() == 0


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler`"""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("functions", ctypes.c_void_p * 5),
    )


def test_a_handler_of_the_users_stays() -> None:
    from numpy._core import _multiarray_umath as core  # type: ignore[attr-defined]

    pointer, new = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    table = ctypes.cast(pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    usual = ctypes.cast(table[306], ctypes.POINTER(ctypes.py_object))[0]
    mine = _Handler.from_buffer_copy(_Handler.from_address(pointer(usual, b"mem_handler")))
    mine.name = b"mine"
    put = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    put(new(ctypes.addressof(mine), b"mem_handler", None))
    try:
        assert eager_period.begin(60.0) and get_handler_name() == "mine"
        eager_period.end()
        assert get_handler_name() == "mine"
    finally:
        put(usual)


# ---- loops ---------------------------------------------------------------------------------------------
LOOPS = (
    "r = 0.2 * (x + y + x[::-1]) - (y - x) / (x * 2)",
    "t = x + y; r = (t + t) * (t - 1) + keep(x * y) * 2",
    "r = keep(x + y) * 2 - keep(x + y)",
    "r = keep(x - y) + x; r = r + kept[-1]",
    "r = seen(x + y) * 2 - y",
    "r = (Box(x + y) + y).value + (Box(x) + x).value",
    "o = np.array([None, None]); o[0] = x[0] * 2; o[1] = dc.asarray(x + y); r = ((o + x) + y)[1] + o[1]",
    "v = (x + y)[1:]; r = (v * 2 + v)[:5] + v[:5]",
    "r = np.sqrt(x + y) * (x + y) - np.exp(-x) * y",
    "r = (x + y) * 2; r = r + (r - y); t = r + 1; r = t * 2 + t",  # names hold it
    "r = (x + y).T + (x * y).T",
    "r = (x.astype('f') + y.astype('f')) * x + (x.astype('f') * 2.5 - 1)",
    "r = (x + 1j) * x + y - (x + 1j)",
    "r = x + 'a' * 0 + y",
)
PROGRAM = """
import numpy as np
import dcarray as dc

class Box:
    def __init__(self, value): self.value = value
    def __add__(self, other): return Box(self.value + other + self.value)

kept = []

def keep(x):
    kept.append(x)
    return kept[-1]

def seen(x):
    kept.append(np.asarray(x))
    return x

def f(x, y, n):
    for i in range(n):
        {}
        x[1:] = (x + y)[:-1] * 0.5 + y[1:]
    return r, x
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_with_temporaries(loop: str) -> None:
    f = written(PROGRAM.format(loop))
    kept = f.__globals__["kept"]

    def run(wrap: Callable[[Any], Any]) -> Any:
        kept.clear()
        try:
            return [np.array(a) for a in (*f(*map(wrap, arrays()), 4), *kept)]
        except Exception as error:
            return type(error), str(error)

    want = run(np.asarray)
    assert eager_period.begin(60.0)
    got = run(dc.asarray)
    if isinstance(want, tuple):
        assert got == want
        return
    for ours, theirs in zip(got, want, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


RANDOM = """
import numpy as np

def f(x, y, n):
    t = x
    for k in range(1, n):
{}
    return t, x, y
"""
names = st.sampled_from(["x", "y", "t", "x[::-1]", "y[:1]", "2.5", "3", "k"])
terms = st.recursive(
    names,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"np.abs({t})"),
        inner.map(lambda t: f"(-{t})"),
    ),
    max_leaves=9,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["t", "x[:]", "y[1:]"]), terms), min_size=1, max_size=4))
def test_random_loops(steps: list[tuple[str, str]]) -> None:
    lines = "\n".join(
        f"        {target} = ({term} + x){'[1:]' if '1' in target else ''}" for target, term in steps
    )
    f = written(RANDOM.format(lines))
    with np.errstate(all="ignore"):
        try:
            want = f(*arrays(), 4)
        except ZeroDivisionError:  # of the integer k
            with pytest.raises(ZeroDivisionError):
                f(*map(dc.asarray, arrays()), 4)
            return
        assert eager_period.begin(60.0)
        got = f(*map(dc.asarray, arrays()), 4)
        eager_period.end()
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)
