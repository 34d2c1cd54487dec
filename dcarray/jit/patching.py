"""Replacement of NumPy by dcarray in a module's global names, while code of the module has wrapped arrays."""

from __future__ import annotations

import threading
from typing import Any

from dcarray.core.native import BUILT

from .numpy_proxy import counterpart, members_known, patch_array_method, patch_subclass


def dict_fingerprint(names: dict[str, Any]) -> int:
    """Return a number that changes when a dictionary gets other objects; -1 if it cannot be computed."""
    return -1


def swap_names(names: dict[str, Any], swapped: tuple[tuple[str, Any, Any], ...], back: bool) -> None:
    """Replace NumPy's objects in a dictionary by dcarray's; with ``back``, restore NumPy's."""
    for name, value, substitute in swapped:
        if not back or names.get(name) is substitute:
            names[name] = value if back else substitute


if BUILT:
    from dcarray._native.extension import dict_fingerprint, swap_names


class ModuleNames:
    """The global names of one module, with NumPy's objects replaced while the module has users."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.users = 0
        self.swaps: tuple[tuple[str, Any, Any], ...] = ()
        self.identities: dict[str, int] = {}  # the identity of each name's object when it was last read
        self.fingerprint = -1  # of the dictionary then
        self.substitutes: dict[str, tuple[Any, Any]] = {}  # by name: NumPy's object and dcarray's

    def enter(self) -> None:
        """Add a user; the first one has the names replaced."""
        with _lock:
            self.users += 1
            if self.users == 1:
                if not self.read():
                    self.swaps = tuple([
                        (name, value, substitute)
                        for name, (value, substitute) in self.substitutes.items()
                        if self.names.get(name) is value
                    ])  # fmt: skip
                swap_names(self.names, self.swaps, False)

    def read(self) -> bool:
        """Find the names of NumPy's objects, and the module's classes that give NumPy arrays (``__array__``).
        Return whether nothing has changed.

        Only new objects are looked at: NumPy's objects and those classes are never freed, so that an identity
        stands for one object.
        """
        fresh = members_known()
        fingerprint = dict_fingerprint(self.names)
        if fresh and fingerprint == self.fingerprint >= 0:
            return True
        self.fingerprint = fingerprint
        known = self.identities if fresh else {}
        for name, value in [(k, v) for k, v in self.names.items() if known.get(k) != id(v)]:
            self.identities[name] = id(value)
            substitute = value if name.startswith("__") else wrap_generator(counterpart(value))
            self.substitutes.pop(name, None)
            if substitute is not value:
                self.substitutes[name] = value, substitute
            elif isinstance(value, type) and value.__module__ == self.names.get("__name__"):
                patch_subclass(patch_array_method(value))
        return False

    def leave(self) -> None:
        """Remove a user; the last one has the names restored."""
        with _lock:
            self.users -= 1
            if self.users == 0:
                swap_names(self.names, self.swaps, True)


_lock = threading.RLock()
_scopes: dict[int, ModuleNames] = {}


def module_names(names: dict[str, Any]) -> ModuleNames:
    with _lock:
        found = _scopes.get(id(names))
        if found is None or found.names is not names:
            found = _scopes[id(names)] = ModuleNames(names)
        return found


def wrap_generator(value: Any) -> Any:
    """Return a wrapper of a NumPy random generator that draws as dcarray's do; any other object itself."""
    if type(value).__name__ not in GENERATORS:
        return value
    from dcarray.api.functions import random

    return random.over(value)


GENERATORS = frozenset(("Generator", "RandomState"))
