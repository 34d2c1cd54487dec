"""An analytic model of a process network: cycles, intervals, memory traffic and resources.

A process begins an iteration of its loop every ``interval`` cycles, and receives and sends at known
iterations.  FIFOs are deep enough, so it waits only for its first and its last elements: the times at which
it begins and ends follow from those of its producers, in the order of the network.  With latencies of 0 these
are the cycles that a simulator in the tests counts; with those of `costs` they are an estimate for a board.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from dcarray.ir.nodes import Array, Expr, Gather, Load
from dcarray.ir.records import record
from dcarray.ir.windows import loads

from ..network.boxes import distance
from ..network.folds import accumulators
from ..network.line_buffers import parts as line_parts
from ..network.memory_statements import computes, work_of
from ..network.nodes import (
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
    outs,
    sources,
)
from ..network.systolic_products import Collect, Element, Feed, iterations
from ..network.tables import copies, in_memory
from ..network.ticks import tick_span
from .costs import MEMORY_LATENCY, Cost, counter, memory, operation, shift_register
from .expressions import bits, depth, operations, total


@record(frozen=True, slots=True)
class ProcessModel:
    """The estimated cycles, memory traffic and hardware of one process.

    Attributes
    ----------
    name, kind : str
    iterations : int
        The number of iterations of its loop.
    interval : int
        The number of cycles from one iteration to the next (initiation interval).
    why : str
        The reason for an interval of more than 1.
    latency : int
        The number of cycles from what an iteration receives to what it sends.
    prologue : int
        The number of cycles before its loop, for copies and accumulators.
    bytes_read, bytes_written : int
        The numbers of bytes that it reads from and writes to the board's memory.
    cost : Cost
        Its hardware, without the ports to memory.
    """

    name: str
    kind: str
    iterations: int
    interval: int
    why: str
    latency: int
    prologue: int
    bytes_read: int
    bytes_written: int
    cost: Cost


@record(frozen=True, slots=True)
class StageModel:
    """The estimated cycles, memory traffic and hardware of one stage.

    Attributes
    ----------
    processes : tuple of ProcessModel
    fifos : Cost
    cycles : int
        The number of cycles from the first to the last iteration, without latencies and prologues.
    latency : int
        The number of cycles with latencies and prologues.
    times : int
        The number of times that the stage runs; all other figures are for one run.
    """

    processes: tuple[ProcessModel, ...]
    fifos: Cost
    cycles: int
    latency: int
    times: int

    @property
    def cost(self) -> Cost:
        """The hardware of its processes and FIFOs."""
        return total([*(process.cost for process in self.processes), self.fifos])


@record(frozen=True, slots=True)
class NetworkModel:
    """The estimated cycles, memory traffic and hardware of a network."""

    stages: tuple[StageModel, ...]

    @property
    def processes(self) -> tuple[ProcessModel, ...]:
        """The models of the processes of all stages."""
        return tuple(process for stage in self.stages for process in stage.processes)

    @property
    def cycles(self) -> int:
        """The number of cycles of all stages, without latencies and prologues."""
        return sum(stage.times * stage.cycles for stage in self.stages)

    @property
    def latency(self) -> int:
        """The number of cycles of all stages, with latencies and prologues."""
        return sum(stage.times * stage.latency for stage in self.stages)

    @property
    def interval(self) -> int:
        """The largest initiation interval of a process."""
        return max((process.interval for process in self.processes), default=1)

    @property
    def bytes_read(self) -> int:
        """Bytes read from the board's memory."""
        return sum(stage.times * one.bytes_read for stage in self.stages for one in stage.processes)

    @property
    def bytes_written(self) -> int:
        """Bytes written to the board's memory."""
        return sum(stage.times * one.bytes_written for stage in self.stages for one in stage.processes)

    @property
    def cost(self) -> Cost:
        """The hardware of all stages."""
        return total(stage.cost for stage in self.stages)


def model(network: Network) -> NetworkModel:
    """Return the model of a network."""
    arrays = {array.name: array for array in network.region.arrays}
    return NetworkModel(
        tuple(_stage(stage, arrays, network.times(k)) for k, stage in enumerate(network.stages))
    )


def _stage(stage: Stage, arrays: Mapping[str, Array], times: int) -> StageModel:
    fifos = {fifo.name: fifo for fifo in stage.fifos}
    processes = tuple(_process(process, fifos, arrays) for process in stage.processes)
    cost = total(memory(fifo.depth, fifo.width * bits(fifo.dtype)) for fifo in stage.fifos)
    bare = _last_cycle(stage, processes, fifos, latencies=False)
    return StageModel(processes, cost, bare, _last_cycle(stage, processes, fifos, latencies=True), times)


