"""Targets of devices, which differ in their dialect of C, their driver and their libraries.

The compiled form of a kernel is its text, which the device's own compiler builds when the kernel first runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.ir.records import record
from dcarray.lowering.c_family.device_kernels import DeviceDialect, emit, has_checks
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.gpu.scheduler import gpu_kernel
from dcarray.lowering.gpu.schedules.blocks import LIMITS, Limits
from dcarray.lowering.kernel.nodes import Kernel, Op
from dcarray.lowering.libraries.dispatch import Library
from dcarray.lowering.target import ProgramPrinter, Target

__all__ = ["device_target"]


@record(frozen=True, slots=True)
class DeviceCompiler:
    """A compiler that prints kernels in a dialect of C; a `dcarray.lowering.kernel.compiler.Compiler`."""

    key: str
    dialect: DeviceDialect

    def fingerprint(self) -> str:
        """Return an empty string: the compiled form depends on nothing but the kernel."""
        return ""

    def emit(self, kernel: Kernel) -> str:
        """Return the kernel's text in the dialect."""
        return emit(kernel, self.dialect)

    def compile(self, source: str) -> bytes:
        """Return the text as bytes."""
        return source.encode()

    def load(self, kernel: Kernel, code: bytes) -> DeviceKernel:
        """Return the kernel as a `DeviceKernel`, which a device compiles at the first launch."""
        threads = tuple(phase.threads for phase in kernel.phases)
        sizes = tuple(0 if buffer.by_value else buffer.dtype.itemsize for buffer in kernel.buffers)
        return DeviceKernel(code.decode(), threads, sizes, has_checks(kernel))


def device_target(
    name: str,
    dialect: DeviceDialect,
    printer: ProgramPrinter,
    libraries: Mapping[str, Sequence[Library]] | None = None,
    limits: Limits = LIMITS,
    **more: Any,
) -> Target:
    """Return a `Target` for a kind of device: portable passes, blocks of threads, temporaries on the device.

    ``dialect`` is the C dialect of its kernels, ``printer`` writes drivers, ``libraries`` has the libraries
    of each library call, ``limits`` the constants of schedules, and ``more`` further fields of `Target`.
    """
    return Target(
        name, lambda threads: PORTABLE, partial(gpu_kernel, limits=limits), _is_exact,
        DeviceCompiler(name, dialect), libraries or {}, printer,
        memory_space="device", shares_arrays=False, **more,
    )  # fmt: skip


def _is_exact(op: Op) -> bool:
    """Return True: devices compute also the operations that IEEE 754 leaves open, within 4 ulp."""
    return True
