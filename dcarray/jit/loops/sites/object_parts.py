"""Parts of the program's objects: attributes, items and functions that are found without running its code."""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from ..entry.guards import guard_of
from ..syntax.path_names import Step
from .keys import MISSING

__all__ = [
    "Callee",
    "Unread",
    "function_of",
    "is_bindable",
    "is_object",
    "is_own",
    "part",
    "space",
]


class _Fields(NamedTuple):
    field: int


_FIELD = type(vars(_Fields)["field"])


class Unread(Exception):
    """To read a part of an object may run code of the program, or there is none."""


class Callee(NamedTuple):
    """A function of the program that an object has: ``kind`` is "method", "property" or "plain"."""

    function: Any
    kind: str


def is_object(value: Any) -> bool:
    """Whether a value is an object of the program, a dictionary, class or module, of which parts are used."""
    kind = type(value)
    if (
        value is MISSING
        or kind in (list, str, tuple)
        or hasattr(kind, "__array__")
        or hasattr(kind, "__get__")
    ):
        return False
    return guard_of(value) is None


def part(owner: Any, step: Step) -> Any:
    """Return a part of an object; raises `Unread` if there is none, or if code may run."""
    kind, (is_item, key) = type(owner), step
    if is_item:
        if kind is not dict or key not in owner:
            raise Unread
        return owner[key]
    if kind is type:
        found = _of_class(owner, key)
        if found is MISSING or hasattr(type(found), "__get__"):
            raise Unread
        return found
    if _of_class(kind, "__getattribute__") not in _GETTERS:
        raise Unread
    of_class = _of_class(kind, key)
    descriptor = type(of_class)
    if descriptor is MemberDescriptorType or descriptor is _FIELD:
        try:
            return of_class.__get__(owner, kind)
        except AttributeError:
            raise Unread from None
    own = space(owner)
    if _is_setting(descriptor) or type(own) is not dict:
        raise Unread
    if key in own:
        return own[key]
    if of_class is MISSING or hasattr(descriptor, "__get__"):
        raise Unread
    return of_class


def function_of(owner: Any, step: Step) -> Callee | None:
    """Return the function that an object has as an attribute, or that computes one; None if it has none."""
    kind = type(owner)
    try:
        found = part(owner, step)
    except Unread:
        if step.is_item or _of_class(kind, "__getattribute__") not in _GETTERS:
            return None
        own, found = space(owner), _of_class(kind, step.key)
        if type(found) is property:
            return Callee(found.fget, "property") if type(found.fget) is FunctionType else None
        if type(own) is dict and step.key in own:
            return None
        if type(found) is staticmethod and type(found.__func__) is FunctionType:
            return Callee(found.__func__, "plain")
        return Callee(found, "method") if type(found) is FunctionType else None
    return Callee(found, "plain") if type(found) is FunctionType else None


def is_own(owner: Any, step: Step) -> bool:
    """Whether an object has a part itself, not its class."""
    own = space(owner)
    if type(own) is dict and step.key in own:
        return True
    return type(_of_class(type(owner), step.key)) is MemberDescriptorType


def is_bindable(owner: Any, step: Step) -> bool:
    """Whether to bind a part of an object runs no code of the program."""
    kind = type(owner)
    if step.is_item:
        return kind is dict
    if issubclass(kind, type) or _of_class(kind, "__setattr__") not in _SETTERS:
        return False
    descriptor = type(_of_class(kind, step.key))
    if descriptor is MemberDescriptorType:
        return True
    return type(space(owner)) is dict and not _is_setting(descriptor)


def space(owner: Any) -> Any:
    """Return the dictionary that has an object's parts; itself if it has none."""
    return owner if issubclass(type(owner), type) else getattr(owner, "__dict__", owner)


def _of_class(kind: type, key: Any) -> Any:
    """Return what a class or its bases have under a name."""
    for base in kind.__mro__:
        found = base.__dict__.get(key, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def _is_setting(descriptor: type) -> bool:
    """Whether a class's attribute of this type comes before those of its objects."""
    return hasattr(descriptor, "__set__") or hasattr(descriptor, "__delete__")


_PLAIN = (object, ModuleType, SimpleNamespace, tuple)
_GETTERS = frozenset([_of_class(kind, "__getattribute__") for kind in _PLAIN])
_SETTERS = frozenset([_of_class(kind, "__setattr__") for kind in _PLAIN])
