"""Functions that create arrays: from a shape, like another array, or from other objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from dcarray.api.array import evaluate, ndarray, unwrap, wrap
from dcarray.core.backend import is_distributed
from dcarray.core.config import current
from dcarray.core.device_backend import device_backend
from dcarray.core.device_names import resolve
from dcarray.core.devices import name_of
from dcarray.core.handle import Handle
from dcarray.core.processes import communicator
from dcarray.recording.session import session
from dcarray.tiering import policy

from . import fallback
from .common import new_array, new_array_like
from .registry import IMPLEMENTATIONS, Unserved, implements

_FILLED = "biufc"
# Bytes from which on zeros are left to the system until they are touched: they may exceed the memory, and
# filling them costs more than fusion saves.
_UNTOUCHED = 1 << 28
# Elements of arrays that are made eagerly: pending recordings run first, since they need memory before.
_LEAST_EAGER = 1 << 20
_ALIKE = "?bBhHiIlLqQefdFDO"  # dtypes with which NumPy converts sequences of wrapped arrays like plain ones


def _numpy(function: Any, *args: Any, **kwargs: Any) -> Any:
    return fallback.call_numpy(function, args, kwargs)


def _size(shape: Any) -> int:
    """Return the number of elements of a shape of Python integers; -1 for anything else."""
    if type(shape) is int:
        return shape
    if type(shape) is not tuple and type(shape) is not list:
        return -1
    size = 1
    for n in shape:
        if type(n) is not int or n < 0:
            return -1
        size *= n
    return size


def _shape(shape: Any) -> tuple[int, ...]:
    """Return a shape of Python integers with many elements; `Unserved` for anything else."""
    if policy.eager(_size(shape)):
        raise Unserved
    return (shape,) if type(shape) is int else tuple(shape)


def _filled(shape: Any, dtype: Any, order: Any, value: Any) -> Any:
    kind = np.dtype(dtype)
    if kind.kind not in _FILLED or order not in ("C", "F"):
        raise Unserved
    result = new_array(_shape(shape), kind, order)
    if value is not None:
        result[...] = _scalar(value, kind)
    return result


def _scalar(value: Any, kind: np.dtype[Any]) -> Any:
    """Return the fill value as a scalar of the dtype."""
    one = np.empty((), kind)
    np.copyto(one, value, casting="unsafe")
    return one[()]


def _creates(body: Callable[..., Any], converts: bool = False) -> Callable[..., Any]:
    """Register a creation function.  With ``like=`` an array of another library, that library's function is
    called.  The result is on ``device=``, else (if it ``converts`` an array) on that array's device, else on
    the option's."""
    original = getattr(np, body.__name__)

    @wraps(body)
    def create(*args: Any, **kwargs: Any) -> Any:
        like = kwargs.pop("like", None)
        if like is not None and type(like) is not ndarray and type(like) is not np.ndarray:
            return original(*args, like=like, **kwargs)
        device = kwargs.pop("device", None)
        name = current().device if device is None else resolve(device)
        there = args[0]._device if converts and args and isinstance(args[0], Handle) else None
        if device is None and there is not None:
            name = name_of(there)
        if (name != "cpu" or there is not None) and session().device is None:
            make = device_backend().converted if converts else device_backend().created
            return make(name, body, args, kwargs)
        return body(*args, **kwargs)

    IMPLEMENTATIONS[original] = create
    return create


