"""Running one rank's program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from dcarray.comm.transport.protocol import Array, Communicator
from dcarray.ir import interp
from dcarray.ir.nodes import Region

from .steps import Execution, Program, no_context

__all__ = ["execute", "interpreted"]


def interpreted(region: Region, memory: Mapping[str, Array]) -> None:
    """Run a local region by the interpreter, in place."""
    interp.run(region, memory)


def execute(
    program: Program,
    comm: Communicator,
    given: Mapping[str, Array],
    local: Callable[[Region, Mapping[str, Array]], None] = interpreted,
    empty: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty,
    around: Callable[[Any], AbstractContextManager[object]] = no_context,
) -> dict[str, Array]:
    """Run a rank's program.

    Parameters
    ----------
    program : Program
    comm : Communicator
        All ranks, each of which runs its program.
    given : mapping of str to ndarray
        By the names of the region: this rank's memory of each of its ``in`` and ``inout`` arrays.
    local : callable
        Runs a region on local arrays, in place; by default the interpreter does.
    empty : callable
        Makes memory.
    around : callable
        Given where a statement comes from, in what it is run that is in no region.

    Returns
    -------
    dict of str to ndarray
        This rank's memory of each array that exists afterwards, by the names of the region.

    Notes
    -----
    What ``local`` raises is raised when the messages under way are through: all ranks are to fail alike.
    """
    there = program.given
    at = Execution(comm, {there[name]: array for name, array in given.items()}, local, empty, around)
    memory = at.memory
    try:
        for step, made, last in program.schedule:
            for one in made:
                memory[one.name] = empty(one.shape, one.dtype)
            step.run(at)
            for name in last:
                del memory[name]
    except BaseException:
        at.drain()
        raise
    for name in program.after.values():
        if name not in memory:
            one = program.memory[name]
            memory[name] = empty(one.shape, one.dtype)
    return {name: memory[there] for name, there in program.after.items()}
