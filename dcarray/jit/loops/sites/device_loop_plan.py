"""The run of a loop's plan on a device, whose arrays stay there: its arguments and its results.

Devices have no floating-point flags.  So kernels write where a check fails, of an index say.  Then the arrays
get their elements back, from copies on the device, and the loop runs in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.api.array import evaluate, ndarray
from dcarray.core import config, fp_state, window
from dcarray.core.counters import counters, note
from dcarray.core.handle import Handle, as_class, small
from dcarray.core.interrupts import Undisturbed
from dcarray.core.processes import LOCK
from dcarray.lowering.gpu.host_calls import NotStarted, run_buffer
from dcarray.lowering.gpu.kernels import check_has_failed
from dcarray.offload.arrays import array_class
from dcarray.offload.buffer import DeviceBuffer, array_in, least_elements, resident
from dcarray.recording.session import recording_for

from ..entry.entry_values import Result
from ..entry.guard_checks import Checks, checks_hold, checks_of
from .loop_requests import LoopInterface
from .outcome import Outcome
from .plan_values import PlanMismatch, number
from .sized_plan import SizedPlan, Sizes

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device
    from dcarray.lowering.program.loaded_plan import LoadedPlan

__all__ = ["DeviceLoopPlan"]

_WORK = 10_000  # of a proof that two windows share no element


def _is_part(x: Any) -> bool:
    """Whether a value is an array of which a buffer does not have just the elements, in their order."""
    if not isinstance(x, Handle) or x._small is not None:
        return False
    store = x._store
    return store is not store.family or x._index is not None or x._shape != store.shape


def _may_overlap(x: Any, y: Any) -> bool:
    """Whether two windows of one store may share an element."""
    store = x._store
    if store is not y._store or store is not store.family:
        return True
    memory = np.empty(store.shape, np.uint8)  # never touched
    a, b = (window.view(memory, one._shape, one._window()) for one in (x, y))
    try:
        return bool(np.shares_memory(a, b, max_work=_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class DeviceLoopPlan(SizedPlan):
    """A loop's or a program's plan for a device, bound to the names of its site; see `LoopPlan`.

    Parameters
    ----------
    loaded : LoadedPlan
    names, live : sequence of str
        The names of the values that ``run`` takes, and of those that it returns.
    device : Device
    interface : LoopInterface, optional
        The plan's arguments and results; by default what is stored with the plan.
    symbols : tuple of int, optional
        The values of the region's symbols.

    Raises
    ------
    PlanMismatch
        If the host would have to check for exceptions.
    """

    is_simple = False  # Python runs it

    def __init__(
        self, loaded: LoadedPlan, names: Sequence[str], device: Device, live: Sequence[str],
        interface: LoopInterface | None = None, symbols: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        interface = interface or loaded.payload
        assert interface is not None
        self._checks = interface.may_raise or interface.checked
        if self._checks and loaded.interpreted:
            raise PlanMismatch(f"it may raise exceptions in steps for which {device.name} has no kernel")
        super().__init__(loaded, names, interface, symbols)
        self._device, place, at_of = device, self.place, self.at_of
        self.checks: Checks | None = None
        self._known: list[tuple[int, tuple[int, ...], str, bool]] = []
        at = [(role, k) for role, k, *_ in self._sizes.parameters if type(k) is int]
        self._arrays = [k for _, k in at]
        self._written = [k for role, k in at if role == "inout"]
        self._by_value = [name in interface.by_value for name, *_ in interface.arrays]
        if symbols or not interface.symbols:
            self._sizes = self._sizes_for(symbols)
        by_name = dict(interface.results)
        self._results: list[tuple[Result, int]] = []
        for name in live:
            result = by_name.get(name)
            if result is None:  # the loop does not bind it
                if name not in place:
                    raise PlanMismatch(f"{name} is not bound")
                result = Result("alias", name)
            if result.kind in ("either", "list", "tuple", "view"):
                raise PlanMismatch(f"{name} is neither an array nor a scalar of a known type")
            self._results.append((result, (place if result.kind == "alias" else at_of).get(result.name, -1)))

    def remember(self, values: Sequence[Any], guards: Sequence[Any]) -> None:
        """Make the checks by which `addresses` recognises values like these, with which the plan has run."""
        if self.checks is None:
            arrays = [(k, values[k]) for k in self._arrays if isinstance(values[k], Handle)]
            whole = all(x._small is None and not _is_part(x) for _, x in arrays)
            self.checks = (checks_of(values, guards, ()) if whole else None) or ()
            self._known = [(k, x._shape, x._store.char, k in self._written) for k, x in arrays if whole]

    def addresses(self, values: tuple[Any, ...]) -> list[DeviceBuffer | None] | None:
        """Return the buffers of the arrays among values that pass the checks made by `remember`, on which
        nothing is pending, with None for other values; else None.  The caller must hold `LOCK` until the
        run."""
        if not self.checks or checks_hold(self.checks, values) is None:
            return None
        buffers: list[DeviceBuffer | None] = [None] * len(values)
        for k, shape, char, writes in self._known:
            x = values[k]
            if x._small is not None or x._readonly or x._index is not None or x._shape != shape:
                return None
            store = x._store
            held = store.remote
            if store.char != char or store.shape != shape or store._head is not None or held is None:
                return None
            if store.strides is not None or held.device is not self._device or held.behind or held.failure:
                return None
            for pending in (store.dirty, store.used) if writes else (store.dirty,):
                if pending is not None and pending is not held and not pending.done:
                    return None
            if self._written and held in buffers:
                return None
            buffers[k] = held
        return buffers

    def run(
        self, values: Sequence[Any], options: config.Options,
        places: Sequence[DeviceBuffer | None] | None = None, sizes: Sizes | None = None,
        outcome: Outcome | None = None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """Run the loop on the device.  Return the values of the names ``live`` after it; None if the loop has
        to run in Python.

        Raises
        ------
        MemoryError
            If the device or the host has too little memory; all arrays are unchanged.
        DeviceError
            If the device has lost elements that the loop reads.
        """
        if fp_state.raises_or_calls(fp_state.current_state()):
            return None
        outcome = outcome or Outcome()
        whole = self._whole(values) if places is None else values
        outcome.is_final = True  # an array that cannot be restored says so itself
        results = None if whole is None else self._run(whole, options, sizes or self._sizes, places or ())
        if results is None:
            outcome.is_final = False
            return None
        for k in self._written:
            if whole is not None and whole[k] is not values[k]:
                values[k][...] = as_class(type(values[k]), whole[k])
        pairs = zip(self._results, results, strict=True)
        bound = tuple([values[at] if result.kind == "alias" else value for (result, at), value in pairs])
        outcome.take(bound)
        return bound

    def _whole(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """Return the values with copies for parts of arrays, and for those that are not in C order; None if
        one is written that shares memory with another."""
        parts = {k: x for k in self._arrays if _is_part(x := values[k])}
        if not parts:
            return values
        others = [x for k in self._arrays if isinstance(x := values[k], Handle) and x._small is None]
        for k, x in parts.items():
            for y in others:
                shared = x is not y and x._store.family is y._store.family
                written = k in self._written or any(values[j] is y for j in self._written)
                if shared and written and _may_overlap(x, y):
                    return None
        whole = list(values)
        with recording_for(self._device):
            for k, x in parts.items():
                whole[k] = as_class(ndarray, x).copy()
            evaluate(*[whole[k] for k in parts])
        return whole

    def _run(
        self, values: Sequence[Any], options: config.Options, sizes: Sizes,
        places: Sequence[DeviceBuffer | None],
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """Run the plan on whole arrays; as `run`."""
        device = self._device
        device.cache_dir = options.cache_dir
        device.graphs, device.graph_memory = options.graphs, options.graph_memory
        with LOCK, Undisturbed(), device.running():
            given, used = self._arguments(values, sizes, places)
            if given is None:
                return None
            buffers = [one.buffer if isinstance(one, DeviceBuffer) else one for one in given]
            copies = self._copies(used) if self._checks else []
            try:
                self._loaded.run((), buffers, sizes.symbols, device, 0)
                failed = self._checks and check_has_failed(device)
                for buffer, copy, nbytes in copies if failed else ():
                    device.copy(copy, buffer, nbytes)
            except NotStarted as error:
                if isinstance(error.__cause__, MemoryError):
                    raise error.__cause__ from None
                note(f"{device.name} cannot run it: {error.__cause__}", kind="loop")
                return None
            except Exception as error:
                for _, held, writes in used:
                    if writes:
                        held.failure, held.ahead = error, True
                with suppress(Exception):
                    check_has_failed(device)  # in this run, not in the next one
                raise
            if failed:
                return None
            for x, held, writes in used:
                self._settle(x, held, writes)
        counters.loops += 1
        counters.kernels += self._loaded.kernels
        counters.interpreted += self._loaded.interpreted
        counters.bytes += sizes.bytes
        return tuple(self._value(result, at, values, given, sizes) for result, at in self._results)

    def _arguments(
        self, values: Sequence[Any], sizes: Sizes, places: Sequence[DeviceBuffer | None]
    ) -> tuple[list[Any] | None, list[tuple[Any, DeviceBuffer, bool]]]:
        """Return the plan's arguments (buffers and scalars), and for each array the array, its buffer and
        whether the plan writes it.  The first is None if a written array shares memory with another one."""
        given: list[Any] = []
        used: list[tuple[Any, DeviceBuffer, bool]] = []
        heads: list[tuple[int, bool]] = []
        for (role, fetch, dtype, _, _, size), by_value in zip(sizes.parameters, self._by_value, strict=True):
            if fetch is None:
                buffer = self._device.allocate(size * dtype.itemsize)
                given.append(DeviceBuffer(self._device, buffer, True))
                continue
            value = values[fetch] if type(fetch) is int else fetch(values)
            held = places[fetch] if places and type(fetch) is int else None
            if held is not None:
                given.append(held)
                used.append((value, held, role == "inout"))
                continue
            if not isinstance(value, Handle):
                scalar = number(value, dtype)
                if scalar is None or role != "in":
                    return None, []
                given.append(scalar if by_value else self._of_this_run(scalar))
                continue
            held = self._buffer(value, role == "inout")
            if held is None:
                return None, []
            given.append(held)
            heads.append((id(value if value._small is not None else value._store.family), role == "inout"))
            used.append((value, held, role == "inout"))
        first: dict[int, bool] = {}
        for head, writes in heads:
            if head in first and (writes or first[head]):
                return None, []
            first[head] = writes or first.get(head, False)
        return given, used

    def _copies(self, used: list[tuple[Any, DeviceBuffer, bool]]) -> list[tuple[Any, Any, int]]:
        """Return the buffers of arrays that are written, each with a copy and its bytes; those of small
        arrays are the run's own."""
        copies = []
        for x, held, writes in used:
            if writes and x._small is None:
                head = x._store.family
                nbytes = head.size * head.dtype.itemsize
                copies.append((held.buffer, self._device.allocate(max(nbytes, 1)), nbytes))
                self._device.copy(*copies[-1])
        return copies

    def _buffer(self, x: Any, writes: bool) -> DeviceBuffer | None:
        """Return the device's buffer with an array's elements, once the recording that is pending on the
        array has run. A small array, which lies in the host's memory, gets a buffer for this run only."""
        if x._small is not None:
            return self._of_this_run(x._small)
        head = x._store.family
        for pending in (head.dirty, head.used) if writes else (head.dirty,):
            if pending is not None and not pending.done and pending is not head.remote:
                pending.run(head, writes)
        return resident(self._device, x._store)

    def _of_this_run(self, a: np.ndarray[Any, Any]) -> DeviceBuffer:
        """Return a buffer for this run only, with the elements of a small array or of a number."""
        return DeviceBuffer(self._device, run_buffer(self._device, a.nbytes, a), False)

    def _settle(self, x: Any, held: DeviceBuffer, writes: bool) -> None:
        """Note after a run that a buffer and an array's memory have the same elements; if the plan wrote the
        buffer, that the memory has to be updated from it.  It is updated at once if plain views of the array
        are in use, since the program may write through these at any time."""
        if x._small is not None:
            if writes and x._small.size:
                elements = np.empty(x._small.shape, x._small.dtype)
                self._device.download(held.buffer, elements)
                x._small[...] = elements
            return
        head = x._store.family
        head.used = held
        if writes:
            held.ahead, held.behind, held.limits = True, False, None
            head.dirty = held
        if head.is_exported() or (writes and head.is_exposed()):
            held.materialise(head, writing=True)

    def _value(self, result: Result, at: int, values: Sequence[Any], given: list[Any], sizes: Sizes) -> Any:
        """Return the object that a name is bound to after a run."""
        if result.kind == "value":
            return result.value
        if result.kind == "alias":
            return values[at]
        _, _, dtype, shape, _, size = sizes.parameters[at]
        held = given[at]
        if result.kind == "scalar":
            scalar = np.empty((), dtype)
            self._device.download(held.buffer, scalar)
            return scalar.item() if result.weak else scalar[()]
        cls = array_class(self._device)
        if size < least_elements():
            few = np.empty(shape, dtype)
            if size:
                self._device.download(held.buffer, few)
            return small(cls, few)
        return array_in(cls, held, shape, dtype)
