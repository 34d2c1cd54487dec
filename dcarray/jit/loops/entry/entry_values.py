"""Descriptions of a loop and of its names' values at entry, as plain data that another process can read.

The planner sees nothing else of the program: equal descriptions have equal plans, so that a description is
the key of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dcarray.core.fp_bits import RAISING
from dcarray.ir.records import record

from .generators import Generator, GlobalGenerator
from .sizes import SymbolicSize

DType = np.dtype[Any]


@record(frozen=True, slots=True)
class ArrayType:
    """The dtype, shape and strides of an array, wrapped or plain.  ``strides`` count elements, and are empty
    for an array in C order with symbolic sizes.  Arrays of different names share no memory, except with
    ``same``, another name of the same array."""

    dtype: DType
    shape: tuple[int | SymbolicSize, ...]
    strides: tuple[int, ...]
    writeable: bool = True
    same: str | None = None


@record(frozen=True, slots=True)
class ListType:
    """A list of numbers of one type: floats (float64), ints (int64), bools or complex numbers.  It may be
    nested: lists of one length on each level, or of different ones (``ragged``), or tuples of one length.
    ``mixed``: floats and ints together (see `entry.lists`).  No list occurs twice in it."""

    dtype: DType
    shape: tuple[int | SymbolicSize, ...]
    mixed: bool = False
    ragged: bool = False
    of_tuples: bool = False


CHARACTERS = np.dtype(np.uint32)
"""The dtype of the `ListType` of a string, which is given by its code points (see `entry.texts`)."""


@record(frozen=True, slots=True)
class ScalarType:
    """A scalar that is an argument of the compiled loop.  ``weak``: a Python float or complex, which takes
    the dtype of the other operand; otherwise a NumPy scalar."""

    dtype: DType
    weak: bool = False


@record(frozen=True, slots=True, eq=False)
class Constant:
    """A value compiled into the plan: an int, bool, str, None, a dtype, or a tuple, list or dictionary of
    `EntryValue`, ints of which may be symbolic.  Floats and complex numbers are constants only as globals and
    defaults of functions.  Equal constants have the same type: 1, True and 1.0 differ, as do 0.0 and -0.0."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@record(frozen=True, slots=True)
class PublicObject:
    """A module, function or class with a public name: ``numpy``, ``numpy.add``, ``numpy.linalg``,
    ``builtins.range``, ``math.sqrt``.  dcarray's counterparts have NumPy's names."""

    name: str


@record(frozen=True, slots=True)
class Function:
    """A Python function of the program: its source (the ``def``, without indentation) and the values of its
    global names and defaults."""

    name: str
    source: str
    file: str
    line: int
    names: tuple[tuple[str, EntryValue], ...] = ()
    defaults: tuple[tuple[str, EntryValue], ...] = ()


@record(frozen=True, slots=True)
class Recursion:
    """A global name that is bound to the function itself, or to one that calls it (recursion)."""

    name: str
    file: str
    line: int

    def names(self, function: Function) -> bool:
        """Whether ``function`` is the one to which the recursive name is bound."""
        return (self.name, self.file, self.line) == (function.name, function.file, function.line)


def calls_itself(function: Function) -> bool:
    """Whether a function of the program calls itself, or functions that call it."""
    return any(one.names(function) for one in _inside(function))


def calls_others(function: Function) -> bool:
    """Whether a function calls another one that calls it back."""
    return not all(one.names(function) for one in _inside(function))


def _inside(function: Function) -> Iterator[Recursion]:
    for _, value in function.names:
        if isinstance(value, Recursion):
            yield value
        elif isinstance(value, Function):
            yield from (one for one in _inside(value) if not one.names(value))


class DeviceGuard(NamedTuple):
    """The guard of an array on a device: the device, and the array's dtype and shape.  A plan gets the
    elements in C order: those of a ``part`` of another array, or of a transpose, in a copy."""

    device: Any
    dtype: DType
    shape: tuple[int, ...]
    part: bool = False


