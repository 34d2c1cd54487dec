"""The simulation of sequential processes: the region interpreter runs their statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from dcarray.ir import dims, interp
from dcarray.ir.nodes import Array, Branch, Call, Compute, Expr, Loop, Region, Stmt, Symbol, While, Window
from dcarray.ir.numpy_views import NDArray


class SequentialRun:
    """The state of one run of a sequential process.

    Parameters
    ----------
    arrays : sequence of Array
        The arrays of the region.
    memory : mapping of str to array
        The values of the arrays, which the statements change.
    """

    def __init__(self, arrays: Mapping[str, Array], memory: Mapping[str, NDArray]) -> None:
        self.arrays, self.memory = arrays, memory
        self.values: dict[str, int] = {}

    def points(self, body: tuple[Stmt, ...]) -> Iterator[int]:
        """Run statements; yield after each the number of points that it has computed."""
        for stmt in body:
            match stmt:
                case Compute():
                    self.run(stmt)
                    yield prod(dims.evaluate(n, self.values) for n in stmt.target.shape)
                case Call():
                    self.run(stmt)
                    shape = (*stmt.writes[0].shape, stmt.reads[0].shape[-1])
                    yield prod(dims.evaluate(n, self.values) for n in shape)
                case Loop(var, bounds, inner):
                    for at in range(*(dims.evaluate(n, self.values) for n in bounds)):
                        self.values[var] = at
                        yield from self.points(inner)
                    self.values.pop(var, None)
                case While(cond, inner):
                    while self.holds(cond):
                        yield from self.points(inner)
                case Branch(cond, then, orelse):
                    yield from self.points(then if self.holds(cond) else orelse)
                case _:
                    yield from self.points(stmt.body)

    def run(self, stmt: Stmt) -> None:
        symbols = tuple(Symbol(name) for name in self.values)
        arrays = tuple(
            Array(name, array.dtype, array.shape, "inout")
            for name, array in self.arrays.items()
            if name in self.memory
        )
        interp.Interpreter(Region(symbols, arrays, (stmt,))).run(self.memory, self.values)

    def holds(self, cond: Expr) -> bool:
        array = Array("condition of a loop or branch", np.dtype(bool), (), "out")
        value = np.zeros((), bool)
        arrays, memory = {**self.arrays, array.name: array}, {**self.memory, array.name: value}
        inner = SequentialRun(arrays, memory)
        inner.values = self.values
        inner.run(Compute(Window(array.name, (), ()), cond))
        return bool(value)
