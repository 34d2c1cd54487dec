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
        Which axes are periodic.
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
        """Return the rank at a distance along each axis; None beyond an end: sends and receives skip it."""
        return self.grid.neighbour(self.rank, steps, self.periodic)


Ranks = Communicator | Cart | None


def as_grid(grid: Cart | ProcessGrid | Sequence[int]) -> ProcessGrid:
    """Return the process grid that an argument means."""
    if isinstance(grid, Cart):
        return grid.grid
    return grid if isinstance(grid, ProcessGrid) else ProcessGrid(grid)


def ranks_of(ranks: Ranks) -> Communicator:
    """Return the communicator that an argument means; by default that of all ranks."""
    if ranks is None:
        return world()
    return ranks.comm if isinstance(ranks, Cart) else ranks


def Cart_create(shape: Sequence[int], periodic: bool | Sequence[bool] = False, comm: Ranks = None) -> Cart:
    """Return a Cartesian communicator over some ranks.

    Parameters
    ----------
    shape : sequence of int
        Ranks along each axis; `choose_grid` finds one that suits an array.
    periodic : bool or sequence of bool
        Whether all axes, or each, are periodic.
    comm : Communicator or Cart, optional
        The ranks; by default all.  All of them call this.

    Returns
    -------
    Cart

    Raises
    ------
    GridError
        When the grid does not have exactly as many ranks as there are.
    MismatchError
        When ranks disagree on the grid.
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
        The whole grid, all ranks of which call this.
    keep : sequence of bool
        For each axis, whether the sub-grid runs along it.

    Returns
    -------
    Cart
        Of the kept axes: with ``keep=(False, True)`` this rank's row.
    """
    grid, ranks = cart.grid.sub(cart.rank, keep)
    periodic = tuple(p for p, kept in zip(cart.periodic, keep, strict=True) if kept)
    return Cart(grid, periodic, cart.comm.sub(ranks))
