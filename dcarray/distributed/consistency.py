"""Agreement of ranks on a recording: that it is the same, which results are alive, and the flags it
raised."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.processes import communicating
from dcarray.execution.run_plan import line_of

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator
    from dcarray.recording.log import Recording

__all__ = ["agree_on_live", "combine_flags", "digest"]

_MOST = 1024  # cached digests
_BITS = 62  # of a digest, and of a word of bits
_MASK = (1 << _BITS) - 1
_WORDS = 1024 // _BITS + 2  # of a bit set of slots: a recording has no more entries

_digests: dict[tuple[int, ...], int] = {}


def digest(what: Any) -> int:
    """A hash of an object's ``repr``, the same in all processes."""
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=8).digest()) >> 2


def agree_on_live(
    rec: Recording, what: tuple[Any, ...], live: tuple[int, ...], comm: Communicator
) -> tuple[int, ...]:
    """The slots of new arrays that some rank still holds, since garbage collectors of ranks may differ.

    Parameters
    ----------
    rec : Recording
    what : tuple
        The description of the recording that ranks compare.
    live : tuple of int
        The slots of new arrays that this rank holds.
    comm : Communicator

    Raises
    ------
    MismatchError
        On all ranks, when their recordings differ.
    """
    site = rec.sites[-1]
    own = _digests.get(live)
    if own is None:
        if len(_digests) >= _MOST:
            _digests.clear()
        own = _digests[live] = digest(live)
    # Of two digests that differ, one has a bit that the complement of the other has too.
    with communicating():
        every = comm.share(what, own | (~own & _MASK) << _BITS, lambda: line_of(site))
    return live if not every & every >> _BITS else _held_by_some(rec, live, comm)


def _held_by_some(rec: Recording, live: tuple[int, ...], comm: Communicator) -> tuple[int, ...]:
    """As `agree_on_live`, where ranks hold different arrays."""
    own = np.zeros(_WORDS, np.int64)
    for slot in live:
        if slot < _BITS * _WORDS:
            own[slot // _BITS] |= 1 << slot % _BITS
    every = np.empty_like(own)
    with communicating():
        comm.allreduce(own, every, "bor")
    return tuple([k for k in rec.news if k >= _BITS * _WORDS or every[k // _BITS] >> (k % _BITS) & 1])


def combine_flags(comm: Communicator, flags: int) -> int:
    """The bitwise or of all ranks' flags."""
    return comm.share(("raised",), flags)
