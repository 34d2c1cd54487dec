"""The executor of recordings on a device.

The plan of a recording runs on buffers of the device.  If the device cannot run a recording, its elements are
copied to the host, which runs it operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dcarray.core import config, fp_state
from dcarray.core.counters import counters, note
from dcarray.core.store import Store
from dcarray.execution import run_plan
from dcarray.execution.executor import exception_reporter, report_failure
from dcarray.execution.interpreter import OpByOp
from dcarray.ir.log_entries import contiguous_log
from dcarray.lowering.gpu.host_calls import NotStarted
from dcarray.plans.templates import are_related

from .buffer import DeviceBuffer, DeviceError, lost, resident, settle_new

if TYPE_CHECKING:
    from dcarray.execution.executor import Executor
    from dcarray.lowering.gpu.device import Device
    from dcarray.recording.log import Recording

__all__ = ["bring", "bring_to_lookers_on", "planning_options", "run", "run_on_host", "try_on_device"]


def run(executor: Executor, rec: Recording, options: config.Options) -> Callable[[], None]:
    """Run a recording on its device, or else on the host; return a function to call afterwards, which gives
    NumPy's warnings."""
    notes: list[Any] = []
    if not try_on_device(executor, rec, options, rec.device):
        notes = run_on_host(rec)
    bring_to_lookers_on(rec)
    return exception_reporter(rec, notes)


def _written_heads(rec: Recording) -> set[int]:
    """Return the slots of the heads of all storage families to which a recording writes."""
    declared = rec.declarations()
    return {declared[slot].head for entry in rec.statements() for slot in entry.outs}


def try_on_device(executor: Executor, rec: Recording, options: config.Options, device: Device) -> bool:
    """Run a recording on a device if that is possible; return whether it has run.  If not, nothing that the
    host can read has changed."""
    counters.flushes += 1
    counters.statements += len(rec.log) - len(rec.slots)
    if not device.target or options.jit == "off":
        return False
    if any(fp_state.raises_or_calls(state) for state in {site[2] for site in rec.sites}):
        return False  # devices do not know of floating-point exceptions
    try:
        with device.running():
            return _run_plan(executor, rec, options, device)
    except DeviceError:
        return False  # statements on what is lost stay pending
    except Exception as error:
        if options.debug and not isinstance(error, MemoryError):
            raise
        if isinstance(error, MemoryError):
            note(f"interpreter ({device.name} has no memory left)", where=_line(rec))
        else:
            report_failure(f"a region is run on the host instead of {device.name}", error, _line(rec))
        error.__traceback__ = None  # its frames hold memory
        return False


def _line(rec: Recording) -> tuple[str, int]:
    """Return the file and line of a recording's first call."""
    return run_plan.line_of(rec.sites[0]) if rec.sites else ("<recording>", 0)


def _run_plan(executor: Executor, rec: Recording, options: config.Options, device: Device) -> bool:
    """Run a recording by its plan; return False if it has no plan, or an array cannot lie in a buffer."""
    there = planning_options(rec, options, device)
    device.cache_dir = options.cache_dir
    device.graphs, device.graph_memory = options.graphs, options.graph_memory
    plan_entry = executor.prepare(rec, there)
    if not plan_entry.useful:
        return True
    plan, template = plan_entry.plan or executor.plan_for(plan_entry, there), plan_entry.template
    if plan is None:
        if not are_related(template.sample, plan_entry.values):
            note(f"interpreter ({device.name} has plans for other sizes of the same calls)", where=_line(rec))
        return False
    buffers: dict[int, DeviceBuffer] = {}  # by the slots of heads
    fresh: list[tuple[Store, DeviceBuffer]] = []
    changed: list[tuple[Store, DeviceBuffer]] = []
    heads, new, written = template.heads, template.new, template.written
    given: list[Any] = []
    for k in template.memory:
        slot, head = rec.slots[k], heads[k]
        store = slot if type(slot) is Store else slot() or rec.substitute(k)
        if head in new and head not in buffers:
            memory = device.allocate(max(store.size * store.dtype.itemsize, 1))
            buffers[head] = DeviceBuffer(rec.device, memory, True)
            fresh.append((store, buffers[head]))
        elif k not in new:
            held = resident(rec.device, store)
            if held is None:
                return False
            buffers[head] = held
            if head in written:
                changed.append((store.family, held))
        given.append(buffers[head].buffer)
    given += rec.scalar_values()
    try:
        plan.run((), given, plan_entry.symbols, device, 0)
    except NotStarted as error:
        raise (error.__cause__ or error) from None
    except Exception as error:
        for store, held in changed:
            if held.ahead:
                held.failure = error
            else:
                held.drop(store)
        raise
    counters.kernels += plan.kernels
    counters.interpreted += plan.interpreted
    counters.bytes += plan_entry.bytes
    for _, held in changed:
        held.ahead = True
        held.behind = False
        held.limits = None
    for store, held in fresh:
        if store.mem is None:
            store.remote = held
    return True