def _converts(body: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that makes an array of its first argument."""
    return _creates(body, converts=True)


def _new_array(function: Any, value: Any, shape: Any, dtype: Any, order: Any) -> Any:
    """Return a new array, as NumPy's ``function`` makes it of a shape."""
    if _size(shape) > 0 and policy.eager(_size(shape)):
        return wrap(function(shape, dtype, order))
    try:
        return _filled(shape, dtype, order, value)
    except Unserved:
        return _numpy(function, shape, dtype, order)


@_creates
def empty(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of uninitialised memory; see `numpy.empty`."""
    return _new_array(np.empty, None, shape, dtype, order)


@_creates
def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of zeros; see `numpy.zeros`."""
    large = _size(shape) * np.dtype(dtype).itemsize >= _UNTOUCHED
    if large and communicator() is None and session().device is None:
        return _numpy(np.zeros, shape, dtype, order)
    return _new_array(np.zeros, 0, shape, dtype, order)


@_creates
def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of ones; see `numpy.ones`."""
    return _new_array(np.ones, 1, shape, dtype, order)


@_creates
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Return an array of one value; see `numpy.full`."""
    try:
        if not isinstance(fill_value, (bool, int, float, complex, np.generic)):
            raise Unserved
        return _filled(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order, fill_value)
    except Unserved:
        return _numpy(np.full, shape, fill_value, dtype, order)


@_creates
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *,
    device: Any = None, like: Any = None,
) -> Any:  # fmt: skip
    """Return an array of zeros with ones on a diagonal; see `numpy.eye`."""
    shape = (N, N if M is None else M)
    if _size(shape) >= _LEAST_EAGER and communicator() is None and type(k) is int and order == "C":
        kind = np.dtype(dtype)
        if kind.kind in _FILLED:
            rows = np.arange(max(-k, 0), max(min(shape[0], shape[1] - k), 0))
            if session().device is not None:
                there = _new_array(np.zeros, 0, shape, kind, order)
                first, step = max(k, -k * shape[1]), shape[1] + 1
                there.reshape(-1)[first : first + len(rows) * step : step] = 1
                return there
            evaluate()  # their memory may be reused here
            matrix = np.zeros(shape, kind)
            matrix[rows, rows + k] = 1
            return wrap(matrix)
    return _numpy(np.eye, N, M, k, dtype, order)


def _like(a: Any, dtype: Any, order: Any, shape: Any, device: Any, value: Any) -> Any:
    name = "cpu" if device is None else resolve(device)
    if name != "cpu":
        return device_backend().moved(_like(a, dtype, order, shape, None, value), name)
    if type(a) is not ndarray or order not in ("C", "F", "A", "K"):
        raise Unserved
    kind = a.dtype if dtype is None else np.dtype(dtype)
    if kind.kind not in _FILLED:
        raise Unserved
    result = new_array_like(a, kind, _shape(a.shape if shape is None else shape), order)
    if value is not None:
        result[...] = _scalar(value, kind)
    return result


def _like_with(value: Any) -> Callable[..., Any]:
    """An implementation of `numpy.zeros_like` or the like; ``value`` None leaves the array uninitialised."""

    def like(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *,
        device: Any = None,
    ) -> Any:  # fmt: skip
        return _like(a, dtype, order, shape, device, value)

    return like


implements(np.empty_like)(_like_with(None))
implements(np.zeros_like)(_like_with(0))
implements(np.ones_like)(_like_with(1))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    """Return an array like another, of one value."""
    if not isinstance(fill_value, (bool, int, float, complex, np.generic)):
        raise Unserved
    return _like(a, dtype, order, shape, device, fill_value)


def _converted(function: Any, a: Any, **kwargs: Any) -> Any:
    """Return NumPy's conversion of ``a``, wrapped; ``a`` itself if nothing is to be converted."""
    if isinstance(a, (list, tuple)) and kwargs.get("copy") is not False and _stacks(a):
        return array(np.stack(a), kwargs.get("dtype"), ndmin=kwargs.get("ndmin", 0))
    plain = unwrap(a) if type(a) is ndarray else a
    try:
        result = function(plain, **kwargs)
        looked = not isinstance(a, (list, tuple)) or result.dtype.char in _ALIKE
    except (TypeError, ValueError):
        if _with_plain(a) is a:
            raise
        looked = False
    if not looked and _with_plain(a) is not a:
        result = function(_with_plain(a), **kwargs)
    if result is plain:
        return wrap(a) if type(a) is np.ndarray else a
    return wrap(result) if type(result) is np.ndarray else result


def _stacks(values: Sequence[Any]) -> bool:
    """Whether these are distributed arrays of one shape."""
    return bool(values) and all(map(is_distributed, values)) and len({v.shape for v in values}) == 1


def _with_plain(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return a value with plain arrays in place of wrapped ones in sequences; the same object if there are
    none."""
    kind = type(value)
    if kind is ndarray:
        return unwrap(value)
    if kind is not list and kind is not tuple:
        return value
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value  # a sequence may contain itself
        inner = [_with_plain(v, seen) for v in value]
        if any(p is not v for p, v in zip(inner, value, strict=True)):
            seen[id(value)] = kind(inner)
    return seen[id(value)]


def _same(a: Any, dtype: Any) -> bool:
    if type(a) is not ndarray or dtype is None:
        return type(a) is ndarray
    return bool(a.dtype == dtype) and a.dtype.char in _ALIKE


@_converts
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """Convert to a wrapped array, which shares the memory of a plain one.

    Parameters
    ----------
    a : array_like
        A plain array, a wrapped one, or anything that `numpy.asarray` takes.
    dtype, order, copy
        As of `numpy.asarray`; with their defaults nothing is copied.
    device : str, optional
        One of `dcarray.devices`; by default that of ``a``, or that of the option ``device``.  On another
        device than the CPU the elements of a plain array are a copy.
    like : object, optional
        An array of another library, whose function is called instead.

    Returns
    -------
    ndarray
        The array itself where it is wrapped already.

    Raises
    ------
    ValueError
        If there is no such device, or a copy is needed with ``copy=False``.

    Notes
    -----
    Work on the wrapped array may be pending: call `evaluate` before you read ``a`` again, or write to it.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> a = np.zeros(3)
    >>> x = dc.asarray(a)
    >>> x[0] = 1
    >>> np.shares_memory(np.asarray(x), a)
    True
    """
    return _wrapped(np.asarray, a, dtype, order, copy)


def _wrapped(function: Any, a: Any, dtype: Any, order: Any, copy: Any) -> Any:
    """Return the array that `asarray` gives on the CPU; NumPy's ``function`` converts other objects."""
    if order in (None, "K"):
        if type(a) is np.ndarray and dtype is None and copy is None:
            return wrap(a)
        if copy is not True and _same(a, dtype):
            return a
        if type(a) is ndarray and copy is not False and a._small is None and a._store.char:
            return a.astype(a.dtype if dtype is None else dtype, copy=True)
    return _converted(function, a, dtype=dtype, order=order, copy=copy)


@_converts
def asanyarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """Convert as `asarray`, but return a subclass of NumPy's array as it is."""
    if isinstance(a, np.ndarray) and type(a) is not np.ndarray:
        return np.asanyarray(a, dtype, order, copy=copy)
    return _wrapped(np.asanyarray, a, dtype, order, copy)


@_converts
def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: bool = False,
    ndmin: int = 0, like: Any = None, **more: Any,
) -> Any:  # fmt: skip
    """Return a wrapped array, by default a copy; see `numpy.array`."""
    if order in (None, "K") and not more and type(object) is ndarray:
        if ndmin > object.ndim:
            object = object[(None,) * (ndmin - object.ndim)]
        return _wrapped(np.asarray, object, dtype, None, copy)
    return _converted(np.array, object, dtype=dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **more)


@_converts
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return ``a`` in C order, with at least one axis."""
    if _same(a, dtype) and a.ndim and a.flags.c_contiguous:
        return a
    return _converted(np.ascontiguousarray, a, dtype=dtype)


@_converts
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return ``a`` in Fortran order."""
    if _same(a, dtype) and a.flags.f_contiguous:
        return a
    return _converted(np.asfortranarray, a, dtype=dtype)
