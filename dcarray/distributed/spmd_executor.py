"""The distributed executor of recordings: SPMD, since all ranks record the same.

A recording that uses a distributed array, or a large one, becomes a program of `dcarray.comm`: each rank's
statements and messages.  Any other recording gathers its arrays and runs on every rank as in a single
process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning import planner
from dcarray.comm.planning.analysis.halo_state import ValidHalos
from dcarray.comm.planning.rank_program import matching
from dcarray.comm.planning.rank_program.execution import execute
from dcarray.comm.planning.rank_program.steps import Note, Program
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.errors import GridError
from dcarray.comm.transport.protocol import Communicator
from dcarray.core import fp_attribution, fp_state
from dcarray.core.config import Options
from dcarray.core.counters import counters, note
from dcarray.core.device_names import AUTO
from dcarray.core.errors import StrictError
from dcarray.core.processes import communicating
from dcarray.core.shard import NDArray, Shard, discard_shard, gather_store, local_block, set_shard
from dcarray.core.store import Store, memory
from dcarray.execution import run_plan
from dcarray.execution.executor import Executor, exception_reporter, report_failure
from dcarray.ir import interp
from dcarray.ir.analysis.effects import overwritten_inputs
from dcarray.ir.log_entries import contiguous_log
from dcarray.ir.nodes import Region
from dcarray.lowering.runtime.array_memory import address_of
from dcarray.plans.slot import PlanSlot
from dcarray.recording.log import Recording

from . import input_range_check
from .consistency import agree_on_live, combine_flags
from .device_blocks import block_of, device_of, on_host, options_there, there
from .device_blocks import execute as execute_there
from .device_blocks import run as run_on_device
from .layout_choice import chosen_layouts, default_layout, is_large
from .plan_cache import LayoutPlan, LogFacts, compile_region, facts_of, slot_of
from .reshape import copy_views, write_back_views

__all__ = ["default_layout", "program_of", "run"]

# Elements up to which a sum is computed in one process's order: sending them takes no longer than one
# message.
MOST_SERIAL = 1 << 12

Local = Callable[["Region", Mapping[str, Any]], None]


def run(executor: Executor, rec: Recording, options: Options, comm: Communicator) -> Callable[[], None]:
    """Run a recording on all ranks; parameters and result are those of
    `dcarray.execution.executor.Executor.run`."""
    options = job_options(options)
    on_device = options_there(options, not any(fp_state.raises_or_calls(site[2]) for site in rec.sites))
    facts = facts_of(rec)
    copies: list[tuple[Store, Store]] = []
    if not facts.one_geometry:
        copies = copy_views(rec, comm, partial(_layout_if_large, options, comm))
        facts = facts_of(rec)
    shards = _shards(rec)
    cause = "reshape"
    try:
        notes = (
            _run_distributed(rec, facts, shards, on_device, comm)
            if facts.is_distributed(shards, options)
            else None
        )
    except _Unplanned:
        if copies:
            raise
        notes, cause = None, "region that has no plan"
    if notes is not None:
        write_back_views(copies, rec.urgent)
        return exception_reporter(rec, notes)
    distributed = {
        store.family for store in rec.slots if type(store) is Store and store.family.remote is not None
    }
    if distributed:
        where = run_plan.line_of(rec.sites[0])
        if options.strict:
            raise StrictError(f"{cause} of distributed arrays", where)
        note(f"{cause} (gathered)", sum(head.size * head.dtype.itemsize for head in distributed), where=where)
    for store in rec.slots:
        if type(store) is Store:
            gather_store(store.family)
            if store.family.mem is not None:  # else it is a reshape of a result of this recording
                memory(store)
    return executor.run_undistributed(rec, options)


def program_of(rec: Recording, options: Options, comm: Communicator) -> Program | None:
    """Return this rank's program for a pending recording, by the results that this rank holds.

    None if the recording does not run distributed.
    """
    shards = _shards(rec)
    if rec.done or not (facts := facts_of(rec)).is_distributed(shards, options):
        return None
    live = tuple([k for k in rec.news if rec.slots[k]() is not None])
    return _plan(rec, live, shards, facts.finite(rec), options, comm).program


@lru_cache(16)
def job_options(options: Options) -> Options:
    """Return the options with which all ranks plan: background plans become eager ones.

    Background plans are ready at different times on different ranks, on which the last bits of sums depend.
    """
    return replace(options, jit="eager") if options.jit == "background" else options


def _shards(rec: Recording) -> dict[int, Shard]:
    """Return the shards of distributed arrays, by slot."""
    return {k: s.remote for k, s in enumerate(rec.slots) if type(s) is Store and s.remote is not None}


def _layout_if_large(options: Options, comm: Communicator, shape: tuple[int, ...]) -> Layout | None:
    return default_layout(shape, options, comm) if is_large(shape, options) else None


# ---- planning ----------------------------------------------------------------------------------------
def _run_distributed(
    rec: Recording, facts: LogFacts, shards: dict[int, Shard], options: Options, comm: Communicator
) -> list[Any]:
    """Run a recording distributed, and return the notes of floating-point exceptions."""
    if not rec.sites:  # the call that was to be recorded has raised
        return []
    device = device_of(options)
    if device is not None:
        rec.watched = 0
    slots = rec.slots
    live = tuple([k for k in rec.news if slots[k]() is not None])
    what = facts.description if device is None else (*facts.description, "on devices")
    live = agree_on_live(rec, what, live, comm)
    if not live and not facts.overwrites:
        return []
    states = tuple([(k, s.layout, None if s.exposed else s.filled) for k, s in shards.items()])
    finite = facts.finite(rec) if facts.factors else ()
    key = (live, states, finite, rec.watched, comm.size, comm.rank, options)
    plan = facts.plan(key)
    if plan is None:
        plan = facts.cache(key, _plan_on_all_ranks(rec, live, shards, finite, options, comm))
        if options.debug:
            with communicating():
                matching.check(plan.program, comm)
    else:
        counters.plan_hits += 1
    given = _inputs(rec, plan, shards, options, comm)
    mask = rec.watched
    if plan.limits and input_range_check.within(given, plan.limits, comm, partial(compute, plan, options)):
        plan, mask = plan.overwriting, 0
    rec.program = plan.program
    counters.flushes += 1
    counters.statements += len(rec.log) - len(slots)
    for gathering in plan.gathering_notes:
        _report_gather(rec, gathering, options)
    for shard in shards.values():
        shard.filled = None  # in case the run fails
    flags = 0

    def local(region: Region, arrays: Mapping[str, Any]) -> None:
        nonlocal flags
        flags |= compute(plan, options, region, arrays)

    with communicating():
        with fp_state.collect_flags() as seen:
            after = execute_there(plan.program, comm, given, local, options)
        flags = combine_flags(comm, flags | seen.flags) & mask if mask else 0
    notes = _attribute_errors(rec, plan, given, flags, comm) if flags else []
    _bind_outputs(rec, plan, after, facts.written, comm)
    return notes


class _Unplanned(RuntimeError):
    """Some rank has no plan for a recording; raised on all of them, before anything has been sent."""


def _plan_on_all_ranks(rec: Recording, *given: Any) -> LayoutPlan:
    """Return the plan of `_plan`, if planning succeeds on all ranks."""
    *_, options, comm = given
    error: Exception | None = None
    try:
        plan = _plan(rec, *given)
    except Exception as caught:  # a bug, or no memory
        if options.debug or isinstance(caught, GridError):
            raise
        report_failure("a region is not shared out", caught, run_plan.line_of(rec.sites[0]))
        error = caught
    with communicating():
        failed = comm.share(("planned",), int(error is not None))
    if failed:
        raise _Unplanned("another rank has no plan for it" if error is None else str(error)) from error
    return plan


def _plan(
    rec: Recording,
    live: tuple[int, ...],
    shards: dict[int, Shard],
    finite: tuple[str, ...],
    options: Options,
    comm: Communicator,
) -> LayoutPlan:
    """Return this rank's plan for a recording, by the layouts of its arrays."""
    from dcarray.ir.build import build
    from dcarray.ir.passes.cpu.pipeline import DISTRIBUTED

    # blocks are contiguous, whatever the strides of the whole array
    exact = build(contiguous_log(rec.log), live, rec.kinds)
    region = DISTRIBUTED.run(exact, debug=options.debug)
    known = {a.name: shards[slot].layout for a in exact.arrays if (slot := slot_of(a.name)) in shards}
    layouts = chosen_layouts(exact, region, known, bool(shards), options, comm)
    valid: dict[str, ValidHalos] = {
        f"a{k}": s.filled for k, s in shards.items() if s.filled is not None and not s.exposed
    }
    culprits = fp_attribution.culprits(rec.statements(), bool(rec.watched & fp_state.ODD))
    ambiguous = rec.watched & sum(1 << k for k, one in enumerate(culprits) if one == fp_attribution.DOUBT)
    # the arrays that a region overwrites and that a repetition statement by statement needs
    overwritten = {array.name for array in region.arrays if array.role == "inout"} if ambiguous else ()
    preserved = [name for name in overwritten_inputs(exact) if name in overwritten]
    plan = partial(planner.plan, layouts=layouts, ranks=comm.size, rank=comm.rank, serial_limit=MOST_SERIAL)
    plan_overwriting = partial(plan, region, valid=valid, finite=finite)
    own = LayoutPlan(plan_overwriting(preserved=preserved), layouts, ambiguous=ambiguous, culprits=culprits)
    if ambiguous:
        own.plan_per_statement = partial(plan, exact)
        own.plan_overwriting = plan_overwriting
        own.limits = input_range_check.limit(region, preserved, comm.size, rec.watched)
    return own


