"""A device of host memory that counts transfers, may run out of memory, and may be lost."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from dcarray.execution.executor import Executor
from dcarray.ir import interp
from dcarray.lowering.gpu import devices as table


class MadeUpDevice:
    """A device whose buffers are arrays of bytes.  Without a target (``""``) recordings run on the host."""

    def __init__(self, name: str = "made-up:0", target: str = "") -> None:
        self.name, self.target = name, target
        self.description = "host memory"
        self.memory = 1 << 40
        self.fp64, self.is_processor = True, False
        self.uploads = self.downloads = self.downloaded = 0
        self.runs = 0
        self.lost_after: int | None = None  # runs
        self.error: Exception | None = None  # that every use raises from now on
        self.left: int | None = None  # bytes that can still be allocated

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def running(self) -> Any:
        return nullcontext()

    def allocate(self, nbytes: int) -> Any:
        self._check()
        if self.left is not None:
            if nbytes > self.left:
                raise MemoryError(f"{self.name}: {nbytes} bytes")
            self.left -= nbytes
        return np.full(nbytes, 0xAB, np.uint8)

    def upload(self, source: Any, buffer: Any, start: int = 0) -> None:
        self._check()
        assert source.flags.c_contiguous
        self.uploads += 1
        buffer[start : start + source.nbytes] = source.reshape(-1).view(np.uint8)

    def download(self, buffer: Any, target: Any, start: int = 0) -> None:
        self._check()
        assert target.flags.c_contiguous
        self.downloads += 1
        self.downloaded += target.nbytes
        target.reshape(-1).view(np.uint8)[...] = buffer[start : start + target.nbytes]

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        self._check()
        target[:nbytes] = source[:nbytes]

    def library(self, name: str) -> Any:
        return None

    def synchronise(self) -> None:
        self._check()


def make_up(monkeypatch: pytest.MonkeyPatch, *devices: MadeUpDevice) -> None:
    """Put devices into the table, as those of a kind of their own; what they run the region interpreter
    does."""
    for device in devices:  # it is known for good, and has to work again after a test that lost it
        monkeypatch.setattr(device, "error", None)
    monkeypatch.setattr(table, "KINDS", (*table.KINDS, "made-up"))
    monkeypatch.setitem(table._found, "made-up", list(devices))
    _run_by_interpreter(monkeypatch)


class _Interpreted:
    """A plan that the region interpreter runs on the buffers of a made-up device."""

    kernels, interpreted = 1, 0

    def __init__(self, plan_entry: Any) -> None:
        self._entry = plan_entry

    def run(self, arrays: Any, buffers: Any, symbols: Any, device: MadeUpDevice, minded: int) -> int:
        device._check()
        region = self._entry.region
        declared = {array.name: array for array in region.arrays}
        slots = self._entry.template.memory
        names = [f"a{k}" for k in slots] + [f"c{k}" for k in range(len(buffers) - len(slots))]
        memory = {}
        for name, buffer in zip(names, buffers, strict=True):
            array = declared.get(name)
            if array is None:
                continue
            if name[0] == "a":
                size = int(np.prod(array.shape)) * array.dtype.itemsize
                buffer = buffer[:size].view(array.dtype).reshape(array.shape)
            memory[name] = buffer
        with np.errstate(all="ignore"):
            interp.run(region, memory)
        device.runs += 1
        if device.lost_after is not None and device.runs > device.lost_after:
            device.error = RuntimeError("the device is lost")
            raise device.error
        return 0


def _run_by_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give recordings on devices of the target "made-up" plans of the region interpreter."""
    plan_for = Executor.plan_for

    def interpreted(self: Executor, plan_entry: Any, options: Any, asks: bool = True, sites: Any = ()) -> Any:
        if options.target == "made-up":
            return _Interpreted(plan_entry)
        return plan_for(self, plan_entry, options, asks, sites)

    monkeypatch.setattr(Executor, "plan_for", interpreted)
