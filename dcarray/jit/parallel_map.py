"""``dc.map``: ``for`` loops over several ranges at once, whose iterations may run in any order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from operator import index
from typing import Any

__all__ = ["IndexSpace", "map"]


class IndexSpace:
    """The integers of a range, or the tuples of the integers of several, the last of which moves fastest.

    Parameters
    ----------
    *ranges : range
    """

    __slots__ = ("ranges",)

    def __init__(self, *ranges: range) -> None:
        self.ranges = ranges

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ranges[0] if len(self.ranges) == 1 else product(*self.ranges))

    def __len__(self) -> int:
        count = 1
        for steps in self.ranges:
            count *= len(steps)
        return count

    def __repr__(self) -> str:
        axes = [f"{r.start}:{r.stop}" + (f":{r.step}" if r.step != 1 else "") for r in self.ranges]
        return f"dcarray.map[{', '.join(axes)}]"


class ParallelMap:
    """``dc.map[0:M, 0:N]``: all tuples of indices of some ranges, for a loop whose order does not matter.

    ``for i, j in dc.map[0:M, 0:N]:`` is ``for i in range(0, M):`` around ``for j in range(0, N):``.  In
    Python it is just that; `program` and `accelerate` compile it as this nest of loops.  That the order does
    not matter is the writer's promise, on which the compiler does not rely: axes are shared out to threads
    where their iterations are proved independent, or are folds.  Where iterations write the same, the result
    is that of the nest: integers are exact, and floats are added in an order that does not change.

    Parameters
    ----------
    key : slice, or tuple of slices
        For each axis ``start:stop`` or ``start:stop:step``, as for ``range``; a missing ``start`` is 0.

    Returns
    -------
    IndexSpace
        An iterable of integers for one axis, of tuples for several.

    Raises
    ------
    TypeError
        If an axis is no slice or has no end, or a bound is no integer.
    ValueError
        If there is no axis, or a step is 0.

    Notes
    -----
    After SC21's ``dace.map`` (Ziogas et al., "Productivity, Portability, Performance", SC 2021).

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> a = np.arange(6).reshape(2, 3)
    >>> b = np.empty((3, 2), a.dtype)
    >>> for i, j in dc.map[0:3, 0:2]:
    ...     b[i, j] = a[j, i]
    >>> (b == a.T).all()
    np.True_
    >>> list(dc.map[0:2, 1:4:2])
    [(0, 1), (0, 3), (1, 1), (1, 3)]
    """

    __slots__ = ()
    __name__ = "map"

    def __getitem__(self, key: Any, /) -> IndexSpace:
        axes = key if type(key) is tuple else (key,)
        if not axes:
            raise ValueError("map[] takes a range start:stop for each axis, and there is none")
        return IndexSpace(*[_axis(axis) for axis in axes])

    def __repr__(self) -> str:
        return "dcarray.map"

    def __reduce__(self) -> str:
        return "map"


def _axis(axis: Any) -> range:
    """Return the range that a slice of ``dc.map`` stands for."""
    if not isinstance(axis, slice):
        raise TypeError(f"map[] takes a range start:stop for each axis, not {axis!r}")
    if axis.stop is None:
        raise TypeError("map[] takes a range start:stop for each axis, and one has no stop")
    bounds = (0 if axis.start is None else axis.start, axis.stop, 1 if axis.step is None else axis.step)
    try:
        start, stop, step = [index(bound) for bound in bounds]
    except TypeError:
        text = ":".join([repr(bound) for bound in bounds])
        raise TypeError(f"map[] takes integers as bounds, not {text}") from None
    if step == 0:
        raise ValueError("map[] takes no step of 0")
    return range(start, stop, step)


map = ParallelMap()
