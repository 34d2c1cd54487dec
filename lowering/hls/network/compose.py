"""The making of a process network from a region: which statements FIFOs join, and which arrays in memory.

A statement runs through its domain in row-major order.  It sends an array as a stream if its window has
the axes of the domain in their order with stride 1: then the elements come in row-major order of a box.
A load receives a stream if its window is of this kind too: the element of point ``p + offset`` is then
needed at point ``p``, a constant number of ticks away, and the elements of several loads of one array
lie in one shift register.  As all boxes lie in one raster, a later point needs later elements only,
whatever the sizes are.

All else goes through memory: the array is written by the end of one stage and read in a later one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from dcarray.ir.analysis.effects import reads, without_reduced_axes, writes
from dcarray.ir.analysis.matrix_products import as_sum
from dcarray.ir.nodes import Array, Call, Compute, Gather, Load, Loop, Region, Stmt, Window
from dcarray.ir.statements import flatten
from dcarray.ir.windows import identity, loads
from dcarray.lowering.errors import Unsupported

from .assemble import assemble
from .boxes import Box
from .drafts import Draft, Port
from .legality import can_synthesise, streams
from .memory_statements import computes, needs_scratch
from .nodes import Buffer, Network, Repeat, Sequential, verify
from .systolic_array import systolic_array
from .systolic_products import Product, can_be_systolic
from .tables import is_table
from .time_steps import MAX_STEPS, can_be_chain, turns


def stream_box(window: Window, array: Array) -> Box | str:
    """Return the box of an array that a window runs through in row-major order, point by point of its domain,
    or why it does not."""
    if not window.shape:
        return "a single element is no stream"
    if len(window.index) != len(window.shape):
        return "the statement has other axes than the array"
    for axis, ix in enumerate(window.index):
        if ix.axis != axis:
            return "the axes of the statement are not those of the array in their order"
        if ix.stride != 1:
            return f"axis {axis} is used with stride {ix.stride}"
    if 0 in window.shape:
        return "there are no elements"
    return Box(tuple(ix.offset for ix in window.index), tuple(window.shape))


def compose(region: Region, *, elements: int = 4, width: int = 1, steps: int = MAX_STEPS) -> Network:
    """Return the process network of a region.

    Parameters
    ----------
    region : Region
    elements : int, optional
        Processing elements of a product of matrices.
    width : int, optional
        The most elements that a stream carries at a time, a power of 2.  It is at most what fits into a port
        to memory, and less if `widths.cannot_be_wide` gives a reason, which the stage then records.
    steps : int, optional
        The most time steps of a loop that become one chain of processes.

    Raises
    ------
    Unsupported
        If `can_synthesise` gives a reason against the region.
    """
    reason = can_synthesise(region)
    if reason is not None:
        raise Unsupported(reason)
    network = _Composer(region, elements, width, steps).network()
    verify(network)
    return network


@dataclass(slots=True)
class _Version:
    """A version of an array, as some statement leaves it: its stream in the stage that computes it, and
    whether it is stored in memory, too."""

    buffer: Buffer
    stage: int = -1
    port: Port | None = None
    stored: bool = True

    @property
    def streams_from(self) -> int:
        """The first stage that can get this version of an array as a stream, from a process or memory."""
        return self.stage if self.port else self.stage + 1


class _Composer:
    def __init__(self, region: Region, elements: int, width: int, steps: int) -> None:
        self.region, self.elements, self.width, self.steps = region, elements, width, steps
        self.arrays = {array.name: array for array in region.arrays}
        self.current = {name: _Version(Buffer(name, 0)) for name in self.arrays}
        self.drafts: list[Draft] = []
        self.readers: dict[tuple[Buffer, int], Port] = {}
        self.reasons: dict[tuple[int, str, str], None] = {}
        self.number = 0
        self.versions = dict.fromkeys(self.arrays, 0)
        self.floor = 0  # the first stage that a statement may be in
        self.repeats: list[tuple[int, int, int, tuple[Buffer, ...]]] = []

    def network(self) -> Network:
        for chained, several in groupby(flatten(self.region.body), self.is_chain):
            if chained:
                for loop in several:
                    assert isinstance(loop, Loop)
                    self.chain(loop)
            else:
                self.block(several)
        results = {}
        for array in self.region.arrays:
            if array.role in ("out", "inout"):
                results[array.name] = self.in_memory(self.current[array.name])
        stages, numbers = assemble(self.drafts, self.width)
        repeats = []
        for first, last, times, state in self.repeats:
            inside = [new for old, new in numbers.items() if first <= old <= last]
            if inside:
                repeats.append(Repeat(min(inside), max(inside), times, state))
        return Network(self.region, stages, results, tuple(self.reasons), tuple(repeats))

    def is_chain(self, stmt: Stmt) -> bool:
        """Whether a statement is a loop over time steps."""
        return isinstance(stmt, Loop) and can_be_chain(stmt, self.is_stream) is None

    def block(self, body: Iterable[Stmt]) -> None:
        """Add the processes of statements that are not loops over time steps."""
        for why, several in groupby(body, streams):
            part = tuple(several)
            if why is not None:
                self.sequential(part, why)
                self.number += len(part)
                continue
            for stmt in part:
                if isinstance(stmt, Call):
                    self.product(stmt)
                else:
                    assert isinstance(stmt, Compute)
                    self.statement(stmt)
                self.number += 1

    def chain(self, loop: Loop) -> None:
        """Add the processes of a loop over time steps: own processes for the first few steps, and for the
        rest a chain of processes that runs several times."""
        alone, length, times = turns(len(range(*loop.bounds)), self.steps)
        for _ in range(alone):
            self.block(flatten(loop.body))
        if not times:
            return
        carried = list(dict.fromkeys(window.array for stmt in flatten(loop.body) for window in writes(stmt)))
        before = self.end()
        state = {name: self.fresh(name) for name in carried}
        copies = {name: self.copied(self.current[name], state[name], before, "begin") for name in carried}
        for name in carried:
            self.current[name] = _Version(state[name], before)
        self.floor, number = before + 1, len(self.drafts)
        for _ in range(length):
            self.block(flatten(loop.body))
        used = {buffer for draft in self.drafts[number:] for buffer in draft.reads()}
        last = self.end()
        for name in carried:
            if state[name] not in used:  # each turn begins with values of its own
                self.drafts = [draft for draft in self.drafts if draft is not copies[name]]
                continue
            self.copied(self.current[name], state[name], last, "again")
            self.current[name] = _Version(self.current[name].buffer, last)
        kept = tuple(buffer for buffer in state.values() if buffer in used)
        self.repeats.append((before + 1, last, times, kept))
        self.floor = last + 1

    def end(self) -> int:
        """Return the number of the first stage after all existing ones."""
        return max([draft.stage for draft in self.drafts] + [self.floor - 1], default=-1) + 1

    def copied(self, version: _Version, to: Buffer, stage: int, when: str) -> Draft:
        """Add processes that copy an array in memory to another buffer; return the one that writes."""
        port = self.stream(_Version(self.in_memory(version), version.stage), stage)
        whole = identity(self.arrays[to.array])
        self.write(to, stage, port, whole, None, loose=False, when=f"_{when}")
        return self.drafts[-1]

    def statement(self, stmt: Compute) -> None:
        name = stmt.target.array
        array, old = self.arrays[name], self.current[name]
        if 0 in without_reduced_axes(stmt.target).shape:
            return  # nothing is written
        target = self.box(stmt.target) if stmt.combine is None else "the result of a fold comes in the end"
        streamed: dict[Load, Box] = {}
        held: list[str] = []
        starts = loads(stmt.init) if stmt.init is not None else ()
        for load in dict.fromkeys([*loads(stmt.body), *starts]):
            taken = self.taken(load) if load not in starts else "it is where a fold starts"
            if isinstance(taken, Box) and isinstance(load, Load):
                streamed[load] = taken
            else:
                held.append(load.window.array)
                if self.arrays[load.window.array].shape and isinstance(taken, str):
                    self.reasons[self.number, load.window.array, taken] = None
        stages = [self.current[load.window.array].streams_from for load in streamed]
        stages += [self.current[a].stage + 1 for a in held]
        folds_on = stmt.combine is not None and stmt.init is None
        window = without_reduced_axes(stmt.target)
        covers = _covers(window, array)
        if isinstance(target, Box):
            if not covers:
                stages.append(old.streams_from)
        elif not covers or folds_on:
            stages.append(old.stage + 1)
        stage = max([self.floor, *stages])
        draft = Draft("work", f"compute_{self.number}", stage, stmt=stmt, number=self.number)
        for load in streamed:
            port = self.stream(self.current[load.window.array], stage)
            draft.taps.append((load, port))
        draft.scattered = not isinstance(target, Box) and stmt.combine is None
        draft.tables = tuple(a for a in dict.fromkeys(held) if is_table(self.arrays[a], stmt, streamed))
        draft.held = [(a, self.in_memory(self.current[a])) for a in dict.fromkeys(held)]
        if folds_on:
            draft.start = self.in_memory(old)
        # where the statement writes a box, its domain lies at this box in the raster
        draft.box = (
            target if isinstance(target, Box) else Box((0,) * len(stmt.target.shape), stmt.target.shape)
        )
        out_box = draft.box if isinstance(target, Box) else Box((0,) * len(window.shape), window.shape)
        draft.out = Port(array.dtype, out_box, draft)
        self.drafts.append(draft)
        buffer = self.fresh(name)
        if not isinstance(target, Box):
            if array.shape:
                self.reasons[self.number, name, target] = None
            base = None if covers else self.in_memory(old)
            self.write(buffer, stage, draft.out, window, base, loose=True)
            self.current[name] = _Version(buffer, stage)
            return
        port = draft.out
        if not covers:
            merge = Draft("merge", f"merge_{name}_{self.number}", stage)
            merge.feeds = [self.stream(old, stage), port]
            merge.out = port = Port(array.dtype, Box((0,) * len(array.shape), array.shape), merge)
            self.drafts.append(merge)
        self.current[name] = _Version(buffer, stage, port, stored=False)

    def sequential(self, body: tuple[Stmt, ...], why: str) -> None:
        """Add a stage of statements that run one after the other in memory."""
        written = dict.fromkeys(window.array for stmt in body for window in writes(stmt))
        touched = dict.fromkeys([*written, *(window.array for stmt in body for window in reads(stmt))])
        stage = max([self.floor, *(self.current[name].stage + 1 for name in touched)])
        held = tuple((name, self.in_memory(self.current[name])) for name in touched if name not in written)
        kept = []
        for name in written:
            old = self.current[name]
            undefined = old.buffer.version == 0 and self.arrays[name].role in ("out", "temp")
            kept.append((name, None if undefined else self.in_memory(old)))
        changed = tuple((name, self.fresh(name), base) for name, base in kept)
        names = dict.fromkeys(
            stmt.target.array for stmt in computes(body, self.arrays) if needs_scratch(stmt)
        )
        scratch = tuple((name, self.fresh(name)) for name in names)
        name = f"sequential_{self.number}"
        process = Sequential(name, self.number, body, held, changed, scratch)
        self.drafts.append(Draft("sequential", name, stage, whole=(process,)))
        for name, buffer, _ in changed:
            self.current[name] = _Version(buffer, stage)
            self.reasons[self.number, name, why] = None

    def product(self, call: Call) -> None:
        """Add the processes of a matrix product: a systolic array, or else those of a sum of products."""
        (target,), factors = call.writes, call.reads
        array = self.arrays[target.array]
        if not can_be_systolic(call, self.arrays):
            self.statement(as_sum(call, array.dtype))
            return
        used = [self.current[window.array] for window in factors]
        old, covers = self.current[target.array], _covers(target, array)
        stage = max([self.floor, *(one.stage + 1 for one in (*used, *([] if covers else [old])))])
        product = Product(call, self.number, array.dtype, min(self.elements, int(target.shape[-2])))
        base = None if covers else self.in_memory(old)
        buffer = self.fresh(target.array)
        first, second = (self.in_memory(one) for one in used)
        whole, own = systolic_array(product, first, second, buffer, base)
        self.drafts.append(Draft("product", f"product_{self.number}", stage, whole=whole, own=own))
        for window in (*factors, target):
            self.reasons[self.number, window.array, "a product of matrices goes through tiles"] = None
        self.current[target.array] = _Version(buffer, stage)

    def fresh(self, name: str) -> Buffer:
        """Return a buffer for a new version of an array."""
        self.versions[name] += 1
        return Buffer(name, self.versions[name])

    def is_stream(self, window: Window) -> bool:
        """Whether a window's elements can be a stream; an array without axes always can, as a register."""
        return not self.arrays[window.array].shape or isinstance(self.box(window), Box)

    def box(self, window: Window) -> Box | str:
        return stream_box(window, self.arrays[window.array])

    def taken(self, load: Load | Gather) -> Box | str:
        """Return the box of elements that a load can read from a stream, or why it cannot."""
        if isinstance(load, Gather):
            return "which elements are needed depends on data"
        return self.box(load.window)

    def stream(self, version: _Version, stage: int) -> Port:
        """Return the stream of an array's version in a stage: its producer's if that is in the stage, else
        that of a process that reads memory."""
        if version.port is not None and version.stage == stage:
            return version.port
        if version.port is not None:
            why = "another operand of the statement comes only when this one's stage is over"
            self.reasons[self.number, version.buffer.array, why] = None
        buffer = self.in_memory(version)
        port = self.readers.get((buffer, stage))
        if port is None:
            array = self.arrays[buffer.array]
            again = f"_stage_{stage}" if any(other == buffer for other, _ in self.readers) else ""
            draft = Draft("read", f"read_{buffer.array}_{buffer.version}{again}", stage, buffer=buffer)
            port = draft.out = Port(array.dtype, Box((0,) * len(array.shape), array.shape), draft)
            self.readers[buffer, stage] = port
            self.drafts.append(draft)
        return port

    def in_memory(self, version: _Version) -> Buffer:
        """Return the buffer of a version of an array; add a process that writes it if there is none yet."""
        if not version.stored:
            assert version.port is not None
            whole = identity(self.arrays[version.buffer.array])
            self.write(version.buffer, version.stage, version.port, whole, None, loose=False)
            version.stored = True
        return version.buffer

    def write(
        self, buffer: Buffer, stage: int, port: Port, window: Window, base: Buffer | None, *, loose: bool,
        when: str = "",
    ) -> None:  # fmt: skip
        draft = Draft(
            "write", f"write_{buffer.array}_{buffer.version}{when}", stage, buffer=buffer, window=window
        )
        draft.feeds, draft.start, draft.loose = [port], base, loose
        self.drafts.append(draft)


def _covers(window: Window, array: Array) -> bool:
    """Whether a window writes the whole array: as many elements along each axis, one after the other."""
    axes = [ix.axis for ix in window.index if ix.axis is not None]
    return len(set(axes)) == len(axes) and all(
        (n == 1 and ix.axis is None)
        or (ix.axis is not None and ix.stride in (1, -1) and window.shape[ix.axis] == n)
        for ix, n in zip(window.index, array.shape, strict=True)
    )
