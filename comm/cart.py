"""Cartesian communicators: ranks on a process grid."""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.transport.agreement import check_equal
from dcarray.comm.transport.errors import GridError
from dcarray.comm.transport.protocol import Communicator
from dcarray.comm.transport.world import world

__all__ = ["Cart", "Cart_create", "Cart_sub", "Ranks", "as_grid", "ranks_of"]


class Cart:
    """A communicator whose ranks form a process grid, in row-major order.

    Attributes
    ----------
    grid : ProcessGrid
    periodic : tuple of bool
        Whether each axis is periodic.
    comm : Communicator
        The communicator of the ranks, numbered as in the grid.
    coords : tuple of int
        The coordinates of this rank.
    """

    def __init__(self, grid: ProcessGrid, periodic: tuple[bool, ...], comm: Communicator) -> None:
        grid.check(comm.size)
        self.grid, self.periodic, self.comm = grid, periodic, comm
        self.coords = grid.coords(comm.rank)

    @property
    def rank(self) -> int:
        return self.comm.rank

    @property
    def size(self) -> int:
        return self.comm.size

    def neighbour(self, *steps: int) -> int | None:
        """Return the rank at the distance `steps` along the axes; None beyond the end of an axis that is not
        periodic.  Sends to None and receives from it do nothing."""
        return self.grid.neighbour(self.rank, steps, self.periodic)


Ranks = Communicator | Cart | None


def as_grid(grid: Cart | ProcessGrid | Sequence[int]) -> ProcessGrid:
    """Return the process grid for an argument: a `Cart`, a grid, or its shape."""
    if isinstance(grid, Cart):
        return grid.grid
    return grid if isinstance(grid, ProcessGrid) else ProcessGrid(grid)


def ranks_of(ranks: Ranks) -> Communicator:
    """Return the communicator for an argument: a communicator, a `Cart`, or None for all ranks."""
    if ranks is None:
        return world()
    return ranks.comm if isinstance(ranks, Cart) else ranks


def Cart_create(shape: Sequence[int], periodic: bool | Sequence[bool] = False, comm: Ranks = None) -> Cart:
    """Return a Cartesian communicator over some ranks.

    Parameters
    ----------
    shape : sequence of int
        The number of ranks along each axis; `choose_grid` finds a shape that suits an array.
    periodic : bool or sequence of bool
        Whether all axes, or each, are periodic.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them must call this function.

    Returns
    -------
    Cart

    Raises
    ------
    GridError
        If the grid's size is not the number of ranks.
    MismatchError
        If ranks call it with different grids.
    """
    grid, group = ProcessGrid(shape), ranks_of(comm)
    periodic_axes = (bool(periodic),) * grid.ndim if isinstance(periodic, int) else tuple(map(bool, periodic))
    if len(periodic_axes) != grid.ndim:
        raise GridError(f"{len(periodic_axes)} axes are said to be periodic or not, of {grid.ndim}")
    check_equal(group, (grid.shape, periodic_axes), "the grid")
    return Cart(grid, periodic_axes, group)


def Cart_sub(cart: Cart, keep: Sequence[bool]) -> Cart:
    """Return the sub-grid through this rank along some axes, with a communicator of its own.

    Parameters
    ----------
    cart : Cart
        The whole grid; all its ranks must call this function.
    keep : sequence of bool
        For each axis whether the sub-grid has it.

    Returns
    -------
    Cart
        The sub-grid of the kept axes, such as this rank's row for ``keep=(False, True)``.
    """
    grid, ranks = cart.grid.sub(cart.rank, keep)
    periodic = tuple(p for p, kept in zip(cart.periodic, keep, strict=True) if kept)
    return Cart(grid, periodic, cart.comm.sub(ranks))
