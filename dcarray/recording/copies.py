"""New arrays made of copies of parts of another array (`numpy.roll`, `numpy.flip`, ...), recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcarray.core import window
from dcarray.core.processes import communicator

from .operands import RunEagerly, enter, kind_of, operand, run_urgent, user_frame
from .session import LOCK, recording

__all__ = ["Part", "record_copies", "record_joined"]

Maps = tuple[tuple[int, int, int | None], ...]
Part = tuple[tuple[int, ...], Maps, Maps]
"""A shape, and the index maps of that part in the new array and in the other one (see `window.apply`)."""


def record_copies(target: Any, source: Any, parts: Sequence[Part]) -> bool:
    """Record the copies of all parts of a new array from another one.

    The new array is then pending, and gets no memory if its readers do not need it; an array that has memory
    already would really be copied into.

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
    with LOCK, recording() as rec:
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


def record_joined(target: Any, parts: Sequence[tuple[Any, Any]]) -> bool:
    """Record the parts of a new array, each copied from another array; see `record_copies`.

    Parameters
    ----------
    target : ndarray
        Large, and never used.
    parts : sequence of tuple
        Views of the target, which cover every element once, and arrays of the same shapes.

    Returns
    -------
    bool
        False if this cannot be recorded; nothing has changed then.
    """
    if communicator() is not None:
        return False
    store = target._store
    with LOCK, recording() as rec:
        head = store._head or store
        if not store.char or not head.is_unused():
            return False
        try:
            chars = [kind_of(source) for _, source in parts]
        except RunEagerly:
            return False
        given = [
            operand(rec, source, view.shape, char) for (view, source), char in zip(parts, chars, strict=True)
        ]
        slot = rec.begin_whole(store)
        head.dirty = head.used = rec
        frame = user_frame()
        for (view, _), char, arg in zip(parts, chars, given, strict=True):
            rec.add(("map", "cast", f"{char}->{store.char}", view.shape, slot, view._index, arg), frame)
            rec.parts.clear()  # the parts of one call are no sweep
        rec.composed = len(rec.log)
        if rec.urgent:
            run_urgent(rec)
    return True
