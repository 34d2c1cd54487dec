"""The kernel code of one reduction: its accumulators, their updates and the final value.

There are three modes.  "exact": the result does not depend on the order (integers, extremes, logic).
"sum": floating-point sums are in NumPy's order on processors.  Devices take them in blocks whose additions
may be reassociated, and add the blocks with compensation, which is at least as accurate.
"ordered": everything else (floating-point products) is folded element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.ir import ops
from dcarray.ir.nodes import Compute
from dcarray.ir.records import record
from dcarray.lowering.kernel.nodes import Assign, Declare, DType, Expr, If, Let, Local, Op, Stmt, Update

from .body import Names, Scope, cast_to, literal
from .loop_nest import Block, LoopHeader, LoopNest, evaluate_statements, wrap_loop

# Folding the initial value again changes nothing.
_IDEMPOTENT = frozenset(
    ["maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "bitwise_and", "bitwise_or"]
)
_OR = frozenset(["maximum", "fmax", "logical_or", "bitwise_or", "add"])  # of bool: True stays


@record(frozen=True, slots=True)
class Folding:
    """A reducing statement of a nest, its number there, and its accumulators."""

    number: int
    compute: Compute
    fold: Fold


def starts_of(scope: Scope, nest: LoopNest, foldings: Sequence[Folding]) -> list[Expr]:
    """Return the initial values of the reductions."""
    roots = [nest.start(folding.compute) for folding in foldings]
    scope.announce(roots, [])
    return [scope.evaluate(root) for root in roots]


def op(name: str, *args: Expr) -> Op:
    """Return an operation whose result has the dtype of its first argument."""
    return Op(name, args, args[0].dtype)


def real(dtype: DType) -> DType:
    """Return the dtype of the real part of a dtype."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


