"""Plain and accelerated calls, compared."""

from typing import Any

from outcomes import outcome

import dcarray as dc
from dcarray.core.counters import settle


def alike(f: Any, *args: Any) -> int:
    """Compare a plain and an accelerated call; returns the number of loops that ran compiled."""
    with dc.options(jit="off"):
        wanted = outcome(f, args)
    ours, before = dc.accelerate(f), settle().loops
    with dc.options(jit="eager", cache_dir=None):
        for _ in range(2):
            assert outcome(ours, args) == wanted
    return settle().loops - before
