"""Substitution of constants for arrays without axes in statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dcarray.ir.nodes import Branch, Call, Compute, Expr, Gather, Load, Loop, Stmt, While
from dcarray.ir.windows import map_loads


def with_constants(stmt: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """A statement with constants in place of all loads of some arrays."""
    if not values:
        return stmt

    def load(node: Load | Gather) -> Expr:
        return values.get(node.window.array, node)

    def expr(root: Any) -> Any:
        return None if root is None else map_loads(root, load)

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(with_constants(inner, values) for inner in body)

    match stmt:
        case Compute():
            return replace(stmt, body=expr(stmt.body), init=expr(stmt.init))
        case Loop():
            return replace(stmt, body=block(stmt.body))
        case While():
            return replace(stmt, cond=expr(stmt.cond), body=block(stmt.body))
        case Branch():
            return replace(stmt, cond=expr(stmt.cond), then=block(stmt.then), orelse=block(stmt.orelse))
        case Call():
            return stmt
    raise TypeError(f"not a traced statement: {stmt!r}")
