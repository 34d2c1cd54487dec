"""Agreement of ranks on a recording: its operations, its live results, its floating-point flags."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.processes import communicating
from dcarray.execution.run_plan import line_of

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator
    from dcarray.recording.log import Recording

__all__ = ["agree_on_live", "combine_flags", "digest"]

_BITS = 62  # of a digest, and of a word of bits
_MASK = (1 << _BITS) - 1
_WORDS = 1024 // _BITS + 2  # of a bit set of slots: a recording has no more entries


def digest(value: Any) -> int:
    """Return a hash of an object's ``repr``, the same in all processes."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest()) >> 2


_cached_digest = lru_cache(1024)(digest)


def agree_on_live(
    rec: Recording, description: tuple[Any, ...], live: tuple[int, ...], comm: Communicator
) -> tuple[int, ...]:
    """Return the slots of new arrays that some rank still holds, since their garbage collectors may differ.

    Parameters
    ----------
    rec : Recording
    description : tuple
        The description of the recording that ranks compare.
    live : tuple of int
        The slots of new arrays that this rank holds.
    comm : Communicator

    Raises
    ------
    MismatchError
        On all ranks, when their recordings differ.
    """
    site, code = rec.sites[-1], _cached_digest(live)
    # Of two digests that differ, one has a bit that the complement of the other has too.
    with communicating():
        bits = comm.share(description, code | (~code & _MASK) << _BITS, lambda: line_of(site))
    return live if not bits & bits >> _BITS else _live_on_some_rank(rec, live, comm)


def _live_on_some_rank(rec: Recording, live: tuple[int, ...], comm: Communicator) -> tuple[int, ...]:
    """Return the result of `agree_on_live` when ranks hold different arrays."""
    words = np.zeros(_WORDS, np.int64)
    for slot in live:
        if slot < _BITS * _WORDS:
            words[slot // _BITS] |= 1 << slot % _BITS
    with communicating():
        comm.allreduce(words, words, "bor")
    return tuple([k for k in rec.news if k >= _BITS * _WORDS or words[k // _BITS] >> (k % _BITS) & 1])


def combine_flags(comm: Communicator, flags: int) -> int:
    """Return the bitwise or of all ranks' flags."""
    return comm.share(("raised",), flags)
