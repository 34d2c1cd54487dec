"""The tasks of a graph: launches, copies and fills.

``task.nodes(device)`` returns the parameters of the task's nodes in a CUDA graph; ``task.run(device)`` does
the work without a graph.
"""

from __future__ import annotations

from typing import Any

from dcarray.ir.records import record
from dcarray.lowering.gpu.kernels import DeviceKernel

from .buffers import CudaBuffer
from .device import CudaDevice, parameters

__all__ = ["CopyMemory", "FillMemory", "LaunchKernel", "Parameters", "Task"]


@record(frozen=True, slots=True)
class LaunchKernel:
    """The launch of a kernel; its fields are a kernel and the arguments of `DeviceKernel.__call__`."""

    kernel: DeviceKernel
    blocks: tuple[int, ...]
    arguments: tuple[Any, ...]
    ints: tuple[int, ...]

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task without a graph."""
        self.kernel(device, self.blocks, self.arguments, self.ints)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """Return the parameters of the graph's nodes for the kernel, one node for each phase."""
        narrow, given = self.kernel.prepare(device, self.blocks, self.arguments, self.ints)
        values = parameters(given, self.ints, narrow)
        functions = device.functions(self.kernel, narrow)
        launches = zip(functions, self.blocks, self.kernel.threads, strict=True)
        return [
            Parameters("launch", count > 0, (function, max(count, 1), threads, values))
            for function, count, threads in launches
        ]


@record(frozen=True, slots=True)
class CopyMemory:
    """A copy of ``nbytes`` bytes from byte ``start`` of the buffer ``source`` to byte ``to`` of
    ``target``."""

    target: CudaBuffer
    to: int
    source: CudaBuffer
    start: int
    nbytes: int

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task without a graph."""
        device.copy_bytes(self.target.ptr + self.to, self.source.ptr + self.start, self.nbytes)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """Return the parameters of the graph's node for the copy."""
        places = self.target.ptr + self.to, self.source.ptr + self.start
        return [Parameters("memcpy", self.nbytes > 0, (*places, max(self.nbytes, 1)))]


@record(frozen=True, slots=True)
class FillMemory:
    """A fill: ``nbytes`` bytes of the buffer ``target``, from its byte ``to`` on, get the value ``byte``."""

    target: CudaBuffer
    to: int
    byte: int
    nbytes: int

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task without a graph."""
        device.fill_bytes(self.target.ptr + self.to, self.byte, self.nbytes)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """Return the parameters of the graph's node for the fill."""
        given = self.target.ptr + self.to, self.byte, max(self.nbytes, 1)
        return [Parameters("memset", self.nbytes > 0, given)]


Task = LaunchKernel | CopyMemory | FillMemory


@record(frozen=True, slots=True)
class Parameters:
    """The parameters of a node of a graph.

    Attributes
    ----------
    kind : str
        The name of cuda.core's method that adds the node.
    enabled : bool
        Whether the node has any elements; if not, it is disabled in the graph.
    values : tuple
        For a launch the function, blocks, threads and arguments; else the arguments of the method.
    """

    kind: str
    enabled: bool
    values: tuple[Any, ...]

    def is_like(self, other: Parameters) -> bool:
        """Whether other parameters of the same node have the same values; floats are compared by their
        bits."""
        if self.kind != "launch":
            return self.values == other.values
        if self.values[:3] != other.values[:3]:
            return False
        for one, two in zip(self.values[3], other.values[3], strict=True):
            if one is not two and (one != two if type(one) is int else one.tobytes() != two.tobytes()):
                return False
        return True
