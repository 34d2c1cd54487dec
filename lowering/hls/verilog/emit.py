"""The printer of process networks of integers as SystemVerilog: each process is a module, joined by FIFOs.

A clock cycle of the circuit is a cycle of the model: each process makes a step if all elements that it needs
are there and there is room for those that it sends; a receiver makes room in the same cycle.  Arithmetic has
no pipeline stages.  So the circuit verifies the order, depths and cycles of a network and shows its size, but
not its clock rate.  Memory is outside, behind ports (`Port`) that answer an address in the same cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dcarray.ir.nodes import Array
from dcarray.ir.records import record
from dcarray.ir.text import show_stmt
from dcarray.lowering.errors import Unsupported

from ..network.boxes import Box, Point
from ..network.nodes import (
    Buffer,
    Duplicate,
    Fifo,
    Merge,
    Network,
    Process,
    Read,
    Stage,
    Work,
    Write,
    outs,
    sources,
)
from ..network.ticks import point_of, tick_span
from .values import Values, in_order, place, width

FIFO = """module fifo #(parameter W = 1, D = 1) (
  input clk, rst,
  input send, input [W-1:0] given, output room,
  output valid, output [W-1:0] value, input take);
  localparam A = D > 1 ? $clog2(D) : 1, C = $clog2(D + 1);
  reg [W-1:0] kept [0:D-1];
  reg [A-1:0] head, tail;
  reg [C-1:0] count;
  assign valid = count != 0;
  assign value = kept[head];
  assign room = count != D[C-1:0] || take;
  always @(posedge clk)
    if (rst) begin
      head <= 0; tail <= 0; count <= 0;
    end else begin
      if (send) begin
        kept[tail] <= given;
        tail <= tail == A'(D - 1) ? 0 : tail + 1;
      end
      if (take) head <= head == A'(D - 1) ? 0 : head + 1;
      count <= count + C'(send) - C'(take);
    end
