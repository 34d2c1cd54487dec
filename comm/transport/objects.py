"""Messages with Python objects: NumPy arrays inside them are sent as arrays, the rest is pickled."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from .protocol import INTERNAL_TAG, Array, Communicator, Request

__all__ = ["gather_objects", "pack", "receive_object", "send_object", "unpack"]

# Shape, dtype, and whether in Fortran order, of an array that travels as a window.
_Spec = tuple[tuple[int, ...], Any, bool]


class _Pickler(pickle.Pickler):
    """A pickler that collects NumPy arrays in a list, each once, and pickles their numbers in it instead."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.arrays: list[Array] = []
        self._places: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return None
        if id(value) not in self._places:  # the arrays are held, so that no other one gets the same id
            self._places[id(value)] = len(self.arrays)
            self.arrays.append(value)
        return self._places[id(value)]


class _Unpickler(pickle.Unpickler):
    """An unpickler that inserts received arrays where `_Pickler` has stored the numbers of arrays."""

    def __init__(self, data: bytes, arrays: list[Array]) -> None:
        super().__init__(io.BytesIO(data))
        self._arrays = arrays

    def persistent_load(self, place: int) -> Array:
        return self._arrays[place]


def pack(value: Any) -> tuple[bytes, list[Array]]:
    """Return the pickled bytes of a value, which refer to its arrays by number, and the arrays in C order.

    Raises
    ------
    Exception
        The exception of pickle when a part of the value cannot be pickled.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    turned = [a.flags.f_contiguous and not a.flags.c_contiguous for a in pickler.arrays]
    specs = [(a.shape, a.dtype, fortran) for a, fortran in zip(pickler.arrays, turned, strict=True)]
    windows = [a.T if fortran else a for a, fortran in zip(pickler.arrays, turned, strict=True)]
    return pickle.dumps((specs, file.getvalue())), windows


def unpack(data: bytes) -> tuple[list[Array], Callable[[], Any]]:
    """Return new arrays to receive a value's arrays into, and a function that then returns the value."""
    specs: list[_Spec]
    specs, body = pickle.loads(data)
    arrays = [np.empty(shape, dtype, order="F" if fortran else "C") for shape, dtype, fortran in specs]
    windows = [a.T if fortran else a for a, (_, _, fortran) in zip(arrays, specs, strict=True)]
    return windows, lambda: _Unpickler(body, arrays).load()


def send_object(comm: Communicator, dest: int, value: Any) -> list[Request]:
    """Begin to send a small object to a rank that has begun to receive its length."""
    data = np.frombuffer(pickle.dumps(value), np.uint8)
    return [comm.isend([part], dest, INTERNAL_TAG) for part in (np.array(data.size), data)]


def receive_object(comm: Communicator, source: int, length: Array) -> Any:
    """Receive a small object from a rank and return it; its length in bytes has been received before."""
    data = np.empty(int(length), np.uint8)
    comm.waitall([comm.irecv([data], source, INTERNAL_TAG)])
    return pickle.loads(data.tobytes())


def gather_objects(
    comm: Communicator, value: Any, packed: tuple[bytes, list[Array]], root: int | None
) -> list[Any] | None:
    """Gather the objects of all ranks; return them in rank order on the receiving ranks, None on others.

    Parameters
    ----------
    comm : Communicator
    value
        This rank's value.
    packed : (bytes, list of ndarray)
    root : int or None
        The rank that gets the objects; None: all ranks do.
    """
    data, windows = packed
    blob = np.frombuffer(data, np.uint8)
    lengths = np.empty((comm.size, 1), np.int64)
    comm.allgather(np.array([blob.size]), lengths)
    gets = root in (None, comm.rank)
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    blobs = {rank: np.empty(int(lengths[rank, 0]), np.uint8) for rank in others if gets}

    def exchange(sent: list[Array], received: dict[int, list[Array]]) -> None:
        to = others if root is None else [rank for rank in others if rank == root]
        comm.alltoallw(
            [sent if rank in to else [] for rank in range(comm.size)],
            [received.get(rank, []) for rank in range(comm.size)],
        )

    exchange([blob], {rank: [into] for rank, into in blobs.items()})
    opened = {rank: unpack(into.tobytes()) for rank, into in blobs.items()}
    exchange(windows, {rank: into for rank, (into, _) in opened.items()})
    if not gets:
        return None
    return [value if rank == comm.rank else opened[rank][1]() for rank in range(comm.size)]
