"""Rewrites of statements to the normal forms that placement and localisation require."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.ir.build import extreme
from dcarray.ir.nodes import Apply, Compute, Const, Expr, Index, Load, Window
from dcarray.ir.ops import OPS, const, const_value
from dcarray.ir.renaming import remap_points
from dcarray.ir.windows import compose, remap

__all__ = [
    "combine_with_start", "is_zero", "kept_axes", "name_single_points",
    "reduction_identity", "start_values", "with_point_axes", "without_negative_strides",
]  # fmt: skip


def without_negative_strides(stmt: Compute) -> Compute:
    """Return an equivalent statement with iteration axes reversed where the target's stride is negative."""
    shape = stmt.target.shape
    back = {ix.axis for ix in stmt.target.index if ix.axis is not None and ix.stride < 0} - {stmt.scan}
    if not back:
        return stmt
    amap = tuple(Index(n - 1, -1, a) if a in back else Index(0, 1, a) for a, n in enumerate(shape))
    return remap_points(stmt, amap, shape)


def with_point_axes(stmt: Compute, layout: Layout) -> Compute:
    """Return a statement with an iteration axis of length one for each fixed index of a distributed axis."""
    target = stmt.target
    fixed = [
        k
        for k, (ix, part) in enumerate(zip(target.index, layout.parts, strict=True))
        if ix.axis is None and part.parts > 1
    ]
    if not fixed:
        return stmt
    shape = (*target.shape, *(1 for _ in fixed))
    amap = tuple(Index(0, 1, a) for a in range(len(target.shape)))
    stmt = remap_points(stmt, amap, shape)
    index = list(stmt.target.index)
    for axis, k in enumerate(fixed, len(amap)):
        index[k] = Index(index[k].offset, 1, axis)
    return replace(stmt, target=replace(stmt.target, index=tuple(index)))


def name_single_points(window: Window, layout: Layout, domain: Layout) -> Window:
    """Return a window whose fixed indices refer to iteration axes of length one on the same grid axis."""
    ones = {
        spec.grid_axis: a
        for a, spec in enumerate(domain.axes)
        if not isinstance(spec, Whole) and domain.shape[a] == 1
    }
    index = [
        Index(ix.offset, 1, ones[spec.grid_axis])
        if ix.axis is None and not isinstance(spec, Whole) and spec.grid_axis in ones
        else ix
        for ix, spec in zip(window.index, layout.axes, strict=True)
    ]
    return replace(window, index=tuple(index))


def kept_axes(stmt: Compute) -> list[int]:
    """Return the iteration axes of a statement that are not reduced."""
    used = {ix.axis for ix in stmt.target.index}
    return [a for a in range(len(stmt.target.shape)) if a in used]


def _result_points(stmt: Compute) -> tuple[tuple[Index, ...], tuple[int, ...]]:
    """Return the index map from a reduction's results to its points, and the shape of the results."""
    kept, axes = kept_axes(stmt), range(len(stmt.target.shape))
    amap = tuple(Index(0, 1, kept.index(a)) if a in kept else Index(0) for a in axes)
    return amap, tuple(stmt.target.shape[a] for a in kept)


def start_values(stmt: Compute) -> Compute | None:
    """Return the statement that stores a reduction's start values as its result; None if there are none."""
    if stmt.init is None:
        return None
    amap, shape = _result_points(stmt)
    return Compute(compose(stmt.target, amap, shape), remap(stmt.init, amap, shape), loc=stmt.loc)


def combine_with_start(stmt: Compute, folded: Expr, neutral: bool) -> Compute:
    """Return the statement that combines a finished reduction with its start values, or else the target.

    If `neutral`, the start values are the operation's identity, and the reduction is stored unchanged.
    """
    amap, shape = _result_points(stmt)
    target = compose(stmt.target, amap, shape)
    if neutral:
        return Compute(target, folded, loc=stmt.loc)
    dtype = folded.dtype
    begin = Load(target, dtype) if stmt.init is None else remap(stmt.init, amap, shape)
    return Compute(target, Apply(str(stmt.combine), (begin, folded), dtype), loc=stmt.loc)


def reduction_identity(op: str, dtype: Any) -> Const | None:
    """Return the start value of a reduction on each rank; None if the operation has no identity."""
    identity_ = OPS[op].identity
    if identity_ is None:
        return None if dtype.kind == "c" else const(extreme(op, dtype), dtype)
    if op == "add" and dtype.kind in "fc":
        return const(-0.0 if dtype.kind == "f" else complex(-0.0, -0.0), dtype)
    return const(np.asarray(identity_).astype(dtype), dtype)


def is_zero(init: Expr | None) -> bool:
    return isinstance(init, Const) and not const_value(init)
