"""Output into a pipe of which the reader has gone, as ``head`` does when it has seen enough."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable

__all__ = ["output_is_lost", "quietly"]


def output_is_lost() -> bool:
    """Whether nobody reads the standard output any more."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is none, or something else in its place
        return False
    seen = select.poll()
    seen.register(number, 0)
    return bool(seen.poll(0))


def quietly(main: Callable[[], int]) -> int:
    """Call a main function and return the exit status: that of a process that SIGPIPE ends, without a
    traceback, where the reader of its output has gone."""
    try:
        try:
            return main()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except BrokenPipeError:
        if not output_is_lost():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written at exit
        return 128 + signal.SIGPIPE
