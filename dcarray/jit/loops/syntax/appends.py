"""Statements that append to lists: compiled code returns the items, which are appended after it has run."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from dcarray.lowering.runtime.parsing import parse

from .path_names import counted, is_appended
from .syntax_facts import forget, walk

__all__ = [
    "append_call", "appended_items", "appending_calls", "counting", "counting_loop", "drop_comma",
    "every_growing_call", "growing_calls", "growing_names", "list_of",
]  # fmt: skip


def growing_calls(stmts: Sequence[ast.stmt]) -> dict[str, list[ast.Call]]:
    """Return the calls ``name.append(item)`` and ``name.pop()`` anywhere in statements, by the lists' names.
    Lists of which the statements use another attribute are left out."""
    by_name: dict[str, list[ast.Call]] = {}
    others: set[str] = set()
    calls = {}
    for stmt in stmts:
        for node in walk(stmt):
            match node:
                case ast.Call(ast.Attribute(ast.Name(name), attr) as method, args, []):
                    starred = any(isinstance(arg, ast.Starred) for arg in args)
                    if not starred and (attr, len(args)) in (("append", 1), ("pop", 0)):
                        by_name.setdefault(name, []).append(node)
                        calls[id(method)] = node
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in calls:
                others.add(node.value.id)
    return {name: uses for name, uses in by_name.items() if name not in others}


def every_growing_call(stmts: Sequence[ast.stmt]) -> list[ast.Call]:
    """Return all of these calls."""
    return [call for calls in growing_calls(stmts).values() for call in calls]


def growing_names(stmts: Sequence[ast.stmt]) -> frozenset[str]:
    """Return the names of the lists that statements lengthen or shorten."""
    return frozenset(growing_calls(stmts))


def append_call(stmt: ast.stmt) -> ast.Call | None:
    """Return the call in a statement ``name.append(item)``; None for any other statement."""
    match stmt:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append"), [item], []) as call):
            return None if isinstance(item, ast.Starred) else call
    return None


def list_of(stmt: ast.stmt) -> str:
    """Return the name of the list in a statement ``name.append(item)``; "" for any other statement."""
    call = append_call(stmt)
    if call is None:
        return ""
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    return call.func.value.id


def drop_comma(call: ast.Call, lines: list[bytes]) -> None:
    """Remove the comma after an appended item: without the call, the text would be a tuple."""
    item = call.args[0]
    assert item.end_lineno and call.end_lineno and item.end_col_offset and call.end_col_offset
    for k in range(item.end_lineno - 1, call.end_lineno):
        start = item.end_col_offset if k == item.end_lineno - 1 else 0
        stop = call.end_col_offset if k == call.end_lineno - 1 else len(lines[k])
        lines[k] = lines[k][:start] + lines[k][start:stop].replace(b",", b" ") + lines[k][stop:]


def appending_calls(loop: ast.stmt) -> dict[str, list[ast.Call]]:
    """Return the calls that append to a list in a ``for`` loop, by the names of the lists.  Only lists count
    that the loop uses for nothing else.  Calls in loops inside of it do not count."""
    by_name: dict[str, list[ast.Call]] = {}
    if isinstance(loop, ast.For):
        _find(loop.body, by_name)
    if not by_name:
        return by_name
    names = [node.id for node in walk(loop) if isinstance(node, ast.Name)]
    return {name: calls for name, calls in by_name.items() if names.count(name) == len(calls)}


def _find(body: Sequence[ast.stmt], by_name: dict[str, list[ast.Call]]) -> None:
    """Note the calls that append to a list in statements, by the names of the lists."""
    for stmt in body:
        call = append_call(stmt)
        if call is not None:
            by_name.setdefault(list_of(stmt), []).append(call)
        elif isinstance(stmt, ast.If):
            _find(stmt.body, by_name)
            _find(stmt.orelse, by_name)


def counting_loop(loop: ast.For) -> tuple[ast.For, dict[str, int]]:
    """Return a loop in which ``items.append(item)`` is replaced by ``items[count] = item`` and ``count +=
    1``; and, by the lists' names, how many appends there are."""
    counts: dict[str, int] = {}
    new_loop = copy.copy(loop)
    forget(new_loop)
    new_loop.body = _counting(loop.body, counts)
    return new_loop, counts


def _counting(body: Sequence[ast.stmt], counts: dict[str, int]) -> list[ast.stmt]:
    """Return a loop's statements with assignments in place of appends, which are counted by list."""
    stmts: list[ast.stmt] = []
    for stmt in body:
        call, name = append_call(stmt), list_of(stmt)
        if call is not None and is_appended(name):
            counts[name] = counts.get(name, 0) + 1
            text = f"{name}[{counted(name)}] = None\n{counted(name)} = {counted(name)} + 1"
            put, count = parse(text).body
            assert isinstance(put, ast.Assign)
            for one in (put, count):
                for node in ast.walk(one):
                    ast.copy_location(node, stmt)
            put.value = call.args[0]
            stmts += [put, count]
        elif isinstance(stmt, ast.If):
            branch = copy.copy(stmt)
            forget(branch)
            branch.body, branch.orelse = _counting(stmt.body, counts), _counting(stmt.orelse, counts)
            stmts.append(branch)
        else:
            stmts.append(stmt)
    return stmts


def appended_items(loop: ast.For, name: str) -> list[ast.expr]:
    """Return the expressions whose values such a loop appends to a list."""
    items = []
    for node in walk(loop):
        match node:
            case ast.Assign([ast.Subscript(ast.Name(to))], value) if to == name:
                items.append(value)
    return items


def counting(body: list[ast.stmt]) -> tuple[list[ast.stmt], dict[str, int]]:
    """Return statements with each append of a loop replaced by an assignment and a count; and the number of
    appends for each list."""
    if not isinstance(body[-1], ast.For):
        return body, {}
    loop, growing = counting_loop(body[-1])
    return ([*body[:-1], loop], growing) if growing else (body, {})
