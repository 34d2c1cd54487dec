"""What a traced program's values are.

Python's own values stand for themselves where they are known: None, bool, float, complex, str, tuples and
lists, slices and dtypes.  A Python int is an int or a dimension (`ir.nodes.Dim`): an affine function of loop
variables.  Arrays and the scalars that come at run time are `Data`; the rest are `PublicObject`, `Function`
and `Method`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Dim, Expr, Gather, Index, Load, Size, Window
from dcarray.ir.ops import const
from dcarray.ir.windows import rewrite

from .entry_values import DType

Shape = tuple[Dim, ...]
Value = Any

#: What is computed in Python's arithmetic when both operands are of it.
PYTHON = (bool, int, float, complex)
_DTYPES: dict[Any, DType] = {
    bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}  # fmt: skip


@dataclass(eq=False)
class Data:
    """An array, or a scalar that is not known before the loop runs.

    Attributes
    ----------
    expr : Expr
        The elements, over the domain ``shape``.
    window : Window or None
        The memory that the array is, if it has any of its own yet.
    scalar : bool
        Whether it is a scalar instead of an array without axes.
    weak : type or None
        Of a Python scalar, its type.
    entry : str
        The name that was bound to this very object when the loop began.
    text : str
        Python for it, where it depends only on names bound when the loop begins.
    readonly : bool
        Whether NumPy does not let the program write through this view.
    lent : bool
        Whether NumPy has a view here, which sees what is written later, where we have values.
    limits : (int, int) or None
        Of a Python int, the smallest and largest value that it can have.
    """

    expr: Expr
    shape: Shape = ()
    window: Window | None = None
    scalar: bool = False
    weak: type | None = None
    entry: str = ""
    text: str = ""
    limits: tuple[int, int] | None = None
    readonly: bool = False
    lent: bool = False

    @property
    def dtype(self) -> DType:
        return self.expr.dtype

    @property
    def kind(self) -> Any:
        """What `dcarray.core.ufunc_loops.resolve` wants to know."""
        return self.weak or self.dtype.char


@dataclass(frozen=True, eq=False)
class Chosen:
    """The elements of ``full`` that ``mask`` chooses, one after the other.

    Attributes
    ----------
    full : Data
    mask : Data
        Of the shape of ``full``.
    along : int
        How many axes the mask had in the program: these are one of the selection, its first.
    """

    full: Data
    mask: Data
    along: int

    @property
    def dtype(self) -> DType:
        return self.full.dtype


@dataclass(frozen=True, eq=False)
class Ragged:
    """A slice along one axis whose length only a run can tell.

    Attributes
    ----------
    count : Data
        Its length.
    span : tuple
        Equal for slices that surely have one length.
    at : callable
        Its element at a position, for which statements may have to be added.
    """

    dtype: DType
    count: Data
    span: tuple[Expr, Expr]
    at: Callable[[Expr], Expr]


@dataclass(frozen=True, eq=False)
class Method:
    """A method of an array or a ufunc, bound to it."""

    of: Value
    name: str


def _itself(k: Dim) -> Value:
    return k


@dataclass(frozen=True)
class Steps:
    """A ``range``, or what has an item for each integer of one."""

    start: Dim
    stop: Dim
    step: int
    item: Callable[[Dim], Value] = _itself

    @property
    def iterator(self) -> bool:
        """Does Python go through it only once, and forwards?"""
        return self.item is not _itself


@dataclass(frozen=True, eq=False)
class Either:
    """A scalar that is Python's if a loop has not run, and NumPy's if it has: what does not care takes the
    latter, which has the same value."""

    python: Data
    numpy: Data


@dataclass(frozen=True, eq=False)
class Span:
    """A ``range``, or what has an item for each integer of one, of which only a run can tell the ends, or
    where it is left.  These are ints of Python's."""

    start: Value
    stop: Value
    step: int
    item: Callable[[Value], Value] = _itself


class Missing:
    """The value of a name that the program may not have bound."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def is_int(value: Value) -> bool:
    """Is it a Python int (and no bool)?"""
    return type(value) is int or isinstance(value, sympy.Expr)


def is_array(value: Value) -> bool:
    return isinstance(value, Data) and not value.scalar


def is_number(value: Value) -> bool:
    """A number or an array of them, of whatever kind?"""
    return isinstance(value, Data | Chosen | sympy.Expr) or type(value) in PYTHON


def kind_of(value: Value) -> Any:
    """What `dcarray.core.ufunc_loops.resolve` wants to know of a number."""
    if isinstance(value, Data):
        return value.kind
    if isinstance(value, Chosen):
        return value.dtype.char
    return int if isinstance(value, sympy.Expr) else type(value)


def shape_of(value: Value) -> Shape:
    return value.shape if isinstance(value, Data) else ()


def weak_dtype(kind: type) -> DType:
    """The dtype in which a Python scalar is kept."""
    return _DTYPES[kind]


def whole(array: str, shape: Shape) -> Window:
    return Window(array, shape, tuple(Index(0, 1, k) for k in range(len(shape))))


def strong(value: Any) -> Data:
    """A NumPy scalar that is known."""
    return Data(const(value, value.dtype), scalar=True)


def lies_in(value: Value, arrays: Set[str]) -> bool:
    """Is a value, or a part of it, one of these arrays or a view of one?"""
    if isinstance(value, tuple | list):
        return any(lies_in(part, arrays) for part in value)
    return isinstance(value, Data) and value.window is not None and value.window.array in arrays


# ---- loop variables that end -----------------------------------------------------------------------
def settle(value: Value, last: Mapping[str, Dim]) -> Value:
    """The value with loop variables replaced by the values they ended with."""
    if isinstance(value, sympy.Expr):
        return dims.substitute(value, last)
    if isinstance(value, tuple | list):
        return type(value)(settle(v, last) for v in value)
    if isinstance(value, Chosen):
        return Chosen(settle(value.full, last), settle(value.mask, last), value.along)
    if isinstance(value, Data):
        value.expr = settle_expr(value.expr, last)
        value.shape = tuple(dims.substitute(n, last) for n in value.shape)
        if value.window is not None:
            value.window = settle_window(value.window, last)
    return value


def settle_window(window: Window, last: Mapping[str, Dim]) -> Window:
    return Window(
        window.array,
        tuple(dims.substitute(n, last) for n in window.shape),
        tuple(
            Index(dims.substitute(ix.offset, last), dims.substitute(ix.stride, last), ix.axis)
            for ix in window.index
        ),
    )


def settle_expr(expr: Expr, last: Mapping[str, Dim]) -> Expr:
    def fn(node: Expr) -> Expr:
        if isinstance(node, Load):
            return Load(settle_window(node.window, last), node.dtype)
        if isinstance(node, Gather):
            return Gather(settle_window(node.window, last), node.index, node.dtype)
        return Size(dims.substitute(node.dim, last), node.dtype) if isinstance(node, Size) else node

    return rewrite(expr, fn)


def cast(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype == dtype else Apply("cast", (expr,), dtype)


def public(name: str) -> Any:
    """The object with a public name, None if there is none."""
    module, _, rest = name.partition(".")
    found: Any = {"numpy": np, "builtins": builtins, "math": math}.get(module)
    for part in rest.split(".") if rest else ():
        found = getattr(found, part, None)
    return found
