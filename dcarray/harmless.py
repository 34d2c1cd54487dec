"""Recordings over ranks that may overwrite in place, since what they compute with is small.

A run that may have to be made again, to find who raised a floating-point exception, leaves what it overwrites
as it was (`dcarray.comm.unharmed`): it writes to other memory, which takes up to three times as long as to
write where one has just read.  Inputs that are small enough raise none (`ir.magnitudes`), and to look at them
takes less, where most of them is what is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .agreement import united
from .fpstate import ODD
from .ir import magnitudes
from .ir.effects import writes
from .ir.nodes import Compute, Load
from .ir.text import dtype_name, parse
from .ir.windows import loads, same
from .parts import NDArray
from .raising import UNDER
from .ranks import parted

if TYPE_CHECKING:
    from .comm.protocol import Communicator
    from .ir.nodes import Region

__all__ = ["limit", "within"]

FEWEST = 8 << 20  # bytes that a rank overwrites
_FEW = 4096  # elements that NumPy looks at


def limit(region: Region, again: Collection[str], ranks: int, mask: int) -> float:
    """The magnitude of the inputs up to which a run may overwrite in place.

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
    float
        0.0 if there is none, or if to look at the inputs takes longer than it saves.
    """
    if mask & (UNDER | ODD):  # what is small may raise the one, and with the other all may be minded
        return 0.0
    given = [array for array in region.arrays if array.role in ("in", "inout")]
    if any(type(extent) is not int for array in given for extent in array.shape):
        return 0.0
    sizes = {array.name: math.prod(array.shape) * array.dtype.itemsize for array in given}
    saved = sum(sizes[name] for name in again if _updated(region, name))
    if saved < FEWEST * ranks or 2 * sum(sizes.values()) > 3 * saved:
        return 0.0
    return magnitudes.harmless(region)


def _updated(region: Region, name: str) -> bool:
    """Is each new element of an array made of the one that it replaces?"""
    first = next(stmt for stmt in region.body if any(window.array == name for window in writes(stmt)))
    if not isinstance(first, Compute) or first.combine is not None or first.scan is not None:
        return False
    return any(type(load) is Load and same(load.window, first.target) for load in loads(first.body))


def within(
    given: Mapping[str, NDArray],
    most: float,
    comm: Communicator,
    compute: Callable[[Region, Mapping[str, Any]], int],
) -> bool:
    """Is no element on any rank of larger magnitude, and none a NaN?  Each rank asks this, about its own."""
    found = True
    for a in given.values():
        if a.dtype.kind == "f" and a.size:
            largest = np.zeros((), a.dtype)
            if a.size <= _FEW or not a.flags.c_contiguous:
                with np.errstate(all="ignore"):
                    np.maximum(-a.min(), a.max(), out=largest)
            else:
                compute(_largest(a.dtype, a.size), {"x": a.reshape(-1), "most": largest})
            found &= bool(largest <= most)
    with parted():
        return not united(comm, 0 if found else 1)


@cache
def _largest(dtype: np.dtype[Any], size: int) -> Region:
    """The largest magnitude of so many numbers."""
    t = dtype_name(dtype)
    fold = f"most[] maximum= absolute(x[i]) init {'0.0' if t == 'f64' else f'0.0:{t}'} for i<{size}"
    return parse(f"region() {{ in x: {t}[{size}];  out most: {t}[]\n{fold}\n}}")
