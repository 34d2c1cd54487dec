"""Estimates of recordings: whether NumPy does one sooner, call by call, than a region of it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcarray.tiering import cost_model

from . import run_plan

if TYPE_CHECKING:
    from dcarray.plans.templates import PlanEntry
    from dcarray.recording.log import Recording

__all__ = ["MAX_PLANS", "estimated_eager_elements"]

MAX_PLANS = 4096


def estimated_eager_elements(rec: Recording, plan_entry: PlanEntry, threads: int) -> int:
    """Return `cost_model.eager_elements` of a log: the elements of its largest statement if NumPy is
    faster than a region, else 0.  Without a new estimate it is 0 if that was the last answer for about
    these sizes."""
    template = plan_entry.template
    sizes = tuple([n & (-1 << max(n.bit_length() - 3, 0)) for n in plan_entry.values])
    if sizes in template.region_sizes:
        return 0
    steps = run_plan.steps_of(rec, plan_entry)
    template.cost = cost_model.estimate(
        *plan_entry.key[:2], _calls(rec), threads, template.saved, steps, rec.views
    )
    found = cost_model.eager_elements(template.cost)
    if not found:
        if len(template.region_sizes) >= MAX_PLANS:
            template.region_sizes.clear()
        template.region_sizes.add(sizes)
    return found


def _calls(rec: Recording) -> int:
    """Return the number of the user's calls that made a recording.  Statements of different operations at one
    call site may come from one call; equal operations come from different iterations of a loop."""
    calls, here, names = 0, None, set[str]()
    for (code, instruction, *_), entry in zip(rec.sites, rec.statements(), strict=True):
        place = id(code), instruction
        if place != here or entry.op in names:
            calls, here, names = calls + 1, place, set()
        names.add(entry.op)
    return calls
