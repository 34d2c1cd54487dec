"""One block of memory for the temporaries of a graph: where each lies, and the edges that sharing adds.

Two temporaries may share memory if all nodes that touch the first come before all that touch the second.
If the graph's edges ensure that order, sharing costs nothing.  If the block would exceed a bound, edges are
added that ensure it, always in the order of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dcarray.ir.records import record

__all__ = ["Layout", "layout", "size_class"]

ALIGNMENT = 512


@record(frozen=True, slots=True)
class Layout:
    """Where the temporaries of a graph lie in one block of memory.

    Attributes
    ----------
    offsets : tuple of int
        For each temporary the byte of the block at which it begins.
    size : int
        The bytes of the block.
    edges : tuple of pairs of int
        Additional edges of the graph, each a node and another node that has to follow it.
    """

    offsets: tuple[int, ...]
    size: int
    edges: tuple[tuple[int, int], ...]


def size_class(nbytes: int) -> int:
    """Return ``nbytes`` rounded up by an eighth at most, and at least to `ALIGNMENT`: memory of nearly the
    same size then has the same layout."""
    step = max(ALIGNMENT, 1 << max((nbytes - 1).bit_length() - 4, 0)) if nbytes > 0 else ALIGNMENT
    return -(-nbytes // step) * step


def layout(
    sizes: Sequence[int], uses: Sequence[Sequence[int]], before: Sequence[Iterable[int]], bound: int
) -> Layout:
    """Return where temporaries lie: in at most ``bound`` bytes, if the order of the program allows that.

    Parameters
    ----------
    sizes : sequence of int
        For each temporary its bytes.
    uses : sequence of sequence of int
        For each temporary the nodes that read or write it, in order.
    before : sequence of iterable of int
        For each node the earlier ones that it has to follow.
    bound : int
        The bytes that the block should not exceed.
    """
    free = _Layout(sizes, uses, before).placed(bound)
    if free.size <= bound:
        return free
    ordered = _Layout(sizes, uses, before).placed(0)  # as a program that does one thing after the other
    return ordered if ordered.size < free.size else free


class _Layout:
    """The state while a layout is made.  A set of nodes is an int, with bit ``n`` set for node ``n``."""

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
        """Compute, for each node, all nodes that come before it: the transitive closure of the edges."""
        self.earlier: list[int] = []
        for direct in self.direct:
            closed, rest = direct, direct
            while rest:
                node = rest.bit_length() - 1
                rest ^= 1 << node
                closed |= self.earlier[node]
            self.earlier.append(closed)

    def ordered(self, first: int, second: int) -> bool:
        """Whether edges put all nodes that touch temporary ``first`` before all that touch ``second``."""
        return all(not self.users[first] & ~self.earlier[node] for node in self.uses[second])

    def orderable(self, first: int, second: int) -> bool:
        """Whether the program last uses temporary ``first`` before it first uses ``second``."""
        return (
            bool(self.uses[first]) and bool(self.uses[second]) and self.uses[first][-1] < self.uses[second][0]
        )

    def placed(self, bound: int) -> Layout:
        """Return a layout; temporaries are placed in the order of their first use.

        Edges are added where a temporary would else end beyond both ``bound`` and the block so far.
        """
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
        """Whether temporary ``one``, placed at ``offset``, would overlap the placed temporary ``other``."""
        return offset < offsets[other] + self.sizes[other] and offsets[other] < offset + self.sizes[one]

    def lowest(self, one: int, apart: Sequence[int], offsets: Sequence[int]) -> int:
        """Return the least offset at which temporary ``one`` overlaps none of the temporaries ``apart``."""
        candidates = sorted({0, *(offsets[other] + self.sizes[other] for other in apart)})
        return next(
            offset
            for offset in candidates
            if not any(self.meets(one, offset, other, offsets) for other in apart)
        )

    def follow(self, one: int, others: Iterable[int]) -> None:
        """Add edges so that all nodes that touch temporary ``one`` follow all that touch ``others``."""
        for other in others:
            for first in self.uses[other]:
                for second in self.uses[one]:
                    if not self.earlier[second] >> first & 1:
                        self.edges.append((first, second))
                        self.direct[second] |= 1 << first
            self.close()
