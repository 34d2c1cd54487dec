"""The launch of a kernel on the threads of the C module; without that module, on the thread that calls."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

import numpy as np

__all__ = ["connect", "exceptions", "launch", "native"]

native: Any = None
"""The C module (`dcarray/_native/launches.h`), which `connect` sets; None without it."""

_PHASE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def connect(module: Any) -> None:
    """Have the threads of the C module run kernels from now on."""
    global native
    native = module


def exceptions() -> tuple[int, int, int, int]:
    """Return the values of C's FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW and FE_UNDERFLOW on this processor."""
    if platform.machine() in ("arm64", "aarch64"):
        return 1, 2, 4, 8
    if platform.machine() in ("x86_64", "AMD64"):
        return 1, 4, 8, 16
    raise RuntimeError(f"floating-point flags of {platform.machine()} processors are not known")


def launch(block: bytes, threads: int) -> int:
    """Run all phases of a kernel on so many threads; return the floating-point flags that they raised.

    Parameters
    ----------
    block : bytes
        64-bit integers: the address of the table of the phases' functions, the number of phases, the extent
        and the work of each, and the kernel's arguments.
    threads : int
    """
    if native is not None:
        flags: int = native.launch(block, threads)
        return flags
    numbers = np.frombuffer(block, np.int64)
    phases = int(numbers[1])
    functions = (ctypes.c_void_p * phases).from_address(int(numbers[0]))
    arguments = numbers.ctypes.data + 16 * (1 + phases)
    clear, test = _hardware()
    clear(sum(exceptions()))
    soft = 0
    for function, extent in zip(functions, numbers[2::2].tolist(), strict=False):
        soft |= _PHASE(function or 0)(arguments, 0, extent) if extent > 0 else 0
    raised = test(sum(exceptions()))
    invalid, divide, overflow, underflow = (bool(raised & one) for one in exceptions())
    return soft | divide | overflow << 1 | underflow << 2 | invalid << 3


@cache
def _hardware() -> tuple[Any, Any]:
    """Return C's functions that clear floating-point exceptions, and look at them."""
    library = ctypes.CDLL(None)
    return library.feclearexcept, library.fetestexcept
