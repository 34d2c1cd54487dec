"""Functions with NumPy's arguments and those that the array API standard adds to them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.core.config import current
from dcarray.core.device_backend import device_backend
from dcarray.core.device_names import devices, resolve
from dcarray.core.handle import Handle

from . import creation, fallback
from .common import NOTHING, is_array

VERSION = "2025.12"
_CUDA = 2  # the type of such devices by DLPack
_LEAST_TESTED = 1 << 16  # elements from which a test for equal ones is cheaper than a stable sort


class Devices(tuple[str, ...]):
    """A tuple, as in the standard since 2025.12, that can be added to lists: before, it was a list."""

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else super().__add__(other)


class Info(getattr(np, "__array_namespace_info__", object)):  # type: ignore[misc]
    """The capabilities of this namespace; see the standard's inspection functions."""

    __module__ = "dcarray"

    def devices(self) -> tuple[str, ...]:
        """Return the devices that ``device=`` takes."""
        return Devices(devices())

    def default_device(self) -> str:
        """Return the device of new arrays without ``device=``."""
        return current().device

    def default_dtypes(self, *, device: Any = None) -> Any:
        """Return the dtypes of new arrays without ``dtype=``; they are the same on all devices."""
        if device is not None:
            resolve(device)
        return super().default_dtypes()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Any:
        """Return the dtypes by name, the same on all devices."""
        if device is not None:
            resolve(device)
        return super().dtypes(kind=kind)


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None,
    descending: bool = False,
) -> Any:  # fmt: skip
    """Return a sorted copy; see `numpy.sort`.

    Parameters
    ----------
    a, axis, kind, order, stable
        As in NumPy.
    descending : bool
        Whether the order is descending; equal elements keep theirs if ``stable``.
    """
    if not descending:
        return fallback.wrap_results(np.sort(a, axis, kind, order, stable=stable))
    if axis is None:
        a, axis = np.reshape(a, -1), 0
    return fallback.wrap_results(np.flip(np.sort(np.flip(a, axis), axis, kind, order, stable=stable), axis))


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None,
    descending: bool = False,
) -> Any:  # fmt: skip
    """Return the indices that sort an array; see `numpy.argsort`.

    Parameters
    ----------
    a, axis, kind, order
        As in NumPy.
    stable : bool, optional
        Whether equal elements keep their order; they do unless this is false or ``kind`` is given.
    descending : bool
        Whether the order is descending.
    """
    if axis is None:
        a, axis = np.reshape(a, -1), 0
    values = np.flip(a, axis) if descending else a
    if kind is None and stable is None:
        indices = _in_order(values, axis, order)
    else:
        indices = np.argsort(values, axis, kind, order, stable=stable)
    return fallback.wrap_results(np.shape(a)[axis] - 1 - np.flip(indices, axis) if descending else indices)


def _in_order(a: Any, axis: Any, order: Any) -> Any:
    """Return `numpy.argsort` with ``stable=True``, faster if no two elements are equal."""
    if is_array(a) and a.size >= _LEAST_TESTED and a.dtype.kind in "iuf" and a.dtype.itemsize >= 4:
        indices = np.argsort(a, axis)
        rising = np.moveaxis(np.take_along_axis(a, indices, axis), axis, -1)
        if np.all(rising[..., 1:] > rising[..., :-1]):
            return indices
    return np.argsort(a, axis, order=order, stable=True)


def clip(
    a: Any, min: Any = NOTHING, max: Any = NOTHING, out: Any = None, *, a_min: Any = NOTHING,
    a_max: Any = NOTHING, **kwargs: Any,
) -> Any:  # fmt: skip
    """Limit values to an interval; see `numpy.clip`.  Either bound may be left out."""
    if builtins.any(x is not NOTHING and y is not NOTHING for x, y in ((min, a_min), (max, a_max))):
        raise ValueError("a bound of clip is given by its two names")
    low, high = (
        None if x is y is NOTHING else y if x is NOTHING else x for x, y in ((min, a_min), (max, a_max))
    )
    return fallback.wrap_results(np.clip(a, low, high, out, **kwargs))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours; see `numpy.diff`.  With None nothing is prepended or appended."""
    ends = {"prepend": prepend, "append": append}
    return fallback.wrap_results(np.diff(a, n, axis, **{k: v for k, v in ends.items() if v is not None}))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return an array with another library's elements, which it shares unless the device has memory of its
    own; see `numpy.from_dlpack`."""
    if isinstance(x, Handle) and x._device is not None:
        return creation.asarray(x, device=device, copy=copy)
    there = x.__dlpack_device__()
    gpu = f"cuda:{there[1]}" if there[0] == _CUDA else None
    name = resolve(device) if device is not None else gpu or current().device
    if gpu is None and name == "cpu":
        return fallback.call_numpy(np.from_dlpack, (x,), {} if copy is None else {"copy": copy})
    return device_backend().from_dlpack(x, name, copy)


def _frequencies(function: Callable[..., Any]) -> Callable[..., Any]:
    def frequencies(n: Any, d: Any = 1.0, device: Any = None, dtype: Any = None) -> Any:
        name = current().device if device is None else resolve(device)
        kind = None if dtype is None else np.dtype(dtype)
        if kind is not None and kind.kind != "f":
            raise ValueError(f"frequencies are real floating-point numbers, not {kind}")
        result = function(n, d)
        wrapped = fallback.wrap_results(result if kind is None else result.astype(kind, copy=False))
        return wrapped if name == "cpu" else device_backend().place(name, wrapped)

    frequencies.__name__ = frequencies.__qualname__ = function.__name__
    frequencies.__module__ = "dcarray.fft"
    frequencies.__doc__ = f"See `numpy.fft.{function.__name__}`; ``dtype`` is that of the result."
    return frequencies


def _complex(value: Any) -> Any:
    return value.astype(np.result_type(value.dtype, np.complex64), copy=False)


def eig(a: Any) -> Any:
    """Eigenvalues and right eigenvectors, always complex, as in NumPy 2.5; see `numpy.linalg.eig`."""
    pairs = np.linalg.eig(a)
    return fallback.wrap_results(type(pairs)(_complex(pairs.eigenvalues), _complex(pairs.eigenvectors)))


def eigvals(a: Any) -> Any:
    """Eigenvalues, always complex, as in NumPy 2.5; see `numpy.linalg.eigvals`."""
    return fallback.wrap_results(_complex(np.linalg.eigvals(a)))


# By the NumPy module that has the names.
STANDARD: dict[str, dict[str, Any]] = {
    "numpy": {
        "__array_api_version__": VERSION,
        "__array_namespace_info__": Info,
        "argsort": argsort,
        "clip": clip,
        "diff": diff,
        "from_dlpack": from_dlpack,
        "sort": sort,
    },
    "fft": {"fftfreq": _frequencies(np.fft.fftfreq), "rfftfreq": _frequencies(np.fft.rfftfreq)},
    "linalg": {"eig": eig, "eigvals": eigvals},
}
