"""Private names of classes, as Python's compiler resolves them: ``__x`` in a class ``A`` is ``_A__x``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from .syntax_facts import children, facts, walk

__all__ = ["class_around", "has_private", "in_text", "is_written_plainly", "mangle", "mangled"]

_FIELDS = {
    ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.ExceptHandler: "name", ast.MatchAs: "name",
    ast.MatchStar: "name", ast.MatchMapping: "rest", ast.alias: "asname",
}  # fmt: skip
_OTHERS = frozenset({ast.Global, ast.Nonlocal, *_FIELDS}) - {ast.Name, ast.Attribute, ast.arg}
_PRIVATE = re.compile(r"\b__(?!\w*__\b)\w")


def mangled(name: str, of: str) -> str:
    """Return the name that ``name`` is in the class ``of`` (empty: in no class)."""
    bare = of.lstrip("_")
    private = bare and name.startswith("__") and not name.endswith("__") and "." not in name
    return f"_{bare}{name}" if private else name


def class_around(qualified: str) -> str:
    """Return the name of the innermost class around a function with this qualified name, or empty."""
    parts = qualified.split(".")
    return next((a for a, b in reversed([*pairwise(parts)]) if "<locals>" not in (a, b)), "")


def has_private(text: str) -> bool:
    """Whether a program's text may contain private names."""
    return _PRIVATE.search(text) is not None


def mangle(root: ast.AST, of: str) -> None:
    """Give the nodes of a tree in the class ``of`` the names that they have for the compiler; those of
    functions and classes keep theirs.  A node's ``written`` is its name in the text then."""
    stack = [(root, of)]
    while stack:
        node, around = stack.pop()
        inner = node.name if isinstance(node, ast.ClassDef) else around
        body = {id(one) for one in node.body} if isinstance(node, ast.ClassDef) else ()
        stack += [(one, inner if id(one) in body else around) for one in children(node)]
        field = _FIELDS.get(type(node))
        if field and (name := getattr(node, field)) and mangled(name, around) != name:
            setattr(node, field, mangled(name, around))
            node.written = name  # type: ignore[attr-defined]
        elif isinstance(node, ast.Global | ast.Nonlocal):
            node.written = node.names  # type: ignore[union-attr]
            node.names = [mangled(name, around) for name in node.names]


def in_text(lines: list[str], first: int, nodes: Sequence[ast.AST]) -> list[str]:
    """Return source lines, the first of which has the number ``first``, with the names that nodes have in
    place of those that are written."""
    encoded = [line.encode() for line in lines]
    places = set()
    for node in nodes:
        written = getattr(node, "written", None)
        if isinstance(written, str):
            name = getattr(node, _FIELDS[type(node)])
            last = isinstance(node, ast.Attribute)
            line = (node.end_lineno if last else node.lineno) or 0  # type: ignore[attr-defined]
            size = len(written.encode())
            begin = node.end_col_offset - size if last else node.col_offset  # type: ignore[attr-defined]
            places.add((line - first, begin, begin + size, name))
    for line, begin, end, name in sorted(places, reverse=True):
        encoded[line] = encoded[line][:begin] + name.encode() + encoded[line][end:]
    return [line.decode() for line in encoded]


def is_written_plainly(node: ast.AST) -> bool:
    """Whether `in_text` can correct all private names in a node."""
    return facts(node).kinds.isdisjoint(_OTHERS) or not any(
        type(one) in _OTHERS and getattr(one, "written", names) != names
        for one in walk(node)
        for names in [getattr(one, "names", None)]
    )
