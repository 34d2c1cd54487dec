"""The OpenCL target: kernels are OpenCL C, which the runtime of the device builds."""

from __future__ import annotations

from dcarray.ir.nodes import Call, Region
from dcarray.lowering.gpu.device_target import device_target
from dcarray.lowering.gpu.driver import printed
from dcarray.lowering.gpu.schedules.blocks import PROCESSOR
from dcarray.lowering.libraries.dispatch import NUMPY, Library, all_alike
from dcarray.lowering.nest.access import total

from .dialect import OPENCL_C

TARGET = device_target("opencl", OPENCL_C, printed)


def _is_large(call: Call, region: Region) -> bool:
    """Whether a matrix product is so large that NumPy's BLAS is faster than a kernel."""
    (out,), (a, _) = call.writes, call.reads
    work = total((*out.shape, a.shape[-1]))
    return all_alike(call, region) and (type(work) is not int or work >= _WORK)


_WORK = 1 << 18
ON_PROCESSORS = device_target(
    "opencl", OPENCL_C, printed, {"blas.matmul": (Library(NUMPY.name, _is_large),)}, PROCESSOR
)
"""The target of OpenCL devices that are the host's processor: it leaves large products to NumPy's BLAS."""
