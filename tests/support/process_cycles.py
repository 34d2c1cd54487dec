"""A simulator of process networks in plain Python: each process is a coroutine, each FIFO is bounded.

Time is in cycles.  In a cycle each process makes at most one step, in which it receives and sends; an element
that is sent can be received in the next cycle.  So the simulator shows whether elements arrive where they are
needed, whether depths are enough, and whether a process has to wait.  It is slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import systolic_runs
from sequential_runs import SequentialRun

from dcarray.ir.expression_steps import Kind, program
from dcarray.ir.nodes import Array, Expr, Iota, Load, Window
from dcarray.ir.numpy_views import NDArray
from dcarray.ir.ops import OPS
from dcarray.ir.records import record
from dcarray.ir.windows import walk
from dcarray.lowering.hls.network.boxes import Box, Point
from dcarray.lowering.hls.network.nodes import (
    Buffer,
    Duplicate,
    Fifo,
    Merge,
    Network,
    Process,
    Read,
    Sequential,
    Stage,
    Work,
    Write,
    buffers_written,
)
from dcarray.lowering.hls.network.systolic_products import Collect, Element, Feed
from dcarray.lowering.hls.network.ticks import tick_span

#: A step is asked for by the FIFOs to receive from and to send to; what was received comes back.
_Running = Generator[tuple[tuple[str, ...], tuple[str, ...]], list[Any], None]


@record(frozen=True, slots=True)
class Outcome:
    """The results (arrays with the roles ``out`` and ``inout``), and the number of cycles of each stage."""

    arrays: dict[str, NDArray]
    cycles: tuple[int, ...]


class Deadlock(Exception):
    """Raised if no process can go on; the text has each FIFO's state and what each process waits for."""


def simulate(network: Network, memory: Mapping[str, NDArray]) -> Outcome:
    """Run a network once.

    Parameters
    ----------
    network : Network
    memory : mapping of str to array
        The arrays with the roles ``in`` and ``inout``, which are not changed.

    Returns
    -------
    Outcome

    Raises
    ------
    Deadlock
    """
    arrays = {array.name: array for array in network.region.arrays}
    buffers: dict[Buffer, NDArray] = {}
    for name, array in arrays.items():
        given = memory.get(name) if array.role in ("in", "inout") else None
        buffers[Buffer(name, 0)] = np.zeros(array.shape, array.dtype) if given is None else given.copy()
    for stage in network.stages:
        for process in stage.processes:
            for buffer in buffers_written(process):
                array = arrays[buffer.array]
                buffers[buffer] = np.zeros(array.shape, array.dtype)
    cycles = [0] * len(network.stages)
    for numbers, times in network.runs():
        for number in list(numbers) * times:
            cycles[number] += _Simulation(network.stages[number], buffers, arrays).run()
    return Outcome({name: buffers[buffer] for name, buffer in network.results.items()}, tuple(cycles))


