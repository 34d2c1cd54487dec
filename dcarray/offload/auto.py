"""The device ``"auto"``: each recording runs on the processor or on a device, whichever is estimated to be
faster.

Like all arrays on devices, arrays on ``"auto"`` have their elements in the host's memory, in a buffer of the
device, or in both.  Only when a recording runs is it decided which of the two runs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dcarray.core import config, fp_state
from dcarray.core.device_names import AUTO
from dcarray.core.store import Store, memory
from dcarray.execution.executor import EXECUTOR, exception_reporter
from dcarray.lowering.gpu import devices

from . import executor as on_device
from .buffer import DeviceBuffer
from .target_choice import Choice, Decision, Moves, Rates, work_of

if TYPE_CHECKING:
    from dcarray.execution.executor import Executor
    from dcarray.lowering.gpu.device import Device
    from dcarray.plans.templates import LogTemplate
    from dcarray.recording.log import Recording

__all__ = ["AutoDevice", "auto_device", "run"]

_ASKED = 600.0  # seconds after which the rates are asked for again
_LEAST_TELLING = 1e6  # nanoseconds from which a run tells something of the rates
_SURPRISING = 4  # times as fast as expected


class AutoDevice:
    """The processor and one other device, presented as a device whose memory is the other device's.

    Attributes
    ----------
    there : Device
        The other device.
    target : str
        Empty: a recording is planned for the target of the side, processor or device, that runs it.
    """

    name, target = AUTO, ""

    def __init__(self, there: Device) -> None:
        self.there = there
        self.description = f"{there.name} or the processor, for each recording"
        self.allocate, self.upload, self.download = there.allocate, there.upload, there.download
        self.synchronise, self.is_processor = there.synchronise, there.is_processor
        self._choices: WeakKeyDictionary[LogTemplate, Choice] = WeakKeyDictionary()
        self._decided: WeakKeyDictionary[Recording, Decision] = WeakKeyDictionary()
        self._rates: Rates | None = None
        self._asked, self._surprised = 0.0, False

    def library(self, name: str) -> None:
        """Return None (see `Device.library`): with ``"auto"``, only recordings run on the device."""

    def rates(self) -> Rates:
        """Return the measured rates of both sides (`Rates`); the first call measures them."""
        return self._rates or self.renewed_rates()

    def renewed_rates(self) -> Rates:
        """Return the rates of both sides, measured again if they are old.  Call it while nothing is recorded,
        since the measurement records, too."""
        now = time.monotonic()
        if self._rates is None or now - self._asked >= _ASKED:
            from .calibration import rates_of

            self._rates = rates_of(self.there, config.current(), again=self._surprised)
            self._asked, self._surprised = now, False
        return self._rates

    def note_host_run(self, expected: float, seconds: float) -> None:
        """Note how many ``seconds`` a run on the processor took, of ``expected`` nanoseconds.  If it took
        much less, the machine was busy when rates were measured, so they are measured again soon."""
        if expected >= _LEAST_TELLING and 1e9 * seconds * _SURPRISING < expected:
            self._surprised = True

    def known_rates(self, options: config.Options) -> Rates | None:
        """Return the rates if this process or an earlier one has measured them, else None."""
        from .calibration import known_rates

        return self._rates or known_rates(self.there, options)

    def choice(self, template: LogTemplate) -> Choice:
        """Return the `Choice` that all recordings with one log template share."""
        choice = self._choices.get(template)
        if choice is None:
            choice = self._choices[template] = Choice()
        return choice

    def decide(self, rec: Recording, options: config.Options, tried: bool = True) -> Decision:
        """Return the decision where a recording runs; with ``tried=False``, without counting it as a run."""
        known = self._decided.get(rec)
        if known is not None:
            return known
        if options.jit == "off":
            decision = Decision(False, "the option jit is off")
        elif any(fp_state.raises_or_calls(site[2]) for site in rec.sites):
            decision = Decision(False, "floating-point exceptions are to be raised, which devices cannot")
        else:
            template = EXECUTOR.prepare(rec, options).template
            live = [k for k in rec.news if rec.slots[k]() is not None]
            work = work_of(rec.log, live, rec.views)
            decision = self.choice(template).decide(work, moves_of(rec), self.rates(), self.there.name, tried)
        if tried:
            self._decided[rec] = decision
        return decision


def auto_device() -> AutoDevice | None:
    """Return the device ``"auto"``, of the first CUDA device if there is one; None if there is no device."""
    candidates = sorted(devices.find(), key=lambda one: one.target != "cuda")
    if not candidates:
        return None
    known = _instances.get(id(candidates[0]))
    if known is None:
        known = _instances[id(candidates[0])] = AutoDevice(candidates[0])
    return known


_instances: dict[int, AutoDevice] = {}  # by the identity of the device, which it keeps alive


def moves_of(rec: Recording) -> Moves:
    """Return the copies that a recording needs before it can run on the processor, and on the device."""
    up, down, again = [0, 0], [0, 0], [0, 0]
    heads: dict[int, Store] = {}
    for k, entry in enumerate(rec.declarations()):
        store = rec.store_at(k)
        if not entry.is_new and store is not None:
            heads[id(store.family)] = store.family
    for head in heads.values():
        held = head.remote
        nbytes = head.size * head.dtype.itemsize
        lacking = not isinstance(held, DeviceBuffer) or held.behind
        wanting = [(up, lacking), (down, not lacking and held.ahead), (again, head.is_exported())]
        for counted, wants in wanting:
            if wants:
                counted[0] += 1
                counted[1] += nbytes
    return Moves((up[0], up[1]), (down[0], down[1]), (again[0], again[1]))


def run(executor: Executor, rec: Recording, options: config.Options) -> Callable[[], None]:
    """Run a recording on the side that is expected to be faster; return a function to call afterwards, which
    gives NumPy's warnings."""
    device: AutoDevice = rec.device
    decision = device.decide(rec, options)
    if decision.on_device:
        as_recorded = rec.log, rec.watched
        if on_device.try_on_device(executor, rec, options, device.there):
            on_device.bring_to_lookers_on(rec)
            return exception_reporter(rec, [])
        rec.log, rec.watched = as_recorded
        refusal = f"{device.there.name} could not run it"
        device.choice(executor.prepare(rec, options).template).refused = refusal
        device._decided[rec] = Decision(False, refusal)
    if on_device.bring(rec):  # what is lost cannot be used
        return exception_reporter(rec, on_device.run_on_host(rec))
    for slot in rec.slots:
        if type(slot) is Store and slot.family.mem is not None:
            memory(slot)
    begun = time.perf_counter()
    done = executor.run_undistributed(rec, replace(options, eager_below=0))
    device.note_host_run(decision.expected, time.perf_counter() - begun)
    return done
