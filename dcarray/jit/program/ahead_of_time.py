"""Programs as functions of a library for C."""

from __future__ import annotations

import ctypes
import math
from contextlib import suppress
from functools import cache
from inspect import Parameter as Argument
from inspect import signature
from types import FunctionType

from dcarray.core.errors import ProgramError
from dcarray.lowering.aot.header import c_name
from dcarray.lowering.aot.interface import Function, Parameter, Refused, Result

from ..loops.sites.loop_requests import is_checked
from .annotations import ScalarAnnotation
from .description import describe
from .region import TracedProgram, trace_program

__all__ = ["library_function", "located"]


def library_function(function: FunctionType) -> Function:
    """Return a function with annotated types as a function for a C library.

    Raises
    ------
    ProgramError
        If it does not compile, with file and line.
    """
    try:
        _check_names(function)
        description = describe(function)
        traced = trace_program(description)
        kinds = {
            name: annotation.kind
            for name, annotation in description.parameters
            if isinstance(annotation, ScalarAnnotation)
        }
        return _function(function, traced, kinds)
    except Refused as error:
        raise located(error, function) from error


def located(error: Refused, function: FunctionType) -> ProgramError:
    """Return the error for a function that cannot be compiled ahead of time, with its file and line."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    where, _, number = error.place.rpartition(":")
    if where and number.isdecimal():
        file, line = where, int(number)
    return ProgramError(f"{function.__name__} cannot be compiled ahead of time: {error.reason}", file, line)


def _check_names(function: FunctionType) -> None:
    name = function.__name__
    if c_name(name) != name or name.startswith("_") or name == "main":
        raise Refused(f"the name {name} cannot be that of a function in C")
    if any(hasattr(library, name) for library in _libraries()):
        raise Refused(f"the name {name} is that of a function of the C library")
    for argument in signature(function).parameters:
        c_name(argument)


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    libraries = []
    for name in ("libc.so.6", "libm.so.6"):
        with suppress(OSError):
            libraries.append(ctypes.CDLL(name))
    return tuple(libraries)


def _function(function: FunctionType, traced: TracedProgram, kinds: dict[str, type | None]) -> Function:
    spec = signature(function).parameters
    parameters = tuple(
        [
            Parameter(p.name, p.kind, p.dtype, p.shape, p.symbol, p.written, _default(spec[p.name].default))  # type: ignore[arg-type]
            for p in traced.parameters
        ]
    )
    integers = {p.symbol for p in parameters if p.kind == "size"}
    sizes = tuple([s.name for s in traced.region.symbols if s.name not in integers])
    names = {p.name for p in parameters}
    inputs = [text if text in names else (_number(text),) for text in traced.inputs]
    results = tuple(
        [
            Result(r.kind, r.name, bool(r.weak), r.value)  # type: ignore[arg-type]
            for r in traced.results
        ]
    )
    for r in results:
        if r.kind == "value" and not isinstance(r.value, int | float | complex | bool | type(None)):
            raise Refused(f"it returns {r.value!r}, which is not a number")
        if r.kind == "alias" and kinds.get(r.name, 0) != 0:
            raise Refused(f"it returns its argument {r.name}")
    keywords = sum(p.kind is Argument.KEYWORD_ONLY for p in spec.values())
    return Function(
        function.__name__, traced.region, sizes, parameters, tuple(inputs), results,
        traced.returns == "tuple", is_checked(traced.region), keywords,
    )  # fmt: skip


def _default(value: object) -> str:
    if value is Argument.empty:
        return ""
    if type(value) in (int, float, complex, bool) and math.isfinite(abs(value)):  # type: ignore[arg-type]
        return repr(value)
    raise Refused(f"the default {value!r} of an argument is not a finite number")


def _number(text: str) -> object:
    """Return the value of a Python literal that the tracer wrote."""
    names = {"__builtins__": {}, "inf": math.inf, "nan": math.nan}
    return eval(text, names)  # text of the tracer
