"""The communicator of all ranks: the simulated ranks, the processes of an MPI job, or this process alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

from . import simulated_ranks
from .errors import CommError
from .protocol import Communicator

__all__ = ["world"]

# Environment variables that launchers set: MPICH and Slurm, Open MPI, PMIx.
_LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK")

_OFF = ("0", "false", "no", "off")

# What mpi4py.futures runs a master and its workers by, and workers that a master has spawned.
_POOLS = ("mpi4py.futures", "mpi4py.futures.server")


def world() -> Communicator:
    """Return the communicator of all ranks.

    Returns
    -------
    Communicator
        In a function run by `dcarray.comm.run`, the simulated ranks; otherwise the processes of the MPI job
        (mpi4py's COMM_WORLD); without mpi4py, and in a pool of mpi4py.futures, this process alone.

    Raises
    ------
    CommError
        When an MPI launcher has started this process and mpi4py is not installed, or MPI is not initialised.
    """
    simulated = simulated_ranks.current.get()
    if simulated is not None:
        return simulated
    if _is_in_pool():
        return _alone()
    mpi_world = _mpi_world()
    if mpi_world is None:
        launched = [name for name in _LAUNCHED if name in os.environ]
        if launched:
            raise CommError(
                f"an MPI launcher has started this process ({launched[0]} is set), but mpi4py is not "
                "installed: pip install 'dcarray[mpi]'"
            )
        return _alone()
    return mpi_world(os.environ.get("DCARRAY_WATCH", "1") not in _OFF)


@cache
def _mpi_world() -> Callable[[bool], Communicator] | None:
    """Return the function `world` of the module mpi; None without mpi4py.  The import initialises MPI."""
    if find_spec("mpi4py") is None:
        return None
    from . import mpi

    return mpi.world


@cache
def _is_in_pool() -> bool:
    """Whether this process is the master or a worker of a pool of mpi4py.futures, and so not a rank."""
    line = sys.orig_argv
    return "-m" in line and line[line.index("-m") + 1 :][:1] in [[name] for name in _POOLS]


@cache
def _alone() -> Communicator:
    return simulated_ranks.single_rank()
