"""Ufuncs with two results, recorded as an operation for each: `numpy.divmod` and `numpy.modf`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import tracing
from .handle import Handle
from .loops import resolve
from .operands import Eager, kind_of, learn, shape_of

__all__ = ["pair"]

_WORTH = 8  # times the elements below which calls run in NumPy, from which recording wins


def pair(name: str, inputs: tuple[Any, ...]) -> Any:
    """Both results.

    Parameters
    ----------
    name : str
        ``"divmod"`` or ``"modf"``.
    inputs : tuple
        Handles, plain arrays and scalars.

    Returns
    -------
    tuple of Handle or NotImplemented
        NotImplemented if NumPy has to do it.
    """
    try:
        shape = np.broadcast_shapes(*map(shape_of, inputs))
        loop = resolve("floor_divide" if name == "divmod" else "trunc", tuple(map(kind_of, inputs)))
        slow = name == "divmod" and loop is not None and loop[-1] in "fd"  # NumPy's loop is
        tracing.leave_small(shape, inputs, None, 1 if slow else _WORTH)
    except Eager:
        if shape:
            learn(inputs)
        return NotImplemented
    except (TypeError, ValueError):
        return NotImplemented
    if loop is None or not shape or not any(isinstance(x, Handle) and shape_of(x) == shape for x in inputs):
        return NotImplemented
    if name == "modf":
        return _modf(inputs[0]) if loop in ("f->f", "d->d") else NotImplemented
    if loop[-1] not in "fd" and not _harmless(inputs[1]):
        return NotImplemented  # where something is divided by zero, NumPy says so once
    return tracing.elementwise("floor_divide", inputs), tracing.elementwise("remainder", inputs)


def _harmless(divisor: Any) -> bool:
    return isinstance(divisor, (int, np.integer)) and divisor not in (0, -1)


def _modf(x: Any) -> Any:
    """What is behind the point, and what is before it; of infinity nothing is behind it."""
    finite = tracing.elementwise("where", (tracing.elementwise("isinf", (x,)), x.dtype.type(0), x))
    part = tracing.elementwise("subtract", (finite, tracing.elementwise("trunc", (finite,))))
    return tracing.elementwise("copysign", (part, x)), tracing.elementwise("trunc", (x,))
