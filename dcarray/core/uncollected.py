"""Work of this package's own without garbage collection.

Imports and syntax trees make many objects that live long, which start collections.  A full one visits all
objects of the program: for lists of millions of objects that takes a second.  One that is started in another
thread runs the program's finalizers there, and meanwhile `gc.collect` in the main thread does nothing.
"""

from __future__ import annotations

import gc
import importlib
import os
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from . import native

_signal: Any = importlib.import_module("_signal")  # without the enumerations of ``signal``

__all__ = ["start_thread", "thread_without_collections", "uncollected", "waiting"]

if native.BUILT:
    from dcarray._native import extension

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=extension.forget_holds)


F = TypeVar("F", bound=Callable[..., Any])


def thread_without_collections(function: F) -> F:
    """A decorator of what a thread of this package's own does: no garbage is collected but in `waiting`,
    unless the program starts a collection itself.  Without the C module it does nothing."""
    if not native.BUILT:  # what turned collections off here would turn them off for the program
        return function

    @wraps(function)
    def run(*args: Any) -> Any:
        return extension.without_collections(function, *args)

    return cast("F", run)


def start_thread(function: Callable[..., Any], *args: Any) -> None:
    """Start a thread that gets no signal: one that the program blocks would otherwise come to it."""
    mask = getattr(_signal, "pthread_sigmask", None)
    own = {
        getattr(_signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL") if hasattr(_signal, name)
    }
    before = mask(_signal.SIG_BLOCK, _signal.valid_signals() - own) if mask else ()
    try:
        start_new_thread(function, args)
    finally:
        if mask:
            mask(_signal.SIG_SETMASK, before)


def waiting(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that waits, and return what it does; meanwhile other threads may collect garbage.
    The function makes no objects that are collected: these could start a collection in this thread."""
    return extension.waiting(function, *args) if native.BUILT else function(*args)


@contextmanager
def uncollected() -> Iterator[None]:
    """A context in which no garbage is collected, unless the program starts a collection itself."""
    collects = not native.BUILT and gc.isenabled()
    if native.BUILT:
        extension.hold_collections()
    else:
        gc.disable()
    try:
        yield
    finally:
        if native.BUILT:
            extension.release_collections()
        elif collects:
            gc.enable()
