"""Guards of modules and functions: NumPy's, Python's, and the program's own, which are inlined into loops."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dcarray.jit import parallel_map

from ..syntax.cells import free_names
from ..syntax.definitions import undecorated
from ..syntax.originals import called_by, original
from ..syntax.source import source_of
from ..syntax.syntax_facts import facts, loads
from .entry_values import Constant, EntryValue, Function, PublicObject, Recursion, calls_others
from .generators import global_generator
from .members import Check, is_draw, member_paths, watched_members

MAX_GUARDS = 4096
_MISSING = object()
_MODULES = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "numpy.random",
    "math",
    "cmath",
    "random",
    "functools",
    "builtins",
)


class ObjectGuard:
    """The guard of a module, function or class: made once for each object, and compared by identity."""

    __slots__ = ("_checks", "_code", "_defaults", "_function", "_is_asked", "_value", "entry_value")

    def __init__(self, value: Any, entry_value: EntryValue, checks: tuple[Any, ...] = ()) -> None:
        self.entry_value = entry_value
        self._value = value  # held, so that no other object gets its identity
        self._function = called_by(value)
        self._checks = checks
        self._is_asked = False
        self._code = original(self._function) if isinstance(entry_value, Function) else None
        self._defaults = self._function.__defaults__ if isinstance(entry_value, Function) else None

    def of(self, value: Any) -> ObjectGuard:
        """Return the same guard of an object that does nothing but call its function."""
        return ObjectGuard(value, self.entry_value, self._checks)

    def holds(self) -> bool:
        """Return whether a function has the code and defaults that it had when the guard was made, and its
        global names the values; so do the functions that it calls by name."""
        if self._code is not None:
            function = self._function
            if original(function) is not self._code or function.__defaults__ is not self._defaults:
                return False
        for names, name, value in self._checks:
            now = names.get(name, _MISSING)
            if now is not value and not (now is _MISSING and getattr(builtins, name, _MISSING) is value):
                return False
        if self._is_asked:  # by a function that it calls
            return True
        self._is_asked = True
        try:
            called = [value for _, _, value in self._checks if type(value) is FunctionType]
            return all(_guards[id(value)].holds() for value in called if id(value) in _guards)
        finally:
            self._is_asked = False


_guards: dict[int, ObjectGuard] = {}
_refused: dict[int, CodeType] = {}  # the codes of functions that are not supported


def object_guard(value: Any) -> ObjectGuard | None:
    """Return the guard of an object; None if compiled code does not support it."""
    found = _guards.get(id(value))
    if found is not None and found.holds():
        return found
    return _make_guard(value, {})


def _make_guard(value: Any, inside: Mapping[Any, Recursion]) -> ObjectGuard | None:
    if len(_guards) + len(_refused) > MAX_GUARDS:
        _guards.clear()
        _refused.clear()
    known = public_description(value)
    if known is not None:
        made: ObjectGuard | None = ObjectGuard(value, known)
    elif type(function := called_by(value)) is not FunctionType or id(original(function)) in _refused:
        return None
    else:
        made = _function(value, function, inside)
        if made is None and not inside:
            _refused[id(original(function))] = original(function)
    if made is not None and not (isinstance(made.entry_value, Function) and calls_others(made.entry_value)):
        _guards[id(value)] = made
    return made


def described(function: Any) -> Function | None:
    """Return the description of a Python function whose source is traced; None if it is not supported."""
    guard = object_guard(function)
    found = None if guard is None else guard.entry_value
    return found if isinstance(found, Function) else None


def public_description(value: Any) -> PublicObject | None:
    """Return the description of an object with a public name, NumPy's or its counterpart here; None if it has
    none."""
    if value is parallel_map.map:
        return PublicObject("dcarray.map")
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not (callable(value) or isinstance(value, ModuleType)):
        return None
    if isinstance(value, ModuleType):
        name = "numpy" + name.removeprefix("dcarray") if name.startswith("dcarray") else name
        return PublicObject(name) if name in _MODULES else None
    if is_draw(value):
        own = vars(sys.modules["random"]).get(name) == value
        return PublicObject(f"random.{name}") if own else None
    names = (name, *_OTHER_NAMES.get(name, ()))
    for path in _MODULES:
        held = vars(sys.modules[path]) if path in sys.modules else {}
        for one in names:
            member = held.get(one, _MISSING)
            if member is value or (member is not _MISSING and _counterpart(member) is value):
                return PublicObject(f"{path}.{one}")
    return None


# Objects that NumPy has under another name than their own.
_OTHER_NAMES = {
    "bool": ("bool_",),
    "int": ("int_",),
    "amax": ("max",),
    "amin": ("min",),
    "concatenate": ("concat",),
}


def _counterpart(member: Any) -> Any:
    """Return what stands for an object of NumPy's in code of which the arrays are wrapped."""
    proxy = sys.modules.get("dcarray.jit.numpy_proxy")
    return member if proxy is None else proxy.counterpart(member)


