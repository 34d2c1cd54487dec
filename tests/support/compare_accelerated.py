"""Results, errors, warnings and side effects of plain and accelerated functions, compared."""

import warnings
from typing import Any

import numpy as np

import dcarray as dc
from dcarray.core.counters import settle


def outcome(f: Any, args: list[Any]) -> Any:
    """The result or exception of a call, its warnings, and its arguments after it."""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = f(*args)
        except Exception as error:
            made = type(error), str(error)
    every = [*(made if isinstance(made, tuple) else (made,)), *args]
    said = sorted({(str(w.message), w.lineno) for w in caught})
    return [(type(v), getattr(v, "dtype", None), np.asarray(v, None).tolist()) for v in every], said


def alike(f: Any, *args: Any) -> int:
    """Compare a plain and an accelerated call; returns the number of loops that ran compiled."""
    with dc.options(jit="off"):
        wanted = outcome(f, list(args))
    ours, before = dc.accelerate(f), settle().loops
    with dc.options(jit="eager", cache_dir=None):
        for _ in range(2):
            assert repr(outcome(ours, list(args))) == repr(wanted)
    return settle().loops - before
