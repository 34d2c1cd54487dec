"""The buffer protocol of Python 3.12, ``__buffer__``, for classes of Python 3.11 too.

With it ``memoryview(x)``, ``bytes(x)``, ``file.write(x)``, hashes and compiled code take wrapped arrays as
they take NumPy's.  In Python 3.11 only types written in C can have it: its slot in the class, whose place
in memory no longer changes, is filled here with a function that asks ``__buffer__``.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["enable", "survives"]

# Offsets in CPython 3.11's PyTypeObject and Py_buffer of 64-bit machines.
_TP_AS_BUFFER, _TP_FLAGS = 160, 168
_VIEW_OBJ = 8


@lru_cache(1024)
def _read_back(dtype: np.dtype[Any]) -> bool:
    try:
        example: Any = np.empty(1, dtype)
        return np.asarray(memoryview(example)).dtype == dtype
    except (BufferError, RuntimeError, RuntimeWarning, TypeError, ValueError):  # not even NumPy's own
        return False


def survives(dtype: np.dtype[Any]) -> bool:
    """Does NumPy read this dtype from a buffer as it was?

    NumPy asks an array of ours for its buffer before anything else, and is to see its own dtype.
    """
    return dtype.metadata is None and not dtype.isalignedstruct and _read_back(dtype)


def refusal(dtype: np.dtype[Any], source: str) -> str:
    """Why NumPy is not to read this dtype from there."""
    return f"NumPy would read another dtype than {text_of(dtype)} from {source}"


def text_of(dtype: np.dtype[Any]) -> str:
    """The text of a dtype: of one of dates NumPy takes 10 us to make it."""
    return _TEXTS(dtype) if dtype.kind in "mM" else str(dtype)


_TEXTS = lru_cache(256)(str)


def enable(cls: type) -> None:
    """Let ``__buffer__`` of a class serve the buffer protocol.

    Parameters
    ----------
    cls : type
        A class with a method ``__buffer__(self, flags)`` that gives a memoryview.

    Notes
    -----
    Python 3.12 and later does so itself.  In CPython 3.11 an error on the way cannot be told from here: who
    asked for the buffer says that there is none, or Python raises `SystemError`.  The C module, where it was
    built, takes over, and tells.
    """
    if sys.version_info >= (3, 12) or sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return
    if ctypes.c_ulong.from_address(id(cls) + _TP_FLAGS).value != cls.__flags__:
        return  # another layout, as of a debugging build
    fill = ctypes.pythonapi.PyObject_GetBuffer
    fill.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)

    def get(x: Any, view: int, flags: int) -> int:
        ctypes.c_void_p.from_address(view + _VIEW_OBJ).value = None
        try:
            return fill(x.__buffer__(flags), view, flags)  # type: ignore[no-any-return]
        except BaseException:
            return -1

    slot = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(get)
    table = ctypes.c_void_p.from_address(id(cls) + _TP_AS_BUFFER).value
    assert table is not None
    ctypes.c_void_p.from_address(table).value = ctypes.cast(slot, ctypes.c_void_p).value
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(slot))  # as the class, it stays to the end
