"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.core.backend import NOT_DISTRIBUTED, backend
from dcarray.core.config import current
from dcarray.core.processes import communicator
from dcarray.recording.scans import accumulate

from .common import is_wrapped, new_array, plain_key
from .reductions import without_nan
from .registry import Unserved, implements

_RUNNING: dict[str, Any] = {"add": np.cumsum, "multiply": np.cumprod}


def _cumulated(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    if not is_wrapped(a) or a.ndim == 0:
        raise Unserved
    if axis is None:
        a = a if a.ndim == 1 else a.ravel()
        axis = 0
    if isinstance(axis, (bool, np.bool)):
        raise Unserved
    several_ranks = out is None and communicator() is not None and a._small is None
    if several_ranks and a.size > current().distribute_above:
        scan = backend().try_call_replicated(
            _RUNNING[name], (a, normalize_axis_index(axis, a.ndim), dtype), {}
        )
        if scan is not NOT_DISTRIBUTED:
            return scan
    result = accumulate(name, a, normalize_axis_index(axis, a.ndim), dtype, out)
    if result is NotImplemented:
        raise Unserved
    return result


def _scan(name: str, nan_value: float | None) -> Callable[..., Any]:
    """Return an implementation of `numpy.cumsum` or `numpy.cumprod`, which may replace NaNs."""

    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if nan_value is not None:
            if not is_wrapped(a) or a._small is not None:
                raise Unserved
            a = without_nan(a, nan_value)[0]
        return _cumulated(name, a, axis, dtype, out)

    return scan


def _cumulative(name: str, identity: int) -> Callable[..., Any]:
    """Return an implementation of `numpy.cumulative_sum` or `numpy.cumulative_prod`."""

    def scan(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
    ) -> Any:
        if not is_wrapped(x) or x.ndim == 0 or (axis is None and x.ndim != 1):
            raise Unserved
        if not include_initial:
            return _cumulated(name, x, axis, dtype, out)
        if out is not None:
            raise Unserved
        axis = normalize_axis_index(0 if axis is None else axis, x.ndim)
        scanned = _cumulated(name, x, axis, dtype, None)
        shape = tuple(n + (k == axis) for k, n in enumerate(scanned.shape))
        result = new_array(shape, scanned.dtype)
        result[plain_key(x.ndim, axis, slice(0, 1))] = identity
        result[plain_key(x.ndim, axis, slice(1, None))] = scanned
        return result

    return scan


for _function, _name, _nan_value in (
    (np.cumsum, "add", None), (np.cumprod, "multiply", None),
    (np.nancumsum, "add", 0), (np.nancumprod, "multiply", 1),
):  # fmt: skip
    implements(_function)(_scan(_name, _nan_value))
implements("cumulative_sum")(_cumulative("add", 0))
implements("cumulative_prod")(_cumulative("multiply", 1))
