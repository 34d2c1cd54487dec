"""The printer of HLS processes as C functions: the common part for the languages of all vendors.

Every process is one pipelined loop: over the elements of its stream, or, for a statement, over the *ticks*,
which are the points of a raster that contains all its operands and its domain.  Coordinates are counted, not
computed by division.  Sums and products of floats go to ``LANES`` accumulators in turn, which are combined at
the end, since an addition takes several cycles and the next one must not wait.  So the order is not NumPy's.

A vendor's subclass writes FIFOs, loops, registers and accumulators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Const, Expr, Gather, Iota, Load, Size, Stmt, Window
from dcarray.ir.ops import C_LIBRARY, const_value
from dcarray.ir.text import show_stmt
from dcarray.ir.windows import walk
from dcarray.lowering.c_family.dialect import Dialect
from dcarray.lowering.c_family.emit import Printer
from dcarray.lowering.kernel import nodes as k

from ..network.arguments import arguments, is_value
from ..network.folds import accumulators
from ..network.line_buffers import parts
from ..network.nodes import Duplicate, Fifo, Merge, Network, Process, Read, Sequential, Work, Write
from ..network.systolic_products import Collect, Element, Feed
from ..network.tables import Table
from . import movers, sequential, statements, systolic
from .blocks import count
from .dimensions import dimension

#: Functions of the C library by the names of NumPy's: in C both are the same.
_AS_UFUNC = {name: name.removeprefix("c_") for name in C_LIBRARY} | {
    "c_acos": "arccos", "c_acosh": "arccosh", "c_asin": "arcsin", "c_asinh": "arcsinh", "c_atan": "arctan",
    "c_atan2": "arctan2", "c_atanh": "arctanh", "c_pow": "power",
}  # fmt: skip


def carried_by(fifo: Fifo, dialect: Dialect) -> str:
    """Return the C type of what a FIFO carries at a time: an element, or a vector of elements."""
    return dialect.type(fifo.dtype) if fifo.width == 1 else vector_type(fifo.dtype, fifo.width)


def vector_type(dtype: np.dtype[Any], width: int) -> str:
    """Return the name of the C type of vectors of ``width`` elements."""
    return f"{dtype.name}x{width}"


class ProcessPrinter(ABC):
    """The base class of printers of processes in a vendor's language; methods return C text."""

    def __init__(self, network: Network, dialect: Dialect) -> None:
        self.network = network
        self.arrays = {array.name: array for array in network.region.arrays}
        self.printer = Printer(k.Kernel((), (), ()), {}, dialect)
        self.values = {
            buffer.pointer
            for buffer, written in arguments(network)
            if is_value(self.arrays[buffer.array], written)
        }

    # ---- what vendors write each in their own way -----------------------------------------------------
    @abstractmethod
    def receive(self, fifo: str) -> str:
        """Return the expression that receives the next element of a FIFO."""

    @abstractmethod
    def send(self, fifo: str, value: str) -> str:
        """Return the statement that sends an element to a FIFO."""

    @abstractmethod
    def pipelined(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        """Yield a loop that starts an iteration in every cycle."""

    @abstractmethod
    def folding(self, work: Work, head: str, body: Iterable[str]) -> Iterator[str]:
        """Yield the pipelined loop of a fold whose accumulators are ``acc``."""

    @abstractmethod
    def plain(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        """Yield a loop without pragmas."""

    @abstractmethod
    def unrolled(self, head: str, body: Iterable[str]) -> Iterator[str]:
        """Yield a loop that is unrolled completely."""

    @abstractmethod
    def independent(self, head: str, body: Iterable[str], array: str) -> Iterator[str]:
        """Yield a pipelined loop in which iterations access different elements of ``array``."""

    @abstractmethod
    def interleaved(self, head: str, body: Iterable[str], array: str, distance: int) -> Iterator[str]:
        """Yield a pipelined loop that uses an element of ``array`` again ``distance`` iterations later."""

    @abstractmethod
    def registers(self, fifo: Fifo, name: str, length: int) -> Iterator[str]:
        """Yield the declaration of registers for ``length`` items of a FIFO."""

    #: How long a delay in a line buffer has to be to lie in block memory; None: that is the vendor's work.
    shortest_delay: int | None = None
    #: Whether tables are copied for each two loads; else that is the vendor's work.
    copies_tables = False

    # Where there is no shortest delay, there are none to declare.
    def delay(self, fifo: Fifo, name: str, length: int) -> Iterator[str]:
        """Yield the declaration of a delay line of ``length`` items of a FIFO in block memory."""
        raise NotImplementedError

    def delayed(self, name: str, length: int) -> Iterator[str]:
        """Yield the loop's pragma that an item of a delay line is used again ``length`` iterations later."""
        raise NotImplementedError

    @abstractmethod
    def table(self, kind: str, name: str, copies: int, length: int) -> Iterator[str]:
        """Yield the declaration of ``copies`` copies of a table in block memory."""

    @abstractmethod
    def accumulators(self, kind: str, size: int, count: int, lanes: int) -> Iterator[str]:
        """Yield the declaration of ``acc``: ``lanes`` accumulators per result of a fold."""

    # ---- processes --------------------------------------------------------------------------------------
    def type(self, dtype: np.dtype[Any]) -> str:
        """Return the C type of a dtype."""
        return self.printer.dialect.type(dtype)

    def comment(self, process: Process) -> Iterator[str]:
        """Yield a comment with the statements of a process and their file and line in the user's source."""
        for stmt in _statements(process):
            # without the folder: the text is the same on all machines
            where = f"{Path(str(stmt.loc)).name}: " if stmt.loc is not None else ""
            for line in show_stmt(stmt, self.network.region).strip().splitlines():
                yield f"// {where}{line}"
                where = ""
        if isinstance(process, Feed | Element | Collect):
            yield f"// {systolic.comment(process)}"

    def body(self, process: Process, fifos: Mapping[str, Fifo]) -> Iterator[str]:
        """Yield the statements of the C function of a process."""
        match process:
            case Read() | Duplicate() | Merge() | Write():
                yield from movers.lines(self, process, fifos)
            case Work():
                yield from statements.lines(self, process, fifos)
            case Sequential():
                yield from sequential.lines(self, process)
            case Feed() | Element() | Collect():
                yield from systolic.lines(self, process)

    # ---- vectors ----------------------------------------------------------------------------------------
    def carried_by(self, fifo: Fifo) -> str:
        """Return the C type of what a FIFO carries at a time."""
        return carried_by(fifo, self.printer.dialect)

    def vector_types(self) -> Iterator[str]:
        """Yield the declarations of the vector types that the network uses."""
        used = {
            (fifo.dtype, fifo.width): None
            for stage in self.network.stages for fifo in stage.fifos if fifo.width > 1
        }  # fmt: skip
        for stage in self.network.stages:
            for work in stage.processes:
                if isinstance(work, Work) and work.adds_vectors:
                    used[self.arrays[work.stmt.target.array].dtype, work.width] = None
        for dtype, width in used:
            yield f"typedef struct {{ {self.type(dtype)} v[{width}]; }} {vector_type(dtype, width)};"

    # ---- folds ------------------------------------------------------------------------------------------
    def lanes(self, work: Work) -> int:
        """Return the number of accumulators per result that get the operands of a fold in turn."""
        return accumulators(work.stmt.combine, self.arrays[work.stmt.target.array].dtype)

    def carried(self, work: Work) -> int | None:
        """Return the least number of iterations between two uses of one accumulator (at least the number of
        lanes, which take turns); None if none is used twice."""
        return None if work.reuse is None else max(work.reuse, self.lanes(work))

    def result_type(self, work: Work) -> str:
        """Return the C type of the results of a fold."""
        return self.type(self.arrays[work.stmt.target.array].dtype)

    def combined(self, work: Work, a: str, b: str) -> str:
        """Return the expression that combines two values as a fold does."""
        assert work.stmt.combine is not None
        return self.joined(work.stmt.combine, self.arrays[work.stmt.target.array].dtype, a, b)

    def joined(self, combine: str, dtype: np.dtype[Any], a: str, b: str) -> str:
        """Return the expression of the operation ``combine`` on two values of a dtype."""
        return self.printer.apply(combine, [a, b], [dtype, dtype], dtype)

    def neutral(self, work: Work) -> int:
        """Return the initial value of the accumulators of a sum or product, except for the first: 0 or 1."""
        return int(work.stmt.combine == "multiply")

    def initial(self, work: Work) -> tuple[str, list[str]]:
        """Return the initial value of the result at point ``x0``, ``x1``, ..., and lines that compute it."""
        if work.start is not None:
            return self.element(work.start.pointer, self.place(work.stmt.target)), []
        assert work.stmt.init is not None
        return self.value(work.stmt.init, work)

    def begin(self, work: Work) -> Iterator[str]:
        """Yield the declarations of a fold's accumulators, and the loop that sets their initial values."""
        stmt, kept, lanes = work.stmt, work.kept, self.lanes(work)
        shape = tuple(stmt.target.shape[axis] for axis in kept)
        if lanes > 1:
            yield f"// sums are of {lanes} parts, each of every {lanes}th element: not NumPy's order"
            yield "int64_t lane = 0;"
        dtype, kind, places = self.arrays[stmt.target.array].dtype, self.result_type(work), work.results
        size = dtype.itemsize
        if work.adds_vectors:
            kind, size = vector_type(dtype, work.width), size * work.width
            places = places // shape[-1] * work.row
        yield from self.accumulators(kind, size, places, lanes)
        lines = []
        for axis in range(len(stmt.target.shape)):
            x = "0"
            if axis in kept:
                x = f"i / {prod(shape[kept.index(axis) + 1 :])} % {stmt.target.shape[axis]}"
            lines.append(f"const int64_t x{axis} = {x};")
        result, computed = self.initial(work)
        lines += [*computed, f"{self.accumulator(work, '0')} = {result};"]
        if lanes > 1:
            cleared = [f"{self.accumulator(work, 'j')} = {self.neutral(work)};"]
            lines += self.unrolled(f"int j = 1; j < {lanes}; j++", cleared)
        yield from self.plain("", count(prod(shape)), lines)

    def accumulator(self, work: Work, lane: str) -> str:
        """Return the accumulator ``lane`` of the result number ``i``."""
        if not work.adds_vectors:
            return f"acc[i][{lane}]"
        row, width = work.stmt.target.shape[-1], work.width
        return f"acc[i / {row} * {work.row} + i % {row} / {width}][{lane}].v[i % {row} % {width}]"

    def deliver(self, work: Work, result: str) -> Iterator[str]:
        """Yield the lines that send the value of a statement at a point, or add it to an accumulator."""
        stmt, lanes = work.stmt, self.lanes(work)
        if stmt.combine is None:
            yield self.send(work.out, result)
            return
        at = "0"
        for axis in work.kept:
            at = f"({at} * {stmt.target.shape[axis]} + x{axis})"
        spot = f"acc[{at}][{'lane' if lanes > 1 else '0'}]"
        yield f"{spot} = {self.combined(work, spot, result)};"
        if lanes > 1:
            yield f"lane = (lane + 1) % {lanes};"

    def finish(self, work: Work) -> Iterator[str]:
        """Yield the loop that combines the accumulators of each result of a fold and sends it."""
        lanes = self.lanes(work)
        lines = [f"{self.result_type(work)} r = {self.accumulator(work, '0')};"]
        if lanes > 1:
            joined = [f"r = {self.combined(work, 'r', self.accumulator(work, 'j'))};"]
            lines += self.unrolled(f"int j = 1; j < {lanes}; j++", joined)
        lines.append(self.send(work.out, "r"))
        yield from self.plain(f"{work.name}_send", count(work.results), lines)

    # ---- expressions ------------------------------------------------------------------------------------
    def literal(self, value: np.generic) -> str:
        """Return the C text of a constant."""
        return self.printer.expr(k.Lit(value.tobytes(), value.dtype))

    def element(self, name: str, place: str) -> str:
        """Return an element of a buffer that is an argument of the function; ``place`` is its index."""
        return name if name in self.values else f"{name}[{place}]"

    def place(self, window: Window, index: Sequence[str] | None = None) -> str:
        """Return the index in its buffer of a window's element at the point ``x0``, ``x1``, ..."""
        text = "0"
        for axis, n in enumerate(self.arrays[window.array].shape):
            if index is not None:
                one = index[axis]
            else:
                ix = window.index[axis]
                one = dimension(ix.offset) + (
                    f" + ({dimension(ix.stride)}) * x{ix.axis}" if ix.axis is not None else ""
                )
            text = f"({text} * {n} + {one})"
        return text

    def value(
        self, root: Expr, work: Work, tables: Mapping[str, Table] | None = None
    ) -> tuple[str, list[str]]:
        """Return the name of the value of a statement's expression, and the lines that compute it, one per
        operation; loads from streams are read from shift registers."""
        number = {line.source: n for n, line in enumerate(work.inputs)}
        pieces = {line.source: parts(work, line, self.shortest_delay) for line in work.inputs}
        tails = {line.source: line.tail for line in work.inputs}
        taps = {
            tap.load: statements.tapped(
                f"line{number[tap.source]}",
                pieces[tap.source].register(tap.at - tails[tap.source]),
                tap.shift,
                work.width,
            )
            for tap in work.taps
        }
        memory: dict[str, str | Table] = {array: buffer.pointer for array, buffer in work.held}
        return self.computed(root, memory | dict(tables or {}), taps)

    def computed(
        self, root: Expr, memory: Mapping[str, str | Table], taps: Mapping[Load, str] | None = None
    ) -> tuple[str, list[str]]:
        """Return the name of an expression's value at the point ``x0``, ``x1``, ..., and the lines that
        compute it.  ``memory`` maps arrays to pointers or tables; ``taps`` has the C texts of other loads."""
        taps = taps or {}

        def loaded(array: str, place: str) -> str:
            where = memory[array]
            return f"{where.port()}[{place}]" if isinstance(where, Table) else self.element(where, place)

        values: dict[Expr, k.Local] = {}
        lines: list[str] = []
        for node in walk(root):
            one: Any = node
            match node:
                case Load(window, _):
                    text = taps.get(node) or loaded(window.array, self.place(window))
                case Gather(window, index, _):
                    at = [values[part].name for part in index]
                    text = loaded(window.array, self.place(window, at))
                case Const():
                    text = self.literal(const_value(node))
                case Size(dim, dtype):
                    text = f"({self.type(dtype)})({dimension(dim)})"
                case Iota(axis, dtype):
                    text = f"({self.type(dtype)})x{axis}"
                case Apply(op, args, dtype):
                    op = _AS_UFUNC.get(op, op)
                    text = self.printer.expr(k.Op(op, tuple(values[arg] for arg in args), dtype))
            name = f"v{len(values)}"
            values[node] = k.Local(name, one.dtype)
            lines.append(f"const {self.type(one.dtype)} {name} = {text};")
        return values[root].name, lines


def _statements(process: Process) -> tuple[Stmt, ...]:
    """Return the statements that a process computes alone or together with others."""
    match process:
        case Work(stmt=stmt):
            return (stmt,)
        case Sequential(body=body):
            return body
        case Feed(product=product) | Element(product=product) | Collect(product=product):
            return (product.call,)
    return ()
