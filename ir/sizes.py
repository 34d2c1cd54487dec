"""Regions for one value of each symbol: ``with_sizes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import dims
from .analysis.independence import window_at
from .nodes import Branch, Call, Compute, Loop, Nest, Region, Rows, Stmt, TimeTiles, While
from .renaming import expression_at, statement_at

__all__ = ["with_sizes"]


def with_sizes(region: Region, values: Mapping[str, int]) -> Region:
    """Return a region for numbers in place of its symbols.

    Parameters
    ----------
    region : Region
    values : mapping of str to int
        For each symbol that is to go its value; the others stay.

    Raises
    ------
    ValueError
        If a value is less than the symbol's least one, or a guard does not hold.
    """
    for symbol in region.symbols:
        if values.get(symbol.name, symbol.minimum) < symbol.minimum:
            raise ValueError(f"{symbol.name} is at least {symbol.minimum}, not {values[symbol.name]}")
    guards = []
    for guard in region.guards:
        known = guard.at(values)
        if known is False:
            raise ValueError(f"{guard} does not hold")
        if known is not True:
            guards.append(known)
    arrays = []
    for array in region.arrays:
        shape = tuple(dims.substitute(n, values) for n in array.shape)
        strides = None if array.strides is None else tuple(dims.substitute(n, values) for n in array.strides)
        arrays.append(replace(array, shape=shape, strides=strides))
    symbols = tuple(symbol for symbol in region.symbols if symbol.name not in values)
    body = tuple(_statement(stmt, values) for stmt in region.body)
    functions = tuple([(name, with_sizes(function, values)) for name, function in region.functions])
    return Region(symbols, tuple(arrays), body, tuple(guards), functions)


def _statement(stmt: Stmt, values: Mapping[str, int]) -> Stmt:
    def block(body: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_statement(inner, values) for inner in body)

    match stmt:
        case Compute():
            return statement_at(stmt, values)
        case Call():
            reads = tuple(window_at(window, values) for window in stmt.reads)
            return replace(stmt, reads=reads, writes=tuple(window_at(w, values) for w in stmt.writes))
        case Loop():
            start, stop, step = (dims.substitute(n, values) for n in stmt.bounds)
            return replace(stmt, bounds=(start, stop, step), body=block(stmt.body))
        case Nest() | Rows() | TimeTiles():
            return replace(stmt, body=block(stmt.body))
        case While():
            return replace(stmt, cond=expression_at(stmt.cond, values), body=block(stmt.body))
        case Branch():
            cond = expression_at(stmt.cond, values)
            return replace(stmt, cond=cond, then=block(stmt.then), orelse=block(stmt.orelse))
