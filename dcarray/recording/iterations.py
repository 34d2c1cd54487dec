"""Iterations of the user's loops in a recording: where they end, and whether their windows move."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from . import log_format

if TYPE_CHECKING:
    from .log import Recording


def windows_move(rec: Recording) -> bool:
    """Whether the loop whose iteration ends with the last statement uses other windows in each one."""
    here = rec.sites[-1][:2]
    ends = [k for k, site in enumerate(rec.sites) if site[:2] == here]
    if len(ends) < 3:
        return False
    first, second, third = ends[-3:]
    statements = rec.statements()
    one = statements[first + 1 : second + 1]
    two = statements[second + 1 : third + 1]
    return log_format.integers(one) != log_format.integers(two)


def is_outermost(rec: Recording) -> bool:
    """Whether the last statement repeats, and no other one repeats less often: it is in no inner loop."""
    counts = Counter([site[:2] for site in rec.sites])
    here = counts[rec.sites[-1][:2]]
    return here > 1 and here == min(count for count in counts.values() if count > 1)
