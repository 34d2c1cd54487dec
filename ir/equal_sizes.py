"""Regions in which sizes that guards make equal are one symbol: passes see it without a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import dims
from .analysis.independence import window_at
from .nodes import Array, Branch, Call, Compute, Dim, Loop, Region, Stmt, While
from .renaming import expression_at, statement_at

__all__ = ["with_equal_sizes"]


def with_equal_sizes(region: Region) -> Region:
    """Return the region with one symbol in place of others that equal it; its guards stay as they are."""
    values = dims.Guards(facts=region.guards).equal
    if not values:
        return region
    arrays = tuple([_array(array, values) for array in region.arrays])
    return replace(region, arrays=arrays, body=_block(region.body, values))


def _array(array: Array, values: Mapping[str, Dim]) -> Array:
    def at(sizes: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple([dims.substitute(n, values) for n in sizes])

    strides = None if array.strides is None else at(array.strides)
    return replace(array, shape=at(array.shape), strides=strides)


def _block(body: tuple[Stmt, ...], values: Mapping[str, Dim]) -> tuple[Stmt, ...]:
    return tuple([_statement(stmt, values) for stmt in body])


def _statement(stmt: Stmt, values: Mapping[str, Dim]) -> Stmt:
    match stmt:
        case Compute():
            return statement_at(stmt, values)
        case Call():
            reads, writes = (tuple([window_at(w, values) for w in ws]) for ws in (stmt.reads, stmt.writes))
            return replace(stmt, reads=reads, writes=writes)
        case Loop():
            start, stop, step = (dims.substitute(n, values) for n in stmt.bounds)
            return replace(stmt, bounds=(start, stop, step), body=_block(stmt.body, values))
        case While():
            return replace(stmt, cond=expression_at(stmt.cond, values), body=_block(stmt.body, values))
        case Branch():
            then, orelse = (_block(side, values) for side in (stmt.then, stmt.orelse))
            return replace(stmt, cond=expression_at(stmt.cond, values), then=then, orelse=orelse)
    return stmt  # what passes make comes later
