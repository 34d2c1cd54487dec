"""Loading of object code into this process, by `elf_linker` where possible, else by LLVM.

The lock is held across ``fork``, so that a child never inherits LLVM in the middle of a compilation.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Sequence
from typing import Any

from . import elf_linker

__all__ = ["LOCK", "MATHEMATICS", "keep", "load"]

LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)

# Loaded code lives as long as the process: worker threads may sit in it while the interpreter shuts
# down, so neither the compiler nor a library may be disposed of at its end.
_kept: list[Any] = []
MATHEMATICS = ("libm.so.6", "libmvec.so.1") if platform.system() == "Linux" else ()
"""Libraries whose functions compiled code calls."""


def keep(thing: Any) -> Any:
    """Keep an object alive as long as the process."""
    _kept.append(thing)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def load(code: bytes, names: Sequence[str]) -> tuple[int, ...]:
    """Link object code into this process for good; return the addresses of the functions ``names``. Raises
    RuntimeError if it cannot be linked."""
    with LOCK:
        try:
            linked, memory = elf_linker.link(code, names, MATHEMATICS)
        except elf_linker.Unlinkable:
            from . import engine

            return engine.link(code, names)
        keep(memory)
        return linked
