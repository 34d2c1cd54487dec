"""Removal of domain axes of length one, so that statements over the same points have the same domain.

Joining contiguous axes into one is left to the schedule: windows name the axes of their arrays.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, computes_of, domain
from dcarray.ir.nodes import Apply, Compute, Dim, Expr, Index, Iota, Load, Nest, Part, Stmt
from dcarray.ir.ops import const
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.flow import Block, block_pass
from dcarray.ir.passes.match import unused_axes


def can_collapse(stmt: Stmt | None) -> Reason | None:
    """Return why no axis of the statement's domain can be removed."""
    if not isinstance(stmt, Part):
        return Reason("only the domain of a computation can collapse", ())
    shape = domain(stmt)
    if isinstance(stmt, Compute) and stmt.scan is not None:
        return Reason("a scan keeps its axes", ())
    if not any(dims.is_number(extent, 1) for extent in shape):
        return Reason("no axis has length one", ())
    return None


def _collapse_compute(stmt: Compute, amap: tuple[Index, ...], shape: tuple[Dim, ...]) -> Compute:
    def fn(node: Expr) -> Expr:
        if isinstance(node, Iota) and amap[node.axis].axis is None:
            return const(0, node.dtype)
        return node

    body = windows.remap(windows.rewrite(stmt.body, fn), amap, shape)
    target = windows.compose(stmt.target, amap, shape)
    if stmt.combine is None or unused_axes(target):
        init = None if stmt.init is None else windows.remap(stmt.init, amap, shape)
        return replace(stmt, target=target, body=body, init=init)
    # no reduction is left: the one value is combined with the initial one
    dtype = dtype_of(body)
    init = Load(target, dtype) if stmt.init is None else windows.remap(stmt.init, amap, shape)
    return replace(
        stmt, target=target, body=Apply(stmt.combine, (init, body), dtype), combine=None, init=None
    )


def collapse(stmt: Part) -> Part:
    """Return the statement over its domain without the axes of length one."""
    shape = domain(stmt)
    amap: list[Index] = []
    kept: list[Dim] = []
    for extent in shape:
        if dims.is_number(extent, 1):
            amap.append(Index(0))
        else:
            amap.append(Index(0, 1, len(kept)))
            kept.append(extent)
    new = tuple(_collapse_compute(part, tuple(amap), tuple(kept)) for part in computes_of(stmt))
    return replace(stmt, body=new) if isinstance(stmt, Nest) else new[0]


def _visit(block: Block, log: Log) -> bool:
    changed = False
    for pos, stmt in enumerate(block.stmts):
        if isinstance(stmt, Part) and can_collapse(stmt) is None:
            block.replace(pos, collapse(stmt))
            log.done("collapse", f"axes of length one vanish from the loop over {domain(stmt)}", stmt.loc)
            changed = True
    return changed


COLLAPSE = block_pass("collapse", _visit, lambda stmt: can_collapse(stmt) is None)
