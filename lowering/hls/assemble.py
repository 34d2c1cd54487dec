"""From drafts of processes, which know of each other by ports, to stages with duplicators and FIFO depths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .depths import most_elements, slacks
from .network import (
    Box,
    Buffer,
    Duplicate,
    Fifo,
    LineBuffer,
    Merge,
    Point,
    Process,
    Read,
    Stage,
    Work,
    Write,
    distance,
)

if TYPE_CHECKING:
    import numpy as np

    from dcarray.ir.nodes import Compute, Load, Window


@dataclass(eq=False, slots=True)
class Port:
    """The stream that a process sends, for any number of receivers."""

    dtype: np.dtype[Any]
    box: Box
    producer: Draft


@dataclass(eq=False, slots=True)
class Draft:
    """A process in the making.  ``loose``: it receives whenever something comes, and not at a tick of the
    raster.  ``whole`` are processes that are complete, with FIFOs of their ``own``."""

    kind: str
    name: str
    stage: int
    buffer: Buffer | None = None
    window: Window | None = None
    stmt: Compute | None = None
    number: int = 0
    box: Box | None = None
    feeds: list[Port] = field(default_factory=list)
    taps: list[tuple[Load, Port]] = field(default_factory=list)
    held: list[tuple[str, Buffer]] = field(default_factory=list)
    start: Buffer | None = None
    out: Port | None = None
    loose: bool = False
    whole: tuple[Process, ...] = ()
    own: tuple[Fifo, ...] = ()

    def inputs(self) -> list[Port]:
        """The streams that it receives, each once."""
        return list(dict.fromkeys([*self.feeds, *(port for _, port in self.taps)]))


def assemble(drafts: list[Draft]) -> tuple[Stage, ...]:
    """Return the stages of drafts; what nobody receives is left out."""
    kept = _used(drafts)
    numbers = sorted({draft.stage for draft in kept})
    return tuple(_Assembler([draft for draft in kept if draft.stage == n]).stage() for n in numbers)


def _used(drafts: list[Draft]) -> list[Draft]:
    """The drafts from which a way leads to one that writes memory."""
    while True:
        wanted = {id(port) for draft in drafts for port in draft.inputs()}
        left = [draft for draft in drafts if draft.out is None or id(draft.out) in wanted]
        if len(left) == len(drafts):
            return left
        drafts = left


class _Assembler:
    """The processes of one stage."""

    def __init__(self, drafts: list[Draft]) -> None:
        self.drafts = _in_order(drafts)
        self.receivers: dict[int, list[Draft]] = {}
        for draft in self.drafts:
            for port in draft.inputs():
                self.receivers.setdefault(id(port), []).append(draft)
        self.rasters = self._rasters()

    def stage(self) -> Stage:
        processes: list[Process] = []
        fifos: list[tuple[str, Port]] = []
        sender: dict[str, int] = {}
        edges: list[tuple[str, int, int]] = []  # FIFO, receiver, lead
        names: dict[tuple[int, int], str] = {}  # of the FIFO from a port to a draft
        complete: list[Process] = []
        own: list[Fifo] = []
        for draft in self.drafts:
            complete += draft.whole
            own += draft.own
            if draft.whole:
                continue
            lines = []
            for port in draft.inputs():
                name = names[id(port), id(draft)]
                low, high = self._reach(draft, port)
                lines.append(LineBuffer(name, high, low))
                if not draft.loose:
                    edges.append((name, len(processes), high))
            out = draft.out
            first = f"s_{draft.name}"
            processes.append(self._process(draft, lines, first, names))
            if out is None:
                continue
            receivers = self.receivers[id(out)]
            sender[first] = len(processes) - 1
            fifos.append((first, out))
            if len(receivers) == 1:
                names[id(out), id(receivers[0])] = first
                continue
            several = tuple(f"{first}_{k}" for k in range(len(receivers)))
            edges.append((first, len(processes), 0))
            for name, receiver in zip(several, receivers, strict=True):
                names[id(out), id(receiver)] = name
                sender[name] = len(processes)
                fifos.append((name, out))
            processes.append(Duplicate(f"duplicate_{draft.name}", first, several))
        found = slacks(len(processes), [(sender[name], receiver, lead) for name, receiver, lead in edges])
        slack = {name: n for (name, _, _), n in zip(edges, found, strict=True)}
        return Stage(
            (*processes, *complete),
            (
                *(
                    Fifo(name, port.dtype, port.box, self._depth(port, slack.get(name)))
                    for name, port in fifos
                ),
                *own,
            ),
        )

    def _depth(self, port: Port, slack: int | None) -> int:
        """The depth of a FIFO between processes of a slack; None: the receiver takes what comes."""
        if slack is None:
            return 1
        return most_elements(port.box, self.rasters[id(port.producer)], slack)

    def _process(
        self, draft: Draft, lines: list[LineBuffer], out: str, names: dict[tuple[int, int], str]
    ) -> Process:
        match draft.kind:
            case "read":
                assert draft.buffer is not None
                return Read(draft.name, draft.buffer, out)
            case "merge":
                return Merge(draft.name, lines[0].source, lines[1].source, out)
            case "write":
                assert draft.buffer is not None and draft.window is not None
                return Write(draft.name, draft.buffer, lines[0].source, draft.window, draft.start)
        assert draft.stmt is not None and draft.box is not None
        taps = tuple(
            (load, names[id(port), id(draft)], self._distance(draft, load)) for load, port in draft.taps
        )
        return Work(
            draft.name, draft.number, draft.stmt, draft.box, self.rasters[id(draft)], tuple(lines), taps,
            tuple(draft.held), out, draft.start,
        )  # fmt: skip

    def _distance(self, draft: Draft, load: Load) -> int:
        assert draft.box is not None
        vector = tuple(ix.offset - at for ix, at in zip(load.window.index, draft.box.first, strict=True))
        return distance(vector, self.rasters[id(draft)])

    def _reach(self, draft: Draft, port: Port) -> tuple[int, int]:
        """The least and the greatest distance at which a process needs elements of a stream."""
        found = [self._distance(draft, load) for load, other in draft.taps if other is port] or [0]
        return min(found), max(found)

    def _rasters(self) -> dict[int, Point]:
        """For each draft the raster of all that it is connected with."""
        group = {id(draft): {id(draft)} for draft in self.drafts}
        for draft in self.drafts:
            for port in draft.inputs():
                if draft.loose:
                    continue
                joined = group[id(draft)] | group[id(port.producer)]
                for one in joined:
                    group[one] = joined
        boxes: dict[int, list[Box]] = {}
        for draft in self.drafts:
            own = [draft.box] if draft.box is not None else []
            boxes[id(draft)] = own + [port.box for port in draft.inputs()]
            if draft.out is not None and draft.box is None:
                boxes[id(draft)].append(draft.out.box)
        return {
            one: _hull([box for member in members for box in boxes[member]]) for one, members in group.items()
        }


def _hull(boxes: list[Box]) -> Point:
    """The shape of the smallest raster, from 0 on, that holds all boxes."""
    ends = [tuple(f + n for f, n in zip(box.first, box.shape, strict=True)) for box in boxes]
    return tuple(max(axis) for axis in zip(*ends, strict=True))


def _in_order(drafts: list[Draft]) -> list[Draft]:
    """Drafts, producers before consumers."""
    order: dict[int, Draft] = {}

    def visit(draft: Draft) -> None:
        for port in draft.inputs():
            if id(port.producer) not in order:
                visit(port.producer)
        order.setdefault(id(draft), draft)

    for draft in drafts:
        visit(draft)
    return list(order.values())
