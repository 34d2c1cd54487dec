"""Passes inside loops and branches: each body is a region of its own.

Arrays that are used elsewhere, or that carry values from one iteration to the next, are ``inout`` there; all
others are temporaries.  So the same passes work on bodies, and proofs know the range of the loop's variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.effects import touched_arrays
from dcarray.ir.analysis.independence import privatisable
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Array, Loop, Region, Stmt, Symbol
from dcarray.ir.statements import bodies, with_bodies

from .base import Log, Pass

Run = Callable[[Region, Log], Region]

#: In a sequence of a `Pipeline`: where that sequence runs in all bodies.  It does nothing by itself.
NESTED = Pass("nested", lambda region, log: region)


def as_region(body: tuple[Stmt, ...], region: Region, loop: Loop | None = None) -> Region:
    """Return the body of a statement of ``region`` as a region; ``loop`` is that statement if it is a
    loop."""
    temps = privatisable(body, region)
    arrays = tuple(
        array if array.role == "in" or array.name in temps else replace(array, role="inout")
        for array in region.arrays
    )
    symbols = region.symbols
    if loop is not None:
        middle = SizeHints(region)(loop.bounds[0]) + SizeHints(region)(loop.bounds[1])
        symbols = (*symbols, Symbol(loop.var, 0, middle // 2))
    return Region(symbols, arrays, body, region.guards, region.functions)


def each_loop(
    region: Region, fn: Callable[[Loop, Region, int], tuple[Sequence[Stmt], Sequence[Array]] | None]
) -> Region:
    """Return the region with loops replaced.

    ``fn`` gets a loop, the region and the loop's position there.  It returns the statements that replace the
    loop, and the arrays that these need, or None: the loop stays.
    """
    body: list[Stmt] = []
    changed = False
    for position, stmt in enumerate(region.body):
        replacement = fn(stmt, region, position) if isinstance(stmt, Loop) else None
        if replacement is None:
            body.append(stmt)
            continue
        body += replacement[0]
        region = replace(region, arrays=(*region.arrays, *replacement[1]))
        changed = True
    return replace(region, body=tuple(body)) if changed else region


def without_unused(region: Region) -> Region:
    """Return the region without temporaries that no statement touches."""
    used = frozenset[str]().union(*map(touched_arrays, region.body))
    kept = (a for a in region.arrays if a.role != "temp" or a.name in used or a.base is not None)
    return replace(region, arrays=tuple(kept))


def in_bodies(region: Region, log: Log, run: Run) -> Region:
    """Return the region with every body replaced by the result of ``run``, which gets it as a region."""
    for position, stmt in enumerate(region.body):
        new, region = _statement(stmt, region, log, run)
        if new is not stmt:
            body = (*region.body[:position], new, *region.body[position + 1 :])
            region = replace(region, body=body)
    return region


def _statement(stmt: Stmt, region: Region, log: Log, run: Run) -> tuple[Stmt, Region]:
    """Return the statement with new bodies, and the region with the arrays that these need added."""
    loop = stmt if isinstance(stmt, Loop) else None
    new: list[tuple[Stmt, ...]] = []
    with dims.ranging(loop.var, loop.bounds) if loop is not None else nullcontext():
        for part in bodies(stmt):
            body, region = _body(part, region, log, run, loop)
            new.append(body)
    return with_bodies(stmt, new), region


def _body(
    body: tuple[Stmt, ...], region: Region, log: Log, run: Run, loop: Loop | None = None
) -> tuple[tuple[Stmt, ...], Region]:
    if not body:
        return body, region
    before = as_region(body, region, loop)
    inner_log = Log()  # refusals are noted by the passes on the whole region
    after = run(before, inner_log)
    if after is before:
        return body, region
    for note in inner_log.notes:
        if note.kind == "done":
            log.done(note.pass_name, note.text, note.loc)
    left = {array.name: array for array in after.arrays}  # temporaries may have got axes
    arrays = tuple(replace(left.pop(a.name), role=a.role) for a in region.arrays if a.name in left)
    arrays += tuple(left.values())
    return after.body, replace(region, arrays=arrays)
