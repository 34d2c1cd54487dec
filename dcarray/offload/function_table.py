"""The table of NumPy's functions that kernels of a device do, and no region, and their arguments.

What they do not take is `Declined`: NumPy does it on the host, with its own errors.  Lengths of results and
bounds of indices are asked for at the call; elements stay on the device.
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
"""Functions that NumPy does sooner where the device is the processor: kernels are cut for many threads."""


def does(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        _TABLE[function] = body
        return body

    return register


def try_kernels(cls: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what kernels of a device give for a call; NotImplemented if NumPy has to do it.

    Parameters
    ----------
    cls : type
        The class of arrays on the device where those among the arguments are.
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
    """Return an argument as an array on the device, or a small or plain one, if its dtype is of these
    kinds."""
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
    """Return an argument that has to be a large array on the device."""
    if not is_large(x):
        raise Declined
    return numbers(k, x, kinds, ndim)


def host(x: Any) -> Any:
    return np.asarray(x)


def extremes(x: Any) -> tuple[Any, Any]:
    """Return the least and the greatest element."""
    low, high = x.min(), x.max()
    evaluate(low, high)
    return host(low)[()], host(high)[()]


def require(condition: Any) -> None:
    if not condition:
        raise Declined


def bounds(at: Any, extent: int) -> str:
    """Return from where indices, all in the bounds of an axis of this extent, count along it."""
    kind = None if at.dtype == np.uint64 else kind_of_index(at, extent)
    if kind is None:
        raise Declined
    return kind


def in_bounds(k: Kernels, at: Any, extent: int) -> Any:
    """Return indices that are in the bounds of an axis."""
    at = numbers(k, at, "iu")
    bounds(at, extent)
    return at
