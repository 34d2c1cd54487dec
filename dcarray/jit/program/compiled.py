"""A program's compiled code, and what is derived from it for arguments of some sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dcarray.core import config
from dcarray.execution.executor import EXECUTOR
from dcarray.lowering.runtime import perf_map
from dcarray.plans import provider

from ..loops.entry.guards import ARRAYS
from ..loops.entry.lists import ListElements
from ..loops.sites.run_loop import LoopPlan
from .annotations import ArrayAnnotation
from .description import Description
from .program_requests import ProgramInterface, ProgramRequest

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device
    from dcarray.lowering.program.loaded_plan import LoadedPlan

    from ..loops.sites.device_loop_plan import DeviceLoopPlan
    from ..loops.sites.loop_requests import LoopInterface
    from .rank_runs import RankRuns
    from .schedule import Change

__all__ = ["CompiledProgram"]

_MAX_SIZES = 64  # that are remembered with their shapes


class CompiledProgram:
    """A program's compiled code: its plans for all sizes, and those bound to particular sizes.

    The sizes of a call decide which plan serves it.  The first plan has all rewrites, and serves the sizes
    for which they are faster.  The general plan serves all others (`dcarray.ir.analysis.versions`); there is
    none if the first serves all sizes.
    """

    def __init__(
        self, description: Description, options: config.Options, changes: tuple[Change, ...] | None = None,
        on_device: bool = False,
    ) -> None:  # fmt: skip
        self.description, self.changes, self._on_device = description, changes, on_device
        # in this thread: whoever asks for a compiled program waits for it
        self._options = replace(options, jit="eager")
        self._first = self._plan_of("some")
        self.interface: ProgramInterface = self._first.payload
        names = ", ".join(self.interface.symbols)
        # text of `dims.show`: names, integers and operators
        self.holds: Callable[..., bool] = eval(
            f"lambda {names}: {self.interface.guard}", {"max": max, "min": min}
        )
        self._shapes: Callable[..., Any] = eval(
            f"lambda {names}: {self.interface.shapes}", {"max": max, "min": min}
        )
        self._written = self.interface.written()
        self._plans: dict[tuple[Any, ...], Any] = {}

    def _plan_of(self, version: Literal["some", "general"]) -> LoadedPlan:
        options = self._options
        plain = Description(self.description.function, self.description.parameters, self.description.called)
        steered = self.changes
        changes = None if steered is None else tuple([(one.method, one.arguments) for one in steered])
        request = ProgramRequest(
            plain, options.fastmath, options.threads, options.cache_dir, options.target, version, changes,
            undone=not self._on_device, flagless=self._on_device,
        )  # fmt: skip
        function = plain.function
        with perf_map.named(lambda: (function.name, f"{function.file}:{function.line}")):
            return provider.obtain(request, options, EXECUTOR.background)

    @cached_property
    def general(self) -> LoadedPlan:
        """The plan that serves all sizes, compiled at the first access."""
        return self._first if self._first.guard is None else self._plan_of("general")

    @cached_property
    def on_ranks(self) -> RankRuns:
        """The program's runs on several ranks."""
        from .rank_runs import RankRuns

        return RankRuns(self.description)

    def is_current(self) -> bool:
        """Whether the global names that were compiled in still have the same values."""
        return self.description.is_current()

    def serves(self, values: tuple[Any, ...], guards: tuple[Any, ...]) -> bool:
        """Whether the compiled code may get arguments with these guards: it writes no read-only array."""
        for (name, annotation), value, guard in zip(self.description.parameters, values, guards, strict=True):
            if guard is None:
                return False
            if type(value) is ListElements:
                continue
            if isinstance(annotation, ArrayAnnotation) and (
                type(value) not in ARRAYS or (name in self._written and not guard[3])
            ):
                return False
        return True

    def plan(self, symbols: tuple[int, ...], guards: tuple[Any, ...], wraps: bool) -> LoopPlan:
        """Return the plan for these guards of arguments and values of symbols; ``wraps``: new arrays are
        wrapped."""
        plan: LoopPlan | None = self._plans.get(guards)
        if plan is None:
            loaded, interface, names, live = self._parts(symbols)
            plan = self._plans[guards] = LoopPlan(loaded, names, live, interface, symbols, wraps)
        return plan

    def device_plan(
        self, symbols: tuple[int, ...], guards: tuple[Any, ...], device: Device
    ) -> DeviceLoopPlan:
        """Return the plan for arguments with these guards on a device, and these values of its symbols.

        Raises
        ------
        PlanMismatch
            If the program may raise exceptions, which a device cannot detect.
        """
        from ..loops.sites.device_loop_plan import DeviceLoopPlan

        key = (guards, symbols, device)
        plan: DeviceLoopPlan | None = self._plans.get(key)
        if plan is None:
            loaded, interface, names, live = self._parts(symbols)
            plan = self._plans[key] = DeviceLoopPlan(loaded, names, device, live, interface, symbols)
        return plan

    def _parts(self, symbols: tuple[int, ...]) -> tuple[LoadedPlan, LoopInterface, list[str], list[str]]:
        """Return the plan for these values of its symbols, its arguments and results, and their names."""
        if len(self._plans) >= _MAX_SIZES:
            self._plans.clear()
        first = self._first
        loaded = first if first.guard is None or first.guard(*symbols) else self.general
        interface = self.interface.for_shapes(self._shapes(*symbols))
        return (
            loaded,
            interface,
            [n for n, _ in self.description.parameters],
            [n for n, _ in interface.results],
        )
