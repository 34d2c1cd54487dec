"""Turns: where a loop comes round, and whether its windows move."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from . import log_format

if TYPE_CHECKING:
    from .log import Recording


def moving(rec: Recording) -> bool:
    """Does the loop whose turn ends with the last statement touch other windows in each turn?"""
    here = rec.sites[-1][:2]
    ends = [k for k, site in enumerate(rec.sites) if site[:2] == here]
    if len(ends) < 3:
        return False
    first, second, third = ends[-3:]
    statements = rec.statements()
    one = statements[first + 1 : second + 1]
    two = statements[second + 1 : third + 1]
    return log_format.split(tuple(one))[1] != log_format.split(tuple(two))[1]


def outermost(rec: Recording) -> bool:
    """Has the last statement come round, and as seldom as any that has: is it in no inner loop?"""
    places = Counter([site[:2] for site in rec.sites])
    here = places[rec.sites[-1][:2]]
    return here > 1 and here == min(count for count in places.values() if count > 1)
