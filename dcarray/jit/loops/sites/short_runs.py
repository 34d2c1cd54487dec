"""Short runs: a site's plan on values like those of its last run, by one call in C instead of many in Python.

The run that the site's server does in Python takes some ten microseconds, in which NumPy adds up thousands of
elements.  A short run makes the same checks, and leaves the run to the server where one fails.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.counters import SETTLE
from dcarray.core.fp_bits import INVALID, RAISING
from dcarray.core.native import BUILT
from dcarray.core.processes import LOCK
from dcarray.lowering.runtime.buffer_pool import MAPPED

from ..entry.entry_values import Result
from ..entry.members import Check

if TYPE_CHECKING:
    from .run_loop import LoopPlan
    from .site import Site

__all__ = ["ShortRuns"]

_LASTS = 0.05  # seconds for which a run may rely on what the server found
_GIVEN, _REAL, _INTEGER, _FRESH, _MADE, _SCALAR, _ITEM, _CONSTANT, _SAME = "gfinmswca"  # as in short_runs.h
_Part = tuple[str, int, Any, Any]


class ShortRuns:
    """The short runs of one site, a callable for each plan that can have one.

    Parameters
    ----------
    site : Site

    Attributes
    ----------
    run : callable or None
        The short run of a site that has attributes, whose arguments are their values.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self.run: Any = None
        self._made: dict[int, tuple[LoopPlan, Any]] = {}

    def use(
        self, plan: LoopPlan, values: tuple[Any, ...], symbols: tuple[int, ...], members: list[Check]
    ) -> None:
        """Have a plan's values go its short run's way for a while, if it can have one.

        Parameters
        ----------
        plan : LoopPlan
            It has just run, and has checks.
        values : tuple
            What it ran with: the arguments of the site, and the values of its other names.
        symbols : tuple of int
            Which of these are the values of its symbols.
        members : list of Check
            The members of modules that it stands for.
        """
        short = self._found(plan, values, symbols)
        if short is None:
            self.run = None
        elif self._site.source.attributes is None:
            self._arm(short, plan, self._site.ask, members)
            self._site.enter = short
        else:
            self._arm(short, plan, _declined, members)
            self.run = short

    def attempt(
        self, plan: LoopPlan, values: tuple[Any, ...], symbols: tuple[int, ...], members: list[Check]
    ) -> tuple[tuple[Any, ...], float]:
        """Return what a plan's short run gives, and the seconds that it took; an empty tuple if it cannot
        have one, or may not run with these values."""
        short = self._found(plan, values, symbols)
        if short is None:
            return (), 0.0
        self._arm(short, plan, _declined, members)
        given = values[: len(values) - len(self._site.source.others)]
        begun = perf_counter()
        served = short(*given)
        return served, perf_counter() - begun

    def _found(self, plan: LoopPlan, values: tuple[Any, ...], symbols: tuple[int, ...]) -> Any:
        found = self._made.get(id(plan))
        if found is None:
            found = self._made[id(plan)] = plan, self._make(plan, values, symbols)
        return found[1]

    def _arm(
        self, short: Any, plan: LoopPlan, otherwise: Callable[..., tuple[Any, ...]], members: list[Check]
    ) -> None:
        state, options = fp_state.current_state(), config.current()
        flags = fp_state.watched_flags(state)
        if plan.may_raise:
            flags |= RAISING
        elif plan.checked and flags & RAISING:
            flags |= INVALID
        bound = (*members, *config.in_force())
        contexts = ((config.SCOPED, config.scoped()), (fp_state.STATE, state))
        short.arm(otherwise, _LASTS, options.threads, flags, plan.symbols, bound, contexts)

    def _make(self, plan: LoopPlan, values: tuple[Any, ...], symbols: tuple[int, ...]) -> Any:
        """Return a plan's short run; None if it cannot have one."""
        source = self._site.source
        given = len(values) - len(source.others)
        parameters = _parameters(plan, values)
        results = _results(plan)
        if not BUILT or parameters is None or results is None or not plan.is_simple or not plan.checks:
            return None
        from dcarray._native.extension import make_short_run

        try:
            short = make_short_run(
                given, source.others, self._site.names, vars(builtins), plan.checks,
                plan.driver, plan.serves, parameters, results, symbols, LOCK, np.empty,
            )  # fmt: skip
        except ValueError:  # too many of something
            return None

        def settle() -> None:
            runs, seconds = short.take()
            self._site.runs += runs
            self._site.compiled += seconds
            plan.count(runs)

        SETTLE.append(settle)
        return short


def _declined(*values: Any) -> tuple[Any, ...]:
    return ()


def _parameters(plan: LoopPlan, values: tuple[Any, ...]) -> tuple[_Part, ...] | None:
    """Return where the memory of each parameter is from; None if a short run cannot have it."""
    found: list[_Part] = []
    for fetch, dtype, shape, size in plan.parameters:
        if fetch is None:
            if size * dtype.itemsize >= MAPPED:
                return None
            found.append((_FRESH, 0, shape, dtype))
            continue
        if type(fetch) is not int:
            return None
        value = values[fetch]
        if type(value) is np.ndarray:
            kind = _GIVEN
        elif isinstance(value, float) and dtype.char == "d":
            kind = _REAL
        elif type(value) is int and dtype.char == "l" and dtype.itemsize == 8:
            kind = _INTEGER
        else:
            return None
        found.append((kind, fetch, None, None))
    return tuple(found)


def _results(plan: LoopPlan) -> tuple[_Part, ...] | None:
    """Return what each live name is bound to; None if a short run cannot bind one."""
    found: list[_Part] = []
    first: dict[str, int] = {}
    for k, (name, result) in enumerate(plan.results):
        if result is None:
            result = Result("alias", name)
        if result.kind == "value":
            found.append((_CONSTANT, 0, result.value, None))
        elif result.kind == "alias":
            found.append((_GIVEN, plan.place[result.name], None, None))
        elif result.kind == "scalar":
            found.append((_ITEM if result.weak else _SCALAR, plan.at_of[result.name], None, None))
        elif result.kind == "array":
            before = first.setdefault(result.name, k)
            found.append(
                (_MADE, plan.at_of[result.name], None, None) if before == k else (_SAME, before, None, None)
            )
        else:
            return None
    return tuple(found)
