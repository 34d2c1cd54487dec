"""What the processes of a job tell each other beside the program's own messages.

A rank that fails tells the others, which raise `RankError` where they wait; ranks that wait for long tell
rank 0 for what, which finds out when nobody can go on; and rank 0 ends the job when all ranks have ended, so
that none of them is cut off.  For that nobody waits inside MPI: `Job.wait` asks again and again whether a
message is through, and looks at what the others tell in between.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mpi4py import MPI

from .call_location import Where, place, said
from .deadlock import Channel, Need, State, standstill
from .errors import CommError, DeadlockError, RankError
from .exit_status import Leaving
from .pending_output import drain

__all__ = ["Job", "Looked"]

_PATIENCE = 1.0  # seconds of waiting after which a rank tells rank 0
_EAGER = 0.005  # seconds of waiting after which it sleeps now and then
# While it waits a rank moves the parts of large messages, so it must be awake for as long as it sleeps.
_NAP = 0.0001
_TESTS = 16  # questions whether a message is through between two looks at anything else
_TO_HEAR, _TO_END = 10.0, 60.0  # seconds that the others have to hear of a failure, and then to end
_TO_COME = 0.25  # seconds in which something is through of which all ranks have done their part
_TO_READ = 5.0  # seconds that the end of the job waits for this rank's output to be read
_LONGEST = 50_000  # characters of a traceback that travel

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Looked:
    """Something that is looked at whenever this rank waits."""

    def look(self) -> None:
        """See whether anything has arrived; raises what is wrong."""
        raise NotImplementedError

    def needs(self) -> Sequence[Need]:
        """What this rank has done and cannot know yet whether the others do."""
        raise NotImplementedError

    def heard(self, sender: int, *what: Any) -> None:
        """Take what another rank's counterpart has told."""
        raise NotImplementedError


