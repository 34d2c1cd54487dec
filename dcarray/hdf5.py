"""Arrays in HDF5 files, written and read block by block where they lie over many ranks.  It needs h5py."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import compiles
from dcarray.distributed.dispatch import detached, dist_array_of, ndarray_of

from .core import config

__all__ = ["load", "save"]

File = str | os.PathLike[str]


def save(file: File, name: str, x: Any, mode: str = "a", **options: Any) -> None:
    """Write an array as a dataset, without gathering it: ranks write their blocks in turn.

    Parameters
    ----------
    file : path
        The file, which all ranks see under this name.
    name : str
        Of the dataset; one of this name is replaced.
    x : array_like
        The array; the same on all ranks, or in blocks over them.
    mode : {"a", "w", "r+"}
        As that of ``h5py.File``: by default the file is made if it is not there.
    **options
        For ``create_dataset``: ``chunks``, ``compression``, ...  A chunk that several ranks have parts of is
        read and written again by each.

    Raises
    ------
    ImportError
        Without h5py.
    OSError, ValueError, TypeError
        As those of h5py, on all ranks.

    Examples
    --------
    >>> dc.hdf5.save("run.h5", "field/u", u, chunks=True)  # doctest: +SKIP
    """
    from dcarray.comm.algorithms import hdf5
    from dcarray.comm.exchange.dist_array import DistArray
    from dcarray.comm.transport.world import world

    if mode not in ("a", "w", "r+"):
        raise ValueError(f"mode is 'a', 'w' or 'r+', not {mode!r}")
    given = x if isinstance(x, (ndarray, np.ndarray)) else np.asarray(x)
    piece = None if communicator() is None else dist_array_of(detached(given))
    with communicating():
        hdf5.save(file, name, piece or DistArray.replicated(np.asarray(given), world()), mode, options)


def load(file: File, name: str, window: slice | Iterable[slice] = ()) -> Any:
    """Read a dataset, or part of it; in blocks over the ranks, each of which reads its own, if it is large.

    Parameters
    ----------
    file : path
        The file, which all ranks see under this name.
    name : str
        Of the dataset.
    window : slice or sequence of slice, optional
        The part, along the first axes, as in ``dataset[window]``; steps are positive.

    Returns
    -------
    ndarray

    Raises
    ------
    ImportError
        Without h5py.
    OSError, KeyError
        As those of h5py, on all ranks.
    IndexError
        If the dataset has no such part.
    """
    from dcarray.comm.algorithms import hdf5
    from dcarray.comm.layout.grid import ProcessGrid
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.transport.world import world
    from dcarray.distributed.executor import default_layout

    comm, options = world(), config.current()
    with communicating():
        shape, dtype = hdf5.stored_shape(file, name, comm)
    keys = (window,) if isinstance(window, slice) else tuple(window)
    places = _places(shape, keys)
    wanted = tuple(map(len, places))
    large = comm.size > 1 and bool(wanted) and math.prod(wanted) > options.distribute_above
    over = default_layout(wanted, options, comm) if large and compiles(dtype) else None
    layout = over or Layout.copies(wanted, ProcessGrid((comm.size,)))
    piece = hdf5.load(file, name, places, layout, dtype, comm)
    return ndarray_of(piece) if over is not None else wrap(piece.block)


def _places(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[range]:
    if len(keys) > len(shape) or not all(isinstance(key, slice) for key in keys):
        raise IndexError(f"a window of a dataset of {len(shape)} axes is at most as many slices, not {keys}")
    every = (*keys, *[slice(None)] * (len(shape) - len(keys)))
    found = [range(n)[key] for n, key in zip(shape, every, strict=True)]
    if any(r.step < 0 for r in found):
        raise IndexError("the steps of a window must be positive")
    return found
