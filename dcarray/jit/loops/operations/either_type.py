"""Scalars with one of two types, which is only known at run time: Python's or NumPy's, or int or float.

An example is ``s = 0.0``, and in a branch ``s += x[i]``, which makes ``s`` a NumPy scalar.  A region stores
such a scalar as two variables: the value, and a boolean for the type.
"""

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
    NONE,
    PYTHON,
    Data,
    Either,
    PythonOrNumpy,
    Value,
    cast,
    is_array,
    is_number,
    kind_of,
)

__all__ = [
    "choice", "either_in", "either_kind", "int_or_float", "int_or_numpy", "kinds_of", "of_both", "present",
    "value_and_type",
]  # fmt: skip

_BOOL = np.dtype(np.bool_)


def as_key(key: Value) -> Value:
    """Return a key in which what may be an int of Python or one of NumPy is NumPy's: both select the same."""
    if isinstance(key, tuple):
        return tuple(map(as_key, key))
    if isinstance(key, slice):
        return slice(*map(as_key, (key.start, key.stop, key.step)))
    return key.numpy if isinstance(key, PythonOrNumpy) and key.numpy.kind == "l" else key


def kinds_of(value: Value) -> Any:
    """Return a number's `kind_of`, or those of a tuple's or list's items."""
    return [*map(kinds_of, value)] if isinstance(value, tuple | list) else kind_of(value)


def either_kind(*values: Value) -> Either | None:
    """Return the two types that a scalar may have, given its possible values; None if the types cannot be
    combined, or if nothing tells at run time which type the scalar has."""
    kinds: set[Any] = set()
    for x in values:
        either = isinstance(x, PythonOrNumpy)
        if (either and x.is_numpy is None) or not (either or is_number(x) or x is None) or is_array(x):
            return None
        kind = kind_of(x)
        kinds |= {*kind} if isinstance(kind, Either) else {kind}
    return next((one for one in EITHER if {*one} == kinds), None)


def value_and_type(math: Numbers, x: Value, kind: Either) -> tuple[Expr, Expr]:
    """Return two expressions for a scalar of one of two types: its value, and whether its type is NumPy's."""
    if isinstance(x, PythonOrNumpy):
        assert x.is_numpy is not None
        return x.numpy.expr, x.is_numpy.expr
    if x is None:
        return const(0, np.dtype(kind.numpy)), const(False, np.bool_)
    if kind_of(x) is int:  # as which `_scalar` takes it
        x = math.as_counter(x) if isinstance(x, Data) else x
        if type(x) is int and abs(x) > MAX_COUNTER:
            raise math.scope.fail("an int of so many bits may be a number of another type")
    return math.expr(x, np.dtype(kind.numpy)), const(kind_of(x) == kind.numpy, np.bool_)


def choice(memory: Memory, math: Numbers, cond: Expr, a: Value, b: Value, kind: Either) -> PythonOrNumpy:
    """Return the scalar that is ``a`` if ``cond`` is true at run time, else ``b``; their types may differ."""
    pair = [
        memory.value(Apply("where", (cond, x, y), x.dtype), scalar=True)
        for x, y in zip(value_and_type(math, a, kind), value_and_type(math, b, kind), strict=True)
    ]
    return _scalar(memory, pair[0].expr, pair[1].expr, kind)


def of_both(function: Callable[[Value], Value], x: PythonOrNumpy, scope: Scope) -> PythonOrNumpy:
    """Return ``function(x)``, whose type is Python's or NumPy's as the type of ``x`` is at run time."""
    python, numpy = function(x.python), function(x.numpy)
    same = isinstance(python, Data) and isinstance(numpy, Data) and x.numpy.kind == numpy.kind
    if not same or kind_of(python) is not kind_of(x.python):
        raise scope.fail("a function of a scalar whose type depends on a condition")
    return PythonOrNumpy(python, numpy, x.is_numpy)


def present(memory: Memory, x: Value) -> Value:
    """Return a value; if it may be None, the number that it is: a run in which it is None fails."""
    if not (isinstance(x, PythonOrNumpy) and x.python is None and x.is_numpy is not None):
        return x
    memory.may_raise = True
    expr = Apply("checked", (x.is_numpy.expr, x.numpy.expr), x.numpy.dtype)
    number = memory.value(expr, scalar=True, weak=x.numpy.weak, limits=x.numpy.limits)
    memory.store(number)  # a statement, so that it is not computed where Python would skip it
    return number


def either_in(memory: Memory, windows: Sequence[Window], kind: Either) -> PythonOrNumpy:
    """Return the scalar whose value and type lie in memory, at the two ``windows``."""
    return _scalar(memory, Load(windows[0], np.dtype(kind.numpy)), Load(windows[1], _BOOL), kind)


def int_or_float(
    memory: Memory,
    value: Expr,
    is_float: Expr | None,
    limits: tuple[int, int] = (-MAX_COUNTER, MAX_COUNTER - 1),
) -> PythonOrNumpy:
    """Return a Python number stored as float64: a float if ``is_float`` is true, else an int within
    ``limits``.  If ``is_float`` is None, nothing tells which of the two it is."""
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
    """Return the scalar ``value``: NumPy's if ``is_numpy`` is true, else a Python int in ``limits``."""
    value, limits = _limited(memory, value, is_numpy, limits)
    return PythonOrNumpy(
        memory.value(cast(value, np.dtype(int)), scalar=True, weak=int, limits=limits),
        memory.value(value, scalar=True),
        memory.value(is_numpy, scalar=True, weak=bool),
    )


def _limited(
    memory: Memory, value: Expr, is_other: Expr, limits: tuple[int, int]
) -> tuple[Expr, tuple[int, int]]:
    """Return a value and the limits of the int that it may be.  If an int might be beyond `MAX_COUNTER`, a
    test at run time is added; ``is_other`` says whether the value has the other type, so that any value
    passes."""
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
    if kind.python is NONE:
        weak = kind.numpy if kind.numpy in PYTHON else None
        limits = (-MAX_COUNTER, MAX_COUNTER - 1) if weak is int else None
        number = memory.value(value, scalar=True, weak=weak, limits=limits)
        return PythonOrNumpy(None, number, memory.value(is_numpy, scalar=True, weak=bool))
    if kind.python is int:
        return int_or_numpy(memory, value, is_numpy)
    return PythonOrNumpy(
        memory.value(cast(value, np.dtype(kind.python)), scalar=True, weak=kind.python),
        memory.value(value, scalar=True),
        memory.value(is_numpy, scalar=True, weak=bool),
    )
