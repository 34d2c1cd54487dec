"""The class of targets, which have all that turns a region into a running program; `targets` has the
table."""

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
    """A function that turns a statement of a region into a kernel."""

    def __call__(
        self, stmt: Stmt, region: Region, *, cores: int, repeated: bool, exact: Callable[[Op], bool] | None
    ) -> tuple[Kernel, Binding]:
        """Return the kernel, and the binding of its arguments to the region's arrays and symbols.

        ``cores`` is the number of threads; ``repeated``: the kernel is launched in a loop of the program,
        with the same sizes; ``exact`` is `Target.is_exact`, or None if no operation must have NumPy's bits.
        Raises ``Unsupported`` if there is no schedule, or if its legality is not proved.
        """


class ProgramPrinter(Protocol):
    """A function that prints the driver of a program."""

    def __call__(self, program: Program, threads: int, fresh: bool = False) -> Driver: ...


@dataclass(frozen=True)
class Target:
    """A target: the passes, scheduler, compiler and libraries for one kind of machine.

    Attributes
    ----------
    name : str
    pipeline : callable
        ``pipeline(threads)`` is the sequence of passes; with 0 threads, for an unknown machine.
    schedule : Scheduler
    is_exact : callable
        ``is_exact(op)`` says whether compiled code has NumPy's bits for an operation that IEEE 754 leaves
        open; if not, NumPy's own loops compute it.
    compiler : Compiler
    libraries : mapping of str to sequence of Library
        For each operation of library calls the libraries that may run it, the preferred one first.
    printer : ProgramPrinter
    memory_space : str
        The memory space of temporaries, their `place` in a region.
    shares_arrays : bool
        Whether a temporary and the result that its last reader computes from it become one array.
    copies : bool
        Whether a statement that only copies elements becomes a `Copy` of the program rather than a kernel.
    graphs : callable or None
        ``graphs(program)`` are the parts of a program that run as graphs on a device, for explanations; see
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
        """Return the target with a pass added; the parameters are those of `Pipeline.with_pass`.

        Raises
        ------
        ValueError
            If no pass has the name in ``after`` or ``before``, or if both are given.
        """
        pipeline = self.pipeline
        pipeline(0).with_pass(one, after=after, before=before)
        return replace(
            self, pipeline=lambda threads: pipeline(threads).with_pass(one, after=after, before=before)
        )

    def with_library_call(self, op: str, run: str, serves: Callable[[Call, Region], bool]) -> Target:
        """Return the target with an implementation of a library call added, which is preferred to the others.

        Parameters
        ----------
        op : str
            The operation of the calls that the implementation may run.
        run : str
            The import path ``package.module:function`` of the function that runs a call, in the process that
            runs the plan: ``function(writes, reads, attrs, own)`` fills the arrays ``writes`` and returns the
            floating-point flags that NumPy does not report, or 0.  ``own`` is None.
        serves : callable
            ``serves(call, region)`` says whether the function can run a call of a region.
        """
        from dcarray.lowering.libraries.dispatch import Library

        known = self.libraries.get(op, ())
        return replace(self, libraries={**self.libraries, op: (Library(run, serves), *known)})

    # ---- as a compiler ------------------------------------------------------------------------------
    @property
    def key(self) -> str:
        """The compiler's name in keys of cached code, so that targets with the same compiler share code."""
        return self.compiler.key

    def fingerprint(self) -> str:
        """Return the compiler's fingerprint, and a digest of its source if a user has written it."""
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
