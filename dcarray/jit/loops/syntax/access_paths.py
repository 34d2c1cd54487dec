"""Access paths (``self.u``, ``self.p.dt``, ``cfg["k"]``) in syntax trees, and changes of a source's text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from .path_names import Step

__all__ = ["Chain", "Change", "Unnamed", "chain_of", "changed"]


class Unnamed(Exception):
    """Parts of objects cannot be names, for the reason that it gives."""


class Chain(NamedTuple):
    """A name with attributes or constant indices after it: ``nodes[k]`` has the first ``k + 1`` steps."""

    name: ast.Name
    steps: tuple[Step, ...]
    nodes: tuple[ast.expr, ...]

    @property
    def root(self) -> str:
        return self.name.id

    def is_bound(self) -> bool:
        """Whether the path is bound or deleted there."""
        return not isinstance(getattr(self.nodes[-1], "ctx", None), ast.Load)


def chain_of(node: ast.expr) -> Chain | None:
    """Return the chain that an expression is; None if it is something else. A name is one without steps."""
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
    """Return a constant index that may be a part of a name; None if it is none."""
    key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int):
        return key if type(key) is int and key >= 0 else None
    return key if isinstance(key, str) and key.isidentifier() else None


class Change(NamedTuple):
    """A text in place of what is between two columns of a line, in bytes as those of syntax trees."""

    line: int
    start: int
    end: int
    text: str

    @staticmethod
    def of(node: ast.expr | ast.stmt, text: str) -> Change | None:
        """Return the change of a node; None if it is on several lines."""
        if node.lineno != node.end_lineno or node.end_col_offset is None:
            return None
        return Change(node.lineno, node.col_offset, node.end_col_offset, text)


def changed(lines: Sequence[bytes], changes: Sequence[Change]) -> str:
    """Return a source, given as its lines, with some changes, in this order where they are at one place."""
    found = [*lines]
    for line, start, end, text in reversed(sorted(changes, key=lambda change: change[:3])):
        before = found[line - 1]
        found[line - 1] = before[:start] + text.encode() + before[end:]
    return b"\n".join(found).decode()
