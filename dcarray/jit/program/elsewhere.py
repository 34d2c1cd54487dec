"""Programs on devices and on ranks: their regions run there, on wrapped arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dcarray.core import config
from dcarray.core.counters import note
from dcarray.core.errors import ProgramError
from dcarray.core.processes import communicator
from dcarray.jit.wrapped_mode import call_wrapped

from ..loops.entry.guards import guard_of
from ..loops.entry.lists import given
from ..loops.entry.sizes import LARGEST
from ..loops.sites.plan_values import PlanMismatch
from .annotations import Annotation
from .arguments import device_of, returned
from .compiled import CompiledProgram
from .description import ProgramLike
from .written import WrittenFunction

__all__ = ["Elsewhere", "Numbers"]

Numbers = frozenset[tuple[str, Annotation]]
"""Arguments that are numbers of other types than their annotations, with these types."""


class Elsewhere(ProgramLike):
    """The part of a `Program` that runs it on devices and on ranks."""

    _code: Callable[..., CompiledProgram]
    _as_written: Callable[[dict[str, Any], dict[str, int]], Any]
    _plain: WrittenFunction
    _name: str

    def _symbols_of(
        self, code: CompiledProgram, named: dict[str, Any], sizes: dict[str, int]
    ) -> tuple[int, ...] | None:
        """Return the values of the symbols of compiled code; None if it does not serve these."""
        known = sizes | {symbol: named[name] for name, symbol in code.interface.integers}
        symbols = tuple([known[name] for name in code.interface.symbols])
        return symbols if all(-LARGEST <= n <= LARGEST for n in symbols) and code.holds(*symbols) else None

    def _wrapped(
        self, run: Callable[..., Any], named: dict[str, Any], sizes: dict[str, int], options: config.Options
    ) -> Any:
        """Return the result of ``run`` on the wrapped arguments and sizes.  ``run`` returns it as a tuple's
        only item; if the tuple is empty, Python runs the original function."""

        def call(*values: Any) -> Any:
            both = dict(zip(named, values, strict=True))
            results = run(both, sizes)
            if results:
                return results[0]
            return self._as_written({name: given(value) for name, value in both.items()}, sizes)

        if options.device == "cpu" and communicator() is None:
            return call(*named.values())
        return call_wrapped(call, self.written, tuple(named.values()), {})

    def _on_ranks(
        self, named: dict[str, Any], _: Any, code: CompiledProgram, symbols: tuple[int, ...],
        options: config.Options,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run the region on all ranks."""
        results = code.on_ranks.run([*named.values()], symbols, options)
        return () if results is None else (returned(results, code.interface.returns),)

    def _on_device(
        self, named: dict[str, Any], sizes: dict[str, int], numbers: Numbers, options: config.Options
    ) -> tuple[Any, ...]:
        """Run the region on the device that all arrays are on."""
        values = tuple(named.values())
        device = device_of(values, options)
        if device is None or options.jit == "off" or communicator() is not None:
            return ()
        try:
            code = self._code(replace(options, target=device.target), numbers=numbers, on_device=True)
        except ProgramError:
            if not numbers:
                raise
            return ()
        symbols = self._symbols_of(code, named, sizes)
        guards = tuple([guard_of(value) for value in values])
        if symbols is None or any(guard is None for guard in guards):  # a dtype may be equal to None
            return ()
        try:
            plan = code.device_plan(symbols, guards, device)
        except PlanMismatch as reason:
            note(f"{self._name}: {reason}", kind="loop", where=self._plain.where)
            return ()
        results = plan.run(values, options)
        return () if results is None else (returned(results, code.interface.returns),)
