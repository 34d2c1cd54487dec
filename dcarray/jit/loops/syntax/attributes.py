"""Attributes of ``self`` as names: scalar replacement of the attributes of one object in a method's statements.

Where a method's statements use ``self`` for nothing but its attributes, these are names to compiled code, which
are read before and bound after it.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from .liveness import live_before
from .syntax_facts import Names, stores

__all__ = ["Attributes", "attributes_as_names", "shown"]

OWNER = "self"
_DOT = "__dot__"


class Attributes(NamedTuple):
    """The attributes that statements use.

    Attributes
    ----------
    source : str
        The statements, with a name in place of each attribute.
    read, written : tuple of str
        The attributes that they may read before they bind them, and those that they bind.
    """

    source: str
    read: tuple[str, ...]
    written: tuple[str, ...]


def name_of(attribute: str) -> str:
    """Return the name in place of an attribute."""
    return f"{OWNER}{_DOT}{attribute}"


def shown(text: str) -> str:
    """Return a text with the program's attributes in place of names."""
    return text.replace(f"{OWNER}{_DOT}", f"{OWNER}.")


def attributes_as_names(source: str, live: Names) -> Attributes | None:
    """Return statements with names in place of attributes; None if ``self`` is used for something else.

    ``live`` are the names that the statements bind and that may be read afterwards.
    """
    if _DOT in source:
        return None
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    nodes = [*ast.walk(tree)]
    owners = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id == OWNER}
    found = [node for node in nodes if isinstance(node, ast.Attribute) and id(node.value) in owners]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    if len(found) < len(owners) or any(
        id(node) in called or isinstance(node.ctx, ast.Del) or node.lineno != node.end_lineno for node in found
    ):
        return None
    lines = [line.encode() for line in source.split("\n")]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line = lines[node.lineno - 1]
        name = name_of(node.attr).encode()
        lines[node.lineno - 1] = line[: node.col_offset] + name + line[node.end_col_offset :]
    text = b"\n".join(lines).decode()
    body = ast.parse(text).body
    start = len(name_of(""))
    attributes = {name_of(node.attr) for node in found}
    written = stores(*body) & attributes
    read = live_before(body, live | written) & attributes
    return Attributes(text, *(tuple(sorted(name[start:] for name in names)) for names in (read, written)))
