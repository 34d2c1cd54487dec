"""The choice of the operation for `numpy.power`: one exponent for all elements, or one for each.

Given one exponent for all elements of a loop, NumPy's loop squares, takes roots and reciprocals; otherwise it
calls a library, whose last bits differ.  Whether an exponent that is broadcast along some axes only is one
exponent for a loop depends on sizes, buffers and NumPy's version.
"""

from __future__ import annotations

import math
from typing import Any

from dcarray.core.strides import strides_of

from .operands import NoCompiledForm, shape_of

__all__ = ["power_operation"]


def power_operation(exponent: Any, loop: str, shape: tuple[int, ...]) -> str:
    """Return the name of the operation in `dcarray.ir.ops` that computes ``numpy.power`` for these operands.

    Parameters
    ----------
    exponent : Handle, ndarray or scalar
        The second operand of the call.
    loop : str
        The dtypes of the inner loop.
    shape : tuple of int
        The shape of the result.

    Raises
    ------
    Missing
        If that depends on NumPy's internals.
    """
    if loop[0] not in "efdFD":
        raise NoCompiledForm  # a negative exponent is an error, which depends on values
    own = shape_of(exponent)
    if not own:
        return "power"
    if loop[0] not in "fd":
        return "array_power"
    size = math.prod(own)
    if size == 1 < math.prod(shape) and exponent.dtype.char == loop[1]:
        return "power"
    steps = strides_of(exponent)
    if size > 1 and own == shape and all(s or n == 1 for n, s in zip(own, steps, strict=True)):
        return "array_power"
    raise NoCompiledForm
