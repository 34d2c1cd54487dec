"""Tables: small arrays that a statement reads in any order, and that are copied to the chip beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from dcarray.ir.nodes import Array, Compute, Gather, Load
from dcarray.ir.windows import loads

#: Bytes that a table has at most.
MOST_BYTES = 32 * 1024


def is_table(array: Array, stmt: Compute, taken: Iterable[Load]) -> bool:
    """Whether an array is worth a copy on the chip: if it is small, not larger than the statement's domain,
    and more than one element of it is read; ``taken`` are the loads from streams."""
    count = prod(array.shape)
    if not array.shape or count * array.dtype.itemsize > MOST_BYTES or count > prod(stmt.target.shape):
        return False
    return any(
        isinstance(load, Gather) or any(ix.axis is not None for ix in load.window.index)
        for load in in_memory(stmt, array.name, taken)
    )


def in_memory(stmt: Compute, array: str, taken: Iterable[Load]) -> list[Load | Gather]:
    """Return the loads of an array at a point that read memory; ``taken`` are the loads from streams."""
    streams = set(taken)
    return [load for load in loads(stmt.body) if load.window.array == array and load not in streams]


@dataclass
class Table:
    """A table in the text of a kernel, in so many copies that each load gets a port of its own: a copy has
    two.

    For vectors of elements, the number of the copy is a constant for each lane ``j``."""

    name: str
    copies: int
    width: int
    used: int = field(default=0, init=False)

    def port(self) -> str:
        """Return the text of the copy that the next load reads."""
        port, self.used = self.used, self.used + 1
        if self.copies == 1:
            return f"{self.name}[0]"
        return f"{self.name}[{port // 2 if self.width == 1 else f'({port * self.width} + j) / 2'}]"


def copies(elements: int) -> int:
    """Return the number of copies that a table needs for ``elements`` loads per cycle: two loads per copy."""
    return max(-(-elements // 2), 1)
