"""What a graph does, task by task: the parameters of a task's nodes, and its work without a graph."""

from __future__ import annotations

from typing import Any

from dcarray.ir.records import record
from dcarray.lowering.gpu.kernels import DeviceKernel

from .device import CudaBuffer, CudaDevice, parameters

__all__ = [
    "TEST", "Conditional", "CopyMemory", "FillMemory", "LaunchKernel", "Parameters", "SetCondition", "Task",
]  # fmt: skip

TEST = DeviceKernel(
    """extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ __launch_bounds__(1) void phase0(const bool *flag, unsigned long long handle, bool no) {
  cudaGraphSetConditional(handle, *flag != no);
}
""",
    (1,),
    (1,),
)
"""The kernel that sets a condition of a graph; the driver resolves the function."""


@record(frozen=True, slots=True)
class LaunchKernel:
    """A launch of a kernel, as a driver makes it; see `dcarray.lowering.gpu.kernels.DeviceKernel`."""

    kernel: DeviceKernel
    blocks: tuple[int, ...]
    arguments: tuple[Any, ...]
    ints: tuple[int, ...]

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task by itself."""
        self.kernel(device, self.blocks, self.arguments, self.ints)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """The parameters of the graph's nodes for the kernel, one for each phase."""
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
    """A copy of bytes: target and its first byte, source and its first byte, and their number."""

    target: CudaBuffer
    to: int
    source: CudaBuffer
    start: int
    nbytes: int

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task by itself."""
        device.copy_bytes(self.target.ptr + self.to, self.source.ptr + self.start, self.nbytes)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """The parameters of the graph's node for the copy."""
        places = self.target.ptr + self.to, self.source.ptr + self.start
        return [Parameters("memcpy", self.nbytes > 0, (*places, max(self.nbytes, 1)))]


@record(frozen=True, slots=True)
class FillMemory:
    """Memory filled with one byte: the target and its first byte, the byte, and how many."""

    target: CudaBuffer
    to: int
    byte: int
    nbytes: int

    def run(self, device: CudaDevice) -> None:
        """Enqueue the task by itself."""
        device.fill_bytes(self.target.ptr + self.to, self.byte, self.nbytes)

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """The parameters of the graph's node for the fill."""
        given = self.target.ptr + self.to, self.byte, max(self.nbytes, 1)
        return [Parameters("memset", self.nbytes > 0, given)]


@record(frozen=True, slots=True)
class SetCondition:
    """A test that decides a conditional task, of the given position, by a boolean or (``negated``) its
    opposite."""

    flag: CudaBuffer
    negated: bool
    conditional: int

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """The parameters of the graph's node for the test."""
        (function,) = device.functions(TEST, False)
        return [Parameters("test", True, (function, self.flag.ptr, self.negated, self.conditional))]


@record(frozen=True, slots=True)
class Conditional:
    """Tasks, those whose parent it is, that run if a boolean or (``negated``) its opposite is true, and, if
    they are ``repeated``, until it is not."""

    flag: CudaBuffer
    negated: bool
    repeated: bool

    def nodes(self, device: CudaDevice) -> list[Parameters]:
        """The parameters of the graph's conditional node."""
        return [Parameters("while_loop" if self.repeated else "if_then", True, ())]


Task = LaunchKernel | CopyMemory | FillMemory | SetCondition | Conditional


@record(frozen=True, slots=True)
class Parameters:
    """The parameters of a node of a graph.

    Attributes
    ----------
    kind : str
        The method of cuda.core's nodes that adds it.
    enabled : bool
        Whether there is anything to do.
    values : tuple
        Of a launch the kernel, blocks, threads and arguments; of a copy or a fill its arguments.
    """

    kind: str
    enabled: bool
    values: tuple[Any, ...]

    def is_like(self, other: Parameters) -> bool:
        """Whether it does the same as another of the same node: floating-point values are told by their
        bits."""
        if self.kind != "launch":
            return self.values == other.values
        if self.values[:3] != other.values[:3]:
            return False
        for one, two in zip(self.values[3], other.values[3], strict=True):
            if one is not two and (one != two if type(one) is int else one.tobytes() != two.tobytes()):
                return False
        return True
