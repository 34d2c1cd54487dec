"""Stand-ins for functions of extension modules in accelerated code, which are given plain arrays.

A function in C, Cython, Fortran or Rust often takes instances of ``numpy.ndarray`` alone.  Its stand-in hands
it, for each wrapped array among the arguments, also in lists, tuples and dictionaries, a plain one that
shares the memory: all that was pending on it has run, and as long as somebody keeps the plain array or a view
of it, work on that memory is done at once.  So a function may write to its arguments, and may keep them.

New arrays that it returns are wrapped; one that is somebody else's, too, or a view of memory, stays as it is.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import getweakrefcount

import numpy as np

from dcarray.api.array import ndarray, placed_by_option
from dcarray.core.handle import export
from dcarray.core.native import BUILT

from .extension_classes import EXCLUDED, class_stand_in, is_compiled_class, replace_methods

__all__ = ["ExtensionFunction", "extension_stand_in", "is_extension"]

# Names of types: functions of Cython, f2py and nanobind.  All others are of `BuiltinFunctionType`.
_FUNCTION_TYPES = frozenset(("cython_function_or_method", "fused_cython_function", "fortran", "nb_func"))
# Packages in Python whose functions ask whether an array to write to is a numpy.ndarray, and leave any other
# unfilled: they are taken for compiled ones.
_FRONTS = ("scipy.ndimage",)


def holds_no_wrapped(value: Any, /) -> bool:
    """Whether a value is known to hold no wrapped array; False also where that takes a longer look."""
    return False


if BUILT:
    from dcarray._native.extension import holds_no_wrapped


# Types of arguments that are plain, and hold no wrapped array.
_are_plain = frozenset(
    (bool, int, float, complex, str, type(None), np.float64, np.int64, np.ndarray)
).issuperset


# ---- which objects -----------------------------------------------------------------------------------
def is_extension(name: str | None) -> bool:
    """Whether a module is a compiled one of an installed package, or a module that such a one has made.

    Parameters
    ----------
    name : str or None
        Its name in ``sys.modules``; None, or one that is not there, is no module.
    """
    while name and name.partition(".")[0] not in EXCLUDED:
        module = sys.modules.get(name)
        if not isinstance(module, ModuleType):
            return False
        loader = getattr(module, "__loader__", None)
        if loader is not None:
            return isinstance(loader, ExtensionFileLoader)
        if getattr(module, "__file__", None) is not None:
            return False
        name = name.rpartition(".")[0]  # made by the code of an extension module, as pybind11's submodules
    return False


def _is_function(value: Any) -> bool:
    """Whether an object is a function that compiled code of an installed package has made."""
    kind = type(value)
    if kind is FunctionType:
        return value.__module__.startswith(_FRONTS) if type(value.__module__) is str else False
    if kind is not BuiltinFunctionType and kind.__name__ not in _FUNCTION_TYPES:
        return False
    if kind.__name__ == "fortran":  # which does not say where it is from
        return True
    name = getattr(value, "__module__", None)
    if not isinstance(name, str):
        owner = getattr(value, "__self__", None)
        name = owner.__name__ if isinstance(owner, ModuleType) else type(owner).__module__
    return name.partition(".")[0] not in EXCLUDED


def _has_functions(module: ModuleType) -> bool:
    """Whether a module is compiled, or shows functions of a compiled one as its own."""
    name = module.__name__
    if name.partition(".")[0] in EXCLUDED or sys.modules.get(name) is not module:
        return False
    return is_extension(name) or any(map(_is_function, tuple(vars(module).values())))


# ---- functions ---------------------------------------------------------------------------------------
class _Arguments:
    """The arguments of one call with plain arrays for the wrapped ones, and the way back."""

    __slots__ = ("containers", "given", "plain")

    def __init__(self) -> None:
        self.plain: dict[int, tuple[Any, Any]] = {}  # by the wrapped array: it and its plain one
        self.given: dict[int, Any] = {}  # by the plain array: the wrapped one
        self.containers: list[tuple[Any, Any, Any]] = []  # lists and dictionaries: the caller's, ours, a copy

    def to_plain(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, ndarray):
            known = self.plain.get(id(value))
            if known is None:
                known = self.plain[id(value)] = value, export(value)
                self.given[id(known[1])] = value
            return known[1]
        if kind is list:
            items = [self.to_plain(v) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            self.containers.append((value, items, list(items)))
            return items
        if kind is dict:
            named = {k: self.to_plain(v) for k, v in value.items()}
            if all(v is value[k] for k, v in named.items()):
                return value
            self.containers.append((value, named, dict(named)))
            return named
        if isinstance(value, tuple):
            items = [self.to_plain(v) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            if kind is tuple:
                return tuple(items)
            return kind._make(items) if hasattr(kind, "_make") else value
        return value

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


def _wrap_item(holder: Any, k: int, given: dict[int, Any]) -> Any:
    """Return an item of a list or tuple: the caller's own array, a new array wrapped, or just the item.

    An array is new if nobody else refers to it or to its memory."""
    kind = type(holder[k])
    if kind is np.ndarray:
        known = given.get(id(holder[k]))
        if known is not None:
            return known
        if sys.getrefcount(holder[k]) == 2 and holder[k].base is None and not getweakrefcount(holder[k]):
            return placed_by_option(holder[k])
    elif (kind is tuple or kind is list) and sys.getrefcount(holder[k]) == 2:
        items = [_wrap_item(holder[k], n, given) for n in range(len(holder[k]))]
        if any(a is not b for a, b in zip(items, holder[k], strict=True)):
            return kind(items)
    elif kind not in _looked_at:
        _looked_at.add(kind)
        if is_compiled_class(kind):
            replace_methods(kind, ExtensionFunction)
    return holder[k]


_looked_at: set[type] = set()  # types of results


def _of_function(name: str) -> Any:
    return property(attrgetter(f"__wrapped__.{name}"))


class ExtensionFunction:
    """A function of an extension module, which is given plain arrays; equal to the function itself."""

    __slots__ = ("__weakref__", "__wrapped__")
    __class__ = _of_function("__class__")

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and (_are_plain(map(type, args)) or holds_no_wrapped(args)):
            box = [self.__wrapped__(*args)]
            return _wrap_item(box, 0, {})
        arguments = _Arguments()
        plain = arguments.to_plain(args)
        named = {k: arguments.to_plain(v) for k, v in kwargs.items()}
        try:
            box = [self.__wrapped__(*plain, **named)]
        finally:
            if arguments.containers:
                arguments.take_back()
        return _wrap_item(box, 0, arguments.given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __getitem__(self, key: Any) -> Any:  # the kinds of a fused function
        return extension_stand_in(self.__wrapped__[key])

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        bind = getattr(type(self.__wrapped__), "__get__", None)
        bound = self.__wrapped__ if bind is None else bind(self.__wrapped__, owner, kind)
        return self if bound is self.__wrapped__ else ExtensionFunction(bound)

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__ == (other.__wrapped__ if type(other) is ExtensionFunction else other))

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return extension_stand_in, (self.__wrapped__,)


for _name in ("__doc__", "__module__"):  # which every class has of its own
    setattr(ExtensionFunction, _name, _of_function(_name))


# ---- modules -----------------------------------------------------------------------------------------
class _ExtensionModule(ModuleType):
    """A module with stand-ins for compiled functions and modules; its attributes are those of the module."""

    def __getattribute__(self, name: str) -> Any:
        original = _originals[id(self)]
        return vars(original) if name == "__dict__" else extension_stand_in(getattr(original, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_originals[id(self)], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_originals[id(self)], name)

    def __dir__(self) -> list[str]:
        return dir(_originals[id(self)])

    def __repr__(self) -> str:
        return repr(_originals[id(self)])


_originals: dict[int, ModuleType] = {}  # by the identity of the stand-in
_stand_ins: dict[int, tuple[Any, Any]] = {}  # by the identity of a function or module: it and its stand-in


def extension_stand_in(value: Any) -> Any:
    """Return the stand-in for a compiled function or class, or for a module that has some; else the value.

    Parameters
    ----------
    value : object
        Any object, such as one among the global names of a module.

    Returns
    -------
    object
        Always the same stand-in for one function, class or module.
    """
    if type(value) is ExtensionFunction or type(value) is _ExtensionModule:
        return value
    known = _stand_ins.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    if isinstance(value, ModuleType):
        if not _has_functions(value):
            return value
        made: Any = _ExtensionModule(value.__name__)
        _originals[id(made)] = value
    elif _is_function(value):
        made = ExtensionFunction(value)
    elif is_compiled_class(value):
        replace_methods(value, ExtensionFunction)
        made = class_stand_in(value, ExtensionFunction(value))
    else:
        return value
    _stand_ins[id(value)] = value, made
    return made
