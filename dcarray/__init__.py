"""dcarray: ordinary NumPy code, compiled.

``python -m dcarray run script.py`` and ``dcarray.accelerate`` compile what is hot in a program from its
source; its arrays stay NumPy's own.  ``x = dcarray.asarray(a)`` wraps an array: NumPy's own functions on it
are recorded, fused, and run together when a value is needed.  Every public name of NumPy is here too, with
wrapped arrays as results.
"""

from __future__ import annotations

from typing import Any

from .core import threadpools

__version__ = "0.1.0"
# Where a name comes from.  All is imported when it is first used: `python -m dcarray run` and programs with
# accelerated code need little of it.
_HOMES = {
    "ProgramError": "core.errors",
    "ScheduleError": "core.errors",
    "StrictError": "core.errors",
    "devices": "core.device_names",
    "options": "core.config",
    "report": "core.counters",
    "wait": "execution.executor",
}


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in ("evaluate", "ndarray"):
        from .api import array, lazy_selection  # noqa: F401  (its import registers selections)

        value = getattr(array, name)
    elif name == "explain":
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
        value = _lookup(name)
    globals()[name] = value
    return value


def _lookup(name: str) -> Any:
    """Return what has one of NumPy's names."""
    of_standard = ("__array_api_version__", "__array_namespace_info__")
    if name.startswith("__") and name not in of_standard:  # `import` asks for others
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .api import lazy_selection  # noqa: F401
    from .api.functions import namespace

    return namespace.lookup(name)


def __dir__() -> list[str]:
    from .api.functions import namespace

    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*namespace.names(), "map", *__all__, *dunders})


threadpools.announce()  # it also has to know of us where all that runs is accelerated code

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
