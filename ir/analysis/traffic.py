"""Numbers of bytes that statements move and of operations that they do, by two models.

``fused_traffic``: a statement reads each array once and writes it once, and intermediate values stay in
registers (the least that a generated kernel moves).  ``unfused_bytes``: every operation reads its arguments
from memory and writes its result there (what NumPy moves).
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any

from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import (
    Apply,
    Branch,
    Call,
    Compute,
    Expr,
    Gather,
    Group,
    Load,
    Loop,
    Region,
    Rows,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from dcarray.ir.records import record
from dcarray.ir.windows import moving_axes, walk

from .effects import computes_of

Sizes = Mapping[str, int]


@record(frozen=True, slots=True)
class Traffic:
    """A number of bytes read, of bytes written, and of scalar operations."""

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
    """Return the number of distinct elements in a window; a broadcast axis of its domain counts as length
    1."""
    return math.prod(_int(window.shape[axis], sizes) for axis in set(moving_axes(window)))


def _computes(stmt: Compute | Group) -> tuple[Compute, ...]:
    if isinstance(stmt, Rows | TimeTiles):
        return tuple(c for part in stmt.body for c in _computes(part))
    return computes_of(stmt)


def fused_traffic(stmt: Stmt, region: Region, sizes: Sizes | None = None) -> Traffic:
    """Return the bytes that one statement moves and the operations that it does, run as one kernel.

    The data of a loop is assumed to stay in the cache, and its operations to be those of the middle iteration
    times the number of iterations. ``sizes`` are the values of the symbols; by default their hints.
    """
    if sizes is None:
        sizes = {symbol.name: symbol.hint or symbol.minimum for symbol in region.symbols}
    tally = _Tally(region)
    tally.add(stmt, sizes, 1)
    return tally.traffic()


class _Tally:
    """Counts the elements of each array that statements touch, and their operations."""

    def __init__(self, region: Region) -> None:
        self.arrays = {array.name: array for array in region.arrays}
        self.read: dict[str, int] = {}
        self.written: dict[str, int] = {}
        self.operations = 0

    def traffic(self) -> Traffic:
        read, written = (
            sum(count * self.arrays[name].dtype.itemsize for name, count in touched.items())
            for touched in (self.read, self.written)
        )
        return Traffic(read, written, self.operations)

    def touch(self, touched: dict[str, int], windows: Iterable[Window], sizes: Sizes, times: int) -> None:
        """Add the elements of windows, ``times`` over, to the counts by array; no count exceeds the array."""
        for window in dict.fromkeys(windows):
            whole = math.prod(_int(d, sizes) for d in self.arrays[window.array].shape)
            count = times * (_elements(window, sizes) if window.index else 1)
            touched[window.array] = min(whole, touched.get(window.array, 0) + count)

    def add(self, stmt: Stmt, sizes: Sizes, times: int) -> None:
        """Add the elements and operations of a statement that runs ``times`` times."""
        match stmt:
            case Loop(_, _, body):
                inside, iterations = _iteration(stmt, sizes)
                for inner in body:
                    self.add(inner, inside, times * iterations)
            case While(_, body) | Branch(_, body, ()):
                for inner in body:
                    self.add(inner, sizes, times)
            case Branch(_, then, orelse):
                for inner in (*then, *orelse):
                    self.add(inner, sizes, times)
            case Call(op, read, write):
                if op == "blas.matmul":
                    depth = _int(read[0].shape[-1], sizes)
                    self.operations += 2 * depth * _elements(write[0], sizes) * times
                self.touch(self.read, read, sizes, times)
                self.touch(self.written, write, sizes, times)
            case _:
                self.plain(_computes(stmt), sizes, times)

    def plain(self, computes: tuple[Compute, ...], sizes: Sizes, times: int) -> None:
        """Add the elements and operations of the statements of one kernel, which runs ``times`` times."""
        in_registers: set[Window] = set()  # by statements before: still in registers
        reads = []
        for c in computes:
            domain = math.prod(_int(d, sizes) for d in c.target.shape) * times
            for node in walk(c.body):
                if isinstance(node, Load | Gather) and node.window not in in_registers:
                    reads.append(node.window)
                self.operations += domain * isinstance(node, Apply)
            self.operations += domain * (c.combine is not None)
            in_registers.add(c.target)
        self.touch(self.read, reads, sizes, times)
        self.touch(self.written, [c.target for c in computes], sizes, times)


def _iteration(loop: Loop, sizes: Sizes) -> tuple[Sizes, int]:
    """Return the sizes in the middle iteration of a loop, taken as typical, and the number of iterations."""
    bounds = [bound if type(bound) is int else evaluate(bound, sizes) for bound in loop.bounds]
    iterations = range(bounds[0], bounds[1], bounds[2] or 1)
    middle = iterations[len(iterations) // 2] if iterations else iterations.start
    return ChainMap({loop.var: middle}, sizes), len(iterations)  # type: ignore[arg-type]


def total_fused_traffic(body: Iterable[Stmt], region: Region) -> Traffic:
    """Return the sum of ``fused_traffic`` over statements."""
    return sum((fused_traffic(stmt, region) for stmt in body), Traffic())


def _bytes(windows: Iterable[Window], region: Region, sizes: Sizes) -> int:
    """Return the number of bytes in windows; no array counts for more than its whole size."""
    tally = _Tally(region)
    tally.touch(tally.read, windows, sizes, 1)
    return tally.traffic().read


def unfused_bytes(region: Region) -> int:
    """Return the bytes that NumPy would move for a region's element-wise statements and library calls: the
    sizes of the arguments and of the result of each single operation."""
    return _unfused_bytes(region.body, region, {s.name: s.hint or s.minimum for s in region.symbols})


def _unfused_bytes(body: Iterable[Stmt], region: Region, sizes: Sizes) -> int:
    total = 0
    for stmt in body:
        match stmt:
            case Loop(_, _, inner):
                inside, iterations = _iteration(stmt, sizes)
                total += iterations * _unfused_bytes(inner, region, inside)
            case While(_, inner):
                total += _unfused_bytes(inner, region, sizes)
            case Branch(_, then, orelse):
                total += _unfused_bytes((*then, *orelse), region, sizes)
            case Call():
                total += fused_traffic(stmt, region, sizes).bytes
            case _:
                for c in _computes(stmt):
                    total += _bytes((c.target,), region, sizes) + _steps(c, sizes)
    return total


def _steps(c: Compute, sizes: Sizes) -> int:
    """Return the bytes that the operations of a statement's expression move, without the final store."""
    domain = [_int(d, sizes) for d in c.target.shape]
    axes: dict[Expr, frozenset[int]] = {}
    total = 0

    def size(node: Expr) -> int:
        return math.prod(domain[axis] for axis in axes[node]) * _itemsize(node)

    for node in walk(c.body):
        if isinstance(node, Load):
            axes[node] = frozenset(moving_axes(node.window))
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
