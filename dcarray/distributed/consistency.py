"""What ranks tell each other of a recording before and after they run it together."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.processes import communicating
from dcarray.execution.run_plan import line_of

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator
    from dcarray.recording.log import Recording

__all__ = ["agreed", "digest", "united"]

_MOST = 1024  # digests kept
_BITS = 62  # of a digest, and of a word of bits
_MASK = (1 << _BITS) - 1
_WORDS = 1024 // _BITS + 2  # of the bits of who is alive: a recording has no more entries

_digests: dict[tuple[int, ...], int] = {}


def digest(what: Any) -> int:
    """A number that is the same on all ranks for what has the same ``repr``, and most likely no other."""
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=8).digest()) >> 2


def agreed(
    rec: Recording, what: tuple[Any, ...], live: tuple[int, ...], comm: Communicator
) -> tuple[int, ...]:
    """The new arrays that some rank still holds; that is where the garbage collector may differ.

    Parameters
    ----------
    rec : Recording
    what : tuple
        What has been recorded, for `Communicator.step`.
    live : tuple of int
        The slots of new arrays that this rank holds.
    comm : Communicator

    Raises
    ------
    MismatchError
        On all ranks, when they have not recorded the same.
    """
    site = rec.sites[-1]
    own = _digests.get(live)
    if own is None:
        if len(_digests) >= _MOST:
            _digests.clear()
        own = _digests[live] = digest(live)
    # Two digests that differ have a bit that one has, and that the complement of the other has.
    with communicating():
        every = comm.share(what, own | (~own & _MASK) << _BITS, lambda: line_of(site))
    return live if not every & every >> _BITS else _held_by_some(rec, live, comm)


def _held_by_some(rec: Recording, live: tuple[int, ...], comm: Communicator) -> tuple[int, ...]:
    """The new arrays that some rank still holds, where ranks differ."""
    own = np.zeros(_WORDS, np.int64)
    for slot in live:
        if slot < _BITS * _WORDS:
            own[slot // _BITS] |= 1 << slot % _BITS
    every = np.empty_like(own)
    with communicating():
        comm.allreduce(own, every, "bor")
    return tuple([k for k in rec.news if k >= _BITS * _WORDS or every[k // _BITS] >> (k % _BITS) & 1])


def united(comm: Communicator, flags: int) -> int:
    """The bits that some rank has."""
    return comm.share(("raised",), flags)
