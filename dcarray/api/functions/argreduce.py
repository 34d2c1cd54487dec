"""The indices of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.recording.argreduce import argreduce

from .common import NOTHING, is_wrapped
from .registry import Unserved, implements


def _argreduction(name: str) -> Callable[..., Any]:
    """Return an implementation of `numpy.argmax` or `numpy.argmin`."""

    def reduction(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
        if not is_wrapped(a) or out is not None or not a.size:
            raise Unserved
        axis = None if axis is None else normalize_axis_index(axis, a.ndim)
        result = argreduce(name, a, axis, bool(keepdims is not NOTHING and keepdims))
        if result is None:
            raise Unserved
        return result

    return reduction


implements(np.argmax)(_argreduction("argmax"))
implements(np.argmin)(_argreduction("argmin"))
