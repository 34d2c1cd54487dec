"""The hot lines of a program: how long each took, how it ran, and why it was not compiled."""

from __future__ import annotations

import os
from typing import NamedTuple

from dcarray.core.counters import report
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.loops.sites.site import Site

__all__ = ["NOTHING", "HotLine", "hot_lines", "table"]

NOTHING = "it has nothing that can be compiled"
_SHOWN = 20  # lines
_LEAST_SHARE = 0.01  # of the time of all lines


class HotLine(NamedTuple):
    """A line of the program, or several lines that are compiled together, and its time.

    Attributes
    ----------
    file : str
    line, last : int
    seconds : float
        Seconds in Python and NumPy, estimated by the sampler, or as compiled code.
    how : str
        "compiled" or "Python and NumPy".
    why : str
        The reason why it is not compiled, if there is a known one; else empty.
    """

    file: str
    line: int
    last: int
    seconds: float
    how: str
    why: str


def hot_lines() -> list[HotLine]:
    """Return the hot lines of the program so far, those that took longest first."""
    sites = SAMPLER.sites()
    noted = {row.where: row.function for row in report().fallbacks if row.kind in ("loop", "slower")}
    hot, lines = [], dict(SAMPLER.lines)
    for s in sites:
        if s.runs:
            place = s.source.file, s.source.line
            hot.append(HotLine(*place, s.source.last, s.compiled, f"compiled, {s.runs:,} runs", ""))
            if place in lines:  # where the sampler sees a program whose compiled code runs
                lines[place] -= s.compiled
    for (file, line), seconds in lines.items():
        if seconds > 0.0:
            why = _why(sites, noted, file, line)
            hot.append(HotLine(file, line, line, seconds, "Python and NumPy", why))
    return sorted(hot, key=lambda one: -one.seconds)


def _why(sites: list[Site], noted: dict[str, str], file: str, line: int) -> str:
    """Return why a line ran in Python: the reason of the innermost site around it, or a noted one."""
    around = [s for s in sites if s.source.file == file and s.source.line <= line <= s.source.last]
    if not around:
        return NOTHING
    innermost = min(around, key=lambda s: s.source.last - s.source.line)
    reasons = [s.refused for s in (innermost, *around) if s.refused]
    if reasons:
        return reasons[0]
    if any(s.runs for s in around):
        calls = any(s.runs and s.source.line == line for s in around)
        return "before its compiled code was ready" + (", or in calling it" if calls else "")
    for s in (innermost, *around):
        if f"{file}:{s.source.line}" in noted:
            return noted[f"{file}:{s.source.line}"]
    return "its compiled code was not ready in time" if innermost.enabled or innermost.seconds else ""


def table() -> str:
    """Return the hot lines as a table of text."""
    lines = hot_lines()
    total = sum(one.seconds for one in lines)
    if not total:
        return "hot lines: none, the program was too short to be seen"
    rows = ["hot lines (seconds, share, how they ran)"]
    for one in lines[:_SHOWN]:
        if one.seconds < _LEAST_SHARE * total:
            break
        name = os.path.basename(one.file)
        place = f"{name}:{one.line}" + (f"-{one.last}" if one.last > one.line else "")
        why = f": {one.why}" if one.why else ""
        rows.append(f"  {one.seconds:8.3f} s  {one.seconds / total:4.0%}  {place:<28}  {one.how}{why}")
    return "\n".join(rows)
