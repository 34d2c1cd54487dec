"""The statements that reduce a row.  Sums of floats have NumPy's order, and so its last bits.

A leaf of up to 128 numbers is added to eight accumulators, these in pairs, and then what is left over one by
one.  A longer row is halved, at a multiple of eight numbers, until there are leaves.  Of complex numbers half
as many count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from dcarray.ir import dims, ops, windows
from dcarray.ir.nodes import Apply, Dim
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.nodes import Affine, Declare, Elem, Expr, For, Index, Local, Op, Stmt, affine
from dcarray.lowering.nest.access import scale
from dcarray.lowering.nest.body import Scope, cast_to, literal
from dcarray.lowering.nest.fold import Fold, Folding, op
from dcarray.lowering.nest.loop_nest import Block, Kind, LoopHeader, LoopNest, evaluate_statements, variable

PARTS, LEAVES = "b5", "b6"  # the loops over the parts of a row that is summed, and over their leaves
LANE, ROUND = "b7", "b8"  # those over accumulators, and over what is added to them
DEEPEST = 33  # halvings of a row
DEAR = 12  # the cost of an operation (a function's) from which on terms are computed before they are added
_INT = np.dtype(np.int64)


def _op(name: str, value: int | Expr, by: int | Expr) -> Expr:
    first, second = (literal(v, _INT) if isinstance(v, int) else v for v in (value, by))
    return Op(name, (first, second), np.dtype(bool) if name in ("greater", "equal") else _INT)


def _if(condition: Expr, value: Expr, other: int | Expr) -> Expr:
    return Op("where", (condition, value, literal(other, _INT) if isinstance(other, int) else other), _INT)


class RowFolds:
    """The reductions along a loop of a nest, inside of other loops; ``scope`` is that of the row."""

    def __init__(
        self, nest: LoopNest, foldings: Sequence[Folding], loop: int, phase: str, headers: list[LoopHeader],
        kind: Kind,
    ) -> None:  # fmt: skip
        self.nest, self.loop, self.phase, self.headers, self.kind = nest, loop, phase, headers, kind
        self.folds = {folding.number: folding.fold for folding in foldings}
        self.totals = {f: Local(nest.names("a"), f.wide) for f in self.folds.values() if f.mode == "sum"}
        self.ends = {fold: Local(nest.names("a"), fold.wide) for fold in self.totals}
        self.lanes = {fold: nest.names("q") for fold in self.folds.values()}
        self.bits = 2 if all(fold.dtype.kind == "c" for fold in self.totals) else 3
        plain = all(nest.folds) and all(fold.mode != "ordered" for fold in self.lanes)
        applied = [node for node in windows.walk(*nest.values) if isinstance(node, Apply)]
        self.buffered = not plain or any(ops.OPS[node.op].cost >= DEAR for node in applied)
        self.chained = False  # whether totals are declared, and their terms are added to them one by one
        self.scope = nest.scope_at(phase, headers, 1 + len(headers), nest.nonempty)
        bounds: list[Expr] = [Index(bound) for bound in nest.arguments.bounds(loop)]
        self.size = reduce(lambda a, b: op("minimum", a, b), bounds)

    def let(self, into: list[Stmt], value: Expr) -> Local:
        """Add a definition to some statements, and return the local."""
        local = Local(self.nest.names("z"), value.dtype)
        into.append(k.Let(local.name, value))
        return local

    def half(self, size: Expr) -> tuple[Expr, Expr]:
        """Return whether elements are more than a leaf, and how many the first half has, or all."""
        more = _op("greater", size, 16 << self.bits)
        return more, _if(more, _op("bitwise_and", _op("right_shift", size, 1), -(1 << self.bits)), size)

    def part(self, into: list[Stmt], number: Affine, depth: int) -> tuple[Affine, Expr]:
        """Add the definition of one of 2**depth parts of the row; return its first element and size."""
        low, size = affine(), self.size
        for bit in reversed(range(depth)):
            half = self.let(into, self.half(size)[1])
            later = self.let(into, _op("greater", _op("bitwise_and", Index(number), 1 << bit), 0))
            low = variable(self.let(into, _op("add", Index(low), _if(later, half, 0))).name)
            size = self.let(into, _if(later, op("subtract", size, half), half))
        return low, size

    def statements(self, low: Affine, size: Expr, strip: int = 0) -> Block:
        """Return the statements that reduce ``size`` elements from ``low`` on.  With ``strip``, but no sum,
        the loop ends after that many elements if the results are known."""
        before, after = list[Stmt](), list[Stmt]()
        extent, ways = self.nest.loops.extents[self.loop], 1 << self.bits
        if not self.totals:
            high = affine(0, low, variable(self.let(before, size).name))
            if not strip or not dims.prove_lt(strip, extent):  # short rows would be slower
                return (*before, self.along(low, (high,)))
            start = variable("b1")
            loop = self.along(start, (affine(strip, start), high))
            ends = [end for f in self.lanes if (end := f.open_ended()) is not None]
            undecided = k.If(reduce(lambda a, b: op("logical_or", a, b), ends), (loop,))
            return (*before, For("b1", low, (high,), strip, "serial", (undecided,)))
        if self.chained:
            high = affine(0, low, variable(self.let(before, size).name))
            terms = self.terms(low, variable(ROUND), 1, self.follow)
            return (*before, For(ROUND, low, (high,), 1, "short", terms))
        before += [Declare(total.name, fold.identity()) for fold, total in self.totals.items()]
        for fold in [] if self.buffered else [fold for fold in self.lanes if fold not in self.totals]:
            name = self.lanes[fold]
            before += self.opened(name, fold, fold.result() if fold.idempotent else fold.identity())
            after += [s for lane in range(ways) for s in fold.update(Elem(name, affine(lane), fold.wide))]
        short = dims.prove_le(extent, 16 * ways) is True
        return (*before, *(self.leaf(low, size, extent) if short else self.tree(low, size)), *after)

    def opened(self, name: str, fold: Fold, start: Expr) -> Block:
        """Return the statements that declare accumulators."""
        ways = 1 << self.bits
        store = k.Store(name, variable(LANE), start)
        return k.Stack(name, fold.wide, ways), For(LANE, affine(), (affine(ways),), 1, "vector", (store,))

    def along(self, low: Affine, high: tuple[Affine, ...]) -> For:
        """Return the loop that evaluates the statements, and stores the terms of sums to a leaf's buffers."""
        var = f"i{self.loop}"

        def update(scope: Scope, fold: Fold, value: Expr) -> None:
            if fold in self.totals:
                at = affine(0, variable(var), scale(-1, low))
                scope.add(k.Store(self.lanes[fold] + "b", at, cast_to(value, fold.wide)))
            else:
                scope.put(scope.deepest, fold.update(value))

        return For(var, low, high, 1, self.kind, self.sweep(variable(var), 1, update))

    def sweep(self, at: Affine, depth: int, update: Callable[[Scope, Fold, Expr], None]) -> Block:
        """Return the statements for the element ``at``, ``depth`` loops inside of the row."""
        nest, level = self.nest, 1 + len(self.headers) + depth
        scope = nest.scope_at(self.phase, self.headers, level, nest.nonempty)
        scope.depths = [level if n == self.loop else d for n, d in enumerate(scope.depths)]
        scope.variables = [at if n == self.loop else v for n, v in enumerate(scope.variables)]
        scope.announce(nest.values, [compute.target for compute in nest.computes])
        evaluate_statements(nest, scope, lambda number, value: update(scope, self.folds[number], value))
        stmts = scope.take(level)
        self.scope.absorb(scope)
        return stmts

    def terms(self, low: Affine, at: Affine, depth: int, update: Callable[[Fold, Expr], Block]) -> Block:
        """Return the statements that update with the element ``at`` of a leaf, which begins at ``low``."""
        if not self.buffered:
            return self.sweep(at, depth, lambda scope, *what: scope.put(scope.deepest, update(*what)))
        place = affine(0, at, scale(-1, low))
        return tuple(s for f in self.totals for s in update(f, Elem(self.lanes[f] + "b", place, f.wide)))

    def tree(self, low: Affine, size: Expr) -> Block:
        """Return the loop over parts of the row that are halved equally often, and are one leaf or two.  Sums
        wait on a stack until there is the one that they are added to."""
        before, part, leaf, merge = list[Stmt](), list[Stmt](), list[Stmt](), list[Stmt]()
        bits, number = self.bits, Index(variable(PARTS))
        size = self.let(before, size)
        units = self.let(before, _op("right_shift", size, bits))
        limits = [cast_to(_op("greater", units, 30 << n), _INT) for n in range(DEEPEST)]
        depth = self.let(before, reduce(lambda a, b: op("add", a, b), limits))
        count = self.let(before, _op("left_shift", 1, depth))
        at, mirrored = (Local(self.nest.names("z"), _INT) for _ in range(2))
        before += [Declare(at.name, Index(low)), Declare(mirrored.name, literal(0, _INT))]

        # the bits of the part's number in reverse say which halves are the larger ones
        own = _op("left_shift", _op("right_shift", op("add", units, mirrored), depth), bits)
        last = _op("equal", number, _op("subtract", count, 1))
        own = self.let(part, op("add", own, _if(last, _op("bitwise_and", size, (1 << bits) - 1), 0)))
        two, half = self.half(own)
        half = self.let(part, half)
        trips = self.let(part, _op("add", cast_to(two, _INT), 1))
        here = _if(_op("greater", Index(variable(LEAVES)), 0), op("subtract", own, half), half)
        here, start = self.let(leaf, here), self.let(leaf, at)
        leaf.append(k.Assign(at.name, self.let(leaf, op("add", start, here))))
        leaf += self.leaf(variable(start.name), here)
        part += [k.Assign(total.name, fold.identity()) for fold, total in self.totals.items()]
        part.append(For(LEAVES, affine(), (variable(trips.name),), 1, "short", tuple(leaf)))
        ended = Op("bitwise_count", (_op("bitwise_xor", number, _op("add", number, 1)),), np.dtype(np.uint8))
        ones = self.let(part, cast_to(ended, _INT))
        merges = variable(self.let(part, _op("subtract", ones, 1)).name)
        change = op("subtract", count, _op("right_shift", count, ones))
        part.append(k.Assign(mirrored.name, op("bitwise_xor", mirrored, change)))
        stores = list[Stmt]()
        for fold, total in self.totals.items():
            stack = self.nest.names("q")
            before.append(k.Stack(stack, fold.wide, DEEPEST + 1))
            merge.append(k.Assign(total.name, op("add", Elem(stack, variable("b9"), fold.wide), total)))
            stores.append(k.Store(stack, merges, total))
        part += [For("b9", affine(), (merges,), 1, "short", tuple(merge)), *stores]
        return (*before, For(PARTS, affine(), (variable(count.name),), 1, "serial", tuple(part)))

    def follow(self, fold: Fold, value: Expr) -> Block:
        """Return the statements that add a term to what has been added one by one."""
        ends = self.totals if self.chained else self.ends
        if fold not in ends:
            return fold.update(value)
        return (k.Update(ends[fold].name, "add", cast_to(value, fold.wide)),)

    def leaf(self, low: Affine, size: Expr, extent: Dim | None = None) -> Block:
        """Return the statements that add a leaf to the totals."""
        ways, stmts, full = 1 << self.bits, list[Stmt](), list[Stmt]()
        lane, at = variable(LANE), variable(ROUND)
        high = affine(0, low, variable(self.let(stmts, size).name))
        whole = affine(0, low, variable(self.let(stmts, _op("bitwise_and", size, -ways)).name))
        if self.buffered:
            stmts += [k.Stack(self.lanes[fold] + "b", fold.wide, 16 * ways) for fold in self.totals]
            stmts.append(self.along(low, (high,)))
        stmts += [Declare(end.name, fold.identity()) for fold, end in self.ends.items()]

        def add(fold: Fold, value: Expr) -> Block:
            old = Elem(self.lanes[fold], lane, fold.wide)
            return (k.Store(self.lanes[fold], lane, op(fold.name, old, cast_to(value, fold.wide))),)

        if extent is None or dims.prove_lt(extent, ways) is not True:
            for fold in self.totals:
                full += self.opened(self.lanes[fold], fold, fold.identity())
            each = self.terms(low, affine(0, at, lane), 2, add)
            loop = For(LANE, affine(), (affine(ways),), 1, "vector", each)
            full.append(For(ROUND, low, (whole,), ways, "short", (loop,)))
            for fold, end in self.ends.items():
                parts: list[Expr] = [Elem(self.lanes[fold], affine(n), fold.wide) for n in range(ways)]
                while len(parts) > 1:
                    parts = [op("add", a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
                full.append(k.Assign(end.name, parts[0]))
            stmts.append(k.If(_op("greater", size, ways - 1), tuple(full)))
        stmts.append(For(ROUND, whole, (high,), 1, "short", self.terms(low, at, 1, self.follow)))
        for fold, total in self.totals.items():
            stmts.append(k.Assign(total.name, op("add", total, self.ends[fold])))
        return tuple(stmts)
