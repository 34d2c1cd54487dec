"""The names in compiled code that stand for access paths (``self.p.dt``, ``cfg["k"]``, a variable of an outer
function), and for items appended to lists."""

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
    """A step from an object to its part ``key``: an attribute, an item, or a cell.  A cell is a variable of a
    function that belongs to a function around it."""

    kind: Literal["attribute", "item", "cell"]
    key: str | int


class Path(NamedTuple):
    """An access path: the name of an object, and the steps from there.  With an empty name the first step is
    a global name."""

    root: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """The identifier that stands for the path."""
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
    """Return the name number ``k`` for an appended item, or for a list to which a loop appends."""
    return f"appended{_DOT}{k}"


def is_appended(name: str) -> bool:
    """Whether a name was made by `appended`."""
    return name.startswith(f"appended{_DOT}")


def stacked(k: int) -> str:
    """Return the name number ``k`` that stands for a list that a loop reads, and lengthens or shortens."""
    return f"stacked{_DOT}{k}"


def is_stacked(name: str) -> bool:
    """Whether a name was made by `stacked`."""
    return name.startswith(f"stacked{_DOT}")


def counted(name: str) -> str:
    """Return the name of the number of items that a loop has appended to the list ``name``."""
    return f"{name}{_DOT}count"


def numbered(function: str, k: int) -> str:
    """Return the name of the rewritten function number ``k``."""
    return f"{function}{_DOT}{k}"


def has_own_names(text: str) -> bool:
    """Whether a program's text already contains names like the ones made here."""
    return any(mark in text for mark in _MARKS.values())


def shown(text: str) -> str:
    """Return a text in which the program's paths replace the names made here."""
    if not has_own_names(text):
        return text
    text = re.sub(f"(?<!\\w){_ITEM}(?=\\w)", "", text)  # a global name
    text = re.sub(f"{_ITEM}(\\w+?)(?={_DOT}|{_ITEM}|{_CELL}|\\b)", _item, text)
    return re.sub(f"\\w*{_CELL}", "", text).replace(_DOT, ".")


def _item(match: re.Match[str]) -> str:
    key = match[1]
    return f"[{key}]" if key.isdigit() else f'["{key}"]'
