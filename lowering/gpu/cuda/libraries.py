"""NVIDIA's libraries, called through CuPy on views of device memory.

cuBLAS serves the library calls of regions that NVIDIA has, products of matrices (``blas.matmul``), also those
that update their result (``blas.gemm``).  NumPy functions that are not part of regions (`FUNCTIONS`) become
calls of cuFFT, cuSOLVER and CUB.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from dcarray.lowering.libraries.dispatch import Library, all_alike

from .products import Enqueue, prepared

if TYPE_CHECKING:
    from dcarray.ir.nodes import Call, Region

    from .device import CudaDevice

__all__ = ["LIBRARIES", "function", "gemm", "matmul", "on_device"]

#: The buffer of an array, its shape, strides in elements, dtype, and whether it is written.
Given = tuple[Any, tuple[int, ...], tuple[int, ...], np.dtype[Any], bool]


_MAX_PREPARED = 64  # geometries of a call
_prepared: WeakKeyDictionary[Callable[..., int], dict[Any, Enqueue | None]] = WeakKeyDictionary()
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
    """Enqueue a library call of a plan on arrays in device memory; a cuBLAS product is prepared only once.

    ``step`` is the call (a `CallStep`), and ``values`` has the values of symbols in its views of the arrays.
    """
    beta = _beta(step, arrays)
    shared = tuple([arrays[0][0] is given[0] for given in arrays])
    key = tuple([given[1:4] for given in arrays]), shared, tuple(values.values())
    calls = _prepared.setdefault(step, {})
    if key not in calls:
        if len(calls) >= _MAX_PREPARED:
            calls.clear()
        calls[key] = _product(step, arrays, values)
    call = calls[key]
    with device.current():
        if call is not None and beta is not None:
            call(device, [given[0].ptr for given in arrays[:3]], beta)
        else:
            step([device.array(*given[:-1]) for given in arrays], values)


def _product(step: Any, arrays: tuple[Given, ...], values: dict[str, int]) -> Enqueue | None:
    """Return the cuBLAS call for a library call; None if it is something else, or there is none."""
    if getattr(step, "op", "") not in LIBRARIES:
        return None
    op, _, attrs, _, views = step.parts
    if any(isinstance(given[0], np.generic | np.ndarray) for given in arrays[:4]):
        return None
    out, *operands = [given[0] for given in arrays[:4]]
    if any(one is out for one in operands[:2]):
        return None
    if op == "blas.gemm" and not (operands[2] is out and views[3] == views[0]):
        return None
    return prepared(step.views[:3], arrays[:3], values, dict(attrs).get("alpha", 1))


def _beta(step: Any, arrays: tuple[Given, ...]) -> float | None:
    """Return the factor of what a library call adds its product to; None if cuBLAS must not be asked.

    If the factor is 0, cuBLAS does not read what NumPy multiplies by it, an infinity or NaN perhaps; smaller
    than all normal numbers, it might be taken for 0.
    """
    if getattr(step, "op", "") != "blas.gemm":
        return 0.0
    beta: float = dict(step.parts[2])["beta"]
    if len(arrays) > 4:
        factor = arrays[4][0]
        if not isinstance(factor, np.generic | np.ndarray):
            return None
        beta *= float(factor)
    return beta if abs(beta) >= np.finfo(arrays[0][3]).tiny else None


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


def gemm(writes: Sequence[Any], reads: Sequence[Any], attrs: dict[str, Any], own: None = None) -> int:
    """Compute ``alpha * a @ b + beta * factor * c`` of CuPy arrays into another one, or into ``c``, for a
    `CallStep`."""
    a, b, c, *factor = reads
    product = importlib.import_module("cupy").matmul(a, b)
    added = factor[0] * c if factor else c
    added = added if attrs["beta"] == 1 else attrs["beta"] * added
    writes[0][...] = added + product if attrs["alpha"] > 0 else added - product
    return 0


def _serves(call: Call, region: Region) -> bool:
    """Whether cuBLAS serves a call: all arrays have one dtype that it knows, and no view is a diagonal."""
    axes = [[ix.axis for ix in window.index if ix.axis is not None] for window in (*call.writes, *call.reads)]
    return all_alike(call, region) and all(len(set(one)) == len(one) for one in axes)


LIBRARIES: Final = {
    "blas.matmul": (Library(f"{__name__}:matmul", _serves),),
    "blas.gemm": (Library(f"{__name__}:gemm", _serves),),
}
