"""Replacement of NumPy by dcarray in the code of a module's functions, while they have wrapped arrays."""

from __future__ import annotations

import gc
import threading
from contextvars import Token
from types import FunctionType
from typing import Any

from dcarray.core.native import BUILT

from .loops.entry.bound_names import EVERYWHERE, INSIDE, bound_name
from .loops.sites.functions import bindings, give
from .numpy_proxy import counterpart, members_known, patch_array_method, patch_subclass

if BUILT:
    from dcarray._native.extension import dict_fingerprint


class ModuleNames:
    """The global names of one module; those of NumPy's objects are bound to the code of its functions."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.identities: dict[str, int] = {}  # the identity of each name's object when it was last read
        self.seen: set[int] = set()  # the identities of all objects that were ever read
        self.fingerprint = -1  # of the dictionary then
        self.key = id(names)
        self.bound = bindings.setdefault(self.key, {})

    def read(self) -> None:
        """Find new names of NumPy's objects, functions, and classes that give NumPy arrays (``__array__``).

        Only new objects are looked at: NumPy's objects and those classes are never freed, so that an identity
        stands for one object.
        """
        with _lock:
            fresh = members_known()
            fingerprint = dict_fingerprint(self.names) if BUILT else -1
            if fresh and fingerprint == self.fingerprint >= 0:
                return
            self.fingerprint = fingerprint
            known = self.identities if fresh else {}
            is_new = False
            for name, value in [(k, v) for k, v in self.names.items() if known.get(k) != id(v)]:
                self.identities[name] = id(value)
                is_new |= callable(value) and id(value) not in self.seen
                self.seen.add(id(value))
                if not name.startswith("__") and _substitute(value) is not value:
                    is_new |= name not in self.bound
                    self.bound.setdefault(name, bound_name(self.names, name, _substitute, self.key))
                elif isinstance(value, type) and value.__module__ == self.names.get("__name__"):
                    patch_subclass(patch_array_method(value))
            if is_new:
                for one in gc.get_referrers(self.names):  # also methods, inner functions, and those in lists
                    if type(one) is FunctionType and one.__globals__ is self.names:
                        give(one, one.__code__)

    def inside(self) -> Token[tuple[int, ...]]:
        """Let NumPy mean dcarray in the module's functions in this context.  What it returns resets
        `INSIDE`."""
        self.read()
        outer = INSIDE.get()
        chain = outer if self.key in outer else (*outer, self.key)
        return INSIDE.set(_chains.setdefault(chain, chain))

    def enter(self) -> None:
        """Let NumPy mean dcarray in the module's functions in all contexts, until `leave`."""
        self.read()
        with _lock:
            EVERYWHERE["modules"] += (self.key,)

    def leave(self) -> None:
        with _lock:
            keys = EVERYWHERE["modules"]
            at = keys.index(self.key)
            EVERYWHERE["modules"] = keys[:at] + keys[at + 1 :]


_lock = threading.RLock()
_scopes: dict[int, ModuleNames] = {}
_chains: dict[tuple[int, ...], tuple[int, ...]] = {}  # one object for equal ones, which short runs compare


def module_names(names: dict[str, Any]) -> ModuleNames:
    with _lock:
        return _scopes.get(id(names)) or _scopes.setdefault(id(names), ModuleNames(names))


def _substitute(value: Any) -> Any:
    """Return what replaces an object in accelerated code with wrapped arrays; most objects themselves."""
    return wrap_generator(counterpart(value))


def wrap_generator(value: Any) -> Any:
    """Return a wrapper of a NumPy random generator that draws as dcarray's do; any other object itself."""
    if type(value).__name__ not in GENERATORS:
        return value
    from dcarray.api.functions import random

    return random.over(value)


GENERATORS = frozenset(("Generator", "RandomState"))
