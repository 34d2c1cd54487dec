"""The size limits below which NumPy runs a call at once, instead of recording it.

NumPy runs calls on few elements at once if nothing is pending on them, and calls on no elements always.
"Few" is the option `eager_below` times a factor of this table.
"""

from __future__ import annotations

from typing import Any

from dcarray.core.config import current
from dcarray.core.handle import Handle

__all__ = [
    "ACROSS", "AT_MEMORY_SPEED", "GATHER", "PASS", "SEVERAL", "SHARED",
    "eager", "eager_call", "idle",
]  # fmt: skip

GATHER = 2
"""Elements by a mask: a compiled routine needs some elements until it is sooner than NumPy."""
ACROSS = 4
"""Extrema along an axis whose elements are far apart: NumPy reads them with little use of caches."""
PASS = 8
"""Calls that NumPy computes in one pass over memory.  To record one such call gains nothing, unless the
arrays are some times larger than ``eager_below``.  Calls that are computed at once only while nothing is
pending are, up to this factor, computed at once in any case."""
SEVERAL = 64
"""Calls that are recorded as several statements, each of which costs some microseconds, and the element-wise
operations of iterative solvers: on fewer elements, NumPy is done before a recording has been prepared."""
AT_MEMORY_SPEED = 128
"""Searches of all elements and scans of neighbouring integers: NumPy reads as fast as memory is."""
SHARED = 512
"""Element-wise operations of iterative solvers that several threads share: on fewer elements, one thread is
done before another one has woken up."""


def eager(elements: float, factor: int = 1) -> bool:
    """Whether a call on ``elements`` elements is small enough (or empty) for NumPy to run it at once."""
    return elements < 1 or elements < factor * current().eager_below


def eager_call(elements: int, operands: tuple[Any, ...], factor: int = 1) -> bool:
    """Whether NumPy runs a call at once: it is small, with nothing pending on its operands."""
    return eager(elements, factor) and idle(operands)


def idle(operands: tuple[Any, ...]) -> bool:
    """Whether nothing is pending on the operands' memory; otherwise even small calls are recorded."""
    return not any([isinstance(x, Handle) and not x._idle() for x in operands])
