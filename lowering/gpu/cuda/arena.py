"""One block of memory for the temporaries of a graph: where each lies, and the order that this adds.

Two temporaries may lie at one place if all that touch the first come before all that touch the second.
Where edges say so already, sharing costs nothing; to stay within a bound, edges are added that say so, always
in the direction of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dcarray.ir.records import record

__all__ = ["Layout", "layout", "size_class"]

ALIGNMENT = 512


@record(frozen=True, slots=True)
class Layout:
    """The places of temporaries in one block of memory.

    Attributes
    ----------
    offsets : tuple of int
        For each temporary, in bytes.
    size : int
        Of all of it.
    edges : tuple of pairs of int
        The additional order: a node and one that has to follow it.
    """

    offsets: tuple[int, ...]
    size: int
    edges: tuple[tuple[int, int], ...]


def size_class(nbytes: int) -> int:
    """Return a size that is at least ``nbytes`` and at most an eighth larger, or `ALIGNMENT` for the least:
    memory of nearly the same size lies at the same place."""
    step = max(ALIGNMENT, 1 << max((nbytes - 1).bit_length() - 4, 0)) if nbytes > 0 else ALIGNMENT
    return -(-nbytes // step) * step


def layout(
    sizes: Sequence[int], uses: Sequence[Sequence[int]], before: Sequence[Iterable[int]], bound: int
) -> Layout:
    """Return a layout of at most ``bound`` bytes where there is one in the order of the program.

    Parameters
    ----------
    sizes : sequence of int
        For each temporary its bytes.
    uses : sequence of sequence of int
        For each temporary the nodes that touch it, in order.
    before : sequence of iterable of int
        For each node the earlier ones that it has to follow.
    bound : int
        Bytes.
    """
    free = _Layout(sizes, uses, before).placed(bound)
    if free.size <= bound:
        return free
    ordered = _Layout(sizes, uses, before).placed(0)  # as a program that does one thing after the other
    return ordered if ordered.size < free.size else free


class _Layout:
    """A layout that is being made; sets of nodes are the bits of integers."""

    def __init__(
        self, sizes: Sequence[int], uses: Sequence[Sequence[int]], before: Sequence[Iterable[int]]
    ) -> None:
        self.sizes = [size_class(size) for size in sizes]
        self.uses = uses
        self.users = [sum(1 << node for node in nodes) for nodes in uses]
        self.direct = [sum(1 << node for node in nodes) for nodes in before]
        self.edges: list[tuple[int, int]] = []
        self.close()

    def close(self) -> None:
        """Compute for each node all that come before it."""
        self.earlier: list[int] = []
        for direct in self.direct:
            closed, rest = direct, direct
            while rest:
                node = rest.bit_length() - 1
                rest ^= 1 << node
                closed |= self.earlier[node]
            self.earlier.append(closed)

    def ordered(self, first: int, second: int) -> bool:
        """Whether all that touch one temporary come before all that touch another."""
        return all(not self.users[first] & ~self.earlier[node] for node in self.uses[second])

    def orderable(self, first: int, second: int) -> bool:
        """Whether the program uses the first temporary for the last time before it uses the second."""
        return (
            bool(self.uses[first]) and bool(self.uses[second]) and self.uses[first][-1] < self.uses[second][0]
        )

    def placed(self, bound: int) -> Layout:
        """Place all temporaries, in the order in which the program comes to them."""
        offsets = [0] * len(self.sizes)
        done: list[int] = []
        size = 0
        for one in sorted(range(len(self.sizes)), key=lambda k: self.uses[k][0] if self.uses[k] else -1):
            apart = [other for other in done if not self.ordered(other, one) and not self.ordered(one, other)]
            offset = self.lowest(one, apart, offsets)
            if offset + self.sizes[one] > max(bound, size):
                alive = [other for other in apart if not self.orderable(other, one)]
                closer = self.lowest(one, alive, offsets)
                if closer < offset:
                    offset = closer
                    self.follow(one, [other for other in apart if self.meets(one, closer, other, offsets)])
            offsets[one] = offset
            done.append(one)
            size = max(size, offset + self.sizes[one])
        return Layout(tuple(offsets), size, tuple(self.edges))

    def meets(self, one: int, offset: int, other: int, offsets: Sequence[int]) -> bool:
        """Whether a temporary at an offset shares memory with another."""
        return offset < offsets[other] + self.sizes[other] and offsets[other] < offset + self.sizes[one]

    def lowest(self, one: int, apart: Sequence[int], offsets: Sequence[int]) -> int:
        """The least offset at which a temporary shares no memory with others."""
        candidates = sorted({0, *(offsets[other] + self.sizes[other] for other in apart)})
        return next(
            offset
            for offset in candidates
            if not any(self.meets(one, offset, other, offsets) for other in apart)
        )

    def follow(self, one: int, others: Iterable[int]) -> None:
        """Let all that touch a temporary follow all that touch others."""
        for other in others:
            for first in self.uses[other]:
                for second in self.uses[one]:
                    if not self.earlier[second] >> first & 1:
                        self.edges.append((first, second))
                        self.direct[second] |= 1 << first
            self.close()
