"""Process networks as values: what a region is as a streaming circuit; their text and their rules.

A network is a sequence of *stages*. The processes of a stage run at the same time, joined by FIFOs of
fixed depth; a stage begins when the one before it has finished.  A *buffer* is one version of an array
in the board's memory: no buffer is written twice, so that no process can overwrite what another has
still to read.

A stream carries the elements of a box of an array in row-major order.  Processes of one connected
network count time in *ticks*, one for each point of a common *raster*, a box that holds all their
boxes; the *distance* of two points is the difference of their row-major numbers in it.  Streams of a *width*
of several elements carry *vectors*, so many elements along the last axis at a time, and a tick is one of a
vector: those of its elements that lie outside of the box have no meaning.
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
from .products import Collect, Element, Feed


class NetworkError(Exception):
    """A network breaks a rule; the text says which."""


@record(frozen=True, slots=True)
class Buffer:
    """Version ``version`` of ``array`` in memory; number 0 is what it holds before the region runs."""

    array: str
    version: int

    def __str__(self) -> str:
        return f"{self.array}.{self.version}"

    @property
    def pointer(self) -> str:
        """The name of its pointer in kernels."""
        return f"{self.array}_{self.version}"


@record(frozen=True, slots=True)
class Fifo:
    """A stream of the elements of a box in row-major order, ``width`` of them at a time, and how many times
    so many may wait in it."""

    name: str
    dtype: np.dtype[np.generic]
    box: Box
    depth: int
    width: int = 1

    @property
    def vectors(self) -> Box:
        """The box, counted in what comes at a time."""
        return self.box.vectors(self.width)


@record(frozen=True, slots=True)
class Read:
    """Sends all elements of a buffer."""

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
    """Sends the stream ``old`` with the elements of the box of ``new`` replaced by those of ``new``."""

    name: str
    old: str
    new: str
    out: str


@record(frozen=True, slots=True)
class LineBuffer:
    """A shift register behind a FIFO: at the tick of a point of the domain it receives the element ``lead``
    ticks further on (less than 0: behind), and holds it until it is ``tail`` ticks further on."""

    source: str
    lead: int
    tail: int

    @property
    def length(self) -> int:
        """The number of its places."""
        return self.lead - self.tail + 1


@record(frozen=True, slots=True)
class Tap:
    """A load of a stream, at a distance in ticks and lanes.  Lane ``j`` takes the element in lane ``(j +
    shift) % width`` of the vector that is ``at + (j + shift) // width`` ticks away."""

    load: Load
    source: str
    at: int
    shift: int = 0

    def reach(self, width: int) -> tuple[int, int]:
        """The least distance and the greatest for all lanes."""
        return self.at, self.at + (self.shift + width - 1) // width


@record(frozen=True, slots=True)
class Work:
    """A process that computes a statement, ``width`` points at a time, in row-major order of its domain.  The
    domain lies at ``box``, counted in elements; ``raster`` is counted in ticks.  It sends each value, or, of
    a fold, all results after the last point.

    ``taps`` are the loads of streams, ``held`` says for the others the buffer that they address.  ``start``
    is the buffer that a fold without ``init`` starts from; ``tables`` are the arrays that are copied to the
    chip first (`tables`).
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
        """How many results a fold has."""
        return prod(int(self.stmt.target.shape[axis]) for axis in self.kept)

    @property
    def reuse(self) -> int | None:
        """The least number of ticks between two uses of one result of a fold; None if none is used twice.

        A result is used again when the innermost reduced axis goes on by one, or one further out: in a raster
        no such step has less ticks than the first.
        """
        kept = self.kept
        reduced = [axis for axis, n in enumerate(self.stmt.target.shape) if axis not in kept and n > 1]
        return prod(self.raster[reduced[-1] + 1 :]) if reduced else None

    @property
    def adds_vectors(self) -> bool:
        """Whether its accumulators are vectors: it is a fold that keeps the axis along which these lie."""
        last = len(self.stmt.target.shape) - 1
        return self.width > 1 and self.stmt.combine is not None and last in self.kept

    @property
    def row(self) -> int:
        """How many vectors the last axis of the domain has from its begin on."""
        return -(-int(self.stmt.target.shape[-1]) // self.width)

    @property
    def vectors(self) -> Box:
        """Where the domain lies in the raster."""
        return self.box.vectors(self.width)


@record(frozen=True, slots=True)
class Write:
    """Stores what it receives under a window of ``buffer``, after it has copied ``base`` there if that is
    given."""

    name: str
    buffer: Buffer
    source: str
    window: Window
    base: Buffer | None = None


@record(frozen=True, slots=True)
class Sequential:
    """Runs statements, loops and branches one after the other on arrays in memory.

    ``writes`` has for each array that it changes the buffer that it works in and the one that it copies
    there first (None: what was there does not matter); ``reads`` the buffer of each other array.  A statement
    that overwrites what another of its points still reads goes through the array's buffer of ``scratch``."""

    name: str
    number: int
    body: tuple[Stmt, ...]
    reads: tuple[tuple[str, Buffer], ...]
    writes: tuple[tuple[str, Buffer, Buffer | None], ...]
    scratch: tuple[tuple[str, Buffer], ...]