EntryValue = (
    ArrayType | ListType | ScalarType | Constant | PublicObject | Function | Recursion | SymbolicSize
    | Generator | GlobalGenerator
)  # fmt: skip


@record(frozen=True, slots=True)
class LoopDescription:
    """Statements to be compiled: their source, and the values of the names that they read.

    Attributes
    ----------
    source : str
        A ``for`` or ``while`` statement, or several others, without indentation.
    file, line
        Its place in the program, for messages.
    names : tuple of pairs
        The entry values of the names that it reads and that are bound when it begins.
    live : frozenset of str
        The names that it binds and that may be read afterwards.
    watched : int
        The floating-point exceptions that are not ignored, as bits (`dcarray.core.fp_attribution`).
    resumed : bool
        Whether a loop over a range begins in the middle: at the integer `names.START`, a symbol.
    symbols : tuple of (str, int)
        The sizes that are arguments of the compiled code: what their names in `SymbolicSize` are, and the
        least value of each.
    flagless : bool
        Whether it is for a device, which knows of no floating-point exceptions: what raises one of Python's
        is found by checks alone.
    by_identity : bool
        Whether results, and items of lists, may not be new numbers or lists in place of objects of before.
    asked : bool
        Whether the program has computed the condition of the ``while``, and found it true.
    """

    source: str
    file: str
    line: int
    names: tuple[tuple[str, EntryValue], ...]
    live: frozenset[str]
    watched: int = RAISING
    resumed: bool = False
    symbols: tuple[tuple[str, int], ...] = ()
    flagless: bool = False
    by_identity: bool = False
    asked: bool = False


@record(frozen=True, slots=True)
class Result:
    """The object that a name is bound to after the statements.

    ``kind`` is "array" (``name`` is an "out" array of the region: new memory), "alias" (the object that the
    name ``name`` was bound to when the loop began), "scalar" (``name`` is an "out" array of the region
    without axes; ``weak`` as in `ScalarType`), "either" (the same: if the "out" array ``value[1]`` holds True
    a NumPy scalar, or with ``weak`` a float, else of Python's type ``value[0]``), "value" (``value`` itself,
    an int say), "tuple" (``value``: a tuple of results), "list" (a new list of the elements of the "out"
    array ``name``, or of as many of them as the "out" array ``value`` says; ``weak`` as in `ScalarType`),
    "mixed list" (the same, of Python's floats and ints; ``of_tuples``: a list of tuples of these), or
    "view" (of the object of another result, ``value[0]``: basic indexing with ``value[1]``, and the order of
    axes ``value[2]``)."""

    kind: str
    name: str = ""
    weak: bool = False
    value: Any = None
    of_tuples: bool = False

    def is_new(self) -> bool:
        """Whether it is a new object, or has one, where the statements may have handed on one that existed:
        a number, or a list."""
        if self.kind == "tuple":
            return any(one.is_new() for one in self.value)
        single = self.kind == "value" and (self.value is None or type(self.value) is bool)
        return not single and self.kind not in ("alias", "array", "view")


@record(frozen=True, slots=True)
class TracedLoop:
    """A loop as a region, with its inputs and results.

    ``inputs`` has for each array of the region with role "in" or "inout", in order, the name of its value, or
    for an array without axes a Python expression of scalars' names, like ``"(2.0 * dx)"``, to be evaluated
    when the loop begins.  If that raises, the loop has to run in Python.  ``results`` are the bindings after
    the loop: all of ``LoopDescription.live`` that the loop binds, if it runs at least once (the site has
    found the condition of a ``while`` true).  ``may_raise`` says whether the loop may raise an exception
    other than NumPy's floating-point ones.  ``symbols`` are those of the region, with what is their
    value: an int's name, or a length as ``u.shape[0]``.  ``polls`` says whether a loop may end by what others
    write to memory.

    Python's floats are computed as float64: where the region raises the floating-point flags of a division by
    zero, an overflow or an invalid operation, Python may raise an exception, and the loop has to run in
    Python, from the values before it."""

    region: Any
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]
    may_raise: bool
    symbols: tuple[tuple[str, str], ...] = ()
    polls: bool = False
