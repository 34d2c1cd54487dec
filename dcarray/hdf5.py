"""Arrays in HDF5 files; each rank writes and reads its own blocks of distributed ones.  Needs h5py."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import compiles
from dcarray.distributed.function_dispatch import detach, dist_array_of, ndarray_of

from .core import config

__all__ = ["load", "save"]

File = str | os.PathLike[str]


def save(file: File, name: str, x: Any, mode: str = "a", **options: Any) -> None:
    """Write an array as a dataset, without gathering it: the ranks write their blocks one after the other.

    Parameters
    ----------
    file : str or path
        The file, which all ranks see under this name.
    name : str
        The name of the dataset; an existing one is replaced.
    x : array_like
        The array: the same on all ranks, or distributed.
    mode : {"a", "w", "r+"}
        As of ``h5py.File``: "a" creates the file if there is none, "w" replaces it, "r+" needs an existing
        one.
    **options
        Arguments of h5py's ``create_dataset``: ``chunks``, ``compression``, ...  A chunk with elements of
        several ranks is read and written by each of them.

    Raises
    ------
    ImportError
        If h5py is not installed.
    ValueError
        If there is no such mode.
    OSError, ValueError, TypeError
        If h5py raises them; then on all ranks.

    Examples
    --------
    >>> import dcarray as dc
    >>> dc.hdf5.save("run.h5", "field/u", dc.ones((4, 6)), chunks=True)
    >>> dc.hdf5.load("run.h5", "field/u", (slice(1, 3),)).shape
    (2, 6)
    """
    from dcarray.comm.algorithms import hdf5_files
    from dcarray.comm.exchange.dist_array import DistArray
    from dcarray.comm.transport.world import world

    if mode not in ("a", "w", "r+"):
        raise ValueError(f"mode={mode!r}: must be 'a', 'w' or 'r+'")
    given = x if isinstance(x, (ndarray, np.ndarray)) else np.asarray(x)
    piece = None if communicator() is None else dist_array_of(detach(given))
    with communicating():
        hdf5_files.save(file, name, piece or DistArray.replicated(np.asarray(given), world()), mode, options)


def load(file: File, name: str, window: slice | Iterable[slice] = ()) -> Any:
    """Read a dataset, or a window of it; a large one is distributed, and each rank reads its own block.

    Parameters
    ----------
    file : str or path
        The file, which all ranks see under this name.
    name : str
        The name of the dataset.
    window : slice or sequence of slice, optional
        The window, along the first axes, as in ``dataset[window]``; steps have to be positive.

    Returns
    -------
    ndarray
        Distributed if it has more elements than the option ``distribute_above``.

    Raises
    ------
    ImportError
        If h5py is not installed.
    OSError, KeyError
        If h5py raises them; then on all ranks.
    IndexError
        If the dataset has no such window.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> dc.hdf5.save("run.h5", "u", np.arange(12.0))
    >>> dc.hdf5.load("run.h5", "u", slice(0, None, 4))
    array([0., 4., 8.])
    """
    from dcarray.comm.algorithms import hdf5_files
    from dcarray.comm.layout.grid import ProcessGrid
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.transport.world import world
    from dcarray.distributed.layout_choice import default_layout

    comm, options = world(), config.current()
    with communicating():
        shape, dtype = hdf5_files.stored_shape(file, name, comm)
    keys = (window,) if isinstance(window, slice) else tuple(window)
    ranges = _ranges(shape, keys)
    window_shape = tuple(map(len, ranges))
    large = comm.size > 1 and bool(window_shape) and math.prod(window_shape) > options.distribute_above
    distributed = default_layout(window_shape, options, comm) if large and compiles(dtype) else None
    layout = distributed or Layout.copies(window_shape, ProcessGrid((comm.size,)))
    piece = hdf5_files.load(file, name, ranges, layout, dtype, comm)
    return ndarray_of(piece) if distributed is not None else wrap(piece.block)


def _ranges(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[range]:
    """Return the elements of each axis that a window of a dataset has."""
    if len(keys) > len(shape) or not all(isinstance(key, slice) for key in keys):
        raise IndexError(
            f"a window of a dataset with {len(shape)} axes takes at most as many slices, not {keys}"
        )
    full = (*keys, *[slice(None)] * (len(shape) - len(keys)))
    ranges = [range(n)[key] for n, key in zip(shape, full, strict=True)]
    if any(r.step < 0 for r in ranges):
        raise IndexError("the steps of a window must be positive")
    return ranges
