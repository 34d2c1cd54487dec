"""Process networks as C++ for Vitis HLS: a function for each process, a dataflow region for each stage.

Every process is one pipelined loop: over the elements of its stream, or, of a statement, over the ticks at
which something comes or is computed.  Points are counted, not divided for.  Sums and products of
floating-point numbers go to ``LANES`` accumulators in turn, which are added up in the end: an addition takes
several cycles, and the next one must not wait for it.  This order of additions is not NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Const, Expr, Gather, Iota, Load, Size, Window
from dcarray.ir.ops import const_value
from dcarray.ir.text import show_stmt
from dcarray.ir.windows import walk
from dcarray.lowering.c_family.dialect import C_TYPES, Dialect
from dcarray.lowering.c_family.emit import Printer
from dcarray.lowering.kernel import nodes as k

from .network import (
    Box,
    Buffer,
    Duplicate,
    Fifo,
    Merge,
    Network,
    Point,
    Process,
    Read,
    Stage,
    Work,
    Write,
    buffers_read,
    distance,
    outs,
    sources,
)

LANES = 16
HLS = Dialect(
    "Vitis HLS",
    """#include <cmath>
#include <cstdint>
#include "hls_stream.h"
#define feraiseexcept(flags)  // there are no floating-point flags
#define isless(a, b) ((a) < (b))
#define islessequal(a, b) ((a) <= (b))
#define isgreater(a, b) ((a) > (b))
#define isgreaterequal(a, b) ((a) >= (b))
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
static inline float bits_float32(uint32_t u) { union { uint32_t u; float x; } v = {u}; return v.x; }
static inline double bits_float64(uint64_t u) { union { uint64_t u; double x; } v = {u}; return v.x; }""",
    C_TYPES,
    wraps=False,
    vector_loops=False,
    numpy_loops=False,
    runs_phases=False,
    checks_conversions=True,
)


def emit(network: Network, top: str) -> str:
    """Return the text of the kernel ``top``, whose arguments are `arguments`.

    Raises
    ------
    Unsupported
        If there is an operation that C++ does not do as NumPy does.
    """
    return _Emitter(network, top).text()


def arguments(network: Network) -> tuple[tuple[Buffer, bool], ...]:
    """The buffers that the kernel is given pointers to, in order, and whether it writes them."""
    written: dict[Buffer, bool] = {}
    for stage in network.stages:
        for process in stage.processes:
            for buffer in buffers_read(process):
                written.setdefault(buffer, False)
            if isinstance(process, Write):
                written[process.buffer] = True
    return tuple(written.items())


def process_arguments(process: Process) -> tuple[tuple[str, ...], tuple[Buffer, ...], tuple[Buffer, ...]]:
    """What the function of a process is given: FIFOs, buffers that it reads, buffers that it writes."""
    fifos = (*sources(process), *outs(process))
    return (
        fifos,
        tuple(dict.fromkeys(buffers_read(process))),
        (process.buffer,) if isinstance(process, Write) else (),
    )


def pointer(buffer: Buffer) -> str:
    """The name of a buffer's pointer."""
    return f"{buffer.array}_{buffer.version}"


