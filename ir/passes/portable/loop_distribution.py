"""Loop distribution: loops without carried dependences become an axis of each of their statements.

``for i: y[i] = f(x[i])`` becomes one statement over all ``i``, which fuses with others, becomes a matrix
product, and runs as one loop nest.  Every statement of such a loop may run for all iterations before the next
one begins; the loop's temporaries get an axis, too (array expansion).  Within an element the order of
operations stays, except that a reduction over axes that slide with the loop is written out as an expression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, clash
from dcarray.ir.analysis.independence import privatised_arrays
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.analysis.versions import MAX_ELEMENTS, active, no_larger
from dcarray.ir.nodes import (
    Apply,
    Array,
    Compute,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    Window,
)
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of, size_bound
from dcarray.ir.passes.fusion_profit import EXPRESSION
from dcarray.ir.records import record
from dcarray.ir.renaming import remap_points


@record(frozen=True, slots=True)
class Iterations:
    """Iteration space of a loop that becomes an array axis: ``var = start + step * i`` for ``0 <= i <
    count``."""

    var: str
    start: Dim
    step: Dim
    count: Dim


class _Refused(Exception):
    """Raised inside a rewrite with the reason why it is impossible."""

    def __init__(self, text: str, *where: Window) -> None:
        super().__init__(text)
        self.reason = Reason(text, where)


# ---- legality and action: the statements over all iterations, or why there are none ----------------------
def distribute(loop: Loop, region: Region) -> tuple[tuple[Compute, ...], tuple[Array, ...]] | Reason:
    """Return the statements over all iterations that replace a loop, and the temporaries that get an axis for
    the iterations; or why that is impossible.  ``loop`` must be the very object that is in ``region``."""
    count = dims.count(loop.bounds)
    if count is None:
        return Reason(f"it is not known how many iterations {loop.var} takes")
    iterations = Iterations(loop.var, loop.bounds[0], loop.bounds[2], count)
    parts = list(_computes(loop.body))
    if None in parts:
        return Reason("it holds more than computations")
    body = tuple(part for part in parts if part is not None)
    reason = _rectangular(body, iterations)
    if reason is not None:
        return reason
    own = privatised_arrays(loop, region)
    if isinstance(own, Reason):
        return own
    hints = SizeHints(region)
    room = dims.upper_bound(count)  # a temporary exists before the loops around begin
    if own and room is None:
        return Reason(f"it is not known how many iterations {loop.var} takes at most")
    arrays = tuple(replace(a, shape=(room, *a.shape)) for a in region.arrays if a.name in own)
    if any(a.strides is not None or a.layout is not None for a in arrays):
        return Reason("a temporary has a layout of its own")
    if sum(hints.product(a.shape) for a in arrays) > MAX_ELEMENTS:
        return Reason("the temporaries of all iterations would be too large")
    version = active([n for a in arrays for n in a.shape])
    if (
        version is not None
        and version.general
        and not all(no_larger(a.shape, version.region) for a in arrays)
    ):
        return Reason(
            "another version has the temporaries of all iterations, for sizes that are not too large"
        )
    wide = {array.name: array for array in arrays}
    after = replace(region, arrays=tuple(wide.get(a.name, a) for a in region.arrays))
    try:
        statements = tuple(_over_iterations(part, iterations, own) for part in body)
    except _Refused as no:
        return no.reason
    for part in statements:
        reason = _in_place(part, after)
        if reason is not None:
            return reason
    if version is not None:
        version.needs(arrays)
    return statements, arrays


def _computes(body: tuple[Stmt, ...]) -> Iterator[Compute | None]:
    """Yield the computations of a body, those of nests included; None for a statement of another kind."""
    for stmt in body:
        if isinstance(stmt, Nest):
            yield from stmt.body
        else:
            yield stmt if isinstance(stmt, Compute) else None


def _rectangular(body: tuple[Compute, ...], iterations: Iterations) -> Reason | None:
    for part in body:
        if any(iterations.var in dims.free_symbols(extent) for extent in part.target.shape):
            return Reason(f"what is written of {part.target.array} differs in size", (part.target,))
    return None


def _in_place(part: Compute, region: Region) -> Reason | None:
    """Return why a statement that reads elements it writes cannot run over all iterations; else None."""
    if part.scan is not None:
        return Reason(f"{part.target.array} is a scan", (part.target,))
    if part.combine is None and windows.injective(part.target) is not True:
        return Reason(f"{part.target.array} may be written twice", (part.target,))
    for node in (load for expr in part.exprs for load in windows.loads(expr)):
        window = node.window
        if windows.same(window, part.target) and windows.injective(part.target) is True:
            continue
        if clash(window, part.target, region) is not False:
            return Reason(f"{window.array} is read and written at different points", (window, part.target))
    return None


# ---- one statement over all iterations -------------------------------------------------------------------
def over_iterations(part: Compute, loop: Loop) -> Compute | Reason:
    """Return the statement with the loop's iterations as first axis of its domain, or why that is
    impossible."""
    count = dims.count(loop.bounds)
    if count is None:
        return Reason(f"it is not known how many iterations {loop.var} takes")
    try:
        return _over_iterations(
            part, Iterations(loop.var, loop.bounds[0], loop.bounds[2], count), frozenset()
        )
    except _Refused as no:
        return no.reason


def _over_iterations(part: Compute, iterations: Iterations, own: frozenset[str]) -> Compute:
    """Return the statement with ``iterations`` as first axis of its domain, and of the arrays ``own``."""
    part = _written_out(part, iterations)
    shape = (iterations.count, *part.target.shape)

    def window(old: Window) -> Window:
        moved = tuple(_move_index(ix, iterations, old) for ix in old.index)
        head = (Index(0, 1, 0),) if old.array in own else ()
        return Window(old.array, shape, head + moved)

    def fn(node: Expr) -> Expr:
        if isinstance(node, Load):
            return Load(window(node.window), node.dtype)
        if isinstance(node, Gather):
            if node.window.array in own:
                raise _Refused(f"{node.window.array} is read at places that depend on values", node.window)
            return Gather(replace(node.window, shape=shape), node.index, node.dtype)
        if isinstance(node, Iota):
            return Iota(node.axis + 1, node.dtype)
        if isinstance(node, Size):
            return _size(node, iterations)
        return node

    init = None if part.init is None else windows.rewrite(part.init, fn)
    spread = replace(part, target=window(part.target), body=windows.rewrite(part.body, fn), init=init)
    return _in_order(spread)


def _move_index(ix: Index, iterations: Iterations, window: Window) -> Index:
    """Return an index over the domain with the iterations as first axis, given the one of one iteration."""
    if iterations.var in dims.free_symbols(ix.stride):
        raise _Refused(f"{window.array} is read with strides that change", window)
    pace = dims.slope(ix.offset, iterations.var)
    if pace is None:
        raise _Refused(f"{window.array} does not move evenly", window)
    axis = None if ix.axis is None else ix.axis + 1
    if type(pace) is int and pace == 0:
        return Index(ix.offset, ix.stride, axis)
    if axis is not None:
        raise _Refused(f"{window.array} slides along an axis that it runs along", window)
    stride = dims.simplify(pace * iterations.step)
    if dims.prove_eq(stride, 0) is not False:
        raise _Refused(f"{window.array} does not move evenly", window)
    return Index(dims.substitute(ix.offset, {iterations.var: iterations.start}), stride, 0)


def _size(node: Size, iterations: Iterations) -> Expr:
    pace = dims.slope(node.dim, iterations.var)
    if pace is None:
        raise _Refused(f"{iterations.var} is used as a number in a way that is not even")
    if type(pace) is int and pace == 0:
        return node
    start = dims.substitute(node.dim, {iterations.var: iterations.start})
    return windows.coordinate(Index(start, dims.simplify(pace * iterations.step), 0), node.dtype)


def _in_order(part: Compute) -> Compute:
    """Return the statement with its domain axes in the order of the target's indices, reduced axes last."""
    used = [ix.axis for ix in part.target.index if ix.axis is not None]
    order = list(dict.fromkeys(used))
    order += [axis for axis in range(len(part.target.shape)) if axis not in used]
    if order == list(range(len(order))):
        return part
    shape = tuple(part.target.shape[axis] for axis in order)
    amap = tuple(Index(0, 1, order.index(axis)) for axis in range(len(order)))
    return remap_points(part, amap, shape)


