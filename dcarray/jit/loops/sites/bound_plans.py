"""A serialised plan, bound to the names of its site: on the processor, or on a device."""

from __future__ import annotations

from typing import Any

from dcarray.core.device_names import AUTO

from ..entry.names import RETURNED
from .keys import Entry
from .plan_values import PlanMismatch
from .run_loop import LoopPlan
from .site_source import SiteSource

__all__ = ["bound_plan"]


def bound_plan(source: SiteSource, loaded: Any, entry: Entry) -> Any:
    """Return a loaded plan ready to run on the values of the names that a site's statements read: a
    `LoopPlan`, or a `DeviceLoopPlan` if the arrays of ``entry`` are on a device.

    Raises
    ------
    PlanMismatch
        If the plan has statements that do not compile, or makes new arrays on a device: NumPy, or a recording
        for the device, is at least as fast then.
    """
    if loaded.interpreted:
        raise PlanMismatch("some of it does not compile")
    names = (*source.needed, *source.others)
    live = (*source.live, *[RETURNED] * source.returns)
    if entry.device is None:
        made_on = entry.kind[0][2]
        on_device = made_on not in ("cpu", AUTO) and entry.wraps and not source.is_loop
        if on_device and any(result.kind in ("array", "view") for _, result in loaded.payload.results):
            raise PlanMismatch(f"what makes arrays on {made_on} is recorded")
        return LoopPlan(loaded, names, live, wraps=entry.wraps, owned=True, is_loop=source.is_loop)
    from .device_loop_plan import DeviceLoopPlan  # only programs with devices load their package

    return DeviceLoopPlan(loaded, names, entry.device, live)
