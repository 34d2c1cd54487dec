"""The plain C target: builds kernels with a C compiler and calls them, on the calling thread."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from dcarray.lowering.c_family.emit import emit
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel.nodes import Kernel, Op

# Exactly the arithmetic that is written: nothing contracted, reordered or assumed.
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-w", "-fopenmp-simd"),
    *("-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-fast-math"),
)


@cache
def compiler() -> tuple[str, ...]:
    """The command of the C compiler: the system's, or the one in the ``ziglang`` package.

    Raises
    ------
    Unsupported
        If there is none.
    """
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    raise Unsupported("there is no C compiler: neither cc nor the package ziglang is installed")


class CLaunch:
    """A loaded kernel; see ``target.Launch``."""

    def __init__(self, kernel: Kernel, code: bytes) -> None:
        count = 2 * len(kernel.phases) + len(kernel.buffers) + len(kernel.ints)
        self.pack: Callable[..., bytes] = struct.Struct(f"={count}q").pack
        with _file(code) as path:
            library = ctypes.CDLL(path)
        self._mask = flags.kernel_flags(kernel)
        self._run: Any = library.run
        self._run.argtypes, self._run.restype = (ctypes.c_char_p,), ctypes.c_int32

    def __call__(self, arguments: bytes, threads: int) -> int:
        """Run the kernel; one thread does all."""
        raised: int = self._run(arguments)
        return raised & self._mask


class CTarget:
    """See ``target.Target``."""

    name = "c"

    def fingerprint(self) -> str:
        """The compiler's version and the processor."""
        return _fingerprint()

    def is_exact(self, op: Op) -> bool:
        """Never."""
        return False

    def emit(self, kernel: Kernel, names: Mapping[str, str] | None = None) -> str:
        """The C text; ``names`` of the arrays behind the buffers go into comments."""
        return emit(kernel, names)

    def compile(self, source: str) -> bytes:
        """A shared library."""
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

    def load(self, kernel: Kernel, code: bytes) -> CLaunch:
        """Load a shared library."""
        try:
            return CLaunch(kernel, code)
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


@contextlib.contextmanager
def _file(code: bytes) -> Iterator[str]:
    """A path that holds ``code`` and that nobody else can write, for the time of loading it."""
    with tempfile.TemporaryDirectory(prefix="dcarray-") as folder:
        path = os.path.join(folder, "kernel.so")
        with open(path, "wb") as file:
            file.write(code)
        yield path


TARGET = CTarget()
