"""Whether the MPI library takes messages in the memory of CUDA devices, as far as it says."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from mpi4py import MPI

__all__ = ["takes_device_memory"]

# Parts of libraries' names, with the variable that turns device memory on or off, and its default.
_SWITCHES = (
    ("CRAY MPICH", "MPICH_GPU_SUPPORT_ENABLED", "0"),
    ("MVAPICH2", "MV2_USE_CUDA", "0"),
    ("MPICH", "MPIR_CVAR_ENABLE_GPU", "1"),
)
_OFF = ("0", "no", "false", "off")
_CUDA = 0  # MPICH's number of this kind of GPU


def takes_device_memory(communicator: object, trusted: bool) -> bool:
    """Return whether messages may be in a CUDA device's memory.

    Parameters
    ----------
    communicator : MpiCommunicator
        Any one, since all have the same library.
    trusted : bool
        The user says that they may, so that the library is not asked.
    """
    return trusted or _this_one_says_so()


@cache
def _this_one_says_so() -> bool:
    return says_so(ctypes.CDLL(MPI.__file__), MPI.Get_library_version())  # which finds the library's symbols


def says_so(library: Any, version: str) -> bool:
    """Return whether an MPI library, which has been initialised, says that it takes device memory; without a
    clear answer False."""
    for name, variable, default in _SWITCHES:
        if name in version.upper() and os.environ.get(variable, default).lower() in _OFF:
            return False
    if (ask := getattr(library, "MPIX_GPU_query_support", None)) is not None:
        # MPICH, whose other function ends the process in some versions
        supported = ctypes.c_int(0)
        return ask(_CUDA, ctypes.byref(supported)) == 0 and bool(supported)
    if (ask := getattr(library, "MPIX_Query_cuda_support", None)) is None:
        return False
    return _is_on(library) and bool(ask())


def _is_on(library: Any) -> bool:
    """Return whether Open MPI 4 takes device memory, if it was built so, which is all that its function says;
    True for other libraries."""
    try:
        return bool(ctypes.c_bool.in_dll(library, "opal_cuda_support"))
    except ValueError:
        return True
