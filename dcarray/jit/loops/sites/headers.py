"""What headers of loops compute: conditions of ``while``, items of ``for``."""

from __future__ import annotations

from sys import _getframe
from typing import Any

__all__ = ["Headers"]


class Headers(dict[int, Any]):
    """The values that a loop's header has computed as its site was asked, by the frame, until the loop takes
    them: it does not compute its condition or items again, since the program's objects may note that.  The
    program's frame calls each method: a handler of a signal that calls the same function has another one."""

    def hold(self, value: Any) -> tuple[()]:
        """Keep the condition's value, or what the loop is to go through, until the loop takes it; return no
        results for the site."""
        self[id(_getframe(1))] = value
        return ()

    def held(self) -> Any:
        """Return what `hold` keeps."""
        return self[id(_getframe(1))]

    def release(self, results: tuple[Any, ...] = (None,)) -> tuple[Any, ...]:
        """Return what the site returned; unless that is nothing, forget what the loop has not taken.  Without
        ``results`` it has not because an exception came in between."""
        if results:
            self.pop(id(_getframe(1)), None)
        return results

    def known(self) -> bool:
        """Return whether the frame's loop need not compute its condition or items now."""
        return id(_getframe(1)) in self

    def take(self) -> Any:
        """Return the condition's value or the items, once."""
        return self.pop(id(_getframe(1)))
