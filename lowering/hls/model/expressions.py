"""The costs of expressions on an FPGA: cycles and hardware."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Const, Expr, Gather
from dcarray.ir.ops import const_value
from dcarray.ir.windows import walk

from .costs import Cost, operation


def depth(root: Expr) -> int:
    """Return the number of cycles from the operands of an expression to its value."""
    done: dict[Expr, int] = {}
    for node in walk(root):
        ready = 0
        if isinstance(node, Apply):
            ready = max((done[arg] for arg in node.args), default=0) + _operation(node).latency
        elif isinstance(node, Gather):
            ready = max((done[arg] for arg in node.index), default=0)
        done[node] = ready
    return done[root]


def operations(root: Expr) -> Cost:
    """Return the cost of the operations of an expression, which all have hardware of their own."""
    return total(_operation(node) for node in walk(root) if isinstance(node, Apply))


def _operation(node: Apply) -> Cost:
    if node.op == "multiply" and node.dtype.kind in "iu":
        for arg in node.args:
            if isinstance(arg, Const) and int(const_value(arg)).bit_count() <= 1:
                return Cost()  # wires
    return operation(node.op, [arg.dtype for arg in node.args], node.dtype)


def total(parts: Iterable[Cost]) -> Cost:
    """Return the cost of several pieces of hardware together."""
    return sum(parts, Cost())


def bits(dtype: np.dtype[Any]) -> int:
    """Return the number of bits of an element."""
    return 8 * dtype.itemsize
