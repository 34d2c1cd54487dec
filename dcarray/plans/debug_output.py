"""What the option ``debug`` prints on the standard error stream, by its level.

1: devices and plans; 2: how long making a plan takes, and each run; 3: what passes did and refused, and why;
4: regions, as requested and after each pass that changed them; 5: kernels, as C, and the plan's driver;
6: machine code.  Each level prints what those below it do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from dcarray.core.device_names import cpu_name, devices
from dcarray.core.unpatched import perf_counter

from . import requests

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region
    from dcarray.ir.passes import Note
    from dcarray.lowering.program.loaded_plan import LoadedPlan

__all__ = ["loaded_plan"]

_PLANS, TIMING, PASSES, REGIONS, KERNELS, MACHINE_CODE = range(1, 7)
_numbers = count(1)


def _say(text: str) -> None:
    print(f"dcarray: {text}", file=sys.stderr)


@cache
def _say_devices() -> None:
    _say(f"devices: cpu ({cpu_name()})" + "".join(f", {one} ({one.description})" for one in devices()[1:]))


def loaded_plan(
    request: requests.Request, fallback: Callable[[str, Any], None], level: int
) -> tuple[LoadedPlan, int, int, int]:
    """Make and print a plan, whose runs print how long they take.

    Returns
    -------
    LoadedPlan, int, int, int
        The plan, and the numbers of its kernels that were compiled, found in memory, and found on disk.
    """
    from dcarray.ir.passes import Log
    from dcarray.ir.text import dump
    from dcarray.lowering.program import serialise

    _say_devices()
    name, log, start = f"plan {next(_numbers)}", Log(), perf_counter()

    def region(step: str, after: Region, done: Sequence[Note]) -> None:
        _say(f"{name}, {step}: {dump(after)}")

    result = requests.make_plan(request, fallback, True, log, region if level >= REGIONS else None)
    plan = serialise.in_process(result.plan, result.relations, result.payload)
    took = f", made in {1e3 * (perf_counter() - start):.1f} ms" if level >= TIMING else ""
    counts = ", ".join(f"{n} {kind}" for kind, n in result.plan.stats.items())
    _say(f"{name} for {request.target}: {len(result.plan.region.body)} statements; {counts}{took}")
    for line in str(log).splitlines() if level >= PASSES else ():
        _say(f"{name}: {line}")
    if level >= KERNELS:
        _say(f"{name}, driver:\n{result.plan.driver}")
    for k, launch in enumerate(result.plan.kernels if level >= KERNELS else (), 1):
        _say(f"{name}, kernel {k}:\n{_listing(launch.kernel)}")
        if level >= MACHINE_CODE:
            _say(f"{name}, machine code of kernel {k}:\n{_machine_code(launch.kernel)}")
    if level >= TIMING:
        plan.run = _timed(plan.run, name)
    return plan, *result[3:]


def _timed(run: Callable[..., int], name: str) -> Callable[..., int]:
    """Return the run of a plan, printing how long it took."""

    def timed(*given: Any) -> int:
        start = perf_counter()
        flags = run(*given)
        _say(f"{name} ran in {1e6 * (perf_counter() - start):.1f} us")
        return flags

    return timed


def _listing(kernel: Any) -> str:
    from dcarray.lowering.c_family.emit import emit
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.kernel.text import kernel_text

    try:
        return emit(kernel)
    except Unsupported:  # plain C cannot say it
        return kernel_text(kernel)


def _machine_code(kernel: Any) -> str:
    """Return the assembly of a kernel for the processor."""
    from dcarray.lowering.cpu.llvm.object_code import engine
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.targets import get

    try:
        return engine.assembly(get("cpu").emit(kernel))
    except Unsupported as reason:
        return f"none for the processor: {reason}"
