"""A function that waits until the output of this process has been read.

A launcher stops reading the output of its processes as soon as it is notified that the job has ended.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
import time
from contextlib import suppress

__all__ = ["wait_until_read"]

_PAUSE = 0.001  # seconds between two checks


def wait_until_read(seconds: float) -> bool:
    """Flush standard output and error, and wait until their reader has read everything.

    Only output to pipes and sockets can be unread; for terminals and files the flush is enough.

    Parameters
    ----------
    seconds : float
        The longest time to wait.

    Returns
    -------
    bool
        Whether everything has been read within that time.
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
    """Return the number of bytes in a pipe or socket that are not read yet; 0 if that is unknown."""
    try:
        import fcntl
        import termios
    except ImportError:  # no POSIX system
        return 0
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode):
            request = termios.FIONREAD
        elif stat.S_ISSOCK(mode):
            request = termios.TIOCOUTQ
        else:
            return 0
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, request, b"\0" * 4))
    except OSError:
        return 0
    return int(count)
