"""Functions of whole lines along one axis of a distributed array, which is first redistributed if it is
cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import with_whole_axes, without_cyclic
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.comm.transport.protocol import Array

__all__ = ["apply_along_axes", "apply_along_axis"]


def apply_along_axis(x: DistArray, axis: int, function: Callable[[Array], Any]) -> DistArray:
    """Return the results of a function of whole lines along one axis, which may change their length.

    Parameters
    ----------
    x : DistArray
        An array of at least two axes, or one whose axis is whole on every rank.
    axis : int
        The axis, not negative.
    function : callable
        A function from an array to an array of the same shape except for the extent along `axis`, which must
        depend on the old extent alone.

    Returns
    -------
    DistArray
        Whole along `axis`; see `dcarray.comm.layout.derived_layouts.with_whole_axes`.

    Raises
    ------
    LayoutError
        If `x` has only one axis and that is cut.
    """
    layout = with_whole_axes(x.layout, [axis]) if x.layout.is_cut(axis) else without_cyclic(x.layout)
    aligned = x.redistribute(layout)
    values = function(aligned.local)
    shape, axes = list(x.shape), list(aligned.layout.axes)
    shape[axis] = values.shape[axis]
    axes[axis] = Whole()
    return DistArray(x.comm, Layout(shape, aligned.layout.grid, axes), values)


def apply_along_axes(x: DistArray, steps: Sequence[tuple[int, Callable[[Array], Any]]]) -> DistArray:
    """Return the results of functions along several axes, one after the other, in the layout of the last.

    Parameters
    ----------
    x : DistArray
        The array.
    steps : sequence of (int, callable)
        For each step an axis and a function, as for `apply_along_axis`.
    """
    for axis, function in steps:
        x = apply_along_axis(x, axis, function)
    return x
