"""The distributed form of ``blas.matmul``: the steps of a rank that multiply two distributed arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.algorithms.contraction_plan import Contraction
from dcarray.comm.algorithms.product_axes import parse, sum_dtype
from dcarray.comm.algorithms.product_layouts import choose
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.comm.planning.rank_program.steps import ArrayExchange, Exchanges, Execution, Memory, Reduce, Step
from dcarray.comm.transport.protocol import Counts
from dcarray.ir.nodes import Call, Window

from .distributed_forms import DistributedForm, Operand, Planner

__all__ = ["PLANNERS", "Multiply", "letters", "plan_matmul"]


@dataclass(frozen=True)
class Multiply:
    """The step of a rank's program that multiplies two distributed arrays.

    Parameters
    ----------
    plan : Contraction
    first, second, result : Memory
        The local arrays of this rank, without halos.
    parts : bool
        Whether to leave partial sums of the result on the ranks; `result` then has their layout.
    loc : object
        The location of the statement.
    """

    plan: Contraction
    first: Memory
    second: Memory
    result: Memory
    parts: bool = False
    loc: Any = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.first.name, self.second.name)

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.result.name,)

    def counts(self) -> Counts:
        sum_type = sum_dtype(self.first.dtype, self.second.dtype)
        dtypes = (self.first.dtype, self.second.dtype, sum_type, self.result.dtype)
        a, b, added, result = (dtype.itemsize for dtype in dtypes)
        return self.plan.counts_of_parts((a, b)) if self.parts else self.plan.counts((a, b, added, result))

    def run(self, at: Execution) -> None:
        run = self.plan.parts if self.parts else self.plan.run
        first, second = at.array(self.first.name), at.array(self.second.name)
        result = at.array(self.result.name, True)
        with at.around(self.loc):
            run(at.comm, first, second, result, at.empty)


def letters(call: Call, shapes: Sequence[tuple[int, ...]]) -> str | None:
    """Return the subscripts (as of `numpy.einsum`) of a ``blas.matmul``; None if it has none.

    It has some if its windows cover their whole arrays, of the given shapes, in any order of axes; axes of
    one element may be left out or broadcast.
    """
    (out,), (a, b) = call.writes, call.reads
    stack = [chr(ord("A") + k) for k in range(max(len(a.shape), len(b.shape)))]
    unit_letters = iter("zyxwvutsrq")

    def domain(window: Window, last: str) -> list[str]:
        before = len(window.shape) - len(last)
        return [*stack[len(stack) - before :], *last]

    texts = []
    one, two = len(a.shape) == 1, len(b.shape) == 1
    ends = [(a, "k" if one else "mk"), (b, "k" if two else "kn"), (out, "m" * (not one) + "n" * (not two))]
    for (window, last), shape in zip(ends, shapes, strict=True):
        names = domain(window, last)
        if window is not out:
            # One matrix for a whole stack: its axis along the stack is in no other array.
            wide = dict(zip(domain(out, ends[2][1]), out.shape, strict=True))
            stretched = {x for x, n in zip(names, window.shape, strict=True) if wide.get(x, n) != n}
            names = [next(unit_letters) if x in stretched else x for x in names]
        unused = [
            x
            for k, x in enumerate(names)
            if window.shape[k] == 1 and all(ix.axis != k for ix in window.index)
        ]
        text = ""
        for ix, n in zip(window.index, shape, strict=True):
            if n == 1 and (ix.axis is None or ix.stride == 0):
                text += unused.pop(0) if unused else next(unit_letters)
            elif ix.axis is None or ix.offset != 0 or ix.stride != 1 or window.shape[ix.axis] != n:
                return None
            else:
                text += names[ix.axis]
        if len(set(text)) < len(text):
            return None
        texts.append(text)
    return f"{texts[0]},{texts[1]}->{texts[2]}"


def plan_matmul(
    call: Call, reads: tuple[Operand, ...], writes: tuple[Operand, ...], ranks: int
) -> DistributedForm | str:
    """Return the distributed form of a ``blas.matmul``, or the reason why it has none."""
    (first, second), (result,) = reads, writes
    named = letters(call, [x.shape for x in (*reads, *writes)])
    if named is None:
        return "a product of parts of arrays"
    try:
        of = parse(named, first.shape, second.shape, adds_axes=True)
        sum_type = sum_dtype(first.dtype, second.dtype)
    except (TypeError, ValueError) as error:
        return str(error)
    if tuple(of.extent[x] for x in of.out) != result.shape:
        return "a product in a part of an array"
    grid = next((x.layout.grid for x in reads if x.layout is not None), ProcessGrid((ranks,)))

    def layout_of(x: Operand) -> Layout:
        return Layout.copies(x.shape, grid) if x.layout is None else x.layout.without_halo()

    sizes = (first.dtype.itemsize, second.dtype.itemsize, sum_type.itemsize)
    scheme = choose(
        of, layout_of(first), layout_of(second), None if result.free else layout_of(result), sizes
    )
    out = None if all(isinstance(spec, Whole) for spec in scheme.out.axes) else scheme.out
    if not result.free:
        out = None if result.layout is None else layout_of(result)

    vector = len(result.shape) == 1 and result.dtype == sum_type
    keeps_layout = result.free or layout_of(result) == scheme.out_parts
    gives_parts = bool(scheme.sum_axes) and scheme.sum_layout is None and keeps_layout and vector

    def steps(
        rank: int,
        reads: tuple[Memory, ...],
        writes: tuple[Memory, ...],
        make: Callable[[np.dtype[Any], tuple[int, ...]], Memory],
    ) -> Sequence[Step]:
        mine, factors, end = Contraction(scheme, rank), (reads[0], reads[1]), writes[0]
        if gives_parts:
            return [Multiply(mine, *factors, end, True, call.loc)]
        if not scheme.sum_axes or scheme.sum_layout is not None or end.dtype != sum_type:
            return [Multiply(mine, *factors, end, loc=call.loc)]
        sums = make(sum_type, scheme.out_parts.local_shape(rank)) if mine.must_move else end
        grid = scheme.arrangement.grid
        along = tuple(g in scheme.sum_axes for g in range(grid.ndim))
        steps: list[Step] = [
            Multiply(mine, *factors, sums, True, call.loc),
            Reduce(sums, sums, "add", grid, along, rank),
        ]
        if not mine.must_move:
            return steps
        item = ArrayExchange(lambda: mine.final_exchange, sums.name, end.name, sum_type.itemsize)
        return [*steps, Exchanges((item,))]

    needed = tuple(None if x.layout is None else layout_of(x) for x in reads)
    parts = (scheme.out_parts, scheme.sum_axes) if gives_parts else None
    return DistributedForm(needed, (out,), steps, str(scheme), parts)


PLANNERS: Mapping[str, Planner] = {"blas.matmul": plan_matmul}
"""The planners of library calls that have a distributed form, by the calls' names."""
