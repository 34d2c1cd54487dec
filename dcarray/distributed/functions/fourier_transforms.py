"""Distributed `numpy.fft`: transforms of whole lines, with transpositions in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dcarray.comm.algorithms.along_axis import apply_along_axes
from dcarray.comm.algorithms.fourier import transform_line
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require, required_axis

Transform = Callable[..., Any]


def _along_axes(
    x: DistArray, steps: Sequence[tuple[Any, Transform]], n: Sequence[Any], norm: Any
) -> DistArray:
    """Return the result of transforms along axes in sequence, each with its length."""
    require(x.ndim and not _is_cut_vector(x))
    axes = [required_axis(axis, x.ndim) for axis, _ in steps]
    calls = [
        (axis, partial(function, n=length, axis=axis, norm=norm))
        for axis, (_, function), length in zip(axes, steps, n, strict=True)
    ]
    return apply_along_axes(x, calls)


def _is_cut_vector(x: DistArray) -> bool:
    return x.ndim == 1 and x.layout.is_cut(0)


def _transform(function: Transform) -> Callable[..., Any]:
    def implementation(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        x, kind = dist_operand(a), function.__name__
        require(out is None)
        if not _is_cut_vector(x):
            return _along_axes(x, [(axis, function)], [n], norm)
        require(axis in (0, -1) and x.dtype.char in "?bBhHiIlLqQfdFD" and (n is None or type(n) is int))
        require(kind in ("fft", "ifft", "rfft", "irfft"))
        result = transform_line(x, kind, n, norm)
        require(result is not None)
        return result

    return implementation


def _transforms(
    default: tuple[int, ...] | None, first: Transform, others: Transform, last: Transform | None = None
) -> Callable[..., Any]:
    """Return the implementation of a transform along several axes in NumPy's order.

    That is ``first`` along the last axis, then ``others`` backwards; or ``others`` forwards, then ``last``.
    """

    def implementation(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        along = list(range(np.ndim(a))) if axes is None and s is None else axes
        require(out is None and isinstance(along, (list, tuple)) and along)
        lengths = s
        if s is None:  # those of the array as it is given, also for an axis that occurs twice
            lengths = [np.shape(a)[axis] for axis in along]
            lengths[-1] = lengths[-1] if last is None else 2 * (lengths[-1] - 1)
        require(isinstance(lengths, (list, tuple)) and len(lengths) == len(along))
        require(all(type(n) is int and n >= 1 for n in lengths))
        steps = [(axis, others) for axis in along[:-1]]
        if last is not None:
            return _along_axes(dist_operand(a), [*steps, (along[-1], last)], lengths, norm)
        return _along_axes(dist_operand(a), [(along[-1], first), *steps[::-1]], lengths[::-1], norm)

    return implementation


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    DISTRIBUTED[getattr(np.fft, _name)] = _transform(getattr(np.fft, _name))
_default: tuple[int, ...] | None
for _suffix, _default in (("2", (-2, -1)), ("n", None)):
    for _name, _others in (("fft", np.fft.fft), ("ifft", np.fft.ifft), ("rfft", np.fft.fft)):
        DISTRIBUTED[getattr(np.fft, _name + _suffix)] = _transforms(_default, getattr(np.fft, _name), _others)
    _inverse = getattr(np.fft, "irfft" + _suffix)
    DISTRIBUTED[_inverse] = _transforms(_default, np.fft.ifft, np.fft.ifft, np.fft.irfft)
