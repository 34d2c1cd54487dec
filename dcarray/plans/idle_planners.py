"""Where idle planning processes wait for the next program of the same user, instead of ending at once.

A planning process needs a third of a second to get ready.  When its program has ended, it listens at a socket
for a while, in a folder that only its user may enter.  Another program takes it over by connecting to the
socket, at which it then no longer listens.  The socket's path, its *place*, is made of all that a planning
process depends on: the interpreter, its import paths, the sources, the environment, priority, and processors.
"""

from __future__ import annotations

import _socket as socket  # without the enumerations of `socket`, which take 2 ms
import os
import stat
import time
from contextlib import suppress

from dcarray.core import cores

__all__ = ["Offer", "file_of", "place_of", "slot", "taken_over"]

_PREFIXES = "DCARRAY_", "LD_", "LLVM", "OMP_", "PYTHON"  # of environment variables
_IN_REQUESTS = "DCARRAY_CACHE_DIR"  # which is part of each request
_BACKLOG = 4
_MOST_WAITING = 4  # planning processes of a user that wait at a time, each with some hundred megabytes
_OLD = 300.0  # seconds after which a socket is one of a planning process that was killed


def place_of(command: str) -> str | None:
    """Return the path of the socket at which planning processes that were started by a command wait; None if
    there is no safe folder for sockets."""
    folder = _folder()
    if folder is None:
        return None
    from dcarray.lowering.runtime.disk import sha256, stamp

    from .disk_store import source_folders

    environment = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(_PREFIXES) and name != _IN_REQUESTS
    ]
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")  # containers may share a folder
    parts = command, stamp(*source_folders()), *environment, f"{sorted(processors)} {space}"
    return os.path.join(folder, sha256("\0".join(parts).encode()).hexdigest()[:32])


def _folder() -> str | None:
    """Return the folder of the sockets, made if it is missing; None if there is no safe folder."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    user = os.getuid()
    folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"dcarray-{user}")
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return None
    safe = stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o077
    return folder if safe else None


def file_of(descriptor: int) -> tuple[int, int]:
    """Return the device and inode of an open file: another one may have its descriptor later, if the program
    closes all that there are."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def slot() -> int | None:
    """Take one of the slots for planning processes of worker processes: this user has as many as there are
    processors.  Return the descriptor of a file, which holds the slot until it is closed; None if all are
    taken, or there is no safe folder."""
    import fcntl

    folder = _folder()
    for k in range(cores.available() if folder else 0):
        file = os.open(f"{folder}/slot.{k}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            os.close(file)
    return None


def taken_over(place: str) -> socket.socket | None:
    """Return a connection to the planning process that waits at a path (`place_of`); None if there is none,
    or if it has had no processor for so long that several programs wait for it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)  # else the program would wait while the queue is full
    try:
        connection.connect(place)
    except OSError:
        connection.close()
        return None
    connection.setblocking(True)
    return connection


class Offer:
    """The socket at which this planning process waits for a program; ``place`` is its path (`place_of`).

    Raises
    ------
    OSError
        If another planning process waits there, `_MOST_WAITING` wait in the folder, or there is no socket.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        _make_room(os.path.dirname(place))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        own = f"{place}.{os.getpid()}"
        try:
            self._socket.bind(own)
            try:
                self._inode = os.stat(own).st_ino
                self._socket.listen(_BACKLOG)
                _link(own, place)
            finally:
                os.unlink(own)
        except OSError:
            self._socket.close()
            raise

    def program(self, seconds: float) -> socket.socket | None:
        """Return a connection to the first program that connects within ``seconds``; None if none does."""
        self._socket.settimeout(seconds)
        with suppress(OSError):  # a time limit, or a program that has left
            file, _ = self._socket._accept()  # type: ignore[attr-defined]
            connection = socket.socket(fileno=file)
            connection.settimeout(None)
            return connection
        return None

    def end(self) -> None:
        """Stop waiting for programs, and remove the socket."""
        with suppress(OSError):
            if os.stat(self._place).st_ino == self._inode:
                os.unlink(self._place)
        self._socket.close()


def _make_room(folder: str) -> None:
    """Remove the sockets of killed planning processes; raise an OSError if `_MOST_WAITING` or more wait."""
    waiting = [entry for entry in os.scandir(folder) if "." not in entry.name]
    for entry in waiting:
        if time.time() - entry.stat().st_mtime > _OLD:
            os.unlink(entry)
    if len(waiting) >= _MOST_WAITING:
        raise OSError("enough planning processes wait")


def _link(own: str, place: str) -> None:
    """Give a socket the path ``place``, unless another planning process waits there: then raise an error."""
    try:
        os.link(own, place)
    except FileExistsError:
        other = taken_over(place)
        if other is not None:
            other.close()
            raise
        os.unlink(place)  # of a planning process that was killed
        os.link(own, place)
