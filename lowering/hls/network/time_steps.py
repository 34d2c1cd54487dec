"""Loops over time steps of stencils as chains of processing elements: each step has processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dcarray.ir.nodes import Compute, Loop, Size, Stmt, Window
from dcarray.ir.statements import flatten
from dcarray.ir.windows import loads, walk

#: A chain has so many steps at most; longer loops work in memory.
LONGEST = 16


def steps(body: Iterable[Stmt], streams: Callable[[Window], bool]) -> Iterator[Stmt]:
    """Walk over statements, with those of each loop that is a chain as often as it runs.

    Parameters
    ----------
    body : iterable of Stmt
    streams : callable
        Whether the elements of a window come in the order of a stream.
    """
    for stmt in flatten(body):
        if isinstance(stmt, Loop) and can_be_chain(stmt, streams) is None:
            for _ in range(*stmt.bounds):
                yield from flatten(stmt.body)
        else:
            yield stmt


def can_be_chain(loop: Loop, streams: Callable[[Window], bool]) -> str | None:
    """Return why a loop is no chain of processing elements; None if it is one."""
    if not all(type(bound) is int for bound in loop.bounds):
        return "how often it runs is not known"
    if len(range(*loop.bounds)) > LONGEST:
        return f"it has more than {LONGEST} steps"
    for stmt in flatten(loop.body):
        if not isinstance(stmt, Compute) or stmt.combine is not None:
            return "not all of its statements are streams"
        if any(isinstance(node, Size) and type(node.dim) is not int for node in walk(stmt.body)):
            return "its variable is used"
        for window in (stmt.target, *(load.window for load in loads(stmt.body))):
            numbers = (*window.shape, *(n for ix in window.index for n in (ix.offset, ix.stride)))
            if any(type(n) is not int for n in numbers):
                return "a window moves with its variable"
            if not streams(window):
                return "not all of its statements are streams"
    return None
