"""The public names of this package, and the modules that define them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_HOMES = {
    "ProgramError": "core.errors", "ScheduleError": "core.errors", "StrictError": "core.errors",
    "__pandas_udf__": "jit.pandas_engine", "__version__": "core", "accelerate": "jit.decorator",
    "devices": "core.device_names", "distribute": "distributed.array_distribution",
    "evaluate": "api.array", "explain": "inspect.explain", "export": "fpga.export",
    "info": "inspect.about", "map": "jit.parallel_map", "ndarray": "api.array", "options": "core.config",
    "pmap": "distributed.global_view_pmap", "program": "jit.program.decorator", "report": "core.counters",
    "schedule": "jit.program.schedule", "symbol": "jit.loops.entry.sizes", "wait": "execution.executor",
}  # fmt: skip
_MODULES = ("char", "comm", "emath", "fft", "hdf5", "linalg", "random", "strings", "types")


@cache
def find(name: str) -> Any:
    """Return the object with a public name of this package, or of NumPy's.

    Raises
    ------
    AttributeError
        If there is no such name.
    """
    if name in _MODULES:
        return import_module(f"dcarray.{name}")
    home = _HOMES.get(name)
    if home is not None and not home.startswith("api."):
        return getattr(import_module(f"dcarray.{home}"), name)
    of_standard = ("__array_api_version__", "__array_namespace_info__")
    if name.startswith("__") and name not in of_standard:  # `import` asks for others
        raise AttributeError(f"module 'dcarray' has no attribute {name!r}")
    from .api import array

    if home is not None:
        return getattr(array, name)
    from .api.functions import namespace

    return namespace.lookup(name)


def names() -> list[str]:
    """Return the public names."""
    from .api.functions import namespace

    return [*namespace.names(), *_HOMES, *_MODULES]
