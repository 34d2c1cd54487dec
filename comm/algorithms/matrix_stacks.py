"""Functions of stacks of matrices: each rank computes them for its part of the distributed stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import even_blocks, with_whole_axes
from dcarray.comm.layout.layouts import Layout, Spec, Whole
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.protocol import Communicator
from dcarray.comm.transport.sparse_alltoall import allgather

from .fancy_indexing import broadcast_local

__all__ = ["apply_to_stacks", "call_on_all"]


def apply_to_stacks(parts: Sequence[DistArray], inner: Sequence[int], function: Callable[..., Any]) -> Any:
    """Apply a function of matrices or vectors (like `numpy.linalg.solve`) to distributed stacks of them.

    The stacks are broadcast against each other.

    Parameters
    ----------
    parts : sequence of DistArray
        The stacks, on the same ranks.
    inner : sequence of int
        For each stack, the number of its last axes that the function works on.  At least one stack must have
        more axes.
    function : callable
        A function from arrays (perhaps empty stacks) to an array or a tuple of arrays, whose first axes are
        those of the stack.

    Returns
    -------
    DistArray or tuple of DistArray
        The results of the function, distributed along the axes of the stack.

    Raises
    ------
    Exception
        If the function raises an exception on one rank; it is raised on all ranks.
    """
    depths = [x.ndim - n for x, n in zip(parts, inner, strict=True)]
    lead, depth = max(zip(parts, depths, strict=True), key=lambda one: (one[1], one[0].layout.grid.ndim))
    outer = np.broadcast_shapes(*(x.shape[:n] for x, n in zip(parts, depths, strict=True)))
    even = even_blocks(with_whole_axes(lead.layout, range(depth, lead.ndim)))
    specs: list[Spec] = list(even.axes[:depth])
    given = []
    for x, n in zip(parts, depths, strict=True):
        skipped = depth - n  # an operand without stack axes stays so
        over = Layout(
            (*outer[skipped:], *x.shape[n:]), even.grid, [*specs[skipped:], *[Whole()] * (x.ndim - n)]
        )
        given.append(broadcast_local(x, over))
    comm = lead.comm
    results = call_on_all(comm, lambda: function(*given))

    def piece(some: Any) -> DistArray:
        values = np.asarray(some)
        kinds = np.frombuffer(allgather(comm, np.frombuffer(values.dtype.char.encode(), np.uint8)), "S1")
        values = values.astype(np.result_type(*(np.dtype(kind.decode()) for kind in kinds)), copy=False)
        inner_shape = values.shape[depth:]
        return DistArray(
            comm, Layout((*outer, *inner_shape), even.grid, [*specs, *[Whole()] * len(inner_shape)]), values
        )

    if not isinstance(results, tuple):
        return piece(results)
    pieces: Any = map(piece, results)
    return type(results)(*pieces) if hasattr(results, "_fields") else tuple(pieces)


def call_on_all(comm: Communicator, call: Callable[[], Any]) -> Any:
    """Return the result of `call` on this rank; an exception on one rank is raised on all."""
    error: Exception | None = None
    try:
        result = call()
    except Exception as caught:
        error = caught
    failed = allgather(comm, np.bool_(error is not None))
    if failed.any():
        raise broadcast_object(comm, error, int(np.argmax(failed)))
    return result
