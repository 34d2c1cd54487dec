"""From a program to a region over its symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from dcarray.core.errors import ProgramError, Untraceable
from dcarray.ir import dims
from dcarray.ir.analysis.effects import reads, writes
from dcarray.ir.nodes import Array, Dim, Region, Symbol
from dcarray.ir.records import record
from dcarray.ir.sizes import with_equal_sizes

from ..loops.entry.entry_values import Function, LoopDescription, Result
from ..loops.entry.sizes import LARGEST, SymbolicSize
from ..loops.operations.memory import Memory
from ..loops.operations.scope import Scope
from ..loops.operations.values import (
    PYTHON,
    Data,
    GrownList,
    NumberList,
    PythonOrNumpy,
    Value,
    is_array,
    is_int,
    is_number,
    kind_of,
    whole_window,
)
from ..loops.tracing.expressions import Frame
from ..loops.tracing.trace import Tracer, may_not_end
from .annotations import Annotation, ArrayAnnotation, ScalarAnnotation
from .description import Description, describe

__all__ = ["Parameter", "TracedProgram", "region_of", "trace_program"]

_INT = np.dtype(np.int64)


@record(frozen=True, slots=True)
class Parameter:
    """A program's argument, in the form that its region has for it.

    Attributes
    ----------
    name : str
    kind : str
        "array"; "scalar": an array of the region without axes; or "size": a Python int, which is a symbol of
        the region.
    dtype : numpy.dtype
        The dtype of the argument; int64 for an int.
    shape : tuple of Dim
    symbol : str
        The name of its array or symbol in the region; empty if the region does not use it.
    read, written : bool
        Whether the region reads elements that it was given, and whether it writes elements.
    """

    name: str
    kind: str
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...]
    symbol: str
    read: bool
    written: bool


@record(frozen=True, slots=True)
class TracedProgram:
    """A program as a region.

    Attributes
    ----------
    region : Region
        Its symbols are those of the annotations, in the order in which they occur there, and then the
        arguments that are Python ints.  Its guards have to hold, besides the annotations, for it to serve a
        call: elsewhere the function may raise an error, or do something else.
    parameters : tuple of Parameter
        The arguments in order.
    inputs : tuple of str
        For each array of the region with role "in" or "inout", in order, the name of its argument, or for an
        array without axes a Python literal, its value.
    results : tuple of Result
        What is returned, as `dcarray.jit.loops.entry.entry_values.Result` says: new arrays and scalars are
        arrays of the region with role "out", of the shape that is declared there.
    returns : str
        "none", "one", or "tuple" where several are returned.
    may_raise : bool
        Whether it may raise other exceptions than NumPy's floating-point ones.
    """

    region: Region
    parameters: tuple[Parameter, ...]
    inputs: tuple[str, ...]
    results: tuple[Result, ...]
    returns: str
    may_raise: bool


def region_of(
    function: FunctionType,
    annotations: Mapping[str, Any] | None = None,
    constants: Mapping[str, int] | None = None,
) -> TracedProgram:
    """Return the region of a function over the symbolic sizes of its arguments.

    Parameters
    ----------
    function : function
    annotations : mapping of str to annotation, optional
        The types of its arguments, as ``{"A": dcarray.types.float64[N, N]}``, instead of its annotations.
    constants : mapping of str to int, optional
        Values of integer arguments, which then are no symbols of the region, and of symbols that the function
        uses and no annotation does.

    Raises
    ------
    ProgramError
        If it does not compile, with file and line.
    """
    return trace_program(describe(function, annotations, constants))


def trace_program(description: Description, flagless: bool = False) -> TracedProgram:
    """Return the region of a described program; ``flagless`` as in `LoopDescription`.

    Raises
    ------
    ProgramError
        If it does not compile, with file and line.
    """
    tracer = _ProgramTracer(description, flagless)
    try:
        return tracer.run_program()
    except Untraceable as error:
        reason = ProgramError(error.reason, tracer.memory.file, error.line)
    # names may have their types, or values at all, only if loops run
    tracer = _ProgramTracer(description, flagless)
    tracer.scope.loops_run = True
    try:
        return tracer.run_program()
    except Untraceable:
        raise reason from None


class _ProgramTracer(Tracer):
    """The tracer of a program."""

    def __init__(self, description: Description, flagless: bool) -> None:
        function = description.function
        self._description = description
        self._called = dict(description.called)
        limits: dict[str, tuple[int, int]] = {}
        for _, annotation in description.parameters:
            if isinstance(annotation, ArrayAnnotation):
                for n in annotation.shape:
                    limits.update(dict.fromkeys(n.names if isinstance(n, SymbolicSize) else (), (0, LARGEST)))
        # arguments that are Python ints are symbols, too
        self._ints: dict[str, str] = {}
        arrays = {name for name, a in description.parameters if isinstance(a, ArrayAnnotation)}
        for name, annotation in description.parameters:
            if isinstance(annotation, ScalarAnnotation) and annotation.kind is int:
                free = Memory(Scope(0, {**limits, **dict.fromkeys(arrays, (0, 0))}), "").name(name)
                self._ints[name] = free
                limits[free] = -LARGEST, LARGEST
        memory = Memory(Scope(function.line, limits), function.file, flagless)
        loop = LoopDescription(
            function.source, function.file, function.line, (), frozenset(), flagless=flagless
        )
        super().__init__(loop, memory)
        self.sizes.update(description.sizes)
        self.sizes.update((name, dims.symbol(name)) for name in limits if name not in self._ints.values())
        self.symbols = tuple(Symbol(name, low) for name, (low, _) in limits.items())

    # ---- from arguments to results -------------------------------------------------------------------
    def run_program(self) -> TracedProgram:
        function, parameters = self._description.function, self._description.parameters
        if may_not_end(function.source, function.names):
            self.memory.track_checks()
        values: dict[str, Value] = {name: self._argument(name, annotation) for name, annotation in parameters}
        values.update(self._description.constants)
        frame = Frame(dict(values), {}, function.file, function.line)
        returned = self._inlined(function, [], dict(values), frame)
        self.memory.file, self.scope.line = function.file, function.line
        several = isinstance(returned, tuple)
        items = () if returned is None else returned if several else (returned,)
        returns = "none" if returned is None else "tuple" if several else "one"
        results = tuple([self._returned(f"r{k}", item) for k, item in enumerate(items)])
        self._check_aliases(results)
        region, inputs = self.region()
        described = tuple([self._parameter(name, annotation, region) for name, annotation in parameters])
        return TracedProgram(region, described, inputs, results, returns, self.memory.may_raise)

    def _region(self) -> tuple[Region, tuple[str, ...]]:
        region, inputs = super()._region()
        return with_equal_sizes(region), inputs

    def _argument(self, name: str, annotation: Annotation) -> Value:
        """Return the traced value of an argument."""
        if isinstance(annotation, ArrayAnnotation):
            shape = tuple([self._size(n) if isinstance(n, SymbolicSize) else n for n in annotation.shape])
            array = self.memory.name(name)
            self.memory.declare(Array(array, annotation.dtype, shape, "in"))
            self.memory.inputs[array] = name
            view = self.memory.view(whole_window(array, shape), annotation.dtype, name)
            return NumberList(view) if annotation.as_list else view
        if annotation.kind is int:
            return dims.symbol(self._ints[name], -LARGEST)
        scalar = self.memory.entry_scalar(name, annotation.dtype, annotation.kind)
        scalar.text = ""  # what depends on it is part of the region, and no Python expression beside it
        return scalar

    def _parameter(self, name: str, annotation: Annotation, region: Region) -> Parameter:
        if isinstance(annotation, ScalarAnnotation) and annotation.kind is int:
            return Parameter(name, "size", _INT, (), self._ints[name], True, False)
        names = [a for a, text in self.memory.inputs.items() if text == name]
        used = [a for a in region.arrays if a.name in names]
        array = self.memory.arrays[names[0]]
        read = any(w.array in names for stmt in region.body for w in reads(stmt))
        written = any(w.array in names for stmt in region.body for w in writes(stmt))
        kind = "array" if isinstance(annotation, ArrayAnnotation) else "scalar"
        return Parameter(name, kind, array.dtype, array.shape, names[0] if used else "", read, written)

    def _returned(self, name: str, value: Value) -> Result:
        """Return the description of the returned value."""
        if isinstance(value, tuple | list):
            raise self.scope.fail("a tuple in a tuple or a list is returned")
        if isinstance(value, PythonOrNumpy):
            raise self.scope.fail("the type of a result depends on a condition")
        if is_int(value) and type(value) is not int:
            value = self.memory.value(self.math.expr(value, _INT), scalar=True, weak=int)
        if is_array(value):
            value = self.memory.array(value, name)
            array = self.memory.arrays[value.window.array]
            if array.role == "temp" and value.window != whole_window(array.name, array.shape):
                value = self.memory.copy(value, name)  # of an array that nobody else sees
        return self._result(name, value)

    def _result_list(self, name: str, value: NumberList | GrownList) -> Result:
        raise self.scope.fail("a list is returned")

    def _check_aliases(self, results: tuple[Result, ...]) -> None:
        """Refuse results that share memory in NumPy but would be copies in compiled code."""
        if any(one.kind == "view" for one in results):
            raise self.scope.fail("a view is returned")
        arrays = [one.name for one in results if one.kind == "array"]
        if len(set(arrays)) < len(arrays):
            raise self.scope.fail("an array is returned twice")

    # ---- programs that it calls ----------------------------------------------------------------------
    def run(self, function: Function, args: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        parameters = self._called.get(function)
        if parameters is None:
            return self._inlined(function, args, named, frame)
        names = [name for name, _ in parameters]
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or not named.keys() <= set(names) - given.keys():
            raise self.scope.fail(f"arguments of {function.name} that are not understood")
        given.update(named)
        for name, value in function.defaults:
            given.setdefault(name, self.constant(value))
        outer, self.sizes = self.sizes, {}
        try:
            for name, annotation in sorted(parameters, key=lambda p: not isinstance(p[1], ArrayAnnotation)):
                if name not in given:
                    raise self.scope.fail(f"{function.name} lacks the argument {name}")
                given[name] = self._checked_argument(f"{name} of {function.name}", annotation, given[name])
            self._check_shapes(function.name, parameters, given)
            return self._inlined(function, [], given, frame)
        finally:
            self.sizes = outer

    def _inlined(self, function: Function, args: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        return super().run(function, args, named, frame)

    def _checked_argument(self, what: str, annotation: Annotation, value: Value) -> Value:
        """Return the value of an argument of a called program; refuse one that does not have the annotated
        type."""
        if isinstance(annotation, ArrayAnnotation):
            if isinstance(value, NumberList) and value.array.dtype == annotation.dtype:
                return value
            if not is_array(value) or value.dtype != annotation.dtype:
                raise self.scope.fail(f"{what} is not an array of the type {annotation}")
            return self.memory.array(value)
        if not is_number(value) or is_array(value):
            raise self.scope.fail(f"{what} is not a scalar of the type {annotation}")
        if annotation.kind is float:
            return self.arrays.python(float, value)
        if annotation.kind is not None:
            if kind_of(value) is not annotation.kind:
                raise self.scope.fail(f"{what} is not a scalar of the type {annotation}")
            return value
        if type(value) in PYTHON:
            return self.memory.value(self.math.expr(value, annotation.dtype), scalar=True)
        if not isinstance(value, Data) or value.weak or value.dtype != annotation.dtype:
            raise self.scope.fail(f"{what} is not a scalar of the type {annotation}")
        return value

    def _check_shapes(
        self, program: str, parameters: tuple[tuple[str, Annotation], ...], given: dict[str, Value]
    ) -> None:
        """Bind the sizes of a called program to those of its arguments, which have to agree."""
        arrays = [(name, a) for name, a in parameters if isinstance(a, ArrayAnnotation)]
        given = {name: v.array if isinstance(v, NumberList) else v for name, v in given.items()}
        for name, annotation in arrays:
            if len(given[name].shape) != len(annotation.shape):
                raise self.scope.fail(f"{name} of {program} is not an array of the type {annotation}")
            for n, size in zip(annotation.shape, given[name].shape, strict=True):
                if isinstance(n, SymbolicSize) and len(n.factors) == 1 and n.factors[0][1] == 1:
                    self.sizes.setdefault(n.names[0], dims.simplify(size - n.constant))
        for name, annotation in arrays:
            for n, size in zip(annotation.shape, given[name].shape, strict=True):
                if not self.scope.need_eq(size, self.constant(n) if isinstance(n, SymbolicSize) else n):
                    raise self.scope.fail(
                        f"{name} of {program} has the type {annotation}, and the size {dims.show(size)} "
                        f"given for {n} is another"
                    )
