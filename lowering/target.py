"""Targets as values: what a region goes through on its way to a program that runs; see also `targets`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dcarray.ir.nodes import Call, Region, Stmt
    from dcarray.ir.passes.base import Pass
    from dcarray.ir.passes.pass_manager import Pipeline
    from dcarray.lowering.kernel.compiler import Compiler, Loaded
    from dcarray.lowering.kernel.nodes import Binding, Kernel, Op
    from dcarray.lowering.libraries.dispatch import Library
    from dcarray.lowering.program.nodes import Program
    from dcarray.lowering.program.python_driver import Driver


class Scheduler(Protocol):
    """From a statement of a region to a kernel."""

    def __call__(
        self, stmt: Stmt, region: Region, *, cores: int, repeated: bool, exact: Callable[[Op], bool] | None
    ) -> tuple[Kernel, Binding]:
        """The kernel, and how its arguments come from the region's arrays and symbols.

        ``repeated``: it is launched in a loop of the program, with the same sizes.  ``exact``: as
        `Target.is_exact`, None if no operation has to have NumPy's bits.  Raises ``Unsupported`` if it cannot
        be done, or cannot be proved right.
        """


class ProgramPrinter(Protocol):
    """From a program to the driver that runs it."""

    def __call__(self, program: Program, threads: int, fresh: bool = False) -> Driver: ...


@dataclass(frozen=True)
class Target:
    """A way to run regions.

    Attributes
    ----------
    name : str
    pipeline : callable
        The passes, given the number of threads; 0 for a machine of which nothing is known.
    schedule : Scheduler
    is_exact : callable
        Whether compiled code has NumPy's bits for an operation that IEEE 754 leaves open; other such
        operations are left to NumPy's own loops.
    compiler : Compiler
    libraries : mapping of str to sequence of Library
        For each operation of a library call the libraries that may serve it, best first.
    printer : ProgramPrinter
    memory_space : str
        Where temporaries lie: their `place` in a region.
    shares_arrays : bool
        Whether a temporary and the array that its last reader makes of it become one array.
    copies : bool
        Whether a statement that only moves elements is a `Copy` of the program rather than a kernel.
    graphs : callable or None
        The parts of a program that a device is given as graphs, for explanations; see
        `dcarray.lowering.gpu.cuda.segments.Segment`.
    """

    name: str
    pipeline: Callable[[int], Pipeline]
    schedule: Scheduler
    is_exact: Callable[[Op], bool]
    compiler: Compiler
    libraries: Mapping[str, Sequence[Library]]
    printer: ProgramPrinter
    memory_space: str = "host"
    shares_arrays: bool = True
    copies: bool = False
    graphs: Callable[[Program], tuple[Any, ...]] | None = None

    def with_pass(self, one: Pass, *, after: str | None = None, before: str | None = None) -> Target:
        """This target with one pass more; see `Pipeline.with_pass`.

        Raises
        ------
        ValueError
            If there is no pass of the name, or both are given.
        """
        pipeline = self.pipeline
        pipeline(0).with_pass(one, after=after, before=before)
        return replace(
            self, pipeline=lambda threads: pipeline(threads).with_pass(one, after=after, before=before)
        )

    def with_library_call(self, op: str, run: str, serves: Callable[[Call, Region], bool]) -> Target:
        """Return this target with an implementation of library calls added, which is tried before the others.

        Parameters
        ----------
        op : str
            The operation of the calls that it may serve.
        run : str
            The import path ``package.module:function`` of what does such a call, in the process that runs the
            plan: ``function(writes, reads, attrs, own)`` fills the arrays ``writes`` and returns the
            floating-point flags that NumPy does not know of, 0 if none.  ``own`` is None.
        serves : callable
            Whether it serves a call of a region.
        """
        from dcarray.lowering.libraries.dispatch import Library

        known = self.libraries.get(op, ())
        return replace(self, libraries={**self.libraries, op: (Library(run, serves), *known)})

    # ---- as a compiler ------------------------------------------------------------------------------
    @property
    def key(self) -> str:
        """The name under which code is cached; targets with the same compiler share their code."""
        return self.compiler.key

    def fingerprint(self) -> str:
        """Return the compiler's fingerprint, with a digest of its source if it is not of this package."""
        return self.compiler.fingerprint() + module_digest(type(self.compiler).__module__)

    def emit(self, kernel: Kernel) -> str:
        """Return the text of a kernel."""
        return self.compiler.emit(kernel)

    def compile(self, source: str) -> bytes:
        """Compile the text of a kernel."""
        return self.compiler.compile(source)

    def load(self, kernel: Kernel, code: bytes) -> Loaded:
        """Load compiled code of a kernel."""
        return self.compiler.load(kernel, code)


@cache
def module_digest(name: str) -> str:
    """Return a digest of the source of a user's module, or of the whole package that holds the module; empty
    for modules of dcarray."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None or name.startswith("dcarray."):
        return ""
    from dcarray.lowering.runtime.disk import digest, sha256

    if sys.modules[name].__package__:
        return digest(os.path.dirname(file))
    with open(file, "rb") as source:
        return sha256(source.read()).hexdigest()
