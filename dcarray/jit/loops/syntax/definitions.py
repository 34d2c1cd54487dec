"""Changes of a function's source: further parameters, and further values that it returns."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from dcarray.lowering.runtime.parsing import parse

from .access_paths import Change, Unnamed
from .source import Source, is_faithful
from .syntax_facts import walk

__all__ = ["definition", "first_parameters", "function_of_text", "returning", "undecorated"]


def definition(source: Source) -> tuple[str, ast.FunctionDef]:
    """Return the text of a function without decorators, and its syntax tree with positions in that text.
    Raises `Unnamed` if the text alone would mean something else."""
    name = source.tree.name
    if not is_faithful(source.tree):
        raise Unnamed(f"{name} has a string over several lines, or declares a private name")
    text = source.text([undecorated(source.tree)])
    return text, function_of_text(text)


def undecorated(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return the syntax tree of a function without decorators, with the same statements."""
    if not tree.decorator_list:
        return tree
    bare = copy.copy(tree)
    bare.decorator_list = []
    return bare


def function_of_text(text: str) -> ast.FunctionDef:
    """Return the syntax tree of a definition."""
    (tree,) = parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def first_parameters(function: ast.FunctionDef, lines: Sequence[bytes], names: Sequence[str]) -> Change:
    """Return the change that adds the parameters ``names`` before a function's own."""
    at = lines[0].find(b"(") + 1
    given = function.args
    has_others = given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg
    return Change(1, at, at, ", ".join(names) + ", " * bool(has_others))


def returning(function: ast.FunctionDef, names: Sequence[str]) -> list[Change]:
    """Return the changes by which a function returns the values of ``names`` before its result."""
    last, first = function.body[-1], ", ".join(names)
    changes: list[Change] = []
    for node in (node for stmt in function.body for node in walk(stmt)):
        if not isinstance(node, ast.Return):
            continue
        if any(isinstance(one, ast.NamedExpr) for one in walk(node)):
            raise Unnamed("a function binds what it returns")
        if node.value is None:
            line, end = node.end_lineno or 0, node.end_col_offset or 0
            changes.append(Change(line, end, end, f" {first}, None"))
        else:
            begin, end = node.col_offset + len("return"), node.end_col_offset or 0
            changes.append(Change(node.lineno, begin, begin, f" {first}, ("))
            changes.append(Change(node.end_lineno or 0, end, end, ")"))
    if isinstance(last, ast.Return):
        return changes
    line, end = last.end_lineno or 0, last.end_col_offset or 0
    begin_text = "; " if function.body[0].lineno == function.lineno else "\n" + " " * last.col_offset
    return [*changes, Change(line, end, end, f"{begin_text}return {first}, None")]
