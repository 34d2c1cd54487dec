"""Classes of extension modules in accelerated code: methods and constructors are given plain arrays.

A class is left as it is but for its methods, which are replaced, once and for good, by stand-ins that hand
plain arrays to the methods themselves.  What creates an object has no such place: in accelerated code the
class has a stand-in, which creates objects of the class.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["EXCLUDED", "class_stand_in", "is_compiled_class", "replace_methods"]

_IS_HEAP_TYPE, _IS_BASE_TYPE = 1 << 9, 1 << 10
# The names of types: methods of C, Cython, and pybind11.
_METHODS = frozenset(
    ("method_descriptor", "cython_function_or_method", "fused_cython_function", "instancemethod")
)
_MAKERS = ("pybind11_type", "nb_type")  # metaclasses of classes that compiled code has made
# Packages of which nothing is replaced: NumPy's names have other stand-ins, ours take wrapped arrays, and the
# others are called by us.
EXCLUDED = sys.stdlib_module_names | {"numpy", "dcarray", "mpi4py", "pyopencl", "cuda", "cupy", "llvmlite"}


def is_compiled_class(value: Any) -> bool:
    """Whether an object is a class that compiled code of an installed package has made; no exception."""
    if not isinstance(value, type) or issubclass(value, BaseException):
        return False
    if value.__flags__ & _IS_HEAP_TYPE and not type(value).__name__.startswith(_MAKERS):
        return False
    return value.__module__.partition(".")[0] not in EXCLUDED


# ---- methods -----------------------------------------------------------------------------------------
_seen: set[type] = set()


def replace_methods(kind: type, stand_in: Callable[[Any], Any]) -> None:
    """Replace the methods of a class, and of those that it derives from, by stand-ins.

    Parameters
    ----------
    kind : type
        A compiled class.
    stand_in : callable
        Makes the stand-in for a method.
    """
    for one in kind.__mro__:
        if one in _seen or not is_compiled_class(one):
            continue
        _seen.add(one)
        found = {
            k: v for k, v in vars(one).items() if type(v).__name__ in _METHODS and not k.startswith("__")
        }
        names: Any = None
        for name, method in found.items():
            try:
                setattr(one, name, stand_in(method))
            except TypeError:  # classes in C are not to be changed by mistake; their dictionaries can be
                names = next(d for d in gc.get_referents(vars(one)) if type(d) is dict)
                names[name] = stand_in(method)
        if names is not None:
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(one))


# ---- constructors ------------------------------------------------------------------------------------
def class_stand_in(kind: Any, call: Callable[..., Any]) -> Any:
    """Make the stand-in for a class, which is equal to it, and of which its objects are instances.

    Parameters
    ----------
    kind : type
        A compiled class.
    call : callable
        Creates an object of it.
    """
    made: Any = None

    class Stand(type(kind)):  # type: ignore[misc]
        """The metaclass of the stand-in."""

        def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any) -> Any:
            if made is None:
                return type.__new__(meta, name, bases, body)
            bases = tuple(kind if base is made else base for base in bases)
            maker, _, _ = types.prepare_class(name, bases)
            return maker(name, bases, body, **kwargs)

        def __init__(cls, *args: Any, **kwargs: Any) -> None:
            type.__init__(cls, *args)

        def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        def __getattr__(cls, name: str) -> Any:
            return getattr(kind, name)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, kind)

        def __subclasscheck__(cls, other: Any) -> bool:
            return other is made or issubclass(other, kind)

        def __eq__(cls, other: object) -> bool:
            return other is made or other is kind

        def __hash__(cls) -> int:
            return hash(kind)

        def __repr__(cls) -> str:
            return repr(kind)

    bases = (kind,) if kind.__flags__ & _IS_BASE_TYPE and type(kind) is type else kind.__bases__
    about = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    try:
        made = Stand(kind.__name__, bases, {"__slots__": (), **about})
    except TypeError:  # it cannot be derived from
        return kind
    return made
