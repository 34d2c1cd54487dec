"""Hoisting: a call inside a statement is moved to a statement of its own before that."""

from __future__ import annotations

import ast
from collections.abc import Collection

from .access_paths import Change, Unnamed, changed
from .path_names import numbered
from .syntax_facts import children, walk

__all__ = ["InsideExpression", "hoisted"]

_INSIDE = "a function that binds parts of objects is called inside of an expression"
_VALUES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Tuple, ast.Subscript, ast.keyword)
_TEMPORARY = "result"


class InsideExpression(Unnamed):
    """Raised when a call that has to be a statement of its own is part of another statement."""

    def __init__(self, call: ast.Call) -> None:
        super().__init__(_INSIDE)
        self.call = call


def hoisted(
    text: str, tree: ast.AST, call: ast.Call, others: Collection[str], own: Collection[str]
) -> str:  # fmt: skip
    """Return the source with a call as a statement of its own, before the one that uses its result.  Raises
    `Unnamed` if Python would have computed something else before the call.

    Parameters
    ----------
    text, tree
        The source, and its syntax tree.
    call : ast.Call
    others : collection of str
        The names of objects of which the call may assign parts.
    own : collection of str
        The names that the call cannot assign.
    """
    for stmt in (node for node in walk(tree) if isinstance(node, ast.stmt)):
        match stmt:
            case ast.Assign(value=root) | ast.Expr(root):
                pass
            case ast.AugAssign(ast.Name(name), _, root) if name in own:
                pass
            case ast.Return(ast.expr() as root) | ast.If(test=root):
                pass
            case _:
                continue
        if any(node is call for node in walk(root)):
            break
    else:
        raise Unnamed(_INSIDE)
    if not _is_first(root, call, others, own):
        raise Unnamed(_INSIDE)
    lines = text.split("\n")
    begin, end = stmt.lineno - 1, stmt.col_offset
    before = lines[begin].encode()[:end].decode()
    is_alone = not before.strip()
    name = numbered(_TEMPORARY, begin * 1000 + call.col_offset)
    segment = ast.get_source_segment(text, call)
    use = Change.of(call, name)
    is_branch = isinstance(stmt, ast.If) and (not is_alone or lines[begin][len(before) :].startswith("elif"))
    if use is None or segment is None or is_branch:
        raise Unnamed(_INSIDE)
    rest = changed([line.encode() for line in lines], [use]).split("\n")
    joint = f"\n{before}" if is_alone else "; "
    rest[begin] = f"{before}{name} = {segment}{joint}{rest[begin][len(before) :]}"
    return "\n".join(rest)


def _is_first(root: ast.expr, call: ast.Call, others: Collection[str], own: Collection[str]) -> bool:
    """Whether nothing that the call could change is read before it: constants and names it cannot assign."""
    node: ast.AST = root
    while node is not call:
        if not isinstance(node, _VALUES) or (isinstance(node, ast.Compare) and len(node.ops) > 1):
            return False
        for part in children(node):
            if any(one is call for one in walk(part)):
                node = part
                break
            if isinstance(node, ast.Call) and part is node.func:
                while isinstance(part, ast.Attribute):
                    part = part.value
                if isinstance(part, ast.Name) and part.id not in others:
                    continue
            if not (isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id in own)):
                return False
        else:
            return False
    return True
