"""Statements that append an item to a list: compiled code gives the items, which are appended when it has
run."""

from __future__ import annotations

import ast

__all__ = ["append_call", "drop_comma", "list_of"]


def append_call(stmt: ast.stmt) -> ast.Call | None:
    """Return the call of a statement ``name.append(item)``; None if it is another."""
    match stmt:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append"), [item], []) as call):
            return None if isinstance(item, ast.Starred) else call
    return None


def list_of(stmt: ast.stmt) -> str:
    """Return the name of the list to which a statement ``name.append(item)`` appends; empty of others."""
    call = append_call(stmt)
    if call is None:
        return ""
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    return call.func.value.id


def drop_comma(call: ast.Call, lines: list[bytes]) -> None:
    """Drop the comma after the item that is appended, or what is left would be a tuple."""
    item = call.args[0]
    assert item.end_lineno and call.end_lineno and item.end_col_offset and call.end_col_offset
    for k in range(item.end_lineno - 1, call.end_lineno):
        start = item.end_col_offset if k == item.end_lineno - 1 else 0
        stop = call.end_col_offset if k == call.end_lineno - 1 else len(lines[k])
        lines[k] = lines[k][:start] + lines[k][start:stop].replace(b",", b" ") + lines[k][stop:]
