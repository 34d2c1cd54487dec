"""The OpenCL target: kernels are OpenCL C, which the runtime of the device builds."""

from __future__ import annotations

from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.lowering.gpu.compiler import DeviceCompiler, is_exact
from dcarray.lowering.gpu.driver import printed
from dcarray.lowering.gpu.scheduler import gpu_kernel
from dcarray.lowering.target import Target

from .dialect import OPENCL_C


def pipeline(threads: int) -> Pipeline:
    """Return the portable passes."""
    return PORTABLE


TARGET = Target(
    "opencl", pipeline, gpu_kernel, is_exact, DeviceCompiler("opencl", OPENCL_C), {}, printed,
    memory_space="device", shares_arrays=False,
)  # fmt: skip
