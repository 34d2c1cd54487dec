"""Reductions such as `all` and `any` of boolean arrays, when NumPy can decide them early.

NumPy stops at the first element that decides the result, and reads at memory speed.  A kernel is faster only
if work is pending or several cores share it.
"""

from __future__ import annotations

from typing import Any

from dcarray.core import config
from dcarray.core.handle import Handle
from dcarray.core.ufunc_loops import UFUNCS

WHOLE = 1 << 24  # elements that one core reads as fast as several
FIRST = 1 << 20  # elements that NumPy reads before the cores share the work

_OR = frozenset(["logical_or", "bitwise_or", "maximum", "fmax"])
_AND = frozenset(["logical_and", "bitwise_and", "minimum", "fmin"])


def decide_early(name: str, x: Handle) -> Any:
    """Return the reduction of all elements if it can be decided from the first ones, else None.

    Parameters
    ----------
    name : str
        The ufunc of the reduction.
    x : Handle
        A large array of any dtype.

    Returns
    -------
    numpy.bool or None
    """
    if x._store.char != "?" or name not in _OR | _AND or not config.current().eager_below or not x._idle():
        return None
    a = x._evaluated()
    part = a
    if a.size > WHOLE:
        part = a[: max(1, FIRST * len(a) // a.size)]
    found = UFUNCS[name].reduce(part, axis=None)
    return found if part is a or bool(found) == (name in _OR) else None
