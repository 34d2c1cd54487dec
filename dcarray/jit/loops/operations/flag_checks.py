"""Run-time checks that float operations have raised no floating-point flag: one shows in their results.

They are for values that may be dropped, and for targets without flags.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from dcarray.core.fp_bits import DIVIDE, INVALID, OVER, RAISING
from dcarray.ir.analysis.effects import reads
from dcarray.ir.nodes import Apply, Array, Compute, Const, Expr, Stmt
from dcarray.ir.ops import const
from dcarray.ir.statements import bodies, with_bodies
from dcarray.ir.windows import loads, walk

_BOOL, _F8 = np.dtype(np.bool_), np.dtype(np.float64)
_MAX_OPERATIONS = 12  # operations of one value that are checked
_QUIET = frozenset({
    "where", "checked", "negative", "positive", "absolute", "fabs", "copysign", "sign", "maximum", "minimum",
    "fmax", "fmin", "floor", "ceil", "trunc", "rint",
})  # fmt: skip
_NEVER = _QUIET | {"add", "subtract", "multiply"}
"""Operations for which Python raises nothing."""


def with_flag_check(value: Expr, watched: int = RAISING) -> Expr:
    """The value of a scalar, with a check that none of its float operations has raised a ``watched`` flag."""
    nodes = [node for node in walk(value) if isinstance(node, Apply) and _may_raise(node)]
    return _checked(value, nodes[:_MAX_OPERATIONS], watched)


def may_fail(value: Expr) -> bool:
    """Whether a scalar's computation has a check, or may raise a floating-point flag."""
    return any(isinstance(one, Apply) and (one.op == "checked" or _may_raise(one)) for one in walk(value))


def with_checked_temporaries(body: Iterable[Stmt], arrays: list[Array], watched: int) -> tuple[Stmt, ...]:
    """Return statements with checks of the values that nothing reads, or an array perhaps without elements:
    NumPy computes them, too.  Of the ``arrays``, those that are no temporaries are read afterwards."""
    left = [x.base or x.name for x in arrays if x.role != "temp" or x.base]
    scalars = {x.name for x in arrays if not x.shape}
    sources = defaultdict[str, list[str]](list)

    def look(stmts: Iterable[Stmt], around: Iterable[str]) -> None:
        for stmt in stmts:
            cond: Expr | None = getattr(stmt, "cond", None)
            inner = [load.window for load in loads(cond)] if cond is not None else []
            names = [*around, *[w.array for w in (inner if bodies(stmt) else reads(stmt))]]
            for part in bodies(stmt):
                look(part, names)
            if isinstance(stmt, Compute) and not _is_checked(stmt):
                certain = all(type(n) is int and n for n in stmt.target.shape)
                sources[stmt.target.array] += [name for name in names if certain or name not in scalars]
            elif not bodies(stmt):
                left.extend(names)

    look(body, ())
    read: set[str] = set()
    while left:
        if (name := left.pop()) not in read:
            read.add(name)
            left += sources[name]

    def checked(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Compute):
            return with_bodies(stmt, [tuple(map(checked, part)) for part in bodies(stmt)])
        done = stmt.target.array in read or _is_checked(stmt)
        return stmt if done else replace(stmt, body=with_flag_check(stmt.body, watched))

    return tuple(map(checked, body))


def _is_checked(stmt: Compute) -> bool:
    return isinstance(stmt.body, Apply) and stmt.body.op == "checked"


def for_python(value: Expr) -> Expr:
    """The value of one of Python's numbers, with a check of all operations that may have raised an exception
    of Python's, of which none is in a value that is checked already."""
    nodes: list[Apply] = []
    left = [value]
    while left:
        node = left.pop()
        if isinstance(node, Apply) and node.op != "checked":
            left += node.args
            if _may_raise(node) and node.op not in _NEVER:
                nodes.append(node)
    return _checked(value, nodes, RAISING)


def _checked(value: Expr, nodes: list[Apply], watched: int) -> Expr:
    raised = [condition for node in dict.fromkeys(nodes) for condition in _flag_conditions(node, watched)]
    if not raised:
        return value
    some = raised[0]
    for other in raised[1:]:
        some = Apply("logical_or", (some, other), _BOOL)
    return Apply("checked", (Apply("logical_not", (some,), _BOOL), value), value.dtype)


def _may_raise(node: Apply) -> bool:
    if node.op == "cast":
        source, made = node.args[0].dtype, node.dtype
        narrows = made.kind == source.kind and made.itemsize < source.itemsize
        return source.kind in "fc" and (narrows or made.kind in "iu")
    if node.op in ("floor_divide", "remainder") and node.dtype.kind in "iu":
        return not isinstance(node.args[1], Const)
    kinds = {x.dtype.kind for x in (node, *node.args)}
    return kinds <= {"f", "c"} and node.op not in _QUIET


def _flag_conditions(node: Apply, watched: int) -> Iterator[Expr]:
    """Conditions under which an operation has raised a watched flag: a NaN or an infinity made from operands
    without one."""

    def condition(name: str, x: Expr) -> Expr:
        return Apply(name, (x,), _BOOL)

    def both(x: Expr, y: Expr) -> Expr:
        return Apply("logical_and", (x, y), _BOOL)

    if node.dtype.kind in "iu" and node.op == "cast":  # strict comparisons, since the limits may be rounded
        x, kind = Apply("cast", node.args, _F8), np.iinfo(node.dtype)
        low, high = [const(float(limit), _F8) for limit in (kind.min - 1, kind.max + 1)]
        inside = both(Apply("less", (low, x), _BOOL), Apply("less", (x, high), _BOOL))
        yield from [Apply("logical_not", (inside,), _BOOL)] * bool(watched & INVALID)
        return
    if node.dtype.kind in "iu":
        is_zero = Apply("equal", (node.args[1], const(0, node.args[1].dtype)), _BOOL)
        yield from [is_zero] * bool(watched & DIVIDE)
        return
    invalid, over = condition("isnan", node), condition("isinf", node)
    for arg in dict.fromkeys(node.args):
        invalid = both(invalid, Apply("logical_not", (condition("isnan", arg),), _BOOL))
        over = both(over, condition("isfinite", arg))
    if watched & INVALID:
        yield invalid
    if watched & (DIVIDE | OVER) == DIVIDE | OVER or (node.op != "divide" and watched & (DIVIDE | OVER)):
        yield over
    elif watched & (DIVIDE | OVER):  # an infinite quotient is a division by zero, or an overflow
        zero = Apply("equal", (node.args[1], const(0.0, node.args[1].dtype)), _BOOL)
        yield both(over, zero if watched & DIVIDE else Apply("logical_not", (zero,), _BOOL))


_MAY_RAISE = re.compile(r"[/%]|\*\*")
"""Operations of Python's numbers that may raise, in the text of an input."""


def dead_input(text: str, taken: list[str]) -> bool:
    """Whether an input that nothing reads has to be computed, since Python may refuse to; it is ``taken``
    then, as those are that are read."""
    is_needed = _MAY_RAISE.search(text) is not None and not any(text in other for other in taken)
    taken += [text] * is_needed
    return is_needed
