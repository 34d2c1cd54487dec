"""A placed region (its arrays have layouts, its communication is explicit), and the builder of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.layout.notation import Partial, canonical, write
from dcarray.comm.planning.analysis.halo_state import Widths, max_widths
from dcarray.comm.planning.rank_program.steps import Note
from dcarray.ir.analysis.effects import families, touched_arrays, writes
from dcarray.ir.nodes import Array, Call, Region, Stmt, Window
from dcarray.ir.renaming import numbered, rename
from dcarray.ir.windows import identity

from .distributed_forms import DistributedForm
from .ghost_zone_cost import Costs
from .ghost_zones import expand_ghost_zones

__all__ = ["PlacedRegion", "RegionBuilder"]


@dataclass(frozen=True)
class PlacedRegion:
    """A region whose arrays have layouts, with its communication as calls.

    Parameters
    ----------
    region : Region
        The region; every array has its layout as text, None where it is whole on every rank.
    given : mapping of str to (Layout or None)
        The arrays that exist before the region runs, with their layouts.
    after : mapping of str to str
        For each array that exists afterwards, the array of the region that then holds its elements.
    forms : mapping of str to DistributedForm
        The distributed forms of library calls, by the name of the first array that they write.
    notes : tuple of Note
    """

    region: Region
    given: Mapping[str, Layout | None]
    after: Mapping[str, str]
    forms: Mapping[str, DistributedForm]
    notes: tuple[Note, ...]


class RegionBuilder:
    """The arrays, layouts and statements of a region during placement.

    Parameters
    ----------
    region : Region
    layouts : mapping of str to (Layout or None)
        The layouts of the arrays that exist before, the same as in `dcarray.comm.planning.planner.plan`.
    """

    def __init__(self, region: Region, layouts: Mapping[str, Layout | None]) -> None:
        self.region = region
        self.arrays = {a.name: a for a in region.arrays}
        self.given = {a.name: layouts.get(a.name) for a in region.arrays if a.role in ("in", "inout")}
        self.layouts = {name: canonical(layouts.get(name)) for name in self.arrays}
        root = families(region)
        shared = {root[a.name] for a in region.arrays if a.base is not None}
        said = {*self.given, *layouts}
        #: New arrays whose layout is not decided yet.
        self.undecided = {n for n in self.arrays if n not in said and root[n] not in shared}
        self.partial: dict[str, Partial] = {}
        self.written = set(self.given)
        #: The widest halo that is read of each array.
        self.halo_rooms: dict[str, Widths] = {}
        self.forms: dict[str, DistributedForm] = {}
        self.body: list[Stmt] = []
        self.notes: list[Note] = []

    def finished(self, costs: Costs | None) -> PlacedRegion:
        """Return the placed region, with memory in each array for the halos that statements read."""
        if costs is not None:
            wide = expand_ghost_zones(self.body, self.layouts, self.partial, costs)
            self.body, self.halo_rooms = list(wide.body), dict(wide.halo_rooms)
            if wide.group_size > 1:
                self.add_note(f"halos are exchanged once for {wide.group_size} statements", wide.loc)
        after = {a.name: a.name for a in self.region.arrays if a.role != "temp"}
        for name, room in self.halo_rooms.items():
            self.make_halo_room(name, room, after)
        arrays = tuple(
            replace(a, layout=write(self.layouts[a.name], self.partial.get(a.name)))
            for a in self.arrays.values()
        )
        region = Region((), arrays, tuple(self.body), self.region.guards)
        return PlacedRegion(region, self.given, after, self.forms, tuple(self.notes))

    def new_array(self, like: str, dtype: Any, shape: tuple[int, ...], layout: Layout | None) -> Array:
        """Return a new temporary array."""
        array = Array(numbered(like, self.arrays), dtype, shape)
        self.arrays[array.name] = array
        self.layouts[array.name] = layout
        return array

    def copy_in(self, array: Array, layout: Layout | None, loc: Any, filled: bool = True) -> Array:
        """Return a new temporary array like `array`, in another layout, with its elements if `filled`."""
        copy = self.new_array(array.name, array.dtype, array.shape, layout)
        if filled:
            self.emit_redistribution(identity(array), identity(copy), loc)
        return copy

    def make_halo_room(self, name: str, room: Widths, after: dict[str, str]) -> None:
        """Give an array memory for a halo of widths `room`; an existing array is copied to a new one."""
        layout = self.layouts[name]
        assert layout is not None
        wide = max_widths(room, layout.halo)
        if wide == layout.halo:
            return
        if name in self.given:  # the next recording may need slightly more
            parts = zip(wide, layout.parts, strict=True)
            wide = tuple(
                (_round_up(a, part.smallest()), _round_up(b, part.smallest())) for (a, b), part in parts
            )
        wider = Layout(layout.shape, layout.grid, layout.axes, wide)
        self.body = [one for stmt in self.body for one in self.without_halo_operands(stmt, name, layout)]
        if name not in self.given:
            self.layouts[name] = wider
            return
        old = self.arrays[name]
        new = self.new_array(name, old.dtype, old.shape, wider)
        self.body = [rename(stmt, name, new.name) for stmt in self.body]
        self.body.insert(0, Call("comm.redistribute", (identity(old),), (identity(new),)))
        self.arrays[name] = replace(old, role="in")
        self.arrays[new.name] = replace(new, role="out")
        after[name] = new.name

    def without_halo_operands(self, stmt: Stmt, name: str, layout: Layout) -> Iterator[Stmt]:
        """Yield a statement; before a library call that uses `name`, copies of it to memory without halo."""
        if not (isinstance(stmt, Call) and stmt.writes and stmt.writes[0].array in self.forms) or (
            name not in touched_arrays(stmt)
        ):
            yield stmt
            return
        array = self.arrays[name]
        copy = self.new_array(name, array.dtype, array.shape, layout)
        if stmt.writes[0].array == name:
            self.forms[copy.name] = self.forms.pop(name)
        if any(w.array == name for w in stmt.reads):
            yield Call("comm.redistribute", (identity(array),), (identity(copy),), loc=stmt.loc)
        yield rename(stmt, name, copy.name)
        if any(w.array == name for w in stmt.writes):
            yield Call("comm.redistribute", (identity(copy),), (identity(array),), loc=stmt.loc)

    def emit(self, stmt: Stmt) -> None:
        self.body.append(stmt)
        self.written |= {w.array for w in writes(stmt)}

    def emit_redistribution(self, source: Window, target: Window, loc: Any) -> None:
        self.emit(Call("comm.redistribute", (source,), (target,), loc=loc))

    def add_note(self, text: str, loc: Any, whole: bool = False) -> None:
        self.notes.append(Note(text, loc, whole))


def _round_up(width: int, most: int) -> int:
    """Return a halo width rounded up to a multiple of 8 if over 2, so that later recordings can reuse it."""
    return max(width, min(-(-width // 8) * 8, most)) if width > 2 else width
