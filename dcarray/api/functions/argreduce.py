"""The indices of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.recording.argreduce import argreduce

from .common import NOTHING, axis_of, is_wrapped
from .registry import Unserved, implements


def _argreduction(name: str) -> Callable[..., Any]:
    """Return an implementation of `numpy.argmax` or `numpy.argmin`."""

    def reduction(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
        if not is_wrapped(a) or out is not None or not a.size:
            raise Unserved
        axis = None if axis is None else axis_of(axis, a.ndim)
        result = argreduce(name, a, axis, bool(keepdims is not NOTHING and keepdims))
        if result is None:
            raise Unserved
        return result

    return reduction


implements(np.argmax)(_argreduction("argmax"))
implements(np.argmin)(_argreduction("argmin"))