# ---- running -----------------------------------------------------------------------------------------
def _inputs(
    rec: Recording, plan: LayoutPlan, shards: dict[int, Shard], options: Options, comm: Communicator
) -> dict[str, Any]:
    """Return this rank's memory of the arrays and scalars that a plan reads."""
    given: dict[str, Any] = dict(plan.scalars(rec))
    device = device_of(options)
    for name, slot in plan.inputs:
        if slot in shards:
            given[name] = block_of(shards[slot], device)
        else:
            mem = memory(rec.slots[slot])
            layout = plan.layouts.get(name)
            given[name] = there(device, contiguous(mem) if layout is None else local_block(mem, layout, comm))
    return given


def contiguous(a: NDArray) -> NDArray:
    return a if a.flags.c_contiguous else a.copy()


def compute(plan: LayoutPlan, options: Options, region: Region, arrays: Mapping[str, Any]) -> int:
    """Run local statements, and return their floating-point exceptions as bits."""
    if options.jit == "off":
        return _interpret(region, arrays)
    slot = plan.compiled.get(id(region)) or plan.compiled.setdefault(id(region), PlanSlot())
    if slot.ask():
        compile_region(slot, region, options)
    ready = slot.plan
    if options.device not in ("cpu", AUTO):
        if ready is not None and run_on_device(ready, region, arrays, options):
            return 0
        written = {a.name for a in region.arrays if a.role in ("out", "inout")}
        here = {name: on_host(held, name in written) for name, held in arrays.items()}
        _interpret(region, here)
        return 0
    if ready is None:
        return _interpret(region, arrays)
    given = [*arrays.values()]  # in the region's order
    counters.kernels += ready.kernels
    counters.interpreted += ready.interpreted
    counters.bytes += ready.bytes(())
    flags: int = ready.run(given, [address_of(a) for a in given], (), options.threads)
    return flags


