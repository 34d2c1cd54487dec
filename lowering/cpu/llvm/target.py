"""The CPU target "cpu": its compiler, its passes, and which operations it computes with NumPy's bits."""

from __future__ import annotations

from dcarray.ir.passes.cpu.pipeline import CPU as UNKNOWN_MACHINE
from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.lowering.cpu import caches
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.schedules.scheduler import cpu_kernel
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel.nodes import Kernel, Op
from dcarray.lowering.program.python_driver import printed
from dcarray.lowering.target import Target

from .launches import Launch, ObjectCompiler
from .libraries import LIBRARIES
from .math import powers
from .object_code import engine


class LlvmCompiler(ObjectCompiler):
    """The compiler of kernels with LLVM; a `dcarray.lowering.kernel.compiler.Compiler`."""

    key = "cpu"

    def emit(self, kernel: Kernel) -> str:
        """Return the LLVM text of a kernel for this machine."""
        return emit(kernel, engine.machine())

    def load(self, kernel: Kernel, code: bytes) -> Launch:
        """Link object code and make it callable."""
        arguments = len(kernel.buffers) + len(kernel.ints)
        return self.linked(code, len(kernel.phases), arguments, flags.kernel_flags(kernel))


def is_exact(op: Op) -> bool:
    """Whether compiled code has NumPy's bits for an operation that IEEE 754 leaves open: powers that are a
    single instruction, and absolute values of complex numbers if NumPy's formula is known."""
    machine, kind = engine.machine(), op.args[0].dtype.char
    match op.name:
        case "power":
            return machine.exact_powers and powers.is_one_instruction(op.args[1])
        case "absolute":
            return machine.scaled_magnitude and kind == "D"
    return False


def pipeline(threads: int) -> Pipeline:
    """Return the passes for this machine and ``threads`` threads; 0: for an unknown machine."""
    return cpu_pipeline(caches.limits(threads)) if threads else UNKNOWN_MACHINE


TARGET = Target("cpu", pipeline, cpu_kernel, is_exact, LlvmCompiler(), LIBRARIES, printed)
