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
    Index,
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
    """Return the name ``like_<number>`` with the first number for which it is not in ``taken``."""
    return next(unused_names(f"{like}_", taken, 1))


def unused_names(prefix: str, taken: Container[str], first: int = 0) -> Iterator[str]:
    """Yield the names ``<prefix><number>`` that are not in ``taken``, from the number ``first`` on."""
    return (name for k in count(first) if (name := f"{prefix}{k}") not in taken)


def rename(stmt: Stmt, old: str, new: str) -> Stmt:
    """Return a statement with the array ``old`` called ``new``."""
    if old not in touched_arrays(stmt):
        return stmt
    return rewindow(stmt, lambda w: replace(w, array=new) if w.array == old else w)


def map_statement(
    stmt: Stmt,
    window: Callable[[Window], Window],
    expr: Callable[[Expr], Expr],
    dim: Callable[[Dim], Dim] = lambda number: number,
) -> Stmt:
    """Return a statement with ``window``, ``expr`` and ``dim`` applied to its windows, expressions and loop
    bounds, also in its bodies."""

    def block(body: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([map_statement(inner, window, expr, dim) for inner in body])

    match stmt:
        case Compute():
            init = None if stmt.init is None else expr(stmt.init)
            return replace(stmt, target=window(stmt.target), body=expr(stmt.body), init=init)
        case Call():
            return replace(stmt, reads=tuple(map(window, stmt.reads)), writes=tuple(map(window, stmt.writes)))
        case Nest() | Rows() | TimeTiles():
            return replace(stmt, body=block(stmt.body))
        case Loop():
            start, stop, step = map(dim, stmt.bounds)
            return replace(stmt, bounds=(start, stop, step), body=block(stmt.body))
        case While():
            return replace(stmt, cond=expr(stmt.cond), body=block(stmt.body))
        case Branch():
            return replace(stmt, cond=expr(stmt.cond), then=block(stmt.then), orelse=block(stmt.orelse))


def rewindow(stmt: Stmt, window: Callable[[Window], Window]) -> Stmt:
    """Return a statement with ``window`` applied to all its windows, which must keep their domains."""

    def load(node: Load | Gather) -> Expr:
        if isinstance(node, Load):
            return Load(window(node.window), node.dtype)
        return Gather(window(node.window), node.index, node.dtype)

    return map_statement(stmt, window, lambda root: windows.map_loads(root, load))


def expression_at(expr: Expr, values: Mapping[str, Dim]) -> Expr:
    """Return an expression with the symbols in ``values`` replaced."""

    def fn(node: Expr) -> Expr:
        if isinstance(node, Load):
            return Load(window_at(node.window, values), node.dtype)
        if isinstance(node, Gather):
            return Gather(window_at(node.window, values), node.index, node.dtype)
        return Size(dims.substitute(node.dim, values), node.dtype) if isinstance(node, Size) else node

    return windows.rewrite(expr, fn)


def stmt_at(stmt: Stmt, values: Mapping[str, Dim]) -> Stmt:
    """Return a statement of any kind with the symbols in ``values`` replaced."""
    return map_statement(
        stmt,
        lambda window: window_at(window, values),
        lambda expr: expression_at(expr, values),
        lambda number: dims.substitute(number, values),
    )


def statement_at(stmt: Stmt, values: Mapping[str, Dim]) -> Compute:
    """Return a computation with the symbols in ``values`` replaced."""
    new = stmt_at(stmt, values)
    assert isinstance(new, Compute)
    return new


def remap_points(stmt: Compute, amap: tuple[Index, ...], shape: tuple[Dim, ...]) -> Compute:
    """Return a computation over the domain ``shape``, whose points ``amap`` maps to points of its own."""
    new = map_statement(
        stmt,
        lambda window: windows.compose(window, amap, shape),
        lambda expr: windows.remap(expr, amap, shape),
    )
    assert isinstance(new, Compute)
    return new
