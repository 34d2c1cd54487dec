"""Local blocks of a rank that computes on a device; their elements are there, on the host, or in both places.

Messages go through the host: elements are copied from the device before they are sent, and to the device
when they have arrived.  Each copy has all bytes from a window's first to its last element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from dcarray.comm.planning.rank_program import execution
from dcarray.comm.planning.rank_program.steps import Program
from dcarray.comm.transport.protocol import Communicator
from dcarray.core import config
from dcarray.core.counters import counters, note
from dcarray.core.device_names import AUTO
from dcarray.core.shard import NDArray, Shard
from dcarray.ir.build import is_scalar_argument
from dcarray.ir.nodes import Region
from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.device import Device
from dcarray.lowering.gpu.host_calls import NotStarted
from dcarray.plans.templates import ExecutablePlan

__all__ = ["DeviceBlock", "block_of", "device_of", "execute", "on_host", "options_there", "run", "there"]

Local = Callable[[Region, Mapping[str, Any]], None]


def device_of(options: config.Options) -> Device | None:
    """Return the device on which this rank computes its blocks; None for the processor."""
    return None if options.device in ("cpu", AUTO) else _device(options.device)


def options_there(options: config.Options, may_be: bool) -> config.Options:
    """Return the options with which blocks are computed: for this rank's device if they ``may_be`` computed
    there (devices have no floating-point exceptions), else with ``device="cpu"``.  All ranks decide alike."""
    device = device_of(options)
    if device is None:
        return options
    if may_be and options.jit != "off" and device.target:
        return _changed(options, device.name, device.target)
    return _changed(options, "cpu", options.target)


@lru_cache(16)
def _changed(options: config.Options, device: str, target: str) -> config.Options:
    return replace(options, device=device, target=target)


@lru_cache(16)
def _device(name: str) -> Device:
    return devices.get(name)


class DeviceBlock:
    """A rank's local array on a device; see `dcarray.comm.planning.rank_program.elsewhere.Elsewhere`.

    Parameters
    ----------
    device : Device
    shape, dtype
    host : ndarray, optional
        The elements; without it the array has no elements yet.
    """

    __slots__ = ("_buffer", "_here", "_host", "_there", "device", "dtype", "shape")

    def __init__(
        self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any], host: NDArray | None = None
    ) -> None:
        self.device, self.shape, self.dtype = device, shape, dtype
        self._host = host if host is None or host.flags.c_contiguous else host.copy()
        self._here, self._there = host is not None, False  # where the newest elements are
        self._buffer: Any = None

    # ---- the host -------------------------------------------------------------------------------------
    def _memory(self) -> NDArray:
        if self._host is None:
            self._host = np.empty(self.shape, self.dtype)
        return self._host

    def on_host(self, writing: bool = False) -> NDArray:
        """Return the elements in host memory, up to date; with ``writing``, that memory may be written to,
        and the device's elements count as out of date."""
        mem = self._memory()
        if self._there and not self._here:
            self.device.download(self._buffer, mem)
        self._here = True
        if writing:
            self._there = False
        return mem

    def copy(self) -> NDArray:
        """Return the elements for reading only: the host's memory, or if that is out of date, a new copy."""
        if self._here or not self._there:
            return self._memory()
        elements: NDArray = np.empty(self.shape, self.dtype)
        self.device.download(self._buffer, elements)
        return elements

    def memory(self) -> NDArray:
        """Return the host's memory, which may be out of date: see `bring` and `take`."""
        return self._memory()

    def bring(self, windows: Sequence[NDArray]) -> None:
        """Copy the elements of windows on the host's memory from the device, if the host lacks them."""
        if self._there and not self._here:
            for window in windows:
                self._copy(window, True)

    def take(self, windows: Sequence[NDArray]) -> None:
        """Copy to the device, if its buffer is in use, the parts of the host's memory that messages wrote."""
        if not self._there:
            self._here = True
            return
        for window in windows:
            if self._here or window.flags.c_contiguous:
                self._copy(window, False)
        # what lies between the elements of others is older than the device's
        kept = [] if self._here else [(x, x.copy()) for x in windows if not x.flags.c_contiguous]
        for window, arrived in kept:
            self._copy(window, True)
            window[...] = arrived
            self._copy(window, False)

    def _copy(self, window: NDArray, to_host: bool) -> None:
        """Copy the bytes that a window spans, from its first to its last element, between host and device."""
        if window.size:
            mem = self._memory()
            begin, end = byte_bounds(window)
            start = begin - byte_bounds(mem)[0]
            span = mem.reshape(-1).view(np.uint8)[start : start + end - begin]
            if to_host:
                self.device.download(self._buffer, span, start)
            else:
                self.device.upload(span, self._buffer, start)

    # ---- the device -----------------------------------------------------------------------------------
    def on_device(self) -> Any:
        """Return the device's buffer, after the newest elements, if there are any, were copied there.

        Raises
        ------
        MemoryError
            If the device has no memory left.
        """
        if self._buffer is None:
            self._buffer = self.device.allocate(max(math.prod(self.shape) * self.dtype.itemsize, 1))
        if self._here and not self._there:
            self.device.upload(self._memory(), self._buffer)
            self._there = True
        return self._buffer

    def written(self) -> None:
        """Note that the device has written to the buffer, so that the host's elements are out of date."""
        self._there, self._here = True, False


