"""New arrays that are copied together: each part of one is a part of another array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcarray.core import window
from dcarray.core.processes import communicator
from dcarray.recording.session import LOCK, session

from .operands import at_last, enter, user_frame

__all__ = ["Part", "copied"]

Maps = tuple[tuple[int, int, int | None], ...]
Part = tuple[tuple[int, ...], Maps, Maps]
"""A shape, and the view of that shape of the new array and of the other one: see `window.apply`."""


def copied(target: Any, source: Any, parts: Sequence[Part]) -> bool:
    """Record how all of a new array is copied from another one, before anything else is recorded.

    It is then an array to be computed, which needs no memory if its readers do not, and no memory that
    existed before; as such it would have to be filled as the parts say.

    Parameters
    ----------
    target : ndarray
        Large, of the source's dtype, and never used.
    source : ndarray
        Large.
    parts : sequence of tuple
        They have every element of the target once.

    Returns
    -------
    bool
        False if that is not for the recorder: nothing has changed.
    """
    if communicator() is not None:
        return False
    store = target._store
    char = store.char
    with LOCK:
        rec = session().ready()
        head = store._head or store
        if not char or source._store.char != char or not head.blank():
            return False
        given = enter(rec, source._store)
        source._store.family.used = rec
        slot = rec.begun(store)
        head.dirty = head.used = rec
        frame, to, fro = user_frame(), target._window(), source._window()
        for shape, into, out in parts:
            index = window.apply(to, list(into))
            arg = (given, window.apply(fro, list(out)), None)
            rec.add(("map", "cast", f"{char}->{char}", shape, slot, index, arg), frame)
        rec.composed = len(rec.log)
        if rec.urgent:
            at_last(rec)
    return True
