"""The addresses of NumPy's ufunc inner loops, for compiled code to call.

A ufunc holds a table of C functions ``void loop(char **args, npy_intp const *dimensions, npy_intp const
*strides, void *data)``, one for each signature.  Its layout is part of NumPy's public C interface
(``PyUFuncObject`` in ``ufuncobject.h``) for one version of its binary interface; that version, the
attributes of the ufunc, and the loop's results for a few values are checked before an address is
returned.  Loops over floating-point and complex elements need neither the GIL nor any Python object.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir import draws
from dcarray.ir.ops import C_LIBRARY, OPS

DType = np.dtype[Any]

_ABI = 0x02000000  # what NumPy 2 calls the version of its binary interface
_GENERIC = {1: 5, 2: 15}  # by the number of arguments, where PyUFunc_d_d and PyUFunc_dd_d are in its table


class _UFunc(ctypes.Structure):
    """The fields of a PyUFuncObject after the object header."""

    _fields_ = (
        ("nin", ctypes.c_int), ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_void_p),
        ("types", ctypes.c_void_p),
    )  # fmt: skip


class Address(int):
    """An address in this process, with its origin, by which another process can find the address there."""

    origin: tuple[str, tuple[str, ...], str, str]

    @classmethod
    def of(cls, value: int, name: str, types: tuple[DType, ...], result: DType, part: str) -> Address:
        """Return the address of a part of a loop (``"code"`` or ``"data"``), or of a ``"draw"``."""
        new = cls(value)
        new.origin = name, tuple([d.char for d in types]), result.char, part
        return new


def address(name: str, types: tuple[str, ...], result: str, part: str) -> int | None:
    """Return the address with this `Address.origin` in this process; None if there is no such function."""
    if part == "draw":
        return draws.address(name)
    loop = find(name, tuple([np.dtype(char) for char in types]), np.dtype(result))
    return None if loop is None else loop.code if part == "code" else loop.data


def draw_address(name: str) -> Address | None:
    """Return the address of a function of `dcarray.ir.draws`; None if this process has no such function."""
    value = draws.address(name)
    if value is None:
        return None
    draw = draws.DRAWS[name]
    return Address.of(value, name, draw.arguments, draw.result, "draw")


class Loop(NamedTuple):
    """The addresses of a loop's function and of its data (0 for none), and whether it may clear the
    floating-point flags that were raised before."""

    code: int
    data: int
    clears: bool


_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@cache
def find(name: str, types: tuple[DType, ...], result: DType) -> Loop | None:
    """Return the loop of a ufunc for exactly these dtypes: floating-point or complex arguments, beside which
    there may be integers, and one result. None if there is no such loop, or this NumPy is not as expected."""
    if name in C_LIBRARY:
        return _of_c(name, types, result)
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc) or types[0].kind not in "fc" or not _is_layout_known():
        return None
    known = _UFunc.from_address(id(ufunc) + object.__basicsize__)
    counts = (known.nin, known.nout, known.nargs, known.ntypes)
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes) or ufunc.nout != 1:
        return None
    if not (known.functions and known.data and known.types and known.name):
        return None
    if ctypes.string_at(known.name) != ufunc.__name__.encode():
        return None
    numbers = ctypes.string_at(known.types, known.ntypes * known.nargs)
    for number, text in enumerate(ufunc.types):
        loop = [np.dtype(char) for char in text.replace("->", "")]
        if loop != [*types, result]:
            continue
        if [d.num for d in loop] != list(numbers[number * known.nargs :][: known.nargs]):
            return None
        code, data = known.functions[number] or 0, known.data[number] or 0
        return _try(ufunc.__name__, ufunc, code, data, types, result) if code else None
    return None


def _of_c(name: str, types: tuple[DType, ...], result: DType) -> Loop | None:
    """Return NumPy's generic loop over a function of doubles, with a C library function as its data; None if
    that is not available."""
    if any(dtype != np.float64 for dtype in (*types, result)) or not _is_layout_known():
        return None
    try:
        core: Any = importlib.import_module("numpy._core._multiarray_umath")
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        table = (ctypes.c_void_p * (max(_GENERIC.values()) + 1)).from_address(pointer(core._UFUNC_API, None))
        function = getattr(ctypes.CDLL("libm.so.6"), name.removeprefix("c_"))
    except (ImportError, AttributeError, OSError, ValueError):
        return None
    code, data = table[_GENERIC[len(types)]], ctypes.cast(function, ctypes.c_void_p).value
    return _try(name, OPS[name].reference, code, data, types, result) if code and data else None


@cache
def _is_layout_known() -> bool:
    """Whether this interpreter and this NumPy are known to have the object layout that `_UFunc` declares."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        core: Any = importlib.import_module("numpy._core._multiarray_umath")
        version = core._get_ndarray_c_version()
    except (ImportError, AttributeError):
        return False
    return bool(version == _ABI) and np.ufunc.__basicsize__ >= object.__basicsize__ + ctypes.sizeof(_UFunc)


def _try(
    name: str, reference: Any, code: int, data: int, types: tuple[DType, ...], result: DType
) -> Loop | None:
    """Return the loop, if it reproduces the operation's results on trial values; else None."""
    values = np.array([0.5, 1.25, 3.0, 0.75, 1.0])
    arguments: list[Any] = [np.roll(values, k).astype(dtype) for k, dtype in enumerate(types)]
    with np.errstate(all="ignore"):
        expected = reference(*arguments)
    got = np.empty(values.size, result)
    every = [*arguments, got]
    pointers = (ctypes.c_void_p * len(every))(*(a.ctypes.data for a in every))
    count = (ctypes.c_ssize_t * 1)(values.size)
    steps = (ctypes.c_ssize_t * len(every))(*(a.itemsize for a in every))
    loop = _LOOP(code)
    flags = _flags()
    raised = 0
    if flags is not None:
        flags.feraiseexcept(_ALL)
        raised = flags.fetestexcept(_ALL)
    loop(pointers, count, steps, data)
    clears = flags is None or flags.fetestexcept(_ALL) & raised != raised
    if flags is not None:
        flags.feclearexcept(_ALL)
    if expected.dtype != result or expected.tobytes() != got.tobytes():
        return None
    own = (name, types, result)
    return Loop(Address.of(code, *own, "code"), Address.of(data, *own, "data"), clears)


_ALL = 31  # every exception's bit on the processors that there are


@cache
def _flags() -> Any:
    """Return the library with C's functions for floating-point flags; None if there is none."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        if library.feraiseexcept and library.fetestexcept and library.feclearexcept:
            return library
    with contextlib.suppress(OSError):
        return ctypes.CDLL("libm.so.6")
    return None
