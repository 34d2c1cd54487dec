"""Assembly of drafts of processes, joined by ports, into stages with duplicators and depths of FIFOs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .boxes import Box, Point, distance
from .depths import most_elements, slacks
from .drafts import Draft, Port
from .nodes import Duplicate, Fifo, LineBuffer, Merge, Process, Read, Stage, Tap, Work, Write
from .widths import cannot_be_wide, widest

if TYPE_CHECKING:
    from dcarray.ir.nodes import Load


def assemble(drafts: list[Draft], width: int) -> tuple[tuple[Stage, ...], dict[int, int]]:
    """Return the stages made from drafts, whose streams carry at most ``width`` elements at a time, and the
    number of each by the stage number in the drafts.  Processes whose output nothing uses are left out."""
    kept = _used(drafts)
    numbers = sorted({draft.stage for draft in kept})
    stages = tuple(_Assembler([draft for draft in kept if draft.stage == n], width).stage() for n in numbers)
    return stages, {number: k for k, number in enumerate(numbers)}


def _used(drafts: list[Draft]) -> list[Draft]:
    """Return the drafts from which a path leads to one that writes memory."""
    while True:
        wanted = {id(port) for draft in drafts for port in draft.inputs()}
        left = [draft for draft in drafts if draft.out is None or id(draft.out) in wanted]
        if len(left) == len(drafts):
            return left
        drafts = left


class _Assembler:
    """The builder of one stage: it determines the FIFOs, stream widths and order of its processes."""

    def __init__(self, drafts: list[Draft], width: int) -> None:
        self.drafts = _in_order(drafts)
        self.receivers: dict[int, list[Draft]] = {}
        for draft in self.drafts:
            for port in draft.inputs():
                self.receivers.setdefault(id(port), []).append(draft)
        self.widths, self.narrow = self._widths(width)
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
        by_edge = slacks(len(processes), [(sender[name], receiver, lead) for name, receiver, lead in edges])
        slack = {name: n for (name, _, _), n in zip(edges, by_edge, strict=True)}
        return Stage(
            (*processes, *complete),
            (
                *(
                    Fifo(name, port.dtype, port.box, self._depth(port, slack.get(name)), self._width(port))
                    for name, port in fifos
                ),
                *own,
            ),
            self.narrow,
        )

    def _depth(self, port: Port, slack: int | None) -> int:
        """Return the depth of a FIFO, given its slack in ticks; 1 if that is None."""
        if slack is None:
            return 1
        return most_elements(port.box.vectors(self._width(port)), self.rasters[id(port.producer)], slack)

    def _width(self, port: Port) -> int:
        """Return how many elements a stream carries at a time; 1 for a fold."""
        return 1 if port.producer.folds else self.widths[id(port.producer)]

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
        taps = tuple(self._tap(draft, load, names[id(port), id(draft)]) for load, port in draft.taps)
        return Work(
            draft.name, draft.number, draft.stmt, draft.box, self.rasters[id(draft)], tuple(lines), taps,
            tuple(draft.held), out, draft.start, self.widths[id(draft)], draft.tables,
        )  # fmt: skip

    def _tap(self, draft: Draft, load: Load, source: str) -> Tap:
        """Return the position of a load's elements relative to the element that is computed."""
        assert draft.box is not None
        # an element of the array, seen from the one that is written; in vectors along the last axis
        vector = [ix.offset - at for ix, at in zip(load.window.index, draft.box.first, strict=True)]
        shift = 0
        if vector:
            vector[-1], shift = divmod(vector[-1], self.widths[id(draft)])
        return Tap(load, source, distance(tuple(vector), self.rasters[id(draft)]), shift)

    def _reach(self, draft: Draft, port: Port) -> tuple[int, int]:
        """Return the least and greatest distance in ticks at which a process needs a stream."""
        width = self.widths[id(draft)]
        reach = [self._tap(draft, load, "").reach(width) for load, other in draft.taps if other is port]
        return min((low for low, _ in reach), default=0), max((high for _, high in reach), default=0)

    def _groups(self) -> list[list[Draft]]:
        """Return the drafts in groups that are connected by streams whose elements come at fixed ticks."""
        group = {id(draft): {id(draft)} for draft in self.drafts}
        for draft in self.drafts:
            for port in draft.inputs():
                if draft.loose:
                    continue
                joined = group[id(draft)] | group[id(port.producer)]
                for one in joined:
                    group[one] = joined
        groups = {id(members): members for members in group.values()}
        return [[draft for draft in self.drafts if id(draft) in members] for members in groups.values()]

    def _widths(self, asked: int) -> tuple[dict[int, int], tuple[str, ...]]:
        """Return for each draft the number of elements that it processes at a time, and the reasons for each
        number below ``asked``."""
        widths: dict[int, int] = {}
        narrow = []
        for group in self._groups():
            at_ticks = any(not (draft.whole or draft.loose or draft.box == Box((), ())) for draft in group)
            width = most = min(asked, widest(group)) if at_ticks else 1
            while width > 1 and cannot_be_wide(group, width):
                width //= 2
            if width < most:
                narrow.append(f"{width} at a time: {cannot_be_wide(group, 2 * width)}")
            widths |= {id(draft): width for draft in group}
        return widths, tuple(narrow)

    def _rasters(self) -> dict[int, Point]:
        """Return for each draft the raster, in ticks, that all drafts of its group share."""
        rasters: dict[int, Point] = {}
        for group in self._groups():
            width = self.widths[id(group[0])]
            boxes: list[Box] = []
            for draft in group:
                boxes += [port.box for port in draft.inputs()]
                if draft.box is not None:
                    boxes.append(draft.box)
                elif draft.out is not None:
                    boxes.append(draft.out.box)
            raster = _hull([box.vectors(width) for box in boxes])
            rasters |= {id(draft): raster for draft in group}
        return rasters


def _hull(boxes: list[Box]) -> Point:
    """Return the shape of the smallest raster (a box from 0 on) that contains all boxes."""
    ends = [tuple(f + n for f, n in zip(box.first, box.shape, strict=True)) for box in boxes]
    return tuple(max(axis) for axis in zip(*ends, strict=True))


def _in_order(drafts: list[Draft]) -> list[Draft]:
    """Return the drafts sorted so that producers come before consumers."""
    order: dict[int, Draft] = {}

    def visit(draft: Draft) -> None:
        for port in draft.inputs():
            if id(port.producer) not in order:
                visit(port.producer)
        order.setdefault(id(draft), draft)

    for draft in drafts:
        visit(draft)
    return list(order.values())
