"""The executor: finds or makes the plan of a recording, gives it memory and runs it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dcarray.core import config, fp_state, unpatched
from dcarray.core.backend import backend
from dcarray.core.counters import counters, note, user_line
from dcarray.core.device_backend import device_backend
from dcarray.core.processes import communicator
from dcarray.lowering.runtime import perf_map
from dcarray.plans import templates
from dcarray.plans.background import BACKGROUND
from dcarray.plans.plan_folder import stores_plans
from dcarray.plans.slot import PlanState
from dcarray.recording import log_format, session
from dcarray.tiering.admission import NANOSECOND, PATIENCE, PLANNED_AT_ONCE

from . import run_plan
from .interpreter import OpByOp

if TYPE_CHECKING:
    from dcarray.plans.log_requests import LogRequest
    from dcarray.plans.requests import Request
    from dcarray.recording.log import Recording

MAX_PLANS = 4096


class Executor:
    """The cache of plans of a process, and the runs of its recordings."""

    def __init__(self) -> None:
        # by the target, fastmath, and the exceptions that are not ignored
        self._entries: dict[tuple[str, bool, int], dict[Any, templates.PlanEntry]] = {}
        self._templates: dict[tuple[str, bool, int], dict[Any, templates.LogTemplate]] = {}
        self.background = BACKGROUND
        BACKGROUND.start_planning = _start_planning

    def prepare(self, rec: Recording, options: config.Options) -> templates.PlanEntry:
        """Return the plan-cache entry of a log, by its text, its windows' integers and the slots still
        held."""
        slots, unstored = rec.slots, rec.unstored
        live = tuple([k for k in rec.news if slots[k]() is not None and k != unstored])
        key = (tuple(rec.log), live, rec.kinds)
        kind = options.target, options.fastmath, rec.watched
        plans = self._entries.get(kind)
        if plans is None:
            plans, self._templates[kind] = self._entries.setdefault(kind, {}), {}
        plan_entry = plans.get(key)
        if plan_entry is not None:
            counters.plan_hits += 1
            return plan_entry
        skeleton, values = log_format.split(key[0])
        known = self._templates[kind]
        template = known.get((skeleton, live, rec.kinds))
        if template is None:
            if len(known) >= MAX_PLANS:
                known.clear()
            template = known[skeleton, live, rec.kinds] = templates.LogTemplate(
                key[0], live, values, rec.watched
            )
        if len(plans) >= MAX_PLANS:
            plans.clear()
        plan_entry = plans[key] = templates.PlanEntry(key, template, values)
        return plan_entry

    def run(self, rec: Recording, options: config.Options) -> Callable[[], None]:
        """Run a recording; return a function that issues its warnings, for when all results are stored."""
        if rec.device is not None:
            return device_backend().run(self, rec, options)
        comm = communicator()
        if comm is None:
            return self.run_undistributed(rec, options)
        return backend().run(self, rec, options, comm)

    def run_undistributed(self, rec: Recording, options: config.Options) -> Callable[[], None]:
        """Run a recording on whole memory.

        If anything goes wrong - there is no memory, or a bug - the recording runs op by op; statements
        that fail even then are in ``rec.leftover``.
        """
        try:
            notes = self._run_region(rec, options)
        except Exception as error:
            if options.debug and not isinstance(error, MemoryError):
                raise
            if rec.sites and not isinstance(error, MemoryError):
                report_failure("a region is run call by call", error, run_plan.line_of(rec.sites[0]))
            error.__traceback__ = None  # its frames hold memory
            notes = _run_op_by_op(rec, None)
        return exception_reporter(rec, notes)

    def _run_region(self, rec: Recording, options: config.Options) -> list[Any]:
        """Run a recording by its plan if it has one, else op by op; returns the floating-point notes.

        Raises
        ------
        Exception
            Before anything is changed.
        """
        plan_entry = self.prepare(rec, options)
        counters.flushes += 1
        counters.statements += len(rec.log) - len(rec.slots)
        template = plan_entry.template
        if template.doubts.skip_plan():
            return _run_op_by_op(rec, plan_entry)
        if not template.useful:
            return []
        asks = not rec.one_off or options.jit == "eager"
        plan = self.plan_for(plan_entry, options, asks, rec.sites)
        if plan is not None:
            return self._run_by_plan(rec, plan_entry, plan, options)
        return _run_op_by_op(rec, plan_entry, self.background.add_unplanned_work)

    def _run_by_plan(
        self,
        rec: Recording,
        plan_entry: templates.PlanEntry,
        plan: templates.ExecutablePlan,
        options: config.Options,
    ) -> list[Any]:
        """Run a recording by its plan; gives the notes of floating-point exceptions."""
        template = plan_entry.template
        if plan_entry.direct:
            return run_plan.run_kernels(rec, plan_entry, plan, options.threads)
        arrays, addresses, fresh = run_plan.allocate_arrays(rec, template)
        told = run_plan.run_steps(rec, plan_entry, plan, arrays, addresses, options)
        if told is None:
            return _run_op_by_op(rec, plan_entry)
        for store, mem, address in fresh:
            if store.mem is None:
                store.bind_new(mem, address)
        return told

    def plan_for(
        self, plan_entry: templates.PlanEntry, options: config.Options, asks: bool = True,
        sites: Sequence[Any] = (),
    ) -> templates.ExecutablePlan | None:  # fmt: skip
        """Return the plan of a log, or None while there is none.

        With ``asks``, a missing plan is made now, or in the background once that is worth it; ``sites`` are
        the recording's.
        """
        if options.jit == "off":
            return None
        if plan_entry.plan is None and plan_entry.find_plan() is None and asks:
            self._ask(plan_entry, options, partial(_place, sites[:1], sites[-1:]))
            return plan_entry.find_plan()
        return plan_entry.plan

    def _ask(
        self, plan_entry: templates.PlanEntry, options: config.Options, place: Callable[[], tuple[str, str]]
    ) -> None:
        """Ask for a plan of a log that has none: at once, or in the background when the log comes again."""
        template, later = plan_entry.template, options.jit == "background"
        slot = template.slot(plan_entry.values)
        template.seen += 1
        if slot is None:  # a plan serves other sizes
            return
        # it is clear before it has run; a library takes less for them, and wants all cores
        large = template.kernel_elements * NANOSECOND > PATIENCE
        if later and template.seen == 1:
            if stores_plans(options.cache_dir) and not options.debug:
                look = partial(_attempt, partial(_load_stored, slot, plan_entry, options, place), False)
                if large:
                    look()
                else:
                    self.background.submit(look)
            if template.elements < PLANNED_AT_ONCE or slot.plan is not None:
                return
        if not slot.ask():
            if slot.state is PlanState.ASKED and not later:
                self.background.wait()
            return

        def make() -> templates.ExecutablePlan:  # its imports are the background thread's, if that makes it
            from dcarray.plans import provider

            request = _request(plan_entry, options)
            with perf_map.named(place):
                loaded = provider.obtain(request, options, self.background)
            return templates.ExecutablePlan(loaded, request)

        job = partial(_attempt, partial(slot.make, make), options.debug)
        if not later:
            job()
            return
        if large:
            self.background.add_unplanned_work(PATIENCE)
        self.background.submit_later(job, NANOSECOND * template.kernel_elements * template.seen)

    def request_of(
        self, plan_entry: templates.PlanEntry, options: config.Options
    ) -> tuple[Request, tuple[int, ...]]:
        """Return the request that the plan of a log was made for, or would be, and the values of its symbols
        where there is a plan."""
        plan = plan_entry.find_plan()
        if plan is not None:
            return plan.request, plan_entry.symbols
        request = _request(plan_entry, options)
        related = templates.are_related(request.old, request.new)
        return request if related else request._replace(old=request.new), ()

    def unplanned(self, rec: Recording, plan_entry: templates.PlanEntry, options: config.Options) -> str:
        """Return why a log is run op by op though a plan can be made for it; empty if the plan runs it."""
        if options.jit == "off":
            return "NumPy runs these statements one by one, since the option jit is off"
        if plan_entry.plan is None and not templates.are_related(
            plan_entry.template.sample, plan_entry.values
        ):
            return "NumPy runs these statements one by one, since a plan serves other sizes of the same calls"
        return ""


def _request(plan_entry: templates.PlanEntry, options: config.Options) -> LogRequest:
    """Return the request for a log's plan."""
    from dcarray.plans.log_requests import LogRequest

    template = plan_entry.template
    return LogRequest(
        *plan_entry.key, template.sample, plan_entry.values, tuple(template.saved),
        options.fastmath, options.threads, options.cache_dir, options.target,
    )  # fmt: skip


