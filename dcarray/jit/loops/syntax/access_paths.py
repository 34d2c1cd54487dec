"""Access paths (``self.u``, ``self.p.dt``, ``cfg["k"]``) in syntax trees, and changes of a source's text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from .path_names import Step

__all__ = ["Chain", "Change", "Unnamed", "chain_of", "changed"]


class Unnamed(Exception):
    """Raised when parts of objects cannot be replaced by names, with the reason."""


class Chain(NamedTuple):
    """A name followed by attributes or constant indices, such as ``a.b[0]``; ``nodes[k]`` is the expression
    with the first ``k + 1`` of these steps."""

    name: ast.Name
    steps: tuple[Step, ...]
    nodes: tuple[ast.expr, ...]

    @property
    def root(self) -> str:
        return self.name.id

    def is_bound(self) -> bool:
        """Whether the statement with the chain assigns or deletes the part."""
        return not isinstance(getattr(self.nodes[-1], "ctx", None), ast.Load)


def chain_of(node: ast.expr) -> Chain | None:
    """Return the chain that an expression is (a name alone has no steps); None if it is no chain."""
    nodes: list[ast.expr] = []
    steps: list[Step] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(Step("attribute", node.attr))
        elif isinstance(node, ast.Subscript) and (key := _key(node.slice)) is not None:
            steps.append(Step("item", key))
        else:
            return None
        nodes.append(node)
        node = node.value
    return Chain(node, tuple(reversed(steps)), tuple(reversed(nodes)))


def _key(index: ast.expr) -> str | int | None:
    """Return an index that is a constant str or int; None for any other index."""
    key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int):
        return key if type(key) is int and key >= 0 else None
    return key if isinstance(key, str) and key.isascii() and key.isidentifier() else None


class Change(NamedTuple):
    """A replacement of the text between two columns of a line; columns count bytes, as in syntax trees."""

    line: int
    start: int
    end: int
    text: str

    @staticmethod
    def of(node: ast.expr | ast.stmt, text: str) -> Change | None:
        """Return the change that replaces a node by ``text``; None if the node is on several lines."""
        if node.lineno != node.end_lineno or node.end_col_offset is None:
            return None
        return Change(node.lineno, node.col_offset, node.end_col_offset, text)


def changed(lines: Sequence[bytes], changes: Sequence[Change]) -> str:
    """Return a source, given as lines, after the changes; those at the same place apply in their order."""
    edited = [*lines]
    for line, start, end, text in reversed(sorted(changes, key=lambda change: change[:3])):
        before = edited[line - 1]
        edited[line - 1] = before[:start] + text.encode() + before[end:]
    return b"\n".join(edited).decode()
