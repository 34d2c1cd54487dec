"""Routines of `dcarray.lowering.cpu.llvm.routines`, compiled at their first use, as the option ``jit``
says."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dcarray.core import config
from dcarray.lowering.runtime import perf_map
from dcarray.plans.slot import PlanSlot
from dcarray.recording.session import session

from .executor import EXECUTOR

if TYPE_CHECKING:
    from dcarray.plans.requests import RoutineRequest

__all__ = ["Compiled"]


class Compiled(PlanSlot[Any]):
    """A routine that is compiled at its first use.

    Parameters
    ----------
    module, name, argument
        As of `RoutineRequest`.
    """

    __slots__ = ("_routine",)

    def __init__(self, module: str, name: str, argument: Any) -> None:
        super().__init__()
        self._routine = module, name, argument

    def launch(self, seconds: float) -> Any:
        """Return the function that calls the routine; None while it is not compiled and NumPy, which takes
        about ``seconds``, has to do the work.
        """
        options = config.current()
        if options.jit == "off":
            return None
        session().release_held()
        if self.ask():
            if options.jit == "eager":
                self._make(options)
            else:
                EXECUTOR.background.submit_later(lambda: self._make(options))
        if self.plan is None:
            EXECUTOR.background.add_unplanned_work(seconds)
        return self.plan

    def _make(self, options: config.Options) -> None:
        from dcarray.lowering.cpu.llvm.launches import linked
        from dcarray.lowering.program import loaded_plan
        from dcarray.plans import client
        from dcarray.plans.requests import RoutineRequest

        request = RoutineRequest(*self._routine, options.cache_dir)

        def compiled() -> Any:
            parts = _load_or_request(request) if options.jit == "background" else None
            with perf_map.named(lambda: (".".join(self._routine[:2]), "")):
                return linked(*(parts or _compile(request)))

        with suppress(loaded_plan.NotPortable, client.Refused, MemoryError):  # NumPy goes on serving
            self.make(compiled)


def _compile(request: RoutineRequest) -> tuple[Any, ...]:
    """Compile a routine in this process; returns its code."""
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.program.loaded_plan import NotPortable

    try:
        return request.code()
    except Unsupported as error:
        raise NotPortable(str(error)) from error


def _load_or_request(request: RoutineRequest) -> tuple[Any, ...] | None:
    """Return the code of a routine from the cache folder or the planning process; None: there is none."""
    import pickle

    from dcarray.plans import client, disk_store, server_handle

    left = disk_store.load_bytes(request)
    if left is not None:
        with suppress(Exception):  # whatever is wrong with it, it is made anew
            parts: tuple[Any, ...] = pickle.loads(left)
            return parts
    with suppress(server_handle.NoPlanningProcess), EXECUTOR.background.waiting():
        return client.CLIENT.code(request)
    return None
