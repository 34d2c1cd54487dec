"""Distributed ufuncs without a kernel: NumPy on each rank's own elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.comm.algorithms.fancy_indexing import broadcast_local
from dcarray.comm.algorithms.products import matmul
from dcarray.comm.algorithms.reductions import reduction
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout, without_cyclic
from dcarray.comm.layout.layouts import Layout
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.handle import Handle
from dcarray.core.strides import axes_of
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, order_dependent
from dcarray.distributed.spmd_executor import FEW

_NUMBERS = "biufc"
_FOLDS = frozenset(
    [
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or,
        np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm,
    ]
)  # fmt: skip
_KINDS = ("divide", "over", "under", "invalid")


def _called(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> Any:
    """A call of an elementwise ufunc, or of `numpy.matmul`."""
    if ufunc is np.matmul:
        return _multiplied(*inputs) if not kwargs else NOT_DISTRIBUTED
    if ufunc.signature is not None or not kwargs.keys() <= {"dtype", "casting"}:
        return NOT_DISTRIBUTED
    arrays = [dist_array_of(x) if isinstance(x, (Handle, np.ndarray)) else None for x in inputs]
    pieces = [x for x in arrays if x is not None]
    if any(x.dtype.kind not in _NUMBERS for x in pieces):
        return NOT_DISTRIBUTED
    if not any(set(types) - set("O->") for types in ufunc.types):
        return NOT_DISTRIBUTED  # made by `numpy.frompyfunc`, of a function that may have side effects
    if any(x is None and np.asarray(y).dtype.hasobject for x, y in zip(arrays, inputs, strict=True)):
        return NOT_DISTRIBUTED  # objects are not sent
    try:
        shape = np.broadcast_shapes(*(x.shape for x in pieces))
    except ValueError:
        ufunc(*[x if a is None else _like(a) for x, a in zip(inputs, arrays, strict=True)], **kwargs)
        raise  # unless NumPy has raised its own error, or one about the dtypes
    if not shape:
        return NOT_DISTRIBUTED
    return _by_blocks(ufunc, inputs, arrays, _layout(pieces, shape), kwargs)


def _layout(pieces: list[DistArray], shape: tuple[int, ...]) -> Layout:
    """The layout of a result: that of a cut operand of its shape, if there is one, else rows."""
    for x in pieces:
        if x.shape == shape and any(part.parts > 1 for part in x.layout.parts):
            return without_cyclic(x.layout)
    return row_layout(shape, pieces[0].comm.size)


def _by_blocks(
    ufunc: np.ufunc, inputs: Any, arrays: list[DistArray | None], layout: Layout, kwargs: dict[str, Any]
) -> Any:
    (comm,) = {x.comm for x in arrays if x is not None}
    given = [x if a is None else broadcast_local(a, layout) for x, a in zip(inputs, arrays, strict=True)]
    seen: list[str] = []
    state: Any = np.geterr()
    with np.errstate(all="call", call=lambda kind, flag: seen.append(kind)):
        try:
            found = ufunc(*given, **kwargs)
        except Exception:
            found = None
    matter = any(state[kind] != "ignore" for kind in map(_kind, seen))
    wrong = np.array(found is None or matter)
    comm.allreduce(wrong, wrong, "lor")
    if wrong:  # NumPy raises or warns, on all ranks
        return NOT_DISTRIBUTED
    if isinstance(found, tuple):
        return tuple(DistArray(comm, layout, np.asarray(one)) for one in found)
    return DistArray(comm, layout, np.asarray(found))


def _kind(text: str) -> str:
    """The name in `numpy.errstate` of a ufunc's floating-point error message."""
    return next((kind for kind in _KINDS if text.startswith(kind)), "invalid")


def _multiplied(a: Any, b: Any) -> Any:
    one, other = (dist_array_of(x) if isinstance(x, (Handle, np.ndarray)) else None for x in (a, b))
    if one is None or other is None or not one.ndim or not other.ndim:
        return NOT_DISTRIBUTED
    if one.dtype.kind not in _NUMBERS or other.dtype.kind not in _NUMBERS:
        return NOT_DISTRIBUTED
    if 0 not in one.shape + other.shape:
        return matmul(one, other)
    return DistArray.replicated(np.matmul(_like(one), _like(other)), one.comm)


def _like(x: DistArray) -> Any:
    """An array of the shape and dtype that takes no memory."""
    return np.broadcast_to(x.dtype.type(), x.shape)


def _reduced(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = np._NoValue, where: Any = True,
) -> Any:  # fmt: skip
    x = dist_array_of(array)
    if x is None or ufunc not in _FOLDS or out is not None or initial is not np._NoValue or where is not True:
        return NOT_DISTRIBUTED
    if x.dtype.kind not in _NUMBERS or not x.ndim or 0 in x.shape or axis == ():
        return NOT_DISTRIBUTED
    if order_dependent(ufunc, dtype or x.dtype) and math.prod(x.shape) <= FEW:  # in the order of one process
        found = ufunc.reduce(x.gathered(), axis, dtype, keepdims=bool(keepdims))  # type: ignore[call-overload]
        return DistArray.replicated(found, x.comm)
    try:
        axes = axes_of(axis, x.ndim)
    except TypeError:
        ufunc.reduce(_like(x), axis)  # NumPy raises its error
        raise
    return reduction(x, ufunc, axes, dtype, bool(keepdims))


DISTRIBUTED[np.ufunc.__call__] = _called
DISTRIBUTED[np.ufunc.reduce] = _reduced
