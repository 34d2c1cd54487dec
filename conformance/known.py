"""Lists of known failures: files that list tests under the reasons why they fail, and should only shrink.

A file has a heading ``# reason`` for each reason, followed by one test id a line.  ``{a,b}`` in an id stands
for either, so that one line can name a test with many parameters.  A line that begins with ``[mode]`` applies
in that mode only, one with ``[recorded]`` in all modes except ``"defaults"``.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["causes", "known"]


def known(mode: str, file: Path) -> dict[str, str]:
    """Return the listed failures of a mode, with reasons.

    Parameters
    ----------
    mode : str
        The mode in which tests run, such as ``"defaults"``.
    file : Path
        The list.

    Returns
    -------
    dict of str to str
        The reason for each test id.
    """
    reason = ""
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("# "):
            reason = text[2:]
            continue
        if text.startswith("["):
            where, _, text = text[1:].partition("] ")
            if where != mode and (where != "recorded" or mode == "defaults"):
                continue
        if text:
            found |= dict.fromkeys(_spelled_out(text), reason)
    return found


def _spelled_out(text: str) -> list[str]:
    """Return all test ids that a line with alternatives ``{a,b}`` stands for."""
    parts = [part.split(",") if n % 2 else [part] for n, part in enumerate(re.split(r"\{([^}]*)\}", text))]
    return ["".join(choice) for choice in itertools.product(*parts)]


def causes(failed: Iterable[str], listed: Mapping[str, str]) -> str:
    """Return a Markdown list of the reasons of some failures with their counts, most frequent first."""
    counts = Counter(listed.get(test, "not listed: new") for test in failed)
    return "\n".join(f"* {count} x {reason}" for reason, count in counts.most_common())
