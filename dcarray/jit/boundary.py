"""Calls between accelerated code and code that is not: plain arrays there, wrapped ones here.

Code that is not accelerated, compiled or Python's, is given plain arrays in place of wrapped ones.  They
share the memory: all that was pending on it has run, and as long as somebody keeps the plain array or a view
of it, work on that memory is done at once.  So that code may write to its arguments, and may keep them.  New
arrays that it returns are wrapped; one that is somebody else's, too, or a view of memory, stays as it is.
Compiled code is given plain arrays also in lists, tuples and dictionaries; code in Python finds there what
was put there, which is for callbacks, mostly, and stays lazy for them.

Functions of accelerated code among the arguments are given as callbacks, for which the same holds the other
way round: their arguments are wrapped, the very arrays that were given where they come back, and what they
return is plain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any
from weakref import getweakrefcount, ref

import numpy as np

from dcarray.api.array import ndarray, placed_by_option, wrap
from dcarray.core import config
from dcarray.core.handle import export
from dcarray.core.native import BUILT

from .accelerated_code import is_accelerated

__all__ = [
    "NO_FUNCTIONS",
    "PLAIN",
    "Callback",
    "PlainArguments",
    "StandIn",
    "has_callbacks",
    "holds_no_wrapped",
    "wrap_new",
]

# Types of arguments that are neither wrapped arrays nor functions, and hold none.
PLAIN = frozenset((bool, int, float, complex, str, type(None), np.float64, np.int64, np.ndarray))
NO_FUNCTIONS = PLAIN | {ndarray}


def holds_no_wrapped(value: Any, /) -> bool:
    """Whether a value is known to hold no wrapped array and no function; False also where that takes a longer
    look."""
    return False


def unwrap_result(box: list[Any], /) -> Any:
    """Return the item of a list, which holds its only reference; a wrapped array to whose handle and memory
    there is no other reference becomes a plain one, also in a tuple."""
    return box[0]


if BUILT:
    from dcarray._native.extension import holds_no_wrapped, unwrap_result


# ---- there ---------------------------------------------------------------------------------------------
class PlainArguments:
    """The arguments of one call with plain arrays for the wrapped ones, and the way back.

    Parameters
    ----------
    plain : dict, optional
        Pairs of wrapped and plain arrays that are known, by the identity of the wrapped one.
    deep : bool, optional
        Whether lists, tuples and dictionaries are to have plain arrays, too.

    Attributes
    ----------
    given : dict
        The wrapped array by the identity of its plain one, which lives as long as this object.
    containers : list
        Lists and dictionaries that were replaced: the caller's, ours, a copy of ours.
    """

    __slots__ = ("_deep", "_plain", "_returning", "containers", "given")

    def __init__(self, plain: dict[int, tuple[Any, Any]] | None = None, deep: bool = True) -> None:
        self._plain = plain or {}
        self._deep = deep
        self._returning: dict[int, tuple[ref[Any], Any]] = {}
        self.given: dict[int, Any] = {}
        self.containers: list[tuple[Any, Any, Any]] = []

    def to_plain(self, value: Any, inside: bool = False) -> Any:
        """Return what stands for an argument; ``inside``: it is in a list, a tuple or a dictionary."""
        kind = type(value)
        if isinstance(value, ndarray):
            if inside and not self._deep:
                return value
            known = self._plain.get(id(value))
            if known is None:
                known = self._plain[id(value)] = value, export(value)
                self.given[id(known[1])] = value
                self._returning[id(known[1])] = ref(known[1]), value
            return known[1]
        if kind is list:
            items = [self.to_plain(v, True) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            self.containers.append((value, items, list(items)))
            return items
        if kind is dict:
            named = {k: self.to_plain(v, True) for k, v in value.items()}
            if all(v is value[k] for k, v in named.items()):
                return value
            self.containers.append((value, named, dict(named)))
            return named
        if isinstance(value, tuple):
            items = [self.to_plain(v, True) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            if kind is tuple:
                return tuple(items)
            return kind._make(items) if hasattr(kind, "_make") else value
        if kind in PLAIN:
            return value
        if issubclass(kind, StandIn):
            return value if kind is Callback else value.__wrapped__
        return Callback(value, self._returning) if is_callback(value) else value

    def take_back(self) -> None:
        """Do to the caller's lists and dictionaries what the function has done to ours."""
        for caller, ours, copy in self.containers:
            if type(caller) is list:
                if len(ours) != len(copy) or any(a is not b for a, b in zip(ours, copy, strict=True)):
                    known = {id(v): was for v, was in zip(copy, caller, strict=True)} | self.given
                    caller[:] = [known.get(id(v), v) for v in ours]
            elif ours.keys() != copy.keys() or any(v is not copy[k] for k, v in ours.items()):
                known = {id(v): caller[k] for k, v in copy.items()} | self.given
                found = {k: known.get(id(v), v) for k, v in ours.items()}
                caller.clear()
                caller.update(found)


