"""Calls of ScaLAPACK in Intel's MKL, if that is installed together with MPICH or Intel MPI.

``pip install mkl`` installs the libraries, which are found at run time.  Matrices are redistributed to cyclic
blocks over both axes of a grid, in column-major memory, as ScaLAPACK requires.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.grid import choose_grid
from dcarray.comm.layout.layouts import Cyclic, Layout
from dcarray.comm.transport.protocol import Array, Communicator
from dcarray.comm.transport.simulated_ranks import ThreadCommunicator
from dcarray.comm.transport.world import world

from .diagonals import owned_indices

__all__ = ["cholesky", "is_available", "solve"]

# In the order of their dependencies; with Intel MPI's interface, which MPICH has as well.
_NAMES = (
    "libmkl_core.so", "libmkl_sequential.so", "libmkl_intel_lp64.so", "libmkl_blacs_intelmpi_lp64.so",
    "libmkl_scalapack_lp64.so",
)  # fmt: skip
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
_BLOCK = 64


@cache
def _library() -> ctypes.CDLL | None:
    """Return the library with ScaLAPACK; None if it cannot be loaded into this process."""
    try:
        # MPI itself is there if mpi4py runs over an MPI with this interface, and no other would do.
        ctypes.CDLL("libmpi.so.12", mode=ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
    except OSError:
        return None
    places = [Path(sys.prefix, "lib"), Path(os.environ.get("MKLROOT", sys.prefix), "lib")]
    for place in places:
        paths = [next(iter(sorted(place.glob(name + ".*"))), None) for name in _NAMES]
        try:
            loaded = [
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY)
                for path in paths
                if path is not None
            ]
        except OSError:
            continue
        if len(loaded) == len(_NAMES):
            return ctypes.CDLL(None)
    return None


def is_available(comm: Communicator) -> bool:
    """Whether ScaLAPACK is installed on all ranks, and these are all processes of an MPI job."""
    if comm.size == 1 or isinstance(comm, ThreadCommunicator) or comm is not world():
        return False
    there = np.array([_library() is not None], np.int64)
    comm.allreduce(there, there, "min")
    return bool(there[0])


@cache
def _context(shape: tuple[int, int]) -> int:
    """Return the BLACS context of a grid of all processes, in row-major order."""
    library = _library()
    assert library is not None
    context = ctypes.c_int(0)
    library.blacs_get_(_int(0), _int(0), ctypes.byref(context))
    library.blacs_gridinit_(ctypes.byref(context), b"R", _int(shape[0]), _int(shape[1]))
    return context.value


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


class _Matrix:
    """A matrix in cyclic blocks over a grid, in the form that ScaLAPACK requires."""

    def __init__(self, x: DistArray, grid: Any, dtype: np.dtype[Any], block: int) -> None:
        self.comm = x.comm
        self.layout = Layout(x.shape, grid, [Cyclic(0, block), Cyclic(1, block)])
        self.memory = np.array(x.redistribute(self.layout).local, dtype, order="F")
        rows = max(1, self.memory.shape[0])
        given = [1, _context(grid.shape), *x.shape, block, block, 0, 0, rows]
        self._described = (ctypes.c_int * 9)(*given)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments that subroutines take for the matrix: memory, first row, first column, descriptor."""
        return ctypes.c_void_p(self.memory.ctypes.data), _int(1), _int(1), self._described

    def indices(self) -> tuple[Array, Array]:
        """Return the row numbers and the column numbers that this rank owns."""
        rows, columns = map(owned_indices, self.layout.parts, self.layout.part_indices(self.comm.rank))
        return rows, columns

    def diagonal(self) -> Array:
        """Return the elements of the diagonal that this rank owns."""
        rows, columns = self.indices()
        elements: Array = self.memory[rows[:, None] == columns]
        return elements

    def to_array(self) -> DistArray:
        return DistArray(self.comm, self.layout, np.ascontiguousarray(self.memory))


def _call(name: str, dtype: np.dtype[Any], *arguments: Any) -> None:
    getattr(_library(), f"p{_PREFIX[dtype.char]}{name}_")(*arguments)


def _block(extent: int, shape: tuple[int, ...]) -> int:
    return max(1, min(_BLOCK, extent // max(shape)))


def solve(a: DistArray, b: DistArray, dtype: np.dtype[Any]) -> DistArray:
    """Return the solution of ``a @ x = b`` for a matrix and a matrix of right-hand sides, by ``gesv``.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks, when the matrix is singular.
    """
    n, sides = b.shape
    grid = choose_grid((n, n), a.comm.size)
    block = _block(n, grid.shape)
    matrix, right = (_Matrix(x, grid, dtype, block) for x in (a, b))
    pivots = np.zeros(matrix.memory.shape[0] + block, np.int32)
    info = ctypes.c_int(0)
    there = ctypes.c_void_p(pivots.ctypes.data)
    _call("gesv", dtype, _int(n), _int(sides), *matrix.arguments, there, *right.arguments, ctypes.byref(info))
    # The library does not always report it.
    _raise_on_all(a.comm, not matrix.diagonal().all(), "Singular matrix")
    return right.to_array()


def cholesky(a: DistArray, dtype: np.dtype[Any]) -> DistArray:
    """Return the lower triangular factor of a Hermitian matrix, by ``potrf``.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks, when the matrix is not positive definite.
    """
    n = a.shape[0]
    grid = choose_grid((n, n), a.comm.size)
    matrix = _Matrix(a, grid, dtype, _block(n, grid.shape))
    info = ctypes.c_int(0)
    _call("potrf", dtype, b"L", _int(n), *matrix.arguments, ctypes.byref(info))
    wrong = info.value != 0 or not (matrix.diagonal().real > 0).all()
    _raise_on_all(a.comm, wrong, "Matrix is not positive definite")
    rows, columns = matrix.indices()
    matrix.memory[rows[:, None] < columns] = 0
    return matrix.to_array()


def _raise_on_all(comm: Communicator, wrong: bool, what: str) -> None:
    """Raise `LinAlgError` with the text `what` on all ranks if `wrong` is true on one of them."""
    flag = np.array([wrong], np.int64)
    comm.allreduce(flag, flag, "max")
    if flag[0]:
        raise np.linalg.LinAlgError(what)
