"""The CUDA target: kernels are CUDA C++, compiled on the machine that runs them; launches become CUDA
graphs.

Products that update an array are calls of cuBLAS; the pass comes last, since other passes know no such calls.
"""

from __future__ import annotations

from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.ir.passes.portable.product_updates import PRODUCT_UPDATES
from dcarray.lowering.gpu.device_target import device_target

from .dialect import CUDA
from .driver import printed
from .libraries import LIBRARIES
from .segments import all_segments

TARGET = device_target(
    "cuda", CUDA, printed, LIBRARIES,
    pipeline=PORTABLE.with_pass(PRODUCT_UPDATES, before="row_fusion"), graphs=all_segments,
)  # fmt: skip
