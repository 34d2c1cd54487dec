"""``einsum``, ``convolve`` and ``correlate`` by kernels of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.functions import contraction, sliding

from .function_table import does, numbers, require
from .kernel_calls import Kernels, is_large

__all__: list[str] = []


@does(np.einsum)
def _einsum(k: Kernels, text: Any, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    require(out is None and type(optimize) is bool and isinstance(text, str) and len(operands) > 1)
    arrays = [numbers(k, a, "iufc") for a in operands]
    require(any(map(is_large, arrays)) and all(a.dtype == arrays[0].dtype for a in arrays))
    labels, result = contraction.parse(text, [a.ndim for a in arrays])
    sizes: dict[str, int] = {}
    for axes, a in zip(labels, arrays, strict=True):
        for label, n in zip(axes, a.shape, strict=True):
            require(sizes.setdefault(label, n) == n)  # axes of length 1 may broadcast
    require(result or not optimize)  # then NumPy gives a 0-d array
    wanted = contraction.layout(text, arrays, optimize, result)
    a, axes = arrays[0], labels[0]
    for n in range(1, len(arrays)):
        last = n == len(arrays) - 1
        later = "".join([result, *labels[n + 1 :]])
        left = result if last else "".join(dict.fromkeys(c for c in axes + labels[n] if c in later))
        how = left, sizes, wanted if last else left
        a, axes = contraction.contract(a, axes, arrays[n], labels[n], *how, fused=True), left
    return a


@does(np.convolve)
def _convolve(k: Kernels, a: Any, v: Any, mode: Any = "full") -> Any:
    if np.size(v) > np.size(a):
        a, v = v, a
    return _slid(k, a, v, mode, True)


@does(np.correlate)
def _correlate(k: Kernels, a: Any, v: Any, mode: Any = "valid") -> Any:
    return _slid(k, a, v, mode, False)


def _slid(k: Kernels, a: Any, v: Any, mode: Any, turned: bool) -> Any:
    x, weights = numbers(k, a, "iuf", 1), numbers(k, v, "iuf", 1)
    require((is_large(x) or is_large(weights)) and weights.size <= x.size and type(mode) is str)
    terms = weights.size
    before, behind = sliding.ENDS[mode](terms)
    common = np.result_type(x.dtype, weights.dtype)
    weights = (weights[::-1] if turned else weights).astype(common)
    return k.slid(x.astype(common), weights, before, x.size - terms + 1 + before + behind)
