"""Views: axes moved, added, dropped or reversed, and parts along an axis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from dcarray.api.array import ndarray

from .common import expand, is_array, operand, plain_key
from .registry import Unserved, implements


# ---- views ------------------------------------------------------------------------------------------
@implements(np.size, views=True)
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, or the length of an axis."""
    if axis is None:
        return a.size  # type: ignore[no-any-return]
    return a.shape[axis]  # type: ignore[no-any-return]


_function: Any
_view: Any
for _function, _view in {
    np.real: lambda val: val.real,
    np.imag: lambda val: val.imag,
    np.swapaxes: lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.ravel: lambda a, order="C": a.ravel(order),
}.items():
    implements(_function, views=True)(_view)


def _matrix_transpose(x: Any, /) -> Any:
    if not is_array(x) or x.ndim < 2:
        raise Unserved
    return x.swapaxes(-1, -2)


implements(np.matrix_transpose, views=True)(_matrix_transpose)
implements(np.linalg.matrix_transpose, views=True)(_matrix_transpose)


@implements(np.transpose, views=True)
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute the axes."""
    return a.transpose(axes)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places."""
    old = normalize_axis_tuple(source, a.ndim)
    new = normalize_axis_tuple(destination, a.ndim)
    if len(old) != len(new):
        raise Unserved
    order = [k for k in range(a.ndim) if k not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return a.transpose(order)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """Roll an axis backwards."""
    n = a.ndim
    axis = normalize_axis_index(axis, n)
    if type(start) is not int or not -n <= start <= n:
        raise Unserved
    start = start + n if start < 0 else start
    start -= axis < start
    if axis == start:
        return a[...]
    order = [k for k in range(n) if k != axis]
    order.insert(start, axis)
    return a.transpose(order)


@implements(np.expand_dims, views=True)
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert axes of length 1."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = normalize_axis_tuple(axes, a.ndim + len(axes))
    return expand(a, *sorted(places))


@implements(np.reshape, views=True)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    """Return the elements in another shape."""
    if copy is not None or type(a) is not ndarray:
        raise Unserved
    return a.reshape(shape, order=order)


def at_least(ndim: int, arrays: tuple[Any, ...]) -> Any:
    """Return views with at least this many axes; of one array the view, of several a tuple."""
    results = []
    for a in arrays:
        a = operand(a)
        if ndim == 3 and a.ndim == 2:
            a = a[:, :, None]
        elif ndim == 3 and a.ndim == 1:
            a = a[None, :, None]
        elif a.ndim < ndim:
            a = a[(None,) * (ndim - a.ndim) + (Ellipsis,)]
        results.append(a)
    return results[0] if len(results) == 1 else tuple(results)


def _at_least(ndim: int) -> Callable[..., Any]:
    """Return an implementation of `numpy.atleast_1d`, `atleast_2d` or `atleast_3d`."""

    def views(*arrays: Any) -> Any:
        if any(type(a) is not ndarray for a in arrays):
            raise Unserved
        return at_least(ndim, arrays)

    return views


for _ndim, _function in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    implements(_function)(_at_least(_ndim))


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """Reverse the order along axes."""
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if k in axes else None) for k in range(m.ndim))]


@implements(np.flipud, views=True)
def flipud(m: Any) -> Any:
    """Reverse the order along the first axis."""
    return m[::-1]


@implements(np.fliplr, views=True)
def fliplr(m: Any) -> Any:
    """Reverse the order along the second axis."""
    return m[:, ::-1]


@implements(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by quarter turns."""
    if len(axes) != 2 or type(k) is not int:
        raise Unserved
    first, second = normalize_axis_index(axes[0], m.ndim), normalize_axis_index(axes[1], m.ndim)
    if first == second:
        raise Unserved
    turned = m.swapaxes(first, second) if k % 2 else m
    if k % 4 == 0:
        return m[...]
    if k % 4 == 1:
        return flip(m, second).swapaxes(first, second)
    if k % 4 == 2:
        return flip(m, (first, second))
    return flip(turned, second)


@implements("unstack")
def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """Return views of the slices along an axis."""
    axis = normalize_axis_index(axis, x.ndim)
    return tuple(x[plain_key(x.ndim, axis, k)] for k in range(x.shape[axis])) if x.ndim > 1 else tuple(x)


# ---- splitting --------------------------------------------------------------------------------------
def _split(a: Any, sections: Any, axis: Any, equal: bool) -> list[Any]:
    if type(a) is not ndarray:
        raise Unserved
    axis = normalize_axis_index(axis, a.ndim)
    n = a.shape[axis]
    if type(sections) is int:
        if sections <= 0 or (equal and n % sections):
            raise Unserved
        each, more = divmod(n, sections)
        ends = [k * each + min(k, more) for k in range(sections + 1)]
    else:
        ends = [0, *(int(k.__index__()) for k in sections), n]
    return [a[plain_key(a.ndim, axis, slice(lo, hi))] for lo, hi in pairwise(ends)]


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Return views of parts along an axis, of nearly equal length."""
    return _split(ary, indices_or_sections, axis, False)


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Return views of parts along an axis."""
    return _split(ary, indices_or_sections, axis, True)


def _split_along(axis: int) -> Callable[..., Any]:
    """Return an implementation of `numpy.vsplit`, `hsplit` or `dsplit`."""

    def views(ary: Any, indices_or_sections: Any) -> list[Any]:
        if axis == 0 and ary.ndim < 2:
            raise Unserved
        if axis == 1 == ary.ndim:  # a vector has no second axis
            return _split(ary, indices_or_sections, 0, True)
        return _split(ary, indices_or_sections, axis, True)

    return views


for _axis, _function in enumerate((np.vsplit, np.hsplit, np.dsplit)):
    implements(_function)(_split_along(_axis))
