"""Measures whole processes that run alternately in slices of time, for machines of varying speed.

The processes run in slices of time, one after the other, and are stopped in between, with all processes of
their sessions.  So each of them gets the machine as fast as it happens to be, and ratios of their times hold.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from .whole_programs import Outcome, outcome

__all__ = ["in_slices"]

_SLICE = 0.08  # seconds
_IDLE = 0.3  # seconds without processor time after which what a program has left behind is done
_LEFT = 15.0  # seconds that it may take

Start = Callable[[int, int], "subprocess.Popen[bytes]"]
"""Starts a process in a session of its own, with these files for its output and its errors."""


def in_slices(starts: Mapping[str, Start], limit: float) -> dict[str, Outcome]:
    """Run processes in slices; return the outcome of each, with the seconds of its own slices.

    Processes that they leave in their sessions, such as a planning process, may finish, and are then ended.
    """
    found: dict[str, Outcome] = {}
    running = {name: _Sliced(start) for name, start in starts.items()}
    while running:
        for name, one in list(running.items()):
            if one.step() or one.seconds > limit:
                found[name] = one.end(limit)
                del running[name]
    return found


class _Sliced:
    """A process that runs in slices of time."""

    def __init__(self, start: Start) -> None:
        self._start, self.seconds = start, 0.0
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed at the end
        self._process: subprocess.Popen[bytes] | None = None

    def step(self) -> bool:
        """Run for a slice; return whether the process has ended."""
        begun = time.perf_counter()
        if self._process is None:
            self._process = self._start(*[file.fileno() for file in self._files])
        else:
            self._signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SLICE)
        self.seconds += time.perf_counter() - begun
        if self._process.returncode is None:
            self._signal(signal.SIGSTOP)
        return self._process.returncode is not None

    def end(self, limit: float) -> Outcome:
        """End the process and its session, and return its outcome."""
        assert self._process is not None
        late = self._process.returncode is None
        if not late:
            end, used = time.monotonic() + _LEFT, -1.0
            while used < (used := self._processor_seconds()) and time.monotonic() < end:
                time.sleep(_IDLE)
        self._signal(signal.SIGKILL)
        status = self._process.wait()
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        if late:
            return Outcome(self.seconds, texts[0], f"not ready after {limit:g} s")
        return outcome(self.seconds, texts[0], texts[1], status)

    def _signal(self, number: int) -> None:
        for pid, _ in self._members():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _processor_seconds(self) -> float:
        return sum(seconds for _, seconds in self._members())

    def _members(self) -> list[tuple[int, float]]:
        """Return the ids of the session's processes, each with its processor time."""
        assert self._process is not None
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
                if int(fields[3]) == self._process.pid:
                    ticks = int(fields[11]) + int(fields[12])
                    found.append((int(name), ticks / os.sysconf("SC_CLK_TCK")))
        return found