def planning_options(rec: Recording, options: config.Options, device: Device) -> config.Options:
    """Return the options with which a plan for a device is requested.  The recording's log is changed to one
    of contiguous arrays, as buffers are, without floating-point flags."""
    rec.watched = 0
    rec.log = contiguous_log(rec.log)
    global _planned
    given, planned = _planned
    target = device.target or options.target
    if given is not options or planned.target != target:
        planned = replace(options, target=target, jit="eager")
        _planned = options, planned
    return planned


_planned: tuple[config.Options | None, config.Options] = (None, config.Options())
"""The options that were last given to `planning_options`, and what it returned for them."""


class _OnHost(OpByOp):
    """A run on the host, operation by operation, in which the use of elements that the device has lost raises
    an error; ``lost`` has the errors by slots."""

    lost: Mapping[int, Exception] = {}

    def _array(self, slot: int) -> Any:
        error = self.lost.get(slot)
        if error is not None:
            raise error
        return super()._array(slot)


def bring(rec: Recording) -> dict[int, Exception]:
    """Copy the newest elements of a recording's arrays to the host, and drop the buffers of those that it
    writes; return, by slots, the errors of arrays whose elements are lost."""
    gone: dict[int, Exception] = {}
    written = _written_heads(rec)
    for k, entry in enumerate(rec.declarations()):
        store = rec.store_at(k)
        head = None if store is None else store.family
        if head is not None and head.remote is not None:
            try:
                head.remote.materialise(head, entry.head in written)
            except Exception as error:
                gone[k] = error.with_traceback(None)
    return gone


def run_on_host(rec: Recording) -> list[Any]:
    """Run a recording on the host, operation by operation; return the notes of floating-point exceptions."""
    gone = bring(rec)
    witness = fp_state.Witness(lambda loc: rec.sites[loc][2])
    host = _OnHost(rec, run_plan.steps_of(rec, None), witness)
    host.lost = gone
    counters.interpreted += host.run()
    if isinstance(host.error, DeviceError):
        _lose_results(rec, host.left, host.error)
    elif host.left:
        rec.leftover = (host.replay(), host.error)
    return witness.notes


def _lose_results(rec: Recording, left: list[int], error: DeviceError) -> None:
    """Mark the results of statements (``left``) that can never run as lost: reading them raises the error."""
    statements = rec.statements()
    for slot in {slot for k in left for slot in statements[k].outs}:
        store = rec.store_at(slot)
        if store is not None:
            settle_new(store.family, lost(rec.device, error))


def bring_to_lookers_on(rec: Recording) -> None:
    """After a run, copy elements of which the program has plain views to the host, and drop their buffers:
    the program may write to these views at any time."""
    if not rec.urgent:
        return
    written = _written_heads(rec)
    for k, entry in enumerate(rec.declarations()):
        store = rec.store_at(k)
        head = None if store is None else store.family
        if head is None or not isinstance(head.remote, DeviceBuffer) or head.remote.exposed:
            continue
        if head.is_exported() or (entry.head in written and head.is_exposed()):
            head.remote.materialise(head, writing=True)