endmodule"""


@record(frozen=True, slots=True)
class Port:
    """A memory port of the circuit: the output ``<name>_addr``; if it writes, the outputs ``<name>_en`` and
    ``<name>_data``; if it reads, the input ``<name>_data``."""

    name: str
    buffer: Buffer
    dtype: np.dtype[Any]
    writes: bool


@record(frozen=True, slots=True)
class Design:
    """A circuit in SystemVerilog.

    Attributes
    ----------
    text : str
        The text. The module ``top`` has the inputs ``clk``, ``rst`` and ``stage``, the outputs ``done`` and
        ``moves`` (whether a process makes a step in this cycle), and those of its ports.
    ports : tuple of Port
    copies : tuple of tuple of (Buffer, Buffer)
        For each stage the pairs of buffers (from, to) that are copied before it begins.
    """

    text: str
    ports: tuple[Port, ...]
    copies: tuple[tuple[tuple[Buffer, Buffer], ...], ...]


def emit(network: Network, top: str) -> Design:
    """Return a network of integers as a circuit whose module is ``top``.

    Raises
    ------
    Unsupported
        If a statement computes with other numbers than integers, or has an unsupported operation.
    """
    return _Emitter(network, top).design()


class _Emitter:
    def __init__(self, network: Network, top: str) -> None:
        self.network, self.top = network, top
        self.arrays: dict[str, Array] = {array.name: array for array in network.region.arrays}
        for array in network.region.arrays:
            if array.dtype.kind not in "iub":
                raise Unsupported(f"{array.name} is {array.dtype.name}: a circuit in Verilog is of integers")
        if network.repeats:
            raise Unsupported("stages in Verilog run once")
        for stage in network.stages:
            if any(fifo.width > 1 for fifo in stage.fifos):
                raise Unsupported("streams in Verilog carry one element at a time")
            for process in stage.processes:
                if not isinstance(process, Read | Duplicate | Merge | Work | Write):
                    raise Unsupported(f"{process.name} has no circuit in Verilog")
        self.ports: list[Port] = []

    def design(self) -> Design:
        lines: list[str] = []
        copies = []
        for number, stage in enumerate(self.network.stages):
            lines += self.stage(number, stage)
            copies.append(
                tuple([(p.base, p.buffer) for p in stage.processes if isinstance(p, Write) and p.base])
            )
        text = "\n".join([FIFO, "", *lines, *self.main(), ""])
        return Design(text, tuple(self.ports), tuple(copies))

    def main(self) -> Iterator[str]:
        """Yield the top module, in which one of the stages runs at a time."""
        count = len(self.network.stages)
        yield f"module {self.top} ("
        yield "  input clk, rst, input [7:0] stage, output done, moves"
        yield from (f"  , {line}" for port in self.ports for line in _port(port))
        yield ");"
        for number in range(count):
            names = ["clk", f"done_{number}", f"moves_{number}"]
            given = [f".rst(rst || stage != {number})", f".done(done_{number})", f".moves(moves_{number})"]
            yield f"  wire {', '.join(names[1:])};"
            own = [p for p in self.ports if p.name.startswith(f"stage{number}_")]
            given += [f".{name}({name})" for port in own for name in _names(port)]
            yield f"  {self.top}_stage{number} stage_{number} (.clk(clk), {', '.join(given)});"
        for signal in ("done", "moves"):
            parts = [f"(stage == {n} && {signal}_{n})" for n in range(count)]
            yield f"  assign {signal} = {' || '.join(parts) or str(int(signal == 'done'))};"
        yield "endmodule"

    def stage(self, number: int, stage: Stage) -> Iterator[str]:
        """Yield the modules of a stage's processes, and the module of the stage."""
        fifos = {fifo.name: fifo for fifo in stage.fifos}
        before = len(self.ports)
        inside: list[str] = []
        for fifo in stage.fifos:
            name, bits = fifo.name, width(fifo.dtype)
            inside.append(f"  wire {name}_send, {name}_room, {name}_valid, {name}_take;")
            inside.append(f"  wire [{bits - 1}:0] {name}_given, {name}_value;")
            inside.append(
                f"  fifo #(.W({bits}), .D({fifo.depth})) {name} (.clk(clk), .rst(rst), .send({name}_send), "
                f".given({name}_given), .room({name}_room), .valid({name}_valid), .value({name}_value), "
                f".take({name}_take));"
            )
        for process in stage.processes:
            prefix = f"stage{number}_{process.name}"
            module = _Module(self, process, fifos, prefix)
            yield from module.text(f"{self.top}_{prefix}")
            self.ports += module.ports
            given = [f".{name}({name})" for name in module.streams]
            given += [f".{name}({name})" for port in module.ports for name in _names(port)]
            inside.append(f"  wire {process.name}_done, {process.name}_moves;")
            inside.append(
                f"  {self.top}_{prefix} {process.name} (.clk(clk), .rst(rst), .done({process.name}_done), "
                f".moves({process.name}_moves){''.join(f', {one}' for one in given)});"
            )
        yield f"module {self.top}_stage{number} ("
        yield "  input clk, rst, output done, moves"
        yield from (f"  , {line}" for port in self.ports[before:] for line in _port(port))
        yield ");"
        yield from inside
        names = [process.name for process in stage.processes]
        yield f"  assign done = {' && '.join(f'{name}_done' for name in names) or '1'};"
        yield f"  assign moves = {' || '.join(f'{name}_moves' for name in names) or '0'};"
        yield from ("endmodule", "")


def _names(port: Port) -> list[str]:
    return [f"{port.name}_addr", f"{port.name}_data", *([f"{port.name}_en"] if port.writes else [])]


def _port(port: Port) -> list[str]:
    way = "output" if port.writes else "input"
    lines = [f"output [31:0] {port.name}_addr", f"{way} [{width(port.dtype) - 1}:0] {port.name}_data"]
    return [*lines, *([f"output {port.name}_en"] if port.writes else [])]


