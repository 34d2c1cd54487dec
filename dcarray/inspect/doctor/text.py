"""The doctor's report as text."""

from __future__ import annotations

import os
from collections.abc import Callable

from .diagnosis import Line
from .runs import Run
from .ways import Gain

__all__ = ["remarks", "text"]


def text(
    plain: Run, gains: list[Gain], lines: list[Line], called: Callable[[str], str] = os.path.basename
) -> str:
    """Return the report.

    Parameters
    ----------
    plain : Run
    gains : list of Gain
    lines : list of Line
        The hot lines.
    called : callable, optional
        ``called(file)`` gives the name shown for a file.
    """
    fast = next((one.run for one in gains if one.way == "run"), None)
    rows = [
        f"dcarray doctor: {plain.seconds:.3f} s as plain Python",
        *[f"  {one.text(plain)}" for one in gains],
        "",
        f"{'seconds':>9} {'share':>6} {'each':>9}  line",
    ]
    for one in lines:
        rows.append(f"{one.seconds:9.3f} {one.share:6.1%} {shown(one.each):>9}  {one.place}  {one.text}")
        rows += [f"{'':26}  {part}" for part in remarks(one)]
    for file, line, last, seconds, how, _ in fast.hot if fast else ():
        known = any(one.file == file and line <= one.line <= last for one in lines)
        if how.startswith("compiled") and not known and seconds > 0.01 * plain.seconds:
            rows.append(f"{'':16} under run {called(file)}:{line} was {how}: {seconds:.3f} s")
    rest = plain.seconds - sum(one.seconds for one in lines)
    rows.append(f"{rest:9.3f} {rest / plain.seconds:6.1%}  {'':7} all else")
    return "\n".join(rows)


def remarks(one: Line) -> list[str]:
    """Return the remarks on a line that stand below its figures."""
    said = [one.library and f"in {one.library}", one.how and f"under run: {one.how}", one.advice]
    return [*filter(None, said)]


def shown(seconds: float | None) -> str:
    """Return a duration as text in a suitable unit; "" if it is None."""
    if seconds is None:
        return ""
    scale, unit = next(
        (s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "us")) if seconds * s >= 1 or u == "us"
    )
    return f"{seconds * scale:.3g} {unit}"
