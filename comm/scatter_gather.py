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
    """Return the squarest grid of a number of axes: the default of `BlockScatter` and `BlockGather`."""
    return choose_grid((ranks,) * axes, ranks)


def _group(over: Over, comm: Ranks) -> Communicator:
    return over.comm if comm is None and isinstance(over, Cart) else ranks_of(comm)


def BlockScatter(x: Any, over: Over = None, root: int = 0, comm: Ranks = None) -> Any:
    """Distribute an array in blocks.

    Parameters
    ----------
    x : array_like or None
        The whole array on the root; not used on other ranks.
    over : Layout, Cart, ProcessGrid or sequence of int, optional
        A layout, or a grid whose axes cut the array's first axes into blocks; by default the squarest grid
        with an axis for each of the array's.
    root : int
        The rank that has the array.
    comm : Communicator or Cart, optional
        The ranks, by default those of `over` or all; all of them call this.

    Returns
    -------
    ndarray
        This rank's block; with a layout that has halos, room for them around it, filled with zeros.  On the
        root it is wrapped if `x` is.

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
    """Gather the blocks of an array.

    Parameters
    ----------
    x : array_like
        This rank's block: all blocks in one row of the grid have the same extent along the axes across it.
        With a layout, its memory with the halo.
    over : Layout, Cart, ProcessGrid or sequence of int, optional
        As for `BlockScatter`.
    root : int, optional
        The rank that gets the whole array; by default all ranks do.
    comm : Communicator or Cart, optional
        The ranks, by default those of `over` or all; all of them call this.

    Returns
    -------
    ndarray or None
        The whole array, wrapped if `x` is; None on ranks that do not get it.

    Raises
    ------
    LayoutError
        When the blocks do not make up an array.
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
    """Return the layout of an array of which each rank has a block, from the shapes of the blocks."""
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
    """Bring a distributed array from one layout to another.

    Parameters
    ----------
    x : array_like
        This rank's memory of the array, of ``source.local_shape(rank)``.
    source, target : Layout
        Of the same shape, over grids of all ranks.
    out : ndarray, optional
        An array for this rank's part; its halo is not changed.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray
        `out`, or a new array like `x`, of ``target.local_shape(rank)``, its halo zeros.

    Raises
    ------
    LayoutError
        When an array does not have its layout, or the layouts do not have the same shape and ranks.
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
    """The exchange of the halos of arrays of one layout.

    Parameters
    ----------
    layout : Layout
        The layout, with the halo that the arrays have room for.
    widths : int or sequence, optional
        The widths of the halo to fill; by default all of it.
    periodic : bool or sequence of bool
        Whether all axes, or each, are periodic.
    corners : bool
        Whether corners are filled, from diagonal neighbours.
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

        Until its ``finish()``, halos must not be read, nor the elements next to them written.
        """
        held = [writable_memory(array) for array in arrays]
        for array in held:
            self.layout.check(self._comm.rank, array.shape)
        return start_exchanges(self._comm, [(self.plan, array, array) for array in held])

    def run(self, *arrays: Any) -> None:
        """Exchange the halos of some arrays."""
        self.start(*arrays).finish()
