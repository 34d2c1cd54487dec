"""Global names of NumPy's objects that are bound to the code of functions, where arrays may be wrapped.

In an accelerated call such a name has dcarray's object as its value; in other threads, and afterwards, it has
NumPy's.  The module's own dictionary does not change.
"""

from __future__ import annotations

import builtins
import copyreg
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from dcarray.core.native import BUILT

__all__ = ["EVERYWHERE", "INSIDE", "BoundName", "bound_name", "is_inside"]

INSIDE: ContextVar[tuple[int, ...]] = ContextVar("dcarray_accelerated", default=())
"""The keys of the modules in whose functions NumPy means dcarray, in this context: the identities of their
dictionaries, each module's always the same object."""

EVERYWHERE: dict[str, tuple[int, ...]] = {"modules": ()}
"""The keys of those in which it does in all contexts."""

_MISSING = object()


class BoundName:
    """A global name in the code of functions, which load its value by the operator ``~`` (`bound_name`)."""

    def __init__(self, names: dict[str, Any], name: str, *rest: Any) -> None:
        self.names, self.name = names, name
        self._substitute, self._key, *_ = rest
        self._replaced: tuple[Any, Any] = _MISSING, _MISSING

    def __invert__(self) -> Any:
        value = self.names.get(self.name, getattr(builtins, self.name, _MISSING))
        if value is _MISSING:
            raise NameError(f"name {self.name!r} is not defined", name=self.name)
        if not _has_key(self._key):
            return value
        if self._replaced[0] is not value:
            self._replaced = value, self._substitute(value)
        return self._replaced[1]


if BUILT and not TYPE_CHECKING:
    from dcarray._native.extension import BoundName


def bound_name(
    names: dict[str, Any], name: str, substitute: Callable[[Any], Any] = type, key: int = 0
) -> BoundName:
    """Return the `BoundName` of a name of the module with this key.  ``substitute(value)`` is what replaces a
    value in accelerated calls."""
    return BoundName(names, name, substitute, key, INSIDE, EVERYWHERE)


# As a name among names of its own, with the present value.
copyreg.pickle(BoundName, lambda it: (bound_name, ({it.name: it.names.get(it.name)}, it.name)))


def is_inside(names: dict[str, Any]) -> bool:
    """Whether NumPy means dcarray now in functions with these global names."""
    return _has_key(id(names))


def _has_key(key: int) -> bool:
    return key in INSIDE.get() or key in EVERYWHERE["modules"]
