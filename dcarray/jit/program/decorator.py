"""``dc.program``: functions that are compiled from their source and the types of their arguments, for all
sizes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial, update_wrapper
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from dcarray.api.array import ndarray
from dcarray.core import config
from dcarray.core.counters import note
from dcarray.core.errors import ProgramError, ScheduleError
from dcarray.core.processes import communicator
from dcarray.jit.decorator import accelerate
from dcarray.recording.session import LOCK

from ..loops.entry.guards import guard_of
from ..loops.entry.lists import ListElements, are_distinct, array_of, given
from ..loops.sites.run_loop import LoopPlan
from ..loops.syntax.stubs import Hint
from .annotations import Annotation, ArrayAnnotation, PassedAnnotation, sizes_of
from .arguments import argument_of, array_given, on_devices, returned
from .communication import text_of_pieces
from .compiled import CompiledProgram
from .description import Description, describe, hint_of
from .elsewhere import Elsewhere, Numbers
from .written import WrittenFunction

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region

    from .region import TracedProgram
    from .schedule import Change, Schedule

__all__ = ["Program", "program"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_MOST_VERSIONS = 16  # with which there is another one for numbers of other types


class Program(Elsewhere, Generic[_Arguments, _Result]):
    """A function whose arguments have types.

    Its calls run code that was compiled once for all sizes.  If it does not serve a call, such as when an
    argument has another type, an index might be out of bounds, or arrays share memory, Python runs the
    function, accelerated, with the same results.

    Parameters
    ----------
    function : function

    Attributes
    ----------
    written : function
        The original function.
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
        self._plain = WrittenFunction(function)
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
    def compile(self, schedule: Schedule | None = None) -> Program[_Arguments, _Result]:
        """Compile the program with the options in force, unless that was done before; returns the program.

        The compiled code serves all sizes.  If a rewrite, such as a library call, is faster for some sizes
        only, there is a second version for the others.

        Parameters
        ----------
        schedule : Schedule, optional
            A schedule that began as ``f.schedule()``: calls run it from now on, instead of the region after
            the target's passes.  Without a schedule, they run that region again.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        ScheduleError
            If it is no schedule of this program, or its steps do not give the same region with the options in
            force; the text has the reason.
        """
        options = config.current()
        if self._in_pieces and schedule is None:
            self._parameters()
            return self
        self._changes = None if schedule is None else self._changes_of(schedule, options)
        self._last = None
        self._code(options).general  # noqa: B018 - which is compiled
        return self

    def _changes_of(self, given: Schedule, options: config.Options) -> tuple[Change, ...]:
        from dcarray.ir.text import dump

        from .schedule import Schedule, repeated

        if not isinstance(given, Schedule):
            raise TypeError(f"a schedule is made by {self._name}.schedule(), not {type(given).__name__}")
        schedule = repeated(given.changes, self.region(), options)
        if dump(schedule.region) != dump(given.region):
            steps = "; ".join(given.steps) or "no steps"
            raise ScheduleError(
                f"the schedule ({steps}) does not fit {self._name}: the function or the options have changed"
            )
        return given.changes

    def region(self) -> Region:
        """Return the region of the program, over its symbolic sizes.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        return self._traced().region

    def _traced(self) -> TracedProgram:
        from .region import region_of

        if self._in_pieces:
            reason = f"{self._name} sends messages, so it is compiled in pieces and is no single region"
            raise ProgramError(reason, *self._plain.where)
        return region_of(self.written)

    def schedule(self) -> Schedule:
        """Return the region of the program as a schedule, which is changed by hand.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        from .schedule import schedule

        traced = self._traced()
        inputs = [a.name for a in traced.region.arrays if a.role in ("in", "inout")]
        arguments = {p.name for p in traced.parameters}
        pairs = zip(inputs, traced.inputs, strict=True)
        names = {"__builtins__": {}, "inf": math.inf, "nan": math.nan}
        known = tuple([(name, eval(text, names)) for name, text in pairs if text not in arguments])
        return replace(schedule(traced.region), known=known)

    def explain(self) -> str:
        """Return the region of the program as text, as it is written and after the passes; of one that sends
        messages, the statements that are compiled.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        from dcarray.ir import dims
        from dcarray.ir.analysis.versions import Version
        from dcarray.ir.text import dump
        from dcarray.lowering.targets import get

        if self._in_pieces:
            return text_of_pieces(self._plain.with_sizes(self._plain.symbols))
        options, region = config.current(), self.region()
        if self._changes is not None:
            from .schedule import repeated

            schedule = repeated(self._changes, region, options)
            steps = "; ".join(schedule.steps) or "none"
            text = f"{self._name}, as it is written:\n\n{dump(region)}"
            return f"{text}\nafter the steps of its schedule ({steps}):\n\n{dump(schedule.region)}"
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
        self, options: config.Options, lists: frozenset[str] = frozenset(), numbers: Numbers = frozenset(),
        on_device: bool = False,
    ) -> CompiledProgram:  # fmt: skip
        """Return the program compiled with these options, for lists as the arguments ``lists``, and numbers
        of the types ``numbers`` in place of the annotated ones."""
        # positions are those of the program as it is, and steps are the processor's
        changes = None if lists or numbers or on_device else self._changes
        key = options.fastmath, options.threads, options.cache_dir, options.target, lists, numbers, changes
        code = self._compiled.get(key)
        if code is None or not code.is_current():
            description = _with_types(self._description(), lists, dict(numbers))
            from .region import trace_program

            if lists or numbers or not self._compiled:  # an error has the file, whoever makes the plan
                trace_program(description)
            self._last = None
            code = self._compiled[key] = CompiledProgram(description, options, changes, on_device)
        return code

    def _description(self) -> Description:
        """Return the description of the function with the types of its annotations."""
        if self._described is None or not self._described.is_current():
            self._described = describe(self.written)
        return self._described

    # ---- calls --------------------------------------------------------------------------------------
    def __call__(self, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
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
                    results = last[2].run(args, options, places)
                    if results is not None:
                        result: _Result = returned(results, last[1].interface.returns)
                        return result
        checked: _Result = self._checked_call(args, kwargs, options)
        return checked

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: config.Options) -> Any:
        parameters = self._parameters()
        if not kwargs and len(args) == self._count == len(parameters):
            arguments = dict(zip([name for name, _ in parameters], args, strict=True))
        else:
            bound = self._plain.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = bound.arguments
        try:
            checked = [argument_of(self._name, name, a, arguments[name]) for name, a in parameters]
            values = tuple([value for value, _ in checked])
            named = dict(zip([name for name, _ in parameters], values, strict=True))
            pairs = zip(checked, parameters, strict=True)
            numbers: Any = frozenset([(name, own) for (_, own), (name, a) in pairs if own is not a])
            elsewhere = (options.device != "cpu" and communicator() is None) or on_devices(values)
            code = None if elsewhere else self._code_for(named, numbers, options)
        except TypeError as error:
            return self._of_other_types(arguments, error, options)
        sizes = sizes_of(
            self._name, [(k, a, array_of(named[k])) for k, a in parameters if isinstance(a, ArrayAnnotation)]
        )
        if elsewhere and not self._in_pieces:
            return self._wrapped(
                partial(self._on_device, numbers=numbers, options=options), named, sizes, options
            )
        symbols = None if code is None else self._symbols_of(code, named, sizes)
        if code is None or symbols is None or options.jit == "off":
            return self._as_written({name: given(value) for name, value in named.items()}, sizes)
        if communicator() is not None and code.on_ranks.is_needed(values, symbols, options):
            run = partial(self._on_ranks, code=code, symbols=symbols, options=options)
            return self._wrapped(run, named, sizes, options)
        guards = tuple([guard_of(value) for value in values])
        if code.serves(values, guards):
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
        """Run the original function, since arguments do not have the annotated types, as ``error`` says."""
        if options.strict:
            raise error
        arrays = []
        for name, a in self._description().parameters:
            if isinstance(a, ArrayAnnotation) and (array := array_given(given[name])) is not None:
                arrays += [(name, a, array)] * (len(array.shape) == len(a.shape))
        sizes = sizes_of(self._name, arrays)
        if not self._plain.knows(sizes):
            raise error
        note(str(error), kind="loop", where=self._plain.where)
        return self._as_written(given, sizes)

    def _parameters(self) -> tuple[tuple[str, Annotation | PassedAnnotation], ...]:
        """Return the names and types of the arguments."""
        return self._plain.passed if self._in_pieces else self._description().parameters

    def _code_for(
        self, values: dict[str, Any], numbers: Numbers, options: config.Options
    ) -> CompiledProgram | None:
        """Return the program compiled for these arguments; None if a list occurs in them twice, and for a
        program that sends messages."""
        lists = frozenset(name for name, value in values.items() if type(value) is ListElements)
        if self._in_pieces or not are_distinct([*values.values()]):
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
        """Run the original function, with these values of its symbols."""
        return self._plain(given, sizes)

    @property
    def _in_pieces(self) -> bool:
        """Whether the program sends messages, and so is compiled in pieces."""
        return self._plain.in_pieces

    @cached_property
    def _accelerated(self) -> Callable[_Arguments, _Result]:
        return cast(Callable[_Arguments, _Result], accelerate(self.written))

    def __repr__(self) -> str:
        return f"<program {self._name}>"


def program(function: Callable[_Arguments, _Result]) -> Program[_Arguments, _Result]:
    """Make a program of a function: compiled from its source and the types of its arguments.

    Parameters
    ----------
    function : function
        Its arguments are annotated: ``dcarray.types.float64[N, M]`` with ``N = dcarray.symbol("N")`` are
        arrays, ``float``, ``int``, ``bool``, ``complex`` and dtypes are scalars.

    Returns
    -------
    Program
        It has the signature of the function.  Without annotations it does what `accelerate` makes of that.

    Raises
    ------
    TypeError
        If it is no function.
    """
    return Program(cast(FunctionType, function))


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
