"""The target of ahead-of-time libraries: passes and schedules for one CPU thread; kernels are C text."""

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

from . import matmul_text

DIALECT = replace(
    C, name="C library", phase="static ", wraps=False, numpy_loops=False, checks_conversions=True,
    failed_check="dc_failed = 1;", c_library=True,
)  # fmt: skip
"""C that depends on no option of the compiler but ``-ffp-contract=off``."""


@record(frozen=True, slots=True)
class KernelText:
    """A kernel's C text: this target's form of a loaded kernel."""

    kernel: Kernel
    helpers: tuple[str, ...]
    phases: tuple[str, ...]
    loader = ""
    parts: tuple[Any, ...] | None = None


class TextCompiler:
    """A `dcarray.lowering.kernel.compiler.Compiler` that only prints kernels as C text."""

    key = "aot"

    def fingerprint(self) -> str:
        """Return an empty string: the text depends on nothing but the kernel."""
        return ""

    def emit(self, kernel: Kernel) -> str:
        """Return an empty string if the kernel can be printed; else raise `Unsupported`."""
        printed(kernel, "")
        return ""

    def compile(self, source: str) -> bytes:
        """Return no bytes: the library is compiled as a whole."""
        return b""

    def load(self, kernel: Kernel, code: bytes) -> Any:
        """Return the kernel's text."""
        return printed(kernel, "@")


def printed(kernel: Kernel, prefix: str) -> KernelText:
    """Return a kernel as C text; the names of its phases begin with ``prefix``.

    Raises
    ------
    Unsupported
        If the kernel has operations that C cannot do exactly without NumPy, or blocks of threads.
    """
    if any(phase.threads for phase in kernel.phases):
        raise Unsupported("the C library has no blocks of threads")
    printer = Printer(kernel, {}, DIALECT, prefix)
    phases = tuple(["\n".join(printer.phase(k, phase)) for k, phase in enumerate(kernel.phases)])
    routines = printer.routines()
    return KernelText(kernel, tuple(printer.helpers), (*routines, *phases))


def _is_exact(op: Op) -> bool:
    """Return True: all functions are the C library's, since NumPy's are not there to compare with."""
    return True


def _no_driver(program: Program, threads: int, fresh: bool = False) -> Driver:
    raise TypeError("a library has no driver in this process")


def target(native: bool) -> Target:
    """Return the target; ``native``: the caches are this machine's, else those of an unknown machine."""

    def pipeline(threads: int) -> Pipeline:
        whole = cpu_pipeline(limits(1)) if native else UNKNOWN_MACHINE
        # the products here do not write over their operands
        return replace(whole, passes=tuple([one for one in whole.passes if one is not IN_PLACE_RESULTS]))

    libraries = {"blas.matmul": (matmul_text.LIBRARY,)}
    return Target("aot", pipeline, cpu_kernel, _is_exact, TextCompiler(), libraries, _no_driver)
