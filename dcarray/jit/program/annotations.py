"""Types of programs' arguments: ``dc.types.float64[N, N]``, scalars, and the annotations of a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any

import numpy as np

from dcarray.core.errors import ProgramError
from dcarray.core.store import COMPILED
from dcarray.ir.records import record

from ..loops.entry.sizes import SymbolicSize

__all__ = [
    "Annotation", "ArrayAnnotation", "ElementType", "PassedAnnotation", "ScalarAnnotation",
    "annotation_of", "evaluated", "sizes_of",
]  # fmt: skip

DType = np.dtype[Any]
Size = int | SymbolicSize


@record(frozen=True, slots=True)
class ArrayAnnotation:
    """The type of an array argument.

    Attributes
    ----------
    dtype : numpy.dtype
    shape : tuple of int or SymbolicSize
    as_list : bool
        Whether a call passed a list, or nested lists, in place of an array.
    """

    dtype: DType
    shape: tuple[Size, ...]
    as_list: bool = False

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


@record(frozen=True, slots=True)
class ScalarAnnotation:
    """The type of a scalar argument.

    Attributes
    ----------
    dtype : numpy.dtype
    kind : type or None
        The Python type of the argument; None for a NumPy scalar.  The code may be specialised for the value
        of an `int`: it may be a size, an index or a number of iterations.
    """

    dtype: DType
    kind: type | None

    def __str__(self) -> str:
        return self.kind.__name__ if self.kind else self.dtype.name


@record(frozen=True, slots=True)
class PassedAnnotation:
    """The type of an argument that a program that sends messages only passes on: a class, or several."""

    kind: Any

    def __str__(self) -> str:
        return self.kind.__name__ if isinstance(self.kind, type) else str(self.kind)


Annotation = ArrayAnnotation | ScalarAnnotation


class ElementType:
    """A dtype in annotations, of which subscripts make types of arrays: ``float64[N, M]``.

    Parameters
    ----------
    dtype : numpy.dtype
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __getitem__(self, shape: Any) -> ArrayAnnotation:
        """Return the type of arrays of a shape.

        Raises
        ------
        TypeError, ValueError
            If an axis is no integer, no symbol and no sum of these, or is negative.
        """
        axes = shape if isinstance(shape, tuple) else (shape,)
        for n in axes:
            if type(n) is not int and not isinstance(n, SymbolicSize):
                raise TypeError(
                    f"a size is an int or made of dcarray.symbol(), not {n!r} of type {type(n).__name__}"
                )
            if type(n) is int and n < 0:
                raise ValueError(f"a size is not negative: {n}")
        return ArrayAnnotation(self.dtype, axes)

    def __repr__(self) -> str:
        return f"dcarray.types.{self.dtype.name}"


_PYTHON: Mapping[Any, DType] = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}


def annotation_of(value: Any) -> Annotation | None:
    """Return the type that an annotation means; None if it does not mean a type."""
    if isinstance(value, ArrayAnnotation | ScalarAnnotation):
        return value
    if isinstance(value, type) and value in _PYTHON:
        return ScalarAnnotation(_PYTHON[value], value)
    if isinstance(value, ElementType):
        value = value.dtype.type
    if isinstance(value, type) and issubclass(value, np.generic):
        dtype = np.dtype(value)
        if dtype.char in COMPILED:
            return ScalarAnnotation(dtype, int if dtype == np.int64 else None)
    return None


def argument_names(spec: ast.arguments) -> Iterator[str]:
    """Yield the names of a function's arguments, without those that take any number."""
    return (argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))


def evaluated(
    spec: ast.arguments, names: Mapping[str, Any], file: str
) -> Iterator[tuple[str, Annotation | None, int]]:
    """Yield for each parameter its name, type (None: not annotated) and line.

    Raises
    ------
    ProgramError
        If an annotation cannot be evaluated, or means no type.
    """
    for name, annotation, line in evaluated_or_passed(spec, names, file):
        if isinstance(annotation, PassedAnnotation):
            raise ProgramError(f"the annotation {annotation} of {name} is not a program's type", file, line)
        yield name, annotation, line


def evaluated_or_passed(
    spec: ast.arguments, names: Mapping[str, Any], file: str
) -> Iterator[tuple[str, Annotation | PassedAnnotation | None, int]]:
    """Yield the same as `evaluated`, but accept any other class for arguments that are only passed on.

    Annotations are read from the source, where ``np.float64[N, N]`` means the array type even though NumPy's
    class does not support it at run time; that needs ``from __future__ import annotations``.
    """
    for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        node, line = argument.annotation, argument.lineno
        if node is None:
            yield argument.arg, None, line
            continue
        text = ast.unparse(node)
        try:
            value = _value(node, names)
        except Exception as error:
            reason = f"the annotation {text} of {argument.arg} fails: {type(error).__name__}: {error}"
            raise ProgramError(reason, file, line) from error
        annotation = annotation_of(value)
        if annotation is None and isinstance(value, type | UnionType):
            yield argument.arg, PassedAnnotation(value), line
            continue
        if annotation is None:
            raise ProgramError(f"the annotation {text} of {argument.arg} is not a program's type", file, line)
        yield argument.arg, annotation, line


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _value(ast.parse(node.value, mode="eval").body, names)
    if isinstance(node, ast.Subscript):
        owner = _plain_value(node.value, names)
        if isinstance(owner, type) and issubclass(owner, np.generic) and np.dtype(owner).char in COMPILED:
            return ElementType(np.dtype(owner))[_plain_value(node.slice, names)]
    return _plain_value(node, names)


def _plain_value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    expression = ast.fix_missing_locations(ast.Expression(node))
    code: Any = compile(expression, "<annotation>", "eval")
    lookup: Callable[..., Any] = eval
    return lookup(code, dict(names))


def sizes_of(
    program: str, arrays: Sequence[tuple[str, ArrayAnnotation, Any]], given: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the values of the symbols in the types of arrays.

    Parameters
    ----------
    program : str
        Its name, for messages.
    arrays : sequence of (str, ArrayAnnotation, array)
        The name of an argument, its type, and an array of its number of axes.
    given : mapping of str to int, optional
        Values of symbols that are known already.

    Raises
    ------
    ValueError
        If two sizes contradict each other.
    """
    sizes = dict(given or {})
    for _, annotation, value in arrays:
        for n, size in zip(annotation.shape, value.shape, strict=True):
            if isinstance(n, SymbolicSize) and len(n.factors) == 1 and n.factors[0][1] == 1:
                sizes.setdefault(n.names[0], size - n.constant)
    for name, annotation, value in arrays:
        expected = tuple([n.value(sizes) if isinstance(n, SymbolicSize) else n for n in annotation.shape])
        if expected != tuple(value.shape) or any(n < 0 for n in sizes.values()):
            known = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
            raise ValueError(
                f"{program}(): the argument {name} is expected to be {annotation}, of shape {expected}"
                f"{f' with {known}' if known else ''}, not of shape {tuple(value.shape)}"
            )
    return sizes
