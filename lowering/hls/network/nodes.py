"""The data classes of process networks, the form of a region as a streaming circuit, and their verifier.

A network is a sequence of *stages*. The processes of a stage run at the same time, joined by FIFOs of
fixed depth; a stage begins when the one before it has finished.  A *buffer* is one version of an array
in the board's memory: no buffer is written twice, so that no process can overwrite what another has
still to read.

A stream carries the elements of a box of an array in row-major order.  Connected processes count time in
*ticks*, one for each point of a common *raster*, a box that contains all their boxes; the *distance* of two
points is the difference of their row-major numbers in it.  A stream of *width* w > 1 carries *vectors* of w
elements along the last axis, and a tick is that of a vector; elements of a vector that are outside of the box
have no meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from dcarray.ir.nodes import Compute, Load, Region, Stmt, Window
from dcarray.ir.records import record

from .boxes import Box, Point
from .folds import kept_axes
from .systolic_products import Collect, Element, Feed


class NetworkError(Exception):
    """Raised for a network that breaks a rule; the text says which one."""


@record(frozen=True, slots=True)
class Buffer:
    """Version ``version`` of ``array`` in memory; version 0 has its values before the region runs."""

    array: str
    version: int

    def __str__(self) -> str:
        return f"{self.array}.{self.version}"

    @property
    def pointer(self) -> str:
        """The name of the pointer to the buffer in kernels."""
        return f"{self.array}_{self.version}"


@record(frozen=True, slots=True)
class Fifo:
    """A stream of the elements of a box in row-major order, ``width`` of them at a time; ``depth`` is the
    number of such items that can wait in it."""

    name: str
    dtype: np.dtype[np.generic]
    box: Box
    depth: int
    width: int = 1

    @property
    def vectors(self) -> Box:
        """The box of the stream in units of vectors."""
        return self.box.vectors(self.width)


@record(frozen=True, slots=True)
class Read:
    """A process that sends all elements of a buffer."""

    name: str
    buffer: Buffer
    out: str


@record(frozen=True, slots=True)
class Duplicate:
    """A process that sends each element that it receives to several FIFOs."""

    name: str
    source: str
    outs: tuple[str, ...]


@record(frozen=True, slots=True)
class Merge:
    """A process that sends the stream ``old`` with ``new``'s elements in their places."""

    name: str
    old: str
    new: str
    out: str


@record(frozen=True, slots=True)
class LineBuffer:
    """A shift register after a FIFO: at each tick it receives the element whose point is ``lead`` ticks ahead
    (if negative: behind), and keeps it until it is only ``tail`` ticks ahead."""

    source: str
    lead: int
    tail: int

    @property
    def length(self) -> int:
        """The number of elements that the shift register holds."""
        return self.lead - self.tail + 1


@record(frozen=True, slots=True)
class Tap:
    """A load from a stream's line buffer.  Lane ``j`` of a statement reads lane ``(j + shift) % width`` of
    the vector ``at + (j + shift) // width`` ticks ahead."""

    load: Load
    source: str
    at: int
    shift: int = 0

    def reach(self, width: int) -> tuple[int, int]:
        """Return the least and the greatest distance in ticks of the vectors that the lanes read."""
        return self.at, self.at + (self.shift + width - 1) // width


