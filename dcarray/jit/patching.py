"""The exchange of names: what a module's NumPy is while some of its code is accelerated."""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.jit.loops.rewrite import Rewrites

from .numpy_proxy import answering, counterpart, up_to_date

__all__ = ["DRAWING", "Scope", "over", "scope_of"]


def imprint(names: dict[str, Any]) -> int:
    """A number that tells whether the objects of a dictionary are others; -1 if that is to be found out."""
    return -1


def exchange(names: dict[str, Any], swapped: tuple[tuple[str, Any, Any], ...], back: bool) -> None:
    """Put what stands for NumPy's objects into a dictionary, or those objects back where that still is."""
    for name, value, ours in swapped:
        if not back or names.get(name) is ours:
            names[name] = value if back else ours


if BUILT:
    from dcarray._native.extension import exchange, imprint


class Scope:
    """The global names of one module.  NumPy's come back when all who asked for ours have gone; so does the
    code of functions that had sites for compiled loops meanwhile."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.users = 0
        self.swapped: tuple[tuple[str, Any, Any], ...] = ()
        self.known: dict[str, int] = {}  # the identity of what a name was when it was read
        self.imprint = -1  # of all names then
        self.meant: dict[str, tuple[Any, Any]] = {}  # what is NumPy's, and what stands for it
        self.classes: dict[str, type] = {}
        self.rewrites = Rewrites(names)

    def enter(self, *functions: FunctionType) -> None:
        """Exchange the names, and give sites to functions and those that they call."""
        same = False
        with _lock:
            self.users += 1
            if self.users == 1:
                same = self.read()
                if not same:
                    self.swapped = tuple([
                        (name, value, ours)
                        for name, (value, ours) in self.meant.items()
                        if self.names.get(name) is value
                    ])  # fmt: skip
                exchange(self.names, self.swapped, False)
            self._put(functions, same)

    def read(self) -> bool:
        """Find what is NumPy's among the names, and the classes that NumPy asks for arrays; True if all is as
        it was.

        Only what is new is looked at: neither objects of NumPy's nor those classes go away, so that at the
        place of one is always the same one."""
        fresh = up_to_date()
        mark = imprint(self.names)
        if fresh and mark == self.imprint >= 0:
            return True
        self.imprint = mark
        known = self.known if fresh else {}
        for name, value in [(k, v) for k, v in self.names.items() if known.get(k) != id(v)]:
            self.known[name] = id(value)
            ours = value if name.startswith("__") else over(counterpart(value))
            self.meant.pop(name, None)
            if ours is not value:
                self.meant[name] = value, ours
            elif isinstance(value, type) and value.__module__ == self.names.get("__name__"):
                self.classes[name] = answering(value)
        return False

    def put(self, *functions: FunctionType) -> None:
        """Give sites to functions and to those that they call, if somebody is here."""
        with _lock:
            if self.users:
                self._put(functions, False)

    def _put(self, functions: tuple[FunctionType, ...], same: bool) -> None:
        """That; ``same`` if the names are what they were when they were last read."""
        if functions and config.current().jit != "off":
            for function in functions:
                self.rewrites.put(function, self.imprint if same else -1)

    def leave(self) -> None:
        with _lock:
            self.users -= 1
            if self.users == 0:
                self.rewrites.take_back()
                exchange(self.names, self.swapped, True)


_lock = threading.RLock()
_scopes: dict[int, Scope] = {}


def scope_of(names: dict[str, Any]) -> Scope:
    with _lock:
        found = _scopes.get(id(names))
        if found is None or found.names is not names:
            found = _scopes[id(names)] = Scope(names)
        return found


def over(value: Any) -> Any:
    """What draws from a generator of NumPy's, which was made elsewhere, as ours do; all else as it is."""
    if type(value).__name__ not in DRAWING:
        return value
    from dcarray.api.functions import random

    return random.over(value)


DRAWING = frozenset(("Generator", "RandomState"))
