"""The range of a loop that has begun: whether its ends would make the same one now."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.lowering.runtime.parsing import parse

from ..entry.guards import ARRAYS
from ..syntax.path_names import Step
from .object_parts import Unread, part
from .site_source import SiteSource

__all__ = ["LoopRange", "is_plain"]

_PLAIN = [*map(type, (0, 0.0, 0j, True, "", b"", [], (), {}, {0}, range(0), int, None, len, sys)), np.ndarray]
_MISSING = {
    Unread,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
}
_OF_ARRAYS = frozenset({"ndim", "shape", "size"})  # which wrapped arrays know without being computed


class LoopRange:
    """The range that a loop's header makes, computed again while the loop runs.

    Compiled code does the remaining iterations of ``range(START, n)`` with the ``n`` of now; Python's loop
    goes on through the range that it began with, which the program's code has kept.

    Parameters
    ----------
    source : SiteSource
        A loop over a call of ``range``.
    names : dict of str to object
        The global names of its code.
    """

    def __init__(self, source: SiteSource, names: dict[str, Any]) -> None:
        loop = parse(source.source).body[0]
        assert isinstance(loop, ast.For)
        self._code = compile(ast.Expression(loop.iter), "<range>", "eval")
        self._paths = _paths(loop.iter)
        self._needed, self._names = source.needed, names

    def is_still(self, items: object, values: Sequence[Any]) -> bool:
        """Whether the site's ``values`` make the range ``items``, without running code of the program's."""
        names = {**vars(builtins), **self._names, **dict(zip(self._needed, values, strict=True))}
        try:
            for name, *attributes in self._paths:
                value = names[name]
                for attribute in attributes:
                    if type(value) in ARRAYS and attribute in _OF_ARRAYS:
                        value = getattr(value, attribute)
                    elif not is_plain(value):
                        value = part(value, Step("attribute", attribute))
                if not is_plain(value):
                    return False
            return type(items) is range and bool(eval(self._code, names) == items)
        except Exception as error:
            if type(error) not in _MISSING:  # another thread may raise one of the program's here
                raise
            return False


def _paths(node: ast.AST) -> list[tuple[str, ...]]:
    """Return the names that an expression reads, with the attributes that it reads of their values."""
    if isinstance(node, ast.Name):
        return [(node.id,)]
    step = (node.attr,) if isinstance(node, ast.Attribute) else ()
    return [(*path, *step) for child in ast.iter_child_nodes(node) for path in _paths(child)]


def is_plain(value: Any) -> bool:
    """Whether a value is Python's or NumPy's own, so that it has no code of the program's."""
    kind = type(value)
    return any(kind is one for one in _PLAIN) or issubclass(kind, np.generic)
