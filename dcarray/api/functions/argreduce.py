"""The indices of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.recording.argreduce import argreduce

from .common import NOTHING, axis_of, is_wrapped
from .registry import Unserved, implements


def _placed(name: str, doc: str) -> Callable[..., Any]:
    def body(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
        if not is_wrapped(a) or out is not None or not a.size:
            raise Unserved
        axis = None if axis is None else axis_of(axis, a.ndim)
        result = argreduce(name, a, axis, bool(keepdims is not NOTHING and keepdims))
        if result is None:
            raise Unserved
        return result

    body.__doc__ = doc
    return body


argmax = implements(np.argmax)(_placed("argmax", "The first place of the largest element, or of a NaN."))
argmin = implements(np.argmin)(_placed("argmin", "The first place of the smallest element, or of a NaN."))
