"""Counters of recordings, kernels and calls run by NumPy, and the report that shows them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from dcarray.ir.records import record
from dcarray.lowering.runtime.forks import held_in_forks

from .own_files import is_inside

__all__ = ["Counters", "Fallback", "Report", "counters", "note", "report", "user_line"]


class Counters:
    """The counters of this process; `Report` says what they count."""

    loops: int = 0
    runs: int = 0
    waiting: int = 0
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
    "loops": "loops run as compiled code", "runs": "blocks of statements run as compiled code",
    "waiting": "loops and blocks run by Python while they were compiled", "flushes": "recordings run",
    "statements": "operations in these recordings", "kernels": "kernels run",
    "interpreted": "operations run one by one in NumPy", "compiles": "kernels compiled",
    "plan_hits": "recordings known from before", "cache_hits": "kernels found in memory",
    "disk_hits": "kernels found in the cache folder", "bytes": "bytes read and written by kernels",
}  # fmt: skip
_RANK_LABELS = {  # shown where there are several ranks
    "messages": "messages sent to other ranks",
    "sent": "bytes sent to other ranks",
    "collectives": "collective operations of ranks",
}

counters = Counters()
SETTLE: list[Callable[[], object]] = []
"""Called by `settle`."""


def settle() -> Counters:
    """Return the counters, after code that keeps counts of its own has added them."""
    for add in SETTLE:
        add()
    return counters


@record(frozen=True, slots=True)
class Fallback:
    """The calls of one function from one line that NumPy ran.

    Attributes
    ----------
    function : str
        The function; of the kinds ``"loop"`` and ``"slower"`` the reason why Python runs a loop or a block of
        statements.
    where : str
        The user's file and line.
    kind : {"fallback", "numpy", "loop", "slower"}
        ``"fallback"``: the function has no compiled form; ``"numpy"``: NumPy's own routine (sorting, LAPACK,
        FFT) is the intended implementation; ``"loop"``: a loop that Python runs; ``"slower"``: one that
        Python runs again, since compiled code was measured and was not faster.
    count : int
        The number of calls.
    bytes : int
        The size of the arguments and results of all calls.
    """

    function: str
    where: str
    kind: str
    count: int
    bytes: int

    @property
    def size_text(self) -> str:
        """The size of arguments and results, as the report shows it."""
        return "" if self.kind in ("loop", "slower") else f"  {self.bytes:,} bytes"


@record(frozen=True, slots=True)
class Report:
    """The counters at one time; ``print`` and notebooks show them as a table.

    Attributes
    ----------
    loops : int
        Loops of accelerated code run as compiled code.
    waiting : int
        Such loops, and blocks of statements, that Python ran since their plan was not ready.
    runs : int
        Blocks of statements of accelerated code run as compiled code.
    flushes, statements : int
        Recordings run, and the NumPy operations in them.
    kernels : int
        Kernels run.
    interpreted : int
        Recorded operations run one by one in NumPy: their plan was not ready, or would not be faster.
    compiles, cache_hits, disk_hits : int
        Kernels of new plans that were compiled, found in memory, and found in the cache folder.
    plan_hits : int
        Recordings with the same operations and sizes as an earlier one.
    bytes : int
        Bytes that kernels read and wrote.
    messages, sent, collectives : int
        Messages and bytes sent to other ranks, and collective operations with them.
    fallbacks : tuple of Fallback
        The calls that NumPy ran, the most frequent first.
    """

    loops: int
    runs: int
    waiting: int
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
            shown |= _RANK_LABELS
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
    "fallback": "calls run by NumPy, since they have no compiled form",
    "numpy": "calls run by NumPy's own routines, as intended",
    "loop": "loops run by Python, since they cannot be compiled",
    "slower": "statements run by Python again, since compiled code was measured and not faster",
}

_lock = held_in_forks(threading.RLock())
_calls: dict[tuple[str, str, str], list[int]] = {}
_MOST_LINES = 10_000  # a program that generates code must not grow the table without bound


def user_line(depth: int = 1) -> tuple[str, int]:
    """Return file and line of the innermost frame outside this package and NumPy.

    Parameters
    ----------
    depth : int
        Frames to skip, counted from the caller of this function.

    Returns
    -------
    tuple of str and int
        ``("<unknown>", 0)`` if there is no such frame.
    """
    frame = sys._getframe(depth)
    walk: Any = frame
    while walk is not None:
        if not is_inside(walk.f_code.co_filename):
            return walk.f_code.co_filename, walk.f_lineno
        walk = walk.f_back
    return "<unknown>", 0


def note(function: str, size: int = 0, kind: str = "fallback", where: tuple[str, int] | None = None) -> None:
    """Count one call that NumPy runs.

    Parameters
    ----------
    function, size, kind
        As the attributes ``function``, ``bytes`` and ``kind`` of `Fallback`.
    where : tuple of str and int, optional
        File and line; by default those of `user_line`.
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
    """Return the report of this process: recordings, kernels, and the calls that NumPy ran.

    Parameters
    ----------
    reset : bool
        Whether all counters begin at 0 again.

    Returns
    -------
    Report
        ``print`` shows it as a table; its attributes are the single counters.

    Examples
    --------
    >>> import dcarray as dc
    >>> with dc.options(eager_below=0, jit="eager"):
    ...     before = dc.report(reset=True)
    ...     x = dc.evaluate(dc.ones(8) * 2 + 1)
    ...     dc.report().kernels
    1
    """
    with _lock:
        rows = [Fallback(name, where, kind, n, size) for (name, where, kind), (n, size) in _calls.items()]
        settle()
        values = {name: getattr(counters, name) for name in Counters.__annotations__}
        if reset:
            _calls.clear()
            for name in values:
                setattr(counters, name, 0)
    rows.sort(key=lambda row: (-row.count, row.function, row.where))
    return Report(fallbacks=tuple(rows), **values)
