"""Scalar replacement: an element that iterations of a loop update or pass on is held in a scalar (a
register).

``for k: c[i, j] = max(c[i, j], c[i, k] + c[k+1, j])`` reads other elements of the array that it writes, so a
compiler, which knows neither the range of ``k`` nor the shape, stores the element in every iteration.  Where
other rows are written too, it cannot know that ``a[i, j-1]`` is the value that the previous iteration wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.effects import families
from dcarray.ir.analysis.independence import accesses, window_at
from dcarray.ir.nodes import Apply, Array, Branch, Compute, Expr, Load, Loop, Nest, Region, Size, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.renaming import numbered, rewindow
from dcarray.ir.statements import all_statements, bodies, is_point, loop_variables, with_bodies
from dcarray.ir.windows import loads, overlap, rewrite, same

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


# ---- legality -----------------------------------------------------------------------------------------
def updated_element(loop: Loop, region: Region) -> Window | None:
    """Return the element that all iterations of a loop update while they read other elements of its array;
    None if there is no such element."""
    if not all(isinstance(stmt, Compute | Loop | Branch) for stmt in all_statements(loop.body)):
        return None
    variables = {loop.var, *loop_variables(loop.body)}
    root, arrays = families(region), {array.name: array for array in region.arrays}
    for stmt in all_statements(loop.body):
        if not isinstance(stmt, Compute) or stmt.combine is not None or stmt.scan is not None:
            continue
        target = stmt.target
        if target.shape or not target.index:
            continue
        if any(not variables.isdisjoint(dims.free_symbols(ix.offset)) for ix in target.index):
            continue
        if not _inside(target, arrays[target.array]):
            continue
        # this suffix keeps the variables of inner loops apart from those of enclosing loops
        uses = accesses((loop,), {}, " inside", {}, {root[target.array]}, root)
        others = [one for one in uses if not _is(one.window, target)]
        is_read = not all(one.writing for one in uses)  # else it may have no value before the loop
        if others and is_read and all(one.window.array == target.array for one in uses):
            for one in others:
                with dims.between(dict(one.ranges)):
                    if overlap(one.window, target) is not False:
                        break
            else:
                return target
    return None


def carried_elements(loop: Loop, region: Region) -> list[int]:
    """Return the positions of a loop's statements that read the element which they wrote in the previous
    iteration, while other statements write other elements of the array."""
    points = [stmt for stmt in loop.body if is_point(stmt)]
    if len(points) < len(loop.body) or type(loop.bounds[2]) is not int:
        return []
    root, positions = families(region), []
    with dims.ranging(loop.var, loop.bounds):
        for k, stmt in enumerate(points):
            here, old = stmt.target, previous_element(stmt.target, loop)
            others = [other.target for other in (*points[:k], *points[k + 1 :])]
            others = [t for t in others if root[t.array] == root[here.array]]
            if not others or old == here or Load(old, stmt.body.dtype) not in loads(stmt.body):
                continue
            if all(t.array == old.array and overlap(t, w) is False for t in others for w in (old, here)):
                positions.append(k)
    return positions


def previous_element(window: Window, loop: Loop) -> Window:
    """Return the element that a window gives in the previous iteration."""
    return window_at(window, {loop.var: dims.simplify(dims.symbol(loop.var, None) - loop.bounds[2])})


def _is(window: Window, element: Window) -> bool:
    """Whether a window gives only the element ``element``."""
    return all(ix.axis is None for ix in window.index) and same(replace(window, shape=()), element)


def _inside(window: Window, array: Array) -> bool:
    ends = [(ix.offset, n) for ix, n in zip(window.index, array.shape, strict=True)]
    return all(dims.prove_le(0, at) is True and dims.prove_lt(at, n) is True for at, n in ends)


# ---- action -------------------------------------------------------------------------------------------
def in_scalar(loop: Loop, target: Window, array: Array) -> Stmt:
    """Return the loop with the scalar ``array`` in place of the element ``target``, which is loaded before it
    and stored after it, if there is an iteration."""
    scalar = Window(array.name, (), ())

    def moved(window: Window) -> Window:
        return replace(window, array=array.name, index=()) if _is(window, target) else window

    body = (
        Compute(scalar, Load(target, array.dtype), loc=loop.loc),
        rewindow(loop, moved),
        Compute(target, Load(scalar, array.dtype), loc=loop.loc),
    )
    return _if_any(loop, body)


def in_scalars(loop: Loop, which: Sequence[int], arrays: Sequence[Array]) -> Stmt:
    """Return the loop with scalars in place of elements that the iteration before has written: the statements
    at the positions ``which`` read them from ``arrays``, which have no axes."""
    head: list[Stmt] = []
    body: list[Stmt] = list(loop.body)
    for k, array in zip(which, arrays, strict=True):
        stmt, scalar = body[k], Window(array.name, (), ())
        assert isinstance(stmt, Compute)
        old, value = Load(previous_element(stmt.target, loop), array.dtype), Load(scalar, array.dtype)
        first = window_at(old.window, {loop.var: loop.bounds[0]})
        head.append(Compute(scalar, Load(first, array.dtype), loc=loop.loc))
        expr = rewrite(stmt.body, partial(_put, old, value))
        body[k] = Nest((Compute(scalar, expr, loc=stmt.loc), replace(stmt, body=value)))
    parts = tuple(part for stmt in body for part in (stmt.body if isinstance(stmt, Nest) else (stmt,)))
    return _if_any(loop, (*head, replace(loop, body=parts)))


def _put(old: Expr, new: Expr, node: Expr) -> Expr:
    return new if node is old else node


def _if_any(loop: Loop, body: tuple[Stmt, ...]) -> Stmt:
    """Return the statements under the condition that the loop has an iteration."""
    start, stop, step = loop.bounds
    up = dims.prove_le(0, step) is True
    ends = (Size(start, _I8), Size(stop, _I8))
    return Branch(Apply("less", ends if up else ends[::-1], _BOOL), body, (), loc=loop.loc)


# ---- the pass -----------------------------------------------------------------------------------------
@dataclass
class _Sweep:
    region: Region
    log: Log
    taken: set[str]

    def scalar(self, target: Window) -> Array:
        """Return a new scalar for an element."""
        (array,) = [a for a in self.region.arrays if a.name == target.array]
        scalar = Array(numbered(array.name, self.taken), array.dtype, (), "temp")
        self.taken.add(scalar.name)
        self.region = replace(self.region, arrays=(*self.region.arrays, scalar))
        return scalar

    def body(self, stmts: tuple[Stmt, ...], inside: bool) -> tuple[Stmt, ...]:
        new = tuple([self.one(stmt, inside) for stmt in stmts])
        return stmts if all(a is b for a, b in zip(new, stmts, strict=True)) else new

    def one(self, stmt: Stmt, inside: bool) -> Stmt:
        """Return a statement with elements replaced by scalars; ``inside``: it is in the body of a loop."""
        if isinstance(stmt, Branch):
            return with_bodies(stmt, [self.body(part, inside) for part in bodies(stmt)])
        if not isinstance(stmt, Loop):
            return stmt
        if inside and not stmt.parallel:
            target = updated_element(stmt, self.region)
            if target is not None:
                self.log.done(
                    "scalar_replacement", f"{target.array} has a scalar in the loop over {stmt.var}", stmt.loc
                )
                return in_scalar(stmt, target, self.scalar(target))
            which = carried_elements(stmt, self.region)
            if which:
                self.log.done("scalar_replacement", f"the loop over {stmt.var} carries scalars", stmt.loc)
                targets = [part.target for part in stmt.body if isinstance(part, Compute)]
                return in_scalars(stmt, which, [self.scalar(targets[k]) for k in which])
        with dims.ranging(stmt.var, stmt.bounds):
            return with_bodies(stmt, [self.body(stmt.body, True)])


def _run(region: Region, log: Log) -> Region:
    taken = {array.name for array in region.arrays} | {symbol.name for symbol in region.symbols}
    taken |= loop_variables(region.body)
    sweep = _Sweep(region, log, taken)
    body = sweep.body(region.body, False)
    return region if body is region.body else replace(sweep.region, body=body)


SCALAR_REPLACEMENT = Pass("scalar_replacement", _run)