class _Simulation:
    def __init__(self, stage: Stage, buffers: dict[Buffer, NDArray], arrays: Mapping[str, Array]) -> None:
        self.stage, self.buffers, self.arrays = stage, buffers, arrays
        self.fifos: dict[str, Fifo] = {fifo.name: fifo for fifo in stage.fifos}
        self.waiting: dict[str, deque[Any]] = {name: deque() for name in self.fifos}

    def run(self) -> int:
        """Run the stage until all processes have ended; return the number of cycles."""
        # consumers first: what they receive makes room in this cycle, what is sent to them comes in the next
        running = {process.name: self.start(process) for process in reversed(self.stage.processes)}
        asked = {name: step for name, process in running.items() if (step := next(process, None)) is not None}
        cycles = 0
        while asked:
            able = False
            for name, (receives, sends) in list(asked.items()):
                if not self.ready(receives, sends):
                    continue
                able = True
                try:
                    asked[name] = running[name].send([self.waiting[fifo].popleft() for fifo in receives])
                except StopIteration:
                    del asked[name]
            if not able:
                raise Deadlock(self.report(asked))
            cycles += 1
        left = [
            f"{name} holds {len(held)} elements in the end" for name, held in self.waiting.items() if held
        ]
        if left:
            raise Deadlock("; ".join(left))
        return cycles

    def ready(self, receives: tuple[str, ...], sends: tuple[str, ...]) -> bool:
        return all(self.waiting[fifo] for fifo in receives) and all(self.has_room(fifo) for fifo in sends)

    def has_room(self, fifo: str) -> bool:
        return len(self.waiting[fifo]) < self.fifos[fifo].depth

    def report(self, asked: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> str:
        lines = ["no process can go on"]
        for name, (receives, sends) in asked.items():
            lines += [f"  {name} waits to receive from {fifo}" for fifo in receives if not self.waiting[fifo]]
            lines += [f"  {name} waits to send to {fifo}" for fifo in sends if not self.has_room(fifo)]
        for name, held in self.waiting.items():
            lines.append(f"  fifo {name} holds {len(held)} of {self.fifos[name].depth}")
        return "\n".join(lines)

    # ---- what processes do --------------------------------------------------------------------------
    def start(self, process: Process) -> _Running:
        match process:
            case Read(_, buffer, out):
                for value in vectors(self.buffers[buffer], self.fifos[out].width):
                    yield (), (out,)
                    self.waiting[out].append(value)
            case Duplicate(_, source, several):
                for _ in range(self.fifos[source].vectors.size):
                    (value,) = yield (source,), several
                    for out in several:
                        self.waiting[out].append(value)
            case Merge(_, old, new, out):
                inner, width = self.fifos[new].vectors, self.fifos[old].width
                for point in self.fifos[old].vectors.points():
                    got = yield ((old, new) if inner.has(point) else (old,)), (out,)
                    if len(got) == 2:
                        taken = lanes(point, self.fifos[new].box, width)
                        got[0] = [one[j in taken] for j, one in enumerate(zip(*got, strict=True))]
                    self.waiting[out].append(got[0])
            case Write(_, buffer, source, window, base):
                if base is not None:
                    self.buffers[buffer][...] = self.buffers[base]
                elements = np.ndindex(window.shape)
                for _ in range(self.fifos[source].vectors.size):
                    (vector,) = yield (source,), ()
                    for value in vector:
                        self.buffers[buffer][_place(window, next(elements))] = value
            case Work():
                yield from self.work(process)
            case Feed() | Element() | Collect():
                yield from systolic_runs.steps(process, self.buffers, self.waiting, _place)
            case Sequential():
                memory = {name: self.buffers[buffer] for name, buffer in process.reads}
                for name, buffer, base in process.writes:
                    memory[name] = self.buffers[buffer]
                    if base is not None:
                        memory[name][...] = self.buffers[base]
                for points in SequentialRun(self.arrays, memory).points(process.body):
                    for _ in range(points):
                        yield (), ()

    def work(self, work: Work) -> _Running:
        stmt, raster = work.stmt, work.raster
        held = dict(work.held)
        lines: dict[str, deque[Any]] = {
            line.source: deque([None] * line.length, line.length) for line in work.inputs
        }
        leads = {line.source: line.lead for line in work.inputs}
        taps = {tap.load: tap for tap in work.taps}
        result: dict[Point, Any] = {}
        kept = work.kept
        target = stmt.target

        def loaded(load: Load, point: Point, lane: int) -> Any:
            if load in taps:
                tap = taps[load]
                ahead, other = divmod(lane + tap.shift, work.width)
                return lines[tap.source][tap.at + ahead - leads[tap.source] - 1][other]
            return self.buffers[held[load.window.array]][_place(load.window, point)]

        def value(expr: Expr, point: Point, lane: int = 0) -> Any:
            return _value(expr, point, partial(loaded, lane=lane), lambda array: self.buffers[held[array]])

        if stmt.combine is not None:
            for at in np.ndindex(*(target.shape[axis] for axis in kept)):
                point = tuple(at[kept.index(k)] if k in kept else 0 for k in range(len(target.shape)))
                if work.start is not None:
                    result[at] = self.buffers[work.start][_place(target, point)]
                else:
                    assert stmt.init is not None
                    result[at] = value(stmt.init, point)
        first, last = tick_span(work, self.fifos)
        for tick in range(first, last + 1):
            coming = []
            for line in work.inputs:
                there = _point(tick + line.lead, raster)
                if there is not None and self.fifos[line.source].vectors.has(there):
                    coming.append(line.source)
            here = _point(tick, raster)
            inside = here is not None and work.vectors.has(here)
            got = yield tuple(coming), ((work.out,) if inside and stmt.combine is None else ())
            received = dict(zip(coming, got, strict=True))
            for source, places in lines.items():
                places.append(received.get(source))
            if here is None or not inside:
                continue
            vector: list[Any] = [None] * work.width
            for lane in lanes(here, work.box, work.width):
                point = tuple(x - f for x, f in zip(here, work.box.first, strict=True))
                if point:
                    point = (*point[:-1], here[-1] * work.width + lane - work.box.first[-1])
                vector[lane] = value(stmt.body, point, lane)
                if stmt.combine is not None:
                    at = tuple(point[axis] for axis in kept)
                    result[at] = OPS[stmt.combine].reference(result[at], vector[lane])
            if stmt.combine is None:
                self.waiting[work.out].append(vector)
        for element in result.values():
            yield (), (work.out,)
            self.waiting[work.out].append([element])


def vectors(array: NDArray, width: int) -> Iterator[list[Any]]:
    """Return an iterator over the elements of an array in row-major order, ``width`` at a time."""
    flat = list(array.flat)
    return (flat[at : at + width] for at in range(0, len(flat), width))


def lanes(vector: Point, box: Box, width: int) -> range:
    """Return the lanes of the vector at ``vector`` whose elements are inside of a box."""
    if not vector:
        return range(1)
    start = box.first[-1] - vector[-1] * width
    return range(max(start, 0), min(start + box.shape[-1], width))


def _point(tick: int, raster: Point) -> Point | None:
    """Return the point of the raster at a tick; None outside of the raster."""
    coordinates = []
    for n in reversed(raster):
        tick, x = divmod(tick, n)
        coordinates.append(x)
    return tuple(reversed(coordinates)) if tick == 0 else None


def _place(window: Window, point: Point) -> Point:
    """Return the position in the array of a window's element at a point of its domain."""
    return tuple(
        int(ix.offset) + (int(ix.stride) * point[ix.axis] if ix.axis is not None else 0)
        for ix in window.index
    )


def _value(root: Expr, point: Point, loaded: Any, array: Any) -> Any:
    """Return the value of an expression at a point; ``loaded`` and ``array`` give data."""
    values: list[Any] = []
    for (kind, data, args, _, dtype), node in zip(program(root), walk(root), strict=True):
        given = [values[a] for a in args]
        if kind is Kind.LOAD:
            value = loaded(node, point)
        elif kind is Kind.VALUE:
            value = data
        elif kind is Kind.CAST:
            value = np.asarray(given[0]).astype(dtype)[()]
        elif kind is Kind.GATHER:
            value = array(data)[tuple(given)]
        elif kind is Kind.LEAF:
            value = dtype.type(point[data.axis] if isinstance(data, Iota) else int(data.dim))
        else:
            value = data(*given)
        values.append(value)
    return values[-1]
