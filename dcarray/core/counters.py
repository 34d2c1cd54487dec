"""Counters of what ran, the calls that went through NumPy, and the report of both."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Counters", "Fallback", "Report", "counters", "note", "report", "user_line"]


@dataclass(slots=True)
class Counters:
    """Integers that the hot paths add to."""

    loops: int = 0
    waiting: int = 0
    plain: int = 0
    flushes: int = 0
    statements: int = 0
    kernels: int = 0
    interpreted: int = 0
    compiles: int = 0
    plan_hits: int = 0
    cache_hits: int = 0
    disk_hits: int = 0
    bytes: int = 0
    messages: int = 0
    sent: int = 0
    collectives: int = 0


_LABELS = {
    "loops": "loops run as compiled code",
    "waiting": "loops that waited for a plan",
    "plain": "calls of functions left to NumPy",
    "flushes": "regions run",
    "statements": "statements recorded",
    "kernels": "kernels run",
    "interpreted": "statements run by the interpreter",
    "compiles": "kernels compiled",
    "plan_hits": "plans found ready",
    "cache_hits": "kernels found in memory",
    "disk_hits": "kernels found on disk",
    "bytes": "bytes read and written by kernels",
}
_RANKS = {  # this process's own, shown where several ranks run the program
    "messages": "messages sent to other ranks",
    "sent": "bytes sent to other ranks",
    "collectives": "collective operations of ranks",
}

counters = Counters()


@dataclass(frozen=True, slots=True)
class Fallback:
    """Calls of one function from one line that ran through NumPy.

    ``kind`` is ``"fallback"`` where a lowering is missing, and ``"numpy"`` where NumPy's own routine
    (sorting, LAPACK, FFT) is the intended implementation.  With ``"loop"``, ``function`` is the reason why
    a loop of an accelerated function is not compiled.
    """

    function: str
    where: str
    kind: str
    count: int
    bytes: int

    @property
    def size_text(self) -> str:
        """The bytes that went through NumPy, as text."""
        return "" if self.kind == "loop" else f"  {self.bytes:,} bytes"


@dataclass(frozen=True, slots=True)
class Report:
    """A snapshot of the counters; ``str()`` and notebooks show it as a table."""

    loops: int
    waiting: int
    plain: int
    flushes: int
    statements: int
    kernels: int
    interpreted: int
    compiles: int
    plan_hits: int
    cache_hits: int
    disk_hits: int
    bytes: int
    messages: int
    sent: int
    collectives: int
    fallbacks: tuple[Fallback, ...]

    def _rows(self) -> list[tuple[str, str]]:
        shown = dict(_LABELS)
        if self.collectives or self.messages:
            shown |= _RANKS
        return [(label, f"{getattr(self, name):,}") for name, label in shown.items()]

    def __str__(self) -> str:
        width = max(len(label) for label in _LABELS.values())
        lines = ["dcarray report"]
        lines += [f"  {label:<{width}}  {value:>15}" for label, value in self._rows()]
        for kind, title in _KINDS.items():
            rows = [f for f in self.fallbacks if f.kind == kind]
            if rows:
                lines.append(title)
                lines += [f"  {f.count:>7,} x {f.function}{f.size_text}  {f.where}" for f in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        cells = [f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in self._rows()]
        text = f"<table>{''.join(cells)}</table>"
        if self.fallbacks:
            rows = (
                f"<tr><td>{html.escape(f.function)}</td><td>{f.kind}</td><td>{f.count:,}</td>"
                f"<td>{f.bytes:,}</td><td>{html.escape(f.where)}</td></tr>"
                for f in self.fallbacks
            )
            head = "<tr><th>function</th><th>kind</th><th>calls</th><th>bytes</th><th>line</th></tr>"
            text += f"<table>{head}{''.join(rows)}</table>"
        return text


_KINDS = {
    "fallback": "ran through NumPy for want of a lowering",
    "numpy": "served by NumPy's own routines",
    "loop": "loops that stay Python's",
}

_lock = threading.Lock()
_calls: dict[tuple[str, str, str], list[int]] = {}
_inside: dict[str, bool] = {}
_MOST_LINES = 10_000  # a program that generates code must not grow the table without bound


def _roots() -> tuple[str, ...]:
    """Folders whose frames are not the user's: this package (its layers lie beside it) and NumPy."""
    found = {
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        os.path.dirname(os.path.abspath(np.__file__)),
    }
    for layer in ("dcarray.ir", "dcarray.lowering", "dcarray.comm"):
        module = sys.modules.get(layer)
        for path in getattr(module, "__path__", ()):
            found.update((os.path.abspath(path), os.path.realpath(path)))
    return tuple(path + os.sep for path in sorted(found))


def is_inside(filename: str) -> bool:
    """Whether a file belongs to this package or to NumPy."""
    known = _inside.get(filename)
    if known is None:
        # "<...>" names code without a file; NumPy's dispatchers are such, a user's console is not
        generated = filename.startswith("<__array_function__")
        known = generated or os.path.abspath(filename).startswith(_roots())
        if len(_inside) < _MOST_LINES:
            _inside[filename] = known
    return known


def user_line(depth: int = 1) -> tuple[str, int]:
    """File and line of the innermost frame outside this package and NumPy.

    Parameters
    ----------
    depth : int
        Frames to skip, counted from the caller of this function.

    Returns
    -------
    tuple of str and int
        ``("<unknown>", 0)`` if every frame is inside.
    """
    frame = sys._getframe(depth)
    walk: Any = frame
    while walk is not None:
        if not is_inside(walk.f_code.co_filename):
            return walk.f_code.co_filename, walk.f_lineno
        walk = walk.f_back
    return "<unknown>", 0


def note(function: str, size: int = 0, kind: str = "fallback", where: tuple[str, int] | None = None) -> None:
    """Count one call that ran through NumPy.

    Parameters
    ----------
    function : str
        Name shown to the user.
    size : int
        Bytes that went in and came out.
    kind : str
        ``"fallback"``, ``"numpy"`` or ``"loop"``.
    where : tuple of str and int, optional
        File and line; found on the stack if not given.
    """
    file, line = where or user_line(2)
    key = (function, f"{file}:{line}", kind)
    with _lock:
        entry = _calls.get(key)
        if entry is None:
            if len(_calls) >= _MOST_LINES:
                key = (function, "<many lines>", kind)
            entry = _calls.setdefault(key, [0, 0])
        entry[0] += 1
        entry[1] += size


def report(reset: bool = False) -> Report:
    """A snapshot of what has run so far in this process.

    Parameters
    ----------
    reset : bool
        Start counting anew after this snapshot.

    Returns
    -------
    Report
        Counters and fallbacks (the most frequent first); prints as a table.
    """
    with _lock:
        rows = [Fallback(name, where, kind, n, size) for (name, where, kind), (n, size) in _calls.items()]
        values = asdict(counters)
        if reset:
            _calls.clear()
            for name in values:
                setattr(counters, name, 0)
    rows.sort(key=lambda row: (-row.count, row.function, row.where))
    return Report(fallbacks=tuple(rows), **values)
