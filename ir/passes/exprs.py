"""Properties of expressions that passes ask for repeatedly, cached for as long as the expression lives."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.ir import windows
from dcarray.ir.analysis.effects import computes_of
from dcarray.ir.memo import is_kept, keep, kept
from dcarray.ir.nodes import Apply, Const, Expr, Gather, Load, Part
from dcarray.ir.ops import OPS, const_value
from dcarray.ir.records import record


@record(frozen=True, slots=True)
class Summary:
    """Size and price of an expression; shared nodes count once.

    ``work`` is the cost of the operations in units of an addition (see ``ops.OPS``), ``weight`` adds one
    for every load of more than a scalar, ``dearest`` is the cost of the most expensive operation.
    """

    nodes: int
    loads: int
    work: float
    weight: float
    dearest: float


def dtype_of(expr: Expr) -> np.dtype[Any]:
    """Return the dtype of an expression: every kind of node has one."""
    dtype: np.dtype[Any] = expr.dtype
    return dtype


def loads_of(expr: Expr) -> tuple[Load | Gather, ...]:
    """Return every ``Load`` and ``Gather`` once, in a fixed order."""
    return _loads(expr) if isinstance(expr, Apply) else windows.loads(expr)


@kept
def _loads(expr: Apply) -> tuple[Load | Gather, ...]:
    return windows.loads(expr)


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the constant 0."""
    return isinstance(expr, Const) and bool(const_value(expr) == 0)


def has_checks(stmt: Part) -> bool:
    """Whether the statement raises a flag for some values (``checked``): an effect even if no one reads
    them."""
    roots = [part.body for part in computes_of(stmt)]
    return any(isinstance(node, Apply) and node.op == "checked" for node in windows.walk(*roots))


@kept
def size_bound(expr: Expr) -> int:
    """Return an upper bound of the number of nodes; see `cache_sizes`."""
    return len(windows.walk(expr))


def cache_sizes(expr: Expr, loads: tuple[Load | Gather, ...], size: int) -> None:
    """Record the loads and size of an expression that was just made, which saves a traversal."""
    if isinstance(expr, Apply) and not is_kept(expr, _loads):
        keep(expr, _loads, loads)
        keep(expr, size_bound, size)


@kept
def summary(expr: Expr) -> Summary:
    """Return the size and cost of an expression."""
    nodes = windows.walk(expr)
    costs = [OPS[node.op].cost for node in nodes if isinstance(node, Apply)]
    loads = [node for node in nodes if isinstance(node, Load | Gather)]
    heavy = sum(1 for node in loads if isinstance(node, Gather) or node.window.index)
    work = sum(costs)
    keep(expr, size_bound, len(nodes))
    return Summary(len(nodes), len(loads), work, work + heavy, max(costs, default=0.0))
