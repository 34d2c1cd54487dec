"""Distributed `numpy.unique`, `isin`, `setdiff1d` and `searchsorted`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.api.array import ndarray
from dcarray.api.functions.common import is_array, operand
from dcarray.comm.algorithms.fancy_indexing import read_elements
from dcarray.comm.algorithms.sorted_search import searchsorted
from dcarray.comm.algorithms.unique import unique, unique_rows, unique_values
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.transport.sparse_alltoall import allgather
from dcarray.distributed.function_dispatch import (
    DISTRIBUTED,
    dist_operand,
    is_distributed,
    require,
    run_distributed,
)

from .numpy_source import decomposition_of
from .per_element import per_element

_SORTED = "?bBhHiIlLqQefdg"
_COMPLEX = "FD"


def _sorts_alike(x: DistArray) -> bool:
    """Whether sorting brings equal elements together.

    Not with complex NaNs: `numpy.unique` takes all of them for equal, and gives any one.
    """
    if x.dtype.char in _COMPLEX:
        return not allgather(x.comm, np.bool_(np.isnan(x.local).any())).any()
    return x.dtype.char in _SORTED


def _unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    x = dist_operand(ar)
    require(x.ndim and (axis is None or (x.ndim == 1 and axis in (0, -1))) and _sorts_alike(x))
    if not (return_index or return_inverse or return_counts):
        return unique_values(x, bool(equal_nan))
    wanted = (True, return_index, return_inverse, return_counts)
    return tuple(one for one, asked in zip(unique(x, bool(equal_nan)), wanted, strict=True) if asked)


@decomposition_of(np.unique)
def _unique_along_axis(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    """Return unique subarrays along an axis, as rows of a matrix."""
    at = normalize_axis_index(axis, ar.ndim)
    require(ar.ndim > 1 and ar.size and ar.dtype.char in _SORTED)
    rows = np.moveaxis(ar, at, 0)
    table = rows.reshape(rows.shape[0], ar.size // rows.shape[0])
    parts = run_distributed(lambda a: unique_rows(dist_operand(a)), (table,), {}, "unique")
    values = np.moveaxis(parts[0].reshape(len(parts[0]), *rows.shape[1:]), 0, at)
    asked = zip(parts[1:], (return_index, return_inverse, return_counts), strict=True)
    others = [one for one, wanted in asked if wanted]
    return (values, *others) if others else values


def _isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Any:
    if not is_distributed(test_elements):
        return per_element(np.isin)(
            element, test_elements, assume_unique=assume_unique, invert=invert, kind=kind
        )
    x, tests = dist_operand(element), dist_operand(test_elements)
    require(tests.dtype == x.dtype and tests.size and _sorts_alike(tests))
    tests = unique_values(tests)
    places = searchsorted(tests, x, "left")
    nearest = read_elements(tests, np.minimum(places.local, tests.size - 1))
    return x.map(lambda block: (nearest == block) != bool(invert))


@decomposition_of(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    first, second = (operand(a).ravel() if assume_unique else np.unique(operand(a)) for a in (ar1, ar2))
    return first[np.isin(first, second, assume_unique=True, invert=True)]


def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    line = dist_operand(a)
    values = dist_operand(v if isinstance(v, (ndarray, np.ndarray)) else np.asarray(v))
    require(line.ndim == 1 and sorter is None and side in ("left", "right"))
    require(all(x.dtype.char in _SORTED + _COMPLEX for x in (line, values)))
    return searchsorted(line, values, side)


@decomposition_of(np.searchsorted)
def _searchsorted_by_order(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    require(is_array(sorter) and sorter.shape == a.shape and sorter.dtype.kind in "iu")
    return np.searchsorted(a[sorter], v, side)


DISTRIBUTED.update({np.unique: _unique, np.isin: _isin, np.searchsorted: _searchsorted})
