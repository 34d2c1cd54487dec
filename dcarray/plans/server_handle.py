"""The program's side of a planning process (`dcarray.plans.server`): finding or starting it, asking it."""

from __future__ import annotations

import _socket as socket  # without the enumerations of `socket`, which take 2 ms
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dcarray.core import cores, native, unpatched
from dcarray.core.uncollected import waiting

from . import idle_planners, server

if native.BUILT:
    from dcarray._native import extension

_PATIENCE = 60.0  # seconds that a planning process may take to start
_HIGH = 200  # the least descriptor of a connection
_LOOK = 100  # milliseconds between two checks of one that is waited for: each costs the program 0.4 ms
STARVED_AFTER = 0.3
"""Seconds that a planning process of low priority may wait for a processor while it has work; then it counts
as starved, since other programs keep all processors busy."""
_OWN = 0.75
"""The part of what the program's own threads take of the last processor that is not counted, also of those of
a library that spin: they would lose what the planning process gets."""


class NoPlanningProcess(Exception):
    """Raised when no planning process can be started."""


class Starved(Exception):
    """Raised if the planning process is starved: it has waited for a processor for too long.

    Attributes
    ----------
    nice : int
        How many priority steps below the program's the next planning process should have.
    """

    def __init__(self, nice: int) -> None:
        self.nice = nice


