"""Layouts: the elements of an array that each rank of a grid owns, and their positions in its memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dcarray.comm.transport.errors import LayoutError

from .axes import Axis, BlockAxis, CyclicAxis, Run, WindowAxis
from .grid import ProcessGrid, choose_grid

__all__ = ["Block", "Cut", "Cyclic", "Layout", "Spec", "Whole", "Widths", "axis_of", "widths_of"]


@dataclass(frozen=True)
class Cut:
    """The alignment of an axis to the blocks of another, by offset and stride.

    Element `t` is owned by the rank that owns index ``offset + stride * t`` of an axis of `extent` elements
    in blocks of `sizes` (None: blocks of equal size).
    """

    extent: int
    offset: int
    stride: int = 1
    sizes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Block:
    """An array axis divided into one contiguous block for each rank along a grid axis.

    `sizes` gives the lengths of the blocks, or the axis that this one is aligned to; None: equal blocks.
    """

    grid_axis: int
    sizes: tuple[int, ...] | Cut | None = None

    def __post_init__(self) -> None:
        if self.sizes is not None and not isinstance(self.sizes, Cut):
            object.__setattr__(
                self, "sizes", tuple(map(operator.index, self.sizes))
            )  # a list or array will do


@dataclass(frozen=True)
class Cyclic:
    """An array axis in blocks of one size, assigned round-robin to the ranks along a grid axis."""

    grid_axis: int
    block: int = 1


@dataclass(frozen=True)
class Whole:
    """An array axis that is not distributed: every rank has all of it."""


Spec = Block | Cyclic | Whole
Widths = int | Sequence[int | tuple[int, int]]


@dataclass(frozen=True)
class Layout:
    """The distribution of an array of a shape over a process grid.

    Along grid axes that distribute no array axis, ranks have copies.

    Parameters
    ----------
    shape : sequence of int
        The whole array's shape.
    grid : ProcessGrid
        The ranks.
    axes : sequence of Block, Cyclic or Whole
        One for each axis of the array.
    halo : int or sequence, optional
        Width of the border of each rank's memory for copies of its neighbours' elements: on all sides, or for
        each axis a number or a pair (before, after).  Cyclic axes cannot have a halo.

    Raises
    ------
    LayoutError
        When shape, axes and grid do not fit each other, or the halo is wider than a block.
    """

    shape: tuple[int, ...]
    grid: ProcessGrid
    axes: tuple[Spec, ...]
    halo: tuple[tuple[int, int], ...]

    def __init__(
        self, shape: Sequence[int], grid: ProcessGrid, axes: Sequence[Spec], halo: Widths = 0
    ) -> None:
        for name, value in (
            ("shape", tuple(int(n) for n in shape)),
            ("grid", grid),
            ("axes", tuple(axes)),
            ("halo", widths_of(halo, len(shape))),
        ):
            object.__setattr__(self, name, value)
        if len(self.axes) != len(self.shape):
            raise LayoutError(f"{len(self.axes)} axes are laid out of an array of {len(self.shape)}")
        used = [spec.grid_axis for spec in self.axes if not isinstance(spec, Whole)]
        if len(set(used)) != len(used) or any(not 0 <= a < grid.ndim for a in used):
            raise LayoutError(f"array axes over the grid axes {used} of a grid {grid.shape}")
        for axis, (spec, parts, widths) in enumerate(zip(self.axes, self.parts, self.halo, strict=True)):
            if isinstance(spec, Cyclic) and max(widths):
                raise LayoutError(f"axis {axis} is dealt out in turn: it can have no halo")
            if parts.parts > 1 and max(widths) > parts.smallest():
                raise LayoutError(
                    f"a halo of {max(widths)} elements is wider than a block of {parts.smallest()} "
                    f"(axis {axis}: {parts.extent} elements over {parts.parts} ranks)"
                )

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.grid, self.axes, self.halo))

    def __hash__(self) -> int:  # plans are looked up by layouts
        return self._hash

    # ---- constructors ----------------------------------------------------------------------------
    @classmethod
    def blocks(cls, shape: Sequence[int], grid: ProcessGrid, halo: Widths = 0) -> Layout:
        """Return a layout with array axis `i` in blocks over grid axis `i`, and further array axes whole."""
        if grid.ndim > len(shape):
            raise LayoutError(f"a grid {grid.shape} has more axes than an array of shape {tuple(shape)}")
        return cls(shape, grid, [Block(a) if a < grid.ndim else Whole() for a in range(len(shape))], halo)

    @classmethod
    def chosen(cls, shape: Sequence[int], ranks: int, halo: Widths = 0, rows: bool = False) -> Layout:
        """Return a layout of blocks over the grid that `choose_grid` returns for these arguments."""
        return cls.blocks(shape, choose_grid(shape, ranks, rows), halo)

    @classmethod
    def copies(cls, shape: Sequence[int], grid: ProcessGrid) -> Layout:
        """Return the layout with a copy of the whole array on every rank."""
        return cls(shape, grid, [Whole()] * len(shape))

    @classmethod
    def on_one(cls, shape: Sequence[int], ranks: int, rank: int) -> Layout:
        """Return a layout with the whole array on `rank`: the blocks of the other ranks are empty."""
        if not shape:
            raise LayoutError("an array without axes has no blocks")
        first = Block(0, tuple(shape[0] * (part == rank) for part in range(ranks)))
        return cls(shape, ProcessGrid((ranks,)), [first, *[Whole()] * (len(shape) - 1)])

    # ---- formulas --------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def parts(self) -> tuple[Axis, ...]:
        """The distribution of each array axis into parts; an axis that is not distributed is a single
        part."""
        return tuple(axis_of(n, spec, self.grid) for n, spec in zip(self.shape, self.axes, strict=True))

    def is_cut(self, axis: int) -> bool:
        """Whether an array axis is distributed over several ranks."""
        return self.parts[axis].parts > 1

    @cached_property
    def copy_axes(self) -> tuple[int, ...]:
        """The grid axes along which ranks have copies."""
        used = {spec.grid_axis for spec in self.axes if not isinstance(spec, Whole)}
        return tuple(a for a in range(self.grid.ndim) if a not in used)

    def is_first_copy(self, rank: int) -> bool:
        """Whether a rank is the first of those that have copies of its elements."""
        coords = self.grid.coords(rank)
        return not any(coords[axis] for axis in self.copy_axes)

    def without_halo(self) -> Layout:
        """Return the same layout without halo."""
        return Layout(self.shape, self.grid, self.axes) if any(map(any, self.halo)) else self

    def part_indices(self, rank: int) -> tuple[int, ...]:
        """Return for each array axis the number of the part that a rank owns."""
        coords = self.grid.coords(rank)
        return tuple(0 if isinstance(spec, Whole) else coords[spec.grid_axis] for spec in self.axes)

    def owned_shape(self, rank: int) -> tuple[int, ...]:
        """Return the shape of a rank's own elements, without halo."""
        return tuple(part.size(c) for part, c in zip(self.parts, self.part_indices(rank), strict=True))

    def local_shape(self, rank: int) -> tuple[int, ...]:
        """Return the shape of a rank's memory, halo included."""
        return tuple(n + sum(w) for n, w in zip(self.owned_shape(rank), self.halo, strict=True))

    def owned(self, rank: int) -> tuple[slice, ...]:
        """Return the slices of a rank's memory that hold its own elements."""
        owned = zip(self.owned_shape(rank), self.halo, strict=True)
        return tuple(slice(before, before + n) for n, (before, _) in owned)

    def runs(self, rank: int) -> tuple[tuple[Run, ...], ...]:
        """Return for each array axis the intervals of global indices that a rank owns."""
        return tuple(part.runs(c) for part, c in zip(self.parts, self.part_indices(rank), strict=True))

    def owners(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the ranks that own an element, in ascending order: several where there are copies."""
        coords = [0] * self.grid.ndim
        for spec, part, i in zip(self.axes, self.parts, self._inside(index), strict=True):
            if not isinstance(spec, Whole):
                coords[spec.grid_axis] = part.owner(i)
        return self.grid.sub(self.grid.rank(coords), [a in self.copy_axes for a in range(self.grid.ndim)])[1]

    def owner(self, index: Sequence[int]) -> int:
        """Return the lowest rank that owns an element."""
        return self.owners(index)[0]

    def to_local(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the position of an element in the memory of its owners, halo included."""
        places = zip(self.parts, self._inside(index), self.halo, strict=True)
        return tuple(part.to_local(i) + before for part, i, (before, _) in places)

    def to_global(self, rank: int, place: Sequence[int]) -> tuple[int, ...]:
        """Return the index of an element at a position of a rank's memory, which must not lie in the halo."""
        index = []
        for part, c, p, (before, _) in zip(
            self.parts, self.part_indices(rank), place, self.halo, strict=True
        ):
            if not 0 <= p - before < part.size(c):
                raise LayoutError(f"place {tuple(place)} is not among the elements of rank {rank}")
            index.append(part.to_global(c, p - before))
        return tuple(index)

    def elements(self, rank: int) -> int:
        """Return the number of elements that a rank owns, without halo."""
        return math.prod(self.owned_shape(rank))

    def check(self, rank: int, shape: Sequence[int]) -> None:
        """Raise `LayoutError` unless a rank's memory has the shape that the layout gives it."""
        if tuple(shape) != self.local_shape(rank):
            raise LayoutError(
                f"rank {rank} has an array of shape {tuple(shape)}, where its layout of an array of shape "
                f"{self.shape} over a grid {self.grid.shape} needs {self.local_shape(rank)}"
            )

    def _inside(self, index: Sequence[int]) -> tuple[int, ...]:
        if len(index) != self.ndim or any(not 0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise IndexError(f"index {tuple(index)} is not in an array of shape {self.shape}")
        return tuple(index)


def axis_of(extent: int, spec: Spec, grid: ProcessGrid) -> Axis:
    """Return the distribution of an axis over a grid; a whole axis has a single part."""
    if isinstance(spec, Whole):
        return BlockAxis(extent, 1)
    ranks = grid.shape[spec.grid_axis]
    if isinstance(spec, Cyclic):
        return CyclicAxis(extent, ranks, spec.block)
    if isinstance(spec.sizes, Cut):
        base = BlockAxis(spec.sizes.extent, ranks, spec.sizes.sizes)
        return WindowAxis(extent, base, spec.sizes.offset, spec.sizes.stride)
    return BlockAxis(extent, ranks, spec.sizes)


def widths_of(halo: Widths, axes: int) -> tuple[tuple[int, int], ...]:
    """Return halo widths as pairs (before, after), one for each axis."""
    given: Iterable[int | tuple[int, int]] = (halo,) * axes if isinstance(halo, int) else halo
    pairs = tuple((w, w) if isinstance(w, int) else (int(w[0]), int(w[1])) for w in given)
    if len(pairs) != axes:
        raise LayoutError(f"halo widths were given for {len(pairs)} axes of an array of {axes}")
    if any(w < 0 for pair in pairs for w in pair):
        raise LayoutError(f"halo widths {pairs} are not all positive")
    return pairs