Process = Read | Duplicate | Merge | Work | Write | Sequential | Feed | Element | Collect


@record(frozen=True, slots=True)
class Stage:
    """Processes that run at the same time, producers before consumers, and their FIFOs; ``narrow`` says why
    streams carry fewer elements at a time than they were to."""

    processes: tuple[Process, ...]
    fifos: tuple[Fifo, ...]
    narrow: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Repeat:
    """Stages, from ``first`` to ``last``, that run one after the other so many ``times``; the buffers of
    ``state`` hold what one time leaves for the next."""

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
        Where the arrays that the region gives back are in the end.
    reasons : tuple of (int, str, str)
        Of statements that do not receive an array as a stream, or send one: the number of the statement, the
        name of the array and why.
    repeats : tuple of Repeat
        The stages that run more than once, in order.
    """

    region: Region
    stages: tuple[Stage, ...]
    results: Mapping[str, Buffer]
    reasons: tuple[tuple[int, str, str], ...]
    repeats: tuple[Repeat, ...] = ()

    def runs(self) -> Iterator[tuple[range, int]]:
        """The numbers of the stages in order, in parts, and how often each part runs."""
        at = 0
        for one in self.repeats:
            if at < one.first:
                yield range(at, one.first), 1
            yield range(one.first, one.last + 1), one.times
            at = one.last + 1
        if at < len(self.stages):
            yield range(at, len(self.stages)), 1

    def times(self, number: int) -> int:
        """How often a stage runs."""
        return next(times for stages, times in self.runs() if number in stages)


def sources(process: Process) -> tuple[str, ...]:
    """The FIFOs that a process receives from."""
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
    """The FIFOs that a process sends to."""
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
    """The buffers that a process reads."""
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
    """The buffers that a process writes."""
    match process:
        case Write(buffer=buffer) | Collect(buffer=buffer):
            return (buffer,)
        case Sequential(writes=writes, scratch=scratch):
            return (*(buffer for _, buffer, _ in writes), *(buffer for _, buffer in scratch))
    return ()


def verify(network: Network) -> None:
    """Check a network.

    * Each FIFO has one process that sends, and one before which it stands that receives; it holds an element
      or more.
    * A buffer is written in one stage at most, but for one that keeps what stages that are repeated leave for
      their next time, and read in later stages only; what a region gives back is written.
    * Shift registers hold all the elements that are tapped.

    Raises
    ------
    NetworkError
    """
    made = {Buffer(array.name, 0) for array in network.region.arrays}
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
                _need(buffer in made, f"{where}: {process.name} reads {buffer}, which is not finished")
            for buffer in buffers_written(process):
                once = buffer not in written and (buffer not in made or buffer in state)
                _need(once, f"{where}: {buffer} is written a second time")
                written.add(buffer)
            if isinstance(process, Work):
                _taps(process, where)
        for fifo in stage.fifos:
            ends = (sent[fifo.name], received[fifo.name])
            _need(ends == (1, 1), f"{where}: {fifo.name} has {ends[0]} senders and {ends[1]} receivers")
            _need(fifo.depth >= 1, f"{where}: {fifo.name} holds nothing")
        _need(set(sent) == {fifo.name for fifo in stage.fifos}, f"{where}: a FIFO is not declared")
        made |= written
    for name, buffer in network.results.items():
        _need(buffer in made, f"the result {name} is never written")


def _taps(work: Work, where: str) -> None:
    lines = {line.source: line for line in work.inputs}
    for tap in work.taps:
        line, (low, high) = lines.get(tap.source), tap.reach(work.width)
        inside = line is not None and line.tail <= low and high <= line.lead
        _need(inside, f"{where}: {work.name} taps {tap.source} at {tap.at}, which it does not hold")


def _need(holds: bool, rule: str) -> None:
    if not holds:
        raise NetworkError(rule)
