"""Global names of a module that mean dcarray instead of NumPy while some of its code is accelerated.

Names of compiled functions mean stand-ins that give them plain arrays.
"""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.jit.loops.sites.rewrite import ModuleRewrites

from .accelerated_code import ACCELERATED
from .library_stand_ins import library_stand_in
from .numpy_proxy import counterpart, members_known, patch_array_method, patch_subclass
from .type_stand_in import array_type, compares_types


def dict_fingerprint(names: dict[str, Any]) -> int:
    """Return a number that changes with the objects that a dictionary holds; -1 where it is not computed."""
    return -1


def swap_names(names: dict[str, Any], swapped: tuple[tuple[str, Any, Any], ...], back: bool) -> None:
    """Replace NumPy's objects in a dictionary by dcarray's, or back where those are still there."""
    for name, value, substitute in swapped:
        if not back or names.get(name) is substitute:
            names[name] = value if back else substitute


if BUILT:
    from dcarray._native.extension import dict_fingerprint, swap_names


class ModuleNames:
    """The global names of one module.  NumPy's objects come back when its last user has left, and so does the
    code of functions that had loop sites meanwhile."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.users = 0
        self.swaps: tuple[tuple[str, Any, Any], ...] = ()
        self.identities: dict[str, int] = {}  # the identity of each name's object when it was last read
        self.fingerprint = -1  # of the dictionary then
        self.substitutes: dict[str, tuple[Any, Any]] = {}  # by name: NumPy's object and dcarray's
        self.classes: dict[str, type] = {}
        self.asks_types = False  # whether its code is to have another `type`
        self.rewrites = ModuleRewrites(names)

    def enter(self, *functions: FunctionType) -> None:
        """Swap the names for a first user, and give loop sites to functions and those that they call."""
        same = False
        with _lock:
            self.users += 1
            if self.users == 1:
                ACCELERATED[id(self.names)] = self.names
                same = self.read()
                if not same:
                    self.swaps = tuple([
                        (name, value, substitute)
                        for name, (value, substitute) in self.substitutes.items()
                        if self.names.get(name) is value
                    ])  # fmt: skip
                swap_names(self.names, self.swaps, False)
                if self.asks_types:
                    self.names.setdefault("type", array_type)
            self._put(functions, same)

    def read(self) -> bool:
        """Find the names of NumPy's objects, and the module's classes that NumPy asks for arrays; returns
        whether nothing has changed.

        Only new objects are looked at: NumPy's objects and those classes are never freed, so that an identity
        stands for one object."""
        fresh = members_known()
        fingerprint = dict_fingerprint(self.names)
        if fresh and fingerprint == self.fingerprint >= 0:
            return True
        self.fingerprint = fingerprint
        known = self.identities if fresh else {}
        new = [(k, v) for k, v in self.names.items() if known.get(k) != id(v)]
        if any(isinstance(value, (FunctionType, type)) for _, value in new):
            self.asks_types = compares_types(self.names)
        for name, value in new:
            self.identities[name] = id(value)
            substitute = substitute_for(name, value, self.names)
            self.substitutes.pop(name, None)
            if substitute is not value:
                self.substitutes[name] = value, substitute
            elif isinstance(value, type) and value.__module__ == self.names.get("__name__"):
                self.classes[name] = patch_array_method(value)
                patch_subclass(value)
        return False

    def put(self, *functions: FunctionType) -> None:
        """Give loop sites to functions and to those that they call, if the module has users."""
        with _lock:
            if self.users:
                self._put(functions, False)

    def _put(self, functions: tuple[FunctionType, ...], same: bool) -> None:
        """Do what `put` does, with the lock held; ``same``: no name has changed since all were read last."""
        if functions and config.current().jit != "off":
            for function in functions:
                self.rewrites.put(function, self.fingerprint if same else -1)

    def leave(self) -> None:
        with _lock:
            self.users -= 1
            if self.users == 0:
                del ACCELERATED[id(self.names)]
                self.rewrites.restore()
                swap_names(self.names, self.swaps, True)
                if self.asks_types and self.names.get("type") is array_type:
                    del self.names["type"]


def substitute_for(name: str, value: Any, names: dict[str, Any]) -> Any:
    """Return what a global name means in accelerated code, given what it means otherwise, and all names of
    that code.  Functions and classes of its own package are no library's."""
    if name.startswith("__"):
        return value
    if type(value) is FunctionType or isinstance(value, type):
        top = str(names.get("__name__")).partition(".")[0]
        if getattr(value, "__globals__", None) is names or str(value.__module__).partition(".")[0] == top:
            return counterpart(value)
    found = counterpart(value)
    return library_stand_in(wrap_generator(value)) if found is value else found


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
