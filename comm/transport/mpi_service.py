"""Control messages between the processes of a job, besides the program's own messages.

A rank that fails notifies the others, which raise `RankError` in their waits; ranks that wait for long report
to rank 0 what they wait for, and rank 0 detects deadlocks; rank 0 ends the job only after all ranks have
ended, so that MPI kills none of them.  Therefore no rank blocks inside MPI: `Job.wait` repeatedly tests
whether a message is complete, and handles control messages in between.
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

from .call_location import Location, caller_text, location_text
from .deadlock import Blocker, Channel, RankState, find_deadlock
from .errors import CommError, DeadlockError, RankError
from .exit_status import ExitWatcher
from .pending_output import wait_until_read

__all__ = ["Job", "Polled"]

_REPORT_AFTER = 1.0  # seconds of waiting after which a rank reports to rank 0
_SPIN = 0.005  # seconds of waiting after which a rank sleeps between tests
# A waiting rank moves the parts of large messages, so it must be awake as long as it sleeps.
_SLEEP = 0.0001
_TESTS = 16  # tests for completion between two reads of control messages
_TO_HEAR, _TO_END = 10.0, 60.0  # seconds that other ranks have to acknowledge a failure, and then to end
_TO_COMPLETE = 0.25  # seconds in which an operation completes of which all ranks have done their part
_TO_READ = 5.0  # seconds that the end of the job waits for this rank's output to be read
_LONGEST_TEXT = 50_000  # characters of a traceback that are sent

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Polled:
    """An object that handles control messages, and is polled whenever this rank waits."""

    def poll(self) -> None:
        """Handle the control messages that have arrived; raise the error that one of them reports."""
        raise NotImplementedError

    def needs(self) -> Sequence[Blocker]:
        """Return the operations of this rank that other ranks are not yet known to perform."""
        raise NotImplementedError

    def receive(self, sender: int, *what: Any) -> None:
        """Handle a control message `what` from the same object on rank `sender`."""
        raise NotImplementedError


class Job:
    """The view that one process has of its MPI job: waits, control messages and the known failure."""

    def __init__(self) -> None:
        self.rank: int = MPI.COMM_WORLD.rank
        self.size: int = MPI.COMM_WORLD.size
        # Without waiting: not all ranks need ask for their communicator at the same time, or at all.
        self._control, self._opening = MPI.COMM_WORLD.Idup()
        self._is_open = False
        self._control_sends: list[MPI.Request] = []
        self.polled: dict[Any, Polled] = {}
        # The operations that this rank has begun, for `find_deadlock`.
        self.sent: Counter[Channel] = Counter()
        self.received: Counter[Channel] = Counter()
        self.collectives: Counter[object] = Counter()
        self.last: Location | None = None  # the location of its last operation
        self._waits_ended = 0
        self._needs: Callable[[], Sequence[Blocker]] | None = None
        # The first failure on any rank: raised wherever this one waits from then on.
        self._failure: tuple[type[CommError], str] | None = None
        self._failed_since = 0.0
        self._status = 0
        self._shown = False  # whether a rank has shown the failure
        # The end of the job.
        self._is_ended = False
        self._failed = False  # whether this rank has told the others of its failure
        self._acknowledged: set[int] = set()  # the ranks that have acknowledged it
        self._settled_reported = False  # whether it has told rank 0 that it has nothing left to do
        self._settled: set[int] = set()  # on rank 0: the ranks that have
        self._over = False
        self.exit_watcher = ExitWatcher()
        # Deadlock detection on rank 0.
        self._states: dict[int, RankState] = {}
        self._answers: dict[int, RankState] = {}
        self._round, self._asking = 0, False
        self._next_detection = 0.0

    # ---- waiting ---------------------------------------------------------------------------------
    def wait(self, through: Callable[[], Any], needs: Callable[[], Sequence[Blocker]]) -> None:
        """Wait until an operation is complete, and handle control messages meanwhile.

        Parameters
        ----------
        through : callable
            Returns whether the operation is complete.
        needs : callable
            Returns the operations of other ranks that the completion depends on, for deadlock detection.

        Raises
        ------
        RankError, DeadlockError, MismatchError
            When the operation cannot complete: another rank has failed, all ranks wait for each other, or
            ranks have called different operations.
        """
        if through():
            return
        begin = time.monotonic()
        nap, report, tests = begin + _SPIN, begin + _REPORT_AFTER, 0
        self._needs = needs
        try:
            while not through():
                tests += 1
                _let_others_run()
                if tests % _TESTS:
                    continue
                try:
                    self.poll()
                except RankError:
                    if _completes_soon(through):  # other ranks rely on this one to go on
                        return
                    raise
                now = time.monotonic()
                if now > report:
                    self._report()
                    report = float("inf")
                if now > begin + _REPORT_AFTER and self.rank == 0:
                    self._detect_deadlock(now)
                if now > nap:
                    time.sleep(_SLEEP)
                    nap = time.monotonic() + _SLEEP
        finally:
            self._needs = None
            self._waits_ended += 1

    def poll(self) -> None:
        """Handle the control messages of other ranks, and raise the failure that one of them reports."""
        if self._is_open or self._opening.Test():
            self._is_open = True
            while self._control.Iprobe(MPI.ANY_SOURCE, 0):
                message = self._control.improbe(MPI.ANY_SOURCE, 0)
                if message is not None:
                    self._take(*message.recv())
        for one in tuple(self.polled.values()):
            one.poll()
        self.check()

    def check(self) -> None:
        """Raise the known failure of the job, if any."""
        if self._failure is not None:
            kind, text = self._failure
            raise kind(text)

    def check_order(self) -> None:
        """Raise a known mismatch or deadlock: later messages would be matched with the wrong receives.

        After another rank's failure nothing is raised: a rank may go on as long as it does not need that one.
        """
        if self._failure is not None and self._failure[0] is not RankError:
            self.check()

    def set_failure(self, kind: type[CommError], text: str) -> None:
        """Set the failure that this rank's waits raise, unless one is set already."""
        if self._failure is None:
            self._failure, self._failed_since = (kind, text), time.monotonic()

    # ---- control messages ------------------------------------------------------------------------
    def send_control(self, rank: int, kind: str, *what: Any) -> None:
        """Send a control message to a rank (or this one), which handles it in a wait or at its end."""
        if rank == self.rank:
            self._take(kind, rank, *what)
        elif self._control_is_open():
            self._control_sends = [request for request in self._control_sends if not request.Test()]
            self._control_sends.append(self._control.isend((kind, self.rank, *what), rank, 0))

    def _send_control_to_others(self, kind: str, *what: Any) -> None:
        for rank in range(self.size):
            if rank != self.rank:
                self.send_control(rank, kind, *what)

    def _control_is_open(self) -> bool:
        until = time.monotonic() + _TO_HEAR
        while not self._is_open and time.monotonic() < until:
            self._is_open = self._opening.Test()
            time.sleep(_SLEEP)
        return self._is_open

    def _take(self, kind: str, sender: int, *what: Any) -> None:
        getattr(self, f"_on_{kind}")(sender, *what)

    def _on_part(self, sender: int, which: Any, *what: Any) -> None:
        if which in self.polled:
            self.polled[which].receive(sender, *what)

    # ---- failures --------------------------------------------------------------------------------
    def fail(self, error: BaseException, text: str, status: int) -> None:
        """Notify the other ranks that this one has failed, unless the cause is another rank's failure."""
        known = self._failure
        if isinstance(error, RankError) and known is not None and known[0] is RankError:
            return
        # A mismatch found by all ranks together is the same for those that have not taken it yet.
        if known is not None and type(error) is known[0]:
            kind, text = known
        else:
            kind, text = RankError, _shorten(text)
        self.set_failure(kind, text)
        self._status, self._shown, self._failed = self._status or status, True, True
        self._send_control_to_others("failed", kind, text, status)

    def _on_failed(self, sender: int, kind: type[CommError], text: str, status: int) -> None:
        self.set_failure(kind, text)
        self._status, self._shown = self._status or status, True
        self.send_control(sender, "acknowledged")

    def _on_acknowledged(self, sender: int) -> None:
        self._acknowledged.add(sender)

    # ---- deadlocks -------------------------------------------------------------------------------
    def _state(self) -> RankState:
        ended = self._is_ended
        where = caller_text() if not ended else "" if self.last is None else location_text(self.last)
        if self._needs is not None:
            needs = list(self._needs())
        else:
            needs = [need for one in self.polled.values() for need in one.needs()]
        counts = (dict(self.sent), dict(self.received), dict(self.collectives))
        return RankState(self._waits_ended, ended, where, needs, *counts)

    def _report(self) -> None:
        self.send_control(0, "state", self._state(), 0)

    def _on_state(self, sender: int, state: RankState, round: int) -> None:
        if round == 0:
            self._states[sender] = state
        elif round == self._round:
            self._answers[sender] = state

    def _on_ask(self, sender: int, round: int) -> None:
        self.send_control(sender, "state", self._state(), round)

    def _on_deadlock(self, _: int, text: str) -> None:
        self.set_failure(DeadlockError, text)
        self._status = self._status or 1

    def _detect_deadlock(self, now: float) -> None:
        """Check for a deadlock; called on rank 0 while it waits or after it has ended.

        The reported states are from different times, so ranks are asked for their states once more: if none
        has made progress, all reported states were valid at the same time, that of the question.
        """
        if now < self._next_detection or len(self._states.keys() - {0}) < self.size - 1:
            return
        self._next_detection = now + 0.05
        self._states[0] = self._state()
        if not self._asking:
            if find_deadlock(self._in_order(self._states)):
                self._round, self._asking, self._answers = self._round + 1, True, {0: self._states[0]}
                self._send_control_to_others("ask", self._round)
        elif len(self._answers) == self.size:
            self._asking, self._next_detection = False, now + _REPORT_AFTER
            if self._states[0].waits_ended != self._answers[0].waits_ended:
                self._answers[0] = self._states[0]
            still = all(
                self._answers[rank].waits_ended == state.waits_ended
                and self._answers[rank].ended == state.ended
                for rank, state in self._states.items()
            )
            self._states = dict(self._answers)
            if still and (text := find_deadlock(self._in_order(self._answers))):
                self._send_control_to_others("deadlock", text)
                self._on_deadlock(0, text)

    def _in_order(self, states: dict[int, RankState]) -> list[RankState]:
        return [states[rank] for rank in range(self.size)]

    # ---- the end ---------------------------------------------------------------------------------
    def end(self) -> None:
        """Delay the end of this process until all ranks have ended; called when the interpreter exits."""
        if MPI.Is_finalized():
            return
        status = self.exit_watcher.status()
        if status:
            text = f"rank {self.rank} has ended all with status {status} ({self.exit_watcher.where})"
            self.fail(SystemExit(status), text, status)
        wait_until_read(_TO_READ)
        self._is_ended = True
        self._report()
        while not self._is_over():
            time.sleep(10 * _SLEEP)
        if self._failure is not None and not self._over:
            if not self._shown and sys.stderr is not None:
                kind, text = self._failure
                # in one piece: what several ranks write must not mix
                sys.stderr.write(f"rank {self.rank} of {self.size}: {kind.__name__}: {text}\n")
            abort(self._status or 1)
        if self.rank == 0:
            self._send_control_to_others("over")
            MPI.Request.Waitall(self._control_sends)

    def _is_over(self) -> bool:
        """Whether all ranks have ended, or the time limit after a failure is over."""
        with suppress(CommError):
            self.poll()
        settled = self._failure is not None or not any(one.needs() for one in self.polled.values())
        if settled and not self._settled_reported:
            self._settled_reported = True
            self.send_control(0, "settled", self._failure)
        if self.rank == 0:
            self._detect_deadlock(time.monotonic())
            if len(self._settled) == self.size:
                return True
        return self._over or (self._failure is not None and self._is_late())

    def _is_late(self) -> bool:
        longest = _TO_HEAR if self._failed and len(self._acknowledged) < self.size - 1 else _TO_END
        return time.monotonic() > self._failed_since + longest

    def _on_settled(self, sender: int, wrong: tuple[type[CommError], str] | None) -> None:
        self._settled.add(sender)
        if wrong is not None:
            self.set_failure(*wrong)

    def _on_over(self, _: int) -> None:
        self._over = True


def _completes_soon(through: Callable[[], Any]) -> bool:
    """Whether an operation completes within ``_TO_COMPLETE`` seconds, as on other ranks it may have."""
    until = time.monotonic() + _TO_COMPLETE
    while not through():
        if time.monotonic() > until:
            return False
        time.sleep(_SLEEP)
    return True


def _shorten(text: str) -> str:
    """Return a traceback's text, without its middle if it is longer than ``_LONGEST_TEXT``."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[: _LONGEST_TEXT // 2]}\n...\n{text[-_LONGEST_TEXT // 2 :]}"


def abort(code: int) -> None:
    """End all ranks with an exit status, after waiting until this rank's output has been read."""
    wait_until_read(_TO_READ)
    if not MPI.Is_finalized():
        MPI.COMM_WORLD.Abort(code)
    os._exit(code)  # MPICH tells its launcher and comes back, and this rank could still do things
