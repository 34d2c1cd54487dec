"""The table of the devices of this machine.

A vendor's packages are imported only when a device of that kind is looked up.
"""

from __future__ import annotations

import importlib
import threading
from typing import Final

from .device import Device, NoDevice

__all__ = ["KINDS", "Device", "NoDevice", "add", "find", "get", "missing"]

# Kind of device -> the module whose `find` makes all devices of the kind, or raises `NoDevice`.
_MODULES: Final = {"opencl": "dcarray.lowering.gpu.opencl.device", "cuda": "dcarray.lowering.gpu.cuda.device"}
KINDS: Final = tuple(_MODULES)

_lock = threading.Lock()
_found: dict[str, list[Device] | NoDevice] = {}


def _of_kind(kind: str) -> list[Device] | NoDevice:
    """Return the devices of a kind, or the error that says why there are none; looked up once per process."""
    with _lock:
        known = _found.get(kind)
        if known is None:
            try:
                known = importlib.import_module(_MODULES[kind]).find()
            except NoDevice as reason:
                known = reason
            _found[kind] = known
        return known


def add(device: Device) -> None:
    """Add a device that no vendor's package lists, such as the benchmarks' null device, to the table."""
    with _lock:
        _found[device.name.partition(":")[0]] = [device]


def find() -> list[Device]:
    """Return all devices of this machine, each made once, kind by kind."""
    per_kind = [_of_kind(kind) for kind in KINDS]
    return [device for devices in per_kind if not isinstance(devices, NoDevice) for device in devices]


def missing() -> dict[str, str]:
    """Return, for each kind without a device, the reason and the command that installs it."""
    per_kind = {kind: _of_kind(kind) for kind in KINDS}
    return {kind: str(reason) for kind, reason in per_kind.items() if isinstance(reason, NoDevice)}


def get(name: object) -> Device:
    """Return the device with this name; a kind alone, such as ``"opencl"``, gives its first device.

    Raises
    ------
    ValueError
        If there is no such device; the message names the existing ones, and says why the kind is missing.
    """
    kind = name.partition(":")[0] if isinstance(name, str) else ""
    devices = _of_kind(kind) if kind in KINDS else _found.get(kind, [])
    reason = f"; {devices}" if isinstance(devices, NoDevice) else ""
    for device in () if isinstance(devices, NoDevice) else devices:
        if device.name in (name, f"{name}:0", f"{name}:0.0"):
            return device
    names = ", ".join(["cpu", *(device.name for device in find())])
    raise ValueError(f"no device {name!r}; the devices there are: {names}{reason}")
