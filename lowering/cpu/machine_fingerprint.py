"""A fingerprint of this machine that is computed without LLVM: compiled code and plans on disk are valid for
one machine only."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache

from dcarray.lowering.runtime.disk import sha256

_ABOUT = ("model name", "flags", "Features", "CPU implementer", "CPU part")  # lines of /proc/cpuinfo


@cache
def machine_fingerprint() -> str:
    """Return a digest of the compiler, the processor, and the libraries that compiled code calls."""
    import llvmlite  # not its binding, which takes time

    switched = [os.environ.get(f"NPY_{word}_CPU_FEATURES", "") for word in ("DISABLE", "ENABLE")]
    parts = (llvmlite.__version__, sys.platform, platform.machine(), _processor(), _libc(), *switched)
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """Return the operating system's description of the processor, or LLVM's if there is none."""
    try:
        with open("/proc/cpuinfo") as file:
            about = []
            for line in file:
                if not line.strip():  # the others are like the first
                    break
                if line.startswith(_ABOUT):
                    about.append(line)
    except OSError:
        about = []
    if about:
        return "".join(about)
    from dcarray.lowering.cpu.llvm.object_code import engine

    return engine.fingerprint()


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""
