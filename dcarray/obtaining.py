"""Where plans come from: the cache folder, the process that plans, or this one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import planning, shelf
from .report import counters, note

if TYPE_CHECKING:
    from .background import Background
    from .config import Options
    from .lowering.parcel import Parcel


def found(request: planning.Request) -> Parcel | None:
    """The plan that another process has left."""
    plan = shelf.find(request)
    return None if plan is None else _counted(plan, 0, 0, plan.kernels)


def obtained(request: planning.Request, options: Options, background: Background) -> Parcel:
    """Have a plan made.  What does not compile is left to the interpreter.

    Parameters
    ----------
    request : Request
    options : Options
        With ``jit="background"`` another process plans, if there is one.
    background : Background
        Whose job this is, if another process plans.

    Raises
    ------
    Exception
        If none can be made: `Untraceable` if there is nothing to plan.
    """
    made = None
    if options.jit == "background" and not options.debug:
        known = found(request)
        if known is not None:
            return known
        from . import remote, spawned

        with suppress(spawned.NoServer), background.aside():
            made, counts, reasons = remote.REMOTE.plan(request)
    if made is not None:
        from .lowering import (
            parcel,  # its imports take time that belongs to the program until there is a plan
        )

        with suppress(parcel.Unfit):
            plan = parcel.opened(made)
            for reason in reasons:
                _uncompiled(reason, None)
            return _counted(plan, *counts)
    from .lowering import packing

    local = planning.make(request, _uncompiled, options.debug)
    return _counted(packing.local(local.plan, local.relations, local.told), *local[3:])


def _counted(plan: Parcel, compiled: int, hits: int, disk_hits: int) -> Parcel:
    counters.compiles += compiled
    counters.cache_hits += hits
    counters.disk_hits += disk_hits
    return plan


def _uncompiled(reason: str, loc: Any) -> None:
    """A statement that every run of the plan leaves to the interpreter."""
    note(f"interpreter ({reason})", where=("<compiled region>", 0))