def wrap_new(holder: Any, k: int, given: dict[int, Any], look: Callable[[type], None]) -> Any:
    """Return an item of a list or tuple: the caller's own array, a new array wrapped, or just the item.

    Parameters
    ----------
    holder : list or tuple
        It has the only reference to a new array: one is new if nobody else refers to it or to its memory.
    k : int
    given : dict
        The caller's wrapped arrays by the identity of their plain ones.
    look : callable
        Looks at types of results that are neither arrays nor tuples nor lists.
    """
    kind = type(holder[k])
    if kind is np.ndarray:
        known = given.get(id(holder[k]))
        if known is not None:
            return known
        if sys.getrefcount(holder[k]) == 2 and holder[k].base is None and not getweakrefcount(holder[k]):
            return placed_by_option(holder[k])
    elif (kind is tuple or kind is list) and sys.getrefcount(holder[k]) == 2:
        items = [wrap_new(holder[k], n, given, look) for n in range(len(holder[k]))]
        if any(a is not b for a, b in zip(items, holder[k], strict=True)):
            return kind(items)
    elif kind is Callback:
        return holder[k].__wrapped__
    else:
        look(kind)
    return holder[k]


# ---- stand-ins -----------------------------------------------------------------------------------------
def _of_function(name: str) -> Any:
    return property(attrgetter(f"__wrapped__.{name}"))


