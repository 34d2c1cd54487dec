"""NumPy's own routines for the lines along one axis, on all cores: sorts, quantiles and Fourier transforms.

They release the interpreter's lock, so several threads can each compute some of the lines.  No line is
divided, so that results have NumPy's bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dcarray.api.array import wrap
from dcarray.core import parts
from dcarray.core.backend import is_distributed
from dcarray.recording.session import session

from .common import is_wrapped, plain
from .registry import Unserved, implements

_STEP = 1e-9  # the least seconds for an element in each halving of a line
_NORMS = (None, "backward", "ortho", "forward")

Work = Callable[[Any, Any], object]


# ---- sorts -------------------------------------------------------------------------------------------
@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Return the elements of each line in ascending order."""

    def work(part: Any, result: Any) -> None:
        result[...] = part
        result.sort(axis, kind, stable=stable)

    return _sorted(a, axis, order, work)


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Return the indices that sort each line."""

    def work(part: Any, result: Any) -> None:
        result[...] = part.argsort(axis, kind, stable=stable)

    return _sorted(a, axis, order, work, np.intp)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """Return the elements of each line, partitioned at some positions of the sorted line."""
    places = plain(kth)

    def work(part: Any, result: Any) -> None:
        result[...] = part
        result.partition(places, axis, kind)

    return _sorted(a, axis, order, work)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """Return the indices that partition each line."""
    places = plain(kth)

    def work(part: Any, result: Any) -> None:
        result[...] = part.argpartition(places, axis, kind)

    return _sorted(a, axis, order, work, np.intp)


def _sorted(a: Any, axis: Any, order: Any, work: Work, dtype: Any = None) -> Any:
    if order is not None or not _worth_threads(a) or a.dtype.kind not in "biufc":
        raise Unserved
    return _in_parts(a, axis, None, np.dtype(dtype or a.dtype), work)


# ---- quantiles ---------------------------------------------------------------------------------------
@implements(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    """Return the median of each line."""
    if out is not None or overwrite_input:
        raise Unserved
    return _quantile(a, axis, keepdims, partial(np.median, axis=axis, keepdims=True))


def _quantiles(function: Any) -> None:
    """Register a function for one quantile of each line."""

    @implements(function)
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: Any = "linear",
        keepdims: Any = False,
        **others: Any,  # weights, and arguments that NumPy has deprecated
    ) -> Any:
        if out is not None or overwrite_input or others or type(q) not in (int, float):
            raise Unserved
        return _quantile(a, axis, keepdims, partial(function, q=q, axis=axis, method=method, keepdims=True))

    quantile.__doc__ = f"See `numpy.{function.__name__}`."


for _function in (np.quantile, np.percentile):
    _quantiles(_function)


def _quantile(a: Any, axis: Any, keepdims: Any, function: Callable[[Any], Any]) -> Any:
    if not _worth_threads(a) or a.dtype.char not in "bhilBHILefd" or type(keepdims) is not bool:
        raise Unserved

    def work(part: Any, result: Any) -> None:
        result[...] = function(part)

    at = _axis(a, axis)
    found = _in_parts(a, at, 1, function(np.zeros((1,) * a.ndim, a.dtype)).dtype, work)
    return found if keepdims else np.squeeze(found, at)


# ---- Fourier transforms ------------------------------------------------------------------------------
def _transform(function: Any, real: bool) -> None:
    """Register a transform along one axis, perhaps of real numbers only."""

    @implements(function)
    def transform(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        if n is not None or out is not None or not _transformable(a, real, norm):
            raise Unserved
        return _transformed(function, a, axis, norm)

    transform.__doc__ = f"See `numpy.fft.{function.__name__}`."


def _transforms(function: Any, steps: Any, real: bool, usual: tuple[int, ...] | None) -> None:
    """Register a transform along several axes, one after the other: ``steps`` gives the transforms and their
    axes, in order."""

    @implements(function)
    def transform(a: Any, s: Any = None, axes: Any = usual, norm: Any = None, out: Any = None) -> Any:
        if s is not None or out is not None or not _transformable(a, real, norm):
            raise Unserved
        axes = range(a.ndim) if axes is None else axes
        if type(axes) not in (range, tuple, list) or not axes:
            raise Unserved
        for one, k in steps([_axis(a, k) for k in axes]):
            a = _transformed(one, a, k, norm)
        return a

    transform.__doc__ = f"See `numpy.fft.{function.__name__}`."


def _backwards(one: Any, axes: list[int]) -> list[tuple[Any, int]]:
    return [(one, k) for k in reversed(axes)]


def _of_real(axes: list[int]) -> list[tuple[Any, int]]:
    *others, last = _distinct(axes)
    return [(fourier.rfft, last), *_backwards(fourier.fft, others)]


def _to_real(axes: list[int]) -> list[tuple[Any, int]]:
    *others, last = _distinct(axes)
    return [*[(fourier.ifft, k) for k in others], (fourier.irfft, last)]


def _distinct(axes: list[int]) -> list[int]:
    """Return the axes if no two are the same, or else refuse: a transform changes the extent of an axis."""
    if len(set(axes)) < len(axes):
        raise Unserved
    return axes


def _transformable(a: Any, real: bool, norm: Any) -> bool:
    return _worth_threads(a) and a.dtype.char in ("fd" if real else "fdFD") and norm in _NORMS


def _transformed(function: Any, a: Any, axis: Any, norm: Any) -> Any:
    at = _axis(a, axis)
    sample = function(np.zeros((1,) * at + (a.shape[at],) + (1,) * (a.ndim - at - 1), a.dtype), axis=at)

    def work(part: Any, result: Any) -> None:
        function(part, axis=at, norm=norm, out=result)

    return _in_parts(a, at, sample.shape[at], sample.dtype, work)


fourier: Any = np.fft  # NumPy's stubs know these with plain arrays only

for _name in ("fft", "ifft", "rfft", "irfft"):
    _transform(getattr(fourier, _name), _name == "rfft")
for _end, _axes in (("2", (-2, -1)), ("n", None)):
    _transforms(getattr(fourier, f"fft{_end}"), partial(_backwards, fourier.fft), False, _axes)
    _transforms(getattr(fourier, f"ifft{_end}"), partial(_backwards, fourier.ifft), False, _axes)
    _transforms(getattr(fourier, f"rfft{_end}"), _of_real, True, _axes)
    _transforms(getattr(fourier, f"irfft{_end}"), _to_real, False, _axes)


# ---- in parts ---------------------------------------------------------------------------------------
def _worth_threads(a: Any) -> bool:
    """Whether this is a large wrapped array with lines for several threads."""
    return is_wrapped(a) and a.ndim > 1 and a.size > 0 and not is_distributed(a)


def _axis(a: Any, axis: Any) -> int:
    if type(axis) is not int or not -a.ndim <= axis < a.ndim:
        raise Unserved
    return int(axis % a.ndim)


def _in_parts(a: Any, axis: Any, extent: int | None, dtype: Any, work: Work) -> Any:
    """Return a new array, perhaps with another length of lines, of which each thread computes a part."""
    at = _axis(a, axis)
    across = max((k for k in range(a.ndim) if k != at), key=lambda k: (a.shape[k], -k))
    seconds = a.size * math.log2(a.shape[at] + 1) * _STEP
    number = parts.number_of_parts(seconds, a.shape[across])
    if number < 2:
        raise Unserved
    session().release_held()
    elements = plain(a)
    shape = elements.shape if extent is None else (*a.shape[:at], extent, *a.shape[at + 1 :])
    result = (
        np.empty(shape, dtype) if elements.flags.c_contiguous else np.empty_like(elements, dtype, shape=shape)
    )
    pieces = [(slice(None),) * across + (lines,) for lines in parts.cut(a.shape[across], number)]
    if not parts.run([partial(work, elements[key], result[key]) for key in pieces]):
        raise Unserved  # NumPy's own call raises its error
    return wrap(result)
