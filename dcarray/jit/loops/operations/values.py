"""The values of a traced program.

Known Python values stand for themselves: None, bool, float, complex, str, tuples and lists, slices and
dtypes.  A Python int is an int or a dimension (`ir.nodes.Dim`): an affine function of loop variables.  Arrays
and run-time scalars are `Data`; the rest are `PublicObject`, `Function` and `Method`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.independence import window_at
from dcarray.ir.integers import Expression
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Window
from dcarray.ir.ops import const
from dcarray.ir.renaming import expression_at
from dcarray.ir.windows import same

from ..entry.entry_values import DType, Function, PublicObject
from ..entry.generators import Generator

Shape = tuple[Dim, ...]
Value = Any

#: Types of numbers: between two of them Python's arithmetic holds.
PYTHON = (bool, int, float, complex)


@dataclass(eq=False)
class Data:
    """A traced array or run-time scalar: a tracer, in JAX's terms.

    Attributes
    ----------
    expr : Expr
        The elements, over the domain ``shape``.
    window : Window or None
        The memory of the array, if it is stored.
    scalar : bool
        Whether it is a scalar, not an array without axes.
    weak : type or None
        The type of a Python scalar; None of NumPy's values.
    entry_name : str
        The name that was bound to this object when the loop began.
    text : str
        A Python expression for it, where it depends only on names bound when the loop begins.
    readonly : bool
        Whether NumPy does not let the program write through this view.
    views_in_numpy : bool
        Whether NumPy has a view here, which sees later writes, where this is a copy.
    part_of : (Data, Selection) or None
        If NumPy has a view here that may not lie in C order: the value, which is not stored, and the
        selection of it.
    limits : (int, int) or None
        The bounds of a Python int.
    """

    expr: Expr
    shape: Shape = ()
    window: Window | None = None
    scalar: bool = False
    weak: type | None = None
    entry_name: str = ""
    text: str = ""
    limits: tuple[int, int] | None = None
    readonly: bool = False
    views_in_numpy: bool = False
    part_of: tuple[Data, tuple[tuple[Index, ...], Shape]] | None = None

    @property
    def dtype(self) -> DType:
        return self.expr.dtype

    @property
    def kind(self) -> Any:
        """As `kind_of`."""
        return self.weak or self.dtype.char


@dataclass(frozen=True, eq=False)
class Masked:
    """A boolean selection ``full[mask]``, whose length is known at run time only.

    Attributes
    ----------
    full : Data
    mask : Data
        The mask, broadcast to the shape of ``full``.
    along : int
        The number of axes of the program's mask, which become the first axis of the selection.
    """

    full: Data
    mask: Data
    along: int

    @property
    def dtype(self) -> DType:
        return self.full.dtype


@dataclass(frozen=True, eq=False)
class Ragged:
    """A slice along one axis whose length is known at run time only.

    Attributes
    ----------
    count : Data
        Its length.
    span : tuple
        The slice's bounds; slices with equal bounds have the same length.
    at : callable
        ``at(position)`` returns an element; it may emit statements.
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


@dataclass(frozen=True, eq=False)
class RandomGenerator:
    """A random generator that the name ``name`` was bound to when the loop began; see `generators.GLOBAL`."""

    name: str
    kind: Generator


def _itself(k: Dim) -> Value:
    return k


@dataclass(frozen=True)
class ItemRange:
    """A ``range``, or another iterable with an item for each integer of a range."""

    start: Dim
    stop: Dim
    step: int
    item: Callable[[Dim], Value] = _itself

    @property
    def iterator(self) -> bool:
        """Whether it can be iterated only once, and forwards."""
        return self.item is not _itself


@dataclass(frozen=True, eq=False)
class PythonOrNumpy:
    """A scalar whose type, Python's or NumPy's, depends on the loops and conditions that have run.  The value
    is the same; where the type does not matter NumPy's is used.  ``is_numpy`` is a run-time bool for its
    type, if known. Or a Python number that is an int, in ``python``, or a float, in ``numpy``; or None, in
    ``python``, or a number, in ``numpy``."""

    python: Data | None
    numpy: Data
    is_numpy: Data | None = None


