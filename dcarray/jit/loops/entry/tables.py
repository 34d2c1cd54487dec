"""Tables: small dictionaries that compiled statements look up and go through, but do not change.

The keys of a table, and the ints in it, are constants of the plan.
"""

from __future__ import annotations

import ast
from typing import Any

from dcarray.lowering.runtime.parsing import parse

from ..syntax.syntax_facts import Names, walk

__all__ = ["TABLE_METHODS", "Table", "assigned_items", "table"]

TABLE_METHODS = frozenset(("get", "items", "keys", "values"))
"""The methods of dictionaries that compiled code has."""
_MOST_ITEMS = 32
_LARGEST = 1 << 53


class Table(dict[Any, Any]):
    """The items that a dictionary has when the statements begin."""

    __slots__ = ()


def table(value: dict[Any, Any]) -> Table | None:
    """Return a dictionary as a table; None if it is large, or has other keys than strings and ints."""
    if not 0 < len(value) <= _MOST_ITEMS:
        return None
    items = Table(value)
    kinds = {*map(type, items)}
    if not kinds <= {int, str} or any(abs(key) > _LARGEST for key in items if type(key) is int):
        return None
    return items


def assigned_items(source: str) -> Names:
    """Return the names to whose items statements assign."""
    items = [node for node in walk(parse(source)) if isinstance(node, ast.Subscript)]
    targets = [node.value for node in items if not isinstance(node.ctx, ast.Load)]
    return frozenset(node.id for node in targets if isinstance(node, ast.Name))
