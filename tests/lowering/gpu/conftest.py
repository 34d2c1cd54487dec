"""Every kernel of these tests is compiled as CUDA C++, too."""

from __future__ import annotations

from collections.abc import Iterator

import cuda_compiled
import pytest

from dcarray.lowering.gpu.cuda import nvrtc


@pytest.fixture(autouse=True)
def compiled_for_a_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile what a test has made, unless it does that itself or makes mistakes on purpose; note registers
    and spills."""
    name = request.module.__name__
    if nvrtc.unavailable() or "malformed" in name or "cuda_kernels" in name:
        yield
        return
    with cuda_compiled.noted() as kernels:
        yield
    request.node.user_properties += [(cuda_compiled.PROPERTY, one) for one in cuda_compiled.compiled(kernels)]
