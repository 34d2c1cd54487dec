"""Pure functions: those of Python and NumPy of which it is known that a call only computes its result."""

from __future__ import annotations

import cmath
import math
from functools import cache, partial
from typing import Any

import numpy as np

__all__ = ["is_pure"]

_BUILTINS = frozenset([abs, all, any, bool, complex, float, int, len, list, max, min, sorted, sum, tuple])
# NumPy's functions that have side effects or change their arguments.
_WRITES = "copyto fill_diagonal place put put_along_axis putmask"
_READS = "fromfile fromregex genfromtxt load loadtxt save savetxt savez savez_compressed"
_STATE = (
    "frompyfunc get_printoptions info set_printoptions setbufsize seterr seterrcall show_config show_runtime"
)
_IMPURE = frozenset(f"{_WRITES} {_READS} {_STATE} test".split())


def is_pure(function: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether a call is known to be pure: its result depends on its arguments alone, and it changes nothing.
    Functions of the program are not known, nor is what arguments of other types do.

    Parameters
    ----------
    function : callable
        The function, whose first argument is a read-only array.
    *args, **kwargs
        Its other arguments.
    """
    if isinstance(function, partial):
        return is_pure(function.func, *function.args, *args, **(function.keywords | kwargs))
    try:
        known = function in _BUILTINS or function in _pure_functions()
    except TypeError:  # it has no hash
        return False
    may_write = "out" in kwargs or (isinstance(function, np.ufunc) and np.ndarray in map(type, args))
    return known and not may_write and all(map(_is_data, (*args, *kwargs.values())))


def _is_data(value: Any) -> bool:
    """Whether a value is a number, a text, or an array or sequence of these, to which no code belongs."""
    if type(value) in (list, tuple):
        return all(map(_is_data, value))
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__module__ == "numpy" and not value.dtype.hasobject
    return value is None or type(value) in (bool, int, float, complex, str, bytes, slice)


@cache
def _pure_functions() -> frozenset[Any]:
    """Return the pure functions of NumPy, their counterparts in dcarray, and those of `math` and `cmath`."""
    from dcarray import fft, linalg
    from dcarray.api.functions.namespace import lookup

    functions = [f for module in (math, cmath) for f in vars(module).values() if callable(f)]
    for theirs, ours in (
        (np, lookup),
        (np.linalg, partial(getattr, linalg)),
        (np.fft, partial(getattr, fft)),
    ):
        for name, value in vars(theirs).items():
            if callable(value) and not isinstance(value, type) and name not in _IMPURE and name[0] != "_":
                functions += [value, ours(name)]
    return frozenset(functions)
