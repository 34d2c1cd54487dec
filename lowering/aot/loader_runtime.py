"""Calls of a library's functions with NumPy's arrays: the part that all loaders share.

Its source becomes part of each loader (`loader`), so it needs NumPy alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_C_TYPES: dict[str, Any] = {
    "b1": ctypes.c_uint8, "f2": ctypes.c_uint16, "f4": ctypes.c_float, "f8": ctypes.c_double,
    "i1": ctypes.c_int8, "i2": ctypes.c_int16, "i4": ctypes.c_int32, "i8": ctypes.c_int64,
    "u1": ctypes.c_uint8, "u2": ctypes.c_uint16, "u4": ctypes.c_uint32, "u8": ctypes.c_uint64,
}  # fmt: skip
for _char, _part in (("c8", ctypes.c_float), ("c16", ctypes.c_double)):
    _C_TYPES[_char] = type(_char, (ctypes.Structure,), {"_fields_": [("re", _part), ("im", _part)]})


class _Entry(NamedTuple):
    """A C function: its symbols and how these follow from arrays, its parameters, shapes, results."""

    sizes: Sequence[str]
    parameters: Sequence[tuple[str, str, str, str, int, bool]]
    solved: Sequence[tuple[str, str, int, int]]
    shapes: Mapping[str, Callable[[dict[str, int]], tuple[int, ...]]]
    results: Sequence[tuple[str, Any, str, bool]]
    several: bool


def _scalar(where: str, value: Any, char: str) -> Any:
    """Return a scalar argument as the ctypes value of its dtype; raise TypeError if it does not fit."""
    dtype = np.dtype(char)
    data = np.asarray(value)
    fits = data.ndim == 0 and data.dtype.kind in "biufc" and (data.dtype.kind == "b") == (dtype.kind == "b")
    if fits and dtype.kind in "iu":
        fits = data.dtype.kind in "iu" and np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max
    elif fits:
        fits = np.can_cast(data.dtype, dtype, "same_kind")
    if not fits:
        raise TypeError(f"{where} is expected to be {dtype.name}, not {value!r}")
    scalar = dtype.type(value)
    if dtype.kind == "c":
        return _C_TYPES[char](scalar.real, scalar.imag)
    return _C_TYPES[char](int(scalar.view(np.uint16)) if char == "f2" else scalar.item())


def _array(where: str, value: Any, char: str, axes: int, written: bool) -> Any:
    """Return an array argument; raise TypeError or ValueError if the library cannot use its memory."""
    if not isinstance(value, np.ndarray) or value.dtype != np.dtype(char) or value.ndim != axes:
        given = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value)
        raise TypeError(f"{where} is expected to be {np.dtype(char).name} with {axes} axes, not {given}")
    if not value.flags.c_contiguous or not value.flags.aligned:
        raise ValueError(f"{where} is not aligned, or not in C order without gaps")
    if written and not value.flags.writeable:
        raise ValueError(f"{where} is read-only")
    return value


def _run(library: Any, statuses: Any, name: str, entry: _Entry, given: Sequence[Any]) -> Any:
    """Call a C function with Python's arguments, and return its results as Python has them."""
    sizes, parameters, solved, shapes, results, several = entry
    values: dict[str, int] = {}
    passed: list[Any] = []
    arrays = {}
    for (kind, argument, symbol, char, axes, written), value in zip(parameters, given, strict=True):
        where = f"{name}(): the argument {argument}"
        if kind == "array":
            arrays[argument] = _array(where, value, char, axes, written)
            passed.append(ctypes.c_void_p(value.ctypes.data))
        else:
            passed.append(_scalar(where, value, char))
        if kind == "size":
            values[symbol] = int(value)
    for symbol, argument, axis, constant in solved:
        values.setdefault(symbol, arrays[argument].shape[axis] - constant)
    for argument, value in arrays.items():
        expected = shapes[argument](values)
        if value.shape != expected:
            known = ", ".join(f"{symbol} = {values[symbol]}" for symbol in sizes)
            raise ValueError(
                f"{name}(): the argument {argument} is expected to have the shape {expected} "
                f"with {known}, not {value.shape}"
            )
    outputs: list[Any] = []
    for kind, what, char, _ in results:
        if kind in ("array", "scalar"):
            # a size below 0 is the library's to refuse
            shape = tuple([max(0, n) for n in shapes[what](values)]) if kind == "array" else ()
            outputs.append(np.empty(shape, char))
            passed.append(ctypes.c_void_p(outputs[-1].ctypes.data))
        else:
            outputs.append(arrays[what] if kind == "alias" else what)
    status = library[name](*[ctypes.c_int64(values[symbol]) for symbol in sizes], *passed)
    if status:
        error = MemoryError if statuses[status][0] == "NO_MEMORY" else ValueError
        raise error(f"{name}(): {statuses[status][0]}: {statuses[status][1]}")
    for k, (kind, _, _, python) in enumerate(results):
        if kind == "scalar":
            outputs[k] = outputs[k].item() if python else outputs[k][()]
    return tuple(outputs) if several else outputs[0] if outputs else None
