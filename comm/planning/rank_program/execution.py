"""Execution of the program of one rank."""

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
    """Run a region on local arrays with the interpreter, in place."""
    interp.run(region, memory)


def execute(
    program: Program,
    comm: Communicator,
    given: Mapping[str, Any],
    local: Callable[[Region, Mapping[str, Any]], None] = interpreted,
    empty: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty,
    around: Callable[[Any], AbstractContextManager[object]] = no_context,
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], Any] | None = None,
) -> dict[str, Any]:
    """Run the program of one rank.

    Parameters
    ----------
    program : Program
    comm : Communicator
        All ranks; each of them runs its program.
    given : mapping of str to (ndarray or Elsewhere)
        This rank's memory of each ``in`` and ``inout`` array of the region, by name.
    local : callable
        Runs a region on local arrays, in place; by default the interpreter.
    empty : callable
        Allocates an array of a shape and dtype.
    around : callable
        Returns the context manager for a statement outside of regions, given its location.
    allocate : callable, optional
        Makes the local arrays, where these are no plain ones.

    Returns
    -------
    dict of str to (ndarray or Elsewhere)
        This rank's memory of each array that exists afterwards, by its name in the region.

    Notes
    -----
    An exception of ``local`` is raised only after pending messages are complete, so all ranks fail alike.
    """
    there = program.given
    at = Execution(comm, {there[name]: array for name, array in given.items()}, local, empty, around)
    memory, new = at.memory, allocate or empty
    try:
        for step, fresh, last in program.schedule:
            for one in fresh:
                memory[one.name] = new(one.shape, one.dtype)
            step.run(at)
            for name in last:
                del memory[name]
    except BaseException:
        at.drain()
        raise
    for name in program.after.values():
        if name not in memory:
            one = program.memory[name]
            memory[name] = new(one.shape, one.dtype)
    return {name: memory[there] for name, there in program.after.items()}
