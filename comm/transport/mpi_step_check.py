"""Checks, without blocking, that the ranks of a group perform the same operations in the same order.

The hashes of the k-th operation of all ranks are compared by a nonblocking reduction of 32 bytes on a
separate communicator.  A rank may attach bits to an operation; every rank gets their bitwise or over all
ranks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from mpi4py import MPI

from .call_location import Location, caller, location_text
from .deadlock import CollectiveCall
from .errors import MismatchError
from .mpi_service import Job, Polled
from .protocol import SHARED_BITS, Array, step_text

__all__ = ["StepCheck", "decode_words", "encode_words", "step_hash"]

_MAX_OPEN = 64  # operations that may be unconfirmed by other ranks
_MAX_HASHES = 4096  # hashes
_WORD = SHARED_BITS // 2  # bits carried by a word
_MASK = (1 << _WORD) - 1


@dataclass(frozen=True)
class _Step:
    """An operation of this rank whose check has begun and not ended."""

    number: int
    what: tuple[Any, ...]
    where: Location
    words: Array  # see `encode_words`
    request: MPI.Request

    def __str__(self) -> str:
        return f"{step_text(self.what)} ({location_text(self.where)})"


def encode_words(what: int, bits: int) -> Array:
    """Return the four integers of an operation that are reduced by bitwise or over the ranks.

    They are its hash and the complement, which after the reduction share a bit if and only if hashes differ,
    and the attached bits in two halves.
    """
    return np.array((what, ~what, bits & _MASK, bits >> _WORD))


def decode_words(words: Array) -> int | None:
    """Return the bitwise or of the ranks' attached bits from reduced words; None if hashes differ."""
    what, complement, low, high = words.tolist()
    return None if what & complement else low | high << _WORD


def step_hash(what: tuple[Any, ...]) -> int:
    """Return the hash of an operation: a number of 62 bits."""
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=8).digest()) >> 2


class StepCheck(Polled):
    """The check that all ranks of a group perform the same operations in the same order.

    Parameters
    ----------
    job : Job
        The job, by which this rank waits and exchanges control messages.
    group : object
        The group's name, the same on all its ranks.
    ranks : sequence of int
        The numbers in MPI_COMM_WORLD of the group's ranks.
    opening : (MPI.Intracomm, MPI.Request)
        A communicator for the check, and the request of its nonblocking creation.
    """

    def __init__(
        self, job: Job, group: Any, ranks: Sequence[int], opening: tuple[MPI.Intracomm, MPI.Request]
    ) -> None:
        self.job = job
        self._group, self._ranks = group, ranks
        self._comm, self._opening = opening
        self._is_open = False
        self._hashes: dict[tuple[Any, ...], int] = {}
        self._taken = 0
        self._open: deque[_Step] = deque()
        self._differing: _Step | None = None
        self._calls: dict[int, str] = {}  # on the first rank: what each has called where they differ
        job.polled[group] = self

    def step(self, what: tuple[Any, ...], where: Location | None = None, bits: int = 0) -> Array:
        """Begin the check of an operation; return the array that holds its words when the check has ended.

        Raises
        ------
        MismatchError
            When ranks have performed different operations.
        """
        self.job.check()
        if not self._is_open:
            self.job.wait(
                self._opening.Test, lambda: [CollectiveCall(self._group, self._ranks, 1, step_text(what))]
            )
            self._is_open = True
        number = self._hashes.get(what)
        if number is None:
            if len(self._hashes) > _MAX_HASHES:
                self._hashes.clear()
            number = self._hashes[what] = step_hash(what)
        words = encode_words(number, bits)
        self._taken += 1
        self.job.collectives[self._group] = self._taken
        self.job.last = where = where or caller()
        request = self._comm.Iallreduce(MPI.IN_PLACE, [words, 4, MPI.INT64_T], MPI.BOR)
        self._open.append(_Step(self._taken, what, where, words, request))
        self.poll()
        if len(self._open) > _MAX_OPEN:
            self.job.wait(self._has_room, self.needs)
        return words

    def step_and_wait(self, what: tuple[Any, ...], bits: int = 0, where: Location | None = None) -> int:
        """Check an operation, wait until all ranks perform it, and return the bitwise or of their bits."""
        words = self.step(what, where, bits)
        self.job.wait(self._all_taken, self.needs)
        combined = decode_words(words)
        assert combined is not None
        return combined

    def _all_taken(self) -> bool:
        self.poll()
        return not self._open

    def _has_room(self) -> bool:
        self.poll()
        return len(self._open) <= _MAX_OPEN

    def needs(self) -> list[CollectiveCall]:
        return [
            CollectiveCall(self._group, self._ranks, step.number, step_text(step.what)) for step in self._open
        ]

    def poll(self) -> None:
        while self._open and self._differing is None and self._open[0].request.Test():
            step = self._open[0]
            if decode_words(step.words) is None:
                self._differing = step
                self.job.send_control(self._ranks[0], "part", self._group, "call", str(step))
            else:
                self._open.popleft()

    def receive(self, sender: int, *what: Any) -> None:
        kind, text = what
        if kind == "call":
            self._calls[sender] = text
            if len(self._calls) == len(self._ranks):
                sentence = self._sentence()
                for rank in self._ranks:
                    self.job.send_control(rank, "part", self._group, "differ", sentence)
        else:
            self.job.set_failure(MismatchError, text)

    def _sentence(self) -> str:
        by_call: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_call.setdefault(self._calls[rank], []).append(rank)
        return " where ".join(f"{_ranks_text(ranks)} {call}" for call, ranks in by_call.items())


def _ranks_text(ranks: Sequence[int]) -> str:
    """Return the text of a list of ranks, with intervals such as ``2-5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    text = ", ".join("-".join(map(str, run)) for run in runs)
    return f"rank {text} calls" if len(ranks) == 1 else f"ranks {text} call"