# ---- folds over what slides -------------------------------------------------------------------------
def _written_out(part: Compute, iterations: Iterations) -> Compute:
    """Return the statement with those reduced axes written out as sums along which a window also moves with
    the loop: an index has one domain axis only, so it cannot have both."""
    if part.combine is None:
        return part
    used = {ix.axis for ix in part.target.index}
    slides = {
        ix.axis
        for node in windows.loads(part.body)
        for ix in node.window.index
        if ix.axis is not None and ix.axis not in used and iterations.var in dims.free_symbols(ix.offset)
    }
    if not slides:
        return part
    shape = part.target.shape
    rest = [axis for axis in range(len(shape)) if axis not in used and axis not in slides]
    every = sorted({*slides, *rest})
    if _terms(shape, every, part) is not None:
        slides = set(every)
    gone = sorted(slides)
    terms = _terms(shape, gone, part)
    if terms is None:
        raise _Refused("a window slides along an axis with too many terms", part.target)
    kept = [axis for axis in range(len(shape)) if axis not in slides]
    inner = tuple(shape[axis] for axis in kept)
    values: list[Expr] = []
    for point in np.ndindex(*terms):
        at = dict(zip(gone, (int(p) for p in point), strict=True))
        values.append(_at(part.body, at, kept, inner))
    amap = _map(dict.fromkeys(gone, 0), kept)
    target = windows.compose(part.target, amap, inner)
    init = None if part.init is None else windows.remap(part.init, amap, inner)
    dtype = dtype_of(part.body)
    folded = any(axis not in used for axis in kept)
    if not folded:  # the fold begins with its start
        values.insert(0, Load(target, dtype) if init is None else init)
    body = values[0]
    for value in values[1:]:
        body = Apply(part.combine, (body, value), dtype)
    if folded:
        return replace(part, target=target, body=body, init=init)
    return replace(part, target=target, body=body, combine=None, init=None)


