"""The communicator of all ranks: simulated ones, those of an MPI job, or this process alone."""

from __future__ import annotations

import os
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


def world() -> Communicator:
    """Return the communicator of all ranks.

    Returns
    -------
    Communicator
        In a rank of `dcarray.comm.run`, the simulated ranks; otherwise those of the MPI job, as mpi4py has
        them; without mpi4py, this process alone.

    Raises
    ------
    CommError
        When an MPI launcher has started this process and mpi4py is not installed, or MPI is not initialised.
    """
    simulated = simulated_ranks.current.get()
    if simulated is not None:
        return simulated
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
    """Return MPI's function `world`, if mpi4py is installed; its import initialises MPI."""
    if find_spec("mpi4py") is None:
        return None
    from . import mpi

    return mpi.world


@cache
def _alone() -> Communicator:
    return simulated_ranks.single_rank()
