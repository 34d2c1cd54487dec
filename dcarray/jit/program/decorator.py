"""``dc.program``: functions that are compiled from their source and the types of their arguments, for all
sizes at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, update_wrapper
from inspect import signature
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from dcarray.api.array import ndarray
from dcarray.core import config
from dcarray.core.counters import note
from dcarray.core.errors import ProgramError, ScheduleError
from dcarray.core.processes import communicator
from dcarray.jit.decorator import accelerate
from dcarray.recording.session import LOCK

from ..loops.entry.guards import guard_of
from ..loops.entry.lists import ListElements, are_distinct, array_of, given
from ..loops.entry.sizes import LARGEST, SymbolicSize
from ..loops.sites.run_loop import LoopPlan
from ..loops.syntax.stubs import Hint
from .annotations import Annotation, ArrayAnnotation, sizes_of
from .arguments import argument_of, array_given, returned, wrapped
from .compiled import CompiledProgram
from .description import Description, ProgramLike, describe, hint_of

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region

    from .schedule import Change, Schedule

__all__ = ["Program", "program"]

_MOST_VERSIONS = 16  # with which there is another one for numbers of other types
Numbers = frozenset[tuple[str, Annotation]]


class Program(ProgramLike):
    """A function whose arguments have types.

    Its calls run code that was compiled once for all sizes.  Where that does not serve a call, because an
    argument has another type, an index might be out of bounds, or arrays share memory, say, the function runs
    as it is written and accelerated, with the same results.

    Parameters
    ----------
    function : function

    Attributes
    ----------
    written : function
        The function as it is written.
    typed : bool
        Whether an argument has a type.
    """

    def __init__(self, function: FunctionType) -> None:
        if type(function) is not FunctionType:
            raise TypeError(f"program() takes a function, not {type(function).__name__}")
        self.written = function
        self.typed = bool(function.__annotations__.keys() - {"return"}) or self._has_hint()
        self._compiled: dict[Any, CompiledProgram] = {}
        self._described: Description | None = None
        self._refused: dict[Any, tuple[Description, str]] = {}  # types that do not compile, and why
        self._changes: tuple[Change, ...] | None = None
        self._last: tuple[Any, CompiledProgram, LoopPlan] | None = None
        self._count = function.__code__.co_argcount
        self._name = function.__name__
        update_wrapper(self, function)

    def _has_hint(self) -> bool:
        """Whether a stub beside its file has the types of its arguments."""
        try:
            hint = hint_of(self.written)
        except ProgramError as error:
            hint = str(error)
        if isinstance(hint, str) and hint:
            code = self.written.__code__
            note(hint, kind="loop", where=(code.co_filename, code.co_firstlineno))
        return isinstance(hint, Hint)

    # ---- compiling ----------------------------------------------------------------------------------
    def compile(self, schedule: Schedule | None = None) -> Program:
        """Compile the program with the options in force, unless that has been done; returns the program.

        What is compiled serves all sizes.  Where something is only worth it for some, as a library call,
        there is a second version for the others.

        Parameters
        ----------
        schedule : Schedule, optional
            What has been made of ``f.schedule()``: calls from now on run that, in place of what the target's
            passes make of the program; without a schedule, they run the latter again.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        ScheduleError
            If it is no schedule of this program, or its steps do not make the same of it with the options in
            force, with the reason.
        """
        options = config.current()
        self._changes = None if schedule is None else self._changes_of(schedule, options)
        self._last = None
        self._code(options).general  # noqa: B018 - which is compiled
        return self

    def _changes_of(self, given: Schedule, options: config.Options) -> tuple[Change, ...]:
        from dcarray.ir.text import dump

        from .schedule import Schedule, repeated

        if not isinstance(given, Schedule):
            raise TypeError(f"a schedule is made by {self._name}.schedule(), not {type(given).__name__}")
        made = repeated(given.changes, self.region(), options)
        if dump(made.region) != dump(given.region):
            steps = "; ".join(given.steps) or "no steps"
            raise ScheduleError(
                f"the schedule ({steps}) is none of {self._name} as it is now, or was made with other options"
            )
        return given.changes

    def region(self) -> Region:
        """Return the region of the program, over its symbolic sizes.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        from .region import region_of

        return region_of(self.written).region

    def schedule(self) -> Schedule:
        """Return the region of the program as a schedule, which is changed by hand.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        from .region import region_of
        from .schedule import schedule

        traced = region_of(self.written)
        inputs = [a.name for a in traced.region.arrays if a.role in ("in", "inout")]
        arguments = {p.name for p in traced.parameters}
        pairs = zip(inputs, traced.inputs, strict=True)
        names = {"__builtins__": {}, "inf": math.inf, "nan": math.nan}
        known = tuple([(name, eval(text, names)) for name, text in pairs if text not in arguments])
        return replace(schedule(traced.region), known=known)

    def explain(self) -> str:
        """Return the region of the program as text, as it is written and after the passes.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        from dcarray.ir import dims
        from dcarray.ir.analysis.versions import Version
        from dcarray.ir.text import dump
        from dcarray.lowering.target import get

        options, region = config.current(), self.region()
        if self._changes is not None:
            from .schedule import repeated

            made = repeated(self._changes, region, options)
            steps = "; ".join(made.steps) or "none"
            text = f"{self._name}, as it is written:\n\n{dump(region)}"
            return f"{text}\nafter the steps of its schedule ({steps}):\n\n{dump(made.region)}"
        pipeline = get(options.target).pipeline(options.threads)
        out = f"{self._name}, as it is written:\n\n{dump(region)}"
        with Version(region) as version:
            final = pipeline.run(region)
        relations = " and ".join(map(dims.show, version.relations(final)))
        out += f"\nafter the passes{f', for {relations}' if relations else ''}:\n\n{dump(final)}"
        if relations:
            with Version(region, general=True):
                out += f"\nfor other sizes:\n\n{dump(pipeline.run(region))}"
        return out

    def _code(
        self, options: config.Options, lists: frozenset[str] = frozenset(), numbers: Numbers = frozenset()
    ) -> CompiledProgram:
        """Return what is compiled with these options, where the arguments ``lists`` are lists, and
        ``numbers`` have these types instead of those of their annotations."""
        changes = None if lists or numbers else self._changes  # positions are those of the program as it is
        key = options.fastmath, options.threads, options.cache_dir, options.target, lists, numbers, changes
        found = self._compiled.get(key)
        if found is None or not found.is_current():
            description = _with_types(self._description(), lists, dict(numbers))
            from .region import trace_program

            if lists or numbers or not self._compiled:  # an error has the file, whoever makes the plan
                trace_program(description)
            self._last = None
            found = self._compiled[key] = CompiledProgram(description, options, changes)
        return found

    def _description(self) -> Description:
        """Return the description of the function with the types of its annotations."""
        if self._described is None or not self._described.is_current():
            self._described = describe(self.written)
        return self._described

    # ---- calls --------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program.

        Raises
        ------
        ProgramError
            At the first call, if it does not compile.
        TypeError
            If arguments do not have the types of the annotations, with the option ``strict``, or if the
            function uses a size that is not known then; the text has both types.
        ValueError
            If the sizes of arguments contradict each other.
        """
        if not self.typed:
            return self._accelerated(*args, **kwargs)
        options = config.current()
        last = self._last
        if (
            last is not None
            and last[0] is options
            and len(args) == self._count
            and not kwargs
            and last[1].is_current()
        ):
            with LOCK:
                places = last[2].addresses(args)
                if places is not None:
                    found = last[2].run(args, options, places)
                    if found is not None:
                        return returned(found, last[1].interface.returns)
        return self._checked_call(args, kwargs, options)

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: config.Options) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        parameters = self._description().parameters
        try:
            found = [argument_of(self._name, name, a, bound.arguments[name]) for name, a in parameters]
            values = tuple([value for value, _ in found])
            named = dict(zip([name for name, _ in parameters], values, strict=True))
            pairs = zip(found, parameters, strict=True)
            numbers = frozenset([(name, own) for (_, own), (name, a) in pairs if own is not a])
            code = self._code_for(named, numbers, options)
        except TypeError as error:
            return self._of_other_types(bound.arguments, error, options)
        sizes = sizes_of(
            self._name, [(k, a, array_of(named[k])) for k, a in parameters if isinstance(a, ArrayAnnotation)]
        )
        known = sizes | {symbol: named[name] for name, symbol in code.interface.integers} if code else {}
        symbols = tuple([known[name] for name in code.interface.symbols]) if code else ()
        usable = options.jit != "off" and communicator() is None and options.device == "cpu"
        guards = tuple([guard_of(value) for value in values])
        if (
            code is not None
            and usable
            and code.serves(values, guards)
            and all(-LARGEST <= n <= LARGEST for n in symbols)
            and code.holds(*symbols)
        ):
            plan = code.plan(symbols, guards, ndarray in map(type, values))
            result = plan.run(values, options)
            if result is not None:
                lists = ListElements in map(type, values)  # of which there are no checks
                if not kwargs and len(args) == self._count == len(values) and not lists:
                    plan.remember(values, guards)
                    self._last = options, code, plan
                return returned(result, code.interface.returns)
        return self._as_written({name: given(value) for name, value in named.items()}, sizes)

    def _of_other_types(self, given: dict[str, Any], error: TypeError, options: config.Options) -> Any:
        """Run the function as it is written, since arguments have other types than their annotations say."""
        if options.strict:
            raise error
        arrays = []
        for name, a in self._description().parameters:
            if isinstance(a, ArrayAnnotation) and (array := array_given(given[name])) is not None:
                arrays += [(name, a, array)] * (len(array.shape) == len(a.shape))
        sizes, code = sizes_of(self._name, arrays), self.written.__code__
        read = [self.written.__globals__.get(name) for name in _names(code)]
        if any(isinstance(one, SymbolicSize) and not sizes.keys() >= {*one.names} for one in read):
            raise error
        note(str(error), kind="loop", where=(code.co_filename, code.co_firstlineno))
        return self._as_written(dict(given), sizes)

    def _code_for(
        self, values: dict[str, Any], numbers: Numbers, options: config.Options
    ) -> CompiledProgram | None:
        """Return what is compiled for these arguments; None if a list occurs in them twice."""
        lists = frozenset(name for name, value in values.items() if type(value) is ListElements)
        if not are_distinct([*values.values()]):
            return None
        if len(self._compiled) >= _MOST_VERSIONS and numbers:
            numbers_given = " and ".join(sorted(f"{name}: {a}" for name, a in numbers))
            raise TypeError(
                f"{self._name}(): there are too many versions for another one, of {numbers_given}"
            )
        known = self._refused.get((lists, numbers))
        if known is not None and known[0] is self._description():
            raise TypeError(known[1])
        try:
            return self._code(options, lists, numbers)
        except ProgramError as error:
            if not (lists or numbers):
                raise
            what = [f"{name} is a list" for name in sorted(lists)]
            what += sorted(f"{name} is a number of type {a}" for name, a in numbers)
            reason = f"{self._name}(): the argument {' and '.join(what)}, for which {error}"
            self._refused[lists, numbers] = self._description(), reason
            raise TypeError(reason) from error

    def _as_written(self, given: dict[str, Any], sizes: dict[str, int]) -> Any:
        """Run the function as it is written, with sizes for its symbols."""
        spec = self.written.__code__
        plain = [given.pop(name) for name in spec.co_varnames[: spec.co_argcount]]
        any_wrapped = any(isinstance(value, ndarray) for value in (*plain, *given.values()))
        names = {*_names(spec)}
        around = self.written.__globals__
        symbolic = {
            name: around[name].value(sizes)
            for name in names
            if isinstance(around.get(name), SymbolicSize) and set(around[name].names) <= sizes.keys()
        }
        if not symbolic:
            return self._accelerated(*plain, **given)
        function = FunctionType(
            spec, {**around, **symbolic}, spec.co_name, self.written.__defaults__, self.written.__closure__
        )
        function.__kwdefaults__ = self.written.__kwdefaults__
        found = function(*plain, **given)
        if not any_wrapped:
            return found
        return tuple(map(wrapped, found)) if type(found) is tuple else wrapped(found)

    @cached_property
    def _signature(self) -> Any:
        return signature(self.written)

    @cached_property
    def _accelerated(self) -> Any:
        return accelerate(self.written)

    def __repr__(self) -> str:
        return f"<program {self._name}>"


def program(function: FunctionType) -> Program:
    """Make a program of a function: compiled from its source and the types of its arguments.

    Parameters
    ----------
    function : function
        Its arguments are annotated: ``dcarray.types.float64[N, M]`` with ``N = dcarray.symbol("N")`` are
        arrays, ``float``, ``int``, ``bool``, ``complex`` and dtypes are scalars.

    Returns
    -------
    Program
        Without annotations it does what `accelerate` makes of the function.

    Raises
    ------
    TypeError
        If it is no function.
    """
    return Program(function)


def _with_types(
    description: Description, lists: frozenset[str], numbers: Mapping[str, Annotation]
) -> Description:
    """Return a description for calls with lists for some arguments, and numbers of other types for others."""
    if not lists and not numbers:
        return description
    parameters = [
        (name, replace(a, as_list=True) if isinstance(a, ArrayAnnotation) and name in lists else a)
        for name, a in description.parameters
    ]
    return replace(description, parameters=tuple([(name, numbers.get(name, a)) for name, a in parameters]))


def _names(code: CodeType) -> tuple[str, ...]:
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return (*code.co_names, *inner)
