"""Operations on strings while loops are traced: compiled code has characters as code points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcarray.ir.nodes import Apply, Const
from dcarray.ir.ops import const

from ..entry.entry_values import CHARACTERS
from .memory import Memory
from .scope import Scope
from .values import Data, Value

__all__ = ["Character", "Text", "compared", "contained"]

_BOOL = np.dtype(np.bool_)
_NAMES = {"==": "equal", "!=": "not_equal"}


@dataclass(frozen=True, eq=False)
class Text:
    """A traced string, list of characters or array of characters, which no statement changes.

    Attributes
    ----------
    codes : Data
        The code points of the characters; 0 for an empty string in an array.
    """

    codes: Data


@dataclass(frozen=True, eq=False)
class Character:
    """An item of a `Text`; ``code`` is its code point."""

    code: Data


def compared(memory: Memory, scope: Scope, op: str, a: Value, b: Value) -> Value:
    """Trace ``a == b`` or ``a != b`` of a `Character` and a `Character` or str."""
    first, *others = [x.code.expr for x in (a, b) if isinstance(x, Character)]
    known = [x for x in (a, b) if isinstance(x, str)]
    if op not in ("==", "!=") or len(others) + len(known) != 1 or "\0" in known:
        raise scope.fail(f"{op} of a character")
    if known and len(known[0]) > 1:
        return op == "!="
    other = others[0] if others else _code(known[0])
    return memory.value(Apply(_NAMES[op], (first, other), _BOOL), scalar=True, weak=bool)


def contained(memory: Memory, scope: Scope, x: Character, items: Value) -> Data:
    """Trace ``x in items``; ``items`` must be a known str, or a tuple of known strings of one character."""
    every = [*items] if isinstance(items, str | tuple) else []
    if not every or not all(isinstance(one, str) and len(one) == 1 and one != "\0" for one in every):
        raise scope.fail("a character is looked for in values that are not known")
    if isinstance(items, str):
        every.append("")
    equal, *others = [Apply("equal", (x.code.expr, _code(one)), _BOOL) for one in every]
    for other in others:
        equal = Apply("logical_or", (equal, other), _BOOL)
    return memory.value(equal, scalar=True, weak=bool)


def _code(one: str) -> Const:
    return const(ord(one) if one else 0, CHARACTERS)
