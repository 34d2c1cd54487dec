"""Changes of the definition of a function: it gets more parameters, and returns more values."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .access_paths import Change, Unnamed
from .source import Source
from .syntax_facts import walk

__all__ = ["definition", "first_parameters", "function_of_text", "returning", "undecorated"]


def definition(source: Source) -> tuple[str, ast.FunctionDef]:
    """Return the text of a function without decorators, and its syntax tree, with positions in that text;
    raises `Unnamed` if that would be another function."""
    name = source.tree.name
    if not source.is_faithful(source.tree):
        raise Unnamed(f"{name} has a string over several lines")
    if not all(_is_plain(decorator) for decorator in source.tree.decorator_list):
        raise Unnamed(f"{name} is decorated")
    text = source.text([undecorated(source.tree)])
    return text, function_of_text(text)


def undecorated(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return the syntax tree of a function without decorators, with the same statements."""
    if not tree.decorator_list:
        return tree
    bare = copy.copy(tree)
    bare.decorator_list = []
    return bare


def _is_plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("property", "staticmethod")


def function_of_text(text: str) -> ast.FunctionDef:
    """Return the syntax tree of a definition."""
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def first_parameters(function: ast.FunctionDef, lines: Sequence[bytes], names: Sequence[str]) -> Change:
    """Return the change by which a function has more parameters before its own."""
    at = lines[0].find(b"(") + 1
    given = function.args
    has_others = given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg
    return Change(1, at, at, ", ".join(names) + ", " * bool(has_others))


def returning(function: ast.FunctionDef, names: Sequence[str]) -> list[Change]:
    """Return the changes by which a function returns the values of names before its result."""
    last, first = function.body[-1], ", ".join(names)
    inside = [node for stmt in function.body for node in walk(stmt) if isinstance(node, ast.Return)]
    if any(node is not last for node in inside):
        raise Unnamed(f"{function.name} binds parts of objects, and returns before its end")
    if isinstance(last, ast.Return) and last.value is not None:
        value = last.value
        return [
            Change(value.lineno, value.col_offset, value.col_offset, f"{first}, ("),
            Change(value.end_lineno or 0, value.end_col_offset or 0, value.end_col_offset or 0, ")"),
        ]
    line, end = last.end_lineno or 0, last.end_col_offset or 0
    if isinstance(last, ast.Return):
        return [Change(line, end, end, f" {first}, None")]
    begin = "; " if function.body[0].lineno == function.lineno else "\n" + " " * last.col_offset
    return [Change(line, end, end, f"{begin}return {first}, None")]
