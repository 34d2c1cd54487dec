"""What a loop computes once though its site asks for it, too: conditions of ``while``, and ends of ranges."""

from __future__ import annotations

import sys
from _thread import get_ident
from typing import Any

__all__ = ["Conditions", "is_plain"]

_PLAIN = int, float, bool, str, bytes, list, tuple, dict, set, range, type, type(None), type(len), type(sys)


class Conditions(dict[int, bool]):
    """The values that a loop's condition had as its site was asked, by thread, until the loop takes them: it
    does not evaluate the condition again, since the program's objects may note that."""

    def note(self, value: bool) -> tuple[()]:
        self[get_ident()] = value
        return ()

    def known(self) -> bool:
        return get_ident() in self

    def take(self) -> bool:
        return self.pop(get_ident())


def is_plain(*values: Any) -> bool:
    """Whether no code of the program's classes runs where a range is made of these values once more."""
    numpy = sys.modules.get("numpy")
    kinds = *_PLAIN, getattr(numpy, "ndarray", bool)
    scalars = getattr(numpy, "generic", bool)
    return all(any(type(v) is kind for kind in kinds) or issubclass(type(v), scalars) for v in values)
