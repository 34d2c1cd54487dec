"""Algebraic simplification that keeps every bit, and removal of statements that do nothing.

Equal expressions are one object already (hash consing), so there is no search for common subexpressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np

from dcarray.ir import windows
from dcarray.ir.nodes import Apply, Branch, Compute, Const, Expr, Load, Loop, Nest, Region, Stmt, While
from dcarray.ir.ops import OPS, const, const_value
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of

_REAL = "biuf"
_INVOLUTIONS = {"negative": "iufc", "conjugate": "c", "invert": "biu"}
_IDEMPOTENT = {
    "absolute": "iuf",
    "fabs": "f",
    "floor": "f",
    "ceil": "f",
    "trunc": "f",
    "rint": "f",
    "sign": "iuf",
}
_SAME_TWICE = {"bitwise_and": "biu", "bitwise_or": "biu", "maximum": "biuf", "minimum": "biuf"}
_SAME_TWICE |= {"fmax": "biuf", "fmin": "biuf"}
# op -> (constant that changes nothing as the second argument, dtypes, also as the first argument)
_NEUTRAL: dict[str, tuple[int, str, bool]] = {
    "add": (0, "iu", True), "subtract": (0, "iuf", False), "multiply": (1, "biuf", True),
    "divide": (1, "f", False), "bitwise_or": (0, "biu", True), "bitwise_xor": (0, "biu", True),
    "bitwise_and": (-1, "i", True), "left_shift": (0, "iu", False), "right_shift": (0, "iu", False),
}  # fmt: skip


def _keeps_bits(source: np.dtype[Any], middle: np.dtype[Any]) -> bool:
    """Whether a cast to ``middle`` and back preserves every value of ``source``."""
    if source.kind == "b":
        return middle.kind in "iufcb"
    if source.kind in "iu" and middle.kind in "fc":
        digits = np.finfo(middle).nmant + 1
        return source.itemsize * 8 <= digits
    return source.kind in "iufc" and np.can_cast(source, middle, "safe")


def _cast(node: Apply) -> Expr:
    (arg,) = node.args
    if dtype_of(arg) == node.dtype:
        return arg
    if isinstance(arg, Apply) and arg.op == "cast":
        (inner,) = arg.args
        if dtype_of(inner) == node.dtype and _keeps_bits(node.dtype, dtype_of(arg)):
            return inner
    return node


def _neutral(arg: Expr, value: int) -> bool:
    if not isinstance(arg, Const):
        return False
    held = const_value(arg)
    return bool(held == value) and not (held.dtype.kind == "f" and np.signbit(held))


def _step(node: Expr) -> Expr:
    """Return a simpler node with the same bits, or the node itself; its arguments are already simplified."""
    if not isinstance(node, Apply):
        return node
    op, args, kind = node.op, node.args, node.dtype.kind
    if op == "cast":
        new = _cast(node)
        return _fold(new) if isinstance(new, Apply) else new
    same = op == "positive" or (op in ("real", "conjugate") and dtype_of(args[0]).kind in _REAL)
    if same and dtype_of(args[0]) == node.dtype:
        return args[0]
    if op == "where":
        if args[1] is args[2]:
            return args[1]
        if isinstance(args[0], Const):
            return args[1] if const_value(args[0]) else args[2]
    if len(args) == 1 and isinstance(args[0], Apply) and args[0].op == op:
        inner = args[0].args[0]
        if kind in _INVOLUTIONS.get(op, "") and dtype_of(inner) == node.dtype:
            return inner
        if kind in _IDEMPOTENT.get(op, "") and dtype_of(args[0]) == node.dtype:
            return args[0]
    if len(args) == 2:
        if args[0] is args[1] and kind in _SAME_TWICE.get(op, ""):
            return args[0]
        if op in _NEUTRAL:
            value, kinds, both = _NEUTRAL[op]
            first, second = args
            if kind in kinds and _neutral(second, value) and dtype_of(first) == node.dtype:
                return first
            if both and kind in kinds and _neutral(first, value) and dtype_of(second) == node.dtype:
                return second
    return _fold(node)


def _fold(node: Apply) -> Expr:
    """Return the constant value of an operation on constants; the node if that raises a floating-point
    flag."""
    if not all(isinstance(arg, Const) for arg in node.args):
        return node
    values = [np.asarray(const_value(arg)) for arg in node.args if isinstance(arg, Const)]
    try:
        with np.errstate(all="raise"):
            if node.op == "cast":
                if values[0].dtype.kind == "c" and node.dtype.kind != "c":
                    return node
                result = values[0].astype(node.dtype)
            else:
                result = np.asarray(OPS[node.op].reference(*values))
    except (FloatingPointError, ValueError, OverflowError, RuntimeWarning):
        return node
    return const(result, node.dtype) if result.dtype == node.dtype and result.shape == () else node


_clean: WeakSet[Expr] = WeakSet()


def simplify_expr(expr: Expr) -> Expr:
    """Return an expression with the same bits at every point, and no more operations."""
    if expr in _clean:
        return expr
    new = windows.rewrite(expr, _step)
    _clean.add(new)
    return new


def is_idle(stmt: Compute) -> bool:
    """Whether the statement provably changes nothing."""
    if stmt.combine is None:
        if any(isinstance(extent, int) and extent == 0 for extent in stmt.target.shape):
            return True
        return isinstance(stmt.body, Load) and stmt.body.window == stmt.target
    return False


def _statement(stmt: Stmt, log: Log) -> tuple[Stmt, ...]:
    if isinstance(stmt, Compute):
        body = simplify_expr(stmt.body)
        if body is not stmt.body:
            log.done("simplify", f"the expression written to {stmt.target.array} became simpler", stmt.loc)
            stmt = replace(stmt, body=body)
        if is_idle(stmt):
            log.done("simplify", f"a write of {stmt.target.array} changes nothing", stmt.loc)
            return ()
        return (stmt,)
    if isinstance(stmt, Nest):
        parts = _each(stmt.body, lambda part: _statement(part, log))
        if not parts:
            return ()
        return (stmt,) if parts is stmt.body else (replace(stmt, body=parts),)
    if isinstance(stmt, Loop | While):
        if isinstance(stmt, Loop) and _never_runs(stmt):
            return ()
        body_ = _each(stmt.body, lambda part: _statement(part, log))
        return (stmt,) if body_ is stmt.body else (replace(stmt, body=body_),)
    if isinstance(stmt, Branch):
        cond = simplify_expr(stmt.cond)
        then = _each(stmt.then, lambda part: _statement(part, log))
        orelse = _each(stmt.orelse, lambda part: _statement(part, log))
        if isinstance(cond, Const):
            log.done("simplify", "a branch is always decided the same way", stmt.loc)
            return then if const_value(cond) else orelse
        if not then and not orelse:
            return ()
        if cond is stmt.cond and then is stmt.then and orelse is stmt.orelse:
            return (stmt,)
        return (replace(stmt, cond=cond, then=then, orelse=orelse),)
    return (stmt,)


def _never_runs(loop: Loop) -> bool:
    start, stop, step = loop.bounds
    if not all(isinstance(bound, int) for bound in loop.bounds):
        return not loop.body
    return len(range(start, stop, step)) == 0 or not loop.body


def _each(body: tuple[Any, ...], fn: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Replace every statement; return the same tuple if none changed."""
    replaced = [fn(stmt) for stmt in body]
    if all(len(new) == 1 and new[0] is old for new, old in zip(replaced, body, strict=True)):
        return body
    return tuple(stmt for new in replaced for stmt in new)


def _run(region: Region, log: Log) -> Region:
    body = _each(region.body, lambda stmt: _statement(stmt, log))
    return region if body is region.body else replace(region, body=body)


SIMPLIFY = Pass("simplify", _run)
