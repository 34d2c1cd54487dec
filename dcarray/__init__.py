"""dcarray: NumPy calls on wrapped arrays are recorded, fused and compiled.

``x = dcarray.asarray(a)`` wraps an array; NumPy's own functions on it are recorded, and run together when a
value is needed.  Every public name of NumPy is here too, with wrapped arrays as results.
"""

from __future__ import annotations

from typing import Any

from dcarray.api.array import evaluate, ndarray
from dcarray.core.config import options
from dcarray.core.counters import report
from dcarray.core.device_names import devices
from dcarray.core.errors import ProgramError, ScheduleError, StrictError
from dcarray.core.threadpools import announce as _announce
from dcarray.execution.executor import wait

from .api import lazy_selection as _lazy_selection  # noqa: F401  (its import registers selections)
from .api.functions import namespace as _namespace

__version__ = "0.1.0"
_announce()


def __getattr__(name: str) -> Any:
    value: Any
    if name == "explain":
        from dcarray.inspect.explain import explain as value
    elif name == "export":
        from dcarray.jit.program.export import export as value
    elif name == "info":
        from dcarray.inspect.about import info as value
    elif name == "accelerate":
        from dcarray.jit.decorator import accelerate as value
    elif name == "map":
        from dcarray.jit.parallel_map import map as value
    elif name == "program":
        from dcarray.jit.program.decorator import program as value
    elif name == "schedule":
        from dcarray.jit.program.schedule import schedule as value
    elif name == "symbol":
        from dcarray.jit.loops.entry.sizes import symbol as value
    elif name == "distribute":
        from dcarray.distributed.array_distribution import distribute as value
    elif name == "pmap":
        from dcarray.distributed.global_view_pmap import pmap as value
    elif name in ("array_api", "comm", "hdf5", "types"):
        from importlib import import_module

        value = import_module(f".{name}", __name__)  # `from . import comm` would ask for the attribute again
    else:
        value = _namespace.lookup(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*_namespace.names(), "map", *__all__, *dunders})


__all__ = [
    "ProgramError",
    "ScheduleError",
    "StrictError",
    "accelerate",
    "array_api",
    "comm",
    "devices",
    "distribute",
    "evaluate",
    "explain",
    "export",
    "hdf5",
    "info",
    "ndarray",
    "options",
    "pmap",
    "program",
    "report",
    "schedule",
    "symbol",
    "types",
    "wait",
]
