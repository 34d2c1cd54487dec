"""Short runs: a site's plan on values like those of its last run, by one call in C instead of many in Python.

A run by the site's server, in Python, takes some ten microseconds, in which NumPy adds up thousands of
elements.  A short run makes the same checks in C, and leaves the run to the server if one fails.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.counters import SETTLE
from dcarray.core.fp_bits import INVALID, RAISING
from dcarray.core.native import BUILT
from dcarray.core.processes import LOCK
from dcarray.lowering.program.native_launches import NativeLaunches, native_launches
from dcarray.lowering.runtime.array_memory import MAPPED
from dcarray.tiering import admission

from ..entry.bound_names import EVERYWHERE, INSIDE
from ..entry.entry_values import Result
from ..entry.members import Check
from .keys import size_of
from .plan_values import PYTHON_TYPES

if TYPE_CHECKING:
    from .keys import Entry
    from .outcome import Outcome
    from .path_values import PathValues
    from .run_loop import LoopPlan
    from .site import Site
    from .site_source import SiteSource

__all__ = ["ShortRuns"]

_LASTS = 0.05  # seconds for which a run may rely on what the server found
_MOST_UNDONE = 1 << 16  # bytes of arrays that are overwritten, of which a short run makes copies
_MOST_LAUNCHES, _MOST_BLOCK = 6, 40  # and of its driver: launches, and integers for each
_TRIAL = 1e-3  # and of runs by which it is found out how long they take
_GIVEN, _REAL, _INTEGER, _FRESH, _MADE, _SCALAR, _ITEM, _CONSTANT, _SAME, _EITHER = (
    "gfinmswcae"  # as in short_runs.h
)
_BOUND = "b"  # a result that a function makes of the values and the parameters' arrays
_COMPUTED = {"d": "q", "l": "k"}  # by dtype: numbers that a function computes from the values
_Part = tuple[str, int, Any, Any]


class ShortRuns:
    """The short runs of one site: C functions, one for each plan that can have one.

    Parameters
    ----------
    site : Site
    source : SiteSource
        The site's statements as they are planned.
    paths : PathValues or None
        The parts of objects that the plans' arguments are; None if they are the site's values.

    Attributes
    ----------
    run : callable or None
        The current short run if it takes the plan's arguments, since these are not the site's values.
    values : tuple
        The site's values while they are served, if the plans' arguments are parts of them.
    """

    def __init__(self, site: Site, source: SiteSource, paths: PathValues | None) -> None:
        self._site, self._source, self._paths = site, source, paths
        self.run: Any = None
        self.values: tuple[Any, ...] = ()
        self._trial: tuple[Entry, Any] | None = None
        # seconds of the trial's runs, with reading and binding parts of objects
        self._whole: list[float] = []
        self._by_plan: dict[int, tuple[LoopPlan, Any, Any]] = {}

    def use(
        self, plan: LoopPlan, values: tuple[Any, ...], entry: Entry, members: list[Check],
        trial: bool = False,
    ) -> Any:  # fmt: skip
        """Have the site call a plan's short run directly for a while.  Return the short run; None if the plan
        can have none.

        Parameters
        ----------
        plan : LoopPlan
            The plan, which has just run and has checks of its values.
        values : tuple
            The values with which it ran: the site's arguments, then the values of its other names.
        entry : Entry
            The plan's key.
        members : list of Check
            Checks that functions of modules are still those that were compiled.
        trial : bool, optional
            Whether the short run is in a trial, which counts its runs.
        """
        short, whole = self._runs_of(plan, values, entry)
        self.run = None
        if short is None:
            return None
        if not trial:
            self._settle(short, plan)
        self._arm(short, plan, members, _TRIAL if trial else _LASTS)
        if whole is None:
            self.run = short
        else:
            with LOCK:
                self._site.prefer(whole)
        return short

    def begin_trial(
        self, outcome: Outcome, plan: LoopPlan, values: tuple[Any, ...], entry: Entry, members: list[Check]
    ) -> None:
        """Run a plan by its short run, if it has one that may run with these values.  The next runs use it,
        too: several are timed, since the first ones find nothing in the caches."""
        short, whole = self._runs_of(plan, values, entry)
        if short is None:
            return
        self._whole.clear()
        self._settle(short, plan)
        short.otherwise(lambda *values: ())  # the server that asks would be asked again
        self._arm(short, plan, members, _TRIAL)
        if short(*values[: len(values) - len(self._source.others)], outcome.take):
            self._trial = entry, self.use(plan, values, entry, members, True)
        elif whole is short:  # the program may call it since an earlier time
            short.otherwise(self._site.ask)

    @property
    def in_trial(self) -> bool:
        """Whether a trial (`begin_trial`) is under way."""
        return self._trial is not None

    def ran(self, seconds: float) -> None:
        """Note the time of a run of the trial, with reading and binding parts of objects in Python."""
        self._whole.append(seconds)

    def end_trial(self) -> tuple[Entry, float] | None:
        """End the trial of a plan's short runs.  Return the plan's entry, and the mean seconds of a run; None
        if there is no trial, or no run succeeded."""
        if self._trial is None:
            return None
        (entry, short), self._trial = self._trial, None
        runs, seconds = self._settle(short, entry.plan)
        whole = self._whole[1:]  # without what led to the trial
        took = max(seconds / max(runs, 1), sum(whole) / max(len(whole), 1)) + admission.CALL
        return (entry, took) if runs else None

    def _settle(self, short: Any, plan: LoopPlan | None) -> tuple[int, float]:
        """Add the short runs since the last call to the counts; return their number and their seconds."""
        counts: tuple[int, float] = short.take()
        runs, seconds = counts
        self._site.runs += runs
        self._site.compiled += seconds
        if plan is not None:
            plan.count(runs)
        return counts

    def may_have_one(self, plan: LoopPlan) -> bool:
        """Whether a plan that has checks has a short run, or may turn out to have one."""
        known = self._by_plan.get(id(plan))
        return known is None or known[1] is not None

    def _runs_of(self, plan: LoopPlan, values: tuple[Any, ...], entry: Entry) -> tuple[Any, Any]:
        """Return a plan's short run, and the function that takes the site's values and calls it; None for
        each that there is not."""
        known = self._by_plan.get(id(plan))
        if known is None:
            short = self._make(plan, values, entry)
            whole = short
            if short is not None and self._paths is not None:
                held = self.values
                if not held:  # another thread has just been served, too
                    return short, None
                whole = self._paths.object_run(self._site, short, held)
            known = self._by_plan[id(plan)] = plan, short, whole
        return known[1:]

    def _arm(self, short: Any, plan: LoopPlan, members: list[Check], lasts: float) -> None:
        state, options = fp_state.current_state(), config.current()
        flags = fp_state.watched_flags(state)
        if plan.may_raise:
            flags |= RAISING
        elif plan.checked and flags & RAISING:
            flags |= INVALID
        bound = (*members, (EVERYWHERE, "modules", EVERYWHERE["modules"]), *config.in_force())
        contexts = ((config.SCOPED, config.scoped()), (fp_state.STATE, state), (INSIDE, INSIDE.get()))
        with LOCK:  # which a run holds
            short.arm(lasts, options.threads, flags, plan.symbols, bound, contexts)

    def _make(self, plan: LoopPlan, values: tuple[Any, ...], entry: Entry) -> Any:
        """Return a new short run of a plan; None if it cannot have one.  ``values`` have passed the plan's
        checks; their types say from where each parameter's memory is."""
        source = self._source
        given = len(values) - len(source.others)
        if not BUILT or not plan.is_simple or not plan.checks:
            return None
        parameters = _parameters(plan, values)
        if parameters is None:
            return None
        from dcarray._native.extension import make_short_run

        sizes = tuple([(*place, symbol, added) for place, symbol, added in entry.sizes])
        places = [place for place, _, _ in entry.sizes]
        firsts = tuple([places.index(place) for place in entry.symbols])

        native = native_launches(plan.driver)
        if native is None or not _is_short(native):
            native = NativeLaunches(0, (), lambda *symbols: ())
        try:
            short = make_short_run(
                given, source.others, self._site.names, vars(builtins), plan.checks,
                plan.driver, _serves(plan, entry, native.numbers), parameters, _results(plan), sizes, firsts,
                LOCK, np.empty, bool(plan.overwritten), native.temporary, native.launches, self._site.failed,
            )  # fmt: skip
        except ValueError:  # too many of something
            return None
        SETTLE.append(lambda: self._settle(short, plan))
        return short


