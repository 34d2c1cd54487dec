"""Loop-invariant code motion: what is the same in all iterations of a loop is computed once, before it.

::

    for t:                            if the loop runs:
        m[i,k] add= a[i,j] * b[j,k]       m[i,k] add= a[i,j] * b[j,k]
        x[i] = x[i] + exp(w[i])           e[i] = exp(w[i])
                                      for t:
                                          x[i] = x[i] + e[i]

Statements are moved as a whole, and parts of expressions that take long.  Elements are left to compilers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import is_

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.effects import families, reads, writes
from dcarray.ir.memo import symbols_of
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Expr,
    Index,
    Iota,
    Load,
    Loop,
    Region,
    Size,
    Stmt,
    While,
    Window,
)
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import has_checks, summary
from dcarray.ir.renaming import expression_at, unused_names
from dcarray.ir.statements import all_statements, bodies, with_bodies
from dcarray.ir.windows import identity, loads, remap, rewrite, walk

from .dead import PURE

#: Operations of an element from which on to keep it pays: about those of a division and an addition.
MIN_WORK = 5.0
_BOOL, _I8 = np.dtype(np.bool_), np.dtype(np.int64)


class _Mover:
    """One traversal of a region that moves loop-invariant computations out of its loops."""

    def __init__(self, region: Region, log: Log) -> None:
        self._log = log
        self._root = families(region)
        self._names = unused_names("kept_", self._root.keys())
        self.new_arrays: list[Array] = []

    # ---- legality -----------------------------------------------------------------------------------
    def written(self, stmts: Iterable[Stmt]) -> set[str]:
        """Return the families of the arrays that statements write."""
        return {self._root[w.array] for stmt in stmts for w in writes(stmt)}

    def _read(self, stmts: Iterable[Stmt]) -> set[str]:
        return {self._root[w.array] for stmt in stmts for w in reads(stmt)}

    def may_move(self, loop: Loop | While, pos: int) -> bool:
        """Whether the statement at ``pos`` of a loop does the same in every iteration, so that it may run
        once before the loop, if that has an iteration."""
        stmt = loop.body[pos]
        if not isinstance(stmt, Compute | Call) or not _depends_on_arrays_alone(stmt, loop):
            return False
        if isinstance(stmt, Compute) and has_checks(stmt):
            return False
        if isinstance(stmt, Call) and stmt.op.partition(".")[0] not in PURE:
            return False
        others = [one for k, one in enumerate(loop.body) if k != pos]
        own = self.written([stmt])
        before = self._read(loop.body[: pos + 1])  # the statement's own operands, too
        if isinstance(loop, While):
            before |= {self._root[node.window.array] for node in loads(loop.cond)}
        changed = self.written(others)
        return not (own & before or own & changed or self._read([stmt]) & changed)

    def _is_constant(self, expr: Expr, loop: Loop | While, changed: set[str]) -> bool:
        """Whether an expression has the same value in every iteration."""
        if isinstance(loop, Loop) and expression_at(expr, {loop.var: 0}) is not expr:
            return False
        return all(self._root[node.window.array] not in changed for node in loads(expr))

    # ---- profit -------------------------------------------------------------------------------------
    def pays(self, stmt: Stmt) -> bool:
        """Whether a statement costs more than storing its result and loading it again."""
        if isinstance(stmt, Compute):
            costly = stmt.combine is not None or summary(stmt.body).work >= MIN_WORK
            return costly and bool(stmt.target.shape)
        return isinstance(stmt, Call)

    # ---- action -------------------------------------------------------------------------------------
    def body(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements with invariants of loops moved before these; inner loops are done first."""
        new: list[Stmt] = []
        for stmt in stmts:
            if parts := bodies(stmt):
                stmt = with_bodies(stmt, [self.body(part) for part in parts])
            if isinstance(stmt, Loop | While):
                moved, stmt = self._moved(stmt)
                new += self._if_it_runs(stmt, moved)
            new.append(stmt)
        same = len(new) == len(stmts) and all(map(is_, new, stmts))
        return stmts if same else tuple(new)

    def _moved(self, loop: Loop | While) -> tuple[list[Stmt], Loop | While]:
        """Return the statements that may run before a loop, and the loop without them."""
        moved: list[Stmt] = []
        pos = 0
        while pos < len(loop.body):
            stmt = loop.body[pos]
            if len(loop.body) > 1 and self.pays(stmt) and self.may_move(loop, pos):
                moved.append(stmt)
                loop = replace(loop, body=loop.body[:pos] + loop.body[pos + 1 :])
                self._note(writes(stmt)[0].array, stmt)
            else:
                pos += 1
        return self._parts_moved(loop, moved)

    def _parts_moved(self, loop: Loop | While, moved: list[Stmt]) -> tuple[list[Stmt], Loop | While]:
        """Move invariant parts of the expressions of a loop's statements; the result is that of `_moved`."""
        changed = self.written(loop.body)
        body = list(loop.body)
        for k, stmt in enumerate(body):
            if not isinstance(stmt, Compute) or stmt.combine is not None or not stmt.target.shape:
                continue
            if isinstance(loop, Loop) and loop.var in symbols_of(stmt.target):
                continue
            kept: dict[Expr, Expr] = {}
            for part in self._constant_parts(stmt.body, loop, changed):
                axes = _axes(part)
                if axes:
                    maker, kept[part] = self._kept(part, axes, stmt)
                    moved.append(maker)
            body[k] = replace(stmt, body=_replaced(stmt.body, kept)) if kept else stmt
        return moved, replace(loop, body=tuple(body)) if moved else loop

    def _kept(self, part: Expr, axes: list[int], stmt: Compute) -> tuple[Compute, Load]:
        """Return the statement that stores a part of ``stmt``'s expression in a new array, over the domain
        axes ``axes``, and the load that replaces the part."""
        shape = tuple([stmt.target.shape[axis] for axis in axes])
        array = Array(next(self._names), part.dtype, shape)
        self.new_arrays.append(array)
        self._root[array.name] = array.name
        amap = [Index(0, 1, axes.index(k)) if k in axes else Index(0) for k in range(len(stmt.target.shape))]
        read = Window(array.name, stmt.target.shape, tuple([Index(0, 1, axis) for axis in axes]))
        self._note(array.name, stmt)
        return Compute(identity(array), remap(part, tuple(amap), shape), loc=stmt.loc), Load(read, part.dtype)

    def _constant_parts(self, expr: Expr, loop: Loop | While, changed: set[str]) -> list[Expr]:
        """Return the largest parts of an expression that are the same in every iteration and costly."""
        if not isinstance(expr, Apply) or expr.op == "checked":
            return []
        if summary(expr).work < MIN_WORK:
            return []
        plain = not any(isinstance(n, Apply) and n.op == "checked" for n in walk(expr))
        if plain and loads(expr) and self._is_constant(expr, loop, changed):
            return [expr]
        parts = [part for arg in expr.args for part in self._constant_parts(arg, loop, changed)]
        return list(dict.fromkeys(parts))

    def _if_it_runs(self, loop: Loop | While, moved: list[Stmt]) -> list[Stmt]:
        """Return the statements ``moved`` under the condition that the loop has an iteration."""
        if not moved:
            return []
        if isinstance(loop, While):
            return [Branch(loop.cond, tuple(moved), loc=loop.loc)]
        start, stop, step = loop.bounds
        first, last = (start, stop) if type(step) is int and step > 0 else (stop, start)
        if dims.prove_nonneg(dims.simplify(last - first - 1)):
            return moved
        runs = Apply("less", tuple([Size(end, _I8) for end in (first, last)]), _BOOL)
        return [Branch(runs, tuple(moved), loc=loop.loc)]

    def _note(self, name: str, stmt: Stmt) -> None:
        self._log.done("loop_invariants", f"{name} is computed before the loop", getattr(stmt, "loc", None))


