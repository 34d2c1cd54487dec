"""From a region and the layouts of its arrays to one rank's program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import ValidHalos
from dcarray.comm.planning.passes.copy_on_write import copy_on_write
from dcarray.comm.planning.passes.reduction_merging import merge_reductions
from dcarray.comm.planning.passes.redundancy import PASSES, still_valid, valid_after
from dcarray.comm.planning.placement.draft import PlacedRegion
from dcarray.comm.planning.placement.ghost_zone_cost import COSTS, Costs
from dcarray.comm.planning.placement.insert import insert
from dcarray.comm.planning.placement.library_calls import Planner, planners
from dcarray.comm.planning.program.steps import Note, Program
from dcarray.comm.transport.errors import PlanError
from dcarray.ir.analysis.effects import families
from dcarray.ir.nodes import Region
from dcarray.ir.passes.base import Log

from .localise import localise
from .overlap import overlap_communication

__all__ = ["arrays_to_gather", "place_region", "plan"]


def arrays_to_gather(region: Region, layouts: Mapping[str, Layout | None]) -> dict[str, str]:
    """The arrays that have to be made whole before a region can be planned, each with the reason.

    They are those of which the region has several geometries of one memory.
    """
    root = families(region)
    kin: dict[str, list[str]] = {}
    for array in region.arrays:
        kin.setdefault(root[array.name], []).append(array.name)
    return {
        name: f"{name} is used under several shapes"
        for names in kin.values()
        if len(names) > 1
        for name in names
        if layouts.get(name) is not None
    }


def plan(
    region: Region,
    layouts: Mapping[str, Layout | None],
    ranks: int,
    rank: int,
    *,
    valid: Mapping[str, ValidHalos] | None = None,
    above: int = 0,
    library: Mapping[str, Planner] | None = None,
    costs: Costs | None = COSTS,
    finite: Collection[str] = (),
    few: int = 0,
    preserved: Collection[str] = (),
) -> Program:
    """One rank's program for a region.

    Pure: it needs neither data nor the other ranks, which are told the same and plan alike.

    Parameters
    ----------
    region : Region
        Over whole arrays, with sizes that are known.
    layouts : mapping of str to (Layout or None)
        How each ``in`` and ``inout`` array lies; None, or no entry: whole on every rank.  An ``out`` or
        ``temp`` array gets the layout said here; without an entry one is chosen.
    ranks, rank : int
        How many there are, and whose program is wanted.
    valid : mapping of str to Valid, optional
        The parts of halos that hold what the neighbours have, as `Program.valid` of a run before.
    above : int
        New arrays of at most so many elements are whole on every rank.
    library : mapping, optional
        The distributed forms of calls; by default `placement.library_calls.planners`.
    costs : Costs, optional
        What messages cost against points that are computed twice, and against statements cut in pieces so
        that work goes on meanwhile; None: neither is done.
    finite : collection of str, optional
        The scalar arguments that are finite numbers.
    few : int, optional
        So many floating-point numbers are added or multiplied on every rank in the order of one process, so
        that the result is the same, instead of in parts.
    preserved : collection of str, optional
        Arrays whose elements are, in the memory that was given, afterwards still what they were.

    Returns
    -------
    Program

    Raises
    ------
    PlanError
        When sizes are not known, an array of `arrays_to_gather` is not whole, or one of `preserved` shares
        its memory.
    """
    placed = place_region(
        region, layouts, ranks, valid=valid, above=above, library=library, costs=costs, finite=finite,
        few=few, preserved=preserved,
    )  # fmt: skip
    now = valid_after(placed.region, valid or {})
    kept = {name: now[there] for name, there in placed.after.items() if there in now}
    program = localise(placed, ranks, rank, kept)
    # which steps touch one memory under several names is not told, so these wait for each other
    several = any(array.base is not None for array in placed.region.arrays)
    return program if costs is None or several else overlap_communication(program, costs.link)


def place_region(
    region: Region,
    layouts: Mapping[str, Layout | None],
    ranks: int,
    *,
    valid: Mapping[str, ValidHalos] | None = None,
    above: int = 0,
    library: Mapping[str, Planner] | None = None,
    costs: Costs | None = COSTS,
    finite: Collection[str] = (),
    few: int = 0,
    preserved: Collection[str] = (),
) -> PlacedRegion:
    """What all ranks plan alike: the region with its communication; parameters and errors as `plan`'s."""
    if region.symbols:
        raise PlanError("a region whose sizes are not known cannot be planned for many ranks")
    if wrong := arrays_to_gather(region, layouts):
        raise PlanError("; ".join(wrong.values()))
    placed = insert(region, layouts, ranks, above, planners() if library is None else library, costs, few)
    log = Log()
    found = placed.region
    for one in (still_valid(valid or {}), merge_reductions(finite), *PASSES):
        found = one.fn(found, log)
    notes = (*placed.notes, *(Note(f"{note.pass_name}: {note.text}", note.loc) for note in log.notes))
    return copy_on_write(replace(placed, region=found, notes=notes), preserved)
