"""What a loop that has begun goes through: whether its header would make the same now."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.lowering.runtime.parsing import parse

from ..entry.guards import ARRAYS, SCALARS
from ..syntax.eligibility import goes_through
from ..syntax.path_names import Step
from ..syntax.source import unwarned
from .object_parts import Unread, part
from .site_source import SiteSource

__all__ = ["LoopItems", "is_plain"]

_PLAIN = [*map(type, (0, 0.0, 0j, True, "", b"", [], (), {}, {0}, range(0), int, None, len, sys)), np.ndarray]
_MISSING = {
    Unread, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError,
}  # fmt: skip
_OF_ARRAYS = frozenset({"ndim", "shape", "size"})  # which wrapped arrays know without being computed


class LoopItems:
    """The range that a loop's header makes, or the list or array that it enumerates, computed again while the
    loop runs.

    Compiled code does the remaining iterations of ``range(START, n)`` with the ``n`` of now; Python's loop
    goes on through the range that it began with, which the program's code has kept.

    Parameters
    ----------
    source : SiteSource
        A loop that `goes_through` something.
    names : dict of str to object
        The global names of its code.
    """

    def __init__(self, source: SiteSource, names: dict[str, Any]) -> None:
        loop = parse(source.source).body[0]
        assert isinstance(loop, ast.For)
        place = goes_through(loop)
        assert place is not None
        with unwarned():
            self._code = compile(ast.Expression(place[1]), "<items>", "eval")
        self._paths, self._is_range = _paths(place[1]), place[1] is loop.iter
        self._needed, self._names = source.needed, names

    def as_range(self, items: Any, values: Sequence[Any]) -> range | None:
        """Return the range ``items``, or that of the indices of other ``items``, if the site's ``values``
        make them, and that runs no code of the program's; else None."""
        names = {**vars(builtins), **self._names, **dict(zip(self._needed, values, strict=True))}
        if type(items) not in (range, list, np.ndarray):
            return None
        try:
            for name, *attributes in self._paths:
                value = names[name]
                for attribute in attributes:
                    if type(value) in ARRAYS and attribute in _OF_ARRAYS:
                        value = getattr(value, attribute)
                    elif not is_plain(value):
                        value = part(value, Step("attribute", attribute))
                if not is_plain(value):
                    return None
            now = eval(self._code, names)
            if self._is_range and names["range"] is not range:
                return None
            if self._is_range:
                return items if type(items) is range and now == items else None
            return range(len(items)) if now is items and type(items) in (list, np.ndarray) else None
        except Exception as error:
            if type(error) not in _MISSING:  # another thread may raise one of the program's here
                raise
            return None


def _paths(node: ast.AST) -> list[tuple[str, ...]]:
    """Return the names that an expression reads, with the attributes that it reads of their values."""
    if isinstance(node, ast.Name):
        return [(node.id,)]
    step = (node.attr,) if isinstance(node, ast.Attribute) else ()
    return [(*path, *step) for child in ast.iter_child_nodes(node) for path in _paths(child)]


def is_plain(value: Any) -> bool:
    """Whether a value is Python's or NumPy's own, so that it has no code of the program's."""
    kind = type(value)
    return any(kind is one for one in _PLAIN) or id(kind) in SCALARS
