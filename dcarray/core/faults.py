"""The difference between errors of this package and errors of the program that pass through it."""

from __future__ import annotations

import sys

from . import config
from .counters import note
from .own_files import is_inside

__all__ = ["is_fault", "passed_over"]

_PENDING = frozenset({"execution", "recording", "distributed", "offload", "comm"})  # packages of ours
_LIBRARIES = frozenset({*sys.stdlib_module_names, "dcarray", "numpy", "llvmlite"})


def is_fault(error: BaseException) -> bool:
    """Whether an exception is an error of this package's own, and none that the program has to see.

    The program's are those of classes of its own, those that its code raised (a handler of signals, say), and
    those of calls that were pending on its arrays, or of other ranks and devices.
    """
    if not isinstance(error, Exception) or type(error).__module__.partition(".")[0] not in _OWN:
        return False
    trace = error.__traceback__
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "numpy")
        package, _, rest = module.partition(".")
        if package == "dcarray" and rest.partition(".")[0] in _PENDING:
            return False
        if package not in _LIBRARIES and not is_inside(code.co_filename):
            return False
        trace = trace.tb_next
    return True


_OWN = _LIBRARIES | {"builtins"}


def passed_over(error: Exception, where: tuple[str, int]) -> str:
    """Note in the report an error of this package's own that left the code at a file and line to Python, and
    return it as a text.  Raise it if it is the program's, or for debugging."""
    if not is_fault(error) or (config.current().debug and not isinstance(error, MemoryError)):
        raise error
    reason = f"{type(error).__name__}: {error}"
    note(reason, kind="loop", where=where)
    return reason
