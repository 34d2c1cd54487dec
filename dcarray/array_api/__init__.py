"""The namespace of the array API standard: `dcarray` with arrays where NumPy returns scalars.

``x.__array_namespace__()`` returns this module.  Every public name of `dcarray` is here, made when first
used; its arrays are of the class `dcarray.array_api.standard_array.StandardArray`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

from dcarray import fft as _fft
from dcarray import linalg as _linalg
from dcarray import names as _names

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

    The standard does not define an order, and NumPy's function has none.  Libraries rely on the ascending
    order of other namespaces, such as array-api-compat's for NumPy.
    """
    return _names.find("unique")(x, equal_nan=False)


def _namespace(original: Callable[[str], Any], known: dict[str, Any]) -> Callable[[str], Any]:
    """Return a function ``__getattr__`` for a module, which converts what the function ``original`` finds by
    name."""

    def find(name: str) -> Any:
        if name == "__path__":  # this is a module, the other may be a package
            raise AttributeError(name)
        value = known[name] = _standard(original(name))
        return value

    return find


def _extension(original: Any) -> ModuleType:
    name = original.__name__.rpartition(".")[2]
    module: Any = ModuleType(f"{__name__}.{name}", original.__doc__)
    module.__getattr__ = _namespace(partial(getattr, original), vars(module))
    module.__dir__ = lambda: dir(original)
    return module  # type: ignore[no-any-return]


fft, linalg = _extension(_fft), _extension(_linalg)
__getattr__ = _namespace(_names.find, globals())


def __dir__() -> list[str]:
    return sorted({*_names.names(), *(name for name in globals() if name.startswith("__"))})
