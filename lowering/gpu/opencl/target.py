"""The OpenCL target: kernels are OpenCL C, which the runtime of the device builds."""

from __future__ import annotations

from dcarray.lowering.gpu.device_target import device_target
from dcarray.lowering.gpu.driver import printed
from dcarray.lowering.gpu.schedules.blocks import PROCESSOR

from .dialect import OPENCL_C

TARGET = device_target("opencl", OPENCL_C, printed)
ON_PROCESSORS = device_target("opencl", OPENCL_C, printed, limits=PROCESSOR)
