"""Things that programs call by name: modules, functions of NumPy and Python, and functions of their own."""

from __future__ import annotations

import ast
import builtins
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dcarray.jit.numpy_proxy import counterpart

from .entry_values import Function, Known, Thing, Value
from .source import source_of
from .syntax_facts import loads

MOST = 4096  # values that are remembered
_MISSING = object()
_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "math", "builtins")


class Token:
    """What is known of a value that is no number: made once, and compared by identity.

    Attributes
    ----------
    known : Known
    """

    __slots__ = ("_checks", "_code", "_defaults", "_value", "known")

    def __init__(self, value: Any, known: Known, checks: tuple[Any, ...] = ()) -> None:
        self.known = known
        self._value = value  # kept, so that its identity stays its own
        self._checks = checks
        self._code = original(value) if isinstance(known, Function) else None
        self._defaults = value.__defaults__ if isinstance(known, Function) else None

    def holds(self) -> bool:
        """Is a function what it was, and all that it calls by name?"""
        if self._code is not None:
            value = self._value
            if original(value) is not self._code or value.__defaults__ is not self._defaults:
                return False
        for names, name, value in self._checks:
            now = names.get(name, _MISSING)
            if now is not value and not (now is _MISSING and getattr(builtins, name, _MISSING) is value):
                return False
            if type(value) is FunctionType and (found := _tokens.get(id(value))) and not found.holds():
                return False
        return True


_tokens: dict[int, Token] = {}
_refused: dict[int, CodeType] = {}  # the codes of functions that are nothing we know
originals: dict[int, tuple[CodeType, CodeType]] = {}
"""For the identity of a rewritten code: that and what it was made of (see `dcarray.jit.loops.rewrite`)."""


def original(function: FunctionType) -> CodeType:
    """The code that a function has in its source."""
    found = originals.get(id(function.__code__))
    return function.__code__ if found is None else found[1]


def token(value: Any) -> Token | None:
    """The token of a value; None if it is nothing that compiled code knows."""
    found = _tokens.get(id(value))
    if found is not None and found.holds():
        return found
    return _new(value, ())


def _new(value: Any, inside: tuple[Any, ...]) -> Token | None:
    if len(_tokens) + len(_refused) > MOST:
        _tokens.clear()
        _refused.clear()
    known = _thing(value)
    if known is not None:
        made: Token | None = Token(value, known)
    elif type(value) is not FunctionType or id(original(value)) in _refused:
        return None
    else:
        made = _function(value, inside)
        if made is None and not inside:
            _refused[id(original(value))] = original(value)
    if made is not None:
        _tokens[id(value)] = made
    return made


def _thing(value: Any) -> Thing | None:
    """Something with a public name."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not (callable(value) or isinstance(value, ModuleType)):
        return None
    if counterpart(value) is not value:  # NumPy's own, whose arrays are plain ones
        return None
    if isinstance(value, ModuleType):
        name = "numpy" + name.removeprefix("dcarray") if name.startswith("dcarray") else name
        return Thing(name) if name in _MODULES else None
    for home in _MODULES:
        module = sys.modules.get(home)
        member = getattr(module, name, _MISSING)
        if member is not _MISSING and (member is value or counterpart(member) is value):
            return Thing(f"{home}.{name}")
    return None


def _function(function: FunctionType, inside: tuple[Any, ...]) -> Token | None:
    """A function of the program, if its source is certain and all that it calls by name is known."""
    from .guards import known_of, mark_of

    code = original(function)
    if function in inside or code.co_freevars or code.co_cellvars or function.__kwdefaults__:
        return None
    source = source_of(function, code)
    if source is None or source.tree.decorator_list or not source.faithful(source.tree):
        return None
    inside = (*inside, function)

    def known(value: Any) -> Known | None:
        if type(value) in (int, float, complex, bool, str, type(None)):
            return Value(value)
        if type(value) is FunctionType:
            found = _tokens.get(id(value))
            made = found if found is not None and found.holds() else _new(value, inside)
            return None if made is None else made.known
        mark = mark_of(value)
        found_here = None if mark is None else known_of(value, mark)
        return found_here if isinstance(found_here, Value | Thing) else None

    checks: list[tuple[dict[str, Any], str, Any]] = []
    names: list[tuple[str, Known]] = []
    for name in sorted(_globals(source.tree, code)):
        value = function.__globals__.get(name, getattr(builtins, name, _MISSING))
        if value is _MISSING:
            continue
        what = known(value)
        if what is None:
            return None
        checks.append((function.__globals__, name, value))
        names.append((name, what))
    defaults: list[tuple[str, Known]] = []
    for name, value in _given(function, code):
        what = known(value)
        if what is None:
            return None
        defaults.append((name, what))
    text, file = source.text(source.tree), code.co_filename
    made = Function(function.__name__, text, file, code.co_firstlineno, tuple(names), tuple(defaults))
    return Token(function, made, tuple(checks))


def _globals(tree: ast.FunctionDef, code: CodeType) -> frozenset[str]:
    return loads(*tree.body) - frozenset((*code.co_varnames, *code.co_cellvars))


def _given(function: FunctionType, code: CodeType) -> list[tuple[str, Any]]:
    """The defaults by the names of the parameters."""
    values = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return [*zip(last, values, strict=True)]
