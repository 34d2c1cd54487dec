"""``x.flags`` of a large array: NumPy's flags of its memory, and whether the handle may be written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dcarray.core import window
from dcarray.core.handle import Handle
from dcarray.core.processes import communicator
from dcarray.core.store import memory, writeable
from dcarray.core.strides import strides_of

_ORDERS = ("c_contiguous", "contiguous", "f_contiguous", "fnc", "forc", "fortran")
_WRITEABLE = ("writeable", "W", "WRITEABLE")


def let_write(x: Handle, value: bool) -> None:
    """Make a large array writable or read-only, but not other arrays on its memory.

    Raises
    ------
    ValueError
        If it cannot be made writable: its base is read-only, or elements share an address.
    """
    if value == (not x._readonly):
        return
    x._evaluated()
    if value:
        mem = memory(x._store)
        a = window.view(mem, x._shape, x._window())
        if not writeable(mem) or any(n > 1 and s == 0 for n, s in zip(a.shape, a.strides, strict=True)):
            raise ValueError("cannot set WRITEABLE flag to True of this array")
    x._readonly = not value
    x._ndarray = x._small_view = None  # made anew when it is asked for


class Flags:
    """NumPy's flags, with the handle's own flag for writing."""

    __slots__ = ("_array",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Handle) -> None:
        object.__setattr__(self, "_array", array)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(np.empty(0).flags)

    def __getattr__(self, name: str) -> Any:
        x = self._array
        if name in _ORDERS and communicator() is not None and x._store.family.mem is None:
            return getattr(as_strided(np.empty(1), x._shape, [8 * n for n in strides_of(x)]).flags, name)
        return getattr(self._array._evaluated().flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _WRITEABLE:
            let_write(self._array, bool(value))
        else:
            setattr(self._array._evaluated().flags, name, value)

    def __getitem__(self, name: str) -> Any:
        return self._array._evaluated().flags[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in _WRITEABLE:
            let_write(self._array, bool(value))
        else:
            self._array._evaluated().flags[name] = value

    def __eq__(self, other: object) -> bool:
        flags = other._array._evaluated().flags if type(other) is Flags else other
        return bool(self._array._evaluated().flags == flags)

    def __repr__(self) -> str:
        return repr(self._array._evaluated().flags)
