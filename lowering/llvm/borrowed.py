"""NumPy's own inner loops, called from generated code.

For some functions the vector library and NumPy round differently, and a float32 result that differs in its
last bit shows once it is used in float64.  For those we call the loop that NumPy itself would: a C
function of (pointers, count, strides, data) that needs no interpreter lock.  Where the ufunc objects are
not laid out as NumPy's C headers say, nothing is borrowed.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

# (ufunc, LLVM type): the functions worth it.  Others agree to the last bit, or are several times slower in
# NumPy, or are in float64, where the last bit seldom matters.  A call costs less than ten nanoseconds.
WANTED = frozenset(
    {
        *((name, "float") for name in ("exp", "log", "sin", "cos", "power", "arctanh")),
        ("power", "double"),
    }
)


class _Ufunc(ctypes.Structure):
    """The head of a ufunc object, after the object header."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
    )


def symbol(name: str, t: str) -> str:
    """The name of a loop in generated code; that of its data, if it has any, ends in ``_data``."""
    return f"numpy_{name}_{t}"


@cache
def addresses() -> dict[str, int]:
    """The symbols that could be found, and where they are."""
    found: dict[str, int] = {}
    if sys.implementation.name != "cpython":
        return found
    for name, t in WANTED:
        loop = _loop(getattr(np, name), "f" if t == "float" else "d")
        if loop is not None:
            found[symbol(name, t)] = loop[0]
            if loop[1]:
                found[symbol(name, t) + "_data"] = loop[1]
    return found


def _loop(ufunc: Any, char: str) -> tuple[int, int] | None:
    """The function of a ufunc for one dtype, and the pointer that it is to be given."""
    head = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
    expected = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (head.nin, head.nout, head.nargs, head.ntypes) != expected or head.name != ufunc.__name__.encode():
        return None
    wanted = f"{char * ufunc.nin}->{char}"
    if wanted not in ufunc.types:
        return None
    number = ufunc.types.index(wanted)
    function = head.functions[number]
    return (function, head.data[number] or 0) if function else None
