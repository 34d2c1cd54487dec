"""The CUDA target: kernels are CUDA C++, compiled on the machine that runs them; launches become graphs."""

from __future__ import annotations

from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.lowering.gpu.compiler import DeviceCompiler, is_exact
from dcarray.lowering.gpu.scheduler import gpu_kernel
from dcarray.lowering.target import Target

from .dialect import CUDA
from .driver import printed
from .libraries import LIBRARIES
from .segments import all_segments


def pipeline(threads: int) -> Pipeline:
    """Return the portable passes."""
    return PORTABLE


TARGET = Target(
    "cuda", pipeline, gpu_kernel, is_exact, DeviceCompiler("cuda", CUDA), LIBRARIES, printed,
    memory_space="device", shares_arrays=False, graphs=all_segments,
)  # fmt: skip
