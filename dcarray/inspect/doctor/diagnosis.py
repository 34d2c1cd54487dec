"""The doctor's findings for each hot line: its time, how it runs, and what measured runs gained."""

from __future__ import annotations

import linecache
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dcarray.ir.records import record

from ..hot_lines import NOTHING
from .runs import Run

__all__ = ["LEAST_SHARE", "Line", "diagnosis", "source_of"]

LEAST_SHARE = 0.01  # of the program's time
_UNSEEN = "not seen, it is in the compiled code of a caller or in the time of the loop around it"


@record(frozen=True, slots=True)
class Line:
    """A hot line.

    Attributes
    ----------
    file : str
    line : int
    place : str
        File and line, as they are shown.
    text : str
    seconds, share : float
        Seconds in the plain run, and their share of its time.
    each : float or None
        Seconds of one run of the line, the median of those that were timed.
    library : str
        The library whose Python code takes most of this time, and its share; empty if none.
    how, why : str
        How the line ran under ``python -m dcarray run``, and why it was not compiled; or empty.
    accelerated : float or None
        Seconds of the line in that run.
    advice : str
    """

    file: str
    line: int
    place: str
    text: str
    seconds: float
    share: float
    each: float | None
    library: str
    how: str
    why: str
    accelerated: float | None
    advice: str


def diagnosis(
    plain: Run, accelerated: Run | None, called: Callable[[str], str] = os.path.basename
) -> list[Line]:
    """Return the hot lines, those that took longest first.

    Parameters
    ----------
    plain : Run
    accelerated : Run or None
        A run of the same program under ``python -m dcarray run``.
    called : callable, optional
        ``called(file)`` gives the name shown for a file.
    """
    ordered = sorted(plain.lines.items(), key=lambda item: -item[1])
    return [
        _line(where, called(where[0]), seconds, plain, accelerated)
        for where, seconds in ordered
        if seconds >= LEAST_SHARE * plain.seconds
    ]


def source_of(file: str) -> str:
    """Return the text of a source file, or of a notebook's cell; empty if it cannot be read."""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return "".join(linecache.getlines(file))


def _line(where: tuple[str, int], name: str, seconds: float, plain: Run, fast: Run | None) -> Line:
    file, number = where
    rows = source_of(file).split("\n")
    text = rows[number - 1].strip() if number <= len(rows) else ""
    times = plain.looks.get(where)
    each = statistics.median(times) if times else None
    inner = plain.libraries.get(where, {})
    most_of = max(inner, key=lambda one: inner[one], default="")
    library = f"{most_of} {inner[most_of] / seconds:.0%}" if inner and inner[most_of] > seconds / 2 else ""
    how, why, spent = ("", "", None) if fast is None else _accelerated(where, fast)
    advice = _advice(each, library, how, why, seconds, spent)
    share = seconds / plain.seconds
    return Line(
        file, number, f"{name}:{number}", text, seconds, share, each, library, how, why, spent, advice
    )


def _accelerated(where: tuple[str, int], fast: Run) -> tuple[str, str, float | None]:
    """Return how a line ran in the run with dcarray, why it was not compiled, and its seconds (None if it
    shares them with other lines)."""
    file, number = where
    around: list[list[Any]] = [h for h in fast.hot if h[0] == file and h[1] <= number <= h[2]]
    compiled = [h for h in around if h[4].startswith("compiled")]
    why = next((h[5] for h in around if h[1] == h[2] == number and h[5]), "")
    if compiled:
        first, last = min((h[1], h[2]) for h in compiled)
        how = compiled[0][4] + ("" if first == last else f", together with lines {first} to {last}")
        return how, why, fast.lines.get(where, 0.0) if first == last else None
    return ("Python and NumPy" if why else _UNSEEN), why, fast.lines.get(where)


def _advice(each: float | None, library: str, how: str, why: str, seconds: float, spent: float | None) -> str:
    """Return the advice for a line: what is certain to help, and what was measured."""
    said = []
    if library:
        said.append("the time is in a library, which dcarray does not change")
    if how.startswith("compiled") and spent and spent < seconds:
        said.append(f"{seconds / spent:.1f} times as fast under run")
    elif how.startswith("compiled") and spent:
        said.append(f"it took {spent:.3f} s under run, with all that ran before it was compiled")
    elif how.startswith("compiled"):
        said.append("run compiles it")
    elif why and not library:
        said.append(f"not compiled: {why}")
    # NOTHING: it is about strings, say
    numeric = not how.startswith("compiled") and how != _UNSEEN and why != NOTHING
    if each is not None and each < 1e-5 and numeric and seconds > 0.1:
        said.append("many short runs: array statements would take the place of a loop")
    return "; ".join(said)
