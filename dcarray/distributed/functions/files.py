"""Distributed `numpy.save`, `load`, `tofile` and their like: each rank writes and reads its own block."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from dcarray.api.functions.registry import Unserved
from dcarray.comm.algorithms import npy_files
from dcarray.comm.layout.layouts import Layout
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.config import current
from dcarray.core.handle import Handle
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import compiles
from dcarray.distributed.function_dispatch import (
    DISTRIBUTED,
    dist_array_of,
    dist_operand,
    ndarray_of,
    require,
)
from dcarray.distributed.layout_choice import default_layout
from dcarray.recording.operands import plain_of

__all__ = ["load", "tofile"]


def _path(file: Any) -> str:
    """Return the path of a file that all ranks can open; an open file is left to NumPy."""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    require(isinstance(name, str))
    return str(name)


def _save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    name, x = _path(file), dist_operand(arr)
    npy_files.save(name if name.endswith(".npy") else name + ".npy", x)


def _on_first_rank(function: Any) -> Any:
    """Return the implementation of a function that rank 0 runs on gathered arrays, while the others wait."""

    def implementation(file: Any, *args: Any, **kwargs: Any) -> Any:
        comm, name = communicator(), _path(file)
        assert comm is not None
        given = [_gathered_on_first(a) for a in args]
        named = {key: _gathered_on_first(a) for key, a in kwargs.items()}
        npy_files.run_on_first_rank(comm, lambda: function(name, *given, **named))

    return implementation


def _gathered_on_first(value: Any) -> Any:
    """Return an array gathered on rank 0; other values as they are."""
    x = dist_array_of(value) if isinstance(value, (Handle, np.ndarray)) else None
    if x is None:
        return plain_of(value)  # on all ranks, since what is pending runs on all
    if not x.ndim:
        return x.block
    return x.redistribute(Layout.on_one(x.shape, x.comm.size, 0)).block


_to_file = _on_first_rank(lambda name, x, *args, **kwargs: np.asarray(x).tofile(name, *args, **kwargs))


def tofile(x: Any, file: Any, *args: Any, **kwargs: Any) -> bool:
    """Write a distributed array as `numpy.ndarray.tofile`; False if the file is not given by its path."""
    with communicating():
        try:
            _to_file(file, x, *args, **kwargs)
        except Unserved:
            return False
    return True


DISTRIBUTED[np.save] = _save
for _function in (np.savez, np.savez_compressed, np.savetxt):
    DISTRIBUTED[_function] = _on_first_rank(_function)


def load(*args: Any, **kwargs: Any) -> Any:
    """Return the array of a file, distributed; `NOT_DISTRIBUTED` if it is small, or without ranks.

    Raises
    ------
    OSError
        NumPy's error, on all ranks, if the file cannot be read.
    """
    comm, options = communicator(), current()
    if comm is None or len(args) != 1 or kwargs:
        return NOT_DISTRIBUTED
    try:
        name = _path(args[0])
        require(name.endswith(".npy"))
        with communicating():
            shape, dtype = npy_files.stored_shape(name, comm)
    except (Unserved, ValueError):  # NumPy raises the error
        return NOT_DISTRIBUTED
    if not compiles(dtype) or not shape or math.prod(shape) <= options.distribute_above:
        return NOT_DISTRIBUTED
    with communicating():
        x = npy_files.load(name, default_layout(shape, options, comm), comm)
    return ndarray_of(x)
