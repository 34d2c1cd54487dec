"""The OpenBLAS library in NumPy's wheel, if it has one: the addresses of its routines, for compiled code.

OpenBLAS divides the work of one call among its threads, which is slower than one thread for matrices of some
hundred rows.  Several calls at the same time, each on one thread, are better there: `SingleThreaded`.  The
library is private to NumPy's wheel, so each routine is tested before it is used; without one, callers leave
the work to NumPy.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SingleThreaded", "gemm", "is_available", "syrk", "threads"]

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def is_available() -> bool:
    """Whether the library has been found, so that its number of threads can be set."""
    return _library() is not None


def threads() -> int:
    """Return OpenBLAS's present number of threads; 1 if the library has not been found."""
    library = _library()
    return 1 if library is None else int(library.scipy_openblas_get_num_threads64_())


@cache
def _library() -> Any:
    """Return the library that NumPy has loaded, by opening its path again; None if it is not found."""
    paths = list((Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*"))
    if len(paths) != 1 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        library = ctypes.CDLL(str(paths[0]))
        get, put = library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    except (OSError, AttributeError):
        return None
    get.restype, put.argtypes = ctypes.c_int, [ctypes.c_int]
    return library


class SingleThreaded:
    """A context in which calls of OpenBLAS run on the calling thread alone.

    OpenBLAS's number of threads belongs to the process: it is 1 as long as any thread is in the context.  The
    last thread to leave restores it, unless other code has changed it meanwhile.
    """

    _lock = threading.Lock()
    _inside = 0
    _before = 1

    def __enter__(self) -> SingleThreaded:
        cls, library = SingleThreaded, _library()
        with cls._lock:
            if not cls._inside:
                cls._before = library.scipy_openblas_get_num_threads64_()
                library.scipy_openblas_set_num_threads64_(1)
            cls._inside += 1
        return self

    def __exit__(self, *error: object) -> None:
        cls = SingleThreaded
        with cls._lock:
            cls._inside -= 1
            library = _library()
            if not cls._inside and library.scipy_openblas_get_num_threads64_() == 1:
                library.scipy_openblas_set_num_threads64_(cls._before)

    @classmethod
    def after_fork(cls) -> None:
        """Reset the state in a forked child, where no thread is inside, nor would release the lock."""
        cls._lock = threading.Lock()
        if cls._inside:
            cls._inside = 0
            _library().scipy_openblas_set_num_threads64_(cls._before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SingleThreaded.after_fork)


def _routines(char: str, *names: str) -> list[Any] | None:
    """Return functions of the library without results, given their names with ``?`` for a dtype's letter;
    None if one is missing."""
    library, letter = _library(), _LETTERS.get(char)
    if library is None or letter is None:
        return None
    try:
        routines = [library[f"scipy_{name.replace('?', letter)}64_"] for name in names]
    except AttributeError:
        return None
    for routine in routines:
        routine.restype = None
    return routines


def _scalar(char: str) -> Any:
    """Return the ctypes type of scalar arguments of BLAS; complex ones are passed by address."""
    return {"f": ctypes.c_float, "d": ctypes.c_double}.get(char, ctypes.c_void_p)


def _scalar_arguments(scalars: np.ndarray[Any, Any]) -> list[Any]:
    """Return scalars as arguments of BLAS; the array must live until the call has ended."""
    if _scalar(scalars.dtype.char) is not ctypes.c_void_p:
        return list(scalars.tolist())
    return [scalars.ctypes.data + k * scalars.itemsize for k in range(len(scalars))]


def _product(char: str, name: str, integers: int, operands: int) -> Any:
    """Return a level-3 product of BLAS with its argument types: three flags, ``integers`` extents, and
    matrices with scalars; None if it is missing."""
    routines = _routines(char, name)
    if routines is None:
        return None
    whole, pointer, scale = ctypes.c_int64, ctypes.c_void_p, _scalar(char)
    matrices = [pointer, whole] * operands
    routines[0].argtypes = [*[ctypes.c_int] * 3, *[whole] * integers, scale, *matrices, scale, pointer, whole]
    return routines[0]


@cache
def gemm(char: str) -> int | None:
    """Return the address of ``cblas_?gemm`` for a dtype; None if it is missing or fails a test."""
    routine = _product(char, "cblas_?gemm", 3, 2)
    if routine is None:
        return None
    a, b = np.array([[1, 2, 0], [4, 1, 3]], char), np.array([[1, 2], [3, 4], [5, 7]], char)
    out, scalars = np.ones((2, 2), char), np.array([1, 0], char)
    one, zero = _scalar_arguments(scalars)
    routine(101, 111, 111, 2, 2, 3, one, a.ctypes.data, 3, b.ctypes.data, 2, zero, out.ctypes.data, 2)
    return ctypes.cast(routine, ctypes.c_void_p).value if np.array_equal(out, a @ b) else None


@cache
def syrk(char: str) -> int | None:
    """Return the address of ``cblas_?syrk`` for a dtype; None if it is missing or fails a test."""
    routine = _product(char, "cblas_?syrk", 2, 1)
    if routine is None:
        return None
    a, out, scalars = np.array([[1, 2, 0], [4, 1, 3]], char), np.ones((2, 2), char), np.array([1, 0], char)
    one, zero = _scalar_arguments(scalars)
    routine(101, 121, 111, 2, 3, one, a.ctypes.data, 3, zero, out.ctypes.data, 2)
    want = np.triu(a @ a.T) + np.array([[0, 0], [1, 0]])  # below the diagonal all is as it was
    return ctypes.cast(routine, ctypes.c_void_p).value if np.array_equal(out, want) else None