class _Emitter:
    def __init__(self, network: Network, top: str) -> None:
        self.network, self.top = network, top
        self.arrays = {array.name: array for array in network.region.arrays}
        self.printer = Printer(k.Kernel((), (), ()), {}, HLS)

    def type(self, dtype: np.dtype[Any]) -> str:
        return HLS.type(dtype)

    def text(self) -> str:
        stages = enumerate(self.network.stages)
        lines = [line for number, stage in stages for line in self.stage(number, stage)]
        given = arguments(self.network)
        names = ", ".join(self.declared(buffer, written) for buffer, written in given)
        lines.append(f'extern "C" void {self.top}({names}) {{')
        for buffer, _ in given:
            name = pointer(buffer)
            lines.append(f"#pragma HLS INTERFACE m_axi port={name} offset=slave bundle=gmem_{name}")
            lines.append(f"#pragma HLS INTERFACE s_axilite port={name}")
        lines.append("#pragma HLS INTERFACE s_axilite port=return")
        for number, stage in enumerate(self.network.stages):
            names = ", ".join(pointer(buffer) for buffer, _ in self.used(stage))
            lines.append(f"  {self.top}_stage_{number}({names});")
        return "\n".join([HLS.head, *self.printer.helpers, "", *lines, "}", ""])

    def declared(self, buffer: Buffer, written: bool) -> str:
        kind = self.type(self.arrays[buffer.array].dtype)
        return f"{'' if written else 'const '}{kind} *{pointer(buffer)}"

    def used(self, stage: Stage) -> list[tuple[Buffer, bool]]:
        found: dict[Buffer, bool] = {}
        for process in stage.processes:
            _, read, written = process_arguments(process)
            found.update(dict.fromkeys(read, False) | dict.fromkeys(written, True))
        return list(found.items())

    # ---- stages and processes -------------------------------------------------------------------------
    def stage(self, number: int, stage: Stage) -> Iterator[str]:
        fifos = {fifo.name: fifo for fifo in stage.fifos}
        for process in stage.processes:
            streams, read, written = process_arguments(process)
            given = [f"hls::stream<{self.type(fifos[name].dtype)}> &{name}" for name in streams]
            given += [self.declared(b, False) for b in read] + [self.declared(b, True) for b in written]
            if isinstance(process, Work):
                where = f"{process.stmt.loc}: " if process.stmt.loc is not None else ""
                yield f"// {where}{show_stmt(process.stmt, self.network.region).strip()}"
            yield f"static void {self.top}_{process.name}({', '.join(given)}) {{"
            yield from (line if line.startswith("#") else f"  {line}" for line in self.body(process, fifos))
            yield from ("}", "")
        names = ", ".join(self.declared(buffer, written) for buffer, written in self.used(stage))
        yield f"static void {self.top}_stage_{number}({names}) {{"
        yield "#pragma HLS DATAFLOW"
        for fifo in stage.fifos:
            yield f'  hls::stream<{self.type(fifo.dtype)}> {fifo.name}("{fifo.name}");'
            yield f"#pragma HLS STREAM variable={fifo.name} depth={max(fifo.depth, 2)}"
        for process in stage.processes:
            streams, read, written = process_arguments(process)
            names = ", ".join([*streams, *(pointer(buffer) for buffer in (*read, *written))])
            yield f"  {self.top}_{process.name}({names});"
        yield from ("}", "")

    def body(self, process: Process, fifos: Mapping[str, Fifo]) -> Iterator[str]:
        match process:
            case Read(name, buffer, out):
                count = prod(self.arrays[buffer.array].shape)
                yield from _loop(name, count, [f"{out}.write({pointer(buffer)}[i]);"])
            case Duplicate(name, source, several):
                fifo = fifos[source]
                lines = [f"const {self.type(fifo.dtype)} v = {source}.read();"]
                lines += [f"{out}.write(v);" for out in several]
                yield from _loop(name, fifo.box.size, lines)
            case Merge(name, old, new, out):
                fifo = fifos[old]
                shape, start = fifo.box.shape, fifo.box.first
                yield from _counters("x", start)
                yield f"{name}: for (int64_t i = 0; i < {fifo.box.size}; i++) {{"
                yield "#pragma HLS PIPELINE II=1"
                yield f"  {self.type(fifo.dtype)} v = {old}.read();"
                yield f"  if ({_inside('x', fifos[new].box)}) v = {new}.read();"
                yield f"  {out}.write(v);"
                yield from (f"  {line}" for line in _advance("x", start, shape))
                yield "}"
            case Write(name, buffer, source, window, base):
                target = pointer(buffer)
                count = prod(self.arrays[buffer.array].shape)
                if base is not None:
                    yield from _loop(f"{name}_copy", count, [f"{target}[i] = {pointer(base)}[i];"])
                zeros = (0,) * len(window.shape)
                yield from _counters("x", zeros)
                yield f"{name}: for (int64_t i = 0; i < {prod(window.shape)}; i++) {{"
                yield "#pragma HLS PIPELINE II=1"
                yield f"  {target}[{self.place(window)}] = {source}.read();"
                yield from (f"  {line}" for line in _advance("x", zeros, window.shape))
                yield "}"
            case Work():
                yield from self.work(process, fifos)

    def work(self, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
        raster, stmt = work.raster, work.stmt
        first, last = _span(work, fifos)
        for n, line in enumerate(work.inputs):
            yield f"{self.type(fifos[line.source].dtype)} line{n}[{line.length}] = {{}};"
            yield f"#pragma HLS ARRAY_PARTITION variable=line{n} complete"
            yield from _counters(f"a{n}_", _start(first + line.lead, raster))
        yield from _counters("h", _start(first, raster))
        lanes = self.lanes(work)
        if stmt.combine is not None:
            yield from self.begin(work, lanes)
        yield f"{work.name}: for (int64_t tick = {first}; tick <= {last}; tick++) {{"
        yield "#pragma HLS PIPELINE II=1"
        if lanes > 1:
            yield f"#pragma HLS DEPENDENCE variable=acc type=inter direction=RAW distance={lanes} true"
        for n, line in enumerate(work.inputs):
            if line.length > 1:
                yield f"  for (int j = 0; j < {line.length - 1}; j++) {{"
                yield "#pragma HLS UNROLL"
                yield f"    line{n}[j] = line{n}[j + 1];"
                yield "  }"
            inside = _inside(f"a{n}_", fifos[line.source].box)
            yield f"  if ({inside}) line{n}[{line.length - 1}] = {line.source}.read();"
        yield f"  if ({_inside('h', work.box)}) {{"
        for axis, start in enumerate(work.box.first):
            yield f"    const int64_t x{axis} = h{axis} - {start};"
        result, lines = self.value(stmt.body, work)
        yield from (f"    {line}" for line in lines)
        yield from (f"    {line}" for line in self.deliver(work, result, lanes))
        yield "  }"
        for n in range(len(work.inputs)):
            yield from (f"  {line}" for line in _advance(f"a{n}_", None, raster))
        yield from (f"  {line}" for line in _advance("h", None, raster))
        yield "}"
        if stmt.combine is not None:
            yield from self.finish(work, lanes)

    # ---- folds ----------------------------------------------------------------------------------------
    def lanes(self, work: Work) -> int:
        dtype = self.arrays[work.stmt.target.array].dtype
        return LANES if dtype.kind == "f" and work.stmt.combine in ("add", "multiply") else 1

    def kept(self, work: Work) -> list[int]:
        """The axes of the domain that a fold keeps."""
        return sorted({ix.axis for ix in work.stmt.target.index if ix.axis is not None})

    def begin(self, work: Work, lanes: int) -> Iterator[str]:
        stmt, kept = work.stmt, self.kept(work)
        kind = self.type(self.arrays[stmt.target.array].dtype)
        shape = tuple(stmt.target.shape[axis] for axis in kept)
        if lanes > 1:
            yield f"// sums are of {lanes} parts, each of every {lanes}th element: not NumPy's order"
            yield "int64_t lane = 0;"
        yield f"{kind} acc[{prod(shape)}][{lanes}];"
        yield "#pragma HLS ARRAY_PARTITION variable=acc complete dim=2"
        yield f"for (int64_t i = 0; i < {prod(shape)}; i++) {{"
        for axis in range(len(stmt.target.shape)):
            x = "0"
            if axis in kept:
                x = f"i / {prod(shape[kept.index(axis) + 1 :])} % {stmt.target.shape[axis]}"
            yield f"  const int64_t x{axis} = {x};"
        if work.start is not None:
            result = f"{pointer(work.start)}[{self.place(stmt.target)}]"
        else:
            assert stmt.init is not None
            result, lines = self.value(stmt.init, work)
            yield from (f"  {line}" for line in lines)
        yield f"  acc[i][0] = {result};"
        if lanes > 1:
            yield f"  for (int j = 1; j < {lanes}; j++) acc[i][j] = {int(stmt.combine == 'multiply')};"
        yield "}"

    def deliver(self, work: Work, result: str, lanes: int) -> Iterator[str]:
        stmt, kept = work.stmt, self.kept(work)
        if stmt.combine is None:
            yield f"{work.out}.write({result});"
            return
        at = "0"
        for axis in kept:
            at = f"({at} * {stmt.target.shape[axis]} + x{axis})"
        dtype = self.arrays[stmt.target.array].dtype
        spot = f"acc[{at}][{'lane' if lanes > 1 else '0'}]"
        yield f"{spot} = {self.printer.apply(stmt.combine, [spot, result], [dtype, dtype], dtype)};"
        if lanes > 1:
            yield f"lane = (lane + 1) % {lanes};"

    def finish(self, work: Work, lanes: int) -> Iterator[str]:
        stmt = work.stmt
        assert stmt.combine is not None
        dtype = self.arrays[stmt.target.array].dtype
        count = prod(stmt.target.shape[axis] for axis in self.kept(work))
        yield f"{work.name}_send: for (int64_t i = 0; i < {count}; i++) {{"
        yield f"  {self.type(dtype)} r = acc[i][0];"
        if lanes > 1:
            more = self.printer.apply(stmt.combine, ["r", "acc[i][j]"], [dtype, dtype], dtype)
            yield f"  for (int j = 1; j < {lanes}; j++) r = {more};"
        yield f"  {work.out}.write(r);"
        yield "}"

    # ---- expressions ------------------------------------------------------------------------------------
    def place(self, window: Window, index: Sequence[str] | None = None) -> str:
        """The position of an element in its buffer, at the point ``x0``, ``x1``, ..."""
        text = "0"
        for axis, n in enumerate(self.arrays[window.array].shape):
            if index is not None:
                one = index[axis]
            else:
                ix = window.index[axis]
                one = str(ix.offset) + (f" + ({ix.stride}) * x{ix.axis}" if ix.axis is not None else "")
            text = f"({text} * {n} + {one})"
        return text

    def value(self, root: Expr, work: Work) -> tuple[str, list[str]]:
        """The name of an expression's value, and the lines that compute it, one for each operation."""
        number = {line.source: n for n, line in enumerate(work.inputs)}
        tails = {line.source: line.tail for line in work.inputs}
        taps = {load: f"line{number[s]}[{at - tails[s]}]" for load, s, at in work.taps}
        held = dict(work.held)
        made: dict[Expr, k.Local] = {}
        lines: list[str] = []
        for node in walk(root):
            one: Any = node
            match node:
                case Load(window, _):
                    text = taps.get(node) or f"{pointer(held[window.array])}[{self.place(window)}]"
                case Gather(window, index, _):
                    at = [made[part].name for part in index]
                    text = f"{pointer(held[window.array])}[{self.place(window, at)}]"
                case Const():
                    value = const_value(node)
                    text = self.printer.expr(k.Lit(value.tobytes(), node.dtype))
                case Size(dim, dtype):
                    text = f"({self.type(dtype)}){int(dim)}"
                case Iota(axis, dtype):
                    text = f"({self.type(dtype)})x{axis}"
                case Apply(op, args, dtype):
                    text = self.printer.expr(k.Op(op, tuple(made[arg] for arg in args), dtype))
            name = f"v{len(made)}"
            made[node] = k.Local(name, one.dtype)
            lines.append(f"const {self.type(one.dtype)} {name} = {text};")
        return made[root].name, lines


def _loop(name: str, count: int, lines: list[str]) -> Iterator[str]:
    yield f"{name}: for (int64_t i = 0; i < {count}; i++) {{"
    yield "#pragma HLS PIPELINE II=1"
    yield from (f"  {line}" for line in lines)
    yield "}"


def _counters(name: str, start: Point) -> Iterator[str]:
    for axis, x in enumerate(start):
        yield f"int64_t {name}{axis} = {x};"


def _advance(name: str, start: Point | None, shape: Point) -> Iterator[str]:
    """Count to the next point; the first axis goes on for ever."""
    text = ""
    for axis, n in enumerate(shape):
        low = start[axis] if start is not None else 0
        body = f" {{ {name}{axis} = {low};{text} }}" if axis else ""
        text = f" if (++{name}{axis} == {low + n}){body}" if axis else f" ++{name}0;"
    if text:
        yield text.strip()


def _inside(name: str, box: Box) -> str:
    terms = [
        f"{name}{axis} >= {f} && {name}{axis} < {f + n}"
        for axis, (f, n) in enumerate(zip(box.first, box.shape, strict=True))
    ]
    return " && ".join(terms) or "true"


def _span(work: Work, fifos: Mapping[str, Fifo]) -> tuple[int, int]:
    """The first tick at which something comes or is computed, and the last."""
    spans = [(line.lead, fifos[line.source].box) for line in work.inputs]
    spans += [(0, work.box)] if work.box.size else []
    if not spans:
        return 0, -1
    first = min(distance(box.first, work.raster) - lead for lead, box in spans)
    return first, max(distance(box.last, work.raster) - lead for lead, box in spans)


def _start(tick: int, raster: Point) -> Point:
    """The point of a tick; outside of the raster the first coordinate is out of range."""
    found: list[int] = []
    for n in reversed(raster[1:]):
        tick, x = divmod(tick, max(n, 1))  # nothing happens in an empty raster
        found.append(x)
    return (*([tick] if raster else []), *reversed(found))
