"""NVIDIA's libraries, called through CuPy on views of device memory.

cuBLAS serves the library calls of regions that NVIDIA has, products of matrices (``blas.matmul``).  NumPy
functions that are not part of regions (`FUNCTIONS`) become calls of cuFFT, cuSOLVER and CUB.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dcarray.lowering.libraries.dispatch import Library, all_alike

if TYPE_CHECKING:
    from dcarray.ir.nodes import Call, Region

    from .device import CudaDevice

__all__ = ["LIBRARIES", "function", "matmul", "on_device"]

#: The buffer of an array, its shape, strides in elements, dtype, and whether it is written.
Given = tuple[Any, tuple[int, ...], tuple[int, ...], np.dtype[Any], bool]


_TRANSFORMS = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
_SOLVERS = "solve inv cholesky qr svd eigh eigvalsh det slogdet pinv"
#: NumPy's functions that CuPy's of the same name do as they do.  Not those whose order of equal elements or
#: whose sign is left open, as `argsort` and `eig`.
FUNCTIONS: Final = frozenset(
    [
        *(f"numpy.fft.{name}" for name in _TRANSFORMS.split()),
        *(f"numpy.linalg.{name}" for name in _SOLVERS.split()),
    ]
    + ["numpy.sort"]
)


def function(device: CudaDevice, name: str) -> Callable[..., Any] | None:
    """Return a callable that runs CuPy's counterpart of a NumPy function on a device; None if there is none.

    Parameters
    ----------
    device : CudaDevice
    name : str
        NumPy's name, such as ``"numpy.fft.rfft"``; only those in `FUNCTIONS` have a counterpart.
    """
    if name not in FUNCTIONS:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        target = device.cupy
        for part in name.split(".")[1:]:
            target = getattr(target, part)
        with device.current():
            if "linalg" not in name:
                return target(*args, **kwargs)
            with importlib.import_module("cupyx").errstate(linalg="raise"):  # or a singular matrix gives NaN
                return target(*args, **kwargs)

    return run


def on_device(
    device: CudaDevice, step: Callable[..., int], arrays: tuple[Given, ...], values: dict[str, int]
) -> None:
    """Enqueue a library call of a plan (``step``, a `CallStep`) on arrays in device memory; ``values`` has
    the values of symbols in its views of the arrays."""
    with device.current():
        step([device.array(*given[:-1]) for given in arrays], values)


def matmul(writes: Sequence[Any], reads: Sequence[Any], attrs: dict[str, Any], own: None = None) -> int:
    """Compute ``numpy.matmul`` of two CuPy arrays (``reads``) into another one (``writes``), for a
    `CallStep`."""
    (out,), (a, b) = writes, reads
    cupy = importlib.import_module("cupy")
    shared = cupy.may_share_memory(out, a) or cupy.may_share_memory(out, b)
    if shared or not out.flags.c_contiguous:
        out[...] = cupy.matmul(a, b)
    else:
        cupy.matmul(a, b, out=out)
    return 0


def _serves(call: Call, region: Region) -> bool:
    """Whether cuBLAS serves a call: all arrays have one dtype that it knows, and no view is a diagonal."""
    axes = [[ix.axis for ix in window.index if ix.axis is not None] for window in (*call.writes, *call.reads)]
    return all_alike(call, region) and all(len(set(one)) == len(one) for one in axes)


LIBRARIES: Final = {"blas.matmul": (Library(f"{__name__}:matmul", _serves),)}
