"""Distributed ufuncs without a kernel: NumPy on each rank's own elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.algorithms.fancy_indexing import broadcast_local
from dcarray.comm.algorithms.products import matmul
from dcarray.comm.algorithms.reductions import reduction
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout, without_cyclic
from dcarray.comm.layout.layouts import Layout
from dcarray.core.handle import Handle
from dcarray.core.strides import axes_of
from dcarray.distributed.function_dispatch import (
    DISTRIBUTED,
    dist_array_of,
    dist_operand,
    order_dependent,
    require,
)
from dcarray.distributed.spmd_executor import MOST_SERIAL

_NUMBERS = "biufc"
_REDUCTIONS = frozenset(
    [
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or,
        np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm,
    ]
)  # fmt: skip
_KINDS = ("divide", "over", "under", "invalid")


def _call(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> Any:
    """Call an element-wise ufunc, or `numpy.matmul`."""
    if ufunc is np.matmul:
        require(not kwargs)
        return _matmul(*inputs)
    require(ufunc.signature is None and kwargs.keys() <= {"dtype", "casting"})
    arrays = [dist_array_of(x) if isinstance(x, (Handle, np.ndarray)) else None for x in inputs]
    pieces = [x for x in arrays if x is not None]
    require(all(x.dtype.kind in _NUMBERS for x in pieces))
    # not one made by `numpy.frompyfunc`, of a function that may have side effects
    require(any(set(types) - set("O->") for types in ufunc.types))
    others = [np.asarray(y) for x, y in zip(arrays, inputs, strict=True) if x is None]
    require(not any(y.dtype.hasobject for y in others))  # objects are not sent
    try:
        shape = np.broadcast_shapes(*(x.shape for x in pieces))
    except ValueError:
        ufunc(*[x if a is None else _like(a) for x, a in zip(inputs, arrays, strict=True)], **kwargs)
        raise  # unless NumPy has raised its own error, or one about the dtypes
    require(shape)
    return _by_blocks(ufunc, inputs, arrays, _layout(pieces, shape), kwargs)


def _layout(pieces: list[DistArray], shape: tuple[int, ...]) -> Layout:
    """Return the layout of a result: that of a cut operand of its shape, if there is one, else rows."""
    for x in pieces:
        if x.shape == shape and any(map(x.layout.is_cut, range(x.ndim))):
            return without_cyclic(x.layout)
    return row_layout(shape, pieces[0].comm.size)


def _by_blocks(
    ufunc: np.ufunc, inputs: Any, arrays: list[DistArray | None], layout: Layout, kwargs: dict[str, Any]
) -> Any:
    (comm,) = {x.comm for x in arrays if x is not None}
    given = [x if a is None else broadcast_local(a, layout) for x, a in zip(inputs, arrays, strict=True)]
    messages: list[str] = []
    state: Any = np.geterr()
    with np.errstate(all="call", call=lambda message, flag: messages.append(message)):
        try:
            result = ufunc(*given, **kwargs)
        except Exception:
            result = None
    # the names in `numpy.errstate` of floating-point error messages
    kinds = [next((kind for kind in _KINDS if text.startswith(kind)), "invalid") for text in messages]
    failed = np.array(result is None or any(state[kind] != "ignore" for kind in kinds))
    comm.allreduce(failed, failed, "lor")
    require(not failed)  # NumPy raises or warns, on all ranks
    if isinstance(result, tuple):
        return tuple(DistArray(comm, layout, np.asarray(one)) for one in result)
    return DistArray(comm, layout, np.asarray(result))


def _matmul(a: Any, b: Any) -> Any:
    first, second = dist_operand(a), dist_operand(b)
    require(all(x.ndim and x.dtype.kind in _NUMBERS for x in (first, second)))
    if first.size and second.size:
        return matmul(first, second)
    return DistArray.replicated(np.matmul(_like(first), _like(second)), first.comm)


def _like(x: DistArray) -> Any:
    """Return an array of the shape and dtype of a distributed one, which takes no memory."""
    return np.broadcast_to(x.dtype.type(), x.shape)


def _reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = np._NoValue, where: Any = True,
) -> Any:  # fmt: skip
    x = dist_operand(array)
    require(ufunc in _REDUCTIONS and out is None and initial is np._NoValue and where is True)
    require(x.dtype.kind in _NUMBERS and x.ndim and x.size and axis != ())
    if order_dependent(ufunc, dtype or x.dtype) and x.size <= MOST_SERIAL:  # in the order of one process
        result = ufunc.reduce(x.gather(), axis, dtype, keepdims=bool(keepdims))
        return DistArray.replicated(result, x.comm)
    try:
        axes = axes_of(axis, x.ndim)
    except TypeError:
        ufunc.reduce(_like(x), axis)  # NumPy raises its error
        raise
    return reduction(x, ufunc, axes, dtype, bool(keepdims))


DISTRIBUTED[np.ufunc.__call__] = _call
DISTRIBUTED[np.ufunc.reduce] = _reduce