def makes_wrapped(value: Any) -> bool:
    """Whether an object stands for one of NumPy's in code of which the arrays are wrapped."""
    if "dcarray.jit.numpy_proxy" not in sys.modules:
        return False
    if isinstance(value, ModuleType):
        return value is not sys.modules.get(value.__name__) or value.__name__.startswith("dcarray")
    known = public_description(value) if callable(value) else None
    if known is None or not known.name.startswith("numpy."):
        return False
    path, _, name = known.name.rpartition(".")
    return vars(sys.modules[path]).get(name) is not value


def _function(value: Any, function: FunctionType, inside: Mapping[Any, Recursion]) -> ObjectGuard | None:
    """Return the guard of a Python function whose source is known and whose callees are supported, or of what
    does nothing but call it.  Its decorators do not matter: it is what is called."""
    code = original(function)
    if code.co_freevars:
        return None
    source = source_of(function, code)
    if source is None or not source.is_faithful(source.tree):
        return None
    if ast.Global in facts(source.tree).kinds:  # its variables are no constants
        return None
    tree = undecorated(source.tree)
    made = rewritten_function(function, source.text([tree]), tree, {}, {}, inside)
    return made if made is None or value is function else made.of(value)


def rewritten_function(
    function: FunctionType, text: str, tree: ast.FunctionDef, inner: Mapping[str, EntryValue],
    parameters: Mapping[str, Any], inside: Mapping[Any, Recursion] | None = None,
) -> ObjectGuard | None:  # fmt: skip
    """Return the guard of a Python function with another source; None if it uses what is not supported.

    Parameters
    ----------
    function : function
    text, tree
        Its source, and the syntax tree of that.
    inner : mapping of str to Function
        Functions that are called by names of the new source alone.
    parameters : mapping of str
        The parameters that the source has besides those of the function, with what they are now.
    inside : mapping of functions, optional
        The functions by which it is called, with what stands for them in it.
    """
    from .guards import entry_value, guard_of

    code = original(function)
    if free_names(code, False).intersection(code.co_cellvars) or function.__kwdefaults__:
        return None
    line = max(code.co_firstlineno, tree.lineno)
    around = {**(inside or {}), function: Recursion(function.__name__, code.co_filename, line)}

    def known(value: Any) -> EntryValue | None:
        if type(value) is FunctionType and called_by(value) in around:
            return around[called_by(value)]
        if type(value) in (int, float, complex, bool, str, type(None)):
            return Constant(value)
        if type(value) is FunctionType:
            found = _guards.get(id(value))
            made = found if found is not None and found.holds() else _make_guard(value, around)
            return None if made is None else made.entry_value
        guard = guard_of(value)
        found_here = None if guard is None else entry_value(value, guard)
        return found_here if isinstance(found_here, Constant | PublicObject) else None

    read = loads(*tree.body)
    named = {name: function.__globals__.get(name) for name in read} | {**parameters}
    members = watched_members(member_paths(tree), named)
    if members is None:
        return None
    checks: list[Check] = members
    names: list[tuple[str, EntryValue]] = []
    for name in sorted(read - {*code.co_varnames, *code.co_cellvars} - parameters.keys()):
        if name in inner:
            names.append((name, inner[name]))
            continue
        value = function.__globals__.get(name, getattr(builtins, name, _MISSING))
        if value is _MISSING:
            continue
        description = global_generator(value, name, function.__globals__) or known(value)
        if description is None:
            return None
        checks.append((function.__globals__, name, value))
        names.append((name, description))
    defaults: list[tuple[str, EntryValue]] = []
    for name, value in _defaults_of(function, code):
        description = known(value)
        if description is None:
            return None
        defaults.append((name, description))
    made = Function(function.__name__, text, code.co_filename, line, tuple(names), tuple(defaults))
    return ObjectGuard(function, made, tuple(checks))


def constants_in(value: EntryValue) -> frozenset[str]:
    """Return the global names of variables that a function, and those that it calls, have the values of."""
    if not isinstance(value, Function):
        return frozenset()
    own: list[str] = [name for name, one in value.names if isinstance(one, Constant)]
    return frozenset(own).union(*[constants_in(one) for _, one in value.names])


def _defaults_of(function: FunctionType, code: CodeType) -> list[tuple[str, Any]]:
    """Return the parameters that have defaults, with these."""
    values = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return [*zip(last, values, strict=True)]
