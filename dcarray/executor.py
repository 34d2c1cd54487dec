"""The executor: finds or makes the plan of a recording, gives it memory and runs it."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import config, forms, fpstate
from .lowering.memory import empty
from .report import counters, note
from .store import Store

if TYPE_CHECKING:
    from .ir.nodes import Region
    from .lowering.plan import Plan
    from .session import Recording

MAX_PLANS = 4096


class Prepared:
    """What is known of one log: its form, and the plan that serves it once there is one."""

    __slots__ = ("_region", "form", "key", "plan", "symbols", "tally", "values")

    def __init__(self, key: tuple[forms.Log, tuple[int, ...], str], form: forms.Form, values: Any) -> None:
        self.key = key
        self.form = form
        self.values = values
        self.plan: Plan | None = None
        self.symbols: tuple[int, ...] = ()
        self.tally: tuple[int, int, int] | None = None  # what a run of the plan adds to the counters
        self._region: Region | None = None

    @property
    def useful(self) -> bool:
        return self.form.useful

    @property
    def region(self) -> Region:
        """The region with this log's integers."""
        if self._region is None:
            from .ir.build import build

            self._region = build(*self.key)
        return self._region


class Background:
    """One thread that compiles while the interpreter serves."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(self, job: Callable[[], None]) -> None:
        if self._thread is None or self._pid != os.getpid():  # threads do not survive a fork
            self._queue = queue.SimpleQueue()
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._work, args=(self._queue,), daemon=True)
            self._thread.start()
            atexit.register(self._stop)
        self._queue.put(job)

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            job()

    def _stop(self) -> None:
        """Let a compilation that runs end before the interpreter goes down."""
        if self._thread is None or self._pid != os.getpid():
            return
        while not self._queue.empty():
            self._queue.get()
        self._queue.put(None)
        self._thread.join()

    def wait(self) -> None:
        """Return when everything that was submitted so far is done."""
        if self._thread is not None and self._pid == os.getpid():
            done = threading.Event()
            self._queue.put(done.set)
            done.wait()


class Executor:
    """The plans of a process."""

    def __init__(self) -> None:
        self._prepared: dict[Any, Prepared] = {}
        self._forms: dict[Any, forms.Form] = {}
        self.background = Background()

    def prepare(self, rec: Recording) -> Prepared:
        """The entry of this log; its key has the windows' integers and who is still alive."""
        live = tuple([k for k, s in enumerate(rec.slots) if type(s) is not Store and s() is not None])
        key = (tuple(rec.log), live, rec.kinds)
        prepared = self._prepared.get(key)
        if prepared is not None:
            counters.plan_hits += 1
            return prepared
        skeleton, values = forms.split(key[0])
        form = self._forms.get((skeleton, live, rec.kinds))
        if form is None:
            if len(self._forms) >= MAX_PLANS:
                self._forms.clear()
            form = self._forms[skeleton, live, rec.kinds] = forms.Form(key[0], live, values)
        if len(self._prepared) >= MAX_PLANS:
            self._prepared.clear()
        prepared = self._prepared[key] = Prepared(key, form, values)
        return prepared

    def run(self, rec: Recording, options: config.Options) -> Callable[[], None]:
        """Run a recording; gives back what is left to say to the user once everything is in its place.

        Raises
        ------
        MemoryError
            Before anything is changed.
        """
        prepared = self.prepare(rec)
        form = prepared.form
        counters.flushes += 1
        counters.statements += len(rec.log) - len(rec.slots)
        if not form.useful:
            return _nothing
        fresh: dict[int, Any] = {}
        for slot in form.fresh:
            store = rec.store_at(slot)
            if store is not None:
                fresh[slot] = empty(store.shape, store.dtype)
            else:  # its last holder, in another thread, has let it go meanwhile
                declared = prepared.region.arrays[slot]
                fresh[slot] = empty(declared.shape, declared.dtype)
        arrays = {k: fresh[k] if k in fresh else _existing(rec, k, fresh) for k in form.memory}
        plan = prepared.plan or self._plan(prepared, options)
        if plan is None:
            notes = _interpret(rec, prepared, arrays)
        else:
            notes = _execute(rec, prepared, plan, arrays, options)
        for slot, mem in fresh.items():
            store = rec.store_at(slot)
            if store is not None and store.mem is None:
                store.bind(mem)
        if not notes:
            return _nothing
        log, places = rec.log, rec.places
        return lambda: fpstate.tell(notes, lambda k: str(log[k][1]), lambda k: line_of(places[k]))

    def _plan(self, prepared: Prepared, options: config.Options) -> Plan | None:
        """The plan of a log that has none yet, or None while the interpreter has to do."""
        if options.jit == "off":
            return None
        form = prepared.form
        if form.exact is not None and prepared.values == form.sample:
            prepared.plan = form.exact
            return form.exact
        for general in form.general:
            symbols = general.fits(prepared.values)
            if symbols is not None and general.serves(symbols):
                prepared.symbols = symbols
                prepared.plan = general.plan
                return general.plan
        job = self._job(prepared, options)
        if job is not None:
            if options.jit == "eager":
                job()
                return self._plan(prepared, options)
            self.background.submit(job)
        return None

    def _job(self, prepared: Prepared, options: config.Options) -> Callable[[], None] | None:
        """What is to be compiled so that this log gets a plan; None if that is under way."""
        form = prepared.form
        if prepared.values == form.sample:
            if form.queued:
                return None
            form.queued = True
            region = prepared.region

            def exact() -> None:
                form.exact = compiled(region, options)

            return exact
        for general in form.general:
            if general.plan is None and general.fits(prepared.values) is not None:
                return None
        general = forms.General(*prepared.key, form.sample, prepared.values)
        form.general = [*form.general[1 - forms.MAX_GENERAL :], general]
        return lambda: general.compile(lambda region: compiled(region, options))


