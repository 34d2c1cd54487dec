"""Work of this package's own without garbage collection.

Imports and syntax trees make many objects that live long, which start collections.  A full one visits all
objects of the program: for lists of millions of objects that takes a second.  One that is started in another
thread runs the program's finalizers there, and meanwhile `gc.collect` in the main thread does nothing.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import native

__all__ = ["thread_without_collections", "uncollected", "waiting"]

if native.BUILT:
    from dcarray._native import extension

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=extension.forget_holds)


@contextmanager
def thread_without_collections() -> Iterator[None]:
    """A context for all that a thread of this package's own does: no garbage is collected but in `waiting`,
    unless the program starts a collection itself.  Without the C module it does nothing."""
    if not native.BUILT:  # what turned collections off here would turn them off for the program
        yield
        return
    extension.hold_collections()
    try:
        yield
    finally:
        extension.release_collections()


def waiting(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that waits, and return what it does; meanwhile other threads may collect garbage."""
    return extension.waiting(function, *args) if native.BUILT else function(*args)


@contextmanager
def uncollected() -> Iterator[None]:
    """A context in which no garbage is collected, unless the program starts a collection itself."""
    if native.BUILT:
        with thread_without_collections():
            yield
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
