"""The CUDA target: kernels are CUDA C++, compiled on the machine that runs them; launches become graphs."""

from __future__ import annotations

from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.lowering.c_family.device_kernels import emit
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.gpu.scheduler import gpu_kernel
from dcarray.lowering.kernel.nodes import Kernel, Op
from dcarray.lowering.target import Target

from .dialect import CUDA
from .driver import printed
from .libraries import LIBRARIES
from .segments import all_segments


class CudaCompiler:
    """From kernels to CUDA C++; see `dcarray.lowering.kernel.compiler.Compiler`."""

    key = "cuda"

    def fingerprint(self) -> str:
        """Nothing but the text: the device compiles it."""
        return ""

    def emit(self, kernel: Kernel) -> str:
        """Return the text."""
        return emit(kernel, CUDA)

    def compile(self, source: str) -> bytes:
        """Return the text as bytes."""
        return source.encode()

    def load(self, kernel: Kernel, code: bytes) -> DeviceKernel:
        """Return the kernel, which is compiled for the device where it first runs."""
        threads = tuple(phase.threads for phase in kernel.phases)
        sizes = tuple(0 if buffer.by_value else buffer.dtype.itemsize for buffer in kernel.buffers)
        return DeviceKernel(code.decode(), threads, sizes)


def pipeline(threads: int) -> Pipeline:
    """The portable passes."""
    return PORTABLE


def is_exact(op: Op) -> bool:
    """Whether compiled code computes an operation that IEEE 754 leaves open: always, within 4 ulp."""
    return True


TARGET = Target(
    "cuda", pipeline, gpu_kernel, is_exact, CudaCompiler(), LIBRARIES, printed, memory_space="device",
    shares_arrays=False, graphs=all_segments,
)  # fmt: skip
