"""Statements at a place that only data tell, in terms of loops: ``for k in range(n): if k == place: ...``.

So windows stay affine, and whoever knows loops and branches knows these.  One iteration is all that happens,
and whoever runs the loop may take that one alone.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.dims import free_symbols, symbol
from dcarray.ir.nodes import Apply, Branch, Dim, Expr, Loop, Size, Stmt
from dcarray.ir.windows import loads, walk

from .effects import writes

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def at_place(var: str, extent: Dim, place: Expr, body: tuple[Stmt, ...], loc: object = None) -> Loop:
    """The statements for the ``var`` of ``range(extent)`` that equals ``place``."""
    chosen = Apply("equal", (Size(symbol(var, None), _I8), place), _BOOL)
    return Loop(var, (0, extent, 1), (Branch(chosen, body, loc=loc),), loc=loc)


def place_of(loop: Loop) -> Expr | None:
    """The value of its variable for which alone a loop does anything; None if there is no such value."""
    if len(loop.body) != 1 or not isinstance(branch := loop.body[0], Branch) or branch.orelse:
        return None
    cond = branch.cond
    if not isinstance(cond, Apply) or cond.op != "equal" or any(arg.dtype != _I8 for arg in cond.args):
        return None
    own = Size(symbol(loop.var, None), _I8)
    places = [arg for arg in cond.args if arg is not own]
    if len(places) != 1 or _moves(places[0], loop.var):
        return None
    read = {node.window.array for node in loads(places[0])}
    if any(w.array in read for stmt in branch.then for w in writes(stmt)):
        return None
    return places[0]


def _moves(expr: Expr, var: str) -> bool:
    """Does a value depend on a loop's variable?"""
    dims = [node.dim for node in walk(expr) if isinstance(node, Size)]
    for node in loads(expr):
        dims += [d for ix in node.window.index for d in (ix.offset, ix.stride)]
    return any(var in free_symbols(d) for d in dims)