# ---- when things happen ----------------------------------------------------------------------------------
def _last_cycle(
    stage: Stage, models: Sequence[ProcessModel], fifos: Mapping[str, Fifo], *, latencies: bool
) -> int:
    """Return the number of cycles of a stage; ``latencies``: with latencies and prologues."""
    first: dict[str, int] = {}  # cycles at which a FIFO has its first element, and its last
    last: dict[str, int] = {}
    end = 0
    for process, one in zip(stage.processes, models, strict=True):
        begin = one.prologue if latencies else 0
        comes, goes = _iterations(process, one, fifos)
        for name, (early, _) in comes.items():
            begin = max(begin, first[name] - early * one.interval)
        final = begin + max(one.iterations - 1, 0) * one.interval
        for name, (_, late) in comes.items():
            final = max(final, last[name] + (one.iterations - 1 - late) * one.interval)
        later = 1 + (one.latency if latencies else 0)
        for name, (early, late) in goes.items():
            first[name] = begin + early * one.interval + later
            last[name] = final - (one.iterations - 1 - late) * one.interval + later
        if one.iterations:
            end = max(end, final + later)
    return end


#: For each FIFO the first and the last iteration that uses it.
_Uses = dict[str, tuple[int, int]]


def _iterations(process: Process, one: ProcessModel, fifos: Mapping[str, Fifo]) -> tuple[_Uses, _Uses]:
    """Return the first and last iteration at which a process receives from each of its FIFOs, and at which it
    sends to each."""
    every = (0, max(one.iterations - 1, 0))
    if isinstance(process, Merge):
        old, new = fifos[process.old].vectors, fifos[process.new].vectors
        inner = [distance(_less(point, old.first), old.shape) for point in (new.first, new.last)]
        return {process.old: every, process.new: (inner[0], inner[1])}, {process.out: every}
    if isinstance(process, Feed | Element | Collect):
        return iterations(process)[1:]
    if not isinstance(process, Work):
        return dict.fromkeys(sources(process), every), dict.fromkeys(outs(process), every)
    start, end = tick_span(process, fifos)
    ticks = end - start + 1
    comes = {}
    for line in process.inputs:
        box = fifos[line.source].vectors
        span = [distance(point, process.raster) - line.lead - start for point in (box.first, box.last)]
        comes[line.source] = (span[0], span[1])
    if process.stmt.combine is not None:
        return comes, {process.out: (ticks, ticks + process.results - 1)}
    inside = [
        distance(point, process.raster) - start for point in (process.vectors.first, process.vectors.last)
    ]
    return comes, {process.out: (inside[0], inside[1])}


# ---- processes ---------------------------------------------------------------------------------------------
def _process(process: Process, fifos: Mapping[str, Fifo], arrays: Mapping[str, Array]) -> ProcessModel:
    def size(name: str) -> int:
        return prod(arrays[name].shape) * arrays[name].dtype.itemsize

    match process:
        case Read(name, buffer, out):
            count = fifos[out].vectors.size
            latency = MEMORY_LATENCY
            return ProcessModel(name, "read", count, 1, "", latency, 0, size(buffer.array), 0, counter(count))
        case Duplicate(name, source, _):
            count = fifos[source].vectors.size
            return ProcessModel(name, "duplicate", count, 1, "", 0, 0, 0, 0, counter(count))
        case Merge(name, old, new, _):
            shape, width = fifos[old].vectors.shape, fifos[old].width
            chosen = [operation("where", (), fifos[new].dtype)] * width
            cost = total([*map(counter, shape), *chosen])
            return ProcessModel(name, "merge", prod(shape), 1, "", 0, 0, 0, 0, cost)
        case Write(name, buffer, source, window, base):
            count, whole = fifos[source].vectors.size, prod(arrays[buffer.array].shape)
            item = arrays[buffer.array].dtype.itemsize
            copied = whole if base is not None else 0
            return ProcessModel(
                name, "write", count, 1, "", 1, copied, copied * item, (copied + prod(window.shape)) * item,
                total(map(counter, window.shape)),
            )  # fmt: skip
        case Work():
            return _work(process, fifos, arrays)
        case Sequential():
            return _sequential(process, arrays)
        case Feed() | Element() | Collect():
            return _systolic(process, arrays)


