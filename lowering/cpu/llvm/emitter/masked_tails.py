"""Masked remainders: which vector loops run in whole vectors, with the remainder as one masked vector.

LLVM's own scalar remainder of a vector loop takes as long for each element as the loop does for a vector: of
a row of 38 doubles the last six take more time than the 32 before them, and a row of six takes as long as one
of 96.  Under a mask they are one vector more.

Masked lanes are zero in the registers.  So only operations that raise no floating-point flag for zeros are
masked; with a scalar operand that is infinite or NaN they may raise a spurious one, which costs a second
check and changes no result.
"""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.object_code.engine import Machine
from dcarray.lowering.cpu.llvm.text.builder import DType
from dcarray.lowering.kernel.nodes import Elem, Expr, For, Let, Lit, Local, Op, Store
from dcarray.lowering.kernel.walk import walk
from dcarray.lowering.nest.access import unit_step

__all__ = ["lanes"]

_QUIET = frozenset(
    {
        *("add", "subtract", "multiply", "square", "negative", "positive", "absolute", "fabs", "sqrt"),
        *("maximum", "minimum", "fmax", "fmin", "where", "logical_and", "logical_or", "logical_not"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isfinite"),
    }
)


def lanes(loop: For, machine: Machine) -> int:
    """Return the number of elements in a vector of a loop whose remainder can be masked; 0 if it cannot."""
    if loop.kind != "vector" or not machine.masks or loop.step != 1:
        return 0
    kinds: set[DType] = set()
    moving: set[str] = set()  # locals that differ from one iteration to the next
    for stmt in loop.body:
        if not isinstance(stmt, Let | Store):
            return 0
        nodes = list(walk(stmt.value))
        if not all(_plain(node, loop.var, moving) for node in nodes):
            return 0
        kinds |= {node.dtype for node in nodes if node.dtype.kind != "b"}
        if isinstance(stmt, Store):
            if unit_step(stmt.at, loop.var) != 1:
                return 0
        elif any(_moves(node, loop.var, moving) for node in nodes):
            moving.add(stmt.name)
    if len(kinds) != 1 or (dtype := kinds.pop()).kind != "f" or dtype.itemsize < 4:
        return 0
    return machine.vector_bits // (8 * dtype.itemsize)


def _plain(node: Expr, var: str, moving: set[str]) -> bool:
    """Whether a node raises no flag for zeros, and its loads have step 0 or 1."""
    match node:
        case Lit() | Local():
            return True
        case Elem(more=more, dtype=dtype):
            return not more and dtype.kind == "f" and unit_step(node.at, var) is not None
        case Op("divide", (_, divisor)):
            return not any(_moves(inner, var, moving) for inner in walk(divisor))
        case Op(name):
            return name in _QUIET
    return False


def _moves(node: Expr, var: str, moving: set[str]) -> bool:
    """Whether a node, not counting its operands, differs from one iteration to the next."""
    return (isinstance(node, Local) and node.name in moving) or (
        isinstance(node, Elem) and unit_step(node.at, var) != 0
    )
