"""The compiler of a device's target: its text is the code, which the device compiles when it first runs."""

from __future__ import annotations

from dataclasses import dataclass

from dcarray.lowering.c_family.device_kernels import DeviceDialect, emit
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.kernel.nodes import Kernel, Op

__all__ = ["DeviceCompiler", "is_exact"]


@dataclass(frozen=True, slots=True)
class DeviceCompiler:
    """From kernels to a dialect of C; see `dcarray.lowering.kernel.compiler.Compiler`."""

    key: str
    dialect: DeviceDialect

    def fingerprint(self) -> str:
        """Return nothing: code depends on its text alone."""
        return ""

    def emit(self, kernel: Kernel) -> str:
        """Return the text."""
        return emit(kernel, self.dialect)

    def compile(self, source: str) -> bytes:
        """Return the text as bytes."""
        return source.encode()

    def load(self, kernel: Kernel, code: bytes) -> DeviceKernel:
        """Return the kernel, which is compiled for the device where it first runs."""
        threads = tuple(phase.threads for phase in kernel.phases)
        sizes = tuple(0 if buffer.by_value else buffer.dtype.itemsize for buffer in kernel.buffers)
        return DeviceKernel(code.decode(), threads, sizes)


def is_exact(op: Op) -> bool:
    """Whether compiled code computes an operation that IEEE 754 leaves open: always, within 4 ulp."""
    return True