def _is_short(native: NativeLaunches) -> bool:
    """Whether a driver does so little that a short run can do it."""
    blocks = [len(launch.places) for launch in native.launches]
    few = len(blocks) <= _MOST_LAUNCHES and max(blocks, default=0) <= _MOST_BLOCK
    return few and native.temporary <= _MOST_UNDONE


def _serves(
    plan: LoopPlan, entry: Entry, numbers: Callable[..., tuple[int, ...]]
) -> Callable[[tuple[int, ...]], Any]:
    """Return a function that takes the symbols' values and says whether a short run may serve them: None if
    the plan may not run with them, may run for long, or makes or overwrites large arrays; else the shapes of
    the parameters (empty if no shape depends on symbols), and the integers of the launches (empty if the
    driver has to be called)."""
    parameters, kept = plan.parameters, plan.kept

    def fits(shapes: Sequence[tuple[int, ...]]) -> bool:
        sizes = [math.prod(s) * d.itemsize for (_, d, _, _), s in zip(parameters, shapes, strict=True)]
        large = any(f is None and n >= MAPPED for (f, *_), n in zip(parameters, sizes, strict=True))
        return not large and sum(sizes[k] for k in plan.overwritten) <= _MOST_UNDONE

    always = fits([shape for _, _, shape, _ in parameters])

    def serves(symbols: tuple[int, ...]) -> Any:
        if not plan.holds(symbols) or size_of(symbols) > entry.reach:
            return None
        shapes = plan.shapes(symbols)
        if not (fits(shapes) if shapes else always):
            return None
        try:
            now = numbers(*symbols)
        except ArithmeticError:
            now = ()  # as the driver says
        return (*shapes, *[shapes[k] for k in kept]) if shapes else (), now

    return serves