def _systolic(process: Feed | Element | Collect, arrays: Mapping[str, Array]) -> ProcessModel:
    """Return the model of a process of a matrix product, which starts an iteration in every cycle."""
    product, name = process.product, process.name
    dtype, item, (count, _, _) = product.dtype, product.dtype.itemsize, iterations(process)
    match process:
        case Feed(which=0):
            panel = product.elements * product.terms
            read = item * panel * (product.tiles // product.column_tiles)
            cost = counter(count) + memory(panel, bits(dtype))
            return ProcessModel(name, "read", count, 1, "", MEMORY_LATENCY, 0, read, 0, cost)
        case Feed():
            return ProcessModel(
                name, "read", count, 1, "", MEMORY_LATENCY, 0, item * count, 0, counter(count)
            )
        case Collect(buffer=buffer, base=base):
            whole = prod(arrays[buffer.array].shape) if base is not None else 0
            written = item * (prod(product.stack) * product.rows * product.width + whole)
            return ProcessModel(name, "write", count, 1, "", 1, whole, whole * item, written, counter(count))
        case Element():
            both = [operation(op, (dtype, dtype), dtype) for op in ("multiply", "add")]
            late = sum(one.latency for one in both)
            cost = total([*both, memory(product.columns, bits(dtype)), counter(count)])
            return ProcessModel(name, "compute", count, 1, "", late, 0, 0, 0, cost)


def _sequential(process: Sequential, arrays: Mapping[str, Array]) -> ProcessModel:
    """Return the model of a process whose statements run in memory, one point per cycle.  A while loop counts
    as one iteration, and a branch as the longer of its bodies."""
    copied = [arrays[name] for name, _, base in process.writes if base is not None]
    moved = sum(prod(array.shape) * array.dtype.itemsize for array in copied)
    work = work_of(process.body, arrays, {})
    parts = [operations(part.body) for part in computes(process.body, arrays)]
    latency = MEMORY_LATENCY + max((depth(part.body) for part in computes(process.body, arrays)), default=0)
    return ProcessModel(
        process.name, "compute", work.points, 1, "", latency, sum(prod(array.shape) for array in copied),
        moved + work.bytes_read, moved + work.bytes_written, total(parts),
    )  # fmt: skip


def _work(work: Work, fifos: Mapping[str, Fifo], arrays: Mapping[str, Array]) -> ProcessModel:
    stmt = work.stmt
    first, last = tick_span(work, fifos)
    iterations = last - first + 1
    latency = depth(stmt.body)
    prologue, interval, why = 0, 1, ""
    parts = [*[operations(stmt.body)] * work.width, *map(counter, work.raster)]
    tapped = Counter(tap.source for tap in work.taps)
    for line in work.inputs:
        wide = work.width * bits(fifos[line.source].dtype)
        pieces = line_parts(work, line)
        parts.append(shift_register(pieces.registers, wide, tapped[line.source]))
        parts += [memory(length, wide) for length in pieces.delays]
        parts += map(counter, work.raster)
    read = 0
    ports = Counter[str]()
    for load in _in_memory(work, stmt.body):
        same = isinstance(load, Load) and all(ix.axis is None for ix in load.window.index)
        if same:  # for all iterations
            read += load.dtype.itemsize
            prologue += MEMORY_LATENCY
        elif load.window.array not in work.tables:
            ports[load.window.array] += 1
            read += work.box.size * load.dtype.itemsize
    for name in work.tables:
        size, item = prod(arrays[name].shape), arrays[name].dtype.itemsize
        many = copies(len(in_memory(stmt, name, (tap.load for tap in work.taps))) * work.width)
        parts += [memory(size, 8 * item)] * many
        read += size * item
        prologue += MEMORY_LATENCY + size
    if ports:
        latency += MEMORY_LATENCY
        name, interval = max(ports.items(), key=lambda item: item[1])
        why = f"{interval} elements of {name} come through one port" if interval > 1 else ""
    if stmt.combine is not None:
        dtype, results = arrays[stmt.target.array].dtype, work.results
        lanes = accumulators(stmt.combine, dtype)
        step = operation(stmt.combine, (dtype, dtype), dtype)
        apart = max(work.box.size, 1) if work.reuse is None else work.reuse
        distance_ = max(apart, lanes)
        needed = -(-step.latency // distance_)
        if needed > interval:
            interval, why = needed, f"{stmt.combine} takes {step.latency} cycles"
        parts += [*[step] * work.width, memory(results * lanes, bits(dtype))]
        # the elements of a vector are joined before, but where accumulators are vectors
        joined = step.latency * (work.width if work.width > 1 and not work.adds_vectors else 0)
        latency += joined + step.latency + (step.latency * lanes if lanes > 1 else 0)
        prologue += results
        if stmt.init is not None:
            parts.append(operations(stmt.init))
        starts = [*_in_memory(work, stmt.init)] if stmt.init is not None else []
        read += results * sum(load.dtype.itemsize for load in starts)
        read += results * dtype.itemsize if work.start is not None else 0
        iterations += results
    return ProcessModel(
        work.name, "compute", iterations, interval, why, latency, prologue, read, 0, total(parts)
    )


def _in_memory(work: Work, root: Expr) -> Iterable[Load | Gather]:
    """Return the loads of an expression that read memory, not a shift register."""
    taps = {tap.load for tap in work.taps}
    return [load for load in loads(root) if load not in taps]


def _less(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))
