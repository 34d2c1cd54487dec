"""Stand-ins for functions of libraries in accelerated code, which are given plain arrays.

A function in C, Cython, Fortran or Rust often takes instances of ``numpy.ndarray`` alone, so it is given
plain arrays.  One in Python works on wrapped arrays by NumPy's protocols, and is given these; but not along
with a function to call, whose arguments and results it takes for NumPy's.  `boundary` has what is given, and
how.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .accelerated_code import is_accelerated
from .boundary import (
    NO_FUNCTIONS,
    PLAIN,
    Callback,
    PlainArguments,
    StandIn,
    has_callbacks,
    holds_no_wrapped,
    wrap_new,
)
from .extension_classes import EXCLUDED, class_stand_in, is_compiled_class, replace_methods
from .library_functions import is_library_class, is_library_function, replace_constructor

__all__ = ["ExtensionFunction", "LibraryFunction", "is_extension", "library_stand_in"]

# Names of types: functions of Cython, f2py and nanobind.  All others are of `BuiltinFunctionType`.
_FUNCTION_TYPES = frozenset(("cython_function_or_method", "fused_cython_function", "fortran", "nb_func"))
# Packages in Python whose functions ask whether an array is a numpy.ndarray, and do something else with any
# other, or do not fill it: they are taken for compiled ones.
_FRONTS = ("scipy.ndimage", "scipy.sparse")


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
    """Whether a module, or one in it, is compiled, or has functions that are to have stand-ins."""
    name = module.__name__
    if name.partition(".")[0] in EXCLUDED or sys.modules.get(name) is not module:
        return False
    if is_extension(name) or any(map(_is_function, tuple(vars(module).values()))):
        return True
    if is_accelerated(vars(module)) or _without.get(name) == len(sys.modules):
        return False
    for key, one in tuple(sys.modules.items()):
        inside = key.startswith(name) and (key == name or key[len(name)] == ".")
        if inside and isinstance(one, ModuleType) and any(map(_is_any, tuple(vars(one).values()))):
            return True
    _without[name] = len(sys.modules)
    return False


_without: dict[str, int] = {}  # modules without such functions, when there were so many modules


def _is_any(value: Any) -> bool:
    return _is_function(value) or is_library_function(value) or is_library_class(value)


# ---- functions ---------------------------------------------------------------------------------------
_looked_at: set[type] = set()  # types of results


def _look(kind: type) -> None:
    """Have the methods of results given plain arrays, if their class is a compiled one."""
    if kind not in _looked_at:
        _looked_at.add(kind)
        if is_compiled_class(kind):
            replace_methods(kind, ExtensionFunction)


class ExtensionFunction(StandIn):
    """A function of an extension module, which is given plain arrays; equal to the function itself."""

    __slots__ = ()
    _is_deep = True  # whether lists, tuples and dictionaries are to have plain arrays, too

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and (PLAIN.issuperset(map(type, args)) or holds_no_wrapped(args)):
            return wrap_new([self.__wrapped__(*args)], 0, {}, _look)
        arguments = PlainArguments(deep=self._is_deep)
        plain = [arguments.to_plain(v) for v in args]
        named = {k: arguments.to_plain(v) for k, v in kwargs.items()}
        try:
            box = [self.__wrapped__(*plain, **named)]
        finally:
            if arguments.containers:
                arguments.take_back()
        return wrap_new(box, 0, arguments.given, _look)

    def __getitem__(self, key: Any) -> Any:  # the kinds of a fused function
        return library_stand_in(self.__wrapped__[key])

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        bind = getattr(type(self.__wrapped__), "__get__", None)
        bound = self.__wrapped__ if bind is None else bind(self.__wrapped__, owner, kind)
        return self if bound is self.__wrapped__ else type(self)(bound)

    def __reduce__(self) -> Any:
        return library_stand_in, (self.__wrapped__,)


class LibraryFunction(ExtensionFunction):
    """A function in Python of a library, which is given plain arrays where it is given functions to call."""

    __slots__ = ()
    _is_deep = False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function = self.__wrapped__
        if NO_FUNCTIONS.issuperset(map(type, args)) and (
            not kwargs or NO_FUNCTIONS.issuperset(map(type, kwargs.values()))
        ):
            return function(*args, **kwargs)
        calls = has_callbacks(args) or (kwargs and has_callbacks(kwargs.values()))
        if calls and not is_accelerated(function.__globals__):
            return ExtensionFunction.__call__(self, *args, **kwargs)
        return function(*args, **kwargs)


def _give_callbacks(name: str | None) -> None:
    """Have a compiled module call the functions in Python that it has as callbacks, once and for good."""
    names = vars(sys.modules[name]) if name in sys.modules and is_extension(name) else {}
    for key, value in tuple(names.items()):
        if type(value) is FunctionType and value.__module__.partition(".")[0] not in EXCLUDED:
            names[key] = Callback(value)


# ---- modules -----------------------------------------------------------------------------------------
class _ExtensionModule(ModuleType):
    """A module with stand-ins for compiled functions and modules; its attributes are those of the module."""

    def __getattribute__(self, name: str) -> Any:
        original = _originals[id(self)]
        return vars(original) if name == "__dict__" else library_stand_in(getattr(original, name))

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


def library_stand_in(value: Any) -> Any:
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
    if type(value) in NO_FUNCTIONS or issubclass(type(value), (StandIn, _ExtensionModule)):
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
        _give_callbacks(getattr(value, "__module__", None))
    elif is_library_function(value):
        made = LibraryFunction(value)
    elif is_library_class(value):
        replace_constructor(value, LibraryFunction)
        made = value
    elif is_compiled_class(value):
        replace_methods(value, ExtensionFunction)
        made = class_stand_in(value, ExtensionFunction(value))
    else:
        return value
    _stand_ins[id(value)] = value, made
    return made
