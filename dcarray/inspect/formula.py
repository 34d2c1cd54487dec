"""Statements as text: infix operators, names for shared parts, subscripts with their offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcarray.ir.nodes import (
    Apply,
    Call,
    Compute,
    Const,
    Expr,
    Gather,
    Iota,
    Load,
    Loop,
    Nest,
    Rows,
    Size,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from dcarray.ir.ops import const_value
from dcarray.ir.windows import walk

Names = Mapping[str, str]  # array name to the name shown for it

_AXES = "ijklmn"
_WIDTH = 88
_INFIX = {
    "logical_or": ("or", 1), "logical_and": ("and", 2), "less": ("<", 4), "less_equal": ("<=", 4),
    "greater": (">", 4), "greater_equal": (">=", 4), "equal": ("==", 4), "not_equal": ("!=", 4),
    "bitwise_or": ("|", 5), "bitwise_xor": ("^", 6), "bitwise_and": ("&", 7), "left_shift": ("<<", 8),
    "right_shift": (">>", 8), "add": ("+", 9), "subtract": ("-", 9), "multiply": ("*", 10),
    "divide": ("/", 10), "floor_divide": ("//", 10), "remainder": ("%", 10), "power": ("**", 12),
    "array_power": ("**", 12),
}  # fmt: skip
_SIGNED = {"i": "i", "u": "u", "f": "f", "c": "c"}
_ATOM = 20


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a short name of a dtype, such as ``f64``."""
    return f"{_SIGNED[dtype.kind]}{dtype.itemsize * 8}" if dtype.kind in _SIGNED else str(dtype)


def axis_text(axis: int) -> str:
    """Return the name of a loop variable."""
    return _AXES[axis] if axis < len(_AXES) else f"i{axis}"


def window_text(window: Window, names: Names) -> str:
    """Return a window as text, such as ``A[i, j+1]``."""
    return names.get(window.array, window.array) + (
        f"[{', '.join(map(_index_text, window.index))}]" if window.index else ""
    )


def _index_text(index: Any) -> str:
    if index.axis is None or index.stride == 0:
        return str(index.offset)
    name = axis_text(index.axis)
    if index.stride == -1:
        return f"{index.offset}-{name}"
    text = name if index.stride == 1 else f"{index.stride}*{name}"
    if index.offset == 0:
        return text
    offset = str(index.offset)
    return f"{text}{offset}" if offset.startswith("-") else f"{text}+{offset}"


def _leaf(node: Expr, names: Names) -> str:
    if isinstance(node, Load):
        return window_text(node.window, names)
    if isinstance(node, Const):
        value = const_value(node)
        return str(value.item() if isinstance(value, np.generic) else value)
    if isinstance(node, Size):
        return str(node.dim)
    return axis_text(node.axis) if isinstance(node, Iota) else "?"


def _apply(node: Apply, args: list[tuple[str, int]]) -> tuple[str, int]:
    def inside(arg: tuple[str, int], least: int) -> str:
        return arg[0] if arg[1] >= least else f"({arg[0]})"

    if node.op in _INFIX:
        sign, rank = _INFIX[node.op]
        left, right = (rank + 1, rank) if sign == "**" else (rank, rank + 1)
        return f"{inside(args[0], left)} {sign} {inside(args[1], right)}", rank
    if node.op == "negative":
        return f"-{inside(args[0], 11)}", 11
    name = dtype_text(node.dtype) if node.op == "cast" else node.op
    return f"{name}({', '.join(text for text, _ in args)})", _ATOM


def expression_lines(root: Expr, prefix: str, names: Names) -> list[str]:
    """Return lines that name shared and long parts, then ``prefix`` followed by the remaining expression."""
    order = walk(root)
    uses: dict[Expr, int] = {}
    for node in order:
        if isinstance(node, Apply):
            for arg in node.args:
                uses[arg] = uses.get(arg, 0) + 1
    text: dict[Expr, tuple[str, int]] = {}
    lines: list[str] = []
    for node in order:
        if isinstance(node, Apply):
            rendered = _apply(node, [text[arg] for arg in node.args])
            shared = uses.get(node, 0) > 1 and node.op != "cast"
            if node is not root and (shared or len(rendered[0]) > _WIDTH):
                name = f"t{len(lines) + 1}"
                lines.append(f"{name} = {rendered[0]}")
                rendered = (name, _ATOM)
        elif isinstance(node, Gather):
            parts = ", ".join(text[part][0] for part in node.index)
            rendered = (f"{names.get(node.window.array, node.window.array)}[{parts}]", _ATOM)
        else:
            leaf = _leaf(node, names)
            rendered = (leaf, 11 if leaf.startswith("-") else _ATOM)
        text[node] = rendered
    return [*lines, prefix + text[root][0]]


def _compute_lines(c: Compute, names: Names) -> list[str]:
    target = window_text(c.target, names)
    if c.combine is None:
        return expression_lines(c.body, f"{target} = ", names)
    if c.scan is not None:
        return expression_lines(c.body, f"{target} = {c.combine} along {axis_text(c.scan)} of ", names)
    sign = {"add": "+=", "multiply": "*="}.get(c.combine, f"{c.combine}=")
    return expression_lines(c.body, f"{target} {sign} ", names)


def statement_lines(stmt: Stmt, names: Names | None = None) -> list[str]:
    """Return a statement in infix, one or more lines, without its domain."""
    names = names or {}
    if isinstance(stmt, Compute):
        return _compute_lines(stmt, names)
    if isinstance(stmt, Nest | Rows | TimeTiles):
        return [line for inner in stmt.body for line in statement_lines(inner, names)]
    if isinstance(stmt, Call):
        reads = ", ".join(w.array for w in stmt.reads)
        return [f"{', '.join(w.array for w in stmt.writes)} = {stmt.op}({reads})"]
    if isinstance(stmt, Loop | While):
        if isinstance(stmt, Loop):
            lines = [f"for {stmt.var} in range({', '.join(map(str, stmt.bounds))}):"]
        else:
            lines = expression_lines(stmt.cond, "while ", names)
        return [*lines, *("  " + line for inner in stmt.body for line in statement_lines(inner, names))]
    lines = expression_lines(stmt.cond, "if ", names)
    for title, body in (("", stmt.then), ("else:", stmt.orelse)):
        lines += [title] if title and body else []
        lines += ["  " + line for inner in body for line in statement_lines(inner, names)]
    return lines


def domain_of(stmt: Stmt) -> tuple[Any, ...] | None:
    """Return the iteration domain of a statement; None for loops and branches."""
    if isinstance(stmt, Compute):
        return stmt.target.shape
    if isinstance(stmt, Nest | Rows | TimeTiles):
        return domain_of(stmt.body[0])
    return stmt.writes[0].shape if isinstance(stmt, Call) else None
