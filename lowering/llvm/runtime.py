"""The CPU target: LLVM text from kernels, object code from text, launches on the thread pool."""

from __future__ import annotations

import struct

from .. import flags
from ..kernel import Kernel
from ..target import Unsupported
from . import engine, threads
from .emit import emit

_SIZE = struct.Struct("<I")


class CpuTarget:
    """LLVM through llvmlite; see ``lowering.target.Target``."""

    name = "cpu"

    def fingerprint(self) -> str:
        """What object code depends on besides its text."""
        return engine.fingerprint()

    def own(self) -> frozenset[str]:
        """sin and cos where ``circular`` serves."""
        return frozenset(["sin", "cos"] if engine.machine().circular else [])

    def emit(self, kernel: Kernel) -> str:
        """The LLVM text of a kernel for this machine."""
        return emit(kernel, engine.machine())

    def compile(self, source: str) -> bytes:
        """Object code of LLVM text, with that of the thread pool before it."""
        try:
            pool = threads.object_code()
            return _SIZE.pack(len(pool)) + pool + engine.compile_object(source)
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error

    def load(self, kernel: Kernel, code: bytes) -> threads.Launch:
        """Link object code and make it callable."""
        head = _SIZE.size
        size = _SIZE.unpack_from(code)[0] if len(code) > head else 0
        names = [f"phase{number}" for number in range(len(kernel.phases))]
        try:
            addresses = engine.load(code[head + size :], names)
            threads.object_code(code[head : head + size])
            return threads.Launch(addresses, len(kernel.buffers) + len(kernel.ints), flags.possible(kernel))
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error


TARGET = CpuTarget()