@record(frozen=True, slots=True)
class Work:
    """A process that computes a statement in row-major order of its domain, ``width`` points at a time, and
    sends each value; the results of a fold are sent after the last point.  ``box`` is the domain in elements,
    and ``raster`` is in ticks.

    ``taps`` are the loads from streams; ``held`` has the buffers of arrays that other loads read.  ``start``
    is the buffer with the initial values of a fold without ``init``; ``tables`` are the arrays that are first
    copied to the chip (see `tables`).
    """

    name: str
    number: int
    stmt: Compute
    box: Box
    raster: Point
    inputs: tuple[LineBuffer, ...]
    taps: tuple[Tap, ...]
    held: tuple[tuple[str, Buffer], ...]
    out: str
    start: Buffer | None = None
    width: int = 1
    tables: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes of the domain that a fold keeps."""
        return kept_axes(self.stmt.target)

    @property
    def results(self) -> int:
        """The number of results of a fold."""
        return prod(int(self.stmt.target.shape[axis]) for axis in self.kept)

    @property
    def reuse(self) -> int | None:
        """The least number of ticks between two updates of one result of a fold; None if none has two.

        That is a step of one along the innermost reduced axis; a step along an outer axis takes no fewer
        ticks.
        """
        kept = self.kept
        reduced = [axis for axis, n in enumerate(self.stmt.target.shape) if axis not in kept and n > 1]
        return prod(self.raster[reduced[-1] + 1 :]) if reduced else None

    @property
    def adds_vectors(self) -> bool:
        """Whether accumulators are vectors, because the axis along which vectors lie is not reduced."""
        last = len(self.stmt.target.shape) - 1
        return self.width > 1 and self.stmt.combine is not None and last in self.kept

    @property
    def row(self) -> int:
        """The number of vectors along the last axis of the domain."""
        return -(-int(self.stmt.target.shape[-1]) // self.width)

    @property
    def vectors(self) -> Box:
        """The box of the domain in the raster, in units of vectors."""
        return self.box.vectors(self.width)


@record(frozen=True, slots=True)
class Write:
    """A process that stores a stream to a window of ``buffer``, after copying ``base`` there if given."""

    name: str
    buffer: Buffer
    source: str
    window: Window
    base: Buffer | None = None


@record(frozen=True, slots=True)
class Sequential:
    """A process that runs statements, loops and branches one after the other on arrays in memory.

    ``writes`` has for each changed array its new buffer, and the buffer that is first copied there (None: the
    old values do not matter); ``reads`` has the buffer of each other array.  A statement of which one point
    overwrites what another point still reads writes to the array's buffer in ``scratch`` first."""

    name: str
    number: int
    body: tuple[Stmt, ...]
    reads: tuple[tuple[str, Buffer], ...]
    writes: tuple[tuple[str, Buffer, Buffer | None], ...]
    scratch: tuple[tuple[str, Buffer], ...]


Process = Read | Duplicate | Merge | Work | Write | Sequential | Feed | Element | Collect


@record(frozen=True, slots=True)
class Stage:
    """Processes that run at the same time, sorted producers first, and their FIFOs; ``narrow`` has the
    reasons why streams carry fewer elements at a time than requested."""

    processes: tuple[Process, ...]
    fifos: tuple[Fifo, ...]
    narrow: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Repeat:
    """A loop over the stages ``first`` to ``last``, which runs ``times`` times; the buffers ``state`` carry
    values from one iteration to the next."""

    first: int
    last: int
    times: int
    state: tuple[Buffer, ...]


@record(frozen=True, slots=True)
class Network:
    """A region as a streaming circuit.

    Attributes
    ----------
    region : Region
    stages : tuple of Stage
    results : mapping of str to Buffer
        The buffers that hold the region's results at the end, by array.
    reasons : tuple of (int, str, str)
        For each array that a statement cannot receive or send as a stream: the number of the statement, the
        name of the array and the reason.
    repeats : tuple of Repeat
        The stages that run more than once, in order.
    """

    region: Region
    stages: tuple[Stage, ...]
    results: Mapping[str, Buffer]
    reasons: tuple[tuple[int, str, str], ...]
    repeats: tuple[Repeat, ...] = ()

    def runs(self) -> Iterator[tuple[range, int]]:
        """Yield the ranges of stage numbers in order, each with the number of times that it runs."""
        at = 0
        for one in self.repeats:
            if at < one.first:
                yield range(at, one.first), 1
            yield range(one.first, one.last + 1), one.times
            at = one.last + 1
        if at < len(self.stages):
            yield range(at, len(self.stages)), 1

    def times(self, number: int) -> int:
        """Return the number of times that a stage runs."""
        return next(times for stages, times in self.runs() if number in stages)


