"""Operations on tables, which are dictionaries that do not change, in traced code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Compute, Expr, Load
from dcarray.ir.ops import const

from .arithmetic import Operations
from .lists import Lists
from .texts import Character
from .values import Data, Value, cast, is_int

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


@dataclass(frozen=True)
class View:
    """The items of a table, its keys or its values."""

    items: tuple[Value, ...]


def listed(value: Value) -> Value:
    """Return what a loop over a table, or over a view of one, goes through; other values as they are."""
    return tuple(value) if isinstance(value, dict) else value.items if isinstance(value, View) else value


class Tables(Operations):
    """Lookups of keys that are known, and of ints and characters that only the run knows."""

    def __init__(self, lists: Lists) -> None:
        super().__init__(lists.math)
        self.lists = lists

    def getitem(self, x: dict[Any, Value], key: Value) -> Value:
        """Trace ``x[key]``; the run is Python's if there is no such key."""
        if type(key) in (int, str):
            if key not in x:
                raise self.scope.fail(f"a dictionary has no key {key!r}")
            return x[key]
        place = self._place([*x], key)
        checked = Apply("checked", (Apply("greater_equal", (place, const(0, _I8)), _BOOL), place), _I8)
        window = self.memory.new((), _I8, "place")
        self.memory.may_raise = True
        self.memory.emit(Compute(window, checked, loc=self.memory.loc))
        self.memory.immutable.add(window.array)
        return self.lists.chosen([*x.values()], self._number(Load(window, _I8), 0, len(x)))

    def get(self, x: dict[Any, Value], key: Value, default: Value = None, /) -> Value:
        """Trace ``x.get(key, default)``."""
        if type(key) in (int, str):
            return x.get(key, default)
        place = self._number(self._place([*x], key), -1, len(x))
        return self.lists.chosen([default, *x.values()], self.math.binary("+", place, 1))

    def view(self, name: str, x: dict[Any, Value]) -> View:
        """Trace ``x.items()``, ``x.keys()`` or ``x.values()``."""
        return View(tuple(getattr(x, name)()))

    def contains(self, x: dict[Any, Value], key: Value) -> Value:
        """Trace ``key in x``."""
        if type(key) in (int, str):
            return key in x
        return self.math.binary(">=", self._number(self._place([*x], key), -1, len(x)), 0)

    def _number(self, expr: Expr, least: int, end: int) -> Data:
        return self.memory.value(expr, scalar=True, weak=int, limits=(least, end - 1))

    def _place(self, keys: Sequence[Any], key: Value) -> Expr:
        """Return the place of a key among others, or -1."""
        place: Expr = const(-1, _I8)
        for k in reversed(range(len(keys))):
            known = self._equal(keys[k], key)
            if known is not None:
                place = Apply("where", (known, const(k, _I8), place), _I8)
        return place

    def _equal(self, one: Any, key: Value) -> Expr | None:
        """Return whether a known key is equal to one that only the run knows; None if it never is."""
        if isinstance(key, Character):
            if type(one) is not str or len(one) > 1 or one == "\0":
                return None
            return Apply("equal", (key.code.expr, const(ord(one) if one else 0, key.code.dtype)), _BOOL)
        is_known = isinstance(key, Data) and key.scalar and np.can_cast(key.dtype, _I8) and key.dtype != _BOOL
        if not (is_int(key) or is_known):
            raise self.scope.fail("a dictionary is indexed by neither an int nor a character")
        if type(one) is not int:
            return None
        expr = cast(key.expr, _I8) if isinstance(key, Data) else self.math.expr(key, _I8)
        return Apply("equal", (expr, const(one, _I8)), _BOOL)
