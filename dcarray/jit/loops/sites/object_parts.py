"""Parts of the program's objects: attributes, items and functions that are found without running its code."""

from __future__ import annotations

from contextlib import suppress
from types import CellType, FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from ..entry.guards import guard_of
from ..syntax.originals import called_by, original
from ..syntax.path_names import Step
from .keys import MISSING

__all__ = [
    "Callee", "Unread", "bind", "class_attribute", "function_of", "is_bindable", "is_object", "is_own",
    "is_plainly_read", "is_same_function", "part", "place",
]  # fmt: skip


class _Fields(NamedTuple):
    field: int


_FIELD = type(vars(_Fields)["field"])


class Unread(Exception):
    """Raised if a part of an object cannot be read: it does not exist, or reading may run program code."""


class Callee(NamedTuple):
    """A function of the program that is found on an object: ``kind`` is "method", "property" or "plain"."""

    function: Any
    kind: str


def is_object(value: Any) -> bool:
    """Whether the parts of a value get names in compiled code: those of an instance, a dictionary, a class or
    a module; and of a function that is defined in another one, or that has no guard."""
    kind = type(value)
    if kind is FunctionType:
        return "<locals>" in called_by(value).__qualname__ or guard_of(value) is None
    if value is MISSING or kind is list or kind is str or kind is tuple:  # `==` is the metaclass's
        return False
    return not _has(kind, "__array__", "__get__") and guard_of(value) is None


def part(owner: Any, step: Step) -> Any:
    """Return a part of an object, such as an attribute or an item; raises `Unread` if there is none, or if
    reading it may run code of the program."""
    kind, key = type(owner), step.key
    if step.kind == "item":
        if kind is not dict or key not in owner:
            raise Unread
        return owner[key]
    if step.kind == "cell":
        try:
            return _cell(owner, key).cell_contents
        except ValueError:
            raise Unread from None
    if kind is type:
        attribute = class_attribute(owner, key)
        if attribute is MISSING or _has(type(attribute), "__get__"):
            raise Unread
        return attribute
    if class_attribute(kind, "__getattribute__") not in _GETTERS:
        raise Unread
    of_class = class_attribute(kind, key)
    descriptor = type(of_class)
    if _is_slot(of_class, key) or descriptor is _FIELD:
        try:
            return of_class.__get__(owner, kind)
        except AttributeError:
            raise Unread from None
    own = space(owner)
    if _is_setting(descriptor) or type(own) is not dict:
        raise Unread
    if key in own:
        return own[key]
    if of_class is MISSING or _has(descriptor, "__get__"):
        raise Unread
    return of_class


def function_of(owner: Any, step: Step) -> Callee | None:
    """Return the program's function behind an attribute of an object: the method, or the function that
    computes the property; None if the attribute is no function."""
    kind = type(owner)
    try:
        value = part(owner, step)
    except Unread:
        if step.kind != "attribute" or class_attribute(kind, "__getattribute__") not in _GETTERS:
            return None
        own, value = space(owner), class_attribute(kind, step.key)
        if type(value) is property:
            return Callee(value.fget, "property") if type(value.fget) is FunctionType else None
        if type(own) is dict and step.key in own:
            return None
        if type(value) is staticmethod and type(value.__func__) is FunctionType:
            return Callee(value.__func__, "plain")
        return Callee(value, "method") if type(value) is FunctionType else None
    return Callee(value, "plain") if type(value) is FunctionType else None


def _cell(function: Any, name: Any) -> CellType:
    """Return the cell of a function's free variable, which belongs to a function around it."""
    function = called_by(function)
    names = function.__code__.co_freevars if type(function) is FunctionType else ()
    if name not in names:
        raise Unread
    cell: CellType = function.__closure__[names.index(name)]
    return cell


def is_same_function(a: Any, b: FunctionType) -> bool:
    """Whether two functions were made from one definition with equal defaults, so that they differ at most in
    the variables of the functions around them."""
    a = called_by(a)
    if a is b:
        return True
    if type(a) is not FunctionType or a.__globals__ is not b.__globals__:
        return False
    if [original(a)] != [original(b)] or a.__kwdefaults__ or b.__kwdefaults__:  # mostly one code object
        return False
    first, second = a.__defaults__ or (), b.__defaults__ or ()
    return len(first) == len(second) and all(map(_is_same_default, first, second))


