"""Ufuncs with two results, `numpy.divmod` and `numpy.modf`, recorded as one operation for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.ufunc_loops import resolve
from dcarray.tiering import policy

from . import recorder
from .operands import RunEagerly, kind_of, shape_of

__all__ = ["pair"]


def pair(name: str, inputs: tuple[Any, ...]) -> Any:
    """Record both results of a ufunc with two results.

    Parameters
    ----------
    name : str
        ``"divmod"`` or ``"modf"``.
    inputs : tuple
        Handles, plain arrays and scalars.

    Returns
    -------
    tuple of Handle or NotImplemented
        NotImplemented if the call cannot be recorded.
    """
    try:
        shape = np.broadcast_shapes(*map(shape_of, inputs))
        loop = resolve("floor_divide" if name == "divmod" else "trunc", tuple(map(kind_of, inputs)))
        slow = name == "divmod" and loop is not None and loop[-1] in "fd"  # NumPy's loop is
        recorder.refuse_small(shape, inputs, None, 1 if slow else policy.PASS)
    except (RunEagerly, TypeError, ValueError):
        return NotImplemented
    if loop is None or not shape or not any(isinstance(x, Handle) and shape_of(x) == shape for x in inputs):
        return NotImplemented
    if name == "modf":
        return _modf(inputs[0]) if loop in ("f->f", "d->d") else NotImplemented
    never_warns = isinstance(inputs[1], (int, np.integer)) and inputs[1] not in (0, -1)
    if loop[-1] not in "fd" and not never_warns:
        return NotImplemented  # where something is divided by zero, NumPy says so once
    return recorder.elementwise("floor_divide", inputs), recorder.elementwise("remainder", inputs)


def _modf(x: Any) -> Any:
    """Record the fractional and the integral part of an array; the fraction of infinity is zero."""
    finite = recorder.elementwise("where", (recorder.elementwise("isinf", (x,)), x.dtype.type(0), x))
    part = recorder.elementwise("subtract", (finite, recorder.elementwise("trunc", (finite,))))
    return recorder.elementwise("copysign", (part, x)), recorder.elementwise("trunc", (x,))
