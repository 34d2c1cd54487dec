"""New arrays made of copies of parts of another array (`numpy.roll`, `numpy.flip`, ...), recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcarray.core import window
from dcarray.core.processes import communicator

from .operands import enter, run_urgent, user_frame
from .session import LOCK, session

__all__ = ["Part", "record_copies"]

Maps = tuple[tuple[int, int, int | None], ...]
Part = tuple[tuple[int, ...], Maps, Maps]
"""A shape, and the index maps of that part in the new array and in the other one (see `window.apply`)."""


def record_copies(target: Any, source: Any, parts: Sequence[Part]) -> bool:
    """Record the copies of all parts of a new array from another one.

    The new array then is one to be computed, which needs no memory if its readers can do without; if its
    memory existed before, the copies would have to be made.

    Parameters
    ----------
    target : ndarray
        Large, of the source's dtype, and never used.
    source : ndarray
        Large.
    parts : sequence of tuple
        The parts, which cover every element of the target once.

    Returns
    -------
    bool
        False if this cannot be recorded; nothing has changed then.
    """
    if communicator() is not None:
        return False
    store = target._store
    char = store.char
    with LOCK:
        rec = session().ready()
        head = store._head or store
        if not char or source._store.char != char or not head.is_unused():
            return False
        given = enter(rec, source._store)
        source._store.family.used = rec
        slot = rec.begin_whole(store)
        head.dirty = head.used = rec
        frame, to, fro = user_frame(), target._window(), source._window()
        for shape, into, out in parts:
            index = window.apply(to, list(into))
            arg = (given, window.apply(fro, list(out)), None)
            rec.add(("map", "cast", f"{char}->{char}", shape, slot, index, arg), frame)
            rec.parts.clear()  # the parts of one call are no sweep
        rec.composed = len(rec.log)
        if rec.urgent:
            run_urgent(rec)
    return True
