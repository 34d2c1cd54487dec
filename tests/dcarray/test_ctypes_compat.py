"""Wrapped arrays as arguments of functions of C libraries."""

import ctypes
import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.jit import decorator


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any], None]:
    """A program that calls the C library with types made by NumPy, where arrays are wrapped."""
    monkeypatch.setattr(decorator, "is_needed", lambda: True)

    @dc.accelerate
    def program(to: Any, source: Any) -> None:
        kind = np.ctypeslib.ndpointer(dtype=np.float64, ndim=1, flags="C_CONTIGUOUS")
        assert kind is np.ctypeslib.ndpointer(np.float64, 1, flags="C_CONTIGUOUS")
        library = ctypes.CDLL(None)
        move = library["memmove"]
        move.argtypes, move.restype = [kind, kind, ctypes.c_size_t], None
        move(to, source, source.nbytes)

    return program


@pytest.mark.skipif(sys.platform == "win32", reason="no C library without a name")
@pytest.mark.parametrize("n", [7, 30_000])
def test_a_library_reads_and_writes(n: int, copied: Callable[[Any, Any], None]) -> None:
    plain = np.arange(float(n))
    x, y = dc.asarray(plain) * 2, dc.asarray(np.zeros(n)) + 1
    z = y + 1  # of what was there before
    copied(y, x)
    np.testing.assert_array_equal(y + 1, plain * 2 + 1)
    np.testing.assert_array_equal(z, np.full(n, 2.0))
    copied(x, plain)
    np.testing.assert_array_equal(x, plain)
    with pytest.raises(ctypes.ArgumentError, match="1 dimension"):
        copied(y.reshape(1, -1), x)
    with pytest.raises(ctypes.ArgumentError, match="data type"):
        copied(y, dc.asarray(np.arange(n)))
    with pytest.raises(ctypes.ArgumentError, match="must be an ndarray"):
        copied([1.0], x)


@pytest.mark.skipif(not BUILT or sys.version_info >= (3, 12), reason="Python has words of its own")
@pytest.mark.parametrize("n", [8, 300])
def test_memory_with_gaps_is_refused_in_numpys_words(n: int) -> None:
    m = np.arange(float(n * n)).reshape(n, n)
    with pytest.raises(ValueError) as theirs:
        hashlib.sha256(m[:, ::2])
    with pytest.raises(ValueError) as ours:
        hashlib.sha256(dc.asarray(m)[:, ::2])
    assert str(ours.value) == str(theirs.value)
    assert hashlib.sha256(dc.asarray(m)).digest() == hashlib.sha256(m).digest()


def test_writes_through_an_address_are_noticed() -> None:
    x = dc.asarray(np.zeros(100_000))
    memory = ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_double))
    y = x + 5
    memory[0] = 9
    assert (y[0], x[0]) == (5, 9)
    x += 1
    assert memory[0] == 10