def _place(first: Sequence[Any], last: Sequence[Any]) -> tuple[str, str]:
    """Return the function and the lines of the first and the last call of a recording."""
    if not (first and last):
        return "<recording>", ""
    (file, begin), (other, end) = run_plan.line_of(first[0]), run_plan.line_of(last[0])
    lines = f"-{end}" if file == other and end > begin else ""
    return first[0][0].co_qualname, f"{file}:{begin}{lines}"


def _load_stored(
    slot: templates.TemplatePlan, plan_entry: templates.PlanEntry, options: config.Options,
    place: Callable[[], tuple[str, str]],
) -> None:  # fmt: skip
    """Fill a slot with the stored plan, made by another process, if there is one."""
    from dcarray.plans import provider

    request = _request(plan_entry, options)
    with perf_map.named(place):
        plan = provider.load_stored(request)
    if plan is not None and slot.plan is None:
        slot.fill(templates.ExecutablePlan(plan, request))


def exception_reporter(rec: Recording, notes: list[Any]) -> Callable[[], None]:
    """Return a function that raises or warns of noted floating-point exceptions and failures."""
    if not notes and not _unreported:
        return _nothing
    calls, sites = rec.statements(), rec.sites

    def after() -> None:
        _warn_of_failures()
        fp_state.emit(
            fp_state.call_handlers(notes, lambda k: sites[k][2]),
            lambda k: run_plan.name_in_warnings(calls[k], sites[k]),
            lambda k: run_plan.line_of(sites[k]),
        )

    return after


