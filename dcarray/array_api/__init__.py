"""The namespace of the array API standard: `dcarray` with arrays where NumPy returns scalars.

``x.__array_namespace__()`` returns this module.  Every public name of `dcarray` is here, made when first
used; its arrays are of the class `dcarray.array_api.standard_array.StandardArray`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

import dcarray

from .standard_array import call


def _standard(value: Any) -> Any:
    """Return a function with results by the standard; anything else as it is."""
    if isinstance(value, (type, ModuleType)) or not callable(value):
        return value

    @wraps(value)
    def function(*args: Any, **kwargs: Any) -> Any:
        return call(value, args, kwargs)

    return function


@_standard
def unique_values(x: Any, /) -> Any:
    """Return the distinct elements, in ascending order; see `numpy.unique_values`.

    The standard leaves the order open, and NumPy's function has none.  Libraries rely on this one, which
    other namespaces have, and NumPy's in the array-api-compat package.
    """
    return dcarray.unique(x, equal_nan=False)


def _names(original: Any, known: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a namespace with the names of another."""

    def find(name: str) -> Any:
        if name == "__path__":  # this is a module, the other may be a package
            raise AttributeError(name)
        value = known[name] = _standard(getattr(original, name))
        return value

    return find, lambda: dir(original)


def _extension(name: str) -> ModuleType:
    original = import_module(f"dcarray.{name}")
    module: Any = ModuleType(f"{__name__}.{name}", original.__doc__)
    module.__getattr__, module.__dir__ = _names(original, vars(module))
    return module  # type: ignore[no-any-return]


fft, linalg = _extension("fft"), _extension("linalg")
__getattr__, __dir__ = _names(dcarray, globals())