def compiled(region: Region, options: config.Options) -> Plan:
    """The plan of a region: passes, schedules, code.  What does not compile is left to the interpreter."""
    from .ir.passes import pipeline
    from .lowering import cache
    from .lowering.plan import compile_region

    final = pipeline.run(region, debug=options.debug)
    code = cache.of(options.cache_dir)
    before = code.stats()
    plan = compile_region(final, target="cpu", cache_dir=options.cache_dir, fallback=_uncompiled)
    after = code.stats()
    counters.compiles += after["compiled"] - before["compiled"]
    counters.cache_hits += after["hits"] - before["hits"]
    counters.disk_hits += after["disk_hits"] - before["disk_hits"]
    return plan


def _uncompiled(reason: str, loc: Any) -> None:
    """A statement that every run of the plan leaves to the interpreter."""
    note(f"interpreter ({reason})", where=("<compiled region>", 0))


def _tally(prepared: Prepared, plan: Plan) -> tuple[int, int, int]:
    """Kernels, interpreted statements, and bytes moved by one run with this log's integers."""
    from .ir.traffic import fused_all

    names = (symbol.name for symbol in plan.region.symbols)
    sizes = dict(zip(names, prepared.symbols, strict=True))
    stats = plan.stats
    return stats["kernels"], stats["interpreted"], fused_all(plan.region.body, plan.region, sizes).bytes


def _existing(rec: Recording, slot: int, fresh: dict[int, Any]) -> Any:
    """The memory of a slot that was there before, or that is a reshape of a fresh one."""
    store = rec.store_at(slot)
    assert store is not None
    if store.mem is None:
        return fresh[store.family.slot].view(store.dtype).reshape(store.shape)
    return store.mem


def _interpret(rec: Recording, prepared: Prepared, arrays: dict[int, Any]) -> list[Any]:
    from .ir import interp

    memory = {f"a{k}": a for k, a in arrays.items()} | rec.scalar_arrays()
    witness = fpstate.Witness(lambda loc: rec.states[loc])
    interp.run(prepared.region, memory, around=witness.around)
    counters.interpreted += len(rec.log) - len(rec.slots)
    return witness.notes


def _execute(
    rec: Recording, prepared: Prepared, plan: Plan, arrays: dict[int, Any], options: config.Options
) -> list[Any]:
    form = prepared.form
    saved = {k: arrays[k].copy() for k in form.saved} if rec.mask else {}
    every = [*arrays.values(), *rec.scalar_arrays().values()]
    addresses = [a.__array_interface__["data"][0] for a in every]
    flags = plan.run(every, addresses, prepared.symbols, threads=options.threads)
    tally = prepared.tally
    if tally is None:
        tally = prepared.tally = _tally(prepared, plan)
    counters.kernels += tally[0]
    counters.interpreted += tally[1]
    counters.bytes += tally[2]
    if not flags & rec.mask:
        return []
    # What raised it, and was it real?  The interpreter knows, on the inputs as they were.
    again = {
        k: saved[k] if k in saved else a if k in form.inputs else a.copy() for k, a in arrays.items()
    }  # fmt: skip
    return _interpret(rec, prepared, again)


def line_of(place: Any) -> tuple[str, int]:
    """File and line of a recorded place."""
    if place is None:
        return "<unknown>", 0
    code, instruction = place
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def _nothing() -> None:
    pass
