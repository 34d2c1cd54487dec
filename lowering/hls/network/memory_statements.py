"""Facts about statements on arrays in memory: their work, and whether they need a second buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from dcarray.ir.analysis.effects import without_reduced_axes
from dcarray.ir.analysis.matrix_products import as_sum
from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import Array, Branch, Call, Compute, Gather, Loop, Stmt
from dcarray.ir.records import record
from dcarray.ir.windows import loads, overlap


def computes(body: Iterable[Stmt], arrays: Mapping[str, Array]) -> Iterator[Compute]:
    """Yield the computations, also those in loops and branches; matrix products are yielded as sums."""
    for stmt in body:
        match stmt:
            case Compute():
                yield stmt
            case Call():
                yield as_sum(stmt, arrays[stmt.writes[0].array].dtype)
            case Branch():
                yield from computes((*stmt.then, *stmt.orelse), arrays)
            case _:
                yield from computes(stmt.body, arrays)


@record(frozen=True, slots=True)
class MemoryWork:
    """The number of points that statements compute, and of bytes that they read and write."""

    points: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: MemoryWork) -> MemoryWork:
        return MemoryWork(
            self.points + other.points,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


def work_of(body: Iterable[Stmt], arrays: Mapping[str, Array], values: Mapping[str, int]) -> MemoryWork:
    """Return the work of statements, given the values of loop variables; while loops count as one iteration,
    and branches as the body with more points."""
    total = MemoryWork()
    for stmt in body:
        match stmt:
            case Compute() | Call():
                for part in computes((stmt,), arrays):
                    points = prod(evaluate(n, values) for n in part.target.shape)
                    kept = prod(evaluate(n, values) for n in without_reduced_axes(part.target).shape)
                    read = sum(load.dtype.itemsize for load in loads(part.body))
                    item = arrays[part.target.array].dtype.itemsize
                    total += MemoryWork(points, points * read, kept * item)
            case Loop(var, bounds, inner):
                for at in range(*(evaluate(n, values) for n in bounds)):
                    total += work_of(inner, arrays, {**values, var: at})
            case Branch(_, then, orelse):
                both = [work_of(then, arrays, values), work_of(orelse, arrays, values)]
                total += max(both, key=lambda one: one.points)
            case _:
                total += work_of(stmt.body, arrays, values)
    return total


def needs_scratch(stmt: Compute) -> bool:
    """Whether a point of a statement may overwrite an element that another point still has to read."""
    target = stmt.target
    if all(type(count) is int and count == 1 for count in without_reduced_axes(target).shape):
        return False
    for load in (load for expr in stmt.exprs for load in loads(expr)):
        if load.window.array != target.array:
            continue
        if isinstance(load, Gather):
            return True
        if load.window != target and overlap(load.window, target) is not False:
            return True
    return False
