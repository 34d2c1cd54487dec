"""dcarray: ordinary NumPy code, recorded, fused and compiled.

``x = dcarray.asarray(a)`` wraps an array; NumPy's own calls on it are recorded and run together when a
value is needed.  Every public name of NumPy is here too, giving wrapped arrays.
"""

from __future__ import annotations

from typing import Any

from . import selected
from .array import evaluate, ndarray
from .config import options
from .errors import StrictError
from .report import report

__version__ = "0.1.0"

globals().pop("array", None)  # a submodule; as an attribute NumPy's function is meant


def __getattr__(name: str) -> Any:
    value: Any
    if name == "explain":
        from .explain import explain as value
    elif name == "info":
        from .about import info as value
    elif name == "accelerate":
        from .inject import accelerate as value
    elif name == "distribute":
        from .distribution import distribute as value
    elif name == "pmap":
        from .tiles import pmap as value
    elif name in ("comm", "functions", "hdf5"):
        from importlib import import_module

        value = import_module(f".{name}", __name__)  # `from . import comm` would ask for the attribute again
    else:
        from .functions.namespace import lookup

        value = lookup(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from .functions.namespace import names

    return sorted({*globals(), *names(), *__all__})


__all__ = [
    "StrictError",
    "accelerate",
    "comm",
    "distribute",
    "evaluate",
    "explain",
    "functions",
    "hdf5",
    "info",
    "ndarray",
    "options",
    "pmap",
    "report",
    "selected",
]
