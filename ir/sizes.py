"""Substitution of a region's sizes: numbers for symbols, or one symbol for several equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import dims
from .nodes import Array, Dim, Region, Stmt
from .renaming import stmt_at

__all__ = ["with_equal_sizes", "with_sizes"]


def with_sizes(region: Region, values: Mapping[str, int]) -> Region:
    """Return a region with symbols replaced by numbers.

    Parameters
    ----------
    region : Region
    values : mapping of str to int
        The value of each symbol that is to be replaced; other symbols stay.

    Raises
    ------
    ValueError
        If a value is less than its symbol's minimum, or if a guard does not hold for the values.
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
    arrays, body = _at(region, values)
    symbols = tuple(symbol for symbol in region.symbols if symbol.name not in values)
    functions = tuple([(name, with_sizes(function, values)) for name, function in region.functions])
    return Region(symbols, arrays, body, tuple(guards), functions)


def with_equal_sizes(region: Region) -> Region:
    """Return the region with symbols that its guards make equal replaced by one, so that passes need no proof
    of that.  The guards stay as they are."""
    values = dims.Guards(facts=region.guards).equal
    if not values:
        return region
    arrays, body = _at(region, values)
    return replace(region, arrays=arrays, body=body)


def _at(region: Region, values: Mapping[str, Dim]) -> tuple[tuple[Array, ...], tuple[Stmt, ...]]:
    """Return the arrays and statements of a region with the symbols in ``values`` replaced."""

    def at(sizes: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple([dims.substitute(n, values) for n in sizes])

    arrays = [
        replace(a, shape=at(a.shape), strides=None if a.strides is None else at(a.strides))
        for a in region.arrays
    ]
    return tuple(arrays), tuple([stmt_at(stmt, values) for stmt in region.body])
