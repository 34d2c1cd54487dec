"""``median``, ``quantile`` and ``percentile``, from elements that kernels of a device have sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function_table import does, host, require, there
from .functions import in_rows
from .kernel_calls import Kernels, row

__all__: list[str] = []


def _in_order(k: Kernels, a: Any, axis: Any) -> Any:
    """Return an array sorted along an axis, which is moved to the end."""
    require(axis is None or type(axis) is int)
    axis = -1 if axis is None else axis
    return np.moveaxis(in_rows(k, a, axis, lambda keys, places, length: keys), axis, -1)


@does(np.median)
def _median(
    k: Kernels, a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    keepdims: Any = False,
) -> Any:  # fmt: skip
    x = there(k, a, "iuf")
    require(out is None and not overwrite_input and type(keepdims) is bool)
    keys = _in_order(k, row(x) if axis is None else x, axis)
    length = keys.shape[-1]
    places = np.array([(length - 1) // 2, length // 2, length - 1])
    if keys.ndim == 1:
        *few, last = host(k.taken(keys, places, 0))
        median = np.median(np.array(few if last == last else [last], x.dtype))
        return k.small(np.full((1,) * x.ndim, median)) if keepdims else median
    below, above, last = (keys[..., n] for n in places)
    if x.dtype.kind in "iu":
        below, above = below.astype(np.float64), above.astype(np.float64)
    median = below if length % 2 else (below + above) / 2
    median = np.where(last == last, median, last) if x.dtype.kind == "f" else median
    return np.expand_dims(median, axis) if keepdims else median


@does(np.quantile)
def _quantile(
    k: Kernels, a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
) -> Any:  # fmt: skip
    require(out is None and not keepdims and not overwrite_input)
    require(method == "linear" and weights is None and interpolation is None)
    x, q = there(k, a, "f"), host(q)
    require(x.dtype == q.dtype == np.float64 and q.ndim < 2 and q.size and q.min() >= 0 and q.max() <= 1)
    keys = _in_order(k, row(x) if axis is None else x, axis)
    last = keys.shape[-1] - 1
    at = last * q
    low = np.floor(at)
    places = np.clip(np.stack([low, low + 1, np.full_like(low, last)]), 0, last).astype(np.int64)
    chosen = k.taken(keys, row(places), keys.ndim - 1)
    chosen = host(chosen) if keys.ndim == 1 else np.moveaxis(chosen, -1, 0).copy()
    below, above, ends = chosen.reshape(*places.shape, *keys.shape[:-1])
    part = (at - low).reshape(q.shape + (1,) * (keys.ndim - 1))
    step = above - below
    quantiles = np.where(part >= 0.5, above - step * (1 - part), below + step * part)
    quantiles = np.where(ends == ends, quantiles, ends)
    if keys.ndim > 1:
        return quantiles
    return k.small(quantiles) if q.ndim else quantiles[()]


@does(np.percentile)
def _percentile(k: Kernels, a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return _quantile(k, a, host(q) / 100, *args, **kwargs)
