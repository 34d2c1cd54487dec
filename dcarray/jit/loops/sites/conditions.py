"""Values of the conditions of ``while`` loops that were found before the loops."""

from __future__ import annotations

from _thread import get_ident

__all__ = ["Conditions"]


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