class Fold:
    """The accumulators of one reduction with the operation ``name`` on values of a dtype."""

    def __init__(self, name: str, dtype: DType, names: Names) -> None:
        self.name = name
        self.dtype = dtype
        self.names = names
        boolean = dtype.kind == "b" and name in ("add", "multiply")
        self.idempotent = name in _IDEMPOTENT or boolean
        if dtype.kind in "fc" and name == "add":
            self.mode = "sum"
        elif dtype.kind == "c" or (dtype.kind == "f" and not self.idempotent):
            self.mode = "ordered"
        else:
            self.mode = "exact"
        # partial sums of half precision are kept in single precision
        self.wide = np.dtype(np.float32) if self.mode == "sum" and dtype.char == "e" else dtype
        self._blocks: list[str] = []
        self._sums: list[tuple[str, str]] = []

    def identity(self) -> Expr:
        """Return the identity of the operation; -0.0 for sums, since adding 0.0 would change -0.0."""
        value: Any = ops.OPS[self.name].identity
        if self.mode == "sum":
            value = complex(-0.0, -0.0) if self.dtype.kind == "c" else -0.0
        return literal(np.asarray(value).astype(self.wide), self.wide)

    def _parts(self, value: Expr) -> list[Expr]:
        if self.mode == "sum" and self.dtype.kind == "c":
            part = real(self.dtype)
            return [Op("real", (value,), part), Op("imag", (value,), part)]
        return [cast_to(value, self.wide)]

    def _join(self, parts: list[Expr]) -> Expr:
        return parts[0] if len(parts) == 1 else Op("complex", tuple(parts), self.dtype)

    def open(self, start: Expr | None, carried: bool) -> Block:
        """Return the declarations of the accumulators: of the sums of blocks (``carried``), or of one block.
        ``start`` is the initial value; None for a partial result, which starts from the identity."""
        if self.mode == "sum":
            if not carried:
                return self.open_block()
            zero, part = literal(-0.0, real(self.wide)), literal(0.0, real(self.wide))
            count = 2 if self.dtype.kind == "c" else 1
            self._sums = [(self.names("s"), self.names("c")) for _ in range(count)]
            return tuple(d for s, c in self._sums for d in (Declare(s, zero), Declare(c, part)))
        begin = start if start is not None and self.starts_early else self.identity()
        self._blocks = [self.names("a")]
        return (Declare(self._blocks[0], begin, self.mode == "exact"),)

    @property
    def starts_early(self) -> bool:
        """Whether accumulation starts from the statement's initial value, not from the identity."""
        return self.idempotent or self.mode == "ordered"

    def open_block(self) -> Block:
        """Return the declarations of the accumulators of one block of a sum; none in other modes."""
        if self.mode != "sum":
            return ()
        zero = literal(-0.0, real(self.wide))
        count = 2 if self.dtype.kind == "c" else 1
        self._blocks = [self.names("a") for _ in range(count)]
        return tuple(Declare(name, zero, True) for name in self._blocks)

    def open_ended(self) -> Expr | None:
        """Return the condition that further values can still change the result; None if they always can."""
        if self.dtype.kind != "b" or not self.idempotent:
            return None
        (name,) = self._blocks
        value = Local(name, self.dtype)
        return op("logical_not", value) if self.name in _OR else value

    def update(self, value: Expr) -> Block:
        """Return the statements that fold a value into the block's accumulators."""
        parts = self._parts(value)
        if len(parts) > 1 and not isinstance(value, Local):
            local = Local(self.names("v"), value.dtype)
            return (Let(local.name, value), *self.update(local))
        return tuple(Update(name, self.name, part) for name, part in zip(self._blocks, parts, strict=True))

    def close_block(self) -> Block:
        """Return the statements that add the block's result to the sums of blocks; none in other modes."""
        if self.mode != "sum":
            return ()
        return self._carry([Local(name, real(self.wide)) for name in self._blocks])

    def add_partial(self, value: Expr) -> Block:
        """Return the statements that fold in a partial result."""
        if self.mode != "sum":
            return self.update(value)
        local = Local(self.names("v"), value.dtype)
        return (Let(local.name, value), *self._carry(self._parts(local)))

    def _carry(self, parts: list[Expr]) -> Block:
        """Return the statements that add to the sums with Neumaier's compensation, or without it where a sum
        is infinite or NaN, since the rounding error would be NaN."""
        stmts: list[Stmt] = []
        for (total, lost), part in zip(self._sums, parts, strict=True):
            s, c = Local(total, part.dtype), Local(lost, part.dtype)
            t = Local(self.names("v"), part.dtype)
            u = Local(self.names("v"), part.dtype)
            error = op("add", op("subtract", s, op("subtract", t, u)), op("subtract", part, u))
            stmts += [
                Let(t.name, op("add", s, part)),
                Let(u.name, op("subtract", t, s)),
                If(Op("isfinite", (t,), np.dtype(bool)), (Assign(lost, op("add", c, error)),)),
                Assign(total, t),
            ]
        return tuple(stmts)

    def result(self) -> Expr:
        """Return the expression of the accumulated value."""
        if not self._sums:
            return self._join([Local(name, real(self.wide) if self.mode == "sum" else self.wide)
                                 for name in self._blocks])  # fmt: skip
        parts: list[Expr] = []
        for total, lost in self._sums:
            s, c = Local(total, real(self.wide)), Local(lost, real(self.wide))
            exact = Op("equal", (c, literal(0.0, c.dtype)), np.dtype(bool))
            parts.append(Op("where", (exact, s, op("add", s, c)), s.dtype))
        return self._join(parts)

    def combine(self, start: Expr, total: Expr) -> Expr:
        """Return the final value, of the target's dtype: ``total``, with the initial value ``start`` folded
        in if it is not in it."""
        if self.starts_early:
            return total
        return cast_to(op(self.name, cast_to(start, self.wide), total), self.dtype)


def foldings_of(nest: LoopNest) -> list[Folding]:
    """Return the reducing statements of a nest."""
    foldings = []
    for number, compute in enumerate(nest.computes):
        if nest.folds[number]:
            dtype = nest.memory.arrays[compute.target.array].dtype
            assert compute.combine is not None
            foldings.append(Folding(number, compute, Fold(compute.combine, dtype, nest.names)))
    return foldings


def accumulate(
    nest: LoopNest, foldings: Sequence[Folding], scope: Scope, headers: list[LoopHeader], carried: bool
) -> None:
    """Evaluate a nest's statements in the innermost of the loops ``headers``, where ``scope`` is, and update
    the accumulators there.  ``carried``: that loop is one block of sums, opened before and closed after
    it."""
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    folds = {folding.number: folding.fold for folding in foldings}

    def update(number: int, value: Expr) -> None:
        for stmt in folds[number].update(value):
            scope.add(stmt)

    begin = tuple(stmt for fold in folds.values() for stmt in fold.open_block()) if carried else ()
    evaluate_statements(nest, scope, update)
    if carried:
        wrap_loop(headers, -1, begin, tuple(s for fold in folds.values() for s in fold.close_block()))
