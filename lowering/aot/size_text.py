"""C expressions of sizes and of relations between sizes: exact, or else an overflow flag is set.

`dcarray.ir.dims.show` writes a dimension as a Python expression of exact integers; here each of its
operations becomes a call that sets ``dc_overflow`` where the result has more than 63 bits.
"""

from __future__ import annotations

import ast

from dcarray.ir import dims
from dcarray.ir.nodes import Dim

HELPERS = """\
/* Sizes: exact, or *o is set.  Divisors are positive. */
static inline int64_t dc_add(int64_t a, int64_t b, int *o) {
  int64_t r;
  *o |= __builtin_add_overflow(a, b, &r);
  return r;
}
static inline int64_t dc_sub(int64_t a, int64_t b, int *o) {
  int64_t r;
  *o |= __builtin_sub_overflow(a, b, &r);
  return r;
}
static inline int64_t dc_mul(int64_t a, int64_t b, int *o) {
  int64_t r;
  *o |= __builtin_mul_overflow(a, b, &r);
  return r;
}
static inline int64_t dc_div(int64_t a, int64_t b, int *o) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) { *o = 1; return 0; }
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t dc_mod(int64_t a, int64_t b, int *o) {
  return dc_sub(a, dc_mul(dc_div(a, b, o), b, o), o);
}
static inline int64_t dc_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t dc_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* Whole cache lines for so many bytes, and a gap, so that arrays do not start alike. */
static inline int64_t dc_room(int64_t bytes, int *o) { return dc_add(bytes, 1151, o) & ~(int64_t)63; }
"""

_CALLS: dict[type[ast.AST], str] = {
    ast.Add: "dc_add", ast.Sub: "dc_sub", ast.Mult: "dc_mul", ast.FloorDiv: "dc_div", ast.Mod: "dc_mod",
}  # fmt: skip
_RELATIONS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def variable(symbol: str) -> str:
    """Return the C variable of a region's symbol or of a loop's variable."""
    return f"dc_n_{symbol}"


def size_text(dim: Dim) -> str:
    """Return a dimension, or a relation of dimensions, as a C expression over the variables of its symbols.
    It has the type ``int64_t``, or is a condition, and sets the ``int`` ``dc_overflow`` on overflow."""
    return _text(ast.parse(dims.show(dim), mode="eval").body)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=int() as value):
            return str(value) if abs(value) < 1 << 31 else f"INT64_C({value})"
        case ast.Name(id=name):
            return variable(name)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return f"(-{_text(ast.Constant(value))})"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"dc_sub(0, {_text(operand)}, &dc_overflow)"
        case ast.BinOp(left=left, op=op, right=right):
            return f"{_CALLS[type(op)]}({_text(left)}, {_text(right)}, &dc_overflow)"
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=args):
            text = _text(args[0])
            for arg in args[1:]:
                text = f"dc_{name}({text}, {_text(arg)})"
            return text
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_text(left)} {_RELATIONS[type(op)]} {_text(right)})"
    raise ValueError(f"no size: {ast.unparse(node)}")