class Either(NamedTuple):
    """The `kind_of` a `PythonOrNumpy`: a Python type, and the character of a dtype or the type float."""

    python: type
    numpy: Any


INT_OR_FLOAT = Either(int, float)
NONE = type(None)
EITHER = {Either(float, "d"), Either(int, "d"), Either(int, "l"), INT_OR_FLOAT}
EITHER |= {Either(NONE, kind) for kind in (int, float, "l", "d")}
"""Of which types such a scalar may be: all values of the first that occur are values of the second; None has
no value."""


@dataclass(frozen=True, eq=False)
class RuntimeRange:
    """A range (see `ItemRange`) whose ends are known at run time only, or which a ``break`` may end.  Ends
    and step are Python ints; an unknown step is positive.  If the end is a `Stack`, it means the current
    length of that list."""

    start: Value
    stop: Value
    step: Value
    item: Callable[[Value], Value] = _itself


@dataclass(frozen=True, eq=False)
class NumberList:
    """A Python list of numbers, or of such lists, whose elements are an array's.

    Attributes
    ----------
    array : Data
    of_numpy : bool
        Whether the numbers are NumPy scalars.
    mixed : bool
        Whether they are Python's ints and floats (see `entry.lists`).
    origin : str
        Where the list was made: a name, or a place in the source.
    of_tuples : bool
        Whether its items are tuples of numbers.
    """

    array: Data
    of_numpy: bool = False
    mixed: bool = False
    origin: str = ""
    of_tuples: bool = False

    @property
    def kind(self) -> Any:
        """The `kind_of` its numbers."""
        if self.mixed:
            return INT_OR_FLOAT
        return self.array.dtype.char if self.of_numpy else _PYTHON_KINDS[self.array.dtype.kind]


_PYTHON_KINDS = {"b": bool, "i": int, "f": float, "c": complex}


@dataclass(frozen=True, eq=False)
class GrownList:
    """A Python list of the first elements of an array; their number is known at run time only."""

    items: NumberList
    count: Data


@dataclass(frozen=True, eq=False)
class Stack:
    """A Python list of numbers that grows and shrinks at its end.

    Attributes
    ----------
    items : NumberList
        Memory with room for more numbers than the list has.
    count : Window
        The memory that holds the number of items.
    is_typed : bool
        Whether the type of its items is known.
    """

    items: NumberList
    count: Window
    is_typed: bool


@dataclass(frozen=True, eq=False)
class RaggedList:
    """A Python list of lists of numbers whose lengths differ, or of which one occurs several times.

    Attributes
    ----------
    items : NumberList
        The numbers of all lists.
    starts, lengths : Data
        For each list, the index of its first number in ``items``, and how many numbers it has.
    name : str
        Its name when the loop began.
    """

    items: NumberList
    starts: Data
    lengths: Data
    name: str


@dataclass(frozen=True, eq=False)
class Row:
    """One of the lists of a `RaggedList`: some of its items."""

    items: NumberList
    start: Data
    length: Data


@dataclass(frozen=True, eq=False)
class RangeProduct:
    """The tuples of the integers of several ranges, the last of which moves fastest; of one, its integers.

    Attributes
    ----------
    ranges : tuple of ItemRange or RuntimeRange
    tuples : bool
        Whether the items of a single range are tuples, too.
    array : Data, optional
        If given, the items are the elements of this array at these indices.
    """

    ranges: tuple[ItemRange | RuntimeRange, ...]
    tuples: bool = False
    array: Data | None = None

    @property
    def iterator(self) -> bool:
        """Whether it can be iterated only once."""
        return self.tuples or self.array is not None


class Unbound:
    """The value of a name that may be unbound, or has no value that can be traced."""

    def __init__(self, reason: str, differs: bool = False) -> None:
        self.reason = reason
        self.differs = differs  # whether the type of the value depends on a condition


