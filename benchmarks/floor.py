"""Lower bounds for the times of calls on arrays of a class other than NumPy's; `sweep` shows them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

_OPERATORS = """
add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv mod rmod pow
rpow ipow matmul rmatmul and rand iand or ror ior xor rxor lshift rlshift neg abs invert divmod lt
le eq ne gt ge getitem setitem array_function
"""
_METHODS = """
all any argmax astype clip copy cumprod diagonal dot fill flatten item max mean prod ravel reshape
round std sum swapaxes take tolist
"""


class Idle:
    """An array of a class whose methods return immediately, without computing anything."""

    __slots__ = ("array", "ndim", "shape", "size")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.shape = array.shape
        self.ndim = array.ndim
        self.size = array.size

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        return self if out is None else out[0]


def _at_once(self: Idle, *_: Any, **__: Any) -> Idle:
    return self


for _name in [f"__{name}__" for name in _OPERATORS.split()] + _METHODS.split():
    setattr(Idle, _name, _at_once)
for _name in ("T", "imag"):
    setattr(Idle, _name, property(_at_once))


def idle(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of `calls.arrays` as `Idle`, except those that are NumPy's for all contenders."""
    return {k: a if k.isupper() or isinstance(a, int) else Idle(a) for k, a in given.items()}


def _behind(module: ModuleType) -> ModuleType:
    """Return a copy of a module of NumPy with the implementations behind the dispatch of its functions."""
    found = ModuleType(module.__name__)
    for name in dir(module):
        value = getattr(module, name)
        vars(found)[name] = getattr(value, "_implementation", value) if callable(value) else value
    return found


BEHIND = _behind(np)
"""What NumPy's functions are on plain arrays, when it is known that these are."""
BEHIND.linalg, BEHIND.fft = _behind(np.linalg), _behind(np.fft)  # type: ignore[attr-defined]


def floor(seconds: Callable[[Any, dict[str, Any]], float], given: dict[str, Any]) -> float | None:
    """Return a lower bound, in seconds, of a call whose arrays are of another class than NumPy's.

    Parameters
    ----------
    seconds : callable
        Returns the time of the call with a namespace for ``np`` and with some arrays.
    given : dict
        The plain arrays.

    Returns
    -------
    float or None
        NumPy's time for the dispatch to an array of another class, plus that of the computation; None if
        the call needs more of its arrays than `Idle` offers.
    """
    try:
        return seconds(np, idle(given)) + seconds(BEHIND, given)
    except (AttributeError, TypeError, ValueError, IndexError):
        return None
