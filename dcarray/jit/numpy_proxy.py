"""Stand-ins for NumPy's modules where accelerated code has wrapped arrays.

They have the same names, with functions that make wrapped arrays.

A name that dcarray has too is dcarray's object; any other is NumPy's own.  ``isinstance(x, np.ndarray)`` is
true of plain and of wrapped arrays, and a class that derives from ``np.ndarray`` derives from the real one.
"""

from __future__ import annotations

import copyreg
import sys
import types
from abc import ABCMeta
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray as _Wrapped
from dcarray.api.dispatch import DISPATCH
from dcarray.api.functions import fallback
from dcarray.api.functions.namespace import _dispatched, _undispatched, lookup
from dcarray.api.functions.standard_arguments import STANDARD
from dcarray.core.handle import export

from .ctypes_compat import ndpointer
from .loops.entry.bound_names import is_inside

# NumPy's modules that dcarray has too.
_REPLACED = {
    "char": "dcarray.char", "emath": "dcarray.emath", "fft": "dcarray.fft", "linalg": "dcarray.linalg",
    "random": "dcarray.random", "strings": "dcarray.strings",
}  # fmt: skip
# NumPy's modules that stay NumPy's: about other things than arrays, or about subclasses of ndarray.
_UNCHANGED = ("dtypes", "exceptions", "f2py", "ma", "matlib", "polynomial", "typing", "version")
# Functions of numpy.testing that call a function with their other arguments, or do not look at any.
_CALLING = (
    "assert_raises", "assert_raises_regex", "assert_warns", "assert_no_warnings", "assert_no_gc_cycles",
)  # fmt: skip
_DISPATCHER = type(np.sum)


# ---- the class ---------------------------------------------------------------------------------------
def _method(name: str, numpy_method: Any) -> Any:
    """Return a method of ``np.ndarray`` that can be called through the class on wrapped arrays too."""
    wrapped_method = getattr(_Wrapped, name, None)
    if not callable(numpy_method) or not callable(wrapped_method):
        return numpy_method

    @wraps(numpy_method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, _Wrapped):
            return wrapped_method(self, *args, **kwargs)
        return numpy_method(_plain(self) if name in _PRINTING else self, *args, **kwargs)

    return call


def _converting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function or method of NumPy wrapped so that it gets plain arrays, and returns wrapped ones."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fallback.call_numpy(function, args, kwargs)

    return call


# The base of subclasses of ``ndarray``: NumPy's class, with methods that take and give wrapped arrays too.
_Base: Any = type(
    "ndarray",
    (np.ndarray,),
    {
        "__slots__": (),
        "__doc__": np.ndarray.__doc__,
        "__module__": "numpy",
        **{
            name: _converting(value)
            for name, value in vars(np.ndarray).items()
            if callable(value) and (not name.startswith("__") or name == "__array_wrap__")
        },
    },
)


class _Arrays(ABCMeta):
    """The metaclass of the stand-in for ``numpy.ndarray``."""

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any) -> Any:
        if not any(isinstance(base, meta) for base in bases):
            return super().__new__(meta, name, bases, body)
        bases = tuple(_Base if base is ndarray else base for base in bases)
        kind, _, _ = types.prepare_class(name, bases)
        return kind(name, bases, body, **kwargs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _Wrapped(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (_Wrapped, np.ndarray))

    def __subclasscheck__(cls, other: Any) -> bool:
        return other is cls or issubclass(other, (_Wrapped, np.ndarray))

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _Wrapped or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(_Wrapped)

    def __repr__(cls) -> str:
        return repr(np.ndarray)


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return np.ndarray.__new__(cls, *args, **kwargs) if cls is not ndarray else _Wrapped(*args, **kwargs)


def _plain(value: Any) -> Any:
    return np.ndarray.view(value, np.ndarray) if type(value) is ndarray else value


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if type(self) is not ndarray:
        kind: Any = _Wrapped if isinstance(self, _Wrapped) else np.ndarray
        return kind.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)
    outs = kwargs.get("out", ())
    if outs:
        kwargs["out"] = tuple(map(_plain, outs))
    plain = tuple(map(_plain, inputs))
    result = fallback.wrap_results(getattr(ufunc, method)(*plain, **kwargs), plain, kwargs)
    if not outs:
        return result
    results = result if type(result) is tuple else (result,)
    results = tuple(r if o is None else o for r, o in zip(results, outs, strict=True))
    return results if type(result) is tuple else results[0]


# A real subclass, since NumPy's C code is asked for views of it: ``array_of_a_subclass.view(np.ndarray)``.
# Such a view is NumPy's array in all but its type, which must not show.
_INHERITED = ("__array_finalize__", "__array_ufunc__", "__class_getitem__", "__doc__", "__hash__", "__new__")
_PRINTING = ("__format__", "__reduce__", "__reduce_ex__", "__repr__", "__str__")
ndarray: Any = _Arrays(
    "ndarray",
    (np.ndarray,),
    {
        "__slots__": (),
        "__array_ufunc__": _array_ufunc,
        "__doc__": np.ndarray.__doc__,
        "__module__": "numpy",
        "__new__": _new,
        "__class_getitem__": np.ndarray.__class_getitem__,
        **{name: _method(name, value) for name, value in vars(np.ndarray).items() if name not in _INHERITED},
    },
)


# Pickled as NumPy's class, which is the class of an array, so that programs without dcarray can read it.
copyreg.pickle(_Arrays, lambda _: (type, (np.empty(0),)))  # type: ignore[arg-type, return-value]