class Job:
    """The processes of a job, as one of them sees them."""

    def __init__(self) -> None:
        self.rank: int = MPI.COMM_WORLD.rank
        self.size: int = MPI.COMM_WORLD.size
        # Without waiting: a program need not ask for its ranks on all of them at once, or at all.
        self._line, self._opening = MPI.COMM_WORLD.Idup()
        self._is_open = False
        self._going: list[MPI.Request] = []
        self.looked: dict[Any, Looked] = {}
        # What this rank has begun, for `standstill`.
        self.sent: Counter[Channel] = Counter()
        self.received: Counter[Channel] = Counter()
        self.met: Counter[object] = Counter()
        self.last: Where | None = None  # where it has last taken part in anything
        self._moves = 0
        self._needs: Callable[[], Sequence[Need]] | None = None
        # What has gone wrong, on whatever rank: raised wherever this one waits from then on.
        self._wrong: tuple[type[CommError], str] | None = None
        self._wrong_since = 0.0
        self._status = 0
        self._shown = False  # has a rank shown what went wrong?
        # The end.
        self._is_ended = False
        self._failed = False  # has this rank told the others that it has?
        self._told: set[int] = set()  # who has heard of that
        self._said = False  # has it told rank 0 that it has nothing left to do?
        self._settled: set[int] = set()  # on rank 0: who has
        self._over = False
        self.leaving = Leaving()
        # Rank 0's view of a standstill.
        self._states: dict[int, State] = {}
        self._answers: dict[int, State] = {}
        self._round, self._asking = 0, False
        self._next_judgement = 0.0

    # ---- waiting ---------------------------------------------------------------------------------
    def wait(self, through: Callable[[], Any], needs: Callable[[], Sequence[Need]]) -> None:
        """Return when something is through.

        Parameters
        ----------
        through : callable
            Is it?
        needs : callable
            What it takes, for when that lasts long.

        Raises
        ------
        RankError, DeadlockError, MismatchError
            When it never will be, since another rank has failed, or all wait, or do different things.
        """
        if through():
            return
        begin = time.monotonic()
        nap, report, tests = begin + _EAGER, begin + _PATIENCE, 0
        self._needs = needs
        try:
            while not through():
                tests += 1
                _let_others_run()
                if tests % _TESTS:
                    continue
                try:
                    self.look()
                except RankError:
                    if _comes(through):  # then others rely on this rank to go on
                        return
                    raise
                now = time.monotonic()
                if now > report:
                    self._report()
                    report = float("inf")
                if now > begin + _PATIENCE and self.rank == 0:
                    self._judge(now)
                if now > nap:
                    time.sleep(_NAP)
                    nap = time.monotonic() + _NAP
        finally:
            self._needs = None
            self._moves += 1

    def look(self) -> None:
        """Take what others have told, and raise what is wrong."""
        if self._is_open or self._opening.Test():
            self._is_open = True
            while self._line.Iprobe(MPI.ANY_SOURCE, 0):
                message = self._line.improbe(MPI.ANY_SOURCE, 0)
                if message is not None:
                    self._take(*message.recv())
        for one in tuple(self.looked.values()):
            one.look()
        self.check()

    def check(self) -> None:
        """Raise what is known to be wrong."""
        if self._wrong is not None:
            kind, text = self._wrong
            raise kind(text)

    def check_order(self) -> None:
        """Raise it if ranks do different things: no message of one is meant for what another waits for then.

        Where a rank has failed, the others may go on as far as they do not need it.
        """
        if self._wrong is not None and self._wrong[0] is not RankError:
            self.check()

    def wrong(self, kind: type[CommError], text: str) -> None:
        """From now on, raise this wherever this rank waits; what was wrong first stays."""
        if self._wrong is None:
            self._wrong, self._wrong_since = (kind, text), time.monotonic()

    # ---- telling ---------------------------------------------------------------------------------
    def tell(self, rank: int, kind: str, *what: Any) -> None:
        """Tell a rank something, itself too; it hears when it waits or has ended."""
        if rank == self.rank:
            self._take(kind, rank, *what)
        elif self._can_tell():
            self._going = [request for request in self._going if not request.Test()]
            self._going.append(self._line.isend((kind, self.rank, *what), rank, 0))

    def _tell_others(self, kind: str, *what: Any) -> None:
        for rank in range(self.size):
            if rank != self.rank:
                self.tell(rank, kind, *what)

    def _can_tell(self) -> bool:
        until = time.monotonic() + _TO_HEAR
        while not self._is_open and time.monotonic() < until:
            self._is_open = self._opening.Test()
            time.sleep(_NAP)
        return self._is_open

    def _take(self, kind: str, sender: int, *what: Any) -> None:
        getattr(self, f"_hear_{kind}")(sender, *what)

    def _hear_part(self, sender: int, which: Any, *what: Any) -> None:
        if which in self.looked:
            self.looked[which].heard(sender, *what)

    # ---- failures --------------------------------------------------------------------------------
    def fail(self, error: BaseException, text: str, status: int) -> None:
        """Tell the others that this rank has failed, unless it has for the reason that another one did."""
        known = self._wrong
        if isinstance(error, RankError) and known is not None and known[0] is RankError:
            return
        # What all ranks have found together is the same for those who have not heard of it yet.
        if known is not None and type(error) is known[0]:
            kind, text = known
        else:
            kind, text = RankError, _shortened(text)
        self.wrong(kind, text)
        self._status, self._shown, self._failed = self._status or status, True, True
        self._tell_others("failed", kind, text, status)

    def _hear_failed(self, sender: int, kind: type[CommError], text: str, status: int) -> None:
        self.wrong(kind, text)
        self._status, self._shown = self._status or status, True
        self.tell(sender, "told")

    def _hear_told(self, sender: int) -> None:
        self._told.add(sender)

    # ---- standstill ------------------------------------------------------------------------------
    def _state(self) -> State:
        ended = self._is_ended
        where = place() if not ended else "" if self.last is None else said(self.last)
        if self._needs is not None:
            needs = list(self._needs())
        else:
            needs = [need for one in self.looked.values() for need in one.needs()]
        counts = (dict(self.sent), dict(self.received), dict(self.met))
        return State(self._moves, ended, where, needs, *counts)

    def _report(self) -> None:
        self.tell(0, "state", self._state(), 0)

    def _hear_state(self, sender: int, state: State, round: int) -> None:
        if round == 0:
            self._states[sender] = state
        elif round == self._round:
            self._answers[sender] = state

    def _hear_ask(self, sender: int, round: int) -> None:
        self.tell(sender, "state", self._state(), round)

    def _hear_standstill(self, _: int, text: str) -> None:
        self.wrong(DeadlockError, text)
        self._status = self._status or 1

    def _judge(self, now: float) -> None:
        """On rank 0, which waits or has ended: can anybody go on?

        What the ranks have told is from different times.  If all of them, asked again, have not moved, then
        there was a time, that of the question, at which it held of all.
        """
        if now < self._next_judgement or len(self._states.keys() - {0}) < self.size - 1:
            return
        self._next_judgement = now + 0.05
        self._states[0] = self._state()
        if not self._asking:
            if standstill(self._in_order(self._states)):
                self._round, self._asking, self._answers = self._round + 1, True, {0: self._states[0]}
                self._tell_others("ask", self._round)
        elif len(self._answers) == self.size:
            self._asking, self._next_judgement = False, now + _PATIENCE
            self._answers[0] = (
                self._answers[0] if self._states[0].moves == self._answers[0].moves else (self._states[0])
            )
            still = all(
                self._answers[rank].moves == state.moves and self._answers[rank].ended == state.ended
                for rank, state in self._states.items()
            )
            self._states = dict(self._answers)
            if still and (text := standstill(self._in_order(self._answers))):
                self._tell_others("standstill", text)
                self._hear_standstill(0, text)

    def _in_order(self, states: dict[int, State]) -> list[State]:
        return [states[rank] for rank in range(self.size)]

    # ---- the end ---------------------------------------------------------------------------------
    def end(self) -> None:
        """Let this rank's process end when all have: called when Python ends."""
        if MPI.Is_finalized():
            return
        status = self.leaving.status()
        if status:
            text = f"rank {self.rank} has ended all with status {status} ({self.leaving.where})"
            self.fail(SystemExit(status), text, status)
        drain(_TO_READ)
        self._is_ended = True
        self._report()
        while not self._is_over():
            time.sleep(10 * _NAP)
        if self._wrong is not None and not self._over:
            if not self._shown and sys.stderr is not None:
                kind, text = self._wrong
                # in one piece: what several ranks write must not mix
                sys.stderr.write(f"rank {self.rank} of {self.size}: {kind.__name__}: {text}\n")
            abort(self._status or 1)
        if self.rank == 0:
            self._tell_others("over")
            MPI.Request.Waitall(self._going)

    def _is_over(self) -> bool:
        """Have all ranks ended, or had time enough?"""
        with suppress(CommError):
            self.look()
        settled = self._wrong is not None or not any(one.needs() for one in self.looked.values())
        if settled and not self._said:
            self._said = True
            self.tell(0, "settled", self._wrong)
        if self.rank == 0:
            self._judge(time.monotonic())
            if len(self._settled) == self.size:
                return True
        return self._over or (self._wrong is not None and self._is_late())

    def _is_late(self) -> bool:
        longest = _TO_HEAR if self._failed and len(self._told) < self.size - 1 else _TO_END
        return time.monotonic() > self._wrong_since + longest

    def _hear_settled(self, sender: int, wrong: tuple[type[CommError], str] | None) -> None:
        self._settled.add(sender)
        if wrong is not None:
            self.wrong(*wrong)

    def _hear_over(self, _: int) -> None:
        self._over = True


def _comes(through: Callable[[], Any]) -> bool:
    """Is something through, or will it be in a moment?  It may be on other ranks already."""
    until = time.monotonic() + _TO_COME
    while not through():
        if time.monotonic() > until:
            return False
        time.sleep(_NAP)
    return True


def _shortened(text: str) -> str:
    """A traceback without its middle if it is long."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}\n...\n{text[-_LONGEST // 2 :]}"


def abort(code: int) -> None:
    """End all ranks, when what this one has written has been read."""
    drain(_TO_READ)
    if not MPI.Is_finalized():
        MPI.COMM_WORLD.Abort(code)
    os._exit(code)  # MPICH tells its launcher and comes back, and this rank could still do things