class PlanningProcess:
    """A planning process, taken over from an earlier program, or started.  The first `ask` waits until it is
    ready.

    Parameters
    ----------
    nice : int
        Its priority steps below the program; only with `server.NICE` it can count as starved.
    stopping : callable
        ``stopping()`` says whether the program is ending, so that replies are no longer waited for.

    Raises
    ------
    NoPlanningProcess
        If no process can be started.
    """

    _file: tuple[int, int] | None = None  # of the socket

    def __init__(self, nice: int, stopping: Callable[[], bool]) -> None:
        self._nice, self._stopping = nice, stopping
        self._pid = 0
        self.has_begun = False
        self._lost = 0.0  # seconds that it was waited for while it had no processor
        self._words = server.words(sys.executable, nice)
        # with the program's priority it is for this program alone
        self._place = idle_planners.place_of("\0".join(self._words)) if nice else None
        self._socket: socket.socket | None = None
        connection = None if self._place is None else idle_planners.taken_over(self._place)
        self._is_taken_over = connection is not None
        if connection is None:
            self._start()
            return
        if hasattr(socket, "SO_PEERCRED"):  # it may have something to finish before it says so
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            self._pid = struct.unpack("3i", peer)[0]
        self._connect(connection)

    def _connect(self, connection: socket.socket) -> None:
        """Use a new connection, away from the low descriptors, which the program's next files get."""
        with suppress(ImportError, AttributeError, OSError):
            import fcntl

            number = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, _HIGH)
            connection.close()
            connection = socket.socket(fileno=number)
        self._socket = connection
        self._file = idle_planners.file_of(connection.fileno())

    def _start(self) -> None:
        self._is_taken_over = False
        self._connect(_started(self._words if self._place is None else [*self._words, self._place]))

    def begin(self) -> None:
        """Wait until the planning process is ready; raise NoPlanningProcess if there is none."""
        ready = b""
        try:
            self._pid = int.from_bytes(self._read(server.HEAD, _PATIENCE), "little")
            ready = self._read(len(server.READY), _PATIENCE)
        finally:
            if ready != server.READY and not self._stopping():  # else it may be told what to `finish`
                self.close()
        if ready == server.READY:
            self.has_begun = True
        elif self._is_taken_over and not self._stopping():  # another program was quicker
            self._start()
            self.begin()
        else:
            raise NoPlanningProcess

    def close(self) -> None:
        """Close the connection to the planning process, which ends unless another program takes it over.

        The process is not killed, even if it is starved: in this namespace, the process number that it sent
        may belong to another process.
        """
        with suppress(OSError):
            self._connection().close()
        self._socket = None

    def _connection(self) -> socket.socket:
        """Return the socket; raise OSError if there is none any more, or if the program has closed its
        descriptor, as `os.closerange` does: its number may now be that of a file of the program's."""
        connection = self._socket
        if connection is None:
            raise OSError
        with suppress(OSError):
            if self._file in (None, idle_planners.file_of(connection.fileno())):
                return connection
        connection.detach()
        self._socket = None
        raise OSError

    def wake(self) -> None:
        """Have no thread wait for a reply any more, since the program is ending."""
        with suppress(OSError):
            self._connection().shutdown(socket.SHUT_RD)

    def finish(self, data: bytes) -> None:
        """Send a message with requests whose plans are for later runs, and close the connection."""
        with suppress(OSError):
            self._connection().setblocking(False)  # what does not fit into its buffer is not worth waiting
            self._write(data)
        self.close()

    def ask(self, data: bytes) -> tuple[Any, ...] | None:
        """Send a message and return the reply; None if the planning process ends without a reply.

        Raises
        ------
        NoPlanningProcess
            If the process does not become ready.
        Starved
        """
        if not self.has_begun:
            self.begin()
        if self._socket is None:
            return None
        with suppress(OSError):
            self._write(data)
            head = self._read(server.HEAD)
            reply = self._read(int.from_bytes(head, "little")) if head else b""
            if reply:
                answer: tuple[Any, ...] = pickle.loads(reply)
                return answer
        return None

    def _write(self, data: bytes) -> None:
        """Send data; if the planning process has ended, raise an OSError, instead of a SIGPIPE that would end
        the program."""
        self._connection().sendall(data, getattr(socket, "MSG_NOSIGNAL", 0))

    def _read(self, size: int, seconds: float | None = None) -> bytes:
        """Read ``size`` bytes; return none of them if the planning process ends, or ``seconds`` are over."""
        start, had, used = unpatched.monotonic(), self.processor_seconds(), unpatched.process_time()
        lost, parts = 0.0, bytearray()
        while len(parts) < size:
            try:
                is_readable = _is_readable(self._connection().fileno(), _LOOK)
                part = self._connection().recv(size - len(parts)) if is_readable else b""
            except OSError:
                return b""
            if not is_readable:
                waited = unpatched.monotonic() - start
                own = max(0.0, unpatched.process_time() - used - (cores.available() - 1) * waited)
                lost = waited - (self.processor_seconds() - had) - _OWN * own
                if self._nice == server.NICE and self._lost + lost > STARVED_AFTER:
                    raise Starved(server.NICE_ALONE if own > lost else 0)
                if self._stopping() or (seconds is not None and waited > seconds):
                    return b""
                continue
            if not part:
                return b""
            parts += part
        self._lost += max(0.0, lost)
        return bytes(parts)

    def processor_seconds(self) -> float:
        """Return the planning process's processor time; if it is unknown, the time of the clock."""
        if not self._pid:  # before it has written its number, all time counts as lost
            return 0.0
        try:
            return time.clock_gettime(~self._pid << 3 | 2)  # Linux's identifier of another process's clock
        except (AttributeError, OSError, OverflowError, TypeError):  # the last for no number of a process
            return unpatched.monotonic()


def _is_readable(descriptor: int, milliseconds: int) -> bool:
    """Whether there is something to read, within some time."""
    if native.BUILT:
        return bool(waiting(extension.is_readable, descriptor, milliseconds))
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))


# The shell returns at once; else the program would wait until an interpreter has started and forked itself.
_DETACHED = ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh"]


def _started(words: list[str]) -> socket.socket:
    """Start a planning process by a command line; return the connection to it."""
    if callable(signal.getsignal(getattr(signal, "SIGCHLD", signal.SIGINT))):
        raise NoPlanningProcess  # the program's handler would look for the child that ends
    own = theirs = None
    try:
        own, theirs = socket.socketpair()
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if os.access(_DETACHED[0], os.X_OK):
            words = _DETACHED + words
        child = os.posix_spawn(
            words[0], words, environment, file_actions=actions, setsigmask=(), setsigdef=()
        )
    except (OSError, NotImplementedError, ValueError) as error:
        if own is not None:
            own.close()
        raise NoPlanningProcess from error
    finally:
        if theirs is not None:
            theirs.close()
    with suppress(ChildProcessError):  # the program has waited for it
        os.waitpid(child, 0)
    return own
