"""Pieces of a region for many ranks: blocks of statements, each planned as one, and the loops around them.

The planner of ranks (`dcarray.comm.planning`) has no loops: a loop of large statements is run turn by turn,
several of them as one block where all turns are alike.  Where windows move from turn to turn, each has a plan
of its own, so that such loops have to be short, or their statements too large for one rank.  Any other loop
stays one statement, which every rank computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.effects import reads, touched_arrays, writes
from dcarray.ir.nodes import (
    Array,
    Branch,
    Compute,
    Dim,
    Expr,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    While,
    Window,
)
from dcarray.ir.renaming import stmt_at, unused_names
from dcarray.ir.windows import rewrite, walk

__all__ = ["Block", "Choice", "Piece", "Turns", "pieces_of", "region_at"]

MOST_UNROLLED = 48
"""Statements of one block that several turns of a loop make."""

FEW_TURNS = 16
"""Turns of a loop up to which each may have a plan of its own."""

_MOST_PLANS = 256  # of one block
_ELEMENTS_PER_LARGE = 8  # a statement is large if it goes over one of so many, or more


@dataclass(eq=False)
class Block:
    """Statements that are planned as one.

    Attributes
    ----------
    body : tuple of Stmt
    moved : frozenset of str
        The variables of surrounding loops on which its windows depend.
    numbers : tuple of (Array, Dim)
        Arrays without axes that hold values of surrounding loops' variables, with these values.
    plans : dict
        The plans of the block, by the layouts and loop values that they depend on.
    """

    body: tuple[Stmt, ...]
    moved: frozenset[str] = frozenset()
    numbers: tuple[tuple[Array, Dim], ...] = ()
    plans: dict[Any, Any] = field(default_factory=dict)

    def at(self, values: Mapping[str, int]) -> Block:
        """Return the block for values of the variables that its windows depend on."""
        key = tuple([values[name] for name in sorted(self.moved)])
        block = self.plans.get(key)
        if block is None:
            given = {name: values[name] for name in self.moved}
            numbers = tuple([(array, dims.substitute(dim, given)) for array, dim in self.numbers])
            body = tuple([stmt_at(stmt, given) for stmt in self.body])
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            block = self.plans[key] = Block(body, frozenset(), numbers)
        return block


@dataclass(frozen=True)
class Turns:
    """A loop that runs its pieces in each iteration; without a variable, it runs while a number is not 0.

    Attributes
    ----------
    var : str
    bounds : tuple of Dim
    test : Block or None
        The block that computes this number, in the array `condition`.
    """

    var: str
    bounds: tuple[Dim, Dim, Dim]
    body: tuple[Piece, ...]
    test: Block | None = None
    condition: str = ""


@dataclass(frozen=True)
class Choice:
    """Two sides of pieces, of which one runs: the first if the number computed by ``test`` is not 0."""

    test: Block
    condition: str
    then: tuple[Piece, ...]
    orelse: tuple[Piece, ...]


Piece = Block | Turns | Choice


def region_at(region: Region, values: Mapping[str, int]) -> Region:
    """Return a region with numbers in place of its symbols."""
    arrays = []
    for array in region.arrays:
        shape = tuple([dims.substitute(n, values) for n in array.shape])
        strides = array.strides
        if strides is not None:
            strides = tuple([dims.substitute(n, values) for n in strides])
        arrays.append(replace(array, shape=shape, strides=strides))
    return Region((), tuple(arrays), tuple([stmt_at(stmt, values) for stmt in region.body]))


def pieces_of(
    region: Region, blocks: frozenset[str], above: int
) -> tuple[tuple[Piece, ...], tuple[Array, ...]]:
    """Return the pieces of a region with known sizes, and the arrays without axes that are new in them.

    Parameters
    ----------
    region : Region
    blocks : frozenset of str
        The arrays that lie in blocks, or are so large that they will.
    above : int
        Elements from which on a statement is too large for one rank.
    """
    pieces = _Pieces(region, blocks, above)
    return pieces.of(region.body, ()), tuple(pieces.new)


class _Pieces:
    def __init__(self, region: Region, blocks: frozenset[str], above: int) -> None:
        self._above = above
        self._sizes = {a.name: math.prod(a.shape) for a in region.arrays}
        self._blocks = blocks
        self._names = unused_names("value", self._sizes)
        self.new: list[Array] = []

    def of(self, body: Sequence[Stmt], around: tuple[str, ...]) -> tuple[Piece, ...]:
        """Return the pieces of statements in loops over some variables."""
        pieces: list[Piece] = []
        straight: list[Stmt] = []
        for stmt in body:
            if not self._is_split(stmt):
                straight.append(stmt)
                continue
            if straight:
                pieces.append(self._block(straight, around))
                straight = []
            pieces += self._split(stmt, around)
        if straight:
            pieces.append(self._block(straight, around))
        return tuple(pieces)

    def _is_split(self, stmt: Stmt) -> bool:
        """Whether a statement is a loop or condition whose statements are large, so that ranks share them."""
        if not isinstance(stmt, Loop | While | Branch):
            return False
        most = max((self._sizes[name] for name in touched_arrays(stmt) & self._blocks), default=0)
        largest = max(_turn_sizes(stmt), default=0)
        if not most or _ELEMENTS_PER_LARGE * largest < most:
            return False
        if not isinstance(stmt, Loop) or largest > self._above:
            return True
        count = dims.count(stmt.bounds)
        few = type(count) is int and count <= FEW_TURNS
        return few or not any(stmt.var in _window_symbols(one) for one in stmt.body)

    def _split(self, stmt: Stmt, around: tuple[str, ...]) -> Iterator[Piece]:
        if isinstance(stmt, Loop):
            yield from self._loop(stmt, around)
        elif isinstance(stmt, While):
            test, name = self._test(stmt.cond, around)
            yield Turns("", (0, 0, 1), self.of(stmt.body, around), test, name)
        elif isinstance(stmt, Branch):
            test, name = self._test(stmt.cond, around)
            yield Choice(test, name, self.of(stmt.then, around), self.of(stmt.orelse, around))

    def _loop(self, loop: Loop, around: tuple[str, ...]) -> Iterator[Piece]:
        inside, count = (*around, loop.var), dims.count(loop.bounds)
        alike = not any(self._is_split(stmt) for stmt in loop.body) and not any(
            loop.var in _window_symbols(stmt) for stmt in loop.body
        )
        times = max(1, MOST_UNROLLED // max(1, len(loop.body)))
        if not alike or type(count) is not int or count < 2 or times < 2:
            yield Turns(loop.var, loop.bounds, self.of(loop.body, inside))
            return
        times = min(times, count)
        start, stop, step = loop.bounds
        whole = dims.simplify(start + count // times * times * step)
        yield Turns(loop.var, (start, whole, times * step), (self._several(loop, times, inside),))
        if count % times:
            rest = (whole, stop, count % times * step)
            yield Turns(loop.var, rest, (self._several(loop, count % times, inside),))

    def _several(self, loop: Loop, times: int, inside: tuple[str, ...]) -> Block:
        """Return the block of several turns of a loop."""
        step, var = loop.bounds[2], dims.symbol(loop.var, None)
        body = [stmt_at(stmt, {loop.var: var + k * step}) for k in range(times) for stmt in loop.body]
        return self._block(body, inside)

    def _test(self, condition: Expr, around: tuple[str, ...]) -> tuple[Block, str]:
        name = self._new(condition.dtype).name
        return self._block([Compute(Window(name, (), ()), condition)], around), name

    def _new(self, dtype: np.dtype[Any]) -> Array:
        array = Array(next(self._names), dtype, ())
        self.new.append(array)
        return array

    def _block(self, body: Sequence[Stmt], around: tuple[str, ...]) -> Block:
        """Return the block of some statements, which gets the values of surrounding loops' variables."""
        numbers: dict[tuple[Dim, np.dtype[Any]], Array] = {}
        variables = frozenset(around)

        def value(shape: tuple[Dim, ...], node: Expr) -> Expr:
            if not isinstance(node, Size) or variables.isdisjoint(dims.free_symbols(node.dim)):
                return node
            number = numbers.get((node.dim, node.dtype))
            if number is None:
                number = numbers[node.dim, node.dtype] = self._new(node.dtype)
            return Load(Window(number.name, shape, ()), node.dtype)

        if variables:
            body = [_with_values(stmt, value) for stmt in body]
        moved = frozenset().union(*map(_window_symbols, body)) & variables
        return Block(tuple(body), moved, tuple([(a, dim) for (dim, _), a in numbers.items()]))