class StandIn:
    """A callable that stands for another one, and is equal to it."""

    __slots__ = ("__weakref__", "__wrapped__")
    __class__ = _of_function("__class__")

    def __init__(self, function: Any) -> None:
        object.__setattr__(self, "__wrapped__", function)

    def __init_subclass__(cls) -> None:
        for name in ("__doc__", "__module__"):  # which every class has of its own
            setattr(cls, name, _of_function(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        if issubclass(type(other), StandIn):
            other = object.__getattribute__(other, "__wrapped__")
        return bool(self.__wrapped__ == other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


# ---- and back ------------------------------------------------------------------------------------------
# Special methods of objects that are no more than functions.
_NO_OPERATORS = frozenset(dir(type("", (), {"__call__": None, "__slots__": ("__dict__", "__weakref__")}))) | {
    "__annotations__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__replace__",
    "__setstate__", "__static_attributes__", "__firstlineno__", "__abstractmethods__",
}  # fmt: skip


def is_callback(value: Any) -> bool:
    """Whether a value is a function that may return wrapped arrays: of accelerated code, or of dcarray.

    Parameters
    ----------
    value : object
        A function, a bound method, a `functools.partial`, or an object that can be called, of a class of
        accelerated code alone, without other operators.
    """
    kind = type(value)
    if kind is FunctionType:
        return is_accelerated(value.__globals__) or _is_ours(value.__module__)
    if kind is partial:
        given = (*value.args, *value.keywords.values())
        return is_callback(value.func) or any(isinstance(v, ndarray) for v in given)
    if isinstance(value, MethodType):
        return isinstance(value.__self__, ndarray) or is_callback(value.__func__)
    if isinstance(value, BuiltinFunctionType):
        return isinstance(value.__self__, ndarray)
    if isinstance(value, type):
        return False
    if not callable(value):
        return False
    call = kind.__call__
    if type(call) is FunctionType and is_accelerated(call.__globals__):
        own = all(map(_is_accelerated_class, kind.__mro__[:-1]))
        return own and all(name in _NO_OPERATORS for name in dir(kind) if name.startswith("__"))
    return _is_ours(kind.__module__) and not isinstance(value, ndarray)


def _is_accelerated_class(kind: type) -> bool:
    """Whether a class is of accelerated code, or one of the standard library that such code derives from."""
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return True
    functions = [v for v in vars(kind).values() if type(v) is FunctionType]
    return any(is_accelerated(f.__globals__) for f in functions)


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "dcarray"


def has_callbacks(values: Iterable[Any]) -> bool:
    """Whether there is a function that `is_callback` among some values, also in lists, tuples and
    dictionaries."""
    for value in values:
        kind = type(value)
        if kind in NO_FUNCTIONS:
            continue
        if isinstance(value, (list, tuple)):
            if not holds_no_wrapped(value) and has_callbacks(value):
                return True
        elif kind is dict:
            if has_callbacks(value.values()):
                return True
        elif is_callback(value):
            return True
    return False


class Callback(StandIn):
    """A function of accelerated code in the hands of code that is not: wrapped arrays in, plain ones out.

    Parameters
    ----------
    function : callable
    returning : dict
        Wrapped arrays that the other code has as plain ones: by the identity of these, a weak reference to
        it, and the wrapped one.
    """

    __slots__ = ("_returning",)

    def __init__(self, function: Any, returning: dict[int, tuple[ref[Any], Any]] | None = None) -> None:
        super().__init__(function)
        object.__setattr__(self, "_returning", {} if returning is None else returning)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function: Any = self.__wrapped__
        pairs: dict[int, tuple[Any, Any]] = {}  # wrapped and plain arrays, by the identity of the wrapped
        if type(function) is FunctionType and not is_callback(function):
            return function(*args, **kwargs)  # it is no longer accelerated
        if kwargs or not holds_no_wrapped(args) or not all(map(_is_small, args)):
            args = tuple([self._to_wrapped(v, pairs) for v in args])
            kwargs = {k: self._to_wrapped(v, pairs) for k, v in kwargs.items()}
        box = [function(*args, **kwargs)]
        result = unwrap_result(box)
        return result if holds_no_wrapped(result) else PlainArguments(pairs).to_plain(result)

    def _to_wrapped(self, value: Any, pairs: dict[int, tuple[Any, Any]]) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            known = self._returning.get(id(value))
            if known is not None and known[0]() is value:
                found = known[1]
            elif _is_small(value) or config.current().device != "cpu":
                return value
            else:
                found = _lend(value)
            pairs[id(found)] = found, value
            return found
        if kind is tuple:
            return tuple([self._to_wrapped(v, pairs) for v in value])
        return value.__wrapped__ if kind is Callback else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        bind = getattr(type(self.__wrapped__), "__get__", None)
        bound = self.__wrapped__ if bind is None else bind(self.__wrapped__, owner, kind)
        return self if bound is self.__wrapped__ else Callback(bound, self._returning)

    def __reduce__(self) -> Any:
        return _callback, (self.__wrapped__,)


def _callback(function: Any) -> Callback:
    return Callback(function)


def _is_small(value: Any) -> bool:
    """Whether a value is no array, or one on which NumPy works at once anyway."""
    return type(value) is not np.ndarray or value.size < config.current().eager_below


def _lend(value: np.ndarray[Any, Any]) -> Any:
    """Return a wrapped array on the memory of a plain one that others have: work on it is done at once."""
    found = wrap(value)
    if found._small is None and not found._store.is_exported():
        found._register()
        found._store.family.exports = [lambda: value]
    return found
