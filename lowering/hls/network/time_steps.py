"""Loops over time steps of stencils as chains of processes: each step has its own processes, and long loops
run a chain several times."""

from __future__ import annotations

from collections.abc import Callable

from dcarray.ir.nodes import Compute, Loop, Size, Window
from dcarray.ir.statements import flatten
from dcarray.ir.windows import loads, walk

#: A chain has so many steps at most.
MAX_STEPS = 16


def turns(count: int, longest: int) -> tuple[int, int, int]:
    """Return for ``count`` time steps how many have their own processes, how many a repeated chain has, and
    how often that chain runs."""
    if count <= longest:
        return count, 0, 0
    # few steps of their own, then a long chain
    length = min(range(longest, (longest + 1) // 2 - 1, -1), key=lambda one: count % one)
    return count % length, length, count // length


def can_be_chain(loop: Loop, streams: Callable[[Window], bool]) -> str | None:
    """Return why a loop over time steps cannot be a chain of processes; None if it can."""
    if not all(type(bound) is int for bound in loop.bounds):
        return "how often it runs is not known"
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
