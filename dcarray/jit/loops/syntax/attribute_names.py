"""The names that compiled code has for attributes of ``self``, and for items that are appended to lists."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DOT", "OWNER", "Attributes", "appended", "name_of", "shown"]

OWNER = "self"
DOT = "__dot__"


class Attributes(NamedTuple):
    """The attributes that statements use.

    Attributes
    ----------
    source : str
        The statements, with a name in place of each attribute.
    read, written : tuple of str
        The attributes that they may read before they bind them, and those that they bind.
    lists : tuple of str
        The names of the lists to which they append, in this order; to these they do nothing else.
    """

    source: str
    read: tuple[str, ...]
    written: tuple[str, ...]
    lists: tuple[str, ...] = ()


def name_of(attribute: str) -> str:
    """Return the name in place of an attribute."""
    return f"{OWNER}{DOT}{attribute}"


def appended(k: int) -> str:
    """Return the name in place of an item that is appended."""
    return f"appended{DOT}{k}"


def shown(text: str) -> str:
    """Return a text with the program's attributes in place of names."""
    return text.replace(f"{OWNER}{DOT}", f"{OWNER}.")
