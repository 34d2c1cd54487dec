"""The client of the planning process: requests for plans and compiled routines, and their replies.

Passes and schedules are Python code.  If a thread runs them, the program has to wait for the interpreter's
lock after every NumPy call.  A process of its own (`dcarray.plans.server`) only needs a core that is free.
If no process can be started, the caller makes the plan in its thread.

The process needs some time to start, so `PlanningClient.start` is called before the first request.

The first planning process only runs on processors that are idle.  If other programs keep all processors busy,
there would never be a plan: such a *starved* process is abandoned, and another one started at normal
priority.  If the program itself keeps them busy, such as by threads of a BLAS that wait for work, this
happens much later.

A worker process, such as one of a pool, only gets a planning process while there are fewer of these than
processors.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

from dcarray.core import config, cores
from dcarray.core.errors import Untraceable
from dcarray.lowering.runtime.disk import unwritten

from . import disk_store, idle_planners, server
from .background import BACKGROUND
from .plan_folder import plan_folder
from .requests import Request, RoutineRequest
from .server_handle import NoPlanningProcess, PlanningProcess, Starved


class Refused(Exception):
    """Raised if the planning process could not make a plan; the text is its error."""


class Occupied(MemoryError):
    """Raised in a worker process if others have as many planning processes as is sensible."""


class PlanningClient:
    """The connection to the planning process; the first request starts the process if `start` has not."""

    def __init__(self) -> None:
        self._process: PlanningProcess | None = None
        self._is_forked = False
        self._slot: int | None = None  # of a worker process
        self._usable = _can_start()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave)

    def plan(self, request: Request) -> tuple[Any, ...]:
        """Have the planning process find or make a plan; return the serialised plan, and the ``counts`` (None
        if the plan was stored) and ``reasons`` that `server.answer` describes.

        Raises
        ------
        NoPlanningProcess
            If there is no planning process, so that the caller has to make the plan.
        Refused, MemoryError
            If the plan cannot be made.
        Untraceable
            If the request's statements cannot be traced, so that there is no region.
        """
        _, plan, counts, reasons, texts = self._reply(request)
        for text in texts:
            if text not in _warned:
                _warned.add(text)
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        return plan, counts, reasons

    def code(self, request: RoutineRequest) -> tuple[Any, ...]:
        """Have the planning process compile a routine; return the arguments of `llvm.launches.linked`.

        Raises
        ------
        NoPlanningProcess
            If there is no planning process, so that the caller has to compile.
        Refused, MemoryError
            If the routine cannot be compiled.
        """
        _, parts = self._reply(request)
        return tuple(parts)

    def _reply(self, request: Request | RoutineRequest) -> tuple[Any, ...]:
        """Return the reply to a request; if the reply reports an error, raise this error."""
        with self._lock:
            reply = self._send(server.message(request))
        if reply[0] == "wrong":
            _, kind, text = reply
            raise (MemoryError(text) if kind == "MemoryError" else Refused(f"{kind}: {text}"))
        if reply[0] == "untraceable":
            raise Untraceable(*reply[1:])
        return reply

    def start(self) -> None:
        """Start the planning process, if there is none yet, without waiting until it is ready."""
        if self._process is not None or not self._usable:
            return
        with self._lock, suppress(NoPlanningProcess, Occupied):
            self._ensure_started(_nice())

    def is_ready(self) -> bool:
        """Return whether the planning process is ready for requests."""
        return self._process is not None and self._process.has_begun

    def wake(self) -> None:
        """Have no thread wait for the planning process any more, since the program is ending."""
        if self._process is not None:
            self._process.wake()

    def finish(self, left: list[Request]) -> None:
        """Send the requests ``left`` to the planning process, which makes their plans in this order for later
        runs, and disconnect.  For a while it writes no files, as the user may now remove the cache folder."""
        if self._process is None:
            return
        for folder in {request.cache_dir for request in left}:
            disk_store.make_folder(folder)  # in one that is not there any more nothing is kept
        folder = config.current().cache_dir
        with unwritten(filter(None, (folder, plan_folder(folder)))):
            if left:  # if it has not begun, it finds them when it does
                self._process.finish(server.message(left))
            self._close()

    def _leave(self) -> None:
        """Forget the connection in a child process after a fork: the connection is the parent's."""
        self._lock, self._is_forked = threading.Lock(), True
        self._close()
        if self._slot is not None:
            with suppress(OSError):
                if idle_planners.file_of(self._slot) == self._slot_file:
                    os.close(self._slot)
            self._slot = None

    # ---- the process ---------------------------------------------------------------------------------
    def _close(self) -> None:
        """Close the socket to the planning process, which then waits for another program for a while."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _send(self, data: bytes) -> tuple[Any, ...]:
        """Send a message and return the reply; if the process has ended or is starved, start another."""
        for _ in range(2):  # one that was idle for long has ended, perhaps before its first request
            fresh = self._process is None
            try:
                try:
                    reply = self._ensure_started(_nice()).ask(data)
                except Starved as starved:
                    self._close()
                    fresh = True
                    reply = self._ensure_started(starved.nice).ask(data)
            except NoPlanningProcess:
                if not BACKGROUND.is_stopping:
                    self._close()
                self._usable = False
                raise
            if reply is not None:
                return reply
            if BACKGROUND.is_stopping:
                break
            self._close()
            if fresh:
                break
        raise Refused("the process that compiles has ended")

    def _ensure_started(self, nice: int) -> PlanningProcess:
        """Return the planning process; a new one gets a priority ``nice`` steps below the program's."""
        if self._process is None:
            if not self._usable:
                raise NoPlanningProcess
            if self._slot is None and (self._is_forked or _is_worker()):
                self._slot = idle_planners.slot()
                if self._slot is None:
                    raise Occupied("other processes have planning processes")
                self._slot_file = idle_planners.file_of(self._slot)
            self._process = PlanningProcess(nice, lambda: BACKGROUND.is_stopping)
        return self._process


def _is_worker() -> bool:
    """Whether `multiprocessing` has started this process."""
    local: Any = sys.modules.get("multiprocessing.process")
    return local is not None and local.parent_process() is not None


def _nice() -> int:
    return server.NICE if cores.available() > 1 else server.NICE_ALONE


def _can_start() -> bool:
    """Whether a planning process can be started: not if ``sys.executable`` may be a program with an embedded
    interpreter instead of Python."""
    name = os.path.basename(sys.executable or "")
    able = hasattr(os, "posix_spawn") and hasattr(os, "setpgid") and hasattr(select, "poll")
    return able and name.startswith("python") and not getattr(sys, "frozen", False)


_warned: set[str] = set()
CLIENT = PlanningClient()
"""The connection of this process to its planning process."""
BACKGROUND.finish, BACKGROUND.has_planner, BACKGROUND.wake = CLIENT.finish, CLIENT.is_ready, CLIENT.wake
