"""What ranks tell each other of a recording before and after they run it together."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from .ranks import parted
from .running import line_of

if TYPE_CHECKING:
    from .comm.protocol import Communicator
    from .recording import Recording

__all__ = ["agreed", "united"]

_MOST = 1024  # digests kept
_WORDS = 1024 // 62 + 2  # of the bits of who is alive: a recording has no more entries

_digests: dict[Any, int] = {}


def agreed(rec: Recording, log: tuple[Any, ...], comm: Communicator) -> tuple[int, ...]:
    """The new arrays that some rank still holds; that is where the garbage collector may differ.

    Raises
    ------
    MismatchError
        On all ranks, when they have not recorded the same.
    """
    from .comm.errors import MismatchError

    mark = rec.marks[-1]
    digest = _digests.get((log, rec.kinds))
    if digest is None:
        if len(_digests) >= _MOST:
            _digests.clear()
        text = repr((log, rec.kinds)).encode()
        digest = _digests[log, rec.kinds] = int.from_bytes(blake2b(text, digest_size=8).digest()) >> 2
    own = np.zeros(2 + _WORDS, np.int64)
    own[:2] = digest, ~digest
    for slot in rec.news:
        if rec.slots[slot]() is not None and slot < 62 * _WORDS:
            own[2 + slot // 62] |= 1 << slot % 62
    every = np.empty_like(own)
    with parted():
        comm.step(("run", f"{len(log)} recorded", digest), lambda: line_of(mark))
        comm.allreduce(own, every, "bor")
    if every[0] & every[1]:
        file, line = line_of(mark)
        raise MismatchError(f"ranks have not recorded the same: rank {comm.rank} is at {file}:{line}")
    return tuple([k for k in rec.news if k >= 62 * _WORDS or every[2 + k // 62] >> (k % 62) & 1])


def united(comm: Communicator, flags: int) -> int:
    """The bits that some rank has."""
    own = np.array(flags)
    every = np.empty_like(own)
    comm.allreduce(own, every, "bor")
    return int(every)
