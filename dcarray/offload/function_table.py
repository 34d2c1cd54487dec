"""The table of NumPy functions that run at the call by kernels of a device, not in regions; their arguments.

Arguments that the kernels do not serve raise `Declined`; then NumPy runs the function on the host, with its
own errors.  Lengths of results and bounds of indices are read at the call; elements stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import evaluate
from dcarray.core.handle import Handle
from dcarray.core.store import compiles

from .kernel_calls import Declined, Kernels, is_large
from .taking import kind_of_index

__all__ = [
    "NUMPYS_ON_PROCESSORS", "bounds", "does", "extremes", "host", "in_bounds", "numbers", "require", "there",
    "tried", "try_kernels",
]  # fmt: skip

_TABLE: dict[Any, Callable[..., Any]] = {}
NUMPYS_ON_PROCESSORS = frozenset(
    {
        np.sort, np.argsort, np.lexsort, np.unique, np.median, np.quantile, np.percentile,
        np.histogram, np.bincount, np.nonzero, np.flatnonzero, np.argwhere, np.argmax, np.argmin, np.convolve,
        np.correlate,
    }
)  # fmt: skip
"""Functions in which NumPy is faster if the device is the processor: the kernels are for many threads."""


def does(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        _TABLE[function] = body
        return body

    return register


def try_kernels(cls: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function, computed by kernels of a device; NotImplemented if NumPy has to
    run the function on the host.

    Parameters
    ----------
    cls : type
        The class of the arrays among the arguments, which determines the device.
    func : callable
        NumPy's function.
    """
    body = _TABLE.get(func)
    if body is None or (func in NUMPYS_ON_PROCESSORS and cls._device.is_processor):
        return NotImplemented
    return tried(body, cls, *args, **kwargs)


def tried(body: Callable[..., Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return body(Kernels(cls), *args, **kwargs)
    except Exception:  # NumPy gives its own answer to what is declined, or its own error
        return NotImplemented


def numbers(k: Kernels, x: Any, kinds: str = "iuf", ndim: int | None = None) -> Any:
    """Return an argument as an array: on the device, small, or plain.  Raise `Declined` if it is empty, or
    its dtype (one of ``kinds``), device or number of axes does not fit."""
    if isinstance(x, Handle):
        if x._device is not k.device and x.ndim:
            raise Declined
    else:
        x = np.asarray(x)
    if x.dtype.kind not in kinds or x.dtype.char == "e" or not compiles(x.dtype):
        raise Declined
    if not x.size or (ndim is not None and x.ndim != ndim):
        raise Declined
    return x


def there(k: Kernels, x: Any, kinds: str = "biuf", ndim: int | None = None) -> Any:
    """Return an argument that is a large array on the device; raise `Declined` for any other."""
    if not is_large(x):
        raise Declined
    return numbers(k, x, kinds, ndim)


def host(x: Any) -> Any:
    return np.asarray(x)


def extremes(x: Any) -> tuple[Any, Any]:
    """Return the least and the greatest element of an array, as NumPy scalars."""
    low, high = x.min(), x.max()
    evaluate(low, high)
    return host(low)[()], host(high)[()]


def require(condition: Any) -> None:
    if not condition:
        raise Declined


def bounds(at: Any, extent: int) -> str:
    """Return `kind_of_index` of indices of an axis; raise `Declined` if one of them is out of bounds."""
    kind = None if at.dtype == np.uint64 else kind_of_index(at, extent)
    if kind is None:
        raise Declined
    return kind


def in_bounds(k: Kernels, at: Any, extent: int) -> Any:
    """Return integer indices of an axis; raise `Declined` if one of them is out of bounds."""
    at = numbers(k, at, "iu")
    bounds(at, extent)
    return at
