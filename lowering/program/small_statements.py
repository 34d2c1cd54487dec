"""Consecutive statements on small arrays as one kernel, since a launch takes longer than such a statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from dcarray.ir.analysis.traffic import fused_traffic
from dcarray.ir.nodes import Branch, Compute, Loop, Nest, Region, Rows, Stmt
from dcarray.ir.renaming import unused_names
from dcarray.ir.statements import all_statements, loop_variables

__all__ = ["joined"]

MOST_WORK = 1 << 12
"""Operations, and bytes that are read or written, of a small statement: less than a microsecond."""
MOST_STATEMENTS = 32
"""Statements in one kernel: LLVM takes longer for a statement in larger ones."""


def joined(region: Region, stop: int | None) -> tuple[Region, int | None]:
    """Return the region in which consecutive small statements are the body of a loop that runs once, of which
    the scheduler makes one kernel.

    Parameters
    ----------
    region : Region
    stop : int or None
        The position of a statement before which a run may end: it is joined with none of those before it.

    Returns
    -------
    Region
    int or None
        The position of the same statement in the new region.
    """
    taken = loop_variables(region.body) | {symbol.name for symbol in region.symbols}
    variables = unused_names("once", taken)
    before = _joined(region.body[:stop], region, variables)
    after = [] if stop is None else _joined(region.body[stop:], region, variables)
    if len(before) + len(after) == len(region.body):
        return region, stop
    return replace(region, body=(*before, *after)), None if stop is None else len(before)


def _joined(body: tuple[Stmt, ...], region: Region, variables: Iterator[str]) -> list[Stmt]:
    """Return statements, with a loop over one of the ``variables`` around those that are small."""
    new: list[Stmt] = []
    for is_small, group in groupby(body, lambda stmt: _is_small(stmt, region)):
        left = [*group]
        while left:
            stmts, left = tuple(left[:MOST_STATEMENTS]), left[MOST_STATEMENTS:]
            new += (Loop(next(variables), (0, 1, 1), stmts),) if is_small and len(stmts) > 1 else stmts
    return new


def _is_small(stmt: Stmt, region: Region) -> bool:
    """Whether a statement can be part of a kernel, and does little, for sizes that are known."""
    if not all(isinstance(one, Compute | Nest | Rows | Branch | Loop) for one in all_statements((stmt,))):
        return False
    try:
        moved = fused_traffic(stmt, region, {})
    except KeyError:  # a size is a symbol
        return False
    return moved.bytes + moved.operations <= MOST_WORK
