"""Tables: small arrays in memory that a statement uses in any order, copied to the chip before it begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from dcarray.ir.nodes import Array, Compute, Gather, Load
from dcarray.ir.windows import loads

#: Bytes that a table has at most.
MOST_BYTES = 32 * 1024


def is_table(array: Array, stmt: Compute, taken: Iterable[Load]) -> bool:
    """Whether an array is worth a copy on the chip: it is small, no larger than the statement's domain, and
    not just one element of it is used."""
    count = prod(array.shape)
    if not array.shape or count * array.dtype.itemsize > MOST_BYTES or count > prod(stmt.target.shape):
        return False
    return any(
        isinstance(load, Gather) or any(ix.axis is not None for ix in load.window.index)
        for load in in_memory(stmt, array.name, taken)
    )


def in_memory(stmt: Compute, array: str, taken: Iterable[Load]) -> list[Load | Gather]:
    """The elements of an array that a point needs, but for loads that are taken from streams."""
    streams = set(taken)
    return [load for load in loads(stmt.body) if load.window.array == array and load not in streams]


@dataclass
class Table:
    """A table in the text of a kernel, with as many copies as two ports of each need.

    A load of an element gets a port: the copy is another constant for each lane ``j`` of a vector."""

    name: str
    copies: int
    width: int
    used: int = field(default=0, init=False)

    def port(self) -> str:
        """The copy for the next load."""
        port, self.used = self.used, self.used + 1
        if self.copies == 1:
            return f"{self.name}[0]"
        return f"{self.name}[{port // 2 if self.width == 1 else f'({port * self.width} + j) / 2'}]"


def copies(elements: int) -> int:
    """How many copies a table needs for so many loads a cycle."""
    return max(-(-elements // 2), 1)