def sources(process: Process) -> tuple[str, ...]:
    """Return the names of the FIFOs from which a process receives."""
    match process:
        case Read() | Sequential() | Feed():
            return ()
        case Element(factors=factors, before=before):
            return (*factors, *([before] if before is not None else []))
        case Merge(_, old, new, _):
            return (old, new)
        case Work():
            return tuple(line.source for line in process.inputs)
        case Duplicate(source=source) | Write(source=source) | Collect(source=source):
            return (source,)


def outs(process: Process) -> tuple[str, ...]:
    """Return the names of the FIFOs to which a process sends."""
    match process:
        case Duplicate(outs=several):
            return several
        case Write() | Sequential() | Collect():
            return ()
        case Element(outs=several, out=out):
            return (*several, out)
        case Read(out=out) | Merge(out=out) | Work(out=out) | Feed(out=out):
            return (out,)


def buffers_read(process: Process) -> tuple[Buffer, ...]:
    """Return the buffers that a process reads."""
    match process:
        case Read(buffer=buffer) | Feed(buffer=buffer):
            return (buffer,)
        case Work(held=held, start=start):
            return (*(buffer for _, buffer in held), *([start] if start else []))
        case Write(base=base) | Collect(base=base) if base is not None:
            return (base,)
        case Sequential(reads=reads, writes=writes):
            bases = [base for _, _, base in writes if base is not None]
            return (*(buffer for _, buffer in reads), *bases)
    return ()


def buffers_written(process: Process) -> tuple[Buffer, ...]:
    """Return the buffers that a process writes."""
    match process:
        case Write(buffer=buffer) | Collect(buffer=buffer):
            return (buffer,)
        case Sequential(writes=writes, scratch=scratch):
            return (*(buffer for _, buffer, _ in writes), *(buffer for _, buffer in scratch))
    return ()


def verify(network: Network) -> None:
    """Check the rules of a network; raise `NetworkError` if one is broken.

    * Each FIFO has one sender and one receiver, which comes later in the order, and a depth of at least 1.
    * A buffer is written in one stage at most, except for the ``state`` of repeated stages, and read in later
      stages only; the region's results are written.
    * Shift registers hold all elements that are tapped.
    """
    finished = {Buffer(array.name, 0) for array in network.region.arrays}
    state = {buffer for one in network.repeats for buffer in one.state}
    for number, stage in enumerate(network.stages):
        where = f"stage {number}"
        sent, received = Counter[str](), Counter[str]()
        written: set[Buffer] = set()
        for process in stage.processes:
            for name in sources(process):
                received[name] += 1
                _need(sent[name] == 1, f"{where}: {process.name} receives {name} before it is sent")
            sent.update(outs(process))
            for buffer in buffers_read(process):
                _need(buffer in finished, f"{where}: {process.name} reads {buffer}, which is not finished")
            for buffer in buffers_written(process):
                once = buffer not in written and (buffer not in finished or buffer in state)
                _need(once, f"{where}: {buffer} is written a second time")
                written.add(buffer)
            if isinstance(process, Work):
                _taps(process, where)
        for fifo in stage.fifos:
            ends = (sent[fifo.name], received[fifo.name])
            _need(ends == (1, 1), f"{where}: {fifo.name} has {ends[0]} senders and {ends[1]} receivers")
            _need(fifo.depth >= 1, f"{where}: {fifo.name} holds nothing")
        _need(set(sent) == {fifo.name for fifo in stage.fifos}, f"{where}: a FIFO is not declared")
        finished |= written
    for name, buffer in network.results.items():
        _need(buffer in finished, f"the result {name} is never written")


def _taps(work: Work, where: str) -> None:
    lines = {line.source: line for line in work.inputs}
    for tap in work.taps:
        line, (low, high) = lines.get(tap.source), tap.reach(work.width)
        inside = line is not None and line.tail <= low and high <= line.lead
        _need(inside, f"{where}: {work.name} taps {tap.source} at {tap.at}, which it does not hold")


def _need(holds: bool, rule: str) -> None:
    if not holds:
        raise NetworkError(rule)
