"""C texts of HLS processes whose statements run one after the other on arrays in memory, without streams.

Each statement is a nest of loops, the innermost of which is pipelined.  A sum or product of floats goes to
``LANES`` accumulators in turn, as in processes on streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from dcarray.ir.analysis.effects import without_reduced_axes
from dcarray.ir.analysis.matrix_products import as_sum
from dcarray.ir.nodes import Branch, Call, Compute, Dim, Loop, Stmt, While
from dcarray.ir.windows import loads

from ..network import nodes as n
from ..network.folds import accumulators, kept_axes
from ..network.memory_statements import needs_scratch
from .dimensions import dimension, variable

if TYPE_CHECKING:
    from .printer import ProcessPrinter


#: How the innermost of some loops is written.
_Innermost = Callable[[str, Iterable[str]], Iterator[str]]


def lines(printer: ProcessPrinter, process: n.Sequential) -> Iterator[str]:
    """Yield the statements of the C function of a process."""
    yield from _Writer(printer, process).process()


class _Writer:
    def __init__(self, printer: ProcessPrinter, process: n.Sequential) -> None:
        self.printer, self.done = printer, process
        self.arrays = printer.arrays
        self.memory = {name: buffer.pointer for name, buffer in process.reads}
        self.memory |= {name: buffer.pointer for name, buffer, _ in process.writes}
        self.scratch = {name: buffer.pointer for name, buffer in process.scratch}
        self.bases = [(name, base.pointer) for name, _, base in process.writes if base is not None]

    def process(self) -> Iterator[str]:
        for name, base in self.bases:
            head = f"int64_t i = 0; i < {prod(self.arrays[name].shape)}; i++"
            yield from self.printer.pipelined(
                "", head, [f"{self.memory[name]}[i] = {self.printer.element(base, 'i')};"]
            )
        yield from self.block(self.done.body)

    # ---- control ----------------------------------------------------------------------------------------
    def block(self, body: Iterable[Stmt]) -> Iterator[str]:
        for stmt in body:
            yield from self.statement(stmt)

    def statement(self, stmt: Stmt) -> Iterator[str]:
        match stmt:
            case Compute():
                yield from self.compute(stmt)
            case Call():
                yield from self.compute(as_sum(stmt, self.arrays[stmt.writes[0].array].dtype))
            case Loop(var, bounds, body):
                yield from self.printer.plain("", _range(variable(var), bounds), self.block(body))
            case While(cond, body):
                lines = [*self.condition(cond), "if (!holds) break;", *self.block(body)]
                yield from self.printer.plain("", ";;", lines)
            case Branch(cond, then, orelse):
                yield "{"
                yield from _inner([*self.condition(cond), "if (holds) {"])
                yield from _inner(_inner(self.block(then)))
                if orelse:
                    yield "  } else {"
                    yield from _inner(_inner(self.block(orelse)))
                yield from ("  }", "}")
            case _:
                yield from self.block(stmt.body)

    def condition(self, cond: Any) -> Iterator[str]:
        value, before = self.printer.computed(cond, self.memory)
        yield "bool holds;"
        yield "{"
        yield from _inner([*before, f"holds = {value} != 0;"])
        yield "}"

    # ---- statements over domains ------------------------------------------------------------------------
    def compute(self, stmt: Compute) -> Iterator[str]:
        name, kept = stmt.target.array, without_reduced_axes(stmt.target)
        if not needs_scratch(stmt):
            yield from self.nest(stmt, self.memory[name])
            return
        spare = self.scratch[name]
        yield "// other points of the statement read what it writes: all is computed first"
        yield from self.nest(stmt, spare)
        at = self.printer.place(kept)
        copied = [f"{self.memory[name]}[{at}] = {spare}[{at}];"]
        yield from self.loops(range(len(kept.shape)), kept.shape, copied, self.pipelined)

    def nest(self, stmt: Compute, out: str) -> Iterator[str]:
        if stmt.scan is not None:
            yield from self.scan(stmt, out)
            return
        target, rank = stmt.target, len(stmt.target.shape)
        kept = kept_axes(target)
        reduced = [axis for axis in range(rank) if axis not in kept]
        at = f"{out}[{self.printer.place(target)}]"
        value, before = self.printer.computed(stmt.body, self.memory)
        how = self.pipelined
        if (stmt.combine is not None and stmt.init is None) or _reads(stmt, target.array):
            how = partial(self.printer.independent, array=out)
        if stmt.combine is None:
            yield from self.loops(range(rank), target.shape, [*before, f"{at} = {value};"], how)
            return
        if not reduced:
            start = self.start(stmt)
            joined = f"{at} = {self.combined(stmt, 'start', value)};"
            yield from self.loops(range(rank), target.shape, [*start, *before, joined], how)
            return
        yield from self.loops(kept, target.shape, self.fold(stmt, reduced, at, value, before), self.plain)

    def fold(
        self, stmt: Compute, reduced: Sequence[int], at: str, value: str, before: list[str]
    ) -> Iterator[str]:
        """Yield the statements that compute one result of a fold and store it at ``at``."""
        kind, shape = self.kind(stmt), stmt.target.shape
        yield from self.start(stmt, reduced)
        lanes = accumulators(stmt.combine, self.arrays[stmt.target.array].dtype)
        if lanes == 1:
            lines = [*before, f"start = {self.combined(stmt, 'start', value)};"]
            yield from self.loops(reduced, shape, lines, self.pipelined)
            yield f"{at} = start;"
            return
        yield from self.printer.accumulators(kind, self.arrays[stmt.target.array].dtype.itemsize, 1, lanes)
        neutral = int(stmt.combine == "multiply")
        yield from self.printer.unrolled(f"int j = 0; j < {lanes}; j++", [f"acc[0][j] = {neutral};"])
        yield "int64_t lane = 0;"
        lines = [*before, f"acc[0][lane] = {self.combined(stmt, 'acc[0][lane]', value)};"]
        lines.append(f"lane = (lane + 1) % {lanes};")
        innermost = partial(self.printer.interleaved, array="acc", distance=lanes)
        yield from self.loops(reduced, shape, lines, innermost)
        joined = [f"start = {self.combined(stmt, 'start', 'acc[0][j]')};"]
        yield from self.printer.unrolled(f"int j = 0; j < {lanes}; j++", joined)
        yield f"{at} = start;"

    def scan(self, stmt: Compute, out: str) -> Iterator[str]:
        assert stmt.scan is not None
        shape = stmt.target.shape
        value, before = self.printer.computed(stmt.body, self.memory)
        lines = [*before, f"start = {self.combined(stmt, 'start', value)};"]
        lines.append(f"{out}[{self.printer.place(stmt.target)}] = start;")
        inner = [*self.start(stmt, (stmt.scan,)), *self.loops((stmt.scan,), shape, lines, self.pipelined)]
        yield from self.loops(
            [axis for axis in range(len(shape)) if axis != stmt.scan], shape, inner, self.plain
        )

    def start(self, stmt: Compute, reduced: Sequence[int] = ()) -> Iterator[str]:
        """Yield the declaration of ``start``, the initial value of a result."""
        yield f"{self.kind(stmt)} start;"
        yield "{"
        for axis in reduced:
            yield f"  const int64_t x{axis} = 0;"
        if stmt.init is not None:
            value, before = self.printer.computed(stmt.init, self.memory)
        else:
            value, before = f"{self.memory[stmt.target.array]}[{self.printer.place(stmt.target)}]", []
        yield from _inner([*before, f"start = {value};"])
        yield "}"

    def kind(self, stmt: Compute) -> str:
        return self.printer.type(self.arrays[stmt.target.array].dtype)

    def combined(self, stmt: Compute, a: str, b: str) -> str:
        assert stmt.combine is not None
        return self.printer.joined(stmt.combine, self.arrays[stmt.target.array].dtype, a, b)

    def loops(
        self, axes: Sequence[int], shape: Sequence[Dim], body: Iterable[str], innermost: _Innermost
    ) -> Iterator[str]:
        """Yield the loops over axes of a domain around ``body``; ``innermost`` writes the last one."""
        if not axes:
            yield "{"
            yield from _inner(body)
            yield "}"
            return
        *outer, last = axes
        nested = [*innermost(_count(last, shape), body)]
        for axis in reversed(outer):
            nested = [*self.plain(_count(axis, shape), nested)]
        yield from nested

    def plain(self, head: str, body: Iterable[str]) -> Iterator[str]:
        return self.printer.plain("", head, body)

    def pipelined(self, head: str, body: Iterable[str]) -> Iterator[str]:
        return self.printer.pipelined("", head, body)


def _reads(stmt: Compute, array: str) -> bool:
    return any(load.window.array == array for expr in stmt.exprs for load in loads(expr))


def _count(axis: int, shape: Sequence[Dim]) -> str:
    return f"int64_t x{axis} = 0; x{axis} < {dimension(shape[axis])}; x{axis}++"


def _range(name: str, bounds: tuple[Dim, Dim, Dim]) -> str:
    start, stop, step = map(dimension, bounds)
    if type(bounds[2]) is int:
        ends = f"{name} {'<' if bounds[2] > 0 else '>'} {stop}"
    else:
        ends = f"{step} > 0 ? {name} < {stop} : {name} > {stop}"
    return f"int64_t {name} = {start}; {ends}; {name} += {step}"


def _inner(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.startswith("#") else f"  {line}"
