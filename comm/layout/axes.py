"""The distribution of one array axis over the ranks along one grid axis: in blocks, or block-cyclic.

Ownership is a formula of the extent and the number of parts; nothing is enumerated over ranks.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from dcarray.comm.transport.errors import LayoutError

__all__ = ["Axis", "BlockAxis", "CyclicAxis", "Run", "WindowAxis", "clip"]


class Run(NamedTuple):
    """Equal intervals of indices: ``start + k*step + j`` with ``k < repeats`` and ``j < length``."""

    start: int
    length: int
    step: int = 1
    repeats: int = 1

    @property
    def size(self) -> int:
        return self.length * self.repeats


def clip(start: int, length: int, step: int, low: int, high: int) -> tuple[Run, ...]:
    """Return the indices of ``[low, high)`` that lie in the intervals ``start + k*step`` to ``... + length``.

    They are at most three runs, in ascending order: a cut first interval, whole ones, and a cut last one.
    """
    k, last = max(0, (low - start - length) // step + 1), (high - 1 - start) // step
    runs = []
    if k <= last and start + k * step < low:
        begin, end = low, min(high, start + k * step + length)
        runs.append(Run(begin, end - begin))
        k += 1
    whole = last if start + last * step + length <= high else last - 1
    if k <= whole:
        runs.append(Run(start + k * step, length, step if k < whole else 1, whole - k + 1))
        k = whole + 1
    if k <= last:
        runs.append(Run(start + k * step, high - start - k * step))
    return tuple(run for run in runs if run.length > 0)


@dataclass(frozen=True)
class BlockAxis:
    """An axis in contiguous blocks, one for each part.

    Parameters
    ----------
    extent : int
        The number of elements.
    parts : int
        The number of ranks along the grid axis.
    sizes : tuple of int, optional
        The size of each block.  By default sizes differ by at most one and the larger come first; with
        fewer elements than parts the last ones are empty.
    """

    extent: int
    parts: int
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.sizes is not None:
            if len(self.sizes) != self.parts:
                raise LayoutError(f"{len(self.sizes)} block sizes were given for {self.parts} parts")
            if any(n < 0 for n in self.sizes) or sum(self.sizes) != self.extent:
                raise LayoutError(
                    f"block sizes {self.sizes} do not make up an axis of {self.extent} elements"
                )

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(accumulate(self.sizes or (), initial=0))

    def start(self, part: int) -> int:
        """Return the first index of a part; the extent for ``part == parts``."""
        if self.sizes is not None:
            return self._starts[part]
        small, larger = divmod(self.extent, self.parts)
        return part * small + min(part, larger)

    def low(self, part: int) -> int:
        """Return the lowest index of a part."""
        return self.start(part)

    def high(self, part: int) -> int:
        """Return the index after the highest of a part."""
        return self.start(part + 1)

    def size(self, part: int) -> int:
        """Return the number of elements of a part."""
        return self.high(part) - self.low(part)

    def smallest(self) -> int:
        """Return the number of elements of the smallest part."""
        return min(self.sizes) if self.sizes is not None else self.extent // self.parts

    def owner(self, index: int) -> int:
        """Return the part that owns an index."""
        if self.sizes is not None:
            return (
                bisect_right(self._starts, index) - 1
            )  # of empty parts before it, the last start is its own
        small, larger = divmod(self.extent, self.parts)
        front = larger * (small + 1)
        return index // (small + 1) if index < front else larger + (index - front) // small

    def size_changes(self) -> set[int]:
        """Return the parts at which block sizes change; in between, the start is a linear function of the
        part."""
        return set(range(self.parts)) if self.sizes is not None else {self.extent % self.parts}

    def to_local(self, index: int) -> int:
        """Return the position of an index within the part that owns it."""
        return index - self.low(self.owner(index))

    def to_global(self, part: int, place: int) -> int:
        """Return the index at a position within a part."""
        return self.low(part) + place

    def runs(self, part: int) -> tuple[Run, ...]:
        """Return the indices of a part, in ascending order."""
        size = self.size(part)
        return (Run(self.low(part), size),) if size else ()

    def local_run(self, part: int, run: Run) -> Run:
        """Return a run of indices as positions within a part."""
        return run._replace(start=run.start - self.low(part))


@dataclass(frozen=True, init=False)
class WindowAxis(BlockAxis):
    """A strided window of a block axis: point `t` belongs to the owner of index ``offset + stride * t`` of
    `base`.

    Points before the base axis belong to its first part, points after it to its last.  With a negative stride
    parts are in descending order, so that only `low`, `high` and `owner` are defined.

    Parameters
    ----------
    extent : int
    base : BlockAxis
        The axis of which this is a window.
    offset, stride : int
    """

    base: BlockAxis = BlockAxis(0, 1)
    offset: int = 0
    stride: int = 1

    def __init__(self, extent: int, base: BlockAxis, offset: int, stride: int) -> None:
        values = {"extent": extent, "parts": base.parts, "sizes": None}
        for name, value in {**values, "base": base, "offset": offset, "stride": stride}.items():
            object.__setattr__(self, name, value)

    def start(self, part: int) -> int:
        if part <= 0 or part >= self.parts:
            return 0 if part <= 0 else self.extent
        return self._after(self.base.start(part))

    def _after(self, index: int) -> int:
        """Return the first point whose index is at least `index` (less than it for a negative stride),
        clipped to the axis."""
        return min(max(0, -((self.offset - index) // self.stride)), self.extent)

    def low(self, part: int) -> int:
        if self.stride > 0:
            return self.start(part)
        return 0 if part == self.parts - 1 else self._after(self.base.start(part + 1) - 1)

    def high(self, part: int) -> int:
        if self.stride > 0:
            return self.start(part + 1)
        return self.extent if part == 0 else self._after(self.base.start(part) - 1)

    def smallest(self) -> int:
        return self._smallest

    @cached_property
    def _smallest(self) -> int:
        if not self.extent:
            return 0
        ends = {0, self.parts - 1, self.owner(0), self.owner(self.extent - 1)}
        if len(ends) == self.parts:
            return min(self.size(part) for part in ends)
        return min(self.base.smallest() // abs(self.stride), *(self.size(part) for part in ends))

    def owner(self, index: int) -> int:
        place = self.offset + self.stride * index
        if place < 0 or place >= self.base.extent:
            return 0 if place < 0 else self.parts - 1
        return self.base.owner(place)

    def size_changes(self) -> set[int]:
        if abs(self.stride) > 1 or not self.extent:  # sizes differ by one here and there
            return set(range(self.parts))
        return self.base.size_changes() | {self.owner(0), self.owner(self.extent - 1)}


@dataclass(frozen=True)
class CyclicAxis:
    """An axis in blocks of one size, distributed round-robin to the parts; the last block may be shorter.

    Parameters
    ----------
    extent : int
        The number of elements.
    parts : int
        The number of ranks along the grid axis.
    block : int
        The number of elements of a block.
    """

    extent: int
    parts: int
    block: int = 1

    def __post_init__(self) -> None:
        if self.block < 1:
            raise LayoutError(f"a block of {self.block} elements cannot be dealt out")

    @property
    def period(self) -> int:
        return self.parts * self.block

    def size(self, part: int) -> int:
        """Return the number of elements of a part."""
        rounds, rest = divmod(self.extent, self.period)
        return rounds * self.block + min(max(rest - part * self.block, 0), self.block)

    def smallest(self) -> int:
        """Return the number of elements of the smallest part."""
        return self.size(self.parts - 1)

    def owner(self, index: int) -> int:
        """Return the part that owns an index."""
        return index // self.block % self.parts

    def to_local(self, index: int) -> int:
        """Return the position of an index within the part that owns it."""
        return index // self.period * self.block + index % self.block

    def to_global(self, part: int, place: int) -> int:
        """Return the index at a position within a part."""
        rounds, inside = divmod(place, self.block)
        return rounds * self.period + part * self.block + inside

    def runs(self, part: int) -> tuple[Run, ...]:
        """Return the indices of a part, in ascending order."""
        return clip(part * self.block, self.block, self.period, 0, self.extent)

    def local_run(self, part: int, run: Run) -> Run:
        """Return a run of indices as positions within a part; its step is a multiple of the period."""
        step = run.step // self.parts if run.repeats > 1 else run.step
        return Run(self.to_local(run.start), run.length, step, run.repeats)


Axis = BlockAxis | CyclicAxis
