"""The short way into the log for the most usual calls; each does what its namesake in `trace` does.

`trace` finds out what a call means and leaves it here; the same call on other arrays then costs about two
microseconds.
"""

from __future__ import annotations

from typing import Any

from . import config
from .handle import large
from .operands import DTYPES, bound, commit, enter, target_of, user_frame
from .session import LOCK, session
from .store import COMPILED, Store

USUAL: dict[tuple[Any, ...], str] = {}  # loops by name and kinds of the operands
SIZES: dict[tuple[int, ...], int] = {}  # by shape
_COPIES = {c: f"{c}->{c}" for c in COMPILED}


def binary(name: str, a: Any, b: Any) -> Any:
    """A binary operation of the most usual kind - two large arrays of one shape, or one and a Python
    scalar - the short way.  Gives None for any other; `elementwise` then does it."""
    ta, tb = type(a), type(b)
    if ta is float or ta is int:
        cls, shape, key = tb, b._shape, (name, ta, b._store.char)
    elif tb is float or tb is int:
        cls, shape, key = ta, a._shape, (name, a._store.char, tb)
    elif ta is tb and a._small is None and b._small is None and a._shape == b._shape:
        cls, shape, key = ta, a._shape, (name, a._store.char, b._store.char)
    else:
        return None
    loop = USUAL.get(key)
    size = SIZES.get(shape)
    if loop is None or size is None or size < config.current().eager_below or not shape:
        return None
    with LOCK:
        rec = session().rec
        args: list[Any] = []
        for x, char in ((a, loop[0]), (b, loop[1])):
            if type(x) is not cls:
                try:
                    args.append(rec.scalar(x, char))
                except OverflowError:
                    return None
                continue
            store = x._store
            head = store.family
            if store.rec is rec and head.exports is None:
                slot = store.slot
            else:
                slot = enter(rec, store)
            head.used = rec
            args.append((slot, x._index, None))
        store = Store(shape, DTYPES[loop[-1]], None, size)
        slot = rec.fresh(store)
        rec.add(("map", name, loop, shape, slot, None, *args), user_frame(2))
        if rec.due():
            bound(rec)
    return large(cls, store, shape, None)


def assign(target: Any, value: Any) -> bool:
    """``target[...] = value`` between large arrays of one shape and dtype; False for any other."""
    if type(value) is not type(target) or target._small is not None or value._small is not None:
        return False
    shape = target._shape
    char = target._store.char
    if value._shape != shape or value._store.char != char or not char or target._readonly:
        return False
    if SIZES.get(shape, 0) < max(config.current().eager_below, 1):
        return False
    with LOCK:
        rec = session().rec
        store = value._store
        source = enter(rec, store)
        store.family.used = rec
        slot, index = target_of(rec, target)
        commit(rec, ("map", "cast", _COPIES[char], shape, slot, index, (source, value._index, None)))
    return True
