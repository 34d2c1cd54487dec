"""Barriers that keep LLVM from removing selects which guard an operation against floating-point exceptions.

``where(c, x / where(c, y, 1), z)`` divides by one where ``c`` is false.  LLVM, which assumes that operations
raise no exceptions, replaces the inner select by ``y``, since the outer one uses no other quotient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, Value, part, ty
from dcarray.lowering.kernel.flags import op_flags
from dcarray.lowering.kernel.nodes import Expr, Let, Local, Op, Phase, Stmt
from dcarray.lowering.kernel.walk import values, walk, walk_statements

__all__ = ["NestedSelects", "make_opaque"]


class NestedSelects:
    """The selects of a phase whose condition is also that of another select."""

    def __init__(self, phase: Phase) -> None:
        selects = list(_selects((*phase.pre, *phase.body)))
        times = Counter(op.args[0] for _, op in selects)
        self._several = {condition for condition, n in times.items() if n > 1}
        self._names = {name for name, op in selects if name and op.args[0] in self._several}

    def guards(self, arg: Expr, name: str, types: tuple[DType, ...], out: DType) -> bool:
        """Whether an argument of an operation is a select that may guard it against an exception."""
        if not self._several or arg.dtype.kind not in "fc":
            return False
        chosen = isinstance(arg, Op) and arg.name == "where" and arg.args[0] in self._several
        return (chosen or (isinstance(arg, Local) and arg.name in self._names)) and op_flags(
            name, types, out
        ) != 0


def make_opaque(b: Builder, value: Value, dtype: DType) -> Value:
    """Return the value, opaque to LLVM: multiplied by an unknown one, which changes no number."""
    if dtype.kind == "c":
        return tuple(_opaque(b, ty(part(dtype)), str(one)) for one in value)
    return _opaque(b, ty(dtype), str(value))


def _opaque(b: Builder, t: str, value: str) -> str:
    if t != "half":
        return b.intrinsic("canonicalize", t, value)
    wide = b.intrinsic("canonicalize", "float", b.op(f"fpext half {value} to float"))
    return b.op(f"fptrunc float {wide} to half")


def _selects(body: Iterable[Stmt]) -> Iterator[tuple[str, Op]]:
    """Return the selects in statements, nested ones included, with the names of those bound to locals."""
    for stmt in walk_statements(body):
        for root in values(stmt):
            for node in walk(root):
                if isinstance(node, Op) and node.name == "where":
                    yield stmt.name if isinstance(stmt, Let) and node is root else "", node
