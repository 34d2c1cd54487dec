"""The intersection of the parts of two distributed axes, by formula.

The runs that two parts share, and their order, do not depend on which axis comes first, so that two ranks
that plan independently agree on the elements of their message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .axes import Axis, BlockAxis, CyclicAxis, Run, clip

__all__ = ["overlap", "overlap_size", "overlapping_range", "peers"]


def overlap(a: Axis, part_a: int, b: Axis, part_b: int) -> tuple[Run, ...]:
    """Return the indices that lie both in part ``part_a`` of axis `a` and in part ``part_b`` of axis `b`.

    Two blocks share at most one run, a block and a cyclic part three.  Overlaps of two cyclic parts recur
    with the least common multiple of the periods; the Chinese remainder theorem gives the first.
    """
    if isinstance(a, BlockAxis):
        low, high = a.low(part_a), a.high(part_a)
        if isinstance(b, CyclicAxis):
            return clip(part_b * b.block, b.block, b.period, low, high)
        low, high = max(low, b.low(part_b)), min(high, b.high(part_b))
        return (Run(low, high - low),) if low < high else ()
    if isinstance(b, BlockAxis):
        return clip(part_a * a.block, a.block, a.period, b.low(part_b), b.high(part_b))
    return _cyclic_overlap(a, part_a * a.block, b, part_b * b.block)


def overlap_size(a: Axis, part_a: int, b: Axis, part_b: int) -> int:
    """Return the number of indices that a part of `a` and a part of `b` have in common."""
    if isinstance(a, BlockAxis) and isinstance(b, BlockAxis):
        return max(0, min(a.high(part_a), b.high(part_b)) - max(a.low(part_a), b.low(part_b)))
    if a == b:  # cyclic: no two parts have an index in common
        return a.size(part_a) if part_a == part_b else 0
    return sum(run.size for run in overlap(a, part_a, b, part_b))


def _cyclic_overlap(a: CyclicAxis, first_a: int, b: CyclicAxis, first_b: int) -> tuple[Run, ...]:
    divisor = math.gcd(a.period, b.period)
    again = a.period // divisor * b.period
    inverse = pow(a.period // divisor, -1, b.period // divisor)
    runs: list[Run] = []
    # Intervals meet when that of `b` begins `lead` after that of `a`, with -b.block < lead < a.block.
    for lead in range(1 - b.block + (first_b - first_a - 1 + b.block) % divisor, a.block, divisor):
        turns = (first_b - lead - first_a) // divisor * inverse % (b.period // divisor)
        begin_a = first_a + turns * a.period
        begin = max(begin_a, begin_a + lead)
        length = min(begin_a + a.block, begin_a + lead + b.block) - begin
        # Indices below zero belong to no interval: where `b` would begin there, it begins one round later.
        runs += clip(begin + again if begin_a + lead < 0 else begin, length, again, 0, a.extent)
    return tuple(sorted(runs))


def peers(a: Axis, part: int, b: Axis) -> Iterator[int]:
    """Yield the parts of `b` that share indices with a part of `a`, each once.

    No other parts are visited, except for two cyclic axes whose intervals would first meet beyond the end.
    """
    if isinstance(a, CyclicAxis) and isinstance(b, CyclicAxis):
        for other in _cyclic_peers(a, part, b):
            if overlap(a, part, b, other):
                yield other
    elif isinstance(a, BlockAxis):
        if size := a.size(part):
            yield from _interval_peers(a.low(part), a.low(part) + size, b)
    elif isinstance(b, BlockAxis):
        index = part * a.block
        while index < a.extent:
            other = b.owner(index)
            yield other
            index = b.high(other)
            rounds, inside = divmod(index - part * a.block, a.period)
            if inside >= a.block:  # between two intervals of the part: on to the next
                index = (rounds + 1) * a.period + part * a.block


def overlapping_range(a: Axis, part: int, b: Axis) -> range:
    """Return a range of parts of `b` outside of which no part shares an index with a part of `a`."""
    if not isinstance(a, BlockAxis) or not isinstance(b, BlockAxis):
        return range(b.parts)
    if not a.size(part):
        return range(0)
    ends = b.owner(a.low(part)), b.owner(a.high(part) - 1)
    return range(min(ends), max(ends) + 1)


def _interval_peers(low: int, high: int, b: Axis) -> Iterator[int]:
    """Yield the parts of `b` that own indices in ``[low, high)``."""
    if isinstance(b, CyclicAxis):
        first, last = low // b.block, (high - 1) // b.block
        yield from (turn % b.parts for turn in range(first, min(last + 1, first + b.parts)))
        return
    while low < high:
        part = b.owner(low)
        yield part
        low = b.high(part)


def _cyclic_peers(a: CyclicAxis, part: int, b: CyclicAxis) -> Iterator[int]:
    """Yield the parts of `b` whose intervals overlap those of a part of `a`, if both axes were infinite."""
    divisor = math.gcd(a.period, b.period)
    if a.block + b.block > divisor:
        yield from range(b.parts)
        return
    # Part `c` meets when c * b.block is, modulo the divisor, less than a.block after or b.block before.
    step = math.gcd(b.block, divisor)
    every = divisor // step
    inverse = pow(b.block // step, -1, every)
    begin = part * a.block
    lowest = begin - b.block + 1
    seen = set()
    for meeting in range(lowest + -lowest % step, begin + a.block, step):
        for other in range(meeting // step * inverse % every, b.parts, every):
            if other not in seen:
                seen.add(other)
                yield other
