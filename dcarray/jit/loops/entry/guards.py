"""Guards: hashable keys of the properties of a value that a loop's plan depends on, as type signatures.

Each entry into a loop computes the guard of each name's value, so it is cheap.  Values with equal guards have
equal `EntryValue`s; a value without a guard is of a type that compiled code does not support.  The guard of a
function holds as long as those of the global names that it reads: functions are inlined into loops.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Hashable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.core.store import compilable, compiles, writeable
from dcarray.core.strides import c_strides

from ..syntax.cells import free_names
from ..syntax.definitions import undecorated
from ..syntax.originals import called_by, original, without_cells
from ..syntax.source import is_faithful, source_of
from ..syntax.syntax_facts import facts, loads
from . import generators
from .entry_values import (
    ArrayType,
    Constant,
    DeviceGuard,
    EntryValue,
    Function,
    ListType,
    PublicObject,
    Recursion,
    ScalarType,
    calls_others,
)  # fmt: skip
from .lists import ListElements, is_small
from .members import Check, member_paths, watched_members
from .public_names import public_description
from .tables import Table

NDArray = np.ndarray[Any, Any]
ARRAYS: set[type] = {np.ndarray}
"""The classes of arrays on the host: also that of wrapped ones, once there has been one."""
MAX_GUARDS = 4096
_MISSING = object()


class ObjectGuard:
    """The guard of a module, function or class: made once for each object, and compared by identity."""

    __slots__ = ("_called", "_checks", "_code", "_defaults", "_value", "entry_value")

    def __init__(
        self, value: Any, entry_value: EntryValue, checks: tuple[Check, ...] = (),
        called: tuple[ObjectGuard, ...] = (),
    ) -> None:  # fmt: skip
        self.entry_value = entry_value
        self._value = without_cells(value)  # held, so that no other object gets its identity
        self._checks, self._called = checks, called
        self._code = original(self._value) if isinstance(entry_value, Function) else None
        self._defaults = self._value.__defaults__ if isinstance(entry_value, Function) else None

    def holds(self) -> bool:
        """Whether a function is what it was when the guard was made.  Its code, its defaults, and the values
        of its global names must be the same, also of the functions that it calls by name, as they were when
        this guard was made: they may have other guards now."""
        if self._code is not None:
            function = self._value
            if original(function) is not self._code or function.__defaults__ is not self._defaults:
                return False
        for names, name, value in self._checks:
            now = names.get(name, _MISSING)
            if now is not value and not (now is _MISSING and getattr(builtins, name, _MISSING) is value):
                return False
        return all([guard.holds() for guard in self._called])


# ---- values --------------------------------------------------------------------------------------------
SCALARS = frozenset(map(id, np.sctypeDict.values()))
"""The identities of the types of NumPy's scalars."""


def guard_of(value: Any) -> Hashable | None:
    """Return the guard of a value; None for a type that compiled code does not support."""
    kind = type(value)  # an object of the program may have code that runs when it is asked for its class
    function = GUARDS.get(kind)
    if function is not None:
        return function(value)
    if issubclass(kind, np.generic):  # its subclasses may have code of the program's
        return value.dtype if id(kind) in SCALARS and compiles(value.dtype) else None
    if issubclass(kind, np.dtype):
        return ("dtype", value) if compiles(value) else None
    if knows_wrapped():
        from . import wrapped_guards

        if kind is wrapped_guards.ndarray:
            GUARDS[kind] = wrapped_guards.wrapped
            ARRAYS.add(kind)
            return wrapped_guards.wrapped(value)
        if wrapped_guards.is_handle(value):
            return wrapped_guards.on_device(value)
    if issubclass(kind, np.ndarray) or hasattr(kind, "__getattr__"):
        return None
    if type(kind.__getattribute__) is FunctionType:
        return None
    return generators.guard(value) or object_guard(value)


def knows_wrapped() -> bool:
    """Whether values may be wrapped arrays, since their package is loaded."""
    return "dcarray.api.array" in sys.modules


def _tuple(value: tuple[Any, ...]) -> Hashable | None:
    if not is_small(value):
        return None
    guards = tuple([guard_of(v) for v in value])
    if None in guards or any(type(v) in ARRAYS or type(v) is list for v in value):
        return None
    return ("tuple", guards)


def _slice(*ends: Any) -> Hashable | None:
    return ("slice", ends) if all(end is None or type(end) is int for end in ends) else None


def _plain(a: NDArray) -> Hashable | None:
    if not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), True


# ---- functions -----------------------------------------------------------------------------------------
_guards: dict[int, ObjectGuard] = {}
_refused: dict[int, CodeType] = {}  # the codes of functions that are not supported


def object_guard(value: Any) -> ObjectGuard | None:
    """Return the guard of an object, or of the function that it does nothing but call; None if compiled code
    does not support it."""
    value = called_by(value)
    guard = _guards.get(id(value))
    if guard is not None and guard.holds():
        return guard
    return _make_guard(value, {})


def _make_guard(value: Any, inside: Mapping[Any, Recursion]) -> ObjectGuard | None:
    """Make and store the guard of an object; return None, and store that, if compiled code does not support
    it."""
    if len(_guards) + len(_refused) > MAX_GUARDS:
        _guards.clear()
        _refused.clear()
    known = public_description(value)
    if known is not None:
        guard: ObjectGuard | None = ObjectGuard(value, known)
    elif type(value) is not FunctionType or id(original(value)) in _refused:
        return None
    else:
        guard = _function(value, inside)
        if guard is None and not inside:
            _refused[id(original(value))] = original(value)
    if guard and not (isinstance(guard.entry_value, Function) and calls_others(guard.entry_value)):
        _guards[id(value)] = guard
    return guard


