"""Elements or rows by their indices: NumPy's selection, of which several threads do a part each."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import wrap
from dcarray.core.processes import communicator
from dcarray.execution import index_parts

from .common import is_array, plain
from .registry import Unserved, implements


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """Return the elements of a vector, or the rows of an array, at given indices."""
    if out is not None or mode != "raise" or not is_array(a) or not is_array(indices):
        raise Unserved
    along_rows = type(axis) is int and axis == 0 if a.ndim > 1 else axis is None or axis == 0
    if not along_rows or communicator() is not None or not np.can_cast(indices.dtype, np.intp):
        raise Unserved
    found = index_parts.take(plain(a), plain(indices))  # without an axis, the same
    if found is None:
        raise Unserved
    return wrap(found)
