"""The public functions of ``dcarray.comm`` on simulated ranks; `test_mpi` has the same programs under MPI."""

from collections.abc import Callable

import pytest
from comm_public_programs import PROGRAMS

import dcarray as dc


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Callable[[], None], ranks: int) -> None:
    dc.comm.run(ranks, program)
