"""Joining, repeating, rolling and padding: functions that copy elements to new memory."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.api.array import ndarray
from dcarray.core.backend import is_distributed
from dcarray.core.handle import Handle
from dcarray.core.strides import columns_first, order_of_joined
from dcarray.recording.copies import Part, record_copies, record_joined
from dcarray.recording.session import session
from dcarray.tiering import policy

from .common import expand, new_array, new_array_like, operand, plain_key
from .manipulation import at_least, flip
from .registry import NumpyIsFaster, Unserved, implements

_COMPUTED = "biufc"


# ---- joining ----------------------------------------------------------------------------------------
def _parts(arrays: Any) -> list[Any]:
    if not isinstance(arrays, (list, tuple)) or not arrays or len(arrays) > 256:
        raise Unserved
    return [operand(a) for a in arrays]


def _join(parts: list[Any], axis: int, dtype: Any, casting: Any) -> Any:
    first = parts[0]
    if any(p.ndim != first.ndim or p.dtype.kind not in _COMPUTED for p in parts) or not first.ndim:
        raise Unserved
    for k in range(first.ndim):
        if k != axis and any(p.shape[k] != first.shape[k] for p in parts):
            raise Unserved
    kind = np.result_type(*(p.dtype for p in parts)) if dtype is None else np.dtype(dtype)
    if kind.kind not in _COMPUTED or any(not np.can_cast(p.dtype, kind, casting) for p in parts):
        raise Unserved
    total = sum(p.shape[axis] for p in parts)
    shape = first.shape[:axis] + (total,) + first.shape[axis + 1 :]
    result = _ordered(shape, kind, order_of_joined(parts, len(shape)))
    start = 0
    pieces: list[tuple[Any, Any]] = []
    for p in parts:
        stop = start + p.shape[axis]
        if stop > start:
            pieces.append((plain_key(len(shape), axis, slice(start, stop)), p))
        start = stop
    discards = kind.kind != "c" and any(p.dtype.kind == "c" for p in parts)  # of which NumPy warns
    if (
        session().device is not None and result._small is None and not discards
    ):  # else memory is made and copied
        views = [(result[key], p) for key, p in pieces]
        if all(isinstance(view, Handle) for view, _ in views) and record_joined(result, views):
            return result
    for key, p in pieces:
        result[key] = p
    return result


def _ordered(shape: tuple[int, ...], dtype: Any, order: tuple[int, ...] | None) -> Any:
    """Return a new wrapped array with its axes in this order in memory, the outermost first."""
    if order is None:
        return new_array(shape, dtype)
    return new_array(tuple([shape[k] for k in order]), dtype).transpose(np.argsort(order).tolist())


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Join arrays along an axis."""
    if out is not None:
        raise Unserved
    parts = _parts(arrays)
    if axis is None:
        parts, axis = [p.reshape(-1) for p in parts], 0
    return _join(parts, normalize_axis_index(axis, parts[0].ndim), dtype, casting)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Join values to the end of an array."""
    return concatenate([arr, values], axis)


@implements(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Join arrays along a new axis."""
    if out is not None:
        raise Unserved
    parts = _parts(arrays)
    axis = normalize_axis_index(axis, parts[0].ndim + 1)
    if any(p.shape != parts[0].shape for p in parts):
        raise Unserved
    return _join([expand(p, axis) for p in parts], axis, dtype, casting)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Join arrays along the first axis, vectors as rows."""
    return _join([at_least(2, (p,)) for p in _parts(tup)], 0, dtype, casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Join arrays along the second axis, vectors along their only one."""
    parts = [at_least(1, (p,)) for p in _parts(tup)]
    return _join(parts, 0 if parts[0].ndim == 1 else 1, dtype, casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Join arrays along the third axis."""
    return _join([at_least(3, (p,)) for p in _parts(tup)], 2, None, "same_kind")


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Join arrays along the second axis, vectors as columns."""
    return _join([p if p.ndim > 1 else p.reshape(-1, 1) for p in _parts(tup)], 1, None, "same_kind")


def _depth(arrays: Any) -> int:
    """Return the depth of nested lists, which has to be the same everywhere."""
    if type(arrays) is not list:
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise Unserved
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [x for a in arrays for x in _leaves(a)] if type(arrays) is list else [operand(arrays)]


@implements(np.block)
def block(arrays: Any) -> Any:
    """Join nested lists of blocks."""
    depth = _depth(arrays)
    if depth == 0:
        raise Unserved
    ndim = max(depth, *(x.ndim for x in _leaves(arrays)))

    def build(part: Any, level: int) -> Any:
        if level == depth:
            x = operand(part)
            return x[(None,) * (ndim - x.ndim) + (Ellipsis,)]
        return np.concatenate([build(p, level + 1) for p in part], axis=level - depth)

    return build(arrays, 0)


# ---- repeating, rolling, padding --------------------------------------------------------------------
def _stays_small(a: Any, times: int) -> bool:
    """Whether an array is small, and stays small when it is repeated this many times."""
    return a._small is not None and policy.eager(a.size * times)


@implements(np.tile, views=True)
def tile(A: Any, reps: Any) -> Any:
    """Repeat an array as a whole."""
    if type(reps) is int:
        reps = (reps,)
    if type(A) is not ndarray or type(reps) not in (tuple, list) or any(type(r) is not int for r in reps):
        raise Unserved
    if any(r < 0 for r in reps) or A.dtype.kind not in _COMPUTED or A.size == 0 or is_distributed(A):
        raise Unserved
    if _stays_small(A, prod(reps)):
        return A._adopt(np.tile(A._evaluated(), reps))
    d = max(len(reps), A.ndim)
    counts = (1,) * (d - len(reps)) + tuple(reps)
    lengths = (1,) * (d - A.ndim) + A.shape
    result = new_array(tuple(r * n for r, n in zip(counts, lengths, strict=True)), A.dtype)
    if result.size:
        apart = result.reshape([x for pair in zip(counts, lengths, strict=True) for x in pair])
        apart[...] = A.reshape([x for n in lengths for x in (1, n)])
    return result


@implements(np.repeat, views=True)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat each element the same number of times."""
    if type(a) is not ndarray or type(repeats) is not int or a.dtype.kind not in _COMPUTED:
        raise Unserved
    if not 0 <= repeats < 2**63 or is_distributed(a):
        raise Unserved
    if _stays_small(a, repeats):
        return a._adopt(np.repeat(a._evaluated(), repeats, axis))
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = normalize_axis_index(axis, a.ndim)
    shape = a.shape
    result = new_array(shape[:axis] + (shape[axis] * repeats,) + shape[axis + 1 :], a.dtype)
    if result.size:
        apart = result.reshape(shape[: axis + 1] + (repeats,) + shape[axis + 1 :])
        apart[...] = expand(a, axis + 1)
    return result


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Shift elements along axes, from the end back to the start."""
    if type(a) is not ndarray or a.dtype.kind not in _COMPUTED:
        raise Unserved
    if axis is None:
        if not _whole(shift):
            raise Unserved
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    given = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(axes) != len(given) or not all(map(_whole, given)):
        raise Unserved
    moves: dict[int, int] = {}
    for k, s in zip((normalize_axis_index(k, a.ndim) for k in axes), given, strict=True):
        moves[k] = moves.get(k, 0) + int(s)
    shifts = tuple([moves.get(k, 0) % n if n else 0 for k, n in enumerate(a.shape)])
    if policy.eager_call(a.size, (a,), policy.PASS):
        raise NumpyIsFaster
    result = new_array_like(a)
    parts = _roll_pieces(a.shape, shifts)
    if result._small is None and a._small is None and record_copies(result, a, parts):
        return result
    for shape, into, out in parts:
        result[_key(shape, into)] = a[_key(shape, out)]
    return result


def _whole(shift: Any) -> bool:
    return type(shift) is int or isinstance(shift, np.integer)


@lru_cache(1024)
def _roll_pieces(shape: tuple[int, ...], shifts: tuple[int, ...]) -> tuple[Part, ...]:
    """Return pairs of target and source keys of a roll: each axis that moves is cut in two."""
    pieces: list[Part] = [((), (), ())]
    for k, (n, s) in enumerate(zip(shape, shifts, strict=True)):
        cuts = [(n - s, s, 0), (s, 0, n - s)] if s else [(n, 0, 0)]
        pieces = [
            ((*size, count), (*into, (to, 1, k)), (*out, (at, 1, k)))
            for size, into, out in pieces
            for count, to, at in cuts
        ]
    return tuple(pieces)


def _key(shape: tuple[int, ...], maps: Any) -> tuple[slice, ...]:
    return tuple([slice(start, start + n) for n, (start, _, _) in zip(shape, maps, strict=True)])


def _pairs(value: Any, ndim: int) -> list[tuple[Any, Any]]:
    array = np.broadcast_to(np.asarray(value), (ndim, 2))
    return [(array[k, 0], array[k, 1]) for k in range(ndim)]


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Add a border."""
    if type(array) is not ndarray or mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        raise Unserved
    if set(kwargs) - ({"constant_values"} if mode == "constant" else set()):
        raise Unserved
    given = pad_width if isinstance(pad_width, dict) else np.asarray(pad_width)
    if isinstance(given, dict) or given.dtype.kind != "i" or array.dtype.kind not in _COMPUTED:
        raise Unserved
    widths = [(int(lo), int(hi)) for lo, hi in _pairs(given, array.ndim)]
    values = np.asarray(kwargs.get("constant_values", 0))
    if values.dtype == object or not array.ndim:
        raise Unserved
    if values.dtype.kind in "biuf" or values.dtype.kind == array.dtype.kind:
        values = _converted(values, array.dtype)
    short = 1 if mode == "reflect" else 0
    for (lo, hi), n in zip(widths, array.shape, strict=True):
        if min(lo, hi) < 0 or (mode != "constant" and n == 0):
            raise Unserved
        if mode in ("wrap", "reflect", "symmetric") and max(lo, hi) > n - short:
            raise Unserved
    shape = tuple(n + lo + hi for n, (lo, hi) in zip(array.shape, widths, strict=True))
    result = new_array(shape, array.dtype, "F" if columns_first(array) else "C")
    inside = tuple(slice(lo, lo + n) for n, (lo, _) in zip(array.shape, widths, strict=True))
    result[inside] = array
    for k, value in enumerate(_pairs(values, array.ndim)):
        # the axes up to k in full, the later ones still without their border
        part = result[(slice(None),) * (k + 1) + inside[k + 1 :]]
        _border(part, k, array.shape[k], *widths[k], mode, value)
    return result


def _converted(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return numbers as elements of another dtype.

    Raises
    ------
    Unserved
        If NumPy warns of the conversion, or refuses it.
    """
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
        exact = np.trunc(values) == cast if dtype.kind in "iu" else np.isfinite(cast) | ~np.isfinite(values)
    if not exact.all():
        raise Unserved
    return cast


def _border(x: Any, axis: int, n: int, lo: int, hi: int, mode: str, values: tuple[Any, Any]) -> None:
    """Fill ``lo`` elements before and ``hi`` after the ``n`` elements along ``axis``."""

    def at(start: int, stop: int, step: int = 1) -> Any:
        return x[plain_key(x.ndim, axis, slice(start, stop))][
            plain_key(x.ndim, axis, slice(None, None, step))
        ]

    end = lo + n
    if mode == "constant":
        before, after = values
    elif mode == "edge":
        before, after = at(lo, lo + 1), at(end - 1, end)
    elif mode == "wrap":
        before, after = at(n, end), at(lo, lo + hi)
    else:
        skip = 1 if mode == "reflect" else 0
        before = flip(at(lo + skip, 2 * lo + skip), axis)
        after = flip(at(end - skip - hi, end - skip), axis)
    if lo:
        x[plain_key(x.ndim, axis, slice(0, lo))] = before
    if hi:
        x[plain_key(x.ndim, axis, slice(end, None))] = after