def _attempt(job: Callable[[], None], debug: int) -> None:
    """Run a planning job; if it fails, recordings run without that plan, and the user is warned once."""
    try:
        job()
    except Exception as error:
        if debug:
            raise
        report_failure("a region is not compiled", error, ("<compiled region>", 0))


def report_failure(what: str, error: BaseException, where: tuple[str, int]) -> None:
    """Note a failure in the report; warn once of each reason, when no call of the user is half done."""
    reason = f"{type(error).__name__}: {error}"
    note(f"interpreter ({reason})", where=where)
    if reason not in _reported:
        _reported.add(reason)
        _unreported.append(f"{what}: {reason}")


def _warn_of_failures() -> None:
    while _unreported:
        warnings.warn_explicit(_unreported.pop(0), RuntimeWarning, *user_line())


_reported: set[str] = set()
_unreported: list[str] = []


def _run_op_by_op(
    rec: Recording, plan_entry: templates.PlanEntry | None, worked: Callable[[float], None] | None = None
) -> list[Any]:
    """Run a recording op by op.  ``worked`` is called with the seconds that a plan could save in part."""
    witness = fp_state.Witness(lambda loc: rec.sites[loc][2])
    start = unpatched.perf_counter()
    run = OpByOp(rec, run_plan.steps_of(rec, plan_entry), witness)
    counters.interpreted += run.run()
    if worked is not None:
        worked(unpatched.perf_counter() - start - run.elsewhere)
    if run.left:
        rec.leftover = (run.replay(), run.error)
    return witness.notes


def _start_planning() -> None:
    from dcarray.plans import client

    client.CLIENT.start()


def _nothing() -> None:
    pass


EXECUTOR = Executor()
session.EXECUTOR = EXECUTOR


def wait(timeout: float | None = None) -> bool:
    """Wait until all plans that are being made in the background are ready, and devices have done their work.

    With the option ``jit="background"`` repeated calls are compiled by another process, while NumPy runs
    them; a device is given work that goes on when the call returns.  A program that measures compiled code,
    or a device, waits here.

    Parameters
    ----------
    timeout : float, optional
        The most seconds to wait for plans; by default there is no limit, and devices are waited for, too.
        With 0 the call only asks.

    Returns
    -------
    bool
        Whether all of them are ready.

    Examples
    --------
    >>> import dcarray as dc
    >>> x = dc.ones(1_000_000)
    >>> for _ in range(2):
    ...     y = dc.evaluate(x * 2 + 1)
    >>> dc.wait()
    True
    """
    background = EXECUTOR.background
    if timeout is None and device_backend.cache_info().currsize:  # else no array is on a device
        device_backend().synchronise()
    if timeout == 0:
        return not background.pending
    return background.wait(timeout)
