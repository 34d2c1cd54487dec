"""``dc.explain``: the recordings and plans behind a lazy array, or behind a call of a function."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from dcarray.core import open_door
from dcarray.core.config import current
from dcarray.core.counters import counters, settle
from dcarray.core.device_backend import device_backend
from dcarray.core.handle import Handle
from dcarray.core.processes import communicator
from dcarray.execution.executor import EXECUTOR
from dcarray.execution.run_plan import line_of
from dcarray.ir.nodes import Branch, Loop, Stmt, While
from dcarray.jit.loops.sites.loop_requests import LoopRequest
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.loops.sites.site_plans import watchers
from dcarray.jit.loops.syntax.path_names import has_own_names, shown
from dcarray.recording.log import Recording
from dcarray.recording.session import flush_all, sessions

from .explanation import Explanation
from .region_views import RegionView, view_program, view_request

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def explain(
    what: Any, *args: Any, llvm: bool = False, asm: bool = False, target: str | None = None, **kwargs: Any
) -> Explanation:
    """Explain how the operations that are pending on an array, or that a function records, are run.

    Parameters
    ----------
    what : ndarray or callable
        An array, whose operations stay pending; or a function, which is called.
    *args, **kwargs
        The arguments of the function.
    llvm, asm : bool
        Whether the text includes the LLVM text, and the assembly, of every kernel.
    target : {"vitis", "intel"}, optional
        Show each recording as a streaming circuit for Xilinx's or Intel's tools instead of its kernels: the
        processes and FIFOs, with an estimate of cycles, memory traffic and resources, and the text; or why
        it cannot be one.

    Returns
    -------
    Explanation
        For each recording the operations, the region after each pass, what was not fused and why, and the
        kernels; ``print`` shows it as text, notebooks as a drawing, and its method `save` writes it to a
        file.

    Raises
    ------
    TypeError
        If ``what`` is neither an array nor a function.
    ValueError
        If there is no such target.
    ProgramError
        With ``target``, if the function records nothing and does not compile.

    Notes
    -----
    The plan is made once more, as it is made for the run, and reports what it does.  Loops and runs
    of statements of accelerated code are compiled before they run, whatever the option ``jit`` says.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> x = dc.asarray(np.ones(1_000_000))
    >>> shown = dc.explain(np.sqrt(x * x + 1))
    >>> shown.kernels[0].formula
    ('a3[i] = sqrt(x[i] * x[i] + 1.0)',)
    """
    circuits = open_door("circuits") if target is not None else None
    if circuits is not None and target not in circuits.TARGETS:
        raise ValueError(f"there is no target {target!r}; use {' or '.join(map(repr, circuits.TARGETS))}")
    views: list[RegionView] = []
    if isinstance(what, Handle):
        rec = None if what._small is not None else what._store.family.dirty
        if isinstance(rec, Recording) and not rec.done:
            views += _view(rec)
    elif callable(what):
        flush_all()  # pending operations from before are not the function's
        with _collecting(views):
            kept = what(*args, **kwargs)
        for one in sessions():
            views += _view(one.rec, kept)  # alive: a result is no temporary
        del kept
        flush_all()  # else dead statements would begin the next recording
    else:
        raise TypeError(f"explain() takes a dcarray.ndarray or a function, not {type(what).__name__}")
    if target is not None and not views and not isinstance(what, Handle):
        views = [_static_view(what, args, kwargs)]  # nothing was recorded: the arguments are plain arrays
    if circuits is not None:
        views = [
            one
            if one.program is not None
            else replace(one, circuit=circuits.view_circuit(one.region, target, one.names))
            for one in views
        ]
    remark = "" if views else "nothing is pending: no kernel has to run"
    return Explanation(tuple(views), llvm, asm, remark)


def _static_view(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RegionView:
    """Return the view of a function's region, made from its source for these arguments, as `dcarray.export`
    makes it."""
    from dcarray.jit.program.static_region import static_region

    region = static_region(function, args, kwargs).region
    return RegionView(region, region, (), (), (), {}, {})


def _view(rec: Recording, result: Any = None) -> list[RegionView]:
    """Return the view of a recording; none if no statement of it would run."""
    if not rec.log:
        return []
    options = current() if rec.device is None else device_backend().planning_options(rec, current())
    plan_entry = EXECUTOR.prepare(rec, options)
    if not plan_entry.useful:
        return []
    lines = {k: _where(*line_of(place)) for k, place in enumerate(rec.sites)}
    names = {name: str(a[()]) for name, a in rec.scalar_arrays().items()}
    called = {id(store): name for name, store in _callers_arrays()}
    if isinstance(result, Handle) and result._small is None:
        called.setdefault(id(result._store), "result")
    for slot in range(len(rec.slots)):
        name = called.get(id(rec.store_at(slot)))
        if name is not None and name not in names.values():
            names[f"a{slot}"] = name
    program = _program(rec)
    if program is None:
        request, symbols = EXECUTOR.request_of(plan_entry, options)
        if rec.device is None:
            remark = EXECUTOR.unplanned(rec, plan_entry, options)
        else:
            remark = device_backend().remark(rec, options)
        return [view_request(request, lines, names, symbols, remark=remark)]
    from dcarray.comm.planning.rank_program.steps import Local
    from dcarray.distributed.plan_cache import region_request

    parts = [
        view_request(region_request(step.region, options), lines, step=number)
        for number, step in enumerate(program.steps)
        if isinstance(step, Local)
    ]
    return [view_program(plan_entry.region, program, lines, names), *parts]


def _program(rec: Recording) -> Any:
    """Return this rank's program of a recording, if several ranks run it together."""
    comm = communicator()
    if comm is None or rec.program is not None:
        return rec.program
    from dcarray.distributed.spmd_executor import program_of

    return program_of(rec, current(), comm)


