"""The functions of this package that the packages below it call, through `dcarray.core.device_backend`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import auto, executor
from .arrays import synchronise
from .buffer import reserved, settle
from .placing import converted, created, from_dlpack, moved, place
from .selection import selected
from .streams import drawn

if TYPE_CHECKING:
    from dcarray.core.config import Options
    from dcarray.execution.executor import Executor
    from dcarray.recording.log import Recording

__all__ = [
    "converted", "created", "drawn", "from_dlpack", "moved", "place", "planning_options", "remark",
    "reserved", "run", "selected", "settle", "synchronise",
]  # fmt: skip


def run(host: Executor, rec: Recording, options: Options) -> Callable[[], None]:
    """Run a recording on its device; return a function to call afterwards, which gives NumPy's warnings."""
    if isinstance(rec.device, auto.AutoDevice):
        return auto.run(host, rec, options)
    return executor.run(host, rec, options)


def planning_options(rec: Recording, options: Options) -> Options:
    """Return the options with which a plan for a recording on a device is requested."""
    device = rec.device
    if isinstance(device, auto.AutoDevice):
        if not device.decide(rec, options, tried=False).on_device:
            return options
        device = device.there
    return executor.planning_options(rec, options, device)


def remark(rec: Recording, options: Options) -> str:
    """Return why a recording runs on the processor or the device; empty if its device is not ``"auto"``."""
    device = rec.device
    if not isinstance(device, auto.AutoDevice):
        return ""
    decision = device.decide(rec, options, tried=False)
    return f"runs on {device.there.name if decision.on_device else 'the processor'}: {decision.reason}"
