"""Tests of which regions can be process networks, and which statements can be processes on streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dcarray.ir.nodes import Array, Branch, Call, Compute, Loop, Region, Stmt, While
from dcarray.ir.ops import OPS
from dcarray.ir.statements import bodies, flatten
from dcarray.ir.text import show_stmt
from dcarray.ir.windows import walk


def can_synthesise(region: Region) -> str | None:
    """Return why a region cannot be a process network, naming the statement or array; None if it can."""
    if region.symbols:
        names = ", ".join(symbol.name for symbol in region.symbols)
        return f"sizes have to be numbers, for buffers on the chip are static, but {names} is not known"
    arrays = {array.name: array for array in region.arrays}
    for array in region.arrays:
        if _no_type(array.dtype):
            return f"{array.name} is {array.dtype.name}: use float32, float64 or integers"
        if array.base is not None:
            return f"{array.name} is another view of the memory of {array.base}: use a copy of it"
    for stmt in _everything(region.body):
        reason = _refused(stmt, arrays)
        if reason:
            return f"'{show_stmt(stmt, region).strip().splitlines()[0]}' {reason}"
    return None


def _everything(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield all statements, also those in groups, loops and branches."""
    for stmt in flatten(body):
        yield stmt
        for inner in bodies(stmt):
            yield from _everything(inner)


def _no_type(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c" or dtype == np.float16


def _refused(stmt: Stmt, arrays: Mapping[str, Array]) -> str | None:
    match stmt:
        case Compute():
            if stmt.combine is not None and not (stmt.combine in OPS and OPS[stmt.combine].combine):
                return f"folds with {stmt.combine}, which has no process yet"
            roots = stmt.exprs
        case While(cond) | Branch(cond):
            roots = (cond,)
        case Call():
            if stmt.op != "blas.matmul" or stmt.attrs:
                return f"calls {stmt.op}, which has no process"
            if len({arrays[window.array].dtype for window in (*stmt.reads, *stmt.writes)}) > 1:
                return "multiplies matrices of several dtypes: convert them first"
            return None
        case _:
            return None
    for node in walk(*roots):
        value: Any = node
        if _no_type(value.dtype):
            return f"computes with {value.dtype.name}: use float32, float64 or integers"
    return None


def streams(stmt: Stmt) -> str | None:
    """Return why a statement cannot be a process on streams; None if it can."""
    match stmt:
        case Compute():
            return None if stmt.scan is None else "a scan works on arrays in memory"
        case Call():
            return None  # of matrices by processing elements, of vectors as a sum
    what = {Loop: "a loop", While: "a loop", Branch: "a branch"}[type(stmt)]
    return f"{what} works on arrays in memory, one statement after the other"
