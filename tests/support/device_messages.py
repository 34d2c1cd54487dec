"""A CUDA device that is made up, and a program of ranks on it: ``mpiexec -n 2 python -m device_messages``."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from device_ranks import STEPS, stencil
from fake_cupy import FakeCupy

import dcarray as dc
from dcarray.comm import ProcessGrid, world
from dcarray.distributed import device_blocks
from dcarray.lowering.gpu import devices as table
from dcarray.lowering.gpu.cuda.device import CudaDevice

OPTIONS = {"device": "cuda", "jit": "eager", "distribute_above": 0, "graphs": False, "cache_dir": None}


def make_up(put: Callable[[dict[Any, Any], str, Any], None] = dict.__setitem__) -> CudaDevice:
    """Put the device into the table; its memory is the host's."""
    put(sys.modules, "cupy", FakeCupy())
    put(sys.modules, "cuda.core", None)
    put(table._found, "cuda", [made := CudaDevice(0)])
    device_blocks._device.cache_clear()
    return made


def buffer_under(part: Any) -> Any:
    """Return the device's buffer in whose memory a message's window lies; None if it is the host's."""
    while isinstance(part, np.ndarray):
        part = part.base
    return part.buffer if isinstance(part, device_blocks._Memory) else None


def program(*grid: int) -> None:
    """Compare with NumPy."""
    want = np.random.default_rng(1).random((60, 90))
    x = dc.distribute(want.copy(), ProcessGrid(grid))
    stencil(want, STEPS), stencil(x, STEPS)
    np.testing.assert_array_equal(np.asarray(x), want)


if __name__ == "__main__":
    from dcarray.comm.transport import mpi, mpi_persistent
    from dcarray.comm.transport.mpi_types import buffer_of

    begun = 0

    def noted(parts: Any) -> list[Any]:
        global begun
        found = buffer_of(parts)
        if parts and (buffer := buffer_under(parts[0])) is not None:
            assert (
                buffer.ptr
                <= found[0].address
                <= buffer.ptr + buffer.size - found[1]
                < buffer.ptr + buffer.size
            )
            begun += 1
        return found

    mpi.buffer_of = mpi_persistent.buffer_of = noted
    make_up()
    with dc.options(**OPTIONS):
        program(world().size, 1)
    print("ended", begun)
