"""Which vector loops are done in whole vectors, with what is left over under a mask.

LLVM's own remainder of a vector loop takes as long for each element as the loop does for a vector: of a row
of 38 doubles the last six take more time than the 32 before them, and a row of six takes as long as one of
96.  Under a mask they are one vector more.

What the mask leaves out is zero in the registers.  So only operations are done like that which raise no
floating-point flag of zeros; beside a scalar that is infinite or not a number they may raise one too many,
which costs a second look and changes nothing.
"""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.object_code.engine import Machine
from dcarray.lowering.cpu.llvm.text.builder import DType
from dcarray.lowering.kernel.nodes import Elem, Expr, For, Let, Lit, Local, Op, Store
from dcarray.lowering.kernel.walk import walk

__all__ = ["lanes"]

_QUIET = frozenset(
    {
        *("add", "subtract", "multiply", "square", "negative", "positive", "absolute", "fabs", "sqrt"),
        *("maximum", "minimum", "fmax", "fmin", "where", "logical_and", "logical_or", "logical_not"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isfinite"),
    }
)


def lanes(loop: For, machine: Machine) -> int:
    """How many elements a vector of a loop has, if what is left over at its end can be done under a mask;
    else 0."""
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
            if _step(stmt, loop.var) != 1:
                return 0
        elif any(_moves(node, loop.var, moving) for node in nodes):
            moving.add(stmt.name)
    if len(kinds) != 1 or (dtype := kinds.pop()).kind != "f" or dtype.itemsize < 4:
        return 0
    return machine.vector_bits // (8 * dtype.itemsize)


def _plain(node: Expr, var: str, moving: set[str]) -> bool:
    """May the node be computed of zeros, and is it in order in memory?"""
    match node:
        case Lit() | Local():
            return True
        case Elem(more=more, dtype=dtype):
            return not more and dtype.kind == "f" and _step(node, var) is not None
        case Op("divide", (_, divisor)):
            return not any(_moves(inner, var, moving) for inner in walk(divisor))
        case Op(name):
            return name in _QUIET
    return False


def _moves(node: Expr, var: str, moving: set[str]) -> bool:
    """Does a node differ from one iteration to the next on its own?"""
    return (isinstance(node, Local) and node.name in moving) or (
        isinstance(node, Elem) and _step(node, var) != 0
    )


def _step(place: Elem | Store, var: str) -> int | None:
    """The elements from one iteration to the next if that is 0 or 1."""
    own = [term for term in place.at.terms if term.var == var]
    return 0 if not own else 1 if len(own) == 1 and (own[0].coef, own[0].arg) == (1, None) else None
