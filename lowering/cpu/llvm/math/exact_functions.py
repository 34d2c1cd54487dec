"""The choice between NumPy's loop and a vector loop of this package with the same bits, for functions of
doubles that NumPy computes with the GNU C library.

For a single double the C library is called directly, without NumPy's loop around it.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.ops import C_LIBRARY
from dcarray.lowering.cpu.llvm.text.builder import Builder
from dcarray.lowering.kernel.nodes import Expr, NumpyCall

from . import exponential, powers, sincos

__all__ = ["loop", "single"]


def _serves(b: Builder, name: str) -> bool:
    """Whether this package has a vector function ``name`` that has NumPy's bits on this machine."""
    match name:
        case "exp":
            return b.machine.exact_exp
        case "sin" | "cos":
            return b.machine.exact_sincos
        case "power":
            return b.machine.exact_powers
    return False


def loop(b: Builder, call: NumpyCall, rows: list[tuple[str, int]], code: str) -> str:
    """Return the address of the loop to call: of a vector loop with NumPy's bits, or ``code``, that of
    NumPy's. ``rows`` has the address and the stride in bytes of each row that the call reads or writes."""
    steps = [0 if row.step == 0 else 8 for row in call.reads]
    if call.write.dtype != np.float64 or [step for _, step in rows] != [*steps, 8] or steps[0] == 0:
        return code
    if not _serves(b, call.name):
        return code
    match call.name, steps:
        case "exp", [8]:
            return exponential.loop(b)
        case "sin" | "cos", [8]:
            return sincos.loop(b, call.name)
        case "power", [8, 0]:
            return powers.loop(b, rows[1][0], call.reads[1].value, code)
    return code


def single(b: Builder, name: str, args: tuple[Expr, ...], values: list[str]) -> str | None:
    """Emit the C library's function for single doubles and return the result, if it has NumPy's bits or if
    the operation is the C library's by definition; else None."""
    if any(arg.dtype != np.float64 for arg in args):
        return None
    if name in C_LIBRARY:
        if name == "c_pow" and powers.is_square(b, args[1]):
            return powers.square(b, values[0])
        return _library(b, name.removeprefix("c_"), values, " #pure nobuiltin")  # of other bits, x * x say
    if not _serves(b, name):
        return None
    # NumPy does not ask the library about all exponents
    if name == "power" and not powers.is_served(args[1]):
        return None
    return _library(b, "pow" if name == "power" else name, values, "")


def _library(b: Builder, symbol: str, values: list[str], attributes: str) -> str:
    b.declare(symbol, f"declare double @{symbol}({', '.join(['double'] * len(values))}) #pure")
    return b.call("double", symbol, *(("double", value) for value in values), attributes=attributes)
