"""Scalars whose type is known at run time only: Python's or NumPy's, or int or float.  An example is ``s =
0.0``, and in a branch ``s += x[i]``.  Their value and their type are stored in memory, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Expr, Load, Window
from dcarray.ir.ops import const

from .memory import Memory
from .numbers import MAX_COUNTER, Numbers
from .scope import Scope
from .values import (
    EITHER,
    INT_OR_FLOAT,
    Data,
    Either,
    PythonOrNumpy,
    Value,
    cast,
    is_array,
    is_number,
    kind_of,
)

__all__ = ["choice", "either_in", "either_kind", "int_or_float", "int_or_numpy", "of_both", "value_and_type"]

_BOOL = np.dtype(np.bool_)


def either_kind(*values: Value) -> Either | None:
    """Return the two types that a scalar may have, given its possible values; None if they cannot be
    combined, or it is not known at run time which one it has."""
    kinds: set[Any] = set()
    for x in values:
        either = isinstance(x, PythonOrNumpy)
        if (either and x.is_numpy is None) or not (either or is_number(x)) or is_array(x):
            return None
        kind = kind_of(x)
        kinds |= {*kind} if isinstance(kind, Either) else {kind}
    return next((one for one in EITHER if {*one} == kinds), None)


def value_and_type(math: Numbers, x: Value, kind: Either) -> tuple[Expr, Expr]:
    """Return the value of a scalar of one of two types, and whether that is NumPy's, as expressions."""
    if isinstance(x, PythonOrNumpy):
        assert x.is_numpy is not None
        return x.numpy.expr, x.is_numpy.expr
    return math.expr(x, np.dtype(kind.numpy)), const(kind_of(x) == kind.numpy, np.bool_)


def choice(memory: Memory, math: Numbers, cond: Expr, a: Value, b: Value, kind: Either) -> PythonOrNumpy:
    """Return the scalar that is ``a`` where a condition holds, and else ``b``, of different types."""
    made = [
        memory.value(Apply("where", (cond, x, y), x.dtype), scalar=True)
        for x, y in zip(value_and_type(math, a, kind), value_and_type(math, b, kind), strict=True)
    ]
    return _scalar(memory, made[0].expr, made[1].expr, kind)


def of_both(function: Callable[[Value], Value], x: PythonOrNumpy, scope: Scope) -> PythonOrNumpy:
    """Return the result of applying ``function`` to a scalar; it has Python's or NumPy's type as that has."""
    python, numpy = function(x.python), function(x.numpy)
    same = isinstance(python, Data) and isinstance(numpy, Data) and x.numpy.kind == numpy.kind
    if not same or kind_of(python) is not kind_of(x.python):
        raise scope.fail("a function of a scalar whose type depends on a condition")
    return PythonOrNumpy(python, numpy, x.is_numpy)


def either_in(memory: Memory, windows: Sequence[Window], kind: Either) -> PythonOrNumpy:
    """Return the scalar whose value and type are in memory."""
    return _scalar(memory, Load(windows[0], np.dtype(kind.numpy)), Load(windows[1], _BOOL), kind)


def int_or_float(
    memory: Memory,
    value: Expr,
    is_float: Expr | None,
    limits: tuple[int, int] = (-MAX_COUNTER, MAX_COUNTER - 1),
) -> PythonOrNumpy:
    """Return a Python number stored as float64: a float if ``is_float`` is true, else an int within
    ``limits``.  Return None if it is not known which."""
    if is_float is not None:
        value, limits = _limited(memory, value, is_float, limits)
    whole = (
        value if is_float is None else Apply("where", (is_float, const(0.0, value.dtype), value), value.dtype)
    )
    return PythonOrNumpy(
        memory.value(cast(whole, np.dtype(int)), scalar=True, weak=int, limits=limits),
        memory.value(value, scalar=True, weak=float),
        None if is_float is None else memory.value(is_float, scalar=True, weak=bool),
    )


def int_or_numpy(
    memory: Memory, value: Expr, is_numpy: Expr, limits: tuple[int, int] = (-MAX_COUNTER, MAX_COUNTER - 1)
) -> PythonOrNumpy:
    """Return an int of Python's, which is within the limits, or NumPy's scalar with the value."""
    value, limits = _limited(memory, value, is_numpy, limits)
    return PythonOrNumpy(
        memory.value(cast(value, np.dtype(int)), scalar=True, weak=int, limits=limits),
        memory.value(value, scalar=True),
        memory.value(is_numpy, scalar=True, weak=bool),
    )


def _limited(
    memory: Memory, value: Expr, is_other: Expr, limits: tuple[int, int]
) -> tuple[Expr, tuple[int, int]]:
    """Return a value that is an int or of another type, with a run-time check where the int may be beyond
    `MAX_COUNTER`, and the int's limits then."""
    low, high = limits
    if low >= -MAX_COUNTER and high <= MAX_COUNTER:
        return value, limits
    least, most = (const(value.dtype.type(n).item(), value.dtype) for n in (-MAX_COUNTER, MAX_COUNTER))
    above, below = (Apply("less_equal", pair, _BOOL) for pair in ((least, value), (value, most)))
    within = Apply("logical_and", (above, below), _BOOL)
    value = Apply("checked", (Apply("logical_or", (is_other, within), _BOOL), value), value.dtype)
    memory.may_raise = True
    return value, (-MAX_COUNTER, MAX_COUNTER)


def _scalar(memory: Memory, value: Expr, is_numpy: Expr, kind: Either) -> PythonOrNumpy:
    if kind == INT_OR_FLOAT:
        return int_or_float(memory, value, is_numpy)
    if kind.python is int:
        return int_or_numpy(memory, value, is_numpy)
    return PythonOrNumpy(
        memory.value(cast(value, np.dtype(kind.python)), scalar=True, weak=kind.python),
        memory.value(value, scalar=True),
        memory.value(is_numpy, scalar=True, weak=bool),
    )
