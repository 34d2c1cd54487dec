"""A device that computes nothing, with which a benchmark measures only the host's time for work on a device.

Plans, drivers and graphs are the same as for a CUDA device.  Memory is counted but not allocated.  Kernels,
copies and library calls do nothing; elements that are copied from the device are zeros.
"""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.cuda.device import CudaDevice

if TYPE_CHECKING:
    from dcarray.lowering.gpu.kernels import DeviceKernel

__all__ = ["NullDevice", "install", "taken"]

_ADDRESSES = itertools.count(1 << 40, 1 << 32)
_free: dict[int, list[int]] = {}  # addresses by sizes, as a pool keeps them
taken = {"now": 0, "most": 0}
"""The bytes of simulated memory that are in use now, and the most that ever were."""


class _Block:
    """A simulated allocation with a unique address, which is reused for the next one of the same size."""

    __slots__ = ("ptr", "size")

    def __init__(self, size: int) -> None:
        self.size = -(-size // 512) * 512
        known = _free.get(self.size)
        self.ptr = known.pop() if known else next(_ADDRESSES)
        taken["now"] += self.size
        taken["most"] = max(taken["most"], taken["now"])

    def __del__(self) -> None:
        taken["now"] -= self.size
        _free.setdefault(self.size, []).append(self.ptr)


class _Memory:
    """A pointer into a simulated allocation."""

    __slots__ = ("block", "ptr")

    def __init__(self, block: _Block, offset: int = 0) -> None:
        self.block, self.ptr = block, block.ptr + offset

    def __add__(self, offset: int) -> _Memory:
        return _Memory(self.block, self.ptr - self.block.ptr + offset)

    def copy_from_host(self, address: int, nbytes: int, stream: Any = None) -> None:
        """Do nothing: simulated memory has no elements."""

    copy_from_host_async = copy_from_device_async = copy_from_host

    def copy_to_host(self, address: int, nbytes: int) -> None:
        """Fill host memory with zeros."""
        ctypes.memset(address, 0, nbytes)


class _Pinned:
    """A stand-in for page-locked memory: plain memory."""

    def __init__(self, size: int) -> None:
        self.memory = (ctypes.c_uint8 * size)()
        self.ptr = ctypes.addressof(self.memory)


class _Array:
    """A stand-in for a CuPy array: it has a shape, dtype and strides, but no elements."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, memory: Any, strides: tuple[int, ...]) -> None:
        self.shape, self.dtype, self.strides = shape, dtype, strides
        self.flags = SimpleNamespace(c_contiguous=True)

    def __getitem__(self, key: Any) -> _Array:
        return self

    def transpose(self, order: Any) -> _Array:
        """Return this array, since its shape does not matter here."""
        return self


class _Node:
    """A stand-in for a node of a CUDA graph, for the view that updates it, or for a condition."""

    pred: Any = ()
    handle = 0

    @property
    def body(self) -> _Graph:
        """Return a stand-in for the body of a conditional node."""
        return _Graph()

    then = body

    def update(self, **parameters: Any) -> None:
        """Do nothing."""

    enable = disable = update


class _Graph:
    """A stand-in for the definition of a CUDA graph, and for the graph instantiated from it."""

    def launch(self, *parameters: Any) -> _Node:
        """Launch nothing; return a stand-in for the node that would be added."""
        return _Node()

    memcpy = memset = empty = create_condition = while_loop = if_then = launch

    def instantiate(self) -> _Graph:
        """Return this object, as the instantiated graph."""
        return self

    def __getitem__(self, node: Any) -> _Node:
        return _Node()


class _Library:
    """A stand-in for a library, whose functions do nothing."""

    def __getattr__(self, name: str) -> Any:
        return _nothing


class NullDevice(CudaDevice):
    """A CUDA device whose CUDA and CuPy calls are replaced by functions that do nothing; see the module."""

    def __init__(self) -> None:
        self.name, self.number, self.description = "null:0", 0, "nothing is computed"
        self.memory, self.architecture, self.graph_refusal = 1 << 40, "sm_90", None
        self._functions, self._configs = {}, {}
        self.pairs = {}
        stream = SimpleNamespace(ptr=0, synchronize=_nothing)
        event = SimpleNamespace(done=True, record=_nothing, synchronize=_nothing)
        self._alloc = lambda size: _Memory(_Block(size))
        self.cupy = SimpleNamespace(
            cuda=SimpleNamespace(
                Stream=SimpleNamespace(null=stream),
                get_current_stream=lambda: stream,
                get_cublas_handle=lambda: 0,
                cublas=_Library(),
                alloc_pinned_memory=_Pinned,
                Event=lambda disable_timing: event,
                runtime=SimpleNamespace(
                    getDevice=lambda: 0, memcpyAsync=_nothing, memsetAsync=_nothing, memcpyDeviceToDevice=3
                ),
            ),
            ndarray=_Array,
            matmul=_nothing,
            may_share_memory=lambda a, b: False,
            asarray=lambda value, dtype: value,
        )
        self._core = SimpleNamespace(
            LEGACY_DEFAULT_STREAM=None,
            launch=_nothing,
            LaunchConfig=lambda grid, block: (grid, block),
            Device=lambda number: SimpleNamespace(set_current=_nothing),
            graph=SimpleNamespace(GraphDefinition=_Graph),
        )

    def functions(self, kernel: DeviceKernel, narrow: bool) -> list[Any]:
        """Return a placeholder for each phase of a kernel: nothing is compiled."""
        return [kernel] * len(kernel.threads)

    def library(self, name: str) -> None:
        """Return None: there is no such library, so NumPy computes its functions."""


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def install() -> NullDevice:
    """Make a null device, add it to the devices of this machine as ``"null:0"``, and return it."""
    device = NullDevice()
    devices.add(device)
    return device
