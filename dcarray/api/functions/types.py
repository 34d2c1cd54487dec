"""Queries of shapes, dtypes and shared memory, answered without evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.recording.operands import plain_of

from .common import is_wrapped
from .registry import implements


def _dtype(value: Any) -> Any:
    return value.dtype if is_wrapped(value) else value


def _empty(value: Any) -> Any:
    return np.empty(0, value.dtype) if is_wrapped(value) else value


_function: Any
_answer: Any
for _function, _answer in {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: len(a.shape),
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.result_type: lambda *arrays_and_dtypes: np.result_type(*map(_dtype, arrays_and_dtypes)),
    np.can_cast: lambda from_, to, casting="safe": np.can_cast(_dtype(from_), _dtype(to), casting),
    np.common_type: lambda *arrays: np.common_type(*map(_empty, arrays)),
    np.may_share_memory: lambda a, b, /, max_work=0: np.may_share_memory(plain_of(a), plain_of(b), max_work),
    np.shares_memory: lambda a, b, /, max_work=-1: np.shares_memory(plain_of(a), plain_of(b), max_work),
}.items():
    implements(_function, views=True)(_answer)
