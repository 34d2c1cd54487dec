"""Reading and writing of datasets in HDF5 files, in which each rank accesses its own elements.

Files are opened through h5py without its parallel driver: ranks read at the same time, and write in turn.
All ranks must see the file under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.protocol import Communicator

from .npy_files import File, local_boxes, run_on_first_rank

__all__ = ["load", "save", "stored_shape"]


def save(file: File, name: str, x: DistArray, mode: str, options: Mapping[str, Any]) -> None:
    """Write an array as a dataset.

    Parameters
    ----------
    file : path
    name : str
        The name of the dataset; an existing dataset of this name is replaced.
    x : DistArray
        The array; if several ranks have copies of an element, one is written.
    mode : {"w", "a", "r+"}
        The mode in which the first rank opens the file.
    options : mapping
        Arguments of ``h5py.Group.create_dataset``.

    Raises
    ------
    OSError, ValueError, TypeError
        If h5py raises one of these; it is raised on all ranks.
    """
    import h5py

    def create() -> None:
        with h5py.File(file, mode) as opened:
            if name in opened:
                del opened[name]
            opened.create_dataset(name, x.shape, x.dtype, **options)

    run_on_first_rank(x.comm, create)
    writes = x.layout.is_first_copy(x.comm.rank) and x.layout.elements(x.comm.rank)
    for rank in range(x.comm.size):
        if rank == x.comm.rank and writes:
            with h5py.File(file, "r+") as opened:
                dataset = opened[name]
                for there, here in local_boxes(x.layout, rank):
                    dataset[there] = x.local[here]
        x.comm.barrier()


def stored_shape(file: File, name: str, comm: Communicator) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of a dataset.

    Raises
    ------
    OSError, KeyError
        If the file or the dataset cannot be read; raised on all ranks.
    """
    import h5py

    def read_header() -> tuple[tuple[int, ...], np.dtype[Any]]:
        with h5py.File(file, "r") as opened:
            dataset = opened[name]
            return dataset.shape, dataset.dtype

    header: tuple[tuple[int, ...], np.dtype[Any]] = run_on_first_rank(comm, read_header)
    return header


def load(
    file: File, name: str, window: Sequence[range], layout: Layout, dtype: np.dtype[Any], comm: Communicator
) -> DistArray:
    """Return a window of a dataset, of which each rank reads its own elements.

    Parameters
    ----------
    file, name
        The dataset.
    window : sequence of range
        For each axis of the dataset the indices to read, ascending.
    layout : Layout
        The layout of the result, of the window's shape.
    dtype : dtype
        The dtype of the dataset.
    comm : Communicator
    """
    import h5py

    piece = DistArray(comm, layout, np.zeros(layout.local_shape(comm.rank), dtype))
    if layout.elements(comm.rank):
        with h5py.File(file, "r") as opened:
            dataset = opened[name]
            for there, here in local_boxes(layout, comm.rank):
                places = [r[s] for r, s in zip(window, there, strict=True)]
                piece.local[here] = dataset[tuple(slice(r.start, r.stop, r.step) for r in places)]
    return piece
