"""The names that compiled code has for access paths (``self.p.dt``, ``cfg["k"]``, a variable of an inner
function), and for items that are appended to lists."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = [
    "IGNORED", "Path", "Step", "appended", "counted", "has_own_names", "is_appended", "is_stacked",
    "numbered", "shown", "stacked",
]  # fmt: skip

_DOT, _ITEM, _CELL = "__dot__", "__item__", "__cell__"
_MARKS = {"attribute": _DOT, "item": _ITEM, "cell": _CELL}
IGNORED = f"ignored{_DOT}"
"""The name that is bound to a result that nothing uses."""


class Step(NamedTuple):
    """A step from an object to a part of it: an attribute, an item, or a cell, by its name or number
    ``key``.  A cell is a variable that is bound in the function around another one."""

    kind: Literal["attribute", "item", "cell"]
    key: str | int


class Path(NamedTuple):
    """An access path: the name of an object, and the steps from there on; without a name they begin with a
    global name."""

    root: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """An identifier in its place."""
        parts = [self.root]
        for kind, key in self.steps:
            parts.append(f"{_MARKS[kind]}{key}")  # no attribute begins with a digit
        return "".join(parts)

    def longer(self, *steps: Step) -> Path:
        """Return the path with more steps."""
        return Path(self.root, (*self.steps, *steps))

    def __str__(self) -> str:
        return shown(self.name)


def appended(k: int) -> str:
    """Return the name in place of an item that is appended, or of a list to which a loop appends."""
    return f"appended{_DOT}{k}"


def is_appended(name: str) -> bool:
    """Whether a name is in place of an item that is appended, or of a list to which a loop appends."""
    return name.startswith(f"appended{_DOT}")


def stacked(k: int) -> str:
    """Return the name in place of a list that a loop reads, and lets grow or shrink."""
    return f"stacked{_DOT}{k}"


def is_stacked(name: str) -> bool:
    """Whether a name is in place of a list that a loop reads, and lets grow or shrink."""
    return name.startswith(f"stacked{_DOT}")


def counted(name: str) -> str:
    """Return the name of how many items a loop has appended."""
    return f"{name}{_DOT}count"


def numbered(function: str, k: int) -> str:
    """Return the name of a function that is rewritten."""
    return f"{function}{_DOT}{k}"


def has_own_names(text: str) -> bool:
    """Whether a text has such names already."""
    return any(mark in text for mark in _MARKS.values())


def shown(text: str) -> str:
    """Return a text with the program's paths in place of names."""
    if not has_own_names(text):
        return text
    text = re.sub(f"(?<!\\w){_ITEM}(?=\\w)", "", text)  # a global name
    text = re.sub(f"{_ITEM}(\\w+?)(?={_DOT}|{_ITEM}|{_CELL}|\\b)", _item, text)
    return re.sub(f"\\w*{_CELL}", "", text).replace(_DOT, ".")


def _item(found: re.Match[str]) -> str:
    key = found[1]
    return f"[{key}]" if key.isdigit() else f'["{key}"]'
