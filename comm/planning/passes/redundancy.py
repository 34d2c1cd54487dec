"""Passes over placed regions that remove communication and log the reason for each removal.

They change neither the meaning of a region nor the layouts of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcarray.comm.planning.analysis.halo_state import Halo, ValidHalos, margins
from dcarray.ir.analysis.effects import families, reads, touched_arrays, writes
from dcarray.ir.nodes import Array, Call, Compute, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.renaming import rename
from dcarray.ir.windows import identity

__all__ = [
    "AGGREGATE_MESSAGES", "MERGE_EXCHANGES", "MOVE_COMMUNICATION", "PASSES", "PROPAGATE_COPIES",
    "REMOVE_DEAD_REDISTRIBUTIONS", "REUSE_REDISTRIBUTIONS", "ExchangeGroup", "remove_redundant_exchanges",
    "valid_after",
]  # fmt: skip


def _halo(stmt: Stmt) -> tuple[str, Halo] | None:
    """Return the array and the halo that a statement exchanges; None if it is not a halo exchange."""
    if not (isinstance(stmt, Call) and stmt.op == "comm.halo"):
        return None
    return stmt.reads[0].array, Halo.of_call(stmt)


def _exchange(array: Array, halo: Halo, loc: Any) -> Call:
    return Call("comm.halo", (identity(array),), (), halo.attrs, loc)


def _redistribution(stmt: Stmt) -> tuple[Window, Window] | None:
    """Return the source and target of a redistribution; None if the statement is something else."""
    if not (isinstance(stmt, Call) and stmt.op == "comm.redistribute"):
        return None
    return stmt.reads[0], stmt.writes[0]


def _written(stmt: Stmt) -> set[str]:
    return {window.array for window in writes(stmt)}


def _loc(stmt: Stmt) -> Any:
    return getattr(stmt, "loc", None)


# ---- halos that are still valid ----------------------------------------------------------------------
def _flow(
    region: Region, valid: Mapping[str, ValidHalos]
) -> tuple[list[Stmt], dict[str, ValidHalos], list[Stmt]]:
    """Return the statements without redundant exchanges, the halos valid at the end, and those exchanges."""
    valid_halos, body, removed = dict(valid), [], []
    shapes = {array.name: array.shape for array in region.arrays}
    for stmt in region.body:
        exchanged = _halo(stmt)
        if exchanged is not None:
            name, halo = exchanged
            there = valid_halos.get(name, ValidHalos())
            if there.has(halo):
                removed.append(stmt)
                continue
            valid_halos[name] = there.after_exchange(halo)
        elif isinstance(stmt, Call) and stmt.op == "comm.frame":
            # the hole is written before it is read
            valid_halos[stmt.writes[0].array] = valid_halos.get(stmt.reads[0].array, ValidHalos())
        else:
            for name in _written(stmt) & valid_halos.keys():
                # no rank writes near the ends
                valid_halos[name] = valid_halos[name].after_write(_untouched_margin(stmt, shapes[name]))
        body.append(stmt)
    return body, {name: there for name, there in valid_halos.items() if there}, removed


def _untouched_margin(stmt: Stmt, extents: Sequence[int]) -> int:
    """Return the distance from the ends of its target array within which a statement writes nothing."""
    if not isinstance(stmt, Compute) or 0 in stmt.target.shape:
        return 0
    return min((n for pair in margins(stmt.target, extents) for n in pair), default=0)


def remove_redundant_exchanges(valid: Mapping[str, ValidHalos]) -> Pass:
    """Return the pass that removes exchanges of halos that are up to date."""

    def fn(region: Region, log: Log) -> Region:
        body, _, removed = _flow(region, valid)
        for stmt in removed:
            name, _ = _halo(stmt) or ("", None)
            log.done("redundant exchange", f"the halo of {name} is still valid: not sent again", _loc(stmt))
        return replace(region, body=tuple(body)) if removed else region

    return Pass("redundant exchange", fn)


def valid_after(region: Region, valid: Mapping[str, ValidHalos]) -> dict[str, ValidHalos]:
    """Return the halos that are up to date after a region has run."""
    return _flow(region, valid)[1]


# ---- fewer messages ----------------------------------------------------------------------------------
def _merge_exchanges(region: Region, log: Log) -> Region:
    """Merge exchanges of the same array's halo between which the array is not written."""
    body, arrays = list(region.body), {a.name: a for a in region.arrays}
    last: dict[str, int] = {}
    removed: set[int] = set()
    for k, stmt in enumerate(body):
        exchanged = _halo(stmt)
        if exchanged is None:
            for name in _written(stmt):
                last.pop(name, None)
            continue
        name, halo = exchanged
        if name not in last:
            last[name] = k
            continue
        _, before = _halo(body[last[name]]) or ("", halo)
        if not halo.within(before):
            body[last[name]] = _exchange(arrays[name], before | halo, _loc(body[last[name]]))
        removed.add(k)
        log.done("exchange merging", f"the halo of {name} is exchanged once for several reads", _loc(stmt))
    return (
        replace(region, body=tuple(s for k, s in enumerate(body) if k not in removed)) if removed else region
    )


