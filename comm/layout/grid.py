"""Process grids: ranks in row-major order over the axes of a grid, and the choice of a grid for an array."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from dcarray.comm.transport.errors import GridError

__all__ = ["ProcessGrid", "choose_grid"]

_ROW_TOLERANCE = 13, 10  # the surface of blocks may grow in this ratio to keep rows whole


@dataclass(frozen=True)
class ProcessGrid:
    """Ranks ``0 .. size-1`` laid out over a grid, the last axis running fastest.

    Parameters
    ----------
    shape : sequence of int
        Ranks along each axis, all at least one.

    Raises
    ------
    GridError
        When an axis has no ranks, a rank or coordinate lies outside, or the grid does not fit (`check`).
    """

    shape: tuple[int, ...]

    def __init__(self, shape: Sequence[int]) -> None:
        try:
            given = tuple(map(operator.index, shape))
        except TypeError as error:
            raise GridError(f"a process grid is a sequence of whole numbers, not {shape!r}") from error
        if any(n < 1 for n in given):
            raise GridError(f"a process grid needs at least one rank along each axis, not {given}")
        object.__setattr__(self, "shape", given)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def check(self, ranks: int) -> None:
        """Raise `GridError` unless this grid has exactly `ranks` ranks."""
        if self.size != ranks:
            raise GridError(f"grid {self.shape} has {self.size} ranks, but there are {ranks}")

    def coords(self, rank: int) -> tuple[int, ...]:
        """Return the coordinates of a rank."""
        if not 0 <= rank < self.size:
            raise GridError(f"rank {rank} is not in grid {self.shape}")
        coords = []
        for n in reversed(self.shape):
            rank, c = divmod(rank, n)
            coords.append(c)
        return tuple(reversed(coords))

    def rank(self, coords: Sequence[int]) -> int:
        """Return the rank at some coordinates."""
        if len(coords) != self.ndim or any(not 0 <= c < n for c, n in zip(coords, self.shape, strict=True)):
            raise GridError(f"coordinates {tuple(coords)} are not in grid {self.shape}")
        place = 0
        for c, n in zip(coords, self.shape, strict=True):
            place = place * n + c
        return place

    def neighbour(self, rank: int, steps: Sequence[int], periodic: Sequence[bool] = ()) -> int | None:
        """Return the rank `steps` away from a rank along each axis; None beyond an end of a non-periodic
        axis."""
        periodic_axes = tuple(periodic) or (False,) * self.ndim
        if len(steps) != self.ndim:
            raise GridError(f"steps along {len(steps)} axes were given in grid {self.shape}")
        there = []
        for c, step, n, goes_round in zip(self.coords(rank), steps, self.shape, periodic_axes, strict=True):
            place = c + step
            if not 0 <= place < n:
                if not goes_round:
                    return None
                place %= n
            there.append(place)
        return self.rank(there)

    def sub(self, rank: int, keep: Sequence[bool]) -> tuple[ProcessGrid, tuple[int, ...]]:
        """Return the sub-grid through a rank.

        Parameters
        ----------
        rank : int
            A rank of this grid.
        keep : sequence of bool
            For each axis, whether the sub-grid has it; if not, only ranks with the coordinate of `rank`
            count.

        Returns
        -------
        ProcessGrid, tuple of int
            The sub-grid, and for each of its ranks, in order, its number in this grid.
        """
        if len(keep) != self.ndim:
            raise GridError(f"grid {self.shape} has {self.ndim} axes, not {len(keep)}")
        here = self.coords(rank)
        ranks = [0]
        for c, n, kept in zip(here, self.shape, keep, strict=True):
            ranks = [r * n + i for r in ranks for i in (range(n) if kept else (c,))]
        return ProcessGrid([n for n, kept in zip(self.shape, keep, strict=True) if kept]), tuple(ranks)


def choose_grid(shape: Sequence[int], ranks: int, rows: bool = False) -> ProcessGrid:
    """Return the best grid for an array, with one grid axis for each array axis.

    The best grid has the fewest ranks without elements and, among those, the least surface between blocks:
    cutting an axis of `n` elements into `p` parts exchanges ``(p - 1) / n`` of the array, summed over axes.
    Among equally good grids the one that cuts earlier axes more is chosen: its blocks are more contiguous.

    Parameters
    ----------
    shape : sequence of int
        The array's shape.
    ranks : int
        The number of ranks; any, primes included.
    rows : bool, optional
        Prefer whole rows: if the best grid cuts one axis only, cut the first axis instead where that makes
        the surface at most 1.3 times as large.  Parts of rows are not contiguous in messages, and a
        statement that uses each row twice, such as ``(A @ x) @ A``, would read it twice.

    Returns
    -------
    ProcessGrid
        Of ``len(shape)`` axes and `ranks` ranks.

    Raises
    ------
    GridError
        When `ranks` is less than one, or more than one for an array without axes.
    """
    extents = tuple(max(1, int(n)) for n in shape)
    if ranks < 1:
        raise GridError(f"{ranks} ranks make no grid")
    if not extents and ranks > 1:
        raise GridError(f"an array without axes cannot be cut for {ranks} ranks")
    return _choose(extents, ranks, rows)


@lru_cache(maxsize=256)
def _divisors(n: int) -> tuple[int, ...]:
    """Return all divisors of a number, in ascending order."""
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return tuple(sorted({*low, *(n // d for d in low)}))


def _best_candidates(first: int, second: int, ranks: int, divisors: Sequence[int]) -> Sequence[int]:
    """Return candidates for the best number of parts along the first of two axes.

    If no rank is left without elements, the surface is least where ``first / parts`` equals
    ``second / (ranks / parts)`` and grows on both sides: only the divisors next to that point are returned.
    """
    if ranks > min(first, second):
        return divisors
    above = max(1, bisect_right(divisors, math.isqrt(ranks * first // second)))
    below = above - 1
    while ranks % divisors[below]:
        below -= 1
    while above < len(divisors) and ranks % divisors[above]:
        above += 1
    return divisors[below], *divisors[above : above + 1]


@lru_cache(maxsize=4096)
def _choose(extents: tuple[int, ...], ranks: int, rows: bool) -> ProcessGrid:
    divisors = _divisors(ranks)
    whole = math.prod(extents)  # surfaces are counted in elements: whole numbers

    @cache
    def best(axis: int, ranks_left: int) -> tuple[int, int, tuple[int, ...]]:
        """Return minus the ranks with elements, the surface, and minus the parts of the axes from `axis`
        on."""
        n = extents[axis] if axis < len(extents) else 1
        if axis >= len(extents) - 1:
            return -min(ranks_left, n), (ranks_left - 1) * whole // n, (-ranks_left,) * bool(extents)
        choices = []
        for parts in (
            divisors if axis < len(extents) - 2 else _best_candidates(n, extents[-1], ranks_left, divisors)
        ):
            if ranks_left % parts == 0:
                busy, surface, rest = best(axis + 1, ranks_left // parts)
                choices.append((busy * min(parts, n), surface + (parts - 1) * whole // n, (-parts, *rest)))
        return min(choices)

    shape = [-parts for parts in best(0, ranks)[2]]
    cut = [axis for axis, parts in enumerate(shape) if parts > 1]
    more, less = _ROW_TOLERANCE
    if rows and len(cut) == 1 and ranks <= extents[0] and less * extents[cut[0]] <= more * extents[0]:
        shape = [ranks, *[1] * (len(extents) - 1)]
    return ProcessGrid(shape)
