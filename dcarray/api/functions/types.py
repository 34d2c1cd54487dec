"""Queries of dtypes and of shared memory, answered without evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.recording.operands import plain_of

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
    """Whether the casting rule allows the conversion of one dtype to another."""
    return np.can_cast(_dtype(from_), _dtype(to), casting)


@implements(np.common_type, views=True)
def common_type(*arrays: Any) -> Any:
    """The inexact scalar type for all arrays."""
    return np.common_type(*(np.empty(0, a.dtype) if is_wrapped(a) else a for a in arrays))


@implements(np.may_share_memory, views=True)
def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Whether two arrays might share memory, by their bounds."""
    return np.may_share_memory(plain_of(a), plain_of(b), max_work)


@implements(np.shares_memory, views=True)
def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    """Whether two arrays share memory."""
    return np.shares_memory(plain_of(a), plain_of(b), max_work)
