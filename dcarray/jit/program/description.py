"""Descriptions of programs as plain data: the source, the types of arguments, and the values of globals.

Equal descriptions have equal regions, so that a description is the key of the compiled code.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping
from dataclasses import field
from inspect import unwrap
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dcarray.core.errors import ProgramError
from dcarray.ir.records import record
from dcarray.jit.numpy_proxy import counterpart

from ..loops.entry.entry_values import Constant, EntryValue, Function, PublicObject
from ..loops.entry.public_names import public_description
from ..loops.entry.sizes import SymbolicSize
from ..loops.syntax.originals import original
from ..loops.syntax.source import is_faithful, source_of
from ..loops.syntax.stubs import Hint, qualname_of, stub_of
from ..loops.syntax.syntax_facts import loads
from .annotations import Annotation, ArrayAnnotation, annotation_of, argument_names, evaluated

__all__ = [
    "Description", "Names", "ProgramLike", "check_sizes", "describe", "hint_of", "python_function",
    "source_tree",
]  # fmt: skip

_MISSING = object()
_NUMBERS = (int, float, complex, bool, str, type(None))


class Names(Mapping[str, Any]):
    """The names around a function with their current values: those of enclosing functions, and globals."""

    def __init__(self, function: FunctionType) -> None:
        self._cells = dict(zip(original(function).co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__

    def __getitem__(self, name: str) -> Any:
        if name not in self._cells:
            return self._globals[name]
        try:
            return self._cells[name].cell_contents
        except ValueError:  # not assigned yet
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (name for name in {*self._globals, *self._cells} if name in self)

    def __len__(self) -> int:
        return len(list(iter(self)))


class ProgramLike:
    """Base class of objects that programs may call as programs: `dcarray.jit.program.decorator.Program`.

    Attributes
    ----------
    written : function
        The original function.
    typed : bool
        Whether its arguments have types; otherwise it is called like any function.
    """

    written: Any
    typed: bool


@record(frozen=True, slots=True)
class Description:
    """A program as plain data.

    Attributes
    ----------
    function : Function
        Its source, and the values of its globals and defaults.
    parameters : tuple of (str, Annotation)
        Its arguments in order.
    called : tuple of (Function, tuple of (str, Annotation))
        The programs that it calls, with their arguments.
    watched : tuple
        The globals that it depends on: namespace, name and value of each.
    constants : tuple of (str, int)
        Integer arguments with a fixed value, which is compiled in.
    sizes : tuple of (str, int)
        Symbols with a fixed value.
    """

    function: Function
    parameters: tuple[tuple[str, Annotation], ...]
    called: tuple[tuple[Function, tuple[tuple[str, Annotation], ...]], ...] = ()
    watched: tuple[tuple[Mapping[str, Any], str, Any], ...] = field(default=(), compare=False, repr=False)
    constants: tuple[tuple[str, int], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    def is_current(self) -> bool:
        """Whether the global names that it depends on still have the same values."""
        for names, name, value in self.watched:
            now = names.get(name, _MISSING)
            if now is not value and counterpart(now) is not counterpart(value):
                return False
        return True


def describe(
    function: FunctionType,
    annotations: Mapping[str, Any] | None = None,
    constants: Mapping[str, int] | None = None,
) -> Description:
    """Return the description of a function.

    Parameters
    ----------
    function : function
    annotations : mapping of str to annotation, optional
        The types of its arguments, instead of its own annotations.
    constants : mapping of str to int, optional
        Values of arguments and of symbols that no annotation uses.

    Raises
    ------
    ProgramError
        If the source file may have changed, an argument has no type or an unknown one, sizes contradict each
        other, or functions call themselves.
    """
    describer = _Describer(annotations, constants or {})
    root, parameters = describer.program(function)
    called, fixed = tuple(describer.called.items()), tuple(describer.fixed.items())
    sizes = tuple([(name, n) for name, n in (constants or {}).items() if name not in describer.fixed])
    return Description(root, parameters, called, tuple(describer.watched), fixed, sizes)


def python_function(function: Any) -> FunctionType:
    """Return the Python function behind a program or an accelerated function.

    Raises
    ------
    TypeError
        If there is none.
    """
    if isinstance(function, ProgramLike):
        function = function.written
    if callable(function):
        function = unwrap(function)
    if type(function) is not FunctionType:
        raise TypeError(f"a Python function is expected, not {type(function).__name__}")
    return function


def source_tree(function: FunctionType) -> tuple[ast.FunctionDef, Mapping[str, Any]]:
    """Return the tree of a function, and its global and enclosing names.

    Raises
    ------
    ProgramError
        If the source is not certain.
    """
    code: CodeType = original(function)
    source = source_of(function, code)
    place = code.co_filename, code.co_firstlineno
    if source is None:
        raise ProgramError(f"the source of {function.__name__} is not known, or has changed", *place)
    if not is_faithful(source.tree):
        raise ProgramError(f"{function.__name__} is indented and holds strings of several lines", *place)
    return source.tree, Names(function) if function.__closure__ else function.__globals__


def hint_of(function: FunctionType) -> Hint | str:
    """Return the types of a function's arguments from the stub beside its file, else why there are none.  The
    reason is empty if the function has annotations, or no stub."""
    code = original(function)
    stub = stub_of(code.co_filename)
    if stub is None or function.__annotations__.keys() - {"return"}:
        return ""
    if not stub.problem and qualname_of(code) not in stub:
        return ""
    hint = stub.hint(qualname_of(code), source_tree(function)[0].args)
    return hint if isinstance(hint, str) or hint.is_complete else ""


class _Describer:
    def __init__(self, annotations: Mapping[str, Any] | None, constants: Mapping[str, int]) -> None:
        self.annotations, self.constants = annotations, constants
        self.fixed: dict[str, int] = {}  # the constants that are arguments
        self.called: dict[Function, tuple[tuple[str, Annotation], ...]] = {}
        self.watched: list[tuple[Mapping[str, Any], str, Any]] = []
        self._inside: list[FunctionType] = []

    def program(self, function: FunctionType) -> tuple[Function, tuple[tuple[str, Annotation], ...]]:
        """Return a function and the types of its arguments."""
        tree, names = source_tree(function)
        file, line = original(function).co_filename, tree.lineno
        given = self.annotations if not self._inside else None
        parameters = []
        if tree.args.vararg or tree.args.kwarg:
            raise ProgramError(f"{function.__name__} takes any number of arguments", file, line)
        hint = hint_of(function) if given is None else ""
        arguments: Iterator[tuple[str, Annotation | None, int]]
        if isinstance(hint, Hint):
            typed = evaluated(hint.arguments, hint.names, hint.file)
            arguments = ((name, annotation, line) for name, annotation, _ in typed)
        elif given is None:
            arguments = evaluated(tree.args, names, file)
        else:
            arguments = ((name, annotation_of(given.get(name)), line) for name in argument_names(tree.args))
        for name, annotation, place in arguments:
            if not self._inside and name in self.constants:
                self.fixed[name] = self.constants[name]
                continue
            if annotation is None:
                raise ProgramError(_untyped(name, qualname_of(original(function)), hint), file, place)
            parameters.append((name, annotation))
        check_sizes(parameters, file, line)
        return self.function(function), tuple(parameters)

    def function(self, function: FunctionType) -> Function:
        """Return a function, with those that it calls."""
        code = original(function)
        tree, names = source_tree(function)
        if function in self._inside:
            raise ProgramError(
                f"{function.__name__} calls itself, and a program cannot", code.co_filename, tree.lineno
            )
        self._inside.append(function)
        bare = copy.copy(tree)
        bare.decorator_list = []
        source = source_of(function, code)
        assert source is not None
        known = [
            (name, value)
            for name in sorted(loads(*tree.body) - {*code.co_varnames, *code.co_cellvars})
            if (value := self._global(name, names)) is not None
        ]
        defaults = []
        count = code.co_argcount
        last = code.co_varnames[count - len(function.__defaults__ or ()) : count]
        pairs = [
            *zip(last, function.__defaults__ or (), strict=True),
            *(function.__kwdefaults__ or {}).items(),
        ]
        for name, value in pairs:
            described = self._value(value)
            if described is not None:
                defaults.append((name, described))
        self._inside.pop()
        text = source.text([bare])
        return Function(function.__name__, text, code.co_filename, tree.lineno, tuple(known), tuple(defaults))

    def _global(self, name: str, names: Mapping[str, Any]) -> EntryValue | None:
        value = names.get(name, getattr(builtins, name, _MISSING))
        if value is _MISSING:
            return None
        entry = self._value(value)
        if entry is not None and name in names:
            self.watched.append((names, name, value))
        return entry

    def _value(self, value: Any) -> EntryValue | None:
        """Return the description of a global or a default; None if programs do not know it."""
        if type(value) in _NUMBERS:
            return Constant(value)
        if isinstance(value, SymbolicSize):
            return value
        if isinstance(value, tuple):
            items = tuple([self._value(item) for item in value])
            return None if None in items else Constant(items)
        if isinstance(value, ProgramLike) and not value.typed:
            value = value.written
        if isinstance(value, ProgramLike):
            function, parameters = self.program(value.written)
            self.called[function] = parameters
            return function
        if isinstance(value, ModuleType) and value.__name__ == "dcarray":
            return PublicObject("dcarray")
        known = public_description(value)
        if known is not None:
            return known
        return self.function(value) if type(value) is FunctionType else None


def _untyped(name: str, qualname: str, hint: Hint | str) -> str:
    """Return the error text for an argument without a type."""
    why = f"the argument {name} has no type"
    if hint and isinstance(hint, str):
        return f"{why}: {hint}"
    if name in ("self", "cls") and "." in qualname:
        return f"{why}, since {qualname} is a method: make a function of it that gets its arrays and numbers"
    return f"{why}: annotate it, or let `python -m dcarray hints` run a script that calls {qualname}"


def check_sizes(parameters: list[tuple[str, Annotation]], file: str, line: int) -> None:
    """Raise `ProgramError` for sizes that no call can have, or whose symbols a call does not determine."""
    names = {name for name, _ in parameters}
    arrays = [(name, type_) for name, type_ in parameters if isinstance(type_, ArrayAnnotation)]
    sizes = [(name, n) for name, type_ in arrays for n in type_.shape if isinstance(n, SymbolicSize)]
    known = {n.names[0] for _, n in sizes if len(n.factors) == 1 and n.factors[0][1] == 1}
    for name, n in sizes:
        for one in n.names:
            if one in names:
                raise ProgramError(f"{one} is an argument and a size of {name}", file, line)
            if one not in known:
                raise ProgramError(f"the value of {one} does not follow from any axis", file, line)
        if not n.factors and n.constant < 0:
            raise ProgramError(f"a size of {name} is negative: {n}", file, line)
