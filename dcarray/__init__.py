"""dcarray: ordinary NumPy code, compiled.

``python -m dcarray run script.py`` and ``dcarray.accelerate`` compile what is hot in a program from its
source; its arrays stay NumPy's own.  ``x = dcarray.asarray(a)`` wraps an array: NumPy's own functions on it
are recorded, fused, and run together when a value is needed.  Every public name of NumPy is here too, with
wrapped arrays as results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import core
from .core import threadpools

__version__ = core.__version__
core.behind.update(
    {
        "array_api": "dcarray.array_api",
        "circuits": "dcarray.fpga.circuits",
        "devices": "dcarray.offload.backend",
        "functions": "dcarray.api.functions",
        "ranks": "dcarray.distributed.backend",
        "sites": "dcarray.jit.loops.sites.site_server",
        "tracer": "dcarray.jit.loops.tracing.trace",
    }
)


if TYPE_CHECKING:  # NumPy's names have NumPy's types, and ours are those of `names`
    import builtins
    from typing import TypeVar, overload

    from numpy import dtype as _dtype

    from . import array_api, comm, hdf5, types
    from .api.array import evaluate
    from .comm.pmap import pmap
    from .core.config import options
    from .core.counters import report
    from .core.device_names import devices
    from .core.errors import ProgramError, ScheduleError, StrictError
    from .distributed.array_distribution import distribute
    from .execution.executor import wait
    from .fpga.export import export
    from .inspect.about import info
    from .inspect.explain import explain
    from .jit.decorator import accelerate
    from .jit.loops.entry.sizes import symbol
    from .jit.parallel_map import map as map
    from .jit.program.decorator import program
    from .jit.program.schedule import schedule

    _Shape = TypeVar("_Shape", bound=tuple[int, ...])
    _DType = TypeVar("_DType", bound=_dtype[Any])

    @overload
    def asarray(
        a: ndarray[_Shape, _DType], dtype: None = None, order: Any = None, *, device: str | None = None,
        copy: builtins.bool | None = None, like: Any = None,
    ) -> ndarray[_Shape, _DType]: ...  # fmt: skip
    @overload
    def asarray(
        a: object, dtype: Any = None, order: Any = None, *, device: str | None = None,
        copy: builtins.bool | None = None, like: Any = None,
    ) -> ndarray[Any, Any]: ...  # fmt: skip
    def asarray(*args: Any, **kwargs: Any) -> Any: ...

    # Of two names mypy takes the first.
    # isort: split
    from numpy import *  # type: ignore[no-redef, assignment]  # noqa: F403
    from numpy import char as char
    from numpy import emath as emath
    from numpy import fft as fft
    from numpy import linalg as linalg
    from numpy import ndarray
    from numpy import random as random
    from numpy import strings as strings
else:
    # All is imported when it is first used: `python -m dcarray run` and programs with accelerated code need
    # little of it.
    def __getattr__(name):
        if name == "array_api":
            value = core.open_door(name)
        else:
            from .names import find

            value = find(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    from .names import names

    dunders = [name for name in globals() if name.startswith("__")]
    return sorted({*names(), *__all__, *dunders})


def load_ipython_extension(shell: Any) -> None:
    """Give IPython, or a notebook, the magic ``%%dcarray``: called by ``%load_ext dcarray``."""
    from .inspect.doctor.notebook import load

    load(shell)


threadpools.announce()  # it also has to know of us where all that runs is accelerated code

__all__ = [
    "ProgramError", "ScheduleError", "StrictError", "accelerate", "array_api", "comm", "devices",
    "distribute", "evaluate", "explain", "export", "hdf5", "info", "ndarray", "options", "pmap", "program",
    "report", "schedule", "symbol", "types", "wait",
]  # fmt: skip
