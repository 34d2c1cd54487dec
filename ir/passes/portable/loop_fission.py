"""Loop fission: a statement is moved out of the loops that it shares with others, into loops of its own.

``for i: { s; t }`` becomes ``for i: s`` and ``for i: t``, in any order, where neither statement touches what
the other one writes.  Another pass, which can rewrite one of the two loops, decides when this is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcarray.ir.analysis.effects import Reason, families, reads, writes
from dcarray.ir.nodes import Compute, Loop, Region, Stmt
from dcarray.ir.statements import all_statements

Path = tuple[int, ...]
"""The places of a statement, and of the loops around it, in the bodies that they are in."""


def paths(loop: Loop) -> Iterator[tuple[Path, Compute]]:
    """Yield each statement of a loop with its path, also in inner loops, but not in branches."""
    for place, stmt in enumerate(loop.body):
        if isinstance(stmt, Compute):
            yield (place,), stmt
        elif isinstance(stmt, Loop):
            yield from (((place, *path), inner) for path, inner in paths(stmt))


def alone(loop: Loop, path: Path) -> Loop:
    """Return the loop with one statement only."""
    stmt = loop.body[path[0]]
    if len(path) > 1:
        assert isinstance(stmt, Loop)
        stmt = alone(stmt, path[1:])
    return loop if loop.body == (stmt,) else replace(loop, body=(stmt,))


def without(loop: Loop, path: Path) -> Loop | None:
    """Return the loop without one statement; None if it would be empty."""
    place, stmt = path[0], loop.body[path[0]]
    left: tuple[Stmt, ...] = ()
    if len(path) > 1:
        assert isinstance(stmt, Loop)
        inner = without(stmt, path[1:])
        left = () if inner is None else (inner,)
    body = (*loop.body[:place], *left, *loop.body[place + 1 :])
    return replace(loop, body=body) if body else None


def can_leave(loop: Loop, path: Path, stmt: Compute, region: Region) -> Reason | None:
    """Return why the statement at ``path`` of a loop may not get a loop of its own; None if it may."""
    left = without(loop, path)
    if left is None:
        return None
    family = families(region)
    others = [one for one in all_statements(left.body) if not isinstance(one, Loop)]
    written = {family[window.array] for one in others for window in writes(one)}
    touched = written | {family[window.array] for one in others for window in reads(one)}
    for window in writes(stmt):
        if family[window.array] in touched:
            return Reason(f"the loop over {loop.var} has other uses of {window.array}", (window,))
    for window in reads(stmt):
        if family[window.array] in written:
            return Reason(f"the loop over {loop.var} writes {window.array}", (window,))
    return None
