"""The rates of the processor and of a device (`Rates`), measured and kept in the cache folder.

Other work of the machine makes measured times longer, never shorter.  So rates are measured again, at first
soon and later seldom, and for each kind of work the shortest time of the last few measurements is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.api.array import evaluate, wrap
from dcarray.core import config
from dcarray.core.device_names import cpu_name
from dcarray.recording.session import recording_for

from .arrays import array_class, of_class
from .op_costs import kernel_cost
from .target_choice import Rates, Speed

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device

__all__ = ["known_rates", "measured_rates", "rates_of"]

UNCACHED_ELEMENTS = 1 << 22  # elements that no cache holds
SIDE = 512  # rows of a matrix
ROUNDS = 5
VERSION = 2  # of what is measured, and of how it is kept
SOON = 600.0
"""Seconds after which rates are measured a second time."""
_LATER = 4  # and how many times as long it takes each time until the next
_KEPT = 3  # measurements


def rates_of(device: Device, options: config.Options, again: bool = False) -> Rates:
    """Return the rates of the processor and a device from the cache folder.  If there are none, or they are
    old (with ``again``: older than `SOON`), they are measured now, in about a second."""
    path = _path(device, options)
    number, kept, age = _kept(path)
    wait = SOON if again else SOON * _LATER ** (number - 1)
    if not kept or not 0 <= age < wait:
        kept = [*kept[1 - _KEPT :], measured_rates(device)]
        _keep(path, number + 1, kept)
    return reduce(Rates.least, kept)


def known_rates(device: Device, options: config.Options) -> Rates | None:
    """Return the rates that the cache folder has for a device; None if it has none that can be read."""
    kept = _kept(_path(device, options))[1]
    return reduce(Rates.least, kept) if kept else None


def _kept(path: Path | None) -> tuple[int, list[Rates], float]:
    """Return how often rates were measured, the last measured rates, and the age of their file in seconds."""
    nothing: tuple[int, list[Rates], float] = (0, [], 0.0)
    try:
        if path is None:
            return nothing
        number, measured = json.loads(path.read_text())
        age = time.time() - path.stat().st_mtime
        rates = [_read(one) for one in measured]
        return (number, rates, age) if type(number) is int and number >= len(rates) > 0 else nothing
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return nothing


def _read(kept: dict[str, Any]) -> Rates:
    rates = Rates(Speed(**kept.pop("host")), Speed(**kept.pop("device")), **kept)
    figures = [*asdict(rates.host).values(), *asdict(rates.device).values(), *kept.values()]
    if not all(type(v) is float and v >= 0 for v in figures):
        raise ValueError("a rate is no time")
    return rates


def _keep(path: Path | None, number: int, rates: list[Rates]) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps([number, [asdict(one) for one in rates]], indent=1) + "\n")
        beside.replace(path)
    except OSError:  # they are measured again by the next process
        pass


def _path(device: Device, options: config.Options) -> Path | None:
    """Return the path of the file with a device's rates, named by all that the rates depend on; None without
    a cache folder."""
    if options.cache_dir is None:
        return None
    identity = repr((VERSION, device.name, device.description, cpu_name(), options.threads))
    return Path(options.cache_dir) / f"rates-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def measured_rates(device: Device) -> Rates:
    """Return the rates of the processor and of a device, measured now."""
    block = np.linspace(0.0, 1.0, UNCACHED_ELEMENTS)
    with recording_for(None), config.options(eager_below=0, jit="eager", fastmath=False):
        host = _speed(wrap, lambda: None)
        there = _speed(lambda a: of_class(array_class(device), a), device.synchronise)
    few = np.zeros(8)

    def up(a: np.ndarray[Any, Any], buffer: Any) -> None:
        device.upload(a, buffer)
        device.synchronise()

    small, large = device.allocate(few.nbytes), device.allocate(block.nbytes)
    copy = _shortest(lambda: up(few, small))
    upload = _shortest(lambda: up(block, large)) - copy
    download = _shortest(lambda: device.download(large, block)) - copy
    return Rates(host, there, copy, max(upload, 0.0) / block.nbytes, max(download, 0.0) / block.nbytes)


def _speed(put: Callable[[np.ndarray[Any, Any]], Any], synchronise: Callable[[], None]) -> Speed:
    """Return the measured speed of the processor or a device: ``put`` makes an array there, ``synchronise``
    waits until its work is done."""
    few, many = put(np.zeros(16)), put(np.linspace(0.0, 1.0, UNCACHED_ELEMENTS))
    matrix = put(np.linspace(0.0, 1.0, SIDE * SIDE).reshape(SIDE, SIDE))

    def timed(call: Callable[[], Any]) -> float:
        def run() -> None:
            evaluate(call())
            synchronise()

        run()  # a plan is made
        return _shortest(run)

    launch = timed(lambda: few * 2.0 + 1.0)
    streamed = timed(lambda: many * 2.0 + 1.0) - launch
    exponential = timed(lambda: np.exp(many)) - launch
    product = timed(lambda: matrix @ matrix) - launch
    return Speed(
        launch,
        max(streamed, 0.0) / (2 * 8 * UNCACHED_ELEMENTS),
        max(exponential, 0.0) / (UNCACHED_ELEMENTS * kernel_cost("exp", "dd")),
        max(product, 0.0) / SIDE**3,
    )


def _shortest(run: Callable[[], Any]) -> float:
    """Return the nanoseconds of the shortest of `ROUNDS` calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return float(min(times))
