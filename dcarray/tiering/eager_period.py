"""Eager periods: times in which NumPy runs the calls of one thread at once, also those on large arrays.

Only calls on whose operands something is pending are recorded even then, and element-wise calls on so much
(`MOST_AT_ONCE` bytes) that recording them takes little beside the call.

Such a period begins when a recording comes again while its plan is being made (`begin_wait`): the program is
in a loop, and to record the loop once more would only take time.  It ends when a plan becomes ready
(`expire`), or after a while; the next calls are then recorded again.  No call site is promoted during the
period.  Without the C module there are none.
"""

from __future__ import annotations

from threading import get_ident

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator, simulated

__all__ = ["MOST_AT_ONCE", "begin", "begin_wait", "end", "expire", "is_active"]

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


def begin(seconds: float) -> bool:
    """Begin an eager period of this thread that lasts at most ``seconds``.

    Returns
    -------
    bool
        False if nothing has begun: a thread is in an eager period already, or the C module, which they need,
        is missing.
    """
    options = config.current()
    if not BUILT or not options.eager_below or options.strict:
        return False
    return simulated() is None and communicator() is None and begin_eager_period(seconds)


def end() -> None:
    """End this thread's eager period."""
    if BUILT:
        end_eager_period()


def begin_wait(seconds: float) -> bool:
    """Begin an eager period, for a recording that came again before its plan; return whether it began."""
    begun = begin(seconds)
    if begun:
        _waiting.add(get_ident())
    return begun


def _end_wait() -> None:
    """End this thread's eager period while it waits: under other options it may have to record."""
    if get_ident() in _waiting:
        _waiting.discard(get_ident())
        end()


config.ON_CHANGE.append(_end_wait)


def expire() -> None:
    """End the eager periods of threads that wait for a plan, since a plan has become ready."""
    if _waiting:
        _waiting.clear()
        expire_eager_period()
