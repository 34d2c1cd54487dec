"""The buffer protocol of Python 3.12, ``__buffer__``, for classes of Python 3.11 too.

With it ``memoryview(x)``, ``bytes(x)``, ``file.write(x)``, hashes and compiled code take wrapped arrays like
NumPy's.  In Python 3.11 only types written in C support it: here the buffer slot of the class, at its offset
in CPython's type object, is set to a function that calls ``__buffer__``.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

import numpy as np

# Offsets in CPython 3.11's PyTypeObject and Py_buffer of 64-bit machines.
_TP_AS_BUFFER, _TP_FLAGS = 160, 168
_VIEW_OBJ = 8


@lru_cache(1024)
def _read_back(dtype: np.dtype[Any]) -> bool:
    try:
        example: Any = np.empty(1, dtype)
        return np.asarray(memoryview(example)).dtype == dtype
    except (BufferError, RuntimeError, RuntimeWarning, TypeError, ValueError):
        return False  # NumPy cannot read its own description either


def survives(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy reads this dtype unchanged from a buffer.

    NumPy asks a wrapped array for its buffer first, and has to get the array's own dtype.
    """
    return dtype.metadata is None and not dtype.isalignedstruct and _read_back(dtype)


def refusal(dtype: np.dtype[Any], source: str) -> str:
    """Return the message of the error by which NumPy learns that a buffer of this dtype is not available."""
    return f"NumPy would read another dtype than {text_of(dtype)} from {source}"


def text_of(dtype: np.dtype[Any]) -> str:
    """Return the text of a dtype, cached since NumPy takes 10 us for one of dates."""
    return _TEXTS(dtype) if dtype.kind in "mM" else str(dtype)


_TEXTS = lru_cache(256)(str)


def enable(cls: type) -> None:
    """Let ``__buffer__`` of a class serve the buffer protocol.

    Parameters
    ----------
    cls : type
        A class with a method ``__buffer__(self, flags)`` that returns a memoryview.

    Notes
    -----
    Python 3.12 and later do so themselves.  In CPython 3.11 this function cannot pass on an error: the
    consumer reports that there is no buffer, or Python raises `SystemError`.  The C module, where it was
    built, replaces it and raises the error itself.
    """
    if sys.version_info >= (3, 12) or sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return
    if ctypes.c_ulong.from_address(id(cls) + _TP_FLAGS).value != cls.__flags__:
        return  # another layout, as in a debug build
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
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(slot))  # kept alive, like the class
