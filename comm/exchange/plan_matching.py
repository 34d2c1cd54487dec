"""The check that the plans of all ranks match: sends and receives agree in tag, size and order, no deadlock.

A plan is a list of steps for each rank.  The check simulates the steps without data, as an MPI that buffers
nothing would run them.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dcarray.comm.transport.errors import PlanError
from dcarray.comm.transport.protocol import INTERNAL_TAG

from .exchange_plan import Box, Exchange, Transfer

__all__ = ["CollectiveStep", "Receive", "Send", "Step", "Wait", "steps", "verify"]


@dataclass(frozen=True)
class _Message:
    """One end of a message; `what` describes its content, if that is known."""

    peer: int
    tag: int
    nbytes: int
    what: str = ""
    blocking: bool = False


class Send(_Message):
    """A message to another rank."""


class Receive(_Message):
    """A message from another rank."""


@dataclass(frozen=True)
class Wait:
    """A wait for all messages that the rank has begun."""


@dataclass(frozen=True)
class CollectiveStep:
    """A collective operation of some ranks; all of them must give the same name and number of bytes."""

    name: str
    ranks: tuple[int, ...]
    nbytes: int = 0


Step = Send | Receive | Wait | CollectiveStep


def steps(plan: Exchange, itemsize: int) -> list[Step]:
    """Return the steps of an exchange, for `verify`."""

    def ends(transfers: Sequence[Transfer], kind: type[Send] | type[Receive]) -> list[Step]:
        return [
            kind(t.peer, INTERNAL_TAG, t.elements * itemsize, " + ".join(map(_shape, t.boxes)))
            for t in transfers
        ]

    return [*ends(plan.receives, Receive), *ends(plan.sends, Send), Wait()]


def _shape(box: Box) -> str:
    return " x ".join(
        f"{r.repeats}*{r.length}" if r.repeats > 1 and r.length > 1 else str(r.size) for r in box
    )


def verify(programs: Sequence[Sequence[Step]]) -> None:
    """Check the plans of all ranks against each other.

    Parameters
    ----------
    programs : sequence of sequence of Step
        The steps of each rank, in order.

    Raises
    ------
    PlanError
        If a send has no receive or a receive no send, if their sizes, contents or orders differ, if ranks
        call different collective operations, or if ranks wait for each other; the text lists all problems.
    """
    check = _Check(programs)
    check.run()
    if check.problems:
        raise PlanError("\n".join(check.problems))


class _End:
    """One end of a message that a rank has begun."""

    def __init__(self, rank: int, step: Send | Receive) -> None:
        self.rank, self.step, self.matched = rank, step, False

    def __str__(self) -> str:
        what = f" ({self.step.what})" if self.step.what else ""
        return f"{self.step.nbytes:,} bytes{what}"


_Ends = defaultdict[tuple[int, int, int], deque[_End]]


class _Check:
    """The simulation of all ranks' plans."""

    def __init__(self, programs: Sequence[Sequence[Step]]) -> None:
        self.programs = programs
        self.problems: list[str] = []
        self._at: list[tuple[int, Step] | None] = [None] * len(programs)
        self._sends: _Ends = defaultdict(deque)
        self._receives: _Ends = defaultdict(deque)
        self._met: Counter[tuple[Step, int]] = Counter()
        self._steps_ended = 0

    def run(self) -> None:
        walks = [self._walk(rank) for rank in range(len(self.programs))]
        before = -1
        while before < self._steps_ended:
            before = self._steps_ended
            for walk in walks:
                next(walk, None)
        self._leftovers()
        waiting = [(rank, at) for rank, at in enumerate(self._at) if at is not None]
        if waiting:
            self.problems.append("these ranks cannot go on:")
            self.problems += [f"  rank {rank} at step {number}: {step}" for rank, (number, step) in waiting]

    def _walk(self, rank: int) -> Iterator[None]:
        """Simulate one rank's plan, pausing where the rank has to wait."""
        begun: list[_End] = []
        turns: Counter[Step] = Counter()
        for number, step in enumerate(self.programs[rank]):
            self._at[rank] = number, step
            if isinstance(step, CollectiveStep):
                turn = step, turns[step]
                turns[step] += 1
                self._met[turn] += 1
                while self._met[turn] < len(step.ranks):
                    yield
            elif isinstance(step, Wait):
                while not all(end.matched for end in begun):
                    yield
                begun.clear()
            else:
                begun.append(self._post(rank, step))
                while step.blocking and not begun[-1].matched:
                    yield
            self._steps_ended += 1
        self._at[rank] = None

    def _post(self, rank: int, step: Send | Receive) -> _End:
        """Match a message with its other end, or store it until that comes."""
        end = _End(rank, step)
        if isinstance(step, Send):
            key, same, others = (rank, step.peer, step.tag), self._sends, self._receives
        else:
            key, same, others = (step.peer, rank, step.tag), self._receives, self._sends
        if not others[key]:
            same[key].append(end)
            return end
        other = others[key].popleft()
        end.matched = other.matched = True
        differ = step.what and other.step.what and step.what != other.step.what
        if differ or step.nbytes != other.step.nbytes:
            sent, received = (end, other) if isinstance(step, Send) else (other, end)
            self.problems.append(f"{_channel_text(key)}: {sent} are sent and {received} received")
        return end

    def _leftovers(self) -> None:
        """Add a problem for each message that has only one end."""
        for ends, others, verb, lack in (
            (self._sends, self._receives, "sent", "received"),
            (self._receives, self._sends, "received", "sent"),
        ):
            for key, queue in ends.items():
                tags = sorted(t for (*pair, t), q in others.items() if q and tuple(pair) == key[:2])
                hint = f" (but with tag {', '.join(map(str, tags))})" if tags else ""
                self.problems += [
                    f"{_channel_text(key)}: {end} are {verb} and not {lack}{hint}" for end in queue
                ]


def _channel_text(key: tuple[int, int, int]) -> str:
    return f"from rank {key[0]} to rank {key[1]}, tag {key[2]}"