def _is_same_default(a: Any, b: Any) -> bool:
    plain = type(a) in (bool, int, float, str) and type(a) is type(b)
    return a is b or (plain and repr(a) == repr(b))


def is_own(owner: Any, step: Step) -> bool:
    """Whether a part belongs to the object itself, and not to its class."""
    if step.kind == "cell":
        return True
    own = space(owner)
    if type(own) is dict and step.key in own:
        return True
    return _is_slot(class_attribute(type(owner), step.key), step.key)


def is_bindable(owner: Any, step: Step) -> bool:
    """Whether assigning a part of an object runs no code of the program."""
    kind = type(owner)
    if step.kind != "attribute":
        return kind is (dict if step.kind == "item" else FunctionType)
    if issubclass(kind, type | ModuleType) or class_attribute(kind, "__setattr__") not in _SETTERS:
        return False
    of_class = class_attribute(kind, step.key)
    if _is_slot(of_class, step.key):
        return True
    return type(space(owner)) is dict and not _is_setting(type(of_class))


def is_plainly_read(owner: Any, step: Step) -> bool:
    """Whether reading a part is looking it up in the object and its class alone."""
    kind = type(owner)
    if step.kind == "item":
        return kind is dict
    plain = class_attribute(kind, "__getattribute__") is object.__getattribute__
    return plain and class_attribute(kind, "__getattr__") is MISSING


def bind(owner: Any, step: Step, value: Any) -> None:
    """Bind a part of an object; `MISSING` unbinds it."""
    if step.kind == "cell":
        if value is MISSING:
            del _cell(owner, step.key).cell_contents
        else:
            _cell(owner, step.key).cell_contents = value
    elif value is MISSING:
        with suppress(AttributeError, KeyError):
            owner.__delitem__(step.key) if step.kind == "item" else delattr(owner, str(step.key))
    elif step.kind == "item":
        owner[step.key] = value
    else:
        setattr(owner, str(step.key), value)


def held(owner: Any, step: Step) -> Any:
    """Return what a part of an object that may be bound is bound to; `MISSING` if to nothing of its own."""
    try:
        return part(owner, step) if is_own(owner, step) else MISSING
    except (Unread, AttributeError, ValueError):
        return MISSING


def place(owner: Any, step: Step) -> tuple[int, int | str]:
    """Return where a part of an object is stored; equal for all paths that lead to the same part."""
    if step.kind == "cell":
        return id(_cell(owner, step.key)), ""
    return id(space(owner)), step.key


def space(owner: Any) -> Any:
    """Return the dictionary that stores an object's parts; the object itself if it has no such dictionary."""
    kind = type(owner)
    descriptor: Any = MISSING if issubclass(kind, type) else class_attribute(kind, "__dict__")
    return descriptor.__get__(owner) if type(descriptor) in _OF_DICTIONARIES else owner


def class_attribute(kind: type, key: Any) -> Any:
    """Return the attribute of a class or of its bases with this name."""
    for base in kind.__mro__:
        attribute = base.__dict__.get(key, MISSING)
        if attribute is not MISSING:
            return attribute
    return MISSING


def _is_slot(attribute: Any, key: Any) -> bool:
    """Whether a class's attribute is a slot of this name, and not of another one, whose place it would be."""
    return type(attribute) is MemberDescriptorType and attribute.__name__ == key


def _is_setting(descriptor: type) -> bool:
    """Whether a class's attribute of this type takes precedence over an attribute of the object itself."""
    return _has(descriptor, "__set__", "__delete__")


def _has(kind: type, *names: str) -> bool:
    """Whether a class or one of its bases defines one of these names; its metaclass is not asked."""
    return any(class_attribute(kind, name) is not MISSING for name in names)


_OF_DICTIONARIES = [type(class_attribute(kind, "__dict__")) for kind in (FunctionType, ModuleType)]
_PLAIN = (object, ModuleType, SimpleNamespace, tuple)
_GETTERS = frozenset([class_attribute(kind, "__getattribute__") for kind in _PLAIN])
_SETTERS = frozenset([class_attribute(kind, "__setattr__") for kind in _PLAIN])
