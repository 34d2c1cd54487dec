"""The plain C target: kernels are C text, built by a C compiler."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache

from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.lowering.c_family.emit import emit
from dcarray.lowering.cpu.caches import limits
from dcarray.lowering.cpu.schedules.scheduler import cpu_kernel
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel.nodes import Kernel, Op
from dcarray.lowering.libraries.dispatch import NUMPY
from dcarray.lowering.program.python_driver import printed
from dcarray.lowering.target import Target

from .shared_library import CKernel

# Exactly the arithmetic that is written: nothing contracted, reordered or assumed.
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-w", "-fopenmp-simd"),
    *("-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-fast-math"),
)


@cache
def compiler() -> tuple[str, ...]:
    """Return the command of a C compiler, the system's or the package ``ziglang``'s; raise `Unsupported` if
    there is none."""
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    raise Unsupported("there is no C compiler: neither cc nor the package ziglang is installed")


class CCompiler:
    """The system's C compiler; see `dcarray.lowering.kernel.compiler.Compiler`."""

    key = "c"

    def fingerprint(self) -> str:
        """Return the compiler's version and the processor."""
        return _fingerprint()

    def emit(self, kernel: Kernel, names: Mapping[str, str] | None = None) -> str:
        """Return the C text; comments show ``names``, those of the arrays behind the buffers."""
        return emit(kernel, names)

    def compile(self, source: str) -> bytes:
        """Return the bytes of the shared library of a C text."""
        with tempfile.TemporaryDirectory(prefix="dcarray-") as folder:
            path = os.path.join(folder, "kernel")
            with open(path + ".c", "w", encoding="utf-8") as file:
                file.write(source)
            command = [*compiler(), *FLAGS, path + ".c", "-o", path + ".so", "-lm"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            except (OSError, subprocess.SubprocessError) as error:
                raise Unsupported(f"the C compiler cannot be run: {error}") from error
            if done.returncode:
                raise Unsupported(f"the C compiler fails: {done.stderr.strip()[:500]}")
            with open(path + ".so", "rb") as file:
                return file.read()

    def load(self, kernel: Kernel, code: bytes) -> CKernel:
        """Load a shared library."""
        arguments = 2 * len(kernel.phases) + len(kernel.buffers) + len(kernel.ints)
        try:
            return CKernel(code, arguments, flags.kernel_flags(kernel))
        except OSError as error:
            raise Unsupported(f"the compiled kernel cannot be loaded: {error}") from error


@cache
def _fingerprint() -> str:
    try:
        command = [*compiler(), "--version"]
        version = subprocess.run(command, capture_output=True, timeout=300, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        version = b""
    cpu = platform.processor() + platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu += "".join(
            line for line in file.read().split("\n\n")[0].splitlines() if line.startswith(("model", "flags"))
        )
    return hashlib.sha256(version + cpu.encode() + " ".join(FLAGS).encode()).hexdigest()[:16]


def pipeline(threads: int) -> Pipeline:
    """Return the CPU's passes, set up for one thread, which is all that this target's code uses."""
    return cpu_pipeline(limits(1))


def is_exact(op: Op) -> bool:
    """Return False: for operations that IEEE 754 does not fix, C code may have other bits than NumPy."""
    return False


TARGET = Target("c", pipeline, cpu_kernel, is_exact, CCompiler(), {"blas.matmul": (NUMPY,)}, printed)
"""Passes, schedules and drivers are those of the CPU; the code is a C compiler's, for one thread."""
