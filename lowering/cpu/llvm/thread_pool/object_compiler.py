"""Compilation of LLVM text to object code, and linking of object code to launchable functions."""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.errors import Unsupported

from . import threads


class ObjectCompiler:
    """The common part of the compilers of kernels and of routines; see `lowering.kernel.compiler`."""

    def fingerprint(self) -> str:
        """Return a digest of what object code depends on besides its text."""
        return engine.fingerprint()

    def compile(self, source: str) -> bytes:
        """Return the object code of the thread pool, followed by that of an LLVM text."""
        try:
            return threads.with_pool_code(engine.compile_object(source))
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error

    def linked(self, code: bytes, phases: int, arguments: int, mask: int) -> threads.Launch:
        """Link object code into this process and return it as a callable `Launch`."""
        try:
            return threads.Launch.of(code, phases, arguments, mask)
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error