def described(function: Any) -> Function | None:
    """Return the description of a Python function whose source is traced; None if a part of it is not
    supported."""
    guard = object_guard(function)
    description = None if guard is None else guard.entry_value
    return description if isinstance(description, Function) else None


def _function(function: FunctionType, inside: Mapping[Any, Recursion]) -> ObjectGuard | None:
    """Return the guard of a Python function whose source is known and whose callees are supported.  Its
    decorators do not matter: the function itself is called."""
    code = original(function)
    if code.co_freevars:
        return None
    source = source_of(function, code)
    if source is None or not is_faithful(source.tree):
        return None
    if ast.Global in facts(source.tree).kinds:  # its variables are no constants
        return None
    tree = undecorated(source.tree)
    return rewritten_function(function, source.text([tree]), tree, {}, {}, inside)


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
    code = original(function)
    if free_names(code, False).intersection(code.co_cellvars) or function.__kwdefaults__:
        return None
    line = max(code.co_firstlineno, tree.lineno)
    around = {**(inside or {}), function: Recursion(function.__name__, code.co_filename, line)}
    called: list[ObjectGuard] = []

    def known(value: Any) -> EntryValue | None:
        if type(value) is FunctionType and called_by(value) in around:
            return around[called_by(value)]
        if type(value) in (int, float, complex, bool, str, type(None)):
            return Constant(value) if value == value else None
        if type(value) is FunctionType:
            value = called_by(value)
            kept = _guards.get(id(value))
            own = kept if kept is not None and kept.holds() else _make_guard(value, around)
            called.extend([] if own is None else [own])
            return None if own is None else own.entry_value
        guard = None if type(value) is list else guard_of(value)  # an empty list may grow
        entry = None if guard is None else entry_value(value, guard)
        return entry if isinstance(entry, Constant | PublicObject) else None

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
        description = generators.global_generator(value, name, function.__globals__) or known(value)
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
    rewritten = Function(function.__name__, text, code.co_filename, line, tuple(names), tuple(defaults))
    return ObjectGuard(function, rewritten, tuple(checks), tuple(called))


def constants_in(value: EntryValue) -> frozenset[str]:
    """Return the global names whose values are constants of a function, or of its callees."""
    if not isinstance(value, Function):
        return frozenset()
    own: list[str] = [name for name, one in value.names if isinstance(one, Constant)]
    return frozenset(own).union(*[constants_in(one) for _, one in value.names])


def _defaults_of(function: FunctionType, code: CodeType) -> list[tuple[str, Any]]:
    """Return the name and the default value of each parameter that has a default."""
    values = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return [*zip(last, values, strict=True)]


# ---- the table -----------------------------------------------------------------------------------------
GUARDS: dict[type, Callable[[Any], Hashable | None]] = {
    bool: lambda v: "true" if v else "false",
    int: lambda v: v,
    float: lambda v: "float" if v == v else None,  # Python finds a NaN in a list by identity
    complex: lambda v: "complex" if v == v else None,
    str: lambda v: ("str", v),
    type(None): lambda _: "none",
    tuple: _tuple,
    np.ndarray: _plain,
    slice: lambda v: _slice(v.start, v.stop, v.step),
    list: lambda v: None if v else "empty list",  # others are converted
    ListElements: lambda v: ("list", v.array.dtype, v.shape, v.mixed, v.ragged, v.of_tuples),
    Table: lambda v: (guards := _tuple((*v.values(),))) and ("table", tuple(v), guards),
    ObjectGuard: lambda v: v if v.holds() else None,  # of a function that is rewritten
    **dict.fromkeys((FunctionType, BuiltinFunctionType, np.ufunc, type, ModuleType), object_guard),
}


def entry_value(value: Any, guard: Any, same: str | None = None) -> EntryValue:
    """Return the description of a value with this guard; ``same`` is another name of the same array."""
    if isinstance(guard, ObjectGuard):
        return guard.entry_value
    if isinstance(guard, DeviceGuard):
        return ArrayType(guard.dtype, guard.shape, c_strides(guard.shape), True, same)
    if type(value) in ARRAYS:
        dtype, shape, strides, may_write, _ = guard
        return ArrayType(dtype, shape, tuple([s // dtype.itemsize for s in strides]), may_write, same)
    if type(guard) is tuple and guard[0] == "generator":
        return generators.described(guard)
    if type(value) is ListElements:
        return ListType(value.array.dtype, value.shape, value.mixed, value.ragged, value.of_tuples)
    if type(value) is tuple:
        return Constant(tuple([entry_value(v, m) for v, m in zip(value, guard[1], strict=True)]))
    if type(value) is Table:
        (_, of_items), items = guard[2], value.items()
        return Constant({key: entry_value(v, m) for (key, v), m in zip(items, of_items, strict=True)})
    if type(value) in (float, complex):
        return ScalarType(np.dtype(type(value)), weak=True)
    if isinstance(value, np.generic):
        return ScalarType(value.dtype)
    return Constant(value)
