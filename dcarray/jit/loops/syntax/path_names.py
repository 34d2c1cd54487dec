"""The names that compiled code has for access paths (``self.p.dt``, ``cfg["k"]``), and for items that are
appended to lists."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["IGNORED", "Path", "Step", "appended", "has_own_names", "numbered", "shown"]

_DOT, _ITEM = "__dot__", "__item__"
IGNORED = f"ignored{_DOT}"
"""The name that is bound to a result that nothing uses."""


class Step(NamedTuple):
    """An attribute, or an item of a dictionary: of ``key``, a string or an int."""

    is_item: bool
    key: str | int


class Path(NamedTuple):
    """An access path: the name of an object, and the steps from there on."""

    root: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """An identifier in its place."""
        parts = [self.root]
        for is_item, key in self.steps:
            parts.append(f"{_ITEM if is_item else _DOT}{key}")  # no attribute begins with a digit
        return "".join(parts)

    def __str__(self) -> str:
        return shown(self.name)


def appended(k: int) -> str:
    """Return the name in place of an item that is appended."""
    return f"appended{_DOT}{k}"


def numbered(function: str, k: int) -> str:
    """Return the name of a function that is rewritten."""
    return f"{function}{_DOT}{k}"


def has_own_names(text: str) -> bool:
    """Whether a text has such names already."""
    return _DOT in text or _ITEM in text


def shown(text: str) -> str:
    """Return a text with the program's paths in place of names."""
    if not has_own_names(text):
        return text
    return re.sub(f"{_ITEM}(\\w+?)(?={_DOT}|{_ITEM}|\\b)", _item, text).replace(_DOT, ".")


def _item(found: re.Match[str]) -> str:
    key = found[1]
    return f"[{key}]" if key.isdigit() else f'["{key}"]'
