"""The doctor's clock: a thread that looks, every few milliseconds, at the line that a program is running.

Each look counts the time since the look before, so that all lines add up to the whole.  Python switches
threads only at calls and at backward jumps.  Time seen at a jump is divided among the lines traced in its
code, by the seconds that they took when traced.
"""

from __future__ import annotations

import dis
import os
import random
import signal
import sys
import threading
import time
from _thread import get_ident, start_new_thread
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from dcarray.core.own_files import is_inside
from dcarray.core.uncollected import thread_without_collections, waiting
from dcarray.jit.loops.sites.sampler import tools

__all__ = ["Clock"]

_LOOK = signal.SIGCONT  # does nothing without a handler
_PERIOD = 0.002  # seconds between two looks of the thread
_DEPTH = 1000  # frames that are looked at
_HOT, _LOOKS = 0.02, 4  # seconds after which a line is traced for a moment, and how often
_EVENTS, _SECONDS, _KEPT = 400, 0.1, 20  # of one look; times of a line that are kept
IsOwn = Callable[[str], bool]


class Looks:
    """Closer looks at lines: the durations of some runs of each line.

    Attributes
    ----------
    seen : dict
        The seconds of single runs, by file and line.
    runs : dict
        How often a line was traced, by file and line.
    """

    def __init__(self, is_own: IsOwn) -> None:
        self._is_own = is_own
        self.seen: dict[tuple[str, int], list[float]] = {}
        self.runs: dict[tuple[str, int], int] = {}
        self._line, self._begun, self._events, self._end = 0, 0.0, 0, 0.0
        self._frame: FrameType | None = None

    def __call__(self, _: int, frame: FrameType | None) -> None:
        """Trace the program's innermost frame for a moment; this is the handler of a signal."""
        while frame is not None and not self._is_own(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or sys.gettrace() not in (None, _untraced):  # a debugger's
            return
        if self._frame is not None:  # it waits for the end of a long call
            self._frame.f_trace = None
        self._frame = frame
        self._line, self._events, self._end = 0, 0, time.perf_counter() + _SECONDS
        frame.f_trace = self._trace
        sys.settrace(_untraced)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        now = time.perf_counter()
        if self._line:
            where = frame.f_code.co_filename, self._line
            times = self.seen.setdefault(where, [])
            self.runs[where] = self.runs.get(where, 0) + 1
            if len(times) < _KEPT:
                times.append(now - self._begun)
        self._events += 1
        if event == "return" or now > self._end or self._events > _EVENTS:
            sys.settrace(None)
            frame.f_trace = self._frame = None
            return None
        self._line = frame.f_lineno if event == "line" else 0
        self._begun = time.perf_counter()
        return self._trace


def _untraced(*_: Any) -> None:
    """A trace function that traces nothing, for functions called while a line is traced."""


class Clock:
    """The thread's looks at the thread that made the clock, and the seconds that they stand for.

    Parameters
    ----------
    is_own : callable
        ``is_own(file)`` says whether a file is one of the program's own, whose lines count.
    traced : bool
        Whether lines are traced now and then; not if dcarray's own sampler looks at the program, too.
    """

    def __init__(self, is_own: IsOwn, traced: bool) -> None:
        self._is_own, self._traced = is_own, traced
        self.looks = Looks(is_own)
        self.lines: dict[tuple[str, int], float] = {}
        self.jumps: dict[tuple[str, int, int, int], float] = {}  # file, line, first and last of the code
        self.libraries: dict[tuple[str, int], dict[str, float]] = {}
        self.outside, self._began, self._last = 0.0, 0.0, 0.0
        self._looked: dict[tuple[str, int], int] = {}
        self._watched, self._lock, self._ended = get_ident(), threading.Lock(), False
        self._before: Any = signal.SIG_DFL

    def begin(self) -> None:
        """Start to look."""
        # they import NumPy, which must not wait in the thread; under dcarray its own sampler rests
        rest, self._chains = tools()
        if self._traced:
            self._before = signal.signal(_LOOK, self.looks) or signal.SIG_DFL
        self._began = self._last = time.perf_counter()
        start_new_thread(self._watch, (rest if self._traced else time.sleep,))

    def end(self) -> dict[str, Any]:
        """Stop looking and return the measurements as JSON values; `dcarray.inspect.doctor.runs.Run` has
        their meaning."""
        with self._lock:
            self._ended = True
        now = time.perf_counter()
        self.outside += now - self._last
        if self._traced:
            signal.signal(_LOOK, self._before)
        self._share()
        return {
            "seconds": now - self._began,
            "outside": self.outside,
            "lines": [[*where, spent] for where, spent in self.lines.items()],
            "libraries": [[*where, spent] for where, spent in self.libraries.items()],
            "looks": [[*where, times] for where, times in self.looks.seen.items()],
        }

    @thread_without_collections
    def _watch(self, rest: Callable[[float], None]) -> None:
        while True:
            waiting(rest, random.uniform(0.5, 1.5) * _PERIOD)  # never in step with what the program repeats
            with self._lock:
                if self._ended:
                    return
                now = time.perf_counter()
                seconds, self._last = now - self._last, now
                self._look(seconds)

    def _look(self, seconds: float) -> None:
        chain = self._chains(None, get_ident(), _DEPTH).get(self._watched, [])
        own = next((one for one in chain if self._is_own(one[0].co_filename)), None)
        if own is None:
            self.outside += seconds
        else:
            self._note(*own, chain[0][0].co_filename if own is not chain[0] else None, seconds)

    def _note(self, code: CodeType, line: int, place: int, inside: str | None, seconds: float) -> None:
        where = code.co_filename, line
        self.lines[where] = self.lines.get(where, 0.0) + seconds
        if inside is not None:
            library = _library(inside)
            inner = self.libraries.setdefault(where, {})
            inner[library] = inner.get(library, 0.0) + seconds
        elif _is_between(code.co_code[place:]):
            known = (line for _, _, line in code.co_lines() if line)
            key = *where, code.co_firstlineno, max(known)
            self.jumps[key] = self.jumps.get(key, 0.0) + seconds
        looked = self._looked.get(where, 0)
        if self._traced and looked < _LOOKS and self.lines[where] > _HOT * (1 + 5 * looked):
            self._looked[where] = looked + 1
            signal.pthread_kill(self._watched, _LOOK)

    def _share(self) -> None:
        """Divide the time seen at jumps among the lines that were traced in the same code."""
        seen = self.looks.seen
        for (file, line, first, last), seconds in self.jumps.items():
            sums = {
                (f, n): sum(times) / len(times) * runs
                for (f, n), times in seen.items()
                if f == file and first <= n <= last and times and (runs := self.looks.runs.get((f, n), 0))
            }
            total = sum(sums.values())
            if total and len(sums) > 1:
                self.lines[file, line] -= seconds
                for where, part in sums.items():
                    self.lines[where] = self.lines.get(where, 0.0) + seconds * part / total


def _is_between(code: bytes) -> bool:
    """Whether an instruction at which Python switches threads begins here: a backward jump, or its test
    (Python 3.11)."""
    name = dis.opname[code[0]]
    jumps = "BACKWARD" in name or (name == "COMPARE_OP" and "BACKWARD" in dis.opname[(code[6:7] or code)[0]])
    return jumps or name == "RESUME"


def _library(file: str) -> str:
    """Return the name of the package, or of the module, that a file is in."""
    parts = file.split(os.sep)
    for folder in ("site-packages", "dist-packages"):
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1].removesuffix(".py")
    if is_inside(file):
        return "dcarray"
    standard = os.path.dirname(os.__file__) + os.sep
    return (
        file.removeprefix(standard).split(os.sep)[0].removesuffix(".py").strip("<>").removeprefix("frozen ")
    )
