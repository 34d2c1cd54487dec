"""Whether statements are the same for given values of some of their arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcarray.ir.nodes import Branch, Compute, Expr, Region, Stmt, While
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.portable.simplify import SIMPLIFY
from dcarray.ir.statements import bodies, with_bodies
from dcarray.ir.windows import map_loads

__all__ = ["are_same_with"]


def are_same_with(values: Mapping[str, Expr], first: Sequence[Stmt], second: Sequence[Stmt]) -> bool:
    """Whether statements do the same as others, in which some arrays have these constant values."""
    constant = [_with_constants(stmt, values) for stmt in second]
    one, other = (SIMPLIFY.fn(Region((), (), tuple(stmts)), Log()).body for stmts in (first, constant))
    return one == other


def _with_constants(stmt: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """Return a statement with constants in place of all loads of some arrays."""

    def expr(root: Any) -> Any:
        return None if root is None else map_loads(root, lambda node: values.get(node.window.array, node))

    if isinstance(stmt, Compute):
        return replace(stmt, body=expr(stmt.body), init=expr(stmt.init))
    copy = with_bodies(stmt, [tuple(_with_constants(s, values) for s in body) for body in bodies(stmt)])
    return replace(copy, cond=expr(copy.cond)) if isinstance(copy, While | Branch) else copy
