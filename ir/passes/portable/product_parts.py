"""Parts of products: rows and columns of a matrix product that nothing reads are not computed.

``(a @ b)[0]`` is ``a[0] @ b``, ``(a @ b)[:, :5]`` is ``a @ b[:, :5]``, and of ``trace(a @ b)`` only the inner
products on the diagonal are computed.  The temporary keeps its shape; other elements of it are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Apply, Call, Compute, Dim, Index, Load, Stmt, Window
from dcarray.ir.ops import const
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.flow import Block, call_pass
from dcarray.ir.passes.match import containing_map
from dcarray.ir.records import record


@record(frozen=True, slots=True)
class Range:
    """The integers from ``low`` on, ``length`` of them."""

    low: Dim
    length: Dim


Part = tuple[tuple[Index, ...], tuple[Dim, ...]]
"""A part of a product that is read: its axes' indices over the domain of the reader."""


def _range(index: Index, domain: Sequence[Dim]) -> Range | None:
    """Return the range of an index over a domain; None if the sign of its stride is not known."""
    if index.axis is None:
        return Range(index.offset, 1)
    if not isinstance(index.stride, int) or index.stride == 0:
        return None
    reach = dims.simplify(abs(index.stride) * (domain[index.axis] - 1))
    low = index.offset if index.stride > 0 else dims.simplify(index.offset - reach)
    return Range(low, dims.simplify(reach + 1))


def _union(a: Range, b: Range) -> Range | None:
    """Return the smallest range that contains both; None if it is not known."""
    if a == b:
        return a
    if not all(isinstance(n, int) for one in (a, b) for n in (one.low, one.length)):
        return None
    low = min(a.low, b.low)
    return Range(low, max(a.low + a.length, b.low + b.length) - low)


def read_parts(block: Block, pos: int, target: Window) -> list[Part] | Reason:
    """Return the parts of a product that are read, or why they are not all known."""
    uses, reason = block.uses(pos, target)
    if reason is not None:
        return reason
    if not uses:
        return Reason(f"{target.array} is never read", (target,))
    parts = []
    for use in uses:
        amap = containing_map(target, use.window) if use.kind in ("load", "call") else None
        if amap is None:
            return Reason(f"which part of {target.array} is read is not known", (use.window,))
        domain = use.window.shape
        fixed = [ix.axis is None or dims.is_number(domain[ix.axis], 1) for ix in amap]
        parts.append(
            (tuple(Index(ix.offset) if one else ix for ix, one in zip(amap, fixed, strict=True)), domain)
        )
    return parts


# ---- rows and columns -------------------------------------------------------------------------------------
def needed(target: Window, uses: Sequence[Part]) -> list[Range] | None:
    """Return for each axis of a product the range that is read; None if it is all of it, or not known."""
    ranges = [_needed(axis, extent, uses) for axis, extent in enumerate(target.shape)]
    if all(one is None for one in ranges):
        return None
    return [one or Range(0, extent) for one, extent in zip(ranges, target.shape, strict=True)]


def _needed(axis: int, extent: Dim, uses: Sequence[Part]) -> Range | None:
    """Return the range that is read along an axis; None if it is all of it, or not known."""
    hull: Range | None = None
    for amap, domain in uses:
        one = _range(amap[axis], domain)
        hull = one if hull is None or one is None else _union(hull, one)
        if hull is None:
            return None
    if hull is None or dims.prove_eq(hull.length, extent) is True:
        return None
    return hull if dims.prove_le(0, hull.length) is True else None


def _narrowed(window: Window, ranges: dict[int, Range]) -> Window:
    """Return a window restricted to ``ranges`` along some of its axes."""
    shape = tuple(ranges[k].length if k in ranges else n for k, n in enumerate(window.shape))
    amap = tuple(Index(ranges[k].low if k in ranges else 0, 1, k) for k in range(len(shape)))
    return windows.compose(window, amap, shape)


def restricted(call: Call, ranges: Sequence[Range]) -> Call:
    """Return the library call that computes only a range along each axis of a product."""
    (target,), (a, b) = call.writes, call.reads
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    batch = len(target.shape) - rows - columns
    operands = []
    places = batch if rows else None, batch + rows if columns else None
    for read, place, last in zip((a, b), places, (2, 1), strict=True):  # a and b may be one window
        kept = {}
        if place is not None:
            kept[len(read.shape) - last] = ranges[place]
        stacked = max(len(read.shape) - 2, 0)
        for k in range(stacked):
            if not dims.is_number(read.shape[k], 1):  # else it is the same for all
                kept[k] = ranges[batch - stacked + k]
        operands.append(_narrowed(read, kept))
    return replace(call, reads=tuple(operands), writes=(_narrowed(target, dict(enumerate(ranges))),))


# ---- the diagonal ------------------------------------------------------------------------------------------
def diagonal(call: Call, uses: Sequence[Part]) -> tuple[Index, Index, Dim] | None:
    """Return the row and column indices of a diagonal of a product, and its length, if all reads are of that
    diagonal; else None."""
    if any(len(window.shape) != 2 for window in (*call.reads, *call.writes)):
        return None
    diagonals = set()
    for (row, column), domain in uses:
        if row.axis is None or row.axis != column.axis:
            return None
        diagonals.add((replace(row, axis=0), replace(column, axis=0), domain[row.axis]))
    return diagonals.pop() if len(diagonals) == 1 else None


def inner_products(call: Call, row: Index, column: Index, length: Dim, dtype: np.dtype[Any]) -> Compute:
    """Return the statement that computes the elements of a product on a diagonal."""
    (target,), (a, b) = call.writes, call.reads
    shape, along = (length, a.shape[1]), Index(0, 1, 1)
    factors = [
        Load(windows.compose(a, (row, along), shape), dtype),
        Load(windows.compose(b, (along, column), shape), dtype),
    ]
    elements = windows.compose(target, (row, column), shape)
    return Compute(elements, Apply("multiply", tuple(factors), dtype), "add", const(0, dtype), call.loc)


def _shrink(block: Block, pos: int, call: Call, log: Log) -> bool:
    (target,) = call.writes
    uses = read_parts(block, pos, target)
    if isinstance(uses, Reason):
        return False
    indices = diagonal(call, uses)
    new: Stmt | None = None
    if indices is not None:
        new = inner_products(call, *indices, block.facts.arrays[target.array].dtype)
    elif (ranges := needed(target, uses)) is not None:
        new = restricted(call, ranges)
    if new is None:
        return False
    block.replace(pos, new)
    what = "diagonal" if indices is not None else "part that is read"
    log.done("product_parts", f"of the product {target.array} only the {what} is computed", call.loc)
    return True


PRODUCT_PARTS = call_pass("product_parts", "blas.matmul", _shrink)
