"""The sympy symbol of a size, in a module of its own because importing it imports sympy."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy


class SizeSymbol(sympy.Symbol):  # type: ignore[misc]
    """An integer symbol that knows its smallest value (None: unbounded below)."""

    __slots__ = ("minimum",)

    def __new__(cls, name: str, minimum: int | None = 0) -> SizeSymbol:
        kind: Any = cls  # (mypy does not see that a class is hashable here)
        made: SizeSymbol = _make(kind, name, minimum)
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.name, self.minimum), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.minimum is not None, self.minimum or 0)


@lru_cache(maxsize=4096)
def _make(cls: Any, name: str, minimum: int | None) -> Any:
    signs: dict[str, bool] = {}
    if minimum is not None and minimum >= 0:
        signs["positive" if minimum > 0 else "nonnegative"] = True
    made = sympy.Symbol.__xnew__(cls, name, integer=True, **signs)
    made.minimum = minimum
    return made