class _Module:
    """The printer of the module of one process."""

    def __init__(self, emitter: _Emitter, process: Process, fifos: Mapping[str, Fifo], prefix: str) -> None:
        self.emitter, self.process, self.fifos, self.prefix = emitter, process, fifos, prefix
        self.arrays = emitter.arrays
        self.ports: list[Port] = []
        self.streams = [f"{name}_{s}" for name in sources(process) for s in ("valid", "value", "take")]
        self.streams += [f"{name}_{s}" for name in outs(process) for s in ("send", "given", "room")]

    def text(self, name: str) -> Iterator[str]:
        lines = list(self.body())
        process = self.process
        if isinstance(process, Work):
            where = f"{process.stmt.loc}: " if process.stmt.loc is not None else ""
            yield f"// {where}{show_stmt(process.stmt, self.emitter.network.region).strip()}"
        yield f"module {name} ("
        yield "  input clk, rst, output done, moves"
        for source in sources(process):
            bits = width(self.fifos[source].dtype)
            yield f"  , input {source}_valid, input [{bits - 1}:0] {source}_value, output {source}_take"
        for out in outs(process):
            bits = width(self.fifos[out].dtype)
            yield f"  , output {out}_send, output [{bits - 1}:0] {out}_given, input {out}_room"
        yield from (f"  , {line}" for port in self.ports for line in _port(port))
        yield ");"
        yield from (f"  {line}" for line in lines)
        yield from ("endmodule", "")

    def port(self, name: str, buffer: Buffer, *, writes: bool = False) -> str:
        """Add a port to memory and return its name."""
        dtype = self.arrays[buffer.array].dtype
        self.ports.append(Port(f"{self.prefix}_{name}", buffer, dtype, writes))
        return self.ports[-1].name

    def body(self) -> Iterator[str]:
        match self.process:
            case Read(_, buffer, out):
                count = prod(self.arrays[buffer.array].shape)
                port = self.port("mem", buffer)
                yield from self.steps(count, [f"{out}_room"])
                yield f"assign {port}_addr = 32'(i);"
                yield f"assign {out}_send = moves;"
                yield f"assign {out}_given = {port}_data;"
            case Duplicate(_, source, several):
                needed = [f"{source}_valid", *(f"{out}_room" for out in several)]
                yield from self.steps(self.fifos[source].box.size, needed)
                yield f"assign {source}_take = moves;"
                for out in several:
                    yield f"assign {out}_send = moves;"
                    yield f"assign {out}_given = {source}_value;"
            case Merge(_, old, new, out):
                shape, start = self.fifos[old].box.shape, self.fifos[old].box.first
                needed = [f"{old}_valid", f"(!covered || {new}_valid)", f"{out}_room"]
                yield from counters("x", start, shape, start[0] + shape[0] if shape else 0)
                yield f"wire covered = {inside('x', self.fifos[new].box)};"
                yield from self.steps(prod(shape), needed)
                yield from advance("x", start, shape, "moves")
                yield f"assign {old}_take = moves;"
                yield f"assign {new}_take = moves && covered;"
                yield f"assign {out}_send = moves;"
                yield f"assign {out}_given = covered ? {new}_value : {old}_value;"
            case Write(_, buffer, source, window, _):
                shape = tuple(window.shape)
                port = self.port("mem", buffer, writes=True)
                zeros = (0,) * len(shape)
                yield from counters("x", zeros, shape, shape[0] if shape else 0)
                yield from self.steps(prod(shape), [f"{source}_valid"])
                yield from advance("x", zeros, shape, "moves")
                array = self.arrays[window.array]
                at = "i" if in_order(window, array) else place(window, array)
                yield f"assign {port}_addr = 32'({at});"
                yield f"assign {port}_data = {source}_value;"
                yield f"assign {port}_en = moves;"
                yield f"assign {source}_take = moves;"
            case Work():
                yield from self.work(self.process)

    def steps(self, count: int, needed: Sequence[str]) -> Iterator[str]:
        """Yield the counter of a process of ``count`` steps, with the conditions ``needed``."""
        bits = max(count.bit_length(), 1)
        yield f"reg [{bits - 1}:0] i;"
        yield f"assign done = i == {bits}'d{count};"
        yield f"assign moves = {' && '.join(['!rst', '!done', *needed])};"
        yield f"always @(posedge clk) if (rst) i <= 0; else if (moves) i <= i + {bits}'d1;"

    def work(self, work: Work) -> Iterator[str]:
        """Yield the body of a statement's module: shift registers, counters, the value, and accumulators."""
        stmt, raster, out = work.stmt, work.raster, work.out
        first, last = tick_span(work, self.fifos)
        count = last - first + 1
        folds = stmt.combine is not None
        values = Values(work, self.arrays, self.port)
        needed = []
        yield f"wire sending, here{''.join(f', in{n}' for n in range(len(work.inputs)))};"
        for n, line in enumerate(work.inputs):
            bits = width(self.fifos[line.source].dtype)
            begin = point_of(first + line.lead, raster)
            yield from counters(f"a{n}x", begin, raster, last_of(begin, raster, count))
            yield f"assign in{n} = !sending && {inside(f'a{n}x', self.fifos[line.source].box)};"
            needed.append(f"(!in{n} || {line.source}_valid)")
            yield f"assign {line.source}_take = moves && in{n};"
            if line.length > 1:
                yield f"reg [{bits - 1}:0] line{n} [0:{line.length - 2}];"
                yield "always @(posedge clk) if (moves && !sending) begin"
                if line.length > 2:
                    yield f"  for (int j = 0; j < {line.length - 2}; j++) line{n}[j] <= line{n}[j + 1];"
                yield f"  line{n}[{line.length - 2}] <= {line.source}_value;"
                yield "end"
            yield from advance(f"a{n}x", begin, raster, "moves && !sending")
        begin = point_of(first, raster)
        yield from counters("h", begin, raster, last_of(begin, raster, count))
        yield from advance("h", begin, raster, "moves && !sending")
        yield f"assign here = !sending && {inside('h', work.box)};"
        results = values.results if folds else 0
        needed.append(f"(!{'sending' if folds else 'here'} || {out}_room)")
        yield from self.steps(count + results, needed)
        yield f"assign sending = {f'i >= {count}' if folds else '0'};"
        yield from values.points(folds)
        yield from values.computed(stmt.body, "v")
        result = values.last
        if not folds:
            yield f"assign {out}_send = moves && here;"
            yield f"assign {out}_given = {result};"
            return
        yield from values.accumulated(result)
        yield f"assign {out}_send = moves && sending;"
        yield f"assign {out}_given = so_far;"


