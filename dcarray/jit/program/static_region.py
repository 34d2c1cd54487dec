"""The region of a function for one call: all sizes are numbers, integer arguments are constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.errors import ProgramError
from dcarray.ir.nodes import Region
from dcarray.ir.numpy_views import NDArray
from dcarray.ir.records import record

from ..loops.entry.sizes import SymbolicSize
from ..loops.syntax.originals import original
from .annotations import Annotation, ArrayAnnotation, ScalarAnnotation, evaluated, sizes_of
from .description import python_function, source_tree
from .region import TracedProgram, region_of

__all__ = ["StaticRegion", "located", "static_region"]

_MISSING = object()


@record(frozen=True, slots=True)
class StaticRegion:
    """A function as a region without symbols, and the values of its inputs.

    Attributes
    ----------
    name : str
        The function's.
    region : Region
    memory : mapping of str to numpy.ndarray
        The values of the region's input arrays, which share no memory with the arguments.
    traced : TracedProgram
        The region with what its arrays are as arguments and results.
    """

    name: str
    region: Region
    memory: Mapping[str, NDArray]
    traced: TracedProgram


def static_region(
    function: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> StaticRegion:
    """Return the region of a function for one call.

    Parameters
    ----------
    function : function, or what `dcarray.program` or `dcarray.accelerate` made of one
    args, kwargs
        Arguments: arrays give shapes, dtypes and values, integers are constants.  An array or real number
        that is not given has the type of its annotation and random values.
    sizes : mapping of str to int, optional
        Values of the symbols of annotations.

    Raises
    ------
    TypeError
        If ``function`` is none, or an argument is no array and no number.
    ValueError
        If a size or an argument is not known, or sizes contradict each other.
    ProgramError
        If the function does not compile, with file and line.
    """
    written = python_function(function)
    file, line = written.__code__.co_filename, written.__code__.co_firstlineno
    values = _arguments(written, args, kwargs or {})
    types = _types(written, any(value is _MISSING for value in values.values()))
    arrays = [
        (name, annotation, value)
        for name, value in values.items()
        if isinstance(annotation := types.get(name), ArrayAnnotation)
        and isinstance(value, np.ndarray | ndarray)
        and len(value.shape) == len(annotation.shape)
    ]
    known = sizes_of(written.__name__, arrays, sizes)
    rng = np.random.default_rng(0)
    constants, annotations, given = dict(known), {}, {}
    for name, value in values.items():
        if value is _MISSING:
            value = _example(name, types.get(name), known, rng, f"{file}:{line}: {written.__name__}()")
        if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_):
            constants[name] = int(value)
        else:
            annotations[name] = _annotation(name, value)
            given[name] = np.array(value)
    traced = region_of(written, annotations, constants)
    region, names = traced.region, {**given, "inf": math.inf, "nan": math.nan}
    if region.symbols or any(guard is False for guard in region.guards):
        raise ProgramError("the function raises an error for these sizes", file, line)
    inputs = [array for array in region.arrays if array.role in ("in", "inout")]
    memory = {
        array.name: np.array(eval(text, {"__builtins__": {}}, names), array.dtype)  # text of the tracer
        for array, text in zip(inputs, traced.inputs, strict=True)
    }
    return StaticRegion(written.__name__, region, memory, traced)


def located(function: Any) -> tuple[str, int]:
    """Return the file and first line of a Python function; of a program or an accelerated function, those of
    the function that it compiles."""
    code = original(python_function(function))
    return code.co_filename, code.co_firstlineno


def _types(function: FunctionType, needed: bool) -> dict[str, Annotation]:
    """The annotations of a function that mean types; unless they are needed, others are ignored."""
    types = {}
    try:
        tree, names = source_tree(function)
        for name, annotation, _ in evaluated(tree.args, names, function.__code__.co_filename):
            if annotation is not None:
                types[name] = annotation
    except ProgramError:
        if needed:
            raise
    return types


def _arguments(function: FunctionType, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments by name; `_MISSING` where there is neither a value nor a default."""
    spec = signature(function)
    bound = spec.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return {name: bound.arguments.get(name, _MISSING) for name in spec.parameters}


def _annotation(name: str, value: Any) -> Annotation:
    """The type of an argument."""
    if isinstance(value, np.ndarray | ndarray):
        return ArrayAnnotation(value.dtype, tuple(value.shape))
    if isinstance(value, np.generic):
        return ScalarAnnotation(value.dtype, None)
    if type(value) in (bool, float, complex):
        return ScalarAnnotation(np.dtype(type(value)), type(value))
    raise TypeError(f"the argument {name} is neither an array nor a number: {type(value).__name__}")


def _example(
    name: str, annotation: Annotation | None, sizes: Mapping[str, int], rng: np.random.Generator, where: str
) -> Any:
    """A value for an argument that has a type."""
    if annotation is None:
        raise ValueError(
            f"{where}: the argument {name} has neither a value nor a type: give an example of it"
        )
    if isinstance(annotation, ScalarAnnotation):
        if annotation.dtype.kind in "iu":
            raise ValueError(f"{where}: the value of the argument {name} has to be given: it is a constant")
        number = annotation.dtype.type(rng.random())
        return number if annotation.kind is None else annotation.kind(number)
    shape = []
    for n in annotation.shape:
        missing = [one for one in n.names if one not in sizes] if isinstance(n, SymbolicSize) else []
        if missing:
            raise ValueError(
                f"{where}: the argument {name} is {annotation}, and the size {missing[0]} is not known: "
                f"buffers on the chip are static, so give it a value, or an example of {name}"
            )
        shape.append(n.value(sizes) if isinstance(n, SymbolicSize) else n)
    if annotation.dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(annotation.dtype)
    if annotation.dtype.kind == "b":
        return rng.random(shape) < 0.5
    return rng.random(shape).astype(annotation.dtype)
