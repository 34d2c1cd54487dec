"""``dc.program``: functions that are compiled from their source and the types of their arguments, for all
sizes at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, update_wrapper
from inspect import signature
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core import config
from dcarray.core.errors import ProgramError
from dcarray.core.processes import communicator
from dcarray.execution.executor import EXECUTOR
from dcarray.jit.decorator import accelerate
from dcarray.jit.numpy_proxy import counterpart
from dcarray.plans import provider
from dcarray.recording.session import LOCK

from ..loops.entry.guards import ARRAYS, guard_of
from ..loops.entry.lists import ListElements, are_distinct, array_of, elements_of, given
from ..loops.entry.sizes import LARGEST, SymbolicSize
from ..loops.sites.run_loop import LoopPlan
from .annotations import Annotation, ArrayAnnotation, ScalarAnnotation, sizes_of
from .description import Description, ProgramLike, describe
from .requests import ProgramInterface, ProgramRequest

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region
    from dcarray.lowering.program.loaded_plan import LoadedPlan

    from .schedule import Schedule

__all__ = ["Program", "program"]

_MAX_SIZES = 64  # that are remembered with their shapes
_MISSING = object()


class _Compiled:
    """A compiled program: its plan for all sizes, and what is derived from it for some."""

    def __init__(self, description: Description, options: config.Options) -> None:
        request = ProgramRequest(
            Description(description.function, description.parameters, description.called),
            options.fastmath, options.threads, options.cache_dir, options.target,
        )  # fmt: skip
        self.description = description
        # in this thread: whoever asks for a compiled program waits for it
        now = replace(options, jit="eager")
        self.loaded: LoadedPlan = provider.obtain(request, now, EXECUTOR.background)
        self.interface: ProgramInterface = self.loaded.payload
        names = ", ".join(self.interface.symbols)
        # text of `dims.show`: names, integers and operators
        self.holds: Callable[..., bool] = eval(
            f"lambda {names}: {self.interface.guard}", {"max": max, "min": min}
        )
        self._shapes: Callable[..., Any] = eval(
            f"lambda {names}: {self.interface.shapes}", {"max": max, "min": min}
        )
        self._written = self.interface.written()
        self._plans: dict[tuple[Any, ...], LoopPlan] = {}

    def is_current(self) -> bool:
        """Whether the globals that the program was compiled with are the same."""
        return all(
            (now := names.get(name, _MISSING)) is value or counterpart(now) is counterpart(value)
            for names, name, value in self.description.watched
        )

    def serves(self, values: tuple[Any, ...], guards: tuple[Any, ...]) -> bool:
        """Whether the compiled code may get arguments with these guards: it would write no array that may
        not be written."""
        for (name, annotation), value, guard in zip(self.description.parameters, values, guards, strict=True):
            if guard is None:
                return False
            if type(value) is ListElements:
                continue
            if isinstance(annotation, ArrayAnnotation) and (
                type(value) not in ARRAYS or (name in self._written and not guard[3])
            ):
                return False
        return True

    def plan(self, symbols: tuple[int, ...], guards: tuple[Any, ...]) -> LoopPlan:
        """Return the plan for arguments with these guards, and these values of its symbols."""
        found = self._plans.get(guards)
        if found is None:
            if len(self._plans) >= _MAX_SIZES:
                self._plans.clear()
            interface = self.interface.for_shapes(self._shapes(*symbols))
            names = [name for name, _ in self.description.parameters]
            live = [name for name, _ in interface.results]
            found = self._plans[guards] = LoopPlan(self.loaded, names, False, live, interface, symbols)
        return found


class Program(ProgramLike):
    """A function whose arguments have types.

    Its calls run code that was compiled once for all sizes.  Where that does not serve a call, because an
    index might be out of bounds, or arrays share memory, say, the function runs as it is written, with the
    same results.

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
        self.typed = bool(function.__annotations__.keys() - {"return"})
        self._compiled: dict[Any, _Compiled] = {}
        self._last: tuple[Any, _Compiled, LoopPlan] | None = None
        self._count = function.__code__.co_argcount
        self._name = function.__name__
        update_wrapper(self, function)

    # ---- compiling ----------------------------------------------------------------------------------
    def compile(self) -> Program:
        """Compile the program with the options in force, unless that has been done; returns the program.

        Raises
        ------
        ProgramError
            If it does not compile, with file and line.
        """
        self._code(config.current(), frozenset())
        return self

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
        from dcarray.ir.text import dump
        from dcarray.lowering.target import get

        options, region = config.current(), self.region()
        final = get(options.target).pipeline(options.threads).run(region)
        return f"{self._name}, as it is written:\n\n{dump(region)}\nafter the passes:\n\n{dump(final)}"

    def _code(self, options: config.Options, lists: frozenset[str]) -> _Compiled:
        """Return what is compiled with these options, where the arguments ``lists`` are lists."""
        key = options.fastmath, options.threads, options.cache_dir, options.target, lists
        found = self._compiled.get(key)
        if found is None or not found.is_current():
            description = _with_lists(describe(self.written), lists)
            from .region import trace_program

            if not self._compiled:  # an error has the file, and is raised here whoever makes the plan
                trace_program(description)
            self._last = None
            found = self._compiled[key] = _Compiled(description, options)
        return found

    # ---- calls --------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program.

        Raises
        ------
        ProgramError
            At the first call, if it does not compile.
        TypeError, ValueError
            If arguments do not have the types of the annotations; the text has both.
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
                        return _returned(found, last[1].interface.returns, args)
        return self._checked_call(args, kwargs, options)

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: config.Options) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        parameters = self._parameters()
        values = tuple([_argument(self._name, name, a, bound.arguments[name]) for name, a in parameters])
        named = dict(zip([name for name, _ in parameters], values, strict=True))
        code = self._code_for(named, options)
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
            plan = code.plan(symbols, guards)
            found = plan.run(values, options)
            if found is not None:
                lists = ListElements in map(type, values)  # of which there are no checks
                if not kwargs and len(args) == self._count == len(values) and not lists:
                    plan.remember(values, guards)
                    self._last = options, code, plan
                return _returned(found, code.interface.returns, values)
        return self._as_written({name: given(value) for name, value in named.items()}, sizes)

    def _parameters(self) -> tuple[tuple[str, Annotation], ...]:
        """Return the names and types of the arguments."""
        for code in self._compiled.values():
            if code.is_current():
                return code.description.parameters
        return describe(self.written).parameters

    def _code_for(self, values: dict[str, Any], options: config.Options) -> _Compiled | None:
        """Return what is compiled for these arguments; None if a list occurs in them twice."""
        lists = frozenset(name for name, value in values.items() if type(value) is ListElements)
        if not are_distinct([*values.values()]):
            return None
        try:
            return self._code(options, lists)
        except ProgramError as error:
            if not lists:
                raise
            which = " and ".join(sorted(lists))
            raise TypeError(f"{self._name}(): the argument {which} is a list, for which {error}") from error

    def _as_written(self, given: dict[str, Any], sizes: dict[str, int]) -> Any:
        """Run the function as it is written, with sizes for its symbols."""
        spec = self.written.__code__
        plain = [given.pop(name) for name in spec.co_varnames[: spec.co_argcount]]
        wrapped = any(isinstance(value, ndarray) for value in (*plain, *given.values()))
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
        return (
            tuple(map(_wrapped, found))
            if wrapped and type(found) is tuple
            else _wrapped(found)
            if wrapped
            else found
        )

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


