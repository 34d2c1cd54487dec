"""Pure functions: bytecode analysis of whether a call only computes its result."""

from __future__ import annotations

import builtins
import cmath
import dis
import functools
import math
import types
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from dcarray.jit.loops.syntax.originals import original

__all__ = ["is_pure"]

_BUILTINS = frozenset(
    [
        abs, all, any, bool, complex, divmod, enumerate, filter, float, int, isinstance, len, list, map, max,
        min, pow, range, reversed, round, slice, sorted, str, sum, tuple, zip,
    ]
)  # fmt: skip
# Methods that change an array, a list or a dictionary, or write files.
_LISTS = "add append clear discard extend insert pop popitem remove reverse setdefault sort update"
_ARRAYS = "at byteswap dump fill out partition put resize setfield setflags shuffle tofile"
_CHANGES = frozenset(f"{_LISTS} {_ARRAYS}".split())
# NumPy's functions that have side effects or change their arguments.
_WRITES = "copyto fill_diagonal place put put_along_axis putmask"
_READS = "fromfile fromregex genfromtxt load loadtxt save savetxt savez savez_compressed"
_STATE = (
    "frompyfunc get_printoptions info set_printoptions setbufsize seterr seterrcall show_config show_runtime"
)
_IMPURE = frozenset(f"{_WRITES} {_READS} {_STATE} test".split())
_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME", "LOAD_BUILD_CLASS")
_ELEMENTS = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_CONSTANTS = (int, float, complex, str, bytes, type(None), type(...), slice, np.generic, np.dtype)


def is_pure(function: Any, *args: Any) -> bool:
    """Whether a call is known to be pure: its result depends on its arguments alone, and it changes nothing.

    Parameters
    ----------
    function : callable
        The function, whose first argument is a read-only array.
    *args
        Its other arguments.
    """
    kind = _mutability_of_all(args)
    return kind != _UNKNOWN and _pure(function, kind == _MUTABLE, set())


_IMMUTABLE, _MUTABLE, _UNKNOWN = "fixed", "held", "unknown"


def _mutability(value: Any) -> str:
    """Whether a value is immutable, contains mutable values of known types, or is of an unknown type."""
    if isinstance(value, _CONSTANTS):
        return _IMMUTABLE
    if type(value) is tuple:
        return _mutability_of_all(value)
    if type(value) is np.ndarray:
        return _UNKNOWN if value.dtype.hasobject else _MUTABLE
    if type(value) in (list, set):
        return _UNKNOWN if _UNKNOWN in map(_mutability, value) else _MUTABLE
    if type(value) is dict:
        return _UNKNOWN if _UNKNOWN in map(_mutability, (*value, *value.values())) else _MUTABLE
    return _UNKNOWN


def _mutability_of_all(values: Iterable[Any]) -> str:
    kinds = set(map(_mutability, values))
    return next((kind for kind in (_UNKNOWN, _MUTABLE) if kind in kinds), _IMMUTABLE)


def _pure(function: Any, holds: bool, visited: set[Any]) -> bool:
    """Whether a function is pure, as `is_pure`; ``holds`` if an argument is mutable."""
    if isinstance(function, functools.partial):
        kind = _mutability_of_all((*function.args, *function.keywords.values()))
        return kind != _UNKNOWN and _pure(function.func, holds or kind == _MUTABLE, visited)
    if _known(function):
        return True
    if type(function) is not types.FunctionType:
        return False
    return function in visited or _pure_python(function, holds, visited | {function})


def _known(value: Any) -> bool:
    """Whether a value is a function of Python or NumPy that is pure."""
    if isinstance(value, type) and issubclass(value, np.generic):
        return True
    try:
        return value in _BUILTINS or value in _pure_functions()
    except TypeError:  # it has no hash
        return False


@functools.cache
def _pure_functions() -> frozenset[Any]:
    """Return the pure functions of NumPy, their counterparts in dcarray, and those of `math` and `cmath`."""
    from dcarray import fft, linalg
    from dcarray.api.functions.namespace import lookup

    functions = [f for module in (math, cmath) for f in vars(module).values() if callable(f)]
    for theirs, ours in (
        (np, lookup),
        (np.linalg, partial(getattr, linalg)),
        (np.fft, partial(getattr, fft)),
    ):
        for name, value in vars(theirs).items():
            if callable(value) and not isinstance(value, type) and name not in _IMPURE and name[0] != "_":
                functions += [value, ours(name)]
    return frozenset(functions)


def _pure_python(function: types.FunctionType, holds: bool, visited: set[Any]) -> bool:
    """Whether a function written in Python is pure, as `_pure`."""
    cells = function.__closure__ or ()
    try:
        near = {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True)}
    except ValueError:  # an empty cell
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    kind = _mutability_of_all(defaults)
    if kind == _UNKNOWN:
        return False
    usage = _Usage(near, function.__globals__, visited)
    return usage.code(original(function)) and not (
        usage.changes and (usage.holds or holds or kind == _MUTABLE)
    )


class _Usage:
    """The values that a function's bytecode uses, and whether it changes any."""

    def __init__(self, near: dict[str, Any], names: dict[str, Any], visited: set[Any]) -> None:
        self._near, self._names, self._met = near, names, visited
        self.holds = self.changes = False

    def code(self, code: types.CodeType) -> bool:
        """Whether every global and closure name of a code object has a known value, and none is assigned."""
        if code.co_flags & 0x280:  # a coroutine
            return False
        if _CHANGES.intersection(code.co_names):
            self.changes = True
        steps = list(dis.get_instructions(code))
        own = {*code.co_cellvars, *code.co_varnames}
        for k, step in enumerate(steps):
            if step.opname in _STORES or (step.opname == "STORE_DEREF" and step.argval not in own):
                return False
            if step.opname in _ELEMENTS or (step.opname == "BINARY_OP" and str(step.argrepr).endswith("=")):
                self.changes = True
            if isinstance(step.argval, tuple) and _CHANGES.intersection(map(str, step.argval)):
                self.changes = True  # out=
            beyond = step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
            if beyond and not self._value(self._global(step.argval), steps[k + 1 :]):
                return False
            near = step.opname == "LOAD_DEREF" and step.argval in self._near
            if near and not self._value(self._near[step.argval], steps[k + 1 :]):
                return False
        return all(self.code(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))

    def _global(self, name: str) -> Any:
        return self._names.get(name, getattr(builtins, name, self))

    def _value(self, value: Any, after: list[dis.Instruction]) -> bool:
        """Whether a value, or of a module the attribute that the next instructions read, is known."""
        for step in after:
            if not isinstance(value, types.ModuleType):
                break
            if step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                return False
            value = getattr(value, step.argval, self)
        kind = _mutability(value)
        if kind == _UNKNOWN:
            return _pure(value, True, self._met)
        self.holds |= kind == _MUTABLE
        return True
