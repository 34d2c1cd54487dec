"""Recordings over ranks that may overwrite in place, since what they compute with is small.

A run that may have to be made again, to find who raised a floating-point exception, leaves what it overwrites
as it was (`comm.planning.passes.copy_on_write`): it writes to other memory, which takes up to three times as
long as to write where one has just read.  Inputs that are small enough raise none (`ir.magnitudes`), and
to look at them takes less, where most of them is what is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.fp_attribution import MINDFUL
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

FEWEST = 8 << 20  # bytes that a rank overwrites


def limit(region: Region, again: Collection[str], ranks: int, mask: int) -> Limits | None:
    """The limits of the inputs within which a run may overwrite in place.

    Parameters
    ----------
    region : Region
    again : collection of str
        What it overwrites that would have to be there to run it again.
    ranks : int
    mask : int
        The exceptions that are not ignored, as FPE bits.

    Returns
    -------
    Limits or None
        None if there are none, or if to look at the inputs takes longer than it saves.
    """
    if mask & MINDFUL:
        return None
    given = [array for array in region.arrays if array.role in ("in", "inout")]
    if any(type(extent) is not int for array in given for extent in array.shape):
        return None
    sizes = {array.name: math.prod(array.shape) * array.dtype.itemsize for array in given}
    saved = sum(sizes[name] for name in again if _updated(region, name))
    if saved < FEWEST * ranks or 2 * sum(sizes.values()) > 3 * saved:
        return None
    return value_ranges.harmless(region)


def _updated(region: Region, name: str) -> bool:
    """Is each new element of an array made of the one that it replaces?"""
    written = (stmt for stmt in region.body if any(window.array == name for window in writes(stmt)))
    first = next(written, None)  # None: each element was given what it had, and is left alone
    if not isinstance(first, Compute) or first.combine is not None or first.scan is not None:
        return False
    return any(type(load) is Load and same(load.window, first.target) for load in loads(first.body))


def within(
    given: Mapping[str, NDArray],
    limits: Limits,
    comm: Communicator,
    compute: Callable[[Region, Mapping[str, Any]], int],
) -> bool:
    """Is nothing on any rank beyond the limits?  Each rank asks this, about its own."""
    seen = [_parts(a) for a in given.values() if a.dtype.kind in "fc" and a.size]
    found = np.zeros(len(seen))
    arrays = {f"x{k}": a for k, a in enumerate(seen)}
    region = _largest(tuple([(a.dtype, a.shape) for a in arrays.values()]))
    compute(region, {**arrays, **{f"most{k}": found[k : k + 1].reshape(()) for k in range(len(seen))}})
    fits = input_range_check.within(found.tolist(), [not a.ndim for a in seen], *limits)
    with communicating():
        return not combine_flags(comm, 0 if fits else 1)


def _parts(array: NDArray) -> NDArray:
    """The real numbers in an array's memory, one after the other."""
    flat = array.ravel() if array.ndim or array.dtype.kind == "c" else array
    return flat.view(flat.real.dtype)


@cache
def _largest(arrays: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]) -> Region:
    """What finds the largest magnitudes of arrays, the same region each time."""
    return value_ranges.largest([Array("", *array) for array in arrays])
