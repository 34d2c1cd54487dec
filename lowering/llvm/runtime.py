"""The CPU target: LLVM text from kernels, object code from text, launches on the thread pool."""

from __future__ import annotations

from .. import flags
from ..kernel import Kernel
from ..target import Unsupported
from . import engine, threads
from .emit import emit


class CpuTarget:
    """LLVM through llvmlite; see ``lowering.target.Target``."""

    name = "cpu"

    def fingerprint(self) -> str:
        """What object code depends on besides its text."""
        return engine.fingerprint()

    def own(self) -> frozenset[tuple[str, str]]:
        """sin and cos where ``circular`` serves, powers where ``powers`` does, and absolute values of complex
        numbers where NumPy's formula is known."""
        machine = engine.machine()
        circular = [("sin", "d"), ("cos", "d")] if machine.circular else []
        powers = [("power", "d")] if machine.powers else []
        return frozenset([*circular, *powers, *([("absolute", "D")] if machine.lengths else [])])

    def emit(self, kernel: Kernel) -> str:
        """The LLVM text of a kernel for this machine."""
        return emit(kernel, engine.machine())

    def compile(self, source: str) -> bytes:
        """Object code of LLVM text, with that of the thread pool before it."""
        try:
            return threads.kept(engine.compile_object(source))
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error

    def load(self, kernel: Kernel, code: bytes) -> threads.Launch:
        """Link object code and make it callable."""
        arguments = len(kernel.buffers) + len(kernel.ints)
        try:
            return threads.Launch.of(code, len(kernel.phases), arguments, flags.possible(kernel))
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error


TARGET = CpuTarget()
