"""Eager periods: times in which NumPy runs the calls of one thread at once, also those on large arrays.

Only calls on whose operands something is pending are recorded even then, and element-wise calls on so much
(`MOST_AT_ONCE` bytes) that blocked statements (`dcarray.execution.blocked_statements`) take less time.

There is such a period while a loop runs as it is written for which a plan is still to be made, and which may
end before the recordings of its iterations have plans of their own.  Once these have been asked for, periods
are begun again and again (`resume`), and end when a plan has come (`expire`) or after a while: an iteration
is then recorded, and runs by its plan if that is the one.  No call site is promoted meanwhile.  Without the C
module there are none.

There is one, too, where a recording comes again whose plan is being made (`wait`): all that the program has
recorded since has been seen, and to record it once more would only take time.
"""

from __future__ import annotations

from threading import get_ident

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator, simulated

__all__ = ["MOST_AT_ONCE", "begin", "end", "expire", "is_active", "is_waiting", "resume", "wait"]

_loops: dict[int, list[bool]] = {}  # by thread: whether its loop has resumed periods, and is new
_waiting: set[int] = set()  # the threads that have waited for a plan of a recording


def is_active() -> bool:
    """Whether this thread is in an eager period."""
    return False


if BUILT:
    from dcarray._native.extension import (
        MOST_AT_ONCE,
        begin_eager_period,
        end_eager_period,
        expire_eager_period,
    )
    from dcarray._native.extension import in_eager_period as is_active
else:
    MOST_AT_ONCE = 0


def begin(seconds: float, loop: bool = False, new: bool = False) -> bool:
    """Begin an eager period of this thread of at most so many seconds.

    Parameters
    ----------
    seconds : float
    loop : bool, optional
        Whether `resume` may begin it again, until it has ended.
    new : bool, optional
        Whether the loop runs for the first time.

    Returns
    -------
    bool
        False if a thread, this one or another, is in a period already, or in a loop that has begun one, or
        there are none: then nothing has begun.
    """
    options = config.current()
    if not BUILT or (loop and get_ident() in _loops) or not options.eager_below or options.strict:
        return False
    if simulated() is not None or communicator() is not None or not begin_eager_period(seconds):
        return False
    if loop:
        _loops[get_ident()] = [False, new]
    return True


def end(loop: bool = False) -> None:
    """End this thread's eager period; with ``loop`` for good, and only if a loop has begun it."""
    if loop and _loops.pop(get_ident(), None) is None:
        return
    if BUILT:
        end_eager_period()


def resume(seconds: float) -> bool:
    """Begin an eager period again that a loop has begun and that is over; returns whether it has begun."""
    if get_ident() not in _loops or not begin(seconds):
        return False
    _loops[get_ident()][0] = True
    return True


def wait(seconds: float) -> bool:
    """Begin an eager period of a thread whose recording came again before its plan; returns whether it has
    begun."""
    begun = begin(seconds)
    if begun:
        _waiting.add(get_ident())
    return begun


def _end_wait() -> None:
    """End the eager period that this thread waits in: under other options it may have to record."""
    if get_ident() in _waiting and get_ident() not in _loops:
        _waiting.discard(get_ident())
        end()


config.ON_CHANGE.append(_end_wait)


def is_waiting() -> bool:
    """Whether a loop that has begun eager periods runs for the first time."""
    return any([new for _, new in list(_loops.values())])


def expire() -> None:
    """End the resumed eager periods of all threads, since a plan has come that they may have waited for."""
    if _waiting or any([resumed for resumed, _ in list(_loops.values())]):
        _waiting.clear()
        expire_eager_period()