def _callers_arrays() -> Iterator[tuple[str, Any]]:
    """Yield the names of whole arrays in the user's frames, those of the inner frames last."""
    frame: FrameType | None = sys._getframe(2)
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for one in reversed(frames):
        if not one.f_code.co_filename.startswith(_PACKAGE):
            for name, value in one.f_locals.items():
                if isinstance(value, Handle) and value._small is None and value._index is None:
                    yield name, value._store


def _where(file: str, line: int) -> str:
    """Return ``file:line``, with the file relative to the current folder, or its last folder and name."""
    near = os.path.relpath(file) if os.path.isabs(file) else file
    if near.startswith(os.pardir) or "site-packages" in near:
        near = os.path.join(*file.split(os.sep)[-2:])
    return f"{near}:{line}"


@contextmanager
def _collecting(views: list[RegionView]) -> Iterator[None]:
    """Collect the view of every recording of this thread that runs inside the block."""
    thread = threading.get_ident()

    def seen(rec: Recording) -> None:
        if threading.get_ident() == thread:
            views.extend(_view(rec))

    def served(request: LoopRequest) -> None:
        if threading.get_ident() == thread:
            views.append(_view_loop(request))

    _watch(seen)
    watchers.append(served)
    cold = []
    for site in SAMPLER.sites():
        site.enter = site.ask  # which sees the watchers
        if site.may_begin:
            site.enabled = True
            cold.append(site)
    try:
        yield
    finally:
        watchers.remove(served)
        vars(EXECUTOR).pop("run", None)
        for site in cold:
            site.enabled = site.enabled and site.runs > 0


def _view_loop(request: LoopRequest) -> RegionView:
    """Return the view of a compiled loop."""
    lines, region = {}, request.plan_input().region
    for place in _source_lines(region.body):
        file, _, line = place.rpartition(":")
        lines[place] = _where(file, int(line))
    names = {array.name: shown(array.name) for array in region.arrays if has_own_names(array.name)}
    return view_request(request, lines, names)


def _source_lines(body: tuple[Stmt, ...]) -> Iterator[str]:
    """Yield the source lines of the statements of a loop."""
    for stmt in body:
        if isinstance(stmt.loc, str):
            yield stmt.loc
        match stmt:
            case Loop(body=inner) | While(body=inner):
                yield from _source_lines(inner)
            case Branch(_, then, orelse):
                yield from _source_lines((*then, *orelse))


def _watch(seen: Callable[[Recording], None]) -> None:
    """Have ``seen`` called with each recording that has run."""

    def run(rec: Recording, *rest: Any) -> Any:
        after = type(EXECUTOR).run(EXECUTOR, rec, *rest)
        hits = counters.plan_hits
        seen(rec)
        counters.plan_hits = hits
        return after

    # An attribute of this one object that hides the method: without watchers a flush costs nothing more.
    vars(EXECUTOR)["run"] = run


class Collection:
    """The regions that run in this process from now on, in all threads: one for each log template, and those
    of sites whose compiled code has run."""

    MOST = 300

    def __init__(self) -> None:
        self._views: list[RegionView] = []
        self._templates: set[int] = set()
        _watch(self._seen)

    def _seen(self, rec: Recording) -> None:
        options = current() if rec.device is None else device_backend().planning_options(rec, current())
        template = id(EXECUTOR.prepare(rec, options).template)
        if template not in self._templates:
            self._templates.add(template)
            if len(self._templates) <= self.MOST:
                self._views += _view(rec)

    def explanation(self) -> Explanation:
        """Return the explanation of the regions collected so far."""
        settle()
        requests = [r for site in SAMPLER.sites() if site.runs for r in site.server.requests()]
        more = len(self._templates) + len(requests) - self.MOST
        room = max(0, self.MOST - len(self._views))
        views = (*self._views, *map(_view_loop, requests[:room]))
        remark = "" if views else "no region was run"
        return Explanation(views, remark=f"{more} more are left out" if more > 0 else remark)
