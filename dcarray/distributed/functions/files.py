"""Distributed `numpy.save`, `load`, `tofile` and their like: each rank writes and reads its own block."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from dcarray.comm.algorithms import npy_files
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.config import current
from dcarray.core.handle import Handle
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import compiles
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, ndarray_of
from dcarray.distributed.spmd_executor import default_layout
from dcarray.recording.operands import evaluated

__all__ = ["load", "tofile"]


def _name(file: Any) -> str | None:
    """The path of a file that all ranks can open; None for an open file."""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    return name if isinstance(name, str) else None


def _save(file: Any, arr: Any, allow_pickle: bool = True) -> Any:
    name, x = _name(file), dist_array_of(arr)
    if name is None or x is None:
        return NOT_DISTRIBUTED
    npy_files.save(name if name.endswith(".npy") else name + ".npy", x)
    return None


def _by_first(function: Any) -> Any:
    """The implementation of a function that rank 0 runs on gathered arrays, while the others wait."""

    def implementation(file: Any, *args: Any, **kwargs: Any) -> Any:
        comm, name = communicator(), _name(file)
        if comm is None or name is None:
            return NOT_DISTRIBUTED
        given = [_on_first(a) for a in args]
        named = {key: _on_first(a) for key, a in kwargs.items()}
        npy_files.run_on_first_rank(comm, lambda: function(name, *given, **named))
        return None

    return implementation


def _on_first(value: Any) -> Any:
    """An array gathered on rank 0."""
    x = dist_array_of(value) if isinstance(value, (Handle, np.ndarray)) else None
    if x is None:
        return plain_of(value)  # on all ranks, since what is pending runs on all
    if not x.ndim:
        return x.block
    return x.redistributed(Layout.on_one(x.shape, x.comm.size, 0)).block


_to_file = _by_first(lambda name, x, *args, **kwargs: np.asarray(x).tofile(name, *args, **kwargs))


def tofile(x: Any, file: Any, *args: Any, **kwargs: Any) -> bool:
    """Write a distributed array as `numpy.ndarray.tofile`; False if the file is not given by its path."""
    with communicating():
        return _to_file(file, x, *args, **kwargs) is not NOT_DISTRIBUTED


DISTRIBUTED[np.save] = _save
for _function in (np.savez, np.savez_compressed, np.savetxt):
    DISTRIBUTED[_function] = _by_first(_function)


def load(*args: Any, **kwargs: Any) -> Any:
    """`numpy.load` into a distributed array; `NOT_DISTRIBUTED` for small ones, and in a single process.

    Raises
    ------
    OSError
        As NumPy's, on all ranks.
    """
    if communicator() is None or len(args) != 1 or kwargs:
        return NOT_DISTRIBUTED
    with communicating():
        found = _loaded(args[0])
    return NOT_DISTRIBUTED if found is None else ndarray_of(found)


def _loaded(file: Any) -> DistArray | None:
    name, comm, options = _name(file), communicator(), current()
    if name is None or not name.endswith(".npy") or comm is None:
        return None
    try:
        shape, dtype = npy_files.stored_shape(name, comm)
    except ValueError:  # NumPy raises the error
        return None
    if not compiles(dtype) or not shape or math.prod(shape) <= options.distribute_above:
        return None
    return npy_files.load(name, default_layout(shape, options, comm), comm)
