"""Tuples that pass from one iteration of a loop to the next: their items are loop-carried one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..operations.scope import Scope
from ..operations.values import Unbound, Value, is_array, is_number
from ..syntax.syntax_facts import Names
from .expressions import Frame

__all__ = ["CarriedTuples"]


class CarriedTuples:
    """Tuples of numbers that pass from one iteration to the next.  Each item gets a name that no program can
    have, and is loop-carried as other numbers are.

    Attributes
    ----------
    names : dict of str to list of str
        The names of the items of each.
    """

    def __init__(self, frame: Frame, carried: Names, scope: Scope) -> None:
        self._frame, self._scope = frame, scope
        self.names: dict[str, list[str]] = {}
        for name in sorted(carried):
            value = frame.names.get(name)
            if type(value) is tuple and value and all(is_number(x) and not is_array(x) for x in value):
                self.names[name] = [f"{name} item {k}" for k in range(len(value))]
        self._spread()

    def parts(self, names: Names) -> Names:
        """Return names, with the names of the items in place of those of tuples."""
        items = [part for name in names & self.names.keys() for part in self.names[name]]
        return names - self.names.keys() | frozenset(items)

    def around(self, body: Callable[[], Any]) -> Callable[[], Any]:
        """Return a loop body that first makes the tuples from their items, and at the end binds the items."""
        if not self.names:
            return body

        def whole() -> Any:
            self.gather()
            result = body()
            self._spread()
            return result

        return whole

    def _spread(self) -> None:
        names = self._frame.names
        for name, parts in self.names.items():
            value = names.get(name)
            if isinstance(value, Unbound):
                raise self._scope.fail(value.reason)
            if type(value) is not tuple or len(value) != len(parts):
                raise self._scope.fail(f"{name} does not stay a tuple of {len(parts)} items")
            names.update(zip(parts, value, strict=True))

    def gather(self) -> None:
        """Bind the names of tuples to tuples of their items, if all items are bound."""
        names = self._frame.names
        for name, parts in self.names.items():
            values: list[Value] = [names.pop(part, None) for part in parts]
            unbound = [one for one in values if one is None or isinstance(one, Unbound)]
            names[name] = tuple(values)
            if unbound:
                names[name] = unbound[0] or Unbound(f"{name} may not be bound")
