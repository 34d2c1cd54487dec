"""Differences, gradients and integrals along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from dcarray.core.strides import order_of

from .common import NOTHING, expand, is_array, is_wrapped, new_array, new_array_like, operand, plain_key
from .registry import Unserved, implements


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NOTHING, append: Any = NOTHING) -> Any:
    """Return the n-th difference along an axis."""
    if type(n) is not int or n < 1:
        raise Unserved
    a = operand(a)
    if a.ndim == 0:
        raise Unserved
    axis = normalize_axis_index(axis, a.ndim)
    before, after = (None if value is NOTHING else operand(value) for value in (prepend, append))
    if n == 1 and (before is not None or after is not None):
        difference = _with_ends(a, axis, before, after)
        if difference is not None:
            return difference
    parts = []
    for value in (before, a, after):
        if value is None:
            continue
        if value.ndim == 0:
            value = np.broadcast_to(value, a.shape[:axis] + (1,) + a.shape[axis + 1 :])
        parts.append(value)
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    upper = plain_key(a.ndim, axis, slice(1, None))
    lower = plain_key(a.ndim, axis, slice(None, -1))
    op = np.not_equal if a.dtype == np.bool_ else np.subtract
    for _ in range(n):
        a = op(a[upper], a[lower])
    return a


def _with_ends(a: Any, axis: int, before: Any, after: Any) -> Any:
    """Return the differences with one number before or after the elements, without joining arrays; None for
    other arguments."""
    ends = [end for end in (before, after) if end is not None]
    if not is_wrapped(a) or any(end.ndim for end in ends) or a.shape[axis] < 2 or order_of((a,), a.shape):
        return None
    dtype = np.result_type(a.dtype, *[end.dtype for end in ends])
    if dtype.kind not in "iufc" or a.dtype.kind not in "biufc":
        return None
    a = a.astype(dtype, copy=False)
    length = a.shape[axis]
    shape = a.shape[:axis] + (length - 1 + len(ends),) + a.shape[axis + 1 :]
    result = new_array(shape, dtype)
    start = int(before is not None)

    def part(of: Any, first: int | None, last: int | None) -> Any:
        return of[plain_key(of.ndim, axis, slice(first, last))]

    if before is not None:
        np.subtract(part(a, None, 1), before.astype(dtype).item(), out=part(result, None, 1))
    # in between: one small part after the other would be taken for a sweep over parts
    np.subtract(part(a, 1, None), part(a, None, -1), out=part(result, start, start + length - 1))
    if after is not None:
        np.subtract(after.astype(dtype).item(), part(a, -1, None), out=part(result, -1, None))
    return result


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of the elements in C order."""
    if to_end is not None or to_begin is not None:
        raise Unserved
    flat = operand(ary).reshape(-1)
    if flat.dtype.kind not in "iufc":
        raise Unserved
    return np.subtract(flat[1:], flat[:-1])


def _central(f: Any, out: Any, axis: int, step: Any) -> None:
    def at(key: Any) -> tuple[Any, ...]:
        return plain_key(f.ndim, axis, key)

    out[at(slice(1, -1))] = (f[at(slice(2, None))] - f[at(slice(None, -2))]) / (2.0 * step)


def _edges(f: Any, out: Any, axis: int, step: Any, order: int) -> None:
    # slices of one element rather than integers, so that the edges of a vector stay arrays
    def at(k: int) -> tuple[Any, ...]:
        return plain_key(f.ndim, axis, slice(k, k + 1 or None))

    if order == 1:
        out[at(0)] = (f[at(1)] - f[at(0)]) / step
        out[at(-1)] = (f[at(-1)] - f[at(-2)]) / step
    else:
        out[at(0)] = -1.5 / step * f[at(0)] + 2.0 / step * f[at(1)] + -0.5 / step * f[at(2)]
        out[at(-1)] = 0.5 / step * f[at(-3)] + -2.0 / step * f[at(-2)] + 1.5 / step * f[at(-1)]


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Return the gradient by central differences, on grids of constant spacing."""
    f = operand(f)
    if edge_order not in (1, 2) or f.dtype.kind not in "iufc":
        raise Unserved
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    if any(is_array(s) or not isinstance(s, (int, float, np.number)) for s in varargs):
        raise Unserved  # coordinates
    if not varargs:
        steps: tuple[Any, ...] = (1.0,) * len(axes)
    elif len(varargs) == 1:
        steps = varargs * len(axes)
    else:
        steps = varargs
    if len(steps) != len(axes) or not axes or any(f.shape[k] < edge_order + 1 for k in axes):
        raise Unserved
    if f.dtype.kind in "iu":
        f = f.astype(np.float64)
    results = []
    for k, step in zip(axes, steps, strict=True):
        out = new_array_like(f)
        _central(f, out, k, step)
        _edges(f, out, k, step, edge_order)
        results.append(out)
    return results[0] if len(axes) == 1 else tuple(results)


@implements("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Integrate by the trapezoidal rule."""
    y = operand(y)
    if y.ndim == 0 or type(axis) is not int:
        raise Unserved
    axis = normalize_axis_index(axis, y.ndim)
    if x is None:
        d = dx if isinstance(dx, (int, float)) else operand(dx)
    else:
        x = operand(x)
        if x.ndim == 1:
            d = diff(x)
            d = expand(d, *range(1, y.ndim - axis))
        else:
            d = diff(x, axis=axis)
    upper = y[plain_key(y.ndim, axis, slice(1, None))]
    lower = y[plain_key(y.ndim, axis, slice(None, -1))]
    products = d * (upper + lower) / 2.0
    if products.ndim != y.ndim:
        raise Unserved
    total: Any = np.add.reduce
    return total(products, axis)


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """Return the cross product of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = operand(a), operand(b)
    a = np.moveaxis(a, normalize_axis_index(axisa, a.ndim), -1)
    b = np.moveaxis(b, normalize_axis_index(axisb, b.ndim), -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise Unserved
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1]) + (3,)
    axisc = normalize_axis_index(axisc, len(shape))
    dtype = np.promote_types(a.dtype, b.dtype)
    if dtype.kind not in "iufc":
        raise Unserved
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    result = new_array_like(a if type(a) is not np.ndarray else b, dtype, shape, "C")
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        result[..., k] = a[..., i] * b[..., j] - a[..., j] * b[..., i]
    return np.moveaxis(result, -1, axisc)
