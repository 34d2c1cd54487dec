"""Renaming of arrays and windows in statements, and names for new arrays."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from dcarray.ir.analysis.effects import touched_arrays
from dcarray.ir.analysis.independence import window_at

from . import dims, windows
from .nodes import (
    Branch,
    Call,
    Compute,
    Dim,
    Expr,
    Gather,
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


def numbered(like: str, taken: Container[str]) -> str:
    """Return a numbered name, like that of an array, that is not taken."""
    return next(unused_names(f"{like}_", taken, 1))


def unused_names(prefix: str, taken: Container[str], first: int = 0) -> Iterator[str]:
    """Return the numbered names with a prefix that are not taken."""
    return (name for k in count(first) if (name := f"{prefix}{k}") not in taken)


def rename(stmt: Stmt, old: str, new: str) -> Stmt:
    """Return a statement with the array ``old`` called ``new``."""
    if old not in touched_arrays(stmt):
        return stmt
    return rewindow(stmt, lambda w: replace(w, array=new) if w.array == old else w)


def rewindow(stmt: Stmt, window: Callable[[Window], Window]) -> Stmt:
    """Return a statement with other windows, those of gathers included, over the same domains."""

    def load(node: Load | Gather) -> Expr:
        if isinstance(node, Load):
            return Load(window(node.window), node.dtype)
        return Gather(window(node.window), node.index, node.dtype)

    def expr(root: Any) -> Any:
        return None if root is None else windows.map_loads(root, load)

    def block(body: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(rewindow(inner, window) for inner in body)

    match stmt:
        case Compute():
            return replace(stmt, target=window(stmt.target), body=expr(stmt.body), init=expr(stmt.init))
        case Call():
            return replace(stmt, reads=tuple(map(window, stmt.reads)), writes=tuple(map(window, stmt.writes)))
        case Nest() | Rows() | TimeTiles() | Loop():
            return replace(stmt, body=block(stmt.body))
        case While():
            return replace(stmt, cond=expr(stmt.cond), body=block(stmt.body))
        case Branch():
            return replace(stmt, cond=expr(stmt.cond), then=block(stmt.then), orelse=block(stmt.orelse))


def expression_at(expr: Expr, values: Mapping[str, Dim]) -> Expr:
    """Return an expression for other values of variables."""

    def fn(node: Expr) -> Expr:
        if isinstance(node, Load):
            return Load(window_at(node.window, values), node.dtype)
        if isinstance(node, Gather):
            return Gather(window_at(node.window, values), node.index, node.dtype)
        return Size(dims.substitute(node.dim, values), node.dtype) if isinstance(node, Size) else node

    return windows.rewrite(expr, fn)


def statement_at(stmt: Stmt, values: Mapping[str, Dim]) -> Compute:
    """Return a computation for other values of variables."""
    assert isinstance(stmt, Compute)
    init = None if stmt.init is None else expression_at(stmt.init, values)
    target, body = window_at(stmt.target, values), expression_at(stmt.body, values)
    return replace(stmt, target=target, body=body, init=init)
