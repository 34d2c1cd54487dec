"""Checks that all ranks have the same value, and broadcasts of small objects."""

from __future__ import annotations

import pickle
from hashlib import blake2b
from typing import Any

import numpy as np

from .errors import MismatchError
from .protocol import Communicator

__all__ = ["broadcast_object", "check_equal"]


def check_equal(comm: Communicator, value: Any, what: str) -> None:
    """Raise `MismatchError` on all ranks unless the ranks' values are equal, compared by hashes of
    ``repr``."""
    if comm.size == 1:
        return
    code = int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest()) >> 2
    ends = np.array([code, -code])
    comm.allreduce(ends, ends, "max")
    if ends[0] != -ends[1]:
        raise MismatchError(f"ranks disagree on {what}: rank {comm.rank} of {comm.size} has {value}")


def broadcast_object(comm: Communicator, value: Any, root: int) -> Any:
    """Return the value of the root, on all ranks; for small values that can be pickled."""
    data = np.frombuffer(pickle.dumps(value) if comm.rank == root else b"", np.uint8)
    size = np.array(data.size)
    comm.bcast(size, root)
    if comm.rank != root:
        data = np.empty(int(size), np.uint8)
    comm.bcast(data, root)
    return value if comm.rank == root else pickle.loads(data.tobytes())
