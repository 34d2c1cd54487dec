"""Whether all, or any, of a large boolean array: NumPy looks no further than it has to, and as fast as memory
is, so that nothing is won by a kernel unless something is pending or threads help."""

from __future__ import annotations

from typing import Any

from dcarray.core import config
from dcarray.core.handle import Handle
from dcarray.core.ufunc_loops import UFUNCS

WHOLE = 1 << 24  # elements that one core reads as fast as all
FIRST = 1 << 20  # elements to look at before the cores share the work

_OR = frozenset(["logical_or", "bitwise_or", "maximum", "fmax"])
_AND = frozenset(["logical_and", "bitwise_and", "minimum", "fmin"])


def decided(name: str, x: Handle) -> Any:
    """The fold of all elements if NumPy has it at once, else None.

    Parameters
    ----------
    name : str
        The ufunc that folds.
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
