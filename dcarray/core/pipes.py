"""Output into a pipe whose reader has ended, such as ``head`` after its last line."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable

__all__ = ["quietly"]


def _is_lost() -> bool:
    """Whether the reader of the standard output has ended."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is none, or something else in its place
        return False
    seen = select.poll()
    seen.register(number, 0)
    return bool(seen.poll(0))


def quietly(main: Callable[[], int]) -> int:
    """Run a main function and return its exit status.  If the reader of its output has ended, the status is
    that of a process killed by SIGPIPE, and no traceback is shown."""
    try:
        try:
            return main()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except BrokenPipeError:
        if not _is_lost():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written at exit
        return 128 + signal.SIGPIPE
