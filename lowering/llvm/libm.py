"""Which of NumPy's functions of doubles are those of a C library whose errors are known."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

__all__ = ["serves"]


def serves(functions: dict[str, Any], *arguments: Any) -> bool:
    """Are these ufuncs the functions of glibc, as good as they are since its version 2.28?

    Parameters
    ----------
    functions : dict of str to ufunc
        By what C calls them.
    *arguments : ndarray
        What both are given; doubles.
    """
    name, version = platform.libc_ver()
    try:
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28):
            return False
        library = ctypes.CDLL("libm.so.6")
        for symbol, ufunc in functions.items():
            function = getattr(library, symbol)
            function.argtypes, function.restype = (ctypes.c_double,) * len(arguments), ctypes.c_double
            if list(map(function, *(a.tolist() for a in arguments))) != ufunc(*arguments).tolist():
                return False
    except (OSError, AttributeError, ValueError):
        return False
    return True
