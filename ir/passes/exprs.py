"""Properties of expressions that passes ask for repeatedly, cached for as long as the expression lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dcarray.ir import windows
from dcarray.ir.analysis.effects import computes_of
from dcarray.ir.nodes import Apply, Const, Expr, Gather, Load, Part
from dcarray.ir.ops import OPS, const_value


@dataclass(frozen=True, slots=True)
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


_loads: WeakKeyDictionary[Expr, tuple[Load | Gather, ...]] = WeakKeyDictionary()
_sizes: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
_summaries: WeakKeyDictionary[Expr, Summary] = WeakKeyDictionary()


def dtype_of(expr: Expr) -> np.dtype[Any]:
    """Return the dtype of an expression: every kind of node has one."""
    dtype: np.dtype[Any] = expr.dtype
    return dtype


def loads_of(expr: Expr) -> tuple[Load | Gather, ...]:
    """Return every ``Load`` and ``Gather`` once, in a fixed order."""
    if not isinstance(expr, Apply):
        return windows.loads(expr)  # an entry that held its own key would live for ever
    found = _loads.get(expr)
    if found is None:
        found = _loads[expr] = windows.loads(expr)
    return found


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the constant 0."""
    return isinstance(expr, Const) and bool(const_value(expr) == 0)


def has_checks(stmt: Part) -> bool:
    """Whether the statement checks its values at run time, and so has an effect even if nothing reads
    them."""
    roots = [part.body for part in computes_of(stmt)]
    return any(isinstance(node, Apply) and node.op == "checked" for node in windows.walk(*roots))


def size_bound(expr: Expr) -> int:
    """Return an upper bound of the number of nodes; see `cache_sizes`."""
    found = _sizes.get(expr)
    if found is None:
        found = _sizes[expr] = len(windows.walk(expr))
    return found


def cache_sizes(expr: Expr, loads: tuple[Load | Gather, ...], size: int) -> None:
    """Record the loads and size of an expression that was just made, which saves a traversal."""
    if isinstance(expr, Apply) and expr not in _loads:
        _loads[expr] = loads
        _sizes[expr] = size


def summary(expr: Expr) -> Summary:
    """Return the size and cost of an expression."""
    found = _summaries.get(expr)
    if found is None:
        nodes = windows.walk(expr)
        costs = [OPS[node.op].cost for node in nodes if isinstance(node, Apply)]
        loads = [node for node in nodes if isinstance(node, Load | Gather)]
        heavy = sum(1 for node in loads if isinstance(node, Gather) or node.window.index)
        work = sum(costs)
        found = Summary(len(nodes), len(loads), work, work + heavy, max(costs, default=0.0))
        _summaries[expr] = found
        _sizes[expr] = len(nodes)
    return found
