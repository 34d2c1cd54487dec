"""Idiom recognition: reductions that are matrix products become library calls."""

from __future__ import annotations

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Apply, Call, Compute, Index, Load, Stmt, Window
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import dtype_of, is_zero
from dcarray.ir.passes.flow import Block, Facts, block_pass
from dcarray.ir.records import record

#: A matrix axis shorter than this is not worth a library call.
MIN_EXTENT = 8
_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class Axes:
    """The domain axes of ``c[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]``."""

    batch: tuple[int, ...]
    m: int
    n: int
    k: int


def _axes_of(window: Window) -> set[int] | None:
    """Return the domain axes that a window uses; None if one of them is used by two array axes."""
    axes = windows.moving_axes(window)
    return set(axes) if len(axes) == len(set(axes)) else None


def _operands(stmt: Compute) -> tuple[Load, Load] | None:
    body = stmt.body
    if isinstance(body, Apply) and body.op == "multiply":
        first, second = body.args
        if isinstance(first, Load) and isinstance(second, Load):
            return first, second
    return None


def _length(stmt: Compute, axis: int) -> tuple[bool, int, int]:
    """Return the sort key of domain axes: their length, unknown ones last, and then their position."""
    extent = stmt.target.shape[axis]
    known = isinstance(extent, int)
    return not known, extent if known else 0, axis


def _split(stmt: Compute) -> Axes | Reason:
    operands = _operands(stmt)
    if operands is None:
        return Reason("it does not sum the products of two arrays", (stmt.target,))
    a, b, c = _axes_of(operands[0].window), _axes_of(operands[1].window), _axes_of(stmt.target)
    if a is None or b is None or c is None:
        return Reason("it runs along a diagonal", (stmt.target,))
    every = set(range(len(stmt.target.shape)))
    if every - (a | b | c) or (a - b - c) or (b - a - c):
        return Reason("an axis belongs to one operand only", (stmt.target,))
    summed = sorted(every - c)
    rows, columns = sorted((a & c) - b), sorted((b & c) - a)
    if len(summed) != 1:
        return Reason("it sums along several axes", (stmt.target,))
    if not rows or not columns:
        return Reason("it is a product with a vector, which a kernel does as well", (stmt.target,))
    m, n = (max(axes, key=lambda axis: _length(stmt, axis)) for axes in (rows, columns))
    batch = tuple(axis for axis in sorted(c) if axis not in (m, n))
    return Axes(batch, m, n, summed[0])


def can_contract(stmt: Compute, facts: Facts) -> Reason | None:
    """Return why the statement does not become a matrix product."""
    if stmt.combine != "add" or stmt.scan is not None:
        return Reason("it is not a sum", (stmt.target,))
    operands = _operands(stmt)
    axes = _split(stmt)
    if isinstance(axes, Reason):
        return axes
    assert operands is not None
    if stmt.init is None or not is_zero(stmt.init):
        return Reason("the sum does not start from zero", (stmt.target,))
    if dtype_of(stmt.body).char not in _DTYPES:
        return Reason(f"the library has no product of {dtype_of(stmt.body).name}", (stmt.target,))
    for axis in (axes.m, axes.n, axes.k):
        extent = stmt.target.shape[axis]
        if isinstance(extent, int) and extent < MIN_EXTENT:
            return Reason("the matrices are too small for a library call", (stmt.target,))
    for load in operands:
        if facts.overlap(load.window, stmt.target) is not False:
            return Reason(f"{load.window.array} is both read and written", (load.window, stmt.target))
    return None


def _view(window: Window, order: tuple[int, ...]) -> Window:
    """Return the window with its domain axes in the given order, those that it does not use of length one."""
    moving = _axes_of(window)
    assert moving is not None
    shape = tuple(window.shape[axis] if axis in moving else 1 for axis in order)
    place = {axis: k for k, axis in enumerate(order)}
    index = tuple(
        ix
        if ix.axis is None
        else Index(ix.offset, ix.stride, place[ix.axis])
        if ix.axis in moving
        else Index(ix.offset)
        for ix in window.index
    )
    return Window(window.array, shape, index)


def contract(stmt: Compute) -> Call:
    """Return the matrix product that computes the statement's sums."""
    axes, operands = _split(stmt), _operands(stmt)
    assert isinstance(axes, Axes) and operands is not None
    first, second = (load.window for load in operands)
    reads = (_view(first, (*axes.batch, axes.m, axes.k)), _view(second, (*axes.batch, axes.k, axes.n)))
    return Call("blas.matmul", reads, (_view(stmt.target, (*axes.batch, axes.m, axes.n)),), loc=stmt.loc)


def _may_contract(stmt: Stmt | None) -> bool:
    return (
        isinstance(stmt, Compute)
        and stmt.combine == "add"
        and stmt.scan is None
        and _operands(stmt) is not None
    )


def _visit(block: Block, log: Log) -> bool:
    changed = False
    for pos, stmt in enumerate(block.stmts):
        if not isinstance(stmt, Compute) or not _may_contract(stmt):
            continue
        reason = can_contract(stmt, block.facts)
        if reason is not None:
            log.refused("contract", f"{stmt.target.array} is not a matrix product: {reason.text}", stmt.loc)
            continue
        block.replace(pos, contract(stmt))
        log.done("contract", f"{stmt.target.array} is a matrix product", stmt.loc)
        changed = True
    return changed


CONTRACT = block_pass("contract", _visit, _may_contract)