# ---- modules -----------------------------------------------------------------------------------------
def _stand_in(original: ModuleType) -> ModuleType:
    """Return the stand-in for one of NumPy's modules, which looks names up when they are first used.

    Its type is `types.ModuleType` itself, whose attributes the interpreter caches.
    """
    module = ModuleType(original.__name__, original.__doc__)
    names = vars(module)

    def find(name: str) -> Any:
        value = names[name] = _member(original, name)
        return value

    names.update(
        __spec__=original.__spec__,
        __loader__=original.__loader__,
        __getattr__=find,
        __dir__=partial(dir, original),
    )
    return module


_modules: dict[str, ModuleType] = {}


def namespace(module: ModuleType) -> ModuleType:
    """Return the stand-in for one of NumPy's modules; any other module itself."""
    root, _, short = module.__name__.partition(".")
    if root != "numpy" or short.split(".")[0] in _UNCHANGED or ".tests" in short:
        return module
    if short in _REPLACED and short not in STANDARD:
        return import_module(_REPLACED[short])
    return _modules.get(module.__name__) or _modules.setdefault(module.__name__, _stand_in(module))


def _member(module: ModuleType, name: str) -> Any:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return namespace(value)
    if value is np.ndarray:
        return ndarray
    if name.startswith("_") or (isinstance(value, type) and value is not np.vectorize):
        return value
    short = module.__name__.partition(".")[2]
    if name in STANDARD.get(short or "numpy", ()):  # the array API standard's function differs from NumPy's
        return _dispatched(value)
    if short in _REPLACED:
        return getattr(import_module(_REPLACED[short]), name)
    if module is np or getattr(np, name, None) is value:
        return value if name == "info" else lookup(name)  # dcarray has another of this name
    if module.__name__ == "numpy.ctypeslib":
        return ndpointer if name == "ndpointer" else value
    if module.__name__ == "numpy.testing":
        return _converting(value) if name.startswith("assert_") and name not in _CALLING else value
    if type(value) is _DISPATCHER and value in DISPATCH.table:
        return _dispatched(value)
    plain = isinstance(value, (FunctionType, BuiltinFunctionType, _DISPATCHER))
    return _undispatched(value) if plain else value


def patch_array_method(kind: Any) -> Any:
    """Make ``__array__`` of a class in accelerated code give plain arrays, as NumPy requires.

    Parameters
    ----------
    kind : type
        The class, which is changed in place.

    Returns
    -------
    type
        The class.
    """
    body = vars(kind).get("__array__") if isinstance(kind, type) else None
    if isinstance(body, FunctionType) and not hasattr(body, "answers_numpy"):

        @wraps(body)
        def __array__(self: Any, *args: Any, **kwargs: Any) -> Any:
            array = body(self, *args, **kwargs)
            return export(array) if type(array) is _Wrapped else array

        vars(__array__)["answers_numpy"] = True
        kind.__array__ = __array__
    return kind


def patch_subclass(kind: Any) -> None:
    """Adapt a subclass of ``np.ndarray`` that was defined before its module was accelerated to the stand-in.

    Its views as ``np.ndarray`` are plain arrays, which its base knows, and ``obj.__class__ is np.ndarray`` in
    its ``__array_finalize__`` is true of plain arrays while ``np.ndarray`` is the stand-in.

    Parameters
    ----------
    kind : type
        The class, which is changed in place.
    """
    if not issubclass(kind, np.ndarray) or kind is ndarray or issubclass(kind, _Base):
        return
    if kind.view is np.ndarray.view:
        kind.view = _view
    body = vars(kind).get("__array_finalize__")
    if not isinstance(body, FunctionType) or hasattr(body, "sees_stand_in"):
        return
    used, names = body.__code__.co_names, body.__globals__
    if not {"__class__", "ndarray"}.issubset(used):
        return

    @wraps(body)
    def __array_finalize__(self: Any, obj: Any) -> Any:
        if type(obj) is np.ndarray and is_inside(names):
            obj = np.ndarray.view(obj, ndarray)
        return body(self, obj)

    vars(__array_finalize__)["sees_stand_in"] = True
    kind.__array_finalize__ = __array_finalize__


@wraps(np.ndarray.view)
def _view(self: Any, *args: Any, **kwargs: Any) -> Any:
    args = tuple(np.ndarray if a is ndarray else a for a in args)
    kwargs = {k: np.ndarray if v is ndarray else v for k, v in kwargs.items()}
    return np.ndarray.view(self, *args, **kwargs)


# ---- objects that code has imported already ----------------------------------------------------------
_known: dict[int, tuple[ModuleType, str]] = {}  # by the identity of NumPy's object: its module and name
_HOLDERS = [
    "numpy.testing", "numpy.ctypeslib", "numpy.lib.array_utils", "numpy.lib.stride_tricks",
    *(f"numpy.{name}" for name in _REPLACED if name != "emath"), "numpy.lib.scimath", "numpy",
]  # fmt: skip
_unread_modules = set(_HOLDERS)


def _read() -> None:
    """Learn the members of the NumPy modules imported since the last call.  Others are not imported: that
    takes time, and no code has their members."""
    loaded = [name for name in _HOLDERS if name in sys.modules]
    _unread_modules.difference_update(loaded)
    for module in map(sys.modules.__getitem__, loaded):
        for name, member in sorted(vars(module).items()):
            if not name.startswith("_") and (callable(member) or name in ("r_", "c_", "mgrid", "ogrid")):
                _known[id(member)] = module, name


def members_known() -> bool:
    """Whether no module of NumPy's has been imported since `counterpart` last looked."""
    return sys.modules.keys().isdisjoint(_unread_modules)


def counterpart(value: Any) -> Any:
    """Return the object that replaces a NumPy object in accelerated code; other objects themselves."""
    if isinstance(value, ModuleType):
        return namespace(value)
    if not members_known():
        _read()
    place = _known.get(id(value))
    return value if place is None else getattr(namespace(place[0]), place[1])
