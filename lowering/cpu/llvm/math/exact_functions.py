"""The choice of vector loops with NumPy's bits for functions of doubles that NumPy computes by the GNU C
library.

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
    """Whether this package has a function with NumPy's bits on this machine, for some arguments at least."""
    match name:
        case "exp":
            return b.machine.exact_exp
        case "sin" | "cos":
            return b.machine.exact_sincos
        case "power":
            return b.machine.exact_powers
    return False


def loop(b: Builder, call: NumpyCall, rows: list[tuple[str, int]], code: str) -> str:
    """Return the address of the loop for a call: of an exact vector loop, or of NumPy's, which is ``code``.
    ``rows`` are the addresses and strides in bytes of the rows that it reads and writes."""
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
    """Return the result for single doubles, if the C library has NumPy's, or is what is asked for."""
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