MERGE_EXCHANGES = Pass("exchange merging", _merge_exchanges)


class ExchangeGroup:
    """A group of exchanges that can travel in the same messages."""

    def __init__(self) -> None:
        self.halos: set[str] = set()
        self.sources: set[str] = set()
        self.targets: set[str] = set()

    def try_add(self, stmt: Stmt) -> bool:
        """Add an exchange if it is independent of the others in the group; return whether it was added."""
        exchanged, moved = _halo(stmt), _redistribution(stmt)
        if exchanged is not None:
            name, _ = exchanged
            if name in self.halos | self.targets:
                return False
            self.halos.add(name)
            return True
        if moved is None:
            return False
        source, target = (window.array for window in moved)
        if source in self.targets or target in self.halos | self.sources | self.targets:
            return False
        self.sources.add(source)
        self.targets.add(target)
        return True


def _move_communication(region: Region, log: Log) -> Region:
    """Move redistributions up and reductions over ranks down, away from between local statements.

    Adjacent local statements become one kernel, and communication overlaps with more of them.
    """
    root = families(region)

    def names(windows: Iterable[Window]) -> set[str]:
        return {root[window.array] for window in windows}

    units: list[tuple[Stmt, ...]] = []
    for stmt in region.body:
        if units and isinstance(last := units[-1][-1], Call) and last.op == "comm.beyond":
            units[-1] += (stmt,)  # it belongs to the next statement
        else:
            units.append((stmt,))
    moved = _move_up(units, "comm.redistribute", names)
    moved = _move_up(moved[::-1], "comm.reduce", names)[::-1]
    body = tuple(stmt for unit in moved for stmt in unit)
    if body == region.body:
        return region
    log.done(
        "communication motion",
        "communication is moved out of the way of statements that need not wait for it",
    )
    return replace(region, body=body)


def _move_up(
    units: Sequence[tuple[Stmt, ...]], op: str, names: Callable[[Iterable[Window]], set[str]]
) -> list[tuple[Stmt, ...]]:
    """Return units with the calls of `op` moved up past those that neither use targets nor write sources."""
    moved: list[tuple[Stmt, ...]] = []
    effects: list[tuple[set[str], set[str]]] = []
    for unit in units:
        here = names(w for stmt in unit for w in reads(stmt)), names(w for stmt in unit for w in writes(stmt))
        place = len(moved)
        if isinstance(unit[0], Call) and unit[0].op == op:
            while place and not (
                here[1] & (effects[place - 1][0] | effects[place - 1][1]) or here[0] & effects[place - 1][1]
            ):
                place -= 1
        moved.insert(place, unit)
        effects.insert(place, here)
    return moved


MOVE_COMMUNICATION = Pass("communication motion", _move_communication)


def _aggregate_messages(region: Region, log: Log) -> Region:
    """Move exchanges up to earlier exchanges where possible, so that they travel in the same messages."""
    body = list(region.body)
    root = families(region)
    changed = False
    k = 0
    while k < len(body):
        group = ExchangeGroup()
        if not group.try_add(body[k]):
            k += 1
            continue
        k += 1
        read: set[str] = set()  # by statements past which a later exchange would move
        written: set[str] = set()
        for j in range(k, len(body)):
            stmt = body[j]
            sources = {root[w.array] for w in reads(stmt)}
            targets = {root[name] for name in _written(stmt)}
            free = not (sources & written or targets & (read | written))
            if free and group.try_add(stmt):
                if j > k:
                    changed = True
                    log.done(
                        "message aggregation",
                        f"{', '.join(sorted(sources))} goes in the same messages",
                        _loc(stmt),
                    )
                body.insert(k, body.pop(j))
                k += 1
                continue
            read |= sources
            written |= targets
    return replace(region, body=tuple(body)) if changed else region


AGGREGATE_MESSAGES = Pass("message aggregation", _aggregate_messages)


