"""The executor: finds or makes the plan of a recording, gives it memory and runs it."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import config, fpstate
from .lowering.memory import empty
from .report import counters
from .store import Store

if TYPE_CHECKING:
    from .ir.nodes import Region
    from .lowering.plan import Plan
    from .session import Recording

MAX_PLANS = 4096


class Prepared:
    """What is known of a log: its region, which slots take part, and the plan once it is compiled."""

    __slots__ = ("memory_slots", "names", "new_slots", "plan", "queued", "region", "saved", "useful")

    def __init__(self, log: tuple[Any, ...], live: tuple[int, ...], kinds: str) -> None:
        from .ir.build import build

        self.region: Region = build(log, live, kinds)
        self.plan: Plan | None = None
        self.queued = False
        arrays = self.region.arrays
        slots = sum(entry[0] in ("old", "new") for entry in log)
        self.memory_slots = [k for k in range(slots) if arrays[k].role != "temp"]
        self.new_slots = [k for k in self.memory_slots if arrays[k].role == "out" and arrays[k].base is None]
        self.names = [a.name for a in arrays if a.role != "temp"]
        self.useful = any(a.role in ("out", "inout") for a in arrays)
        self.saved = _clobbered(log, self.region)


def _clobbered(log: tuple[Any, ...], region: Region) -> list[int]:
    """The slots that are written after they may have been read, if floating-point exceptions can come:
    they are to be kept, since the region may have to run again."""
    if not any(entry[0] not in ("old", "new") and _may_raise(entry) for entry in log):
        return []
    heads = [entry[-1] for entry in log if entry[0] in ("old", "new")]
    read = {
        heads[arg[0]]
        for entry in log
        if entry[0] not in ("old", "new")
        for arg in _arguments(entry)
        if type(arg) is tuple
    }
    return [k for k, head in enumerate(heads) if region.arrays[k].role == "inout" and head in read]


def _arguments(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    if entry[0] == "map":
        return entry[6:]
    return entry[3] if entry[0] == "call" else (entry[7],)


def _may_raise(entry: tuple[Any, ...]) -> bool:
    if entry[0] == "map" and entry[1] == "cast":
        source, result = entry[2].split("->")
        return bool(source != result)
    return entry[0] == "call" or any(c in "efdFD" for c in entry[2])


class Background:
    """One thread that compiles while the interpreter serves."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(self, prepared: Prepared, options: config.Options) -> None:
        if self._thread is None or self._pid != os.getpid():  # threads do not survive a fork
            self._queue = queue.SimpleQueue()
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._work, args=(self._queue,), daemon=True)
            self._thread.start()
            atexit.register(self._stop)
        self._queue.put((prepared, options))

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            prepared, options = job
            prepared.plan = compiled(prepared.region, options)

    def _stop(self) -> None:
        """Let a compilation that runs end before the interpreter goes down."""
        if self._thread is None or self._pid != os.getpid():
            return
        while not self._queue.empty():
            self._queue.get()
        self._queue.put(None)
        self._thread.join()


class Executor:
    """The plans of a process."""

    def __init__(self) -> None:
        self._prepared: dict[Any, Prepared] = {}
        self._background = Background()

    def prepare(self, rec: Recording) -> Prepared:
        """The entry of this log; its key has the windows' integers and who is still alive."""
        live = tuple(
            k for k, s in enumerate(rec.slots) if type(s) is not Store and s() is not None
        )  # fmt: skip
        key = (tuple(rec.log), live, rec.kinds)
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= MAX_PLANS:
                self._prepared.clear()
            prepared = self._prepared[key] = Prepared(*key)
        else:
            counters.plan_hits += 1
        return prepared

    def run(self, rec: Recording, options: config.Options) -> Callable[[], None]:
        """Run a recording; gives back what is left to say to the user once everything is in its place.

        Raises
        ------
        MemoryError
            Before anything is changed.
        """
        prepared = self.prepare(rec)
        counters.flushes += 1
        counters.statements += len(rec.log) - len(rec.slots)
        if not prepared.useful:
            return _nothing
        declared = prepared.region.arrays
        fresh = {k: empty(declared[k].shape, declared[k].dtype) for k in prepared.new_slots}
        arrays = {k: fresh[k] if k in fresh else _existing(rec, k, fresh) for k in prepared.memory_slots}
        plan = prepared.plan or self._compile(prepared, options)
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

    def _compile(self, prepared: Prepared, options: config.Options) -> Plan | None:
        """The compiled plan, or None while the interpreter has to do."""
        if options.jit == "off":
            return None
        if options.jit == "eager":
            prepared.plan = compiled(prepared.region, options)
            return prepared.plan
        if not prepared.queued:
            prepared.queued = True
            self._background.submit(prepared, options)
        return None


def compiled(region: Region, options: config.Options) -> Plan:
    """The plan of a region: passes, schedules, code.  What does not compile is left to the interpreter."""
    from .ir.passes import pipeline
    from .lowering.plan import compile_region

    return compile_region(
        pipeline.run(region, debug=options.debug), target="cpu", cache_dir=options.cache_dir
    )


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
    return witness.notes


def _execute(
    rec: Recording, prepared: Prepared, plan: Plan, arrays: dict[int, Any], options: config.Options
) -> list[Any]:
    saved = {k: arrays[k].copy() for k in prepared.saved} if rec.mask else {}
    scalars = rec.scalar_arrays()
    every = [*arrays.values(), *scalars.values()]
    addresses = [a.__array_interface__["data"][0] for a in every]
    flags = plan.run(every, addresses, threads=options.threads)
    if not flags & rec.mask:
        return []
    # What raised it, and was it real?  The interpreter knows, on the inputs as they were.
    again = {
        k: saved[k] if k in saved else a if prepared.region.arrays[k].role == "in" else a.copy()
        for k, a in arrays.items()
    }
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