# ---- points and counters -----------------------------------------------------------------------------------
def last_of(start: Point, raster: Point, count: int) -> int:
    """Return an upper bound of the first coordinate after ``count`` ticks."""
    return start[0] + count // max(prod(raster[1:]), 1) + 2 if start else 0


def counters(name: str, start: Point, shape: Point, last: int) -> Iterator[str]:
    """Yield the declarations of the coordinates of a point, of which the first goes up to ``last``."""
    for axis, n in enumerate(shape):
        low, high = (min(start[0], 0), last) if axis == 0 else (0, start[axis] + n)
        bits = max(abs(low), abs(high), 1).bit_length() + 1
        yield f"reg signed [{bits - 1}:0] {name}{axis};"


def advance(name: str, start: Point, shape: Point, when: str) -> Iterator[str]:
    """Yield the statement that moves a point's coordinates to the next point; the first axis has no limit."""
    if not shape:
        return
    again = " ".join(f"{name}{axis} <= {x};" for axis, x in enumerate(start))
    text = f"{name}0 <= {name}0 + 1;"
    for axis in range(1, len(shape)):
        # an axis of a merge or of a raster begins again at the least coordinate of its box
        low = start[axis] if name == "x" else 0
        one = f"if ({name}{axis} == {low + shape[axis] - 1}) begin {name}{axis} <= {low}; "
        text = f"{one}{text} end else {name}{axis} <= {name}{axis} + 1;"
    yield "always @(posedge clk)"
    yield f"  if (rst) begin {again} end"
    yield f"  else if ({when}) begin {text} end"


def inside(name: str, box: Box) -> str:
    """Return the condition that the point of the counters is inside of a box."""
    terms = [
        f"{name}{axis} >= {f} && {name}{axis} < {f + n}"
        for axis, (f, n) in enumerate(zip(box.first, box.shape, strict=True))
    ]
    return " && ".join(terms) or "1"