def there(device: Device | None, block: NDArray) -> Any:
    """Return a plain local array as a `DeviceBlock`; if ``device`` is None, the array itself."""
    return block if device is None else DeviceBlock(device, block.shape, block.dtype, block)


def block_of(shard: Shard, device: Device | None) -> Any:
    """Return a shard's local array: a `DeviceBlock`, or if ``device`` is None, a plain array.  The shard
    keeps the `DeviceBlock`, unless the program has a view of the elements."""
    if device is None:
        return shard.block
    if not isinstance(shard.held, DeviceBlock):
        block = there(device, shard.held)
        if shard.exposed:
            return block
        shard.held = block
    return shard.held


def on_host(block: Any, writing: bool = False) -> Any:
    """Return a local array as a plain array, for reading, or with ``writing`` also to be written to."""
    if isinstance(block, DeviceBlock):
        return block.on_host(True) if writing else block.copy()
    return block


def execute(
    program: Program, comm: Communicator, given: Mapping[str, Any], local: Local, options: config.Options
) -> dict[str, Any]:
    """Run a rank's program as `dcarray.comm.planning.rank_program.execution.execute` does, with local arrays
    where the options say."""
    device = device_of(options)
    if device is None:
        return execution.execute(program, comm, given, local, np.empty)
    allocate = partial(DeviceBlock, device)
    return execution.execute(program, comm, given, local, np.empty, allocate=allocate)


def run(plan: ExecutablePlan, region: Region, arrays: Mapping[str, Any], options: config.Options) -> bool:
    """Run the plan of local statements on the rank's device; return False, with nothing changed, if it has
    not enough memory."""
    device = device_of(options)
    assert device is not None
    device.cache_dir = options.cache_dir
    device.graphs, device.graph_memory = options.graphs, options.graph_memory
    try:
        with device.running():
            given = [
                _given(array, arrays[array.name], device) for array in region.arrays if array.role != "temp"
            ]
            plan.run((), given, (), device, 0)
    except (MemoryError, NotStarted) as error:
        if not isinstance(error, MemoryError) and not isinstance(error.__cause__, MemoryError):
            raise (error.__cause__ or error) from None
        note(f"interpreter ({device.name} has no memory left)", where=("<region of a rank>", 0))
        return False
    for array in region.arrays:
        if array.role in ("out", "inout"):
            arrays[array.name].written()
    counters.kernels += plan.kernels
    counters.interpreted += plan.interpreted
    counters.bytes += plan.bytes(())
    return True


def _given(array: Any, held: Any, device: Device) -> Any:
    """Return the argument that a plan gets for the declared ``array``: the buffer on the device of ``held``,
    which has its elements; for a scalar argument the value."""
    if is_scalar_argument(array):
        return on_host(held)[()]
    if isinstance(held, DeviceBlock):
        return held.on_device()
    return DeviceBlock(device, held.shape, held.dtype, held).on_device()
