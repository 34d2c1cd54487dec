"""The input range check of distributed recordings: small inputs allow writes in place.

A run that may be repeated, to find the statement that raised a floating-point exception, keeps the arrays
that it overwrites (`comm.planning.passes.copy_on_write`): it writes to other memory, which takes up to three
times as long. Inputs of small magnitude raise no exception (`ir.analysis.value_ranges`), and checking them
costs less where most of the inputs are overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.fp_bits import MINDFUL
from dcarray.core.processes import communicating
from dcarray.core.shard import NDArray
from dcarray.ir.analysis import value_ranges
from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Array, Compute, Load
from dcarray.ir.windows import loads, same
from dcarray.lowering.program import input_range_check

from .consistency import combine_flags

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator
    from dcarray.ir.analysis.value_ranges import Limits
    from dcarray.ir.nodes import Region

__all__ = ["limit", "within"]

FEWEST = 8 << 20  # bytes that a rank overwrites, for a check to pay


def limit(region: Region, repeated: Collection[str], ranks: int, mask: int) -> Limits | None:
    """Return the limits of the inputs' magnitudes within which a run may write in place.

    Parameters
    ----------
    region : Region
    repeated : collection of str
        The overwritten arrays that a repetition needs.
    ranks : int
    mask : int
        The floating-point exceptions that are not ignored, as FPE bits.

    Returns
    -------
    Limits or None
        None if no limits suffice, or if the check takes longer than it saves.
    """
    if mask & MINDFUL:
        return None
    inputs = [array for array in region.arrays if array.role in ("in", "inout")]
    if any(type(extent) is not int for array in inputs for extent in array.shape):
        return None
    sizes = {array.name: math.prod(array.shape) * array.dtype.itemsize for array in inputs}
    saved = sum(sizes[name] for name in repeated if _is_updated_in_place(region, name))
    if saved < FEWEST * ranks or 2 * sum(sizes.values()) > 3 * saved:
        return None
    return value_ranges.safe_limits(region)


def _is_updated_in_place(region: Region, name: str) -> bool:
    """Whether each new element of an array is computed from the one that it replaces."""
    written = (stmt for stmt in region.body if any(window.array == name for window in writes(stmt)))
    first = next(written, None)  # None: the array keeps its elements
    if not isinstance(first, Compute) or first.combine is not None or first.scan is not None:
        return False
    return any(type(load) is Load and same(load.window, first.target) for load in loads(first.body))


def within(
    inputs: Mapping[str, NDArray],
    limits: Limits,
    comm: Communicator,
    compute: Callable[[Region, Mapping[str, Any]], int],
) -> bool:
    """Whether no rank's inputs exceed the limits.  Collective."""
    vectors = [_real_vector(a) for a in inputs.values() if a.dtype.kind in "fc" and a.size]
    most = np.zeros(len(vectors))
    arrays = {f"x{k}": a for k, a in enumerate(vectors)}
    region = _magnitude_region(tuple([(a.dtype, a.shape) for a in arrays.values()]))
    compute(region, {**arrays, **{f"most{k}": most[k : k + 1].reshape(()) for k in range(len(vectors))}})
    fits = input_range_check.within(most.tolist(), [not a.ndim for a in vectors], *limits)
    with communicating():
        return not combine_flags(comm, 0 if fits else 1)


def _real_vector(array: NDArray) -> NDArray:
    """Return the elements of an array as a vector of real numbers."""
    flat = array.ravel() if array.ndim or array.dtype.kind == "c" else array
    return flat.view(flat.real.dtype)


@cache
def _magnitude_region(arrays: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]) -> Region:
    """Return the region that finds the largest magnitudes of arrays of these dtypes and shapes."""
    return value_ranges.magnitude_region([Array("", *array) for array in arrays])