def _with_values(stmt: Stmt, value: Any) -> Stmt:
    """Return a statement with other expressions in place of some."""
    if isinstance(stmt, Nest):
        return replace(stmt, body=tuple([_with_values(one, value) for one in stmt.body]))  # type: ignore[misc]
    if not isinstance(stmt, Compute):
        return stmt
    shape = stmt.target.shape

    def change(expr: Expr) -> Expr:
        return rewrite(expr, lambda node: value(shape, node))

    init = None if stmt.init is None else change(stmt.init)
    return replace(stmt, body=change(stmt.body), init=init)


def _window_symbols(stmt: Stmt) -> frozenset[str]:
    """Return the symbols in the windows of a statement; of a loop or a condition, all of them."""
    symbols: set[str] = set()
    for window in (*reads(stmt), *writes(stmt)):
        for dim in (*window.shape, *(d for ix in window.index for d in (ix.offset, ix.stride))):
            symbols |= dims.free_symbols(dim)
    if isinstance(stmt, Loop):
        for dim in stmt.bounds:
            symbols |= dims.free_symbols(dim)
    inner: tuple[Stmt, ...] = ()
    if isinstance(stmt, Branch | While):
        symbols |= _size_symbols(stmt.cond)
        inner = stmt.body if isinstance(stmt, While) else (*stmt.then, *stmt.orelse)
    elif isinstance(stmt, Loop):
        inner = stmt.body
    for one in inner:
        symbols |= _window_symbols(one)
        if isinstance(one, Compute):
            symbols |= _size_symbols(*[e for e in (one.body, one.init) if e is not None])
    return frozenset(symbols)


def _size_symbols(*exprs: Expr) -> set[str]:
    return {name for node in walk(*exprs) if isinstance(node, Size) for name in dims.free_symbols(node.dim)}


def _turn_sizes(stmt: Stmt) -> Iterator[int]:
    """Yield, for each statement in a loop or condition, the most elements that one iteration covers."""
    if isinstance(stmt, Loop | While | Branch):
        inner = (*stmt.then, *stmt.orelse) if isinstance(stmt, Branch) else stmt.body
        within = dims.ranging(stmt.var, stmt.bounds) if isinstance(stmt, Loop) else nullcontext()
        with within:
            for one in inner:
                yield from _turn_sizes(one)
        return
    for window in (*reads(stmt), *writes(stmt)):
        sizes = [dims.upper_bound(n) for n in window.shape]
        if all(type(n) is int for n in sizes):
            yield math.prod(sizes)  # type: ignore[arg-type]
