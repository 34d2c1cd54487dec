"""Expressions as lists of steps in evaluation order, which the interpreter prepares once for many runs."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .nodes import Apply, Const, Expr, Gather, Load
from .numpy_views import NDArray
from .ops import OPS, const_value, has_loop, power
from .windows import children, walk


class Kind(Enum):
    """The kind of a step, which says what its ``data`` are."""

    LOAD = 1  # data: the window
    UFUNC = 2  # data: the function, which takes out=
    FRESH = 3  # data: a function that makes new memory
    PART = 4  # data: a function that makes a view
    CAST = 5
    GATHER = 6  # data: the array's name
    VALUE = 7  # data: the value
    LEAF = 8  # data: the expression


class Step(NamedTuple):
    """One node of an expression: ``args`` are the steps it uses, ``last`` those with no later use."""

    kind: Kind
    data: Any
    args: tuple[int, ...]
    last: tuple[int, ...]
    dtype: np.dtype[Any]


def program(root: Expr) -> tuple[Step, ...]:
    """Return the steps of an expression, each node once, arguments first."""
    nodes = walk(root)
    number = {node: k for k, node in enumerate(nodes)}
    final: dict[int, int] = {}
    for k, node in enumerate(nodes):
        final.update((number[child], k) for child in children(node))
    steps = []
    for k, node in enumerate(nodes):
        args = tuple(number[child] for child in children(node))
        last = tuple(a for a in dict.fromkeys(args) if final[a] == k)
        any_node: Any = node
        kind, data = _prepare(node)
        steps.append(Step(kind, data, args, last, any_node.dtype))
    return tuple(steps)


def _prepare(node: Expr) -> tuple[Kind, Any]:
    match node:
        case Load(window, _):
            return Kind.LOAD, window
        case Const():
            return Kind.VALUE, const_value(node)
        case Gather(window, _, _):
            return Kind.GATHER, window.array
        case Apply("cast", _, _):
            return Kind.CAST, None
        case Apply(op, args, dtype):
            below: Any = args
            given = tuple(a.dtype for a in below)
            if not has_loop(op, given, dtype):
                raise TypeError(f"{op} has no loop {', '.join(map(str, given))} -> {dtype}")
            if op == "negative":
                return Kind.UFUNC, _negative
            if op == "power" and dtype.kind == "f" and not isinstance(args[1], Const):
                return Kind.FRESH, power
            if op in ("real", "imag"):
                return Kind.PART, OPS[op].reference
            ufunc = OPS[op].reference
            return (Kind.UFUNC if isinstance(ufunc, np.ufunc) else Kind.FRESH), ufunc
    return Kind.LEAF, node


def _negative(x: Any, out: NDArray | None = None) -> Any:
    if out is None:
        return np.negative(x)
    if out.flags.c_contiguous:
        return np.negative(x, out=out)
    # NumPy 2.4 with AVX-512 gives wrong values when both strides are large: negative(x[::8], out=y[::8])
    out[...] = np.negative(x)
    return out