# ---- redistributions ---------------------------------------------------------------------------------
def _reuse_redistributions(region: Region, log: Log) -> Region:
    """Remove a redistribution if the array has been redistributed to that layout and not changed since."""
    arrays = {a.name: a for a in region.arrays}
    root = families(region)
    written_once = _written_once(region)
    known: dict[tuple[Window, str | None, tuple[int, ...]], str] = {}
    body: list[Stmt] = []
    renamed: dict[str, str] = {}
    for stmt in region.body:
        for old, new in renamed.items():
            stmt = rename(stmt, old, new)
        moved = _redistribution(stmt)
        if moved is not None and moved[1] == identity(arrays[moved[1].array]):
            target = arrays[moved[1].array]
            key = moved[0], target.layout, target.shape
            if key in known and target.name in written_once and known[key] in written_once:
                renamed[target.name] = known[key]
                log.done("redistribution reuse", f"{moved[0].array} is there already", _loc(stmt))
                continue
            _forget(known, {root[target.name]}, root)
            known[key] = target.name
        else:
            _forget(known, {root[name] for name in _written(stmt)}, root)
        body.append(stmt)
    return replace(region, body=tuple(body)) if renamed else region


def _forget(
    known: dict[tuple[Window, str | None, tuple[int, ...]], str], written: set[str], root: Mapping[str, str]
) -> None:
    for key in [key for key, there in known.items() if {root[key[0].array], root[there]} & written]:
        del known[key]


def _written_once(region: Region) -> set[str]:
    """Return the temporaries that a single statement writes."""
    count: dict[str, int] = {}
    for stmt in region.body:
        for name in _written(stmt):
            count[name] = count.get(name, 0) + 1
    return {a.name for a in region.arrays if a.role == "temp" and a.base is None and count.get(a.name) == 1}


REUSE_REDISTRIBUTIONS = Pass("redistribution reuse", _reuse_redistributions)


def _propagate_copies(region: Region, log: Log) -> Region:
    """Replace chains of redistributions of a whole array by one from the first array, or by none."""
    arrays = {a.name: a for a in region.arrays}
    root = families(region)
    written_once = _written_once(region)
    origin: dict[str, str] = {}  # the array whose elements a copy still has
    body: list[Stmt] = []
    changed = False
    for stmt in region.body:
        moved = _redistribution(stmt)
        if moved is not None and moved[0].array in origin:
            source, copy = arrays[origin[moved[0].array]], moved[0].array
            straight = replace(moved[0], array=source.name)
            if _can_move(straight, source):
                log.done(
                    "copy propagation", f"{copy} is not needed on the way from {source.name}", _loc(stmt)
                )
                stmt = Call("comm.redistribute", (straight,), (moved[1],), loc=_loc(stmt))
                moved, changed = (straight, moved[1]), True
        for name in {root[name] for name in _written(stmt)}:
            for copy in [c for c, source in origin.items() if name in (root[c], root[source])]:
                del origin[copy]
        if moved is not None and moved[1].array in written_once and moved[0].array != moved[1].array:
            source, target = arrays[moved[0].array], arrays[moved[1].array]
            if moved[0] == identity(source) and moved[1] == identity(target):
                origin[target.name] = origin.get(source.name, source.name)
        body.append(stmt)
    return replace(region, body=tuple(body)) if changed else region


def _can_move(window: Window, array: Array) -> bool:
    """Whether a window can be redistributed from the layout of its array."""
    return window == identity(array) or "cyclic" not in (array.layout or "")


PROPAGATE_COPIES = Pass("copy propagation", _propagate_copies)


def _remove_dead_redistributions(region: Region, log: Log) -> Region:
    """Remove redistributions to arrays that are not read."""
    wanted = {a.name for a in region.arrays if a.role != "temp" or a.base is not None}
    wanted |= {str(a.base) for a in region.arrays if a.base is not None}
    body: list[Stmt] = []
    for stmt in reversed(region.body):
        exchanged = _halo(stmt)
        if _redistribution(stmt) is not None and not _written(stmt) & wanted:
            log.done("dead redistribution", f"{', '.join(sorted(_written(stmt)))} is not needed", _loc(stmt))
            continue
        body.append(stmt)
        if exchanged is None:
            wanted |= {window.array for window in reads(stmt)}
    if len(body) == len(region.body):
        return region
    used = {name for stmt in body for name in touched_arrays(stmt)}
    arrays = tuple(a for a in region.arrays if a.name in used or a.name in wanted or a.role != "temp")
    return replace(region, arrays=arrays, body=tuple(reversed(body)))


REMOVE_DEAD_REDISTRIBUTIONS = Pass("dead redistribution", _remove_dead_redistributions)

#: In the order in which they run, after `remove_redundant_exchanges`.
PASSES: tuple[Pass, ...] = (
    REUSE_REDISTRIBUTIONS,
    PROPAGATE_COPIES,
    REMOVE_DEAD_REDISTRIBUTIONS,
    MERGE_EXCHANGES,
    MOVE_COMMUNICATION,
    AGGREGATE_MESSAGES,
)
