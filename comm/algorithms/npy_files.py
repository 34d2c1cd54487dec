"""Reading and writing of ``.npy`` files, in which each rank accesses its own elements.

All ranks must see the file under the same name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.protocol import Communicator

__all__ = ["File", "load", "local_boxes", "run_on_first_rank", "save", "stored_shape"]

File = str | os.PathLike[str]


def save(file: File, x: DistArray) -> None:
    """Write an array as ``numpy.save`` does.

    Parameters
    ----------
    file : path
        The file's path with its extension; an existing file is overwritten.
    x : DistArray
        The array; if several ranks have copies of an element, one is written.

    Raises
    ------
    OSError
        If the file cannot be written; raised on all ranks.
    """
    run_on_first_rank(x.comm, lambda: _create(file, x.shape, x.dtype))
    if x.layout.is_first_copy(x.comm.rank) and x.layout.elements(x.comm.rank):
        out: Any = np.lib.format.open_memmap(file, mode="r+")
        for there, here in local_boxes(x.layout, x.comm.rank):
            out[there] = x.local[here]
        out.flush()
        del out
    x.comm.barrier()


def _create(file: File, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not np.prod(shape):  # nothing to map
        np.save(file, np.empty(shape, dtype))
    else:
        np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape).flush()


def run_on_first_rank(comm: Communicator, action: Any) -> Any:
    """Return the result of an action that the first rank performs; its exception is raised on all ranks."""
    result: Any = None
    if comm.rank == 0:
        try:
            result = action()
        except Exception as error:
            result = error
    result = broadcast_object(comm, result, 0)
    if isinstance(result, Exception):
        raise result
    return result


def stored_shape(file: File, comm: Communicator) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of the array in a file.

    Raises
    ------
    OSError, ValueError
        If ``numpy.load`` raises one of these; raised on all ranks.
    """

    def read_header() -> tuple[tuple[int, ...], np.dtype[Any]]:
        a = np.load(file, mmap_mode="r")
        return a.shape, a.dtype

    header: tuple[tuple[int, ...], np.dtype[Any]] = run_on_first_rank(comm, read_header)
    return header


def load(file: File, layout: Layout, comm: Communicator) -> DistArray:
    """Return the array in a ``.npy`` file, of which each rank reads its own elements.

    Parameters
    ----------
    file : path
    layout : Layout
        The layout of the result, of the shape of the array in the file.
    comm : Communicator
    """
    a = np.load(file, mmap_mode="r")
    block = np.zeros(layout.local_shape(comm.rank), a.dtype)
    piece = DistArray(comm, layout, block)
    for there, here in local_boxes(layout, comm.rank):
        piece.local[here] = a[there]
    return piece


def local_boxes(layout: Layout, rank: int) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Return a rank's elements as boxes: slices of the array, and slices of the rank's own elements."""
    axes: list[Sequence[tuple[slice, slice]]] = []
    for runs in layout.runs(rank):
        pairs, at = [], 0
        for run in runs:
            for turn in range(run.repeats):
                begin = run.start + turn * run.step
                pairs.append((slice(begin, begin + run.length), slice(at, at + run.length)))
                at += run.length
        axes.append(pairs)
    return [(tuple(t for t, _ in box), tuple(h for _, h in box)) for box in product(*axes)]