def _depends_on_arrays_alone(stmt: Compute | Call, loop: Loop | While) -> bool:
    """Whether a statement does not depend on the loop's variable."""
    if isinstance(loop, While):
        return True
    if any(loop.var in symbols_of(w) for w in (*reads(stmt), *writes(stmt))):
        return False
    if isinstance(stmt, Call):
        return loop.var not in repr(stmt.attrs)
    return all(expression_at(expr, {loop.var: 0}) is expr for expr in stmt.exprs)


def _axes(expr: Expr) -> list[int]:
    """Return the axes of the domain on which an expression depends."""
    axes = {node.axis for node in walk(expr) if isinstance(node, Iota)}
    return sorted(
        axes.union(*[[ix.axis for ix in n.window.index if ix.axis is not None] for n in loads(expr)])
    )


def _replaced(expr: Expr, others: dict[Expr, Expr]) -> Expr:
    """Return an expression with each node in ``others`` replaced by its value there."""
    return rewrite(expr, lambda node: others.get(node, node))


def _run(region: Region, log: Log) -> Region:
    if not any(isinstance(stmt, Loop | While) for stmt in all_statements(region.body)):
        return region
    mover = _Mover(region, log)
    body = mover.body(region.body)
    if body is region.body:
        return region
    return replace(region, arrays=(*region.arrays, *mover.new_arrays), body=body)


LOOP_INVARIANTS = Pass("loop_invariants", _run)
