"""The schedule for solving linear systems by right-looking LU with lookahead: steps in parallel phases.

A matrix is factored panel by panel, from the left.  While one thread updates and factors the next panel, the
others apply the last panel to the panels and right-hand sides after it (as in the literature on LAPACK and
ScaLAPACK).  So only the factorisation of the first panel leaves the other threads idle.  If there are enough
matrices in a stack for all threads, each has one panel.

Right-hand sides are in row-major order, as in NumPy, and are solved by rows, in chunks of columns.  LAPACK
needs column-major matrices, so each panel is transposed first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from dcarray.ir.records import record

__all__ = ["FIELDS", "PHASES", "Memory", "Plan", "Step", "plan"]

PHASES = 9
FIELDS = 15
"""The numbers of a step: its kind, up to three addresses, up to eight others, and the byte stride of each
address from one matrix of a stack to the next."""

_ROWS, _COLUMNS = 101, 102
_PLAIN, _TRANSPOSED = 111, 112
_TRIANGLE = 32  # the most rows of a triangle that is solved by substitution
_ALIGNED = 8


class Step(IntEnum):
    """The kind of a step, which works on the matrices at its addresses, called ``a``, ``b`` and ``c``."""

    COPY = 0
    """``a = b``: rows, columns; for ``a``, then for ``b``, how far rows and columns are apart."""
    EXCHANGE = 1
    """Exchange the k-th row of ``a`` with the one that ``b[k]`` names, counted from 1: rows, columns, how far
    rows and columns are apart."""
    FACTOR = 2
    """``?getrf`` of ``a``, exchanges to ``b``, its result to ``c``: rows, columns, how far the latter are
    apart."""
    SOLVE = 3
    """``?trsm`` by columns, with the lower triangle ``a`` to the left of ``b`` and ones on its diagonal: rows
    and columns of ``b``, how far columns of either are apart."""
    SUBTRACT = 4
    """``c -= a @ b`` by ``?gemm``: order, transposition of ``a``, rows, columns, terms, how far rows or
    columns of the three are apart."""
    SUBSTITUTE = 5
    """Solve with a small triangle ``a``, by columns, for ``b``, by rows: whether it is the upper one, or the
    lower one with ones on its diagonal, rows and columns of ``b``, how far columns and rows are apart."""


class Memory:
    """The positions of the arrays in the list of addresses that steps refer to."""

    NONE, MATRICES, SIDES, SOLUTIONS, FACTORS, SWAPS, INFO = range(7)


@record(frozen=True, slots=True)
class Plan:
    """The table of steps for matrices of one size."""

    # a row of ``FIELDS`` numbers for each step, with bytes from the beginning of an array for addresses
    table: np.ndarray[Any, Any]
    of: np.ndarray[Any, Any]  # which array that is, for each number of the table
    starts: np.ndarray[Any, Any]  # the first step of each item, and of one more
    phases: tuple[tuple[int, int], ...]  # the number of items of each, and the average operations of an item
    firsts: tuple[int, ...]  # the first item of each phase

    def at(self, addresses: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return the table for arrays at the given addresses, which are in the order of `Memory`."""
        table: np.ndarray[Any, Any] = self.table + np.array([0, *addresses])[self.of]
        return table


Place = tuple[int, int]  # an array, and bytes from its beginning
Line = tuple[Step, tuple[Place, ...], tuple[int, ...]]


@record(frozen=True, slots=True)
class _System:
    """A matrix of ``n`` rows with ``m`` right-hand sides, and the addresses of their parts."""

    n: int
    m: int
    size: int  # bytes of an element
    edges: tuple[int, ...]  # the columns with which panels begin, and n

    def factors(self, row: int, column: int) -> Place:
        return Memory.FACTORS, (column * self.n + row) * self.size

    def solution(self, row: int, column: int) -> Place:
        return Memory.SOLUTIONS, (row * self.m + column) * self.size

    def swaps(self, panel: int) -> Place:
        return Memory.SWAPS, self.edges[panel] * 8

    def panel(self, panel: int) -> tuple[int, int]:
        return self.edges[panel], self.edges[panel + 1]

    def transpose(self, panel: int) -> Line:
        """Return the step that transposes a panel to column-major order."""
        first, end = self.panel(panel)
        matrix = Memory.MATRICES, first * self.size
        return Step.COPY, (self.factors(0, first), matrix), (self.n, end - first, 1, self.n, self.n, 1)

    def factor(self, panel: int) -> Line:
        first, end = self.panel(panel)
        places = self.factors(first, first), self.swaps(panel), (Memory.INFO, panel * 8)
        return Step.FACTOR, places, (self.n - first, end - first, self.n)

    def update(self, panel: int, by: int) -> Iterator[Line]:
        """Return the steps that update a panel after the earlier panel ``by`` has been factored."""
        (c0, c1), (first, end) = self.panel(panel), self.panel(by)
        n, width, rows = self.n, c1 - c0, end - first
        triangle, above = self.factors(first, first), self.factors(first, c0)
        yield Step.EXCHANGE, (above, self.swaps(by)), (rows, width, 1, n)
        yield Step.SOLVE, (triangle, above), (rows, width, n, n)
        places = self.factors(end, first), above, self.factors(end, c0)
        yield Step.SUBTRACT, places, (_COLUMNS, _PLAIN, n - end, width, rows, n, n, n)

    def copy(self, c0: int, c1: int) -> Line:
        """Return the step that copies the columns ``c0`` to ``c1`` of the right-hand sides."""
        sides = Memory.SIDES, c0 * self.size
        return Step.COPY, (self.solution(0, c0), sides), (self.n, c1 - c0, self.m, 1, self.m, 1)

    def forward(self, c0: int, c1: int, by: int) -> Iterator[Line]:
        """Return the forward substitution's steps for columns ``c0`` to ``c1`` after panel ``by``."""
        first, end = self.panel(by)
        yield Step.EXCHANGE, (self.solution(first, c0), self.swaps(by)), (end - first, c1 - c0, self.m, 1)
        yield from self.triangle(False, first, end, c0, c1)
        yield from self.subtract((end, self.n), (first, end), c0, c1)

    def triangle(self, upper: bool, first: int, end: int, c0: int, c1: int) -> Iterator[Line]:
        """Return the steps that solve with the lower or the upper triangle, recursively in halves, so that
        most of the work is matrix products."""
        if end - first <= _TRIANGLE:
            yield self.substitute(upper, first, end, c0, c1)
            return
        middle = _middle(first, end)
        halves = [(first, middle), (middle, end)]
        before, after = reversed(halves) if upper else halves
        yield from self.triangle(upper, *before, c0, c1)
        yield from self.subtract(after, before, c0, c1)
        yield from self.triangle(upper, *after, c0, c1)

    def substitute(self, upper: bool, first: int, end: int, c0: int, c1: int) -> Line:
        numbers = upper, end - first, c1 - c0, self.n, self.m
        return Step.SUBSTITUTE, (self.factors(first, first), self.solution(first, c0)), numbers

    def subtract(self, to: tuple[int, int], of: tuple[int, int], c0: int, c1: int) -> Iterator[Line]:
        """Return the steps that subtract a block of factors times rows ``of`` from rows ``to``."""
        if to[0] < to[1]:
            places = self.factors(to[0], of[0]), self.solution(of[0], c0), self.solution(to[0], c0)
            numbers = _ROWS, _TRANSPOSED, to[1] - to[0], c1 - c0, of[1] - of[0], self.n, self.m, self.m
            yield Step.SUBTRACT, places, numbers


