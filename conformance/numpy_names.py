"""The NumPy that modules of its own test suite import: the same names, which create dcarray's arrays.

A test module runs with special builtins.  Their ``__import__`` returns the same ``numpy`` as in a script
under ``python -m dcarray run`` on a device or over ranks.  In addition, ``np.ndarray`` is the class of
dcarray's arrays, so that ``type(x) is np.ndarray`` holds, and ``isinstance`` and subclassing are adapted.
The assertions of `numpy.testing` get NumPy's arrays.  The source of the tests is not changed.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["substituted"]

_TESTING = ("numpy.testing", "numpy.ma.testutils")
_COMPARE = (
    "assert_", "almost", "approx", "assert_allclose", "assert_almost_equal", "assert_approx_equal",
    "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_approx_equal",
    "assert_array_compare", "assert_array_equal", "assert_array_less", "assert_array_max_ulp", "assert_close",
    "assert_equal", "assert_equal_records", "assert_mask_equal", "assert_not_equal", "fail_if_equal",
)  # fmt: skip

_HOLDING = (dc.ndarray, tuple, list, dict)


def _plain(value: Any) -> Any:
    """Return a value with dcarray's arrays, also in sequences, replaced by NumPy's of the same memory."""
    kind = type(value)
    if isinstance(value, dc.ndarray):
        return np.asarray(value)
    if kind is tuple or kind is list:
        holding = any(issubclass(k, _HOLDING) for k in set(map(type, value)))
        return kind(_plain(v) for v in value) if holding else value
    if kind is dict:
        return {k: _plain(v) for k, v in value.items()}
    return value


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `numpy.testing` that converts its arguments to NumPy's arrays."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})

    return call


class _Module(ModuleType):
    """A replacement of a module of NumPy, which looks names up when they are first used."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = _member(self._original, name)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._original)


_modules: dict[str, ModuleType] = {}
_accelerated: dict[str, ModuleType] = {}


def _namespace(module: ModuleType) -> ModuleType:
    """Return what accelerated code gets for a module of NumPy, or the module itself."""
    name = module.__name__
    if name not in _accelerated:
        probe = ModuleType("probe")
        probe.__dict__.update(found=module, numpy=np)
        exec("def get(): return found", probe.__dict__)
        # names mean dcarray in functions of accelerated code that has wrapped arrays
        with dc.options(device="auto"), dc.accelerate(probe):
            _accelerated[name] = probe.__dict__["get"]()
    return _accelerated[name]


def _module(module: ModuleType) -> ModuleType:
    """Return the replacement of a module of NumPy for tests, or the module itself."""
    name = module.__name__
    if name.partition(".")[0] != "numpy":
        return module
    if name not in _TESTING and _namespace(module) is module:
        return module
    if name not in _modules:
        made = _modules[name] = _Module(module)
        if name != "numpy":  # tests look through the dictionaries of some
            for attribute in list(vars(module)):
                if not attribute.startswith("__"):
                    getattr(made, attribute)
    return _modules[name]


def _member(module: ModuleType, name: str) -> Any:
    if module.__name__.startswith(_TESTING):
        value = getattr(module, name)
        return _comparing(value) if name in _COMPARE else value
    value = getattr(_namespace(module), name)
    if isinstance(value, ModuleType):
        return _module(getattr(module, name))
    return dc.ndarray if name == "ndarray" else value


# ---- builtins ----------------------------------------------------------------------------------------
def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    return _module(builtins.__import__(name, globals, locals, fromlist, level))


def _classes(classes: Any) -> Any:
    if isinstance(classes, tuple):
        return tuple(map(_classes, classes))
    return (dc.ndarray, np.ndarray) if classes is dc.ndarray else classes


def _isinstance(value: Any, classes: Any) -> bool:
    return isinstance(value, _classes(classes))


def _issubclass(value: Any, classes: Any) -> bool:
    return issubclass(value, _classes(classes))


def _build_class(body: Any, name: str, *bases: Any, **kwargs: Any) -> Any:
    bases = tuple(_namespace(np).ndarray if b is dc.ndarray else b for b in bases)
    made = builtins.__build_class__(body, name, *bases, **kwargs)
    answer = vars(made).get("__array__") if isinstance(made, type) else None
    if isinstance(answer, FunctionType):  # as `dcarray run` has it: NumPy takes plain arrays only
        made.__array__ = wraps(answer)(lambda *args, **kwargs: _plain(answer(*args, **kwargs)))
    return made


def substituted() -> dict[str, Any]:
    """Return the builtins of a test module whose arrays should be dcarray's.

    Raises
    ------
    RuntimeError
        If its ``import numpy`` would be NumPy, so that the tests would say nothing of dcarray.
    """
    if not isinstance(_module(np).zeros(1), dc.ndarray):
        raise RuntimeError("accelerated code has NumPy's own arrays, and so would the tests")
    names = {
        "__import__": _import,
        "__build_class__": _build_class,
        "isinstance": _isinstance,
        "issubclass": _issubclass,
    }
    return {**vars(builtins), **names}
