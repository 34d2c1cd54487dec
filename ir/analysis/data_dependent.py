"""Statements at an index that is only known at run time, as a loop: ``for k in range(n): if k == place:
...``.

In this form windows stay affine, and analyses need to know nothing but loops and branches.  Only one
iteration does anything, and a target may run that iteration alone.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.dims import free_symbols, symbol
from dcarray.ir.nodes import Apply, Branch, Dim, Expr, Loop, Size, Stmt
from dcarray.ir.windows import loads, walk

from .effects import writes

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def at_index(var: str, extent: Dim, place: Expr, body: tuple[Stmt, ...], loc: object = None) -> Loop:
    """Return a loop over ``range(extent)`` that runs ``body`` in the one iteration whose ``var`` is
    ``place``."""
    chosen = Apply("equal", (Size(symbol(var, None), _I8), place), _BOOL)
    return Loop(var, (0, extent, 1), (Branch(chosen, body, loc=loc),), loc=loc)


def selected_index(loop: Loop) -> Expr | None:
    """Return the ``place`` of a loop that `at_index` made; None if the loop has another form."""
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
    """Return whether an expression depends on the loop variable ``var``."""
    dims = [node.dim for node in walk(expr) if isinstance(node, Size)]
    for node in loads(expr):
        dims += [d for ix in node.window.index for d in (ix.offset, ix.stride)]
    return any(var in free_symbols(d) for d in dims)
