"""Plans made by another process, so that this one keeps its interpreter to itself.

Passes and schedules are Python: a thread that runs them takes turns with the program's own, which then waits
for its turn after every NumPy call.  A process of its own (`dcarray.server`) takes a core, if one is free,
and nothing else.  Where none is to be had, the caller plans in its thread.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

from . import server
from .planning import Compilation, Request
from .program.known import Untraceable

_PATIENCE = 60.0  # seconds that a server may take to begin
_LOOK = 50  # milliseconds after which one that waits looks whether the program ends


class NoServer(Exception):
    """No process is to be had for planning."""


class Refused(Exception):
    """A plan could not be made."""


class Remote:
    """A process to plan in, started when it is first needed."""

    def __init__(self) -> None:
        self._pipes: tuple[int, int] | None = None  # to the server and from it
        self._usable = _possible()
        self._lock = threading.Lock()
        self._stopping = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave)
        atexit.register(self.stop)

    def plan(self, request: Request) -> tuple[Any, ...]:
        """The parcel, the counts and the reasons of `server.answer`.

        Raises
        ------
        NoServer
            If the caller has to plan itself.
        Refused, MemoryError
            If the plan cannot be made.
        Untraceable
            If there is nothing to plan.
        """
        _, parcel, counts, reasons, texts = self._reply(request)
        for text in texts:
            if text not in _warned:
                _warned.add(text)
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        return parcel, counts, reasons

    def code(self, request: Compilation) -> tuple[Any, ...]:
        """What `dcarray.lowering.parcel.linked` takes.

        Raises
        ------
        NoServer
            If the caller has to compile itself.
        Refused, MemoryError
            If it cannot be compiled.
        """
        _, parts = self._reply(request)
        return tuple(parts)

    def _reply(self, request: Request | Compilation) -> tuple[Any, ...]:
        """What the server says, if it is not that something is wrong."""
        with self._lock:
            reply = self._answer(server.message(request))
        if reply[0] == "wrong":
            _, kind, text = reply
            raise (MemoryError(text) if kind == "MemoryError" else Refused(f"{kind}: {text}"))
        if reply[0] == "untraceable":
            raise Untraceable(*reply[1:])
        return reply

    def stop(self) -> None:
        """The program ends: wait for nothing any more."""
        self._stopping = True

    def _leave(self) -> None:
        """In the child after a fork: the server is the parent's."""
        self._lock = threading.Lock()
        self._close()

    # ---- the process ---------------------------------------------------------------------------------
    def _close(self) -> None:
        """Leave the server, which then ends."""
        pipes, self._pipes = self._pipes, None
        for pipe in pipes or ():
            with suppress(OSError):
                os.close(pipe)

    def _answer(self, data: bytes) -> tuple[Any, ...]:
        """The reply to a message."""
        for _ in range(2):  # a server that has been idle for long has gone
            fresh = self._pipes is None
            reply = self._asked(data)
            if reply is not None:
                return reply
            self._close()
            if fresh:
                break
        raise Refused("the process that compiles has ended")

    def _asked(self, data: bytes) -> tuple[Any, ...] | None:
        """The reply to a message; None if the server ends without one."""
        if self._pipes is None:
            self._start()
        assert self._pipes is not None
        to, _ = self._pipes
        looked = select.poll()
        looked.register(to, 0)
        if looked.poll(0):  # to write would be a signal, which may end the program
            return None
        with suppress(OSError):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(to, rest) :]
            head = self._read(server.HEAD)
            reply = self._read(int.from_bytes(head, "little")) if head else b""
            if reply:
                answer: tuple[Any, ...] = pickle.loads(reply)
                return answer
        return None

    def _start(self) -> None:
        if not self._usable:
            raise NoServer
        self._usable = False
        pipes: list[int] = []
        try:
            for _ in range(2):
                pipes += os.pipe()
            theirs, to, back, ours = pipes
            actions = [
                (os.POSIX_SPAWN_DUP2, theirs, 0),
                (os.POSIX_SPAWN_DUP2, ours, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ]
            words = [sys.executable, "-c", server.command()]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            child = os.posix_spawn(
                words[0], words, environment, file_actions=actions, setsigmask=(), setsigdef=()
            )
        except (OSError, NotImplementedError, ValueError) as error:
            for pipe in pipes:
                os.close(pipe)
            raise NoServer from error
        os.close(theirs)
        os.close(ours)
        self._pipes = to, back
        with suppress(ChildProcessError):  # the program has waited for it
            os.waitpid(child, 0)
        if self._read(len(server.READY), _PATIENCE) != server.READY:
            self._close()
            raise NoServer
        self._usable = True

    def _read(self, size: int, seconds: float | None = None) -> bytes:
        """So many bytes; none if they do not come any more, or not in time."""
        assert self._pipes is not None
        back = self._pipes[1]
        looked = select.poll()
        looked.register(back, select.POLLIN)
        left = None if seconds is None else int(seconds * 1000 / _LOOK)
        parts = bytearray()
        while len(parts) < size:
            if not looked.poll(_LOOK):
                left = None if left is None else left - 1
                if self._stopping or left == 0:
                    return b""
                continue
            part = os.read(back, size - len(parts))
            if not part:
                return b""
            parts += part
        return bytes(parts)


def _possible() -> bool:
    """May a process be started?  Only with an interpreter that is known to be one: in a program with an
    interpreter inside, ``sys.executable`` may be the program."""
    name = os.path.basename(sys.executable or "")
    able = hasattr(os, "posix_spawn") and hasattr(os, "setpgid") and hasattr(select, "poll")
    return able and name.startswith("python") and not getattr(sys, "frozen", False)


_warned: set[str] = set()
REMOTE = Remote()
"""The server of this process."""
