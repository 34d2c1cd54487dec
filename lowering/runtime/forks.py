"""The locks that are held while the process forks, so that its child finds none of them taken by a thread
that it does not have, and no work half done.

A thread that forks waits for all of them.  It keeps none while it waits, so their order does not matter.
"""

from __future__ import annotations

import _imp
import os
import sys
import threading
from _thread import get_ident
from time import monotonic, sleep  # as they are before the program runs, which may replace them
from typing import Any, TypeVar

__all__ = ["HELD", "held_in_forks"]

_Lock = TypeVar("_Lock")
_locks: list[Any] = []
HELD: list[Any] = []
"""The locks while they are held: code that other handlers of the fork call must not wait for them."""
_PATIENCE = 5.0  # seconds to wait for imports by other threads
_KNOWN = {*sys.stdlib_module_names, "dcarray", "llvmlite", "numpy"}


class _Own(threading.local):
    """How many forks a thread is in: a signal's handler may fork while this thread takes, or holds, the locks
    for another fork."""

    depth = 0


_OWN = _Own()


def held_in_forks(lock: _Lock) -> _Lock:
    """Have a lock held by the thread that forks; returns the lock."""
    _locks.append(lock)
    return lock


def _before() -> None:
    _OWN.depth += 1
    if _OWN.depth > 1:
        return
    until = monotonic() + _PATIENCE
    order = [*_locks]
    while True:
        while not _taken(order):
            pass
        _imp.acquire_lock()  # from here on no thread begins to import
        if not _is_importing() or monotonic() > until:
            break
        _imp.release_lock()
        for lock in order:
            lock.release()
        sleep(1e-3)
    HELD.extend(order)


def _taken(order: list[Any]) -> bool:
    """Take all locks, and wait for the first one only.  If that fails, put the one that is not free first."""
    order[0].acquire()
    for k, lock in enumerate(order[1:], 1):
        if not lock.acquire(blocking=False):
            for one in order[:k]:
                one.release()
            order[:] = [lock, *order[:k], *order[k + 1 :]]
            return False
    return True


def _is_importing() -> bool:
    """Whether another thread imports a module, for which the child would wait.  One that imports a module of
    the program may wait for this thread, and plain Python would not wait for it."""
    locks = vars(sys.modules["_frozen_importlib"]).get("_module_locks", {})
    owners = [(name, getattr(ref(), "owner", None)) for name, ref in [*locks.items()]]
    busy = {owner for name, owner in owners if name.partition(".")[0] not in _KNOWN}
    return any(owner not in (None, get_ident(), *busy) for _, owner in owners)


def _after() -> None:
    try:
        if _OWN.depth == 1:
            _imp.release_lock()
            while HELD:
                HELD.pop().release()
    finally:
        _OWN.depth -= 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
