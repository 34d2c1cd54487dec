"""The floating-point flags that NumPy could raise for an operation or a kernel.

Generated code may raise more flags, such as a comparison of a NaN, or spurious ones of vector math routines.
Flags that NumPy cannot report are removed from a launch's result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import nodes as k
from .nodes import DType

# The floating-point flags in the result of a launch, as NumPy numbers them.
DIVIDE, OVERFLOW, UNDERFLOW, INVALID = 1, 2, 4, 8
ALL = DIVIDE | OVERFLOW | UNDERFLOW | INVALID
_SILENT = frozenset(
    {
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
        *("maximum", "minimum", "fmax", "fmin", "where", "complex", "real", "imag"),
        *("negative", "positive", "conjugate", "sign", "signbit", "copysign", "fabs", "heaviside"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"),
        *("floor", "ceil", "trunc", "rint"),
    }
)
_FLOATS = {
    "add": OVERFLOW | UNDERFLOW | INVALID, "subtract": OVERFLOW | UNDERFLOW | INVALID, "sqrt": INVALID,
    "exp": OVERFLOW | UNDERFLOW, "exp2": OVERFLOW | UNDERFLOW, "expm1": OVERFLOW | UNDERFLOW,
    "sinh": OVERFLOW | UNDERFLOW, "cosh": OVERFLOW | UNDERFLOW, "sin": UNDERFLOW | INVALID,
    "cos": UNDERFLOW | INVALID, "tanh": UNDERFLOW, "arctan": UNDERFLOW, "cbrt": UNDERFLOW,
    "tan": UNDERFLOW | INVALID, "arcsin": UNDERFLOW | INVALID, "arccos": INVALID, "arcsinh": UNDERFLOW,
    "arccosh": INVALID, "arctanh": DIVIDE | UNDERFLOW | INVALID, "arctan2": UNDERFLOW,
    "hypot": OVERFLOW | UNDERFLOW, "log1p": DIVIDE | UNDERFLOW | INVALID,
    "log": DIVIDE | INVALID, "log2": DIVIDE | INVALID, "log10": DIVIDE | INVALID,
}  # fmt: skip
_ORDER = frozenset({"less", "less_equal", "greater", "greater_equal"})
_INTEGERS = {
    "floor_divide": DIVIDE | OVERFLOW, "remainder": DIVIDE, "fmod": DIVIDE, "reciprocal": DIVIDE | INVALID,
}  # fmt: skip


def _cast(frm: DType, to: DType) -> int:
    if frm.kind == "b" or to.kind == "b":
        return 0
    if frm.kind in "iu":
        return OVERFLOW if to.kind == "f" and to.itemsize == 2 else 0
    if to.kind in "iu":
        return INVALID
    smaller = to.itemsize // (2 if to.kind == "c" else 1) < frm.itemsize // (2 if frm.kind == "c" else 1)
    return OVERFLOW | UNDERFLOW if smaller else 0


def op_flags(name: str, types: tuple[DType, ...], out: DType) -> int:
    """Return the flags that NumPy could raise for one operation on arguments of ``types``."""
    if name == "cast":
        return _cast(types[0], out)
    if name == "checked":
        return INVALID
    kind = types[0].kind
    if kind == "c" and name in _ORDER:
        return INVALID
    if name in _SILENT:
        return 0
    if kind in "biu":
        return _INTEGERS.get(name, 0)
    if name == "absolute" and kind == "f":
        return 0
    return _FLOATS.get(name, ALL) if kind == "f" else ALL


def _expression(expr: k.Expr) -> int:
    match expr:
        case k.Elem(more=more):
            flags = 0
            for position, _ in more:
                flags |= _expression(position)
            return flags
        case k.Op(name, args, out) | k.NumpyOp(name, args, out):
            flags = op_flags(name, tuple(a.dtype for a in args), out)
            for a in args:
                flags |= _expression(a)
            return flags
    return 0


def _statements(body: Iterable[k.Stmt]) -> Iterator[int]:
    for stmt in body:
        match stmt:
            case k.Let(value=value) | k.Assign(value=value) | k.Store(value=value):
                yield _expression(value)
            case k.Declare(init=init):
                yield _expression(init)
            case k.Update(op=op, value=value):
                yield _expression(value) | op_flags(op, (value.dtype, value.dtype), value.dtype)
            case k.For(body=inner) | k.Threads(body=inner):
                yield from _statements(inner)
            case k.Repeat(head, cond, inner):
                yield _expression(cond)
                yield from _statements((*head, *inner))
            case k.If(cond, then, orelse):
                yield _expression(cond)
                yield from _statements(then)
                yield from _statements(orelse)
            case k.Draw(args=args) | k.Invoke(args=args):
                yield from map(_expression, args)
            case k.NumpyCall(name, reads, write):
                yield op_flags(name, tuple(row.dtype for row in reads), write.dtype)


def kernel_flags(kernel: k.Kernel) -> int:
    """Return the union of the flags that NumPy could raise for the operations of a kernel."""
    flags = 0
    for phase in kernel.phases:
        for more in _statements((*phase.pre, *phase.body)):
            flags |= more
    for routine in kernel.routines:
        for more in _statements(routine.body):
            flags |= more
    return flags