def is_int(value: Value) -> bool:
    """Whether a value is a Python int, and not a bool."""
    return type(value) is int or isinstance(value, Expression)


def is_array(value: Value) -> bool:
    return isinstance(value, Data) and not value.scalar


def is_number(value: Value) -> bool:
    """Whether a value is a number or an array."""
    return isinstance(value, Data | Masked | Expression) or type(value) in PYTHON


def kind_of(value: Value) -> Any:
    """Return a number's type for `dcarray.core.ufunc_loops.resolve`: a Python type or a dtype's character."""
    if isinstance(value, Data):
        return value.kind
    if isinstance(value, Masked):
        return value.dtype.char
    if isinstance(value, PythonOrNumpy):
        return Either(kind_of(value.python), kind_of(value.numpy))
    return int if isinstance(value, Expression) else type(value)


def shape_of(value: Value) -> Shape:
    return value.shape if isinstance(value, Data) else ()


def whole_window(array: str, shape: Shape) -> Window:
    return Window(array, shape, tuple(Index(0, 1, k) for k in range(len(shape))))


def numpy_scalar(value: Any) -> Data:
    """Return a NumPy scalar that is known when tracing, as a traced value."""
    return Data(const(value, value.dtype), scalar=True)


def is_view_of_any(value: Value, arrays: Set[str]) -> bool:
    """Whether a value, or an item of it, is one of these arrays or a view of one."""
    if isinstance(value, tuple | list):
        return any(is_view_of_any(part, arrays) for part in value)
    if isinstance(value, GrownList | RaggedList | Row | Stack):
        value = value.items
    if isinstance(value, NumberList):
        value = value.array
    return isinstance(value, Data) and value.window is not None and value.window.array in arrays


def identical(a: Value, b: Value) -> bool:
    """Whether tracing knows that two values are equal in every run."""
    if a is b:
        return True
    if isinstance(a, Data) and isinstance(b, Data):
        if a.window is not None and b.window is not None:
            return a.entry_name == b.entry_name and a.dtype == b.dtype and same(a.window, b.window)
        same_kind = a.window is b.window and a.scalar == b.scalar and a.weak == b.weak
        return same_kind and a.expr is b.expr and a.shape == b.shape
    if isinstance(a, NumberList) and isinstance(b, NumberList):
        return a.kind == b.kind and identical(a.array, b.array)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(identical, a, b))
    if is_int(a) and is_int(b):
        return bool(a == b)
    if type(a) is type(b) and type(a) in (bool, float, complex, str):
        return repr(a) == repr(b)
    return type(a) is type(b) and isinstance(a, np.dtype | PublicObject | Function) and bool(a == b)


# ---- values after loops -----------------------------------------------------------------------------
def with_last_values(value: Value, last: Mapping[str, Dim]) -> Value:
    """Return a value with loop variables replaced by their values in the last iteration."""
    if isinstance(value, Expression):
        return dims.substitute(value, last)
    if isinstance(value, tuple | list):
        return type(value)(with_last_values(v, last) for v in value)
    if isinstance(value, NumberList):
        return replace(value, array=with_last_values(value.array, last))
    if isinstance(value, GrownList):
        return GrownList(with_last_values(value.items, last), with_last_values(value.count, last))
    if isinstance(value, Row):
        return Row(value.items, with_last_values(value.start, last), with_last_values(value.length, last))
    if isinstance(value, Stack):
        return replace(value, items=with_last_values(value.items, last))
    if isinstance(value, Masked):
        return Masked(with_last_values(value.full, last), with_last_values(value.mask, last), value.along)
    if isinstance(value, Data):
        value.expr = expression_at(value.expr, last)
        value.shape = tuple(dims.substitute(n, last) for n in value.shape)
        if value.window is not None:
            value.window = window_at(value.window, last)
    return value


def cast(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype == dtype else Apply("cast", (expr,), dtype)