def _with_lists(description: Description, lists: frozenset[str]) -> Description:
    """Return a description for calls with lists for some arguments."""
    parameters = [
        (name, replace(a, as_list=True) if isinstance(a, ArrayAnnotation) and name in lists else a)
        for name, a in description.parameters
    ]
    return replace(description, parameters=tuple(parameters))


# ---- arguments and results ----------------------------------------------------------------------------
_PYTHON: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_), int: (int, np.integer), float: (float, int, np.floating, np.integer),
    complex: (complex, float, int, np.complexfloating, np.floating, np.integer),
}  # fmt: skip


def _argument(program: str, name: str, annotation: Annotation, value: Any) -> Any:
    """Return an argument, a scalar converted to the type of its annotation."""

    def wrong(given: str) -> TypeError:
        return TypeError(f"{program}(): the argument {name} is expected to be {annotation}, not {given}")

    if isinstance(annotation, ArrayAnnotation):
        found = elements_of(value) if type(value) is list else value
        if found is None:
            raise wrong("a list that is empty, or not of equally long lists of floats, or of ints")
        array = array_of(found)
        if not isinstance(array, np.ndarray | ndarray):
            raise wrong(type(value).__name__)
        if array.dtype != annotation.dtype or len(array.shape) != len(annotation.shape):
            raise wrong(f"{array.dtype.name} of shape {tuple(array.shape)}")
        return found
    return _scalar(annotation, value, wrong)


def _scalar(annotation: ScalarAnnotation, value: Any, wrong: Callable[[str], TypeError]) -> Any:
    kind = annotation.kind
    if kind is not None:
        if isinstance(value, _PYTHON[kind]) and (kind is bool or not isinstance(value, bool)):
            return kind(value)
        raise wrong(f"{value!r} of type {type(value).__name__}")
    if isinstance(value, np.generic) and value.dtype == annotation.dtype:
        return value
    if type(value) in (bool, int, float, complex):
        made = annotation.dtype.type(value)
        exact = made == value or annotation.dtype.kind in "fc"
        if exact and not (type(value) is complex and annotation.dtype.kind != "c"):
            return made
    raise wrong(f"{value!r} of type {type(value).__name__}")


def _names(code: CodeType) -> tuple[str, ...]:
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return (*code.co_names, *inner)


def _wrapped(value: Any) -> Any:
    return wrap(value) if type(value) is np.ndarray else value


def _returned(found: tuple[Any, ...], returns: str, values: tuple[Any, ...]) -> Any:
    """Return what a call returns: new arrays are plain if no argument is wrapped."""
    if returns == "none":
        return None
    if not any(type(value) is ndarray for value in values):
        found = tuple([np.asarray(value) if type(value) is ndarray else value for value in found])
    return found[0] if returns == "one" else found