def _terms(shape: tuple[Dim, ...], axes: list[int], part: Compute) -> tuple[int, ...] | None:
    """Return the lengths of the axes, if they are known and short enough to write out."""
    lengths = tuple(shape[axis] for axis in axes)
    if not all(type(n) is int and n > 0 for n in lengths) or math.prod(lengths) > EXPRESSION.loads:
        return None
    return lengths if math.prod(lengths) * (size_bound(part.body) + 1) <= EXPRESSION.nodes else None


def _map(at: dict[int, int], kept: list[int]) -> tuple[Index, ...]:
    place = {axis: k for k, axis in enumerate(kept)}
    return tuple(
        Index(0, 1, place[axis]) if axis in place else Index(at[axis]) for axis in range(len(at) + len(kept))
    )


def _at(body: Expr, at: dict[int, int], kept: list[int], shape: tuple[Dim, ...]) -> Expr:
    """Return the expression with the coordinates ``at`` (by axis) fixed, over a domain of the axes
    ``kept``."""
    return windows.remap(body, _map(at, kept), shape)


# ---- the pass ---------------------------------------------------------------------------------------
def _run(region: Region, log: Log) -> Region:
    position = 0
    while position < len(region.body):
        stmt = region.body[position]
        position += 1
        if not isinstance(stmt, Loop):
            continue
        distributed: Any = distribute(stmt, region)
        if isinstance(distributed, Reason):
            log.refused("loop_distribution", f"the loop over {stmt.var} stays: {distributed.text}", stmt.loc)
            continue
        statements, arrays = distributed
        wide = {array.name: array for array in arrays}
        region = replace(
            region,
            arrays=tuple(wide.get(a.name, a) for a in region.arrays),
            body=(*region.body[: position - 1], *statements, *region.body[position:]),
        )
        position += len(statements) - 1
        log.done("loop_distribution", f"the loop over {stmt.var} is an axis", stmt.loc)
    return region


LOOP_DISTRIBUTION = Pass("loop_distribution", _run)
