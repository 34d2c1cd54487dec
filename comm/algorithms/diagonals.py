"""Diagonals and traces of distributed arrays: only the diagonal is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.axes import Axis
from dcarray.comm.layout.layouts import Layout, Spec, Whole
from dcarray.comm.transport.protocol import Array

__all__ = ["diagonal", "owned_indices", "trace"]


def diagonal(x: DistArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DistArray:
    """Return a diagonal of a matrix, or of each of a stack, like `numpy.diagonal`.

    Parameters
    ----------
    x : DistArray
        An array of at least two axes.
    offset : int
        The distance of the diagonal to the right of the main one.
    axis1, axis2 : int
        The axes of the rows and columns of the matrices.

    Returns
    -------
    DistArray
        The diagonals along the last axis, which is whole; the other axes are cut as in `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, or if `axis1` and `axis2` are equal.
    """
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, two = np.lib.array_utils.normalize_axis_tuple((axis1, axis2), x.ndim, allow_duplicate=True)
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    others = [a for a in range(x.ndim) if a not in (one, two)]
    first = max(0, -offset)  # the first row of the diagonal
    length = max(0, min(x.shape[one] - first, x.shape[two] - first - offset))
    axes: list[Spec] = [*(x.layout.axes[a] for a in others), Whole()]
    layout = Layout([*(x.shape[a] for a in others), length], x.layout.grid, axes)
    here = x.local.transpose([*others, one, two])
    values = np.zeros(layout.local_shape(x.comm.rank), x.dtype)
    part_numbers = x.layout.part_indices(x.comm.rank)
    rows, columns = (owned_indices(x.layout.parts[a], part_numbers[a]) for a in (one, two))
    _, r, c = np.intersect1d(rows + offset, columns, assume_unique=True, return_indices=True)
    values[..., rows[r] - first] = here[..., r, c]
    specs = (x.layout.axes[one], x.layout.axes[two])
    cut = [spec.grid_axis for spec in specs if not isinstance(spec, Whole)]
    _, group = x.layout.grid.sub(x.comm.rank, [g in cut for g in range(x.layout.grid.ndim)])
    if len(group) > 1:
        # Each element comes from one rank and has no bit set on the others.
        bits = values.reshape(-1).view(np.uint8)
        x.comm.sub(group).allreduce(bits, bits, "bor")
    return DistArray(x.comm, layout, values)


def trace(x: DistArray, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> DistArray:
    """Return the sum of a diagonal of a matrix, or of each of a stack, like `numpy.trace`.

    Parameters and errors are those of `diagonal`, and `dtype` as for `numpy.sum`.

    Returns
    -------
    DistArray
        Cut as `x` is along the other axes.
    """
    elements = diagonal(x, offset, axis1, axis2)
    layout = Layout(elements.shape[:-1], elements.layout.grid, elements.layout.axes[:-1])
    return DistArray(x.comm, layout, np.asarray(elements.block.sum(axis=-1, dtype=dtype)))


def owned_indices(axis: Axis, part: int) -> Array:
    """Return the indices of an axis that a part owns, in the order in which its memory has them."""
    runs = axis.runs(part)
    parts = [
        (run.start + run.step * np.arange(run.repeats)[:, None] + np.arange(run.length)).ravel()
        for run in runs
    ]
    return np.sort(np.concatenate([*parts, np.empty(0, np.int64)]))
