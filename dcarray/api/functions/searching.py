"""Binary search in sorted tables, and linear interpolation, on all cores.

While the routine for a call is being compiled, NumPy runs it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dcarray.api.array import wrap
from dcarray.core import config
from dcarray.core.backend import is_distributed
from dcarray.execution.routines import Compiled
from dcarray.lowering.runtime.array_memory import address_of
from dcarray.tiering import policy

from .common import contiguous_array, is_array, plain, vector
from .registry import Unserved, implements, launch_of

_SECONDS = 2e-8  # seconds that NumPy needs for an element
_WORK = 16  # cost of finding an element, in the scheduler's units
_EXACT = 1 << 53  # smaller ints are exact as doubles

_SEARCHES = {
    (char, side): Compiled("searching", "search", (char, side)) for char in "dl" for side in ("left", "right")
}
_INTERPOLATION = Compiled("searching", "interpolation", None)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return the positions at which elements are inserted to keep a table sorted."""
    if sorter is not None or type(side) is not str:
        raise Unserved
    return wrap(_search(vector(a), v, side))


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """Return the numbers of the intervals that contain the elements."""
    if type(right) is not bool or not _worth_threads(x):
        raise Unserved
    bins = plain(vector(bins))
    side = "left" if right else "right"
    compared = bins.astype(np.float64)  # like NumPy, in which large ints may become equal
    if _ascending(compared, len(bins)):
        return wrap(_search(bins, x, side))
    if not _ascending(compared[::-1], len(bins)):
        raise Unserved
    places = _search(bins[::-1], x, side)
    return wrap(np.subtract(len(bins), places, out=places))


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return the piecewise linear interpolation between points."""
    points, values = vector(xp), vector(fp)
    if period is not None or not all(type(end) in (type(None), int, float) for end in (left, right)):
        raise Unserved
    if not _worth_threads(x) or x.dtype != np.float64 or points.shape != values.shape:
        raise Unserved
    if not 1 < points.size <= x.size or np.result_type(points.dtype, values.dtype, x.dtype) != x.dtype:
        raise Unserved
    if any(type(end) is int and abs(end) >= _EXACT for end in (left, right)) or not _rounds_twice():
        raise Unserved
    launch = launch_of(_INTERPOLATION, _SECONDS * x.size)
    points, values = (np.ascontiguousarray(plain(v), np.float64) for v in (points, values))
    if not _ascending(points, len(points)):
        raise Unserved
    table, pivots, length = _table_parts(points)
    with np.errstate(all="ignore"):
        slopes = np.append(np.diff(values) / np.diff(points), 0.0)
    ends = np.array([values[0] if left is None else left, values[-1] if right is None else right], np.float64)
    elements = contiguous_array(x)
    result = np.empty(elements.shape, np.float64)
    addresses = [address_of(v) for v in (elements, result, pivots, table, values, slopes, ends)]
    _run(launch, elements.size, *addresses, elements.size, length, len(points))
    return wrap(result)


def _worth_threads(x: Any) -> bool:
    """Whether there are enough elements to be worth several threads."""
    return is_array(x) and x.ndim > 0 and not policy.eager(x.size, policy.PASS) and not is_distributed(x)


def _search(a: Any, v: Any, side: str) -> Any:
    """Return NumPy's result as a plain array, for a sorted table that NumPy converts to the type of the
    elements looked up."""
    if not _worth_threads(v) or v.dtype not in (np.float64, np.int64):
        raise Unserved
    routine = _SEARCHES.get((v.dtype.char, side))
    if routine is None or a.size > v.size or np.result_type(a.dtype, v.dtype) != v.dtype:
        raise Unserved
    launch = launch_of(routine, _SECONDS * v.size)
    known = plain(a).astype(v.dtype, copy=False)
    numbers = len(known) - int(np.isnan(known).sum()) if v.dtype.kind == "f" else len(known)
    if not _ascending(known, numbers):
        raise Unserved
    table, pivots, length = _table_parts(known[:numbers])
    elements = contiguous_array(v)
    result = np.empty(elements.shape, np.intp)
    addresses = [address_of(v) for v in (elements, result, pivots, table)]
    unknown = numbers if side == "left" else len(known)
    _run(launch, elements.size, *addresses, elements.size, length, numbers, unknown)
    return result


def _ascending(a: Any, numbers: int) -> bool:
    """Whether this many elements are ascending and none of them is NaN."""
    first = a[:numbers]
    return bool(numbers and first[0] == first[0] and (first[1:] >= first[:-1]).all())


def _table_parts(known: Any) -> tuple[Any, Any, int]:
    """Return a table in parts for the routines, the last element of each part, and the length of parts."""
    from dcarray.lowering.cpu.llvm.routines.searching import PARTS

    length = len(known) // PARTS + 1
    greatest = np.inf if known.dtype.kind == "f" else np.iinfo(known.dtype).max
    table = np.full(PARTS * length, greatest, known.dtype)
    table[: len(known)] = known
    return table, table[length - 1 :: length].copy(), length


def _run(launch: Any, size: int, *arguments: int) -> None:
    from dcarray.lowering.cpu.llvm.routines.searching import BLOCK

    launch(launch.pack(-(-size // BLOCK), _WORK * BLOCK, *arguments), config.current().threads)


@cache
def _rounds_twice() -> bool:
    """Whether NumPy's interpolation rounds products before adding; its compiler may have fused the two
    operations."""
    points = np.linspace(0.1, 3.7, 60) ** 2
    values, x = np.sin(points * 7), np.linspace(0.2, 10.0, 500)
    at = np.searchsorted(points, x, "right") - 1
    slopes = np.diff(values) / np.diff(points)
    return np.array_equal(np.interp(x, points, values), slopes[at] * (x - points[at]) + values[at])
