"""``x.flat``: the iterator over the elements in C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.handle import Handle, NDArray, export
from dcarray.recording.operands import plain_of, wrap_result

from .indexing import plain_key


class Flat:
    """NumPy's flat iterator over the evaluated array, with wrapped results.  A comparison gives a plain
    array: it is mostly used as a mask of a plain array's iterator, which accepts no wrapped one."""

    __slots__ = ("_array", "_iterator")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Handle) -> None:
        self._array = array
        self._iterator = export(array).flat

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.flatiter

    @property
    def base(self) -> Handle:
        """The array that is iterated over."""
        return self._array

    def copy(self) -> Any:
        """Return the elements in a new array."""
        return wrap_result(type(self._array), self._iterator.copy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return np.array(self._iterator, dtype=dtype, copy=copy)

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getitem__(self, key: Any) -> Any:
        return wrap_result(type(self._array), self._iterator[plain_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._writable()
        self._iterator[plain_key(key)] = plain_of(value)

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def _comparison(name: str) -> Any:
    def compare(self: Flat, other: Any) -> Any:
        return getattr(self._iterator, name)(plain_of(other))

    compare.__name__ = name
    return compare


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Flat, _name, _comparison(_name))
