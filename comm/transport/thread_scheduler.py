"""A cooperative scheduler of threads: one thread runs until it waits, then the next one that is ready.

The order of execution is deterministic, and a deadlock is detected at once.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from .errors import CommError, DeadlockError, Killed, RankError

__all__ = ["Scheduler"]

_TO_END = 10.0  # seconds that ranks have to end after an interrupt; a second interrupt ends the wait
_LOOK = 0.5  # seconds after which a waiting thread looks for a signal that came just before it slept


class _Rank:
    """The thread of a rank: whether it has ended, and what it waits for."""

    def __init__(self) -> None:
        self.turn = threading.Semaphore(0)
        self.thread: threading.Thread | None = None
        self.ended = False
        self.lost = False
        self.result: Any = None
        self.ready: Callable[[], bool] | None = None
        self.waits_for: Callable[[], str] | None = None


class Scheduler:
    """A scheduler that runs one function for each rank in cooperative threads.

    Parameters
    ----------
    size : int
        The number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._ranks = [_Rank() for _ in range(size)]
        self._failure: tuple[int, BaseException, str] | None = None
        self._all_ended = threading.Event()

    def run(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run one function for each rank, and return the results in rank order.

        Raises
        ------
        BaseException
            The first exception that ended a rank, with a note that names the rank; waits of the other ranks
            have raised `RankError`.
        KeyboardInterrupt
            After an interrupt, when the ranks have ended or after some seconds.
        """
        for rank, function in enumerate(functions):
            inherited = copy_context().run  # options and NumPy's error state
            thread = threading.Thread(
                target=inherited, args=(self._run_rank, rank, function), name=f"rank {rank}", daemon=True
            )
            self._ranks[rank].thread = thread
            thread.start()
        try:
            self._ranks[0].turn.release()
            while not self._all_ended.wait(_LOOK):
                pass
        except BaseException as interrupt:  # the running rank gets the error when it waits
            self._fail(0, interrupt)
            # This thread may end the process, and with it memory that a kernel of that rank's works on.
            self._all_ended.wait(_TO_END)
            raise
        if self._failure is not None:
            rank, error, _ = self._failure
            error.add_note(f"(on rank {rank} of {len(self._ranks)})")
            raise error
        return [rank.result for rank in self._ranks]

    def wait(self, rank: int, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        """Let other ranks run until a condition holds; called by a rank's thread.

        Parameters
        ----------
        rank : int
            The rank that waits.
        ready : callable
            Returns whether the condition holds.
        what : callable
            Returns text that says what the rank waits for.

        Raises
        ------
        DeadlockError
            When every rank waits or has ended.
        RankError
            When another rank has failed.
        CommError
            When called in a thread other than the rank's own.
        """
        self.check_thread(rank)
        if self._failure is None and not ready():
            self._yield_turn(rank, ready, what)
        self._check()

    def pause(self, rank: int) -> None:
        """Let other ranks run until each of them waits; called by a rank's thread, with errors as in
        `wait`."""
        self.check_thread(rank)
        if self._failure is None:
            self._yield_turn(rank, lambda: True, lambda: "its turn")
        self._check()

    def lost(self, rank: int) -> bool:
        """Whether a rank has been ended by the exception `Killed`."""
        return self._ranks[rank].lost

    def check_thread(self, rank: int) -> None:
        """Raise `CommError` unless called in the thread of a rank, which alone may communicate for it."""
        mine = self._ranks[rank].thread
        if mine is not None and threading.current_thread() is not mine:
            raise CommError(
                f"thread {threading.current_thread().name!r} is not rank {rank}: only the thread that "
                "dcarray.comm.run has made a simulated rank may communicate or work on arrays in blocks"
            )

    def _yield_turn(self, rank: int, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        me = self._ranks[rank]
        me.ready, me.waits_for = ready, what
        if (following := self._next(rank)) is None:
            raise DeadlockError(self._deadlock_text())
        if following != rank:
            self._ranks[following].turn.release()
            me.turn.acquire()
        me.ready = me.waits_for = None

    def _check(self) -> None:
        if self._failure is not None:
            failed, _, trace = self._failure
            raise RankError(f"rank {failed} failed:\n{trace}")

    def _run_rank(self, rank: int, function: Callable[[], Any]) -> None:
        me = self._ranks[rank]
        me.turn.acquire()
        try:
            if self._failure is None:
                me.result = function()
        except Killed:
            me.lost = True
        except BaseException as error:  # an error of one rank ends all of them
            if not (isinstance(error, SystemExit) and error.code in (None, 0)):
                self._fail(rank, error)
        me.ended = True
        following = self._next(rank)
        if following is None and not all(r.ended for r in self._ranks):
            try:
                raise DeadlockError(self._deadlock_text())
            except DeadlockError as error:
                self._fail(rank, error)
            following = self._next(rank)
        if following is None:
            self._all_ended.set()
        else:
            self._ranks[following].turn.release()

    def _fail(self, rank: int, error: BaseException) -> None:
        if self._failure is None:
            self._failure = rank, error, "".join(traceback.format_exception(error))

    def _next(self, rank: int) -> int | None:
        """Return the next rank after `rank`, cyclically, that can run; None if none can."""
        size = len(self._ranks)
        for other in ((rank + i) % size for i in range(1, size + 1)):
            it = self._ranks[other]
            if not it.ended and (self._failure is not None or it.ready is None or it.ready()):
                return other
        return None

    def _deadlock_text(self) -> str:
        lines = []
        for i, rank in enumerate(self._ranks):
            ended = "is lost" if rank.lost else "has ended"
            lines.append(f"  rank {i} {ended if rank.waits_for is None else 'waits for ' + rank.waits_for()}")
        return "every rank waits for another one:\n" + "\n".join(lines)
