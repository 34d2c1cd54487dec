"""Distribution of whole arrays in blocks, their gathering, redistribution and halo exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.comm.exchange.exchange_plan import PendingExchange, start_exchanges
from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.exchange.redistribute import redistribute
from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Block, Layout
from dcarray.comm.transport.agreement import broadcast_object, check_equal
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array, Communicator, sendable
from dcarray.comm.transport.user_arrays import new_like, writable_memory

from .cart import Cart, Ranks, as_grid, ranks_of

__all__ = ["BlockGather", "BlockScatter", "HaloExchange", "Over", "Redistribute", "default_grid"]

Over = Layout | Cart | ProcessGrid | Sequence[int] | None


def default_grid(axes: int, ranks: int) -> ProcessGrid:
    """Return the grid of `axes` axes with the most equal extents: the default for `BlockScatter`."""
    return choose_grid((ranks,) * axes, ranks)


def _group(over: Over, comm: Ranks) -> Communicator:
    return over.comm if comm is None and isinstance(over, Cart) else ranks_of(comm)


def BlockScatter(x: Any, over: Over = None, root: int = 0, comm: Ranks = None) -> Any:
    """Distribute an array of one rank in blocks to all ranks, and return this rank's block.

    Parameters
    ----------
    x : array_like or None
        The whole array on the root; not used on other ranks.
    over : Layout, Cart, ProcessGrid or sequence of int, optional
        A layout, or a grid whose axes cut the array's first axes into blocks; by default the grid with the
        most equal extents that has as many axes as the array.
    root : int
        The rank that has the array.
    comm : Communicator or Cart, optional
        The ranks, by default those of `over` or all; all of them call this.

    Returns
    -------
    ndarray
        This rank's block; with a layout that has halos, surrounded by a halo of zeros.  On the root it is an
        array of dcarray if `x` is one, elsewhere of NumPy.

    Raises
    ------
    GridError, LayoutError
        On every rank, when grid or layout do not fit the array or the ranks.
    """
    group = _group(over, comm)
    here = np.asarray(x) if group.rank == root else np.empty(0)
    shape, dtype = broadcast_object(group, (here.shape, here.dtype), root)
    sendable([np.empty(0, dtype)])
    if isinstance(over, Layout):
        layout = over
        if layout.shape != shape:
            raise LayoutError(f"an array of shape {shape} is to be laid out as one of shape {layout.shape}")
    else:
        grid = default_grid(len(shape), group.size) if over is None else as_grid(over)
        layout = Layout.blocks(shape, grid)
    layout.grid.check(group.size)
    if group.rank != root:
        here = np.empty((0, *shape[1:]), dtype)
    return _redistributed(Layout.on_one(shape, group.size, root), layout, here, x, group)


def BlockGather(x: Any, over: Over = None, root: int | None = None, comm: Ranks = None) -> Any:
    """Gather the blocks of a distributed array, and return the whole array.

    Parameters
    ----------
    x : array_like
        This rank's block, or with a layout its memory including the halo.  Blocks with the same coordinate
        along a grid axis must have the same extent along the array axis that this cuts.
    over : Layout, Cart, ProcessGrid or sequence of int, optional
        The layout or grid, in the forms that `BlockScatter` accepts.
    root : int, optional
        The rank that gets the whole array; by default all ranks do.
    comm : Communicator or Cart, optional
        The ranks, by default those of `over` or all; all of them call this.

    Returns
    -------
    ndarray or None
        The whole array, of dcarray if `x` is; None on ranks other than `root`.

    Raises
    ------
    LayoutError
        When the blocks' shapes do not fit together to an array.
    MismatchError
        When ranks disagree on dtype or number of axes.
    """
    group, here = _group(over, comm), np.asarray(x)
    check_equal(group, (here.dtype.str, here.ndim), "dtype and number of axes")
    if isinstance(over, Layout):
        layout = over
    else:
        grid = default_grid(here.ndim, group.size) if over is None else as_grid(over)
        layout = _layout_of_blocks(here, grid, group)
    layout.grid.check(group.size)
    layout.check(group.rank, here.shape)
    if root is None:
        return _redistributed(layout, Layout.copies(layout.shape, layout.grid), here, x, group)
    whole = _redistributed(layout, Layout.on_one(layout.shape, group.size, root), here, x, group)
    return whole if group.rank == root else None


def _layout_of_blocks(here: Array, grid: ProcessGrid, group: Communicator) -> Layout:
    """Return the layout of a distributed array from the shapes of the ranks' blocks (collective)."""
    grid.check(group.size)
    if grid.ndim > here.ndim:
        raise LayoutError(f"a grid {grid.shape} has more axes than blocks of shape {here.shape}")
    shapes = np.zeros((group.size, here.ndim), np.int64)
    shapes[group.rank] = here.shape
    group.allreduce(shapes, shapes, "sum")
    table = shapes.reshape(*grid.shape, here.ndim)
    axes, shape = [], list(here.shape)
    for axis in range(grid.ndim):
        line = [0] * grid.ndim + [axis]
        line[axis] = slice(None)  # type: ignore[call-overload]
        sizes = table[tuple(line)]
        axes.append(Block(axis, tuple(map(int, sizes))))
        shape[axis] = int(sizes.sum())
    layout = Layout.blocks(shape, grid)
    layout = Layout(shape, grid, [*axes, *layout.axes[grid.ndim :]])
    for rank in range(group.size):
        if layout.owned_shape(rank) != tuple(shapes[rank]):
            raise LayoutError(
                f"blocks do not fit together over a grid {grid.shape}: rank {rank} has one of shape "
                f"{tuple(map(int, shapes[rank]))} where its neighbours leave {layout.owned_shape(rank)}"
            )
    return layout


