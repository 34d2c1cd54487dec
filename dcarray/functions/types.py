"""Questions about dtypes, answered without computing anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import is_wrapped
from .registry import implements


def _dtype(value: Any) -> Any:
    return value.dtype if is_wrapped(value) else value


@implements(np.result_type, views=True)
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that operands promote to."""
    return np.result_type(*map(_dtype, arrays_and_dtypes))


@implements(np.can_cast, views=True)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Does the casting rule let one dtype become another?"""
    return np.can_cast(_dtype(from_), _dtype(to), casting)


@implements(np.common_type, views=True)
def common_type(*arrays: Any) -> Any:
    """The inexact scalar type for all arrays."""
    return np.common_type(*(np.empty(0, a.dtype) if is_wrapped(a) else a for a in arrays))
