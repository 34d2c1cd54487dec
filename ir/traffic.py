"""How many bytes and operations a statement costs: the figures that fusion is about.

Two models.  ``fused``: each array is read once and written once for a statement, whatever happens in
between stays in registers (what a generated kernel moves at least).  ``unfused``: every operation reads
its arguments from memory and writes its result there (what NumPy moves).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .dims import evaluate
from .nodes import (
    Apply,
    Bands,
    Call,
    Compute,
    Expr,
    Gather,
    Load,
    Loop,
    Nest,
    Region,
    Rows,
    Stmt,
    While,
    Window,
)
from .windows import walk

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes read and written, and scalar operations."""

    read: int = 0
    written: int = 0
    operations: int = 0

    @property
    def bytes(self) -> int:
        return self.read + self.written

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read + other.read, self.written + other.written, self.operations + other.operations
        )


def _int(dim: Any, sizes: Sizes) -> int:
    return dim if type(dim) is int else max(0, evaluate(dim, sizes))


def _elements(window: Window, sizes: Sizes) -> int:
    """Distinct elements under a window: an axis that moves nothing counts once."""
    axes = {index.axis for index in window.index if index.axis is not None and index.stride != 0}
    return math.prod(_int(window.shape[axis], sizes) for axis in axes)


def _computes(stmt: Compute | Nest | Rows | Bands) -> tuple[Compute, ...]:
    if isinstance(stmt, Rows | Bands):
        return tuple(c for part in stmt.body for c in _computes(part))
    return stmt.body if isinstance(stmt, Nest) else (stmt,)


def fused(stmt: Stmt, region: Region, sizes: Sizes | None = None) -> Traffic:
    """Bytes and operations of one statement run as one kernel.

    Parameters
    ----------
    stmt : Stmt
        A statement of ``region``; of a loop, one pass over its body times the number of its passes.
    region : Region
        Gives the arrays their types and extents.
    sizes : mapping of str to int, optional
        Values of the symbols.

    Returns
    -------
    Traffic
    """
    sizes = sizes or {symbol.name: symbol.hint or symbol.minimum for symbol in region.symbols}
    if isinstance(stmt, Loop):
        start, stop, step = (_int(bound, sizes) for bound in stmt.bounds)
        inside = fused_all(stmt.body, region, {**sizes, stmt.var: start})
        times = len(range(start, stop, step or 1))
        return Traffic(inside.read * times, inside.written * times, inside.operations * times)
    if isinstance(stmt, While):
        return fused_all(stmt.body, region, sizes)
    if isinstance(stmt, Call):
        operations = 0
        if stmt.op == "blas.matmul":
            inner = stmt.reads[0].shape[-1]
            operations = 2 * _int(inner, sizes) * _elements(stmt.writes[0], sizes)
        read, written = (_bytes(w, region, sizes) for w in (stmt.reads, stmt.writes))
        return Traffic(read, written, operations)
    if not isinstance(stmt, Compute | Nest | Rows | Bands):
        return fused_all((*stmt.then, *stmt.orelse), region, sizes)
    computes = _computes(stmt)
    made: set[Window] = set()  # by the computes before: still in registers
    reads, operations = [], 0
    for c in computes:
        domain = math.prod(_int(d, sizes) for d in c.target.shape)
        for node in walk(c.body):
            if isinstance(node, Load | Gather) and node.window not in made:
                reads.append(node.window)
            operations += domain * isinstance(node, Apply)
        operations += domain * (c.combine is not None)
        made.add(c.target)
    written = _bytes((c.target for c in computes), region, sizes)
    return Traffic(_bytes(reads, region, sizes), written, operations)


def fused_all(body: Iterable[Stmt], region: Region, sizes: Sizes | None = None) -> Traffic:
    """The sum of ``fused`` over statements."""
    return sum((fused(stmt, region, sizes) for stmt in body), Traffic())


def _bytes(windows: Iterable[Window], region: Region, sizes: Sizes) -> int:
    """Bytes under windows, each array at most once as a whole."""
    arrays = {a.name: a for a in region.arrays}
    touched: dict[str, int] = {}
    for window in dict.fromkeys(windows):
        whole = math.prod(_int(d, sizes) for d in arrays[window.array].shape)
        count = _elements(window, sizes) if window.index else 1
        touched[window.array] = min(whole, touched.get(window.array, 0) + count)
    return sum(count * arrays[name].dtype.itemsize for name, count in touched.items())


def unfused(region: Region, sizes: Sizes | None = None) -> int:
    """Bytes that NumPy moves for the element-wise statements and calls of a region, one at a time.

    Returns
    -------
    int
        The sum over every operation of the bytes of its arguments and of its result.
    """
    values = sizes or {symbol.name: symbol.hint or symbol.minimum for symbol in region.symbols}
    total = 0
    for stmt in region.body:
        if not isinstance(stmt, Compute | Nest | Rows | Bands):
            total += fused(stmt, region, values).bytes
            continue
        for c in _computes(stmt):
            total += _bytes((c.target,), region, values) + _steps(c, values)
    return total


def _steps(c: Compute, sizes: Sizes) -> int:
    """Bytes of the single operations of an expression, without the store of its last result."""
    domain = [_int(d, sizes) for d in c.target.shape]
    axes: dict[Expr, frozenset[int]] = {}
    total = 0

    def size(node: Expr) -> int:
        return math.prod(domain[axis] for axis in axes[node]) * _itemsize(node)

    for node in walk(c.body):
        if isinstance(node, Load):
            used = (i.axis for i in node.window.index if i.stride != 0)
            axes[node] = frozenset(axis for axis in used if axis is not None)
        elif isinstance(node, Apply):
            axes[node] = frozenset().union(*(axes[arg] for arg in node.args))
            total += sum(size(arg) for arg in node.args if axes[arg])
            total += size(node) if node is not c.body or c.combine else 0
        else:
            axes[node] = frozenset(range(len(domain))) if isinstance(node, Gather) else frozenset()
            total += 2 * size(node) if isinstance(node, Gather) else 0
    return total + (size(c.body) if c.combine or isinstance(c.body, Load) else 0)


def _itemsize(node: Any) -> int:
    return int(node.dtype.itemsize)
