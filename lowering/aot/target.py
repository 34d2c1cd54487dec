"""The target of libraries: the passes and schedules of one thread of a CPU; kernels stay text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dcarray.ir.passes.cpu.in_place_results import IN_PLACE_RESULTS
from dcarray.ir.passes.cpu.pipeline import CPU as UNKNOWN_MACHINE
from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.records import record
from dcarray.lowering.c_family.dialect import C
from dcarray.lowering.c_family.emit import Printer
from dcarray.lowering.cpu.caches import limits
from dcarray.lowering.cpu.schedules.scheduler import cpu_kernel
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Kernel, Op
from dcarray.lowering.program.nodes import Program
from dcarray.lowering.program.python_driver import Driver
from dcarray.lowering.target import Target

from . import products

DIALECT = replace(
    C, name="C library", phase="static ", wraps=False, numpy_loops=False, checks_conversions=True,
    failed_check="dc_failed = 1;", c_library=True,
)  # fmt: skip
"""C that depends on no option of the compiler but ``-ffp-contract=off``."""


@record(frozen=True, slots=True)
class KernelText:
    """A kernel as text: what a compiler here "loads"."""

    kernel: Kernel
    helpers: tuple[str, ...]
    phases: tuple[str, ...]
    loader = ""
    parts: tuple[Any, ...] | None = None


class TextCompiler:
    """Kernels as C text, which the library is compiled from; see
    `dcarray.lowering.kernel.compiler.Compiler`."""

    key = "aot"

    def fingerprint(self) -> str:
        """Return nothing: the text depends on the kernel only."""
        return ""

    def emit(self, kernel: Kernel) -> str:
        """Return nothing, where the kernel can be printed; else raise `Unsupported`."""
        printed(kernel, "")
        return ""

    def compile(self, source: str) -> bytes:
        """Return nothing: the whole library is compiled at once."""
        return b""

    def load(self, kernel: Kernel, code: bytes) -> Any:
        """Return the kernel's text."""
        return printed(kernel, "@")


def printed(kernel: Kernel, prefix: str) -> KernelText:
    """Return a kernel as C; ``prefix`` is that of its phases' names.

    Raises
    ------
    Unsupported
        If C cannot do it without NumPy.
    """
    if any(phase.threads for phase in kernel.phases):
        raise Unsupported("the C library has no blocks of threads")
    printer = Printer(kernel, {}, DIALECT, prefix)
    phases = tuple(["\n".join(printer.phase(k, phase)) for k, phase in enumerate(kernel.phases)])
    routines = printer.routines()
    return KernelText(kernel, tuple(printer.helpers), (*routines, *phases))


def _is_exact(op: Op) -> bool:
    """Functions are those of the C library: NumPy's are not there."""
    return True


def _no_driver(program: Program, threads: int, fresh: bool = False) -> Driver:
    raise TypeError("a library has no driver in this process")


def target(native: bool) -> Target:
    """Return the target; ``native``: the caches are this machine's, else those of an unknown machine."""

    def pipeline(threads: int) -> Pipeline:
        whole = cpu_pipeline(limits(1)) if native else UNKNOWN_MACHINE
        # the products here do not write over their operands
        return replace(whole, passes=tuple([one for one in whole.passes if one is not IN_PLACE_RESULTS]))

    libraries = {"blas.matmul": (products.LIBRARY,)}
    return Target("aot", pipeline, cpu_kernel, _is_exact, TextCompiler(), libraries, _no_driver)