def Redistribute(x: Any, source: Layout, target: Layout, out: Any = None, comm: Ranks = None) -> Any:
    """Redistribute an array from one layout to another, and return this rank's memory in the new one.

    Parameters
    ----------
    x : array_like
        This rank's memory of the array, of ``source.local_shape(rank)``.
    source, target : Layout
        The present and the new layout, for the same array shape, over grids of all ranks of `comm`.
    out : ndarray, optional
        An array for this rank's part; its halo is not changed.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray
        `out`, or a new array like `x` of shape ``target.local_shape(rank)``, with zeros in its halo.

    Raises
    ------
    LayoutError
        When an array's shape is not that of its layout, or the layouts differ in array shape or ranks.
    MismatchError
        When ranks disagree on layouts or dtype.
    """
    group, here = ranks_of(comm), np.asarray(x)
    check_equal(group, (source, target, here.dtype.str), "layouts or dtype")
    source.grid.check(group.size)
    source.check(group.rank, here.shape)
    if out is not None:
        target.check(group.rank, out.shape)
    return _redistributed(source, target, here, x, group, out)


def _redistributed(
    source: Layout, target: Layout, here: Array, kind: Any, group: Communicator, out: Any = None
) -> Any:
    plan = redistribute(source, target, group.rank)
    if out is None:
        wrapped = kind if kind is not None and here.dtype == getattr(kind, "dtype", None) else here
        out = new_like(wrapped, target.local_shape(group.rank), here.dtype)
        if any(map(any, target.halo)):
            writable_memory(out)[...] = 0
    plan.run(group, here, writable_memory(out))
    return out


class HaloExchange:
    """The exchange of the halos of arrays of one layout, planned once and run many times.

    Parameters
    ----------
    layout : Layout
        The layout of the arrays, with the halo in their memory.
    widths : int or sequence, optional
        The widths of the halo to fill; by default all of it.
    periodic : bool or sequence of bool
        Whether all axes, or each one, are periodic: then the first and last rank are neighbours.
    corners : bool
        Whether the corners of the halo are filled, too, from diagonal neighbours.
    comm : Communicator or Cart, optional
        The ranks, by default all.
    """

    def __init__(
        self,
        layout: Layout,
        widths: Any = None,
        *,
        periodic: bool | Sequence[bool] = False,
        corners: bool = True,
        comm: Ranks = None,
    ) -> None:
        self._comm = ranks_of(comm)
        layout.grid.check(self._comm.size)
        self.layout = layout
        self.plan = halo_exchange(layout, self._comm.rank, widths, periodic=periodic, corners=corners)

    def start(self, *arrays: Any) -> PendingExchange:
        """Begin to exchange the halos of some arrays, in one message for each neighbour.

        Until ``finish()`` of the returned object, halos must not be read, nor elements next to them written.
        """
        held = [writable_memory(array) for array in arrays]
        for array in held:
            self.layout.check(self._comm.rank, array.shape)
        return start_exchanges(self._comm, [(self.plan, array, array) for array in held])

    def run(self, *arrays: Any) -> None:
        """Exchange the halos of some arrays."""
        self.start(*arrays).finish()
