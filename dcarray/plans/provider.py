"""Where plans come from: the cache folder, the planning process, or this process."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dcarray.core.counters import counters, note

from . import disk_store, requests

if TYPE_CHECKING:
    from dcarray.core.config import Options
    from dcarray.lowering.program.loaded_plan import LoadedPlan

    from .background import Background


def load_stored(request: requests.Request) -> LoadedPlan | None:
    """Return the plan of a request from the disk plan store, or None."""
    plan = disk_store.load_plan(request)
    return None if plan is None else _count(plan, 0, 0, plan.kernels)


def obtain(request: requests.Request, options: Options, background: Background) -> LoadedPlan:
    """Load or make the plan of a request; statements that do not compile are left to the interpreter.

    Parameters
    ----------
    request : Request
    options : Options
        With ``jit="background"`` the planning process plans, if there is one.
    background : Background
        The thread that runs this call as a job, if the planning process plans.

    Raises
    ------
    Exception
        If no plan can be made: `Untraceable` if there is no region.
    """
    data = None
    if options.jit == "background" and not options.debug:
        # A planning process that is ready looks itself: here each file waits for the interpreter's lock.
        known = None if background.has_planner() else load_stored(request)
        if known is not None:
            return known
        from . import client, server_handle

        with suppress(server_handle.NoPlanningProcess), background.waiting():
            data, counts, reasons = client.CLIENT.plan(request)
        if data is None and background.is_stopping:
            raise client.Refused("the program ends")
    if data is not None:
        from dcarray.lowering.program import loaded_plan

        with suppress(loaded_plan.NotPortable):
            plan = loaded_plan.deserialised(data)
            for reason in reasons:
                _note_uncompiled(reason, None)
            return _count(plan, *(counts or (0, 0, plan.kernels)))
    if options.debug:
        from . import debug_output

        return _count(*debug_output.loaded_plan(request, _note_uncompiled, options.debug))
    from dcarray.lowering.program import serialise

    local = requests.make_plan(request, _note_uncompiled)
    return _count(serialise.in_process(local.plan, local.relations, local.payload), *local[3:])


def _count(plan: LoadedPlan, compiled: int, hits: int, disk_hits: int) -> LoadedPlan:
    """Add the kernels of a plan to the counters; returns the plan."""
    counters.compiles += compiled
    counters.cache_hits += hits
    counters.disk_hits += disk_hits
    return plan


def _note_uncompiled(reason: str, loc: Any) -> None:
    """Count and report a statement that every run of the plan leaves to the interpreter, with the reason."""
    note(f"interpreter ({reason})", where=("<compiled region>", 0))
