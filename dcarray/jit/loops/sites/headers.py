"""What headers of loops compute: conditions of ``while``, items of ``for``, ends of ranges."""

from __future__ import annotations

import sys
from sys import _getframe
from typing import Any

from dcarray.core import open_door
from dcarray.core.faults import is_fault

from ..syntax.path_names import Step

__all__ = ["Headers", "are_plainly_read", "is_plain"]

_PLAIN = [*map(type, (0, 0.0, 0j, True, "", b"", [], (), {}, {0}, range(0), int, None, len, sys))]


class Headers(dict[int, Any]):
    """The values that a loop's header has computed as its site was asked, by the frame, until the loop takes
    them: it does not compute its condition or items again, since the program's objects may note that.  The
    program's frame calls each method: a handler of a signal that calls the same function has another one."""

    def note(self, value: bool) -> tuple[()]:
        """Keep the condition's value until the frame's loop takes it; return no value for the site."""
        self[id(_getframe(1))] = value
        return ()

    def hold(self, items: Any) -> None:
        """Keep what the loop is to go through, unless compiled code does."""
        self[id(_getframe(1))] = items

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


def is_plain(*values: Any) -> bool:
    """Whether these values are Python's or NumPy's own, so that none of them has code of the program's."""
    numpy = sys.modules.get("numpy")
    kinds, scalars = [*_PLAIN, getattr(numpy, "ndarray", bool)], getattr(numpy, "generic", bool)
    return all(any(type(v) is kind for kind in kinds) or issubclass(type(v), scalars) for v in values)


def are_plainly_read(*paths: tuple[Any, ...], but: tuple[type, ...] = ()) -> bool:
    """Whether reading attributes, of each path's first value and so on, runs no code of the program's, and
    gives no instances of the classes ``but``."""
    from dcarray.core.interrupts import HeldSignals  # which imports NumPy

    with HeldSignals():
        try:
            part = open_door("sites").SiteServer.part
            for value, *names in paths:
                for name in names:
                    value = value if is_plain(value) else part(value, Step("attribute", name))
                if not is_plain(value) or isinstance(value, but):
                    return False
        except Exception as error:  # the program asks
            if not is_fault(error):
                raise
            return False
    return True