def _middle(first: int, end: int) -> int:
    """Return the row that splits a triangle in halves, after a multiple of `_ALIGNED` rows."""
    return first + -(-(end - first) // 2 // _ALIGNED) * _ALIGNED


@lru_cache(maxsize=64)
def plan(n: int, m: int, panels: int, pieces: int, size: int, alike: bool) -> Plan:
    """Return the table of steps for solving linear systems.

    The matrices have ``n`` rows and elements of ``size`` bytes, their right-hand sides ``m`` columns. A
    matrix is factored in ``panels`` panels, fewer than ``PHASES``, and the sides are solved in ``pieces``
    chunks of columns; ``alike``: all matrices of a stack have the same sides.
    """
    one = _System(n, m, size, tuple(n * k // panels for k in range(panels + 1)))
    columns = [(m * k // pieces, m * (k + 1) // pieces) for k in range(pieces)]
    phases: list[list[list[Line]]] = [[[one.transpose(0), one.factor(0)]]]
    for k in range(panels):
        items = []
        for panel in range(k + 1, panels):
            steps = [one.transpose(panel)] if k == 0 else []
            items.append([*steps, *one.update(panel, k), *([one.factor(panel)] if panel == k + 1 else [])])
        for piece in columns:
            steps = [one.copy(*piece)] if k == 0 else []
            last = one.triangle(True, 0, n, *piece) if k + 1 == panels else ()
            items.append([*steps, *one.forward(*piece, k), *last])
        phases.append(items)
    apart = {
        Memory.NONE: 0, Memory.MATRICES: n * n * size, Memory.FACTORS: n * n * size, Memory.SWAPS: n * 8,
        Memory.SIDES: 0 if alike else n * m * size, Memory.SOLUTIONS: n * m * size, Memory.INFO: panels * 8,
    }  # fmt: skip
    return _table(phases, apart)


def _table(phases: list[list[list[Line]]], apart: dict[int, int]) -> Plan:
    lines = [line for items in phases for steps in items for line in steps]
    table, of = np.zeros((len(lines), FIELDS), np.int64), np.zeros((len(lines), FIELDS), np.int64)
    for k, (step, places, numbers) in enumerate(lines):
        table[k, 0] = step
        for j, (array, offset) in enumerate(places):
            table[k, 1 + j], of[k, 1 + j], table[k, FIELDS - 3 + j] = offset, array, apart[array]
        table[k, 4 : 4 + len(numbers)] = numbers
    lengths = [len(steps) for items in phases for steps in items]
    extents = [(len(items), sum(_operations(line) for steps in items for line in steps)) for items in phases]
    work = [(items, max(operations // items, 1)) for items, operations in extents]
    work += [(0, 1)] * (PHASES - len(work))
    firsts = tuple(accumulate((items for items, _ in work[:-1]), initial=0))
    return Plan(table, of, np.cumsum([0, *lengths]), tuple(work), firsts)


def _operations(line: Line) -> int:
    """Return the approximate cost of a step in multiplications."""
    step, _, numbers = line
    if step is Step.FACTOR:
        rows, columns, _ = numbers
        return rows * columns * columns // 2
    if step in (Step.SOLVE, Step.SUBSTITUTE):
        rows, columns = numbers[:2] if step is Step.SOLVE else numbers[1:3]
        return rows * rows * columns // 2
    if step is Step.SUBTRACT:
        rows, columns, terms = numbers[2:5]
        return rows * columns * terms
    return numbers[0] * numbers[1]
