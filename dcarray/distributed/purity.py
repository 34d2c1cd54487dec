"""Functions of which it is known that they do nothing but compute, so that any rank may call them."""

from __future__ import annotations

import builtins
import cmath
import dis
import functools
import math
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["repeatable"]

_BUILTINS = frozenset(
    [
        abs, all, any, bool, complex, divmod, enumerate, filter, float, int, isinstance, len, list, map, max,
        min, pow, range, reversed, round, slice, sorted, str, sum, tuple, zip,
    ]
)  # fmt: skip
# Names of what changes an array, a list or a dictionary, and of what writes files.
_LISTS = "add append clear discard extend insert pop popitem remove reverse setdefault sort update"
_ARRAYS = "at byteswap dump fill out partition put resize setfield setflags shuffle tofile"
_CHANGES = frozenset(f"{_LISTS} {_ARRAYS}".split())
# NumPy's functions that do more than compute, or change what they are given.
_WRITES = "copyto fill_diagonal place put put_along_axis putmask"
_READS = "fromfile fromregex genfromtxt load loadtxt save savetxt savez savez_compressed"
_STATE = (
    "frompyfunc get_printoptions info set_printoptions setbufsize seterr seterrcall show_config show_runtime"
)
_MORE = frozenset(f"{_WRITES} {_READS} {_STATE} test".split())
_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME", "LOAD_BUILD_CLASS")
_ELEMENTS = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_CONSTANTS = (int, float, complex, str, bytes, type(None), type(...), slice, np.generic, np.dtype)


def repeatable(function: Any, *args: Any) -> bool:
    """Is it known of a call that its result follows from its arguments, and that it changes nothing else?

    Parameters
    ----------
    function : callable
        What NumPy calls for each of many lines, which may not be written.
    *args
        What it is given beside these.
    """
    kind = _of_several(args)
    return kind != _UNKNOWN and _steady(function, kind == _HELD, set())


_FIXED, _HELD, _UNKNOWN = "fixed", "held", "unknown"


def _given(value: Any) -> str:
    """Is a value one that cannot change, one that holds what can, or who knows what?"""
    if isinstance(value, _CONSTANTS):
        return _FIXED
    if type(value) is tuple:
        return _of_several(value)
    if type(value) is np.ndarray:
        return _UNKNOWN if value.dtype.hasobject else _HELD
    if type(value) in (list, set):
        return _UNKNOWN if _UNKNOWN in map(_given, value) else _HELD
    if type(value) is dict:
        return _UNKNOWN if _UNKNOWN in map(_given, (*value, *value.values())) else _HELD
    return _UNKNOWN


def _of_several(values: Iterable[Any]) -> str:
    kinds = set(map(_given, values))
    return next((kind for kind in (_UNKNOWN, _HELD) if kind in kinds), _FIXED)


def _steady(function: Any, holds: bool, met: set[Any]) -> bool:
    """As `repeatable`; ``holds`` if it is given something that can change."""
    if isinstance(function, functools.partial):
        kind = _of_several((*function.args, *function.keywords.values()))
        return kind != _UNKNOWN and _steady(function.func, holds or kind == _HELD, met)
    if _known(function):
        return True
    if type(function) is not types.FunctionType:
        return False
    return function in met or _written(function, holds, met | {function})


def _known(value: Any) -> bool:
    """Is it a function of Python's or NumPy's that changes nothing?"""
    if isinstance(value, type) and issubclass(value, np.generic):
        return True
    try:
        return value in _BUILTINS or value in _of_numpy()
    except TypeError:  # it has no hash
        return False


@functools.cache
def _of_numpy() -> frozenset[Any]:
    """Functions of NumPy's and our namesakes of them, and of Python's mathematics."""
    import dcarray

    found = [f for module in (math, cmath) for f in vars(module).values() if callable(f)]
    for theirs, ours in ((np, dcarray), (np.linalg, dcarray.linalg), (np.fft, dcarray.fft)):
        for name, value in vars(theirs).items():
            if callable(value) and not isinstance(value, type) and name not in _MORE and name[0] != "_":
                found += [value, getattr(ours, name, value)]
    return frozenset(found)


def _written(function: types.FunctionType, holds: bool, met: set[Any]) -> bool:
    """As `_steady`, of a function that is written in Python."""
    cells = function.__closure__ or ()
    try:
        near = {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True)}
    except ValueError:  # one that is still to be filled
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    kind = _of_several(defaults)
    if kind == _UNKNOWN:
        return False
    found = _Reading(near, function.__globals__, met)
    return found.code(function.__code__) and not (found.changes and (found.holds or holds or kind == _HELD))


class _Reading:
    """What the code of a function uses."""

    def __init__(self, near: dict[str, Any], names: dict[str, Any], met: set[Any]) -> None:
        self._near, self._names, self._met = near, names, met
        self.holds = self.changes = False

    def code(self, code: types.CodeType) -> bool:
        """Is every name that it looks up one of something that is known?"""
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
        """Is this value known, or what follows of it where it is a module?"""
        for step in after:
            if not isinstance(value, types.ModuleType):
                break
            if step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                return False
            value = getattr(value, step.argval, self)
        kind = _given(value)
        if kind == _UNKNOWN:
            return _steady(value, True, self._met)
        self.holds |= kind == _HELD
        return True
