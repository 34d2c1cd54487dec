"""The CUDA target: kernels are CUDA C++, compiled on the machine that runs them; launches become CUDA
graphs."""

from __future__ import annotations

from dcarray.lowering.gpu.device_target import device_target

from .dialect import CUDA
from .driver import printed
from .libraries import LIBRARIES
from .segments import all_segments

TARGET = device_target("cuda", CUDA, printed, LIBRARIES, graphs=all_segments)