def _parameters(plan: LoopPlan, values: tuple[Any, ...]) -> tuple[_Part, ...] | None:
    """Return for each parameter how a short run gets its memory; None if it cannot for one of them."""
    parts: list[_Part] = []
    for fetch, dtype, shape, size in plan.parameters:
        if fetch is None:
            if size * dtype.itemsize >= MAPPED:
                return None
            parts.append((_FRESH, 0, shape, dtype))
            continue
        if type(fetch) is not int:
            if dtype.char not in _COMPUTED or dtype.itemsize != 8:
                return None
            parts.append((_COMPUTED[dtype.char], 0, fetch, None))
            continue
        value = values[fetch]
        if type(value) is np.ndarray:
            kind = _GIVEN
        elif isinstance(value, float) and dtype.char == "d":
            kind = _REAL
        elif type(value) is int and dtype.char == "l" and dtype.itemsize == 8:
            kind = _INTEGER
        else:
            return None
        parts.append((kind, fetch, None, None))
    kept = [plan.parameters[k] for k in plan.kept]
    return (*parts, *[(_FRESH, 0, shape, dtype) for _, dtype, shape, _ in kept])


def _results(plan: LoopPlan) -> tuple[_Part, ...]:
    """Return for each live name how a short run makes its value."""
    parts: list[_Part] = []
    first: dict[str, int] = {}
    for k, (name, result) in enumerate(plan.results):
        if result is None:
            result = Result("alias", name)
        if result.kind == "value":
            parts.append((_CONSTANT, 0, result.value, None))
        elif result.kind == "alias":
            parts.append((_GIVEN, plan.place[result.name], None, None))
        elif result.kind == "scalar":
            parts.append((_ITEM if result.weak else _SCALAR, plan.at_of[result.name], None, None))
        elif result.kind == "either" and not result.weak and type(PYTHON_TYPES[result.value[0]]) is type:
            python, flag = result.value
            parts.append((_EITHER, plan.at_of[result.name], plan.at_of[flag], PYTHON_TYPES[python]))
        elif result.kind == "array":
            before = first.setdefault(result.name, k)
            parts.append(
                (_MADE, plan.at_of[result.name], None, None) if before == k else (_SAME, before, None, None)
            )
        else:
            parts.append((_BOUND, 0, plan.bindings[k], None))
    return tuple(parts)