def _interpret(region: Region, arrays: Mapping[str, Any]) -> int:
    """Run local statements by the interpreter, and return their floating-point exceptions as bits."""
    with fp_state.collect_flags() as seen:
        interp.run(region, arrays)
    counters.interpreted += len(region.body)
    return seen.flags


def _attribute_errors(
    rec: Recording, plan: LayoutPlan, given: dict[str, NDArray], flags: int, comm: Communicator
) -> list[Any]:
    """Return the notes of the statements that raised floating-point exceptions, the same on all ranks."""
    if not flags & plan.ambiguous:
        return [
            entry
            for culprit in sorted({one for one in plan.culprits if one >= 0})
            for entry in fp_state.notes_of(
                culprit,
                rec.sites[culprit][2],
                flags & sum(1 << k for k, one in enumerate(plan.culprits) if one == culprit),
            )
        ]

    witness = fp_state.Witness(lambda loc: rec.sites[loc][2])

    def local(region: Region, arrays: Mapping[str, Any]) -> None:
        interp.run(region, arrays, around=witness.around)

    with communicating():
        with np.errstate(all="ignore"):  # copies belong to no statement
            before = {name: a.copy() for name, a in given.items()}
            execute(plan.per_statement, comm, before, local, around=witness.around)
        return fp_state.merge_notes(broadcast_object(comm, witness.notes, rank) for rank in range(comm.size))


def _bind_outputs(
    rec: Recording, plan: LayoutPlan, after: Mapping[str, Any], written: frozenset[int], comm: Communicator
) -> None:
    """Bind the results of a run to the stores."""
    slots = rec.slots
    for slot, name, layout, filled in plan.outputs:
        entry = slots[slot]
        store = entry if type(entry) is Store else entry()
        if store is None:
            continue
        anew = bind(store, after[name], layout, filled, slot in written, comm)
        if anew and rec.urgent and store.is_exposed():
            gather_store(store)


def bind(
    store: Store, block: Any, layout: Layout | None, filled: ValidHalos | None, written: bool,
    comm: Communicator,
) -> bool:  # fmt: skip
    """Give a store the elements that its array has after a run, whole or as a block; return whether it is a
    new block."""
    before = store.remote
    if layout is None:
        block = on_host(block, True)
        if before is not None:
            discard_shard(store)
        if store.mem is None:
            store.bind_new(block, address_of(block))
        elif (written or before is not None) and block is not store.mem:
            store.mem[...] = block
    elif before is not None and before.layout == layout:
        if before.exposed:  # the program has a view of it
            block = on_host(block, True)
            if before.block is not block:
                before.block[...] = block
        else:
            before.held = block
        before.filled = filled
        store.dirty = before
    elif before is not None or written:
        if before is not None:
            before.done = True
        set_shard(store, Shard(layout, block, comm, filled))
        return True
    return False


def _report_gather(rec: Recording, gathering: Note, options: Options) -> None:
    """Report a statement that gathers its arrays, or raise under ``strict``."""
    op = "a statement" if gathering.loc is None else rec.statements()[gathering.loc].op
    where = run_plan.line_of(rec.sites[gathering.loc or 0])
    if options.strict:
        raise StrictError(f"{op} of distributed arrays", where)
    note(f"{op} (gathered)", 0, where=where)
