"""Recognition of reductions: loops that update an extremum of integers term by term become reductions.

``for k: c[i, j] = max(c[i, j], c[i, k] + c[k+1, j])`` reads other elements of the array that it writes.  The
extremum of integers is the same in any order, so the terms may be reduced first and combined with the element
at the end.  Not so for floating-point numbers: which NaN, and which zero, depends on the order.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, clash
from dcarray.ir.nodes import Apply, Array, Compute, Expr, Load, Loop, Region, Stmt, Window
from dcarray.ir.ops import const
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.portable.loop_distribution import over_iterations

#: The extremum that ``where(a OP b, a, b)`` is.
_CHOICES = {"greater": "maximum", "greater_equal": "maximum", "less": "minimum", "less_equal": "minimum"}


def as_reduction(loop: Stmt, region: Region, name: str) -> tuple[Compute, Compute, Array] | Reason:
    """Return a reduction that replaces a loop which finds an extremum of integers, or why it cannot: the
    reduction into a new array ``name``, the statement that combines it with the element, and the array."""
    if not isinstance(loop, Loop) or loop.parallel or len(loop.body) != 1:
        return Reason("it is not a loop of one statement")
    stmt = loop.body[0]
    if not isinstance(stmt, Compute):
        return Reason("it is not a loop of one statement")
    target = stmt.target
    moves = any(loop.var in dims.free_symbols(ix.offset) for ix in target.index)
    found = _extremum(stmt.body, target)
    if found is None or moves or target.shape or stmt.combine is not None or stmt.scan is not None:
        return Reason("it finds no extremum of integers")
    op, term = found
    dtype = dtype_of(term)
    with dims.ranging(loop.var, loop.bounds):
        for load in windows.loads(term):
            if not isinstance(load, Load) or clash(load.window, target, region) is not False:
                return Reason(f"what it reads of {load.window.array} may be what it writes", (load.window,))
    info = np.iinfo(dtype)
    first = const(info.min if op == "maximum" else info.max, dtype)
    made = over_iterations(Compute(Window(name, (), ()), term, loc=stmt.loc), loop)
    if isinstance(made, Reason):
        return made
    fold = Compute(made.target, made.body, op, first, stmt.loc)
    both = Apply(op, (Load(target, dtype), Load(Window(name, (), ()), dtype)), dtype)
    return fold, Compute(target, both, loc=stmt.loc), Array(name, dtype, ())


def _extremum(body: Expr, target: Window) -> tuple[str, Expr] | None:
    """Return the operation and the operand ``x`` if ``body`` is the extremum of ``target`` and ``x``; else
    None."""
    if not isinstance(body, Apply) or body.dtype.kind not in "iu":
        return None
    op, args = body.op, body.args
    if op == "where" and isinstance(args[0], Apply) and args[0].op in _CHOICES:
        if set(args[0].args) != set(args[1:]) or len(args[0].args) != 2:
            return None
        op = _CHOICES[args[0].op]
        if args[0].args[0] is not args[1]:
            op = "minimum" if op == "maximum" else "maximum"
        args = args[1:]
    if op not in ("maximum", "minimum"):
        return None
    mine = [isinstance(arg, Load) and windows.same(arg.window, target) for arg in args]
    return (op, args[mine.index(False)]) if sorted(mine) == [False, True] else None
