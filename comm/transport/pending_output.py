"""Has what this process has written been read?

A launcher that hears that a job is over stops reading what its processes have written.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
import time
from contextlib import suppress

__all__ = ["wait_until_read"]

_PAUSE = 0.001  # seconds between two looks


def wait_until_read(seconds: float) -> bool:
    """Write out standard output and error, and wait until whoever is to read them has.

    Pipes and sockets are waited for; terminals and files hold what has been written to them.

    Parameters
    ----------
    seconds : float
        The longest wait.

    Returns
    -------
    bool
        Has all been read?
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            stream.flush()
    until = time.monotonic() + seconds
    while any(_unread_bytes(descriptor) for descriptor in (1, 2)):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True


def _unread_bytes(descriptor: int) -> int:
    """The bytes of a pipe or a socket that its other end has not read; 0 where that cannot be known."""
    try:
        import fcntl
        import termios
    except ImportError:  # no POSIX system
        return 0
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode):
            asked = termios.FIONREAD
        elif stat.S_ISSOCK(mode):
            asked = termios.TIOCOUTQ
        else:
            return 0
        (found,) = struct.unpack("i", fcntl.ioctl(descriptor, asked, b"\0" * 4))
    except OSError:
        return 0
    return int(found)
