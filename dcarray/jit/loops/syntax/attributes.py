"""Attributes of ``self``, and items that are appended to lists, as names of compiled code.

The first is scalar replacement of one object's attributes: where a method's statements use ``self`` for
nothing but its attributes, these are names to compiled code, which are read before and bound after it.
Items are results, which are appended when it has run.
"""

from __future__ import annotations

import ast

from .attribute_names import DOT, OWNER, Attributes, appended, name_of
from .liveness import live_before
from .syntax_facts import NONE, Names, stores, walk

__all__ = ["append_call", "attributes_as_names", "list_of"]


def attributes_as_names(source: str, live: Names, lists: Names = NONE) -> Attributes | None:
    """Return statements with names in place of attributes, and of what is appended to lists; None if ``self``
    is used for something else.

    ``live`` are the names that the statements bind and that may be read afterwards.
    """
    if DOT in source:
        return None
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    appending = [call for call in map(append_call, tree.body) if call is not None and _list_of(call) in lists]
    apart = {id(node) for call in appending for node in walk(call.func)}
    nodes = [node for node in walk(tree) if id(node) not in apart]
    owners = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id == OWNER}
    found = [node for node in nodes if isinstance(node, ast.Attribute) and id(node.value) in owners]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    if len(found) < len(owners) or any(id(node) in called or isinstance(node.ctx, ast.Del) for node in found):
        return None
    changes: list[tuple[ast.expr, str]] = [(node, name_of(node.attr)) for node in found]
    changes += [(call.func, f"{appended(k)} = ") for k, call in enumerate(appending)]
    lines = [line.encode() for line in source.split("\n")]
    for call in appending:
        _drop_comma(call, lines)
    for node, name in sorted(
        changes, key=lambda change: (change[0].lineno, change[0].col_offset), reverse=True
    ):
        if node.lineno != node.end_lineno:
            return None
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + name.encode() + line[node.end_col_offset :]
    text = b"\n".join(lines).decode()
    body = ast.parse(text).body
    start = len(name_of(""))
    attributes = {name_of(node.attr) for node in found}
    written = stores(*body) & attributes
    read = live_before(body, live | written) & attributes
    first, last = (tuple(sorted(name[start:] for name in names)) for names in (read, written))
    return Attributes(text, first, last, tuple(map(_list_of, appending)))


def _drop_comma(call: ast.Call, lines: list[bytes]) -> None:
    """Drop the comma after the item that is appended, or what is left would be a tuple."""
    item = call.args[0]
    assert item.end_lineno and call.end_lineno and item.end_col_offset and call.end_col_offset
    for k in range(item.end_lineno - 1, call.end_lineno):
        start = item.end_col_offset if k == item.end_lineno - 1 else 0
        stop = call.end_col_offset if k == call.end_lineno - 1 else len(lines[k])
        lines[k] = lines[k][:start] + lines[k][start:stop].replace(b",", b" ") + lines[k][stop:]


def append_call(stmt: ast.stmt) -> ast.Call | None:
    """Return the call of a statement ``name.append(item)``; None if it is another."""
    match stmt:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append"), [item], []) as call):
            return None if isinstance(item, ast.Starred) else call
    return None


def _list_of(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    return call.func.value.id


def list_of(stmt: ast.stmt) -> str:
    """Return the name of the list to which a statement ``name.append(item)`` appends; empty of others."""
    call = append_call(stmt)
    return "" if call is None else _list_of(call)
