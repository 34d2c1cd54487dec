"""The planner: from a region and the layouts of its arrays to the program of one rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import ValidHalos
from dcarray.comm.planning.passes.copy_on_write import copy_on_write
from dcarray.comm.planning.passes.reduction_merging import merge_reductions
from dcarray.comm.planning.passes.redundancy import PASSES, remove_redundant_exchanges, valid_after
from dcarray.comm.planning.placement.distributed_forms import Planner
from dcarray.comm.planning.placement.draft import PlacedRegion
from dcarray.comm.planning.placement.ghost_zone_cost import COSTS, Costs
from dcarray.comm.planning.placement.insert import insert
from dcarray.comm.planning.placement.matmul_call import PLANNERS
from dcarray.comm.planning.rank_program.steps import Note, Program
from dcarray.comm.transport.errors import PlanError
from dcarray.ir.analysis.effects import families
from dcarray.ir.nodes import Region
from dcarray.ir.passes.base import Log

from .localise import localise
from .overlap import overlap_communication

__all__ = ["arrays_to_gather", "place_region", "plan"]


def arrays_to_gather(region: Region, layouts: Mapping[str, Layout | None]) -> dict[str, str]:
    """Return the arrays that have to be gathered before a region can be planned, each with the reason.

    These are the arrays whose memory the region uses under several shapes.
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
    replicate_limit: int = 0,
    library: Mapping[str, Planner] | None = None,
    costs: Costs | None = COSTS,
    finite: Collection[str] = (),
    serial_limit: int = 0,
    preserved: Collection[str] = (),
) -> Program:
    """Return the program of one rank for a region.

    It needs neither data nor messages: other ranks call it with the same arguments and plan consistently.

    Parameters
    ----------
    region : Region
        A region over whole arrays, with known sizes.
    layouts : mapping of str to (Layout or None)
        The layout of each ``in`` and ``inout`` array; None, or no entry: whole on every rank.  For ``out``
        and ``temp`` arrays the layout is used if there is an entry, and chosen otherwise.
    ranks, rank : int
        The number of ranks, and the rank that the program is for.
    valid : mapping of str to ValidHalos, optional
        The halos that are up to date, for example `Program.valid` of an earlier run.
    replicate_limit : int
        New arrays of at most this many elements are whole on every rank.
    library : mapping, optional
        The distributed forms of calls; by default `placement.matmul_call.PLANNERS`.
    costs : Costs, optional
        Costs of messages, redundantly computed points and split statements, which decide on the expansion of
        ghost zones and on overlapping messages with computation; None: neither is done.
    finite : collection of str, optional
        The scalar arguments that are known to be finite.
    serial_limit : int, optional
        Reductions of up to this many floating-point numbers are computed on every rank in serial order, so
        that the result is the same to the bit as in one process; larger ones in parts on the ranks.
    preserved : collection of str, optional
        Arrays whose memory must not be overwritten; results are stored in new memory.

    Returns
    -------
    Program

    Raises
    ------
    PlanError
        When sizes are not known, an array of `arrays_to_gather` is not whole, or an array of `preserved`
        shares its memory with others.
    """
    placed = place_region(
        region, layouts, ranks, valid=valid, replicate_limit=replicate_limit, library=library, costs=costs,
        finite=finite, serial_limit=serial_limit, preserved=preserved,
    )  # fmt: skip
    now = valid_after(placed.region, valid or {})
    kept = {name: now[there] for name, there in placed.after.items() if there in now}
    program = localise(placed, ranks, rank, kept)
    # aliased arrays hide dependences between steps, so such programs are not overlapped
    several = any(array.base is not None for array in placed.region.arrays)
    return program if costs is None or several else overlap_communication(program, costs.link)


def place_region(
    region: Region,
    layouts: Mapping[str, Layout | None],
    ranks: int,
    *,
    valid: Mapping[str, ValidHalos] | None = None,
    replicate_limit: int = 0,
    library: Mapping[str, Planner] | None = None,
    costs: Costs | None = COSTS,
    finite: Collection[str] = (),
    serial_limit: int = 0,
    preserved: Collection[str] = (),
) -> PlacedRegion:
    """Return the region with its communication, the same on all ranks; parameters and errors: see `plan`."""
    if region.symbols:
        raise PlanError("a region whose sizes are not known cannot be planned for many ranks")
    if wrong := arrays_to_gather(region, layouts):
        raise PlanError("; ".join(wrong.values()))
    placed = insert(
        region, layouts, ranks, replicate_limit, PLANNERS if library is None else library, costs, serial_limit
    )
    log = Log()
    region = placed.region
    for one in (remove_redundant_exchanges(valid or {}), merge_reductions(finite), *PASSES):
        region = one.fn(region, log)
    notes = (*placed.notes, *(Note(f"{note.pass_name}: {note.text}", note.loc) for note in log.notes))
    return copy_on_write(replace(placed, region=region, notes=notes), preserved)
