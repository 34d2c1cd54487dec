"""Search for functions and numbered metadata in optimised LLVM text."""

from __future__ import annotations

import re

__all__ = ["FUNCTION", "REFERENCE", "nodes"]

#: The definition of a function.
FUNCTION = re.compile(r"^define .*\n(?:[^}\n].*\n|\n)*}$", re.M)
#: A node that is referred to.
REFERENCE = re.compile(r"!(\d+)")
_NODE = re.compile(r"^!(\d+) = !\{(.*)\}$", re.M)


def nodes(text: str, name: str) -> tuple[list[str], dict[str, str]] | None:
    """Return the nodes that the named metadata ``name`` lists, and the content of all numbered nodes; None if
    there is no such metadata."""
    named = re.search(rf"^!{re.escape(name)} = !\{{(.*)\}}$", text, re.M)
    return None if named is None else (REFERENCE.findall(named[1]), dict(_NODE.findall(text)))
