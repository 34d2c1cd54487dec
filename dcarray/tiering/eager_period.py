"""Eager periods: times in which NumPy does at once all that a thread asks for, whatever its size, unless
something is pending on its operands.

There is one while a loop runs as it is written for which a plan is still to be made, and which may end before
the recordings of its iterations have plans of their own.  Once these have been asked for, periods are begun
again and again (`resume`), and end when a plan has come (`expire`) or after a while: an iteration is then
recorded, and used if that was its plan.  No call site is promoted meanwhile.  Without the C module there are
none.
"""

from __future__ import annotations

from threading import get_ident

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator, simulated

__all__ = ["begin", "end", "expire", "is_active", "is_waiting", "resume"]


def begin(seconds: float, loop: bool = False, new: bool = False) -> bool:
    """Begin a period of this thread of at most so many seconds.

    Parameters
    ----------
    seconds : float
    loop : bool, optional
        Whether `resume` may begin it again, until it has ended.
    new : bool, optional
        Whether the loop has not been met before.

    Returns
    -------
    bool
        False if a thread, this one or another, is in a period already, or in a loop that has begun one, or
        there are none: then nothing has begun.
    """
    return False


def end(loop: bool = False) -> None:
    """End this thread's period; with ``loop`` for good."""


def resume(seconds: float) -> bool:
    """Begin a period again that a loop has begun and that is over; whether it has begun."""
    return False


def is_waiting() -> bool:
    """Whether a loop runs that has begun periods and has not been met before."""
    return False


def expire() -> None:
    """End resumed periods: something that they waited for has come."""


def is_active() -> bool:
    """Whether this thread is in a period."""
    return False


if BUILT:
    from dcarray._native.extension import begin_eager_period, end_eager_period, expire_eager_period
    from dcarray._native.extension import in_eager_period as is_active

    _loops: dict[int, list[bool]] = {}  # by thread: whether its loop has resumed periods, and is new

    def begin(seconds: float, loop: bool = False, new: bool = False) -> bool:
        options = config.current()
        if (loop and get_ident() in _loops) or not options.eager_below or options.strict:
            return False
        if simulated() is not None or communicator() is not None or not begin_eager_period(seconds):
            return False
        if loop:
            _loops[get_ident()] = [False, new]
        return True

    def end(loop: bool = False) -> None:
        end_eager_period()
        if loop:
            _loops.pop(get_ident(), None)

    def resume(seconds: float) -> bool:
        if get_ident() not in _loops or not begin(seconds):
            return False
        _loops[get_ident()][0] = True
        return True

    def is_waiting() -> bool:
        return any([new for _, new in list(_loops.values())])

    def expire() -> None:
        if any([resumed for resumed, _ in list(_loops.values())]):
            expire_eager_period()
