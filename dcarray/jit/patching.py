"""Global names of a module that mean dcarray instead of NumPy while some of its code is accelerated."""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.jit.loops.rewrite import ModuleRewrites

from .numpy_proxy import answering, counterpart, up_to_date

__all__ = ["DRAWING", "Scope", "over", "scope_of"]


def dict_fingerprint(names: dict[str, Any]) -> int:
    """A number that changes with the objects that a dictionary holds; -1 where it is not computed."""
    return -1


def swap_names(names: dict[str, Any], swapped: tuple[tuple[str, Any, Any], ...], back: bool) -> None:
    """Replace NumPy's objects in a dictionary by dcarray's, or back where those are still there."""
    for name, value, ours in swapped:
        if not back or names.get(name) is ours:
            names[name] = value if back else ours


if BUILT:
    from dcarray._native.extension import dict_fingerprint, swap_names


class Scope:
    """The global names of one module.  NumPy's objects come back when its last user has left, and so does the
    code of functions that had loop sites meanwhile."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.users = 0
        self.swapped: tuple[tuple[str, Any, Any], ...] = ()
        self.known: dict[str, int] = {}  # the identity of each name's object when it was last read
        self.fingerprint = -1  # of the dictionary then
        self.meant: dict[str, tuple[Any, Any]] = {}  # names of NumPy's objects: the object and dcarray's
        self.classes: dict[str, type] = {}
        self.rewrites = ModuleRewrites(names)

    def enter(self, *functions: FunctionType) -> None:
        """Swap the names for a first user, and give loop sites to functions and those that they call."""
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
                swap_names(self.names, self.swapped, False)
            self._put(functions, same)

    def read(self) -> bool:
        """Find the names of NumPy's objects, and the module's classes that NumPy asks for arrays; returns
        whether nothing has changed.

        Only new objects are looked at: NumPy's objects and those classes are never freed, so that an identity
        stands for one object."""
        fresh = up_to_date()
        mark = dict_fingerprint(self.names)
        if fresh and mark == self.fingerprint >= 0:
            return True
        self.fingerprint = mark
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
        """Give loop sites to functions and to those that they call, if the module has users."""
        with _lock:
            if self.users:
                self._put(functions, False)

    def _put(self, functions: tuple[FunctionType, ...], same: bool) -> None:
        """As `put`, under the lock; ``same`` if the names have not changed since they were last read."""
        if functions and config.current().jit != "off":
            for function in functions:
                self.rewrites.put(function, self.fingerprint if same else -1)

    def leave(self) -> None:
        with _lock:
            self.users -= 1
            if self.users == 0:
                self.rewrites.restore()
                swap_names(self.names, self.swapped, True)


_lock = threading.RLock()
_scopes: dict[int, Scope] = {}


def scope_of(names: dict[str, Any]) -> Scope:
    with _lock:
        found = _scopes.get(id(names))
        if found is None or found.names is not names:
            found = _scopes[id(names)] = Scope(names)
        return found


def over(value: Any) -> Any:
    """A wrapper of one of NumPy's random generators that draws as dcarray's do; any other object itself."""
    if type(value).__name__ not in DRAWING:
        return value
    from dcarray.api.functions import random

    return random.over(value)


DRAWING = frozenset(("Generator", "RandomState"))
