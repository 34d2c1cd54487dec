"""The public names of objects: NumPy's and Python's, and those of NumPy's counterparts here."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from dcarray.jit import parallel_map

from .entry_values import PublicObject
from .members import MODULES, is_draw, is_own

_MISSING = object()


def public_description(value: Any) -> PublicObject | None:
    """Return the `PublicObject` of a module, function or class of NumPy, Python's library or dcarray that
    compiled code knows by its public name, such as ``numpy.add``; None for any other object."""
    if value is parallel_map.map:
        return PublicObject("dcarray.map")
    if _runs_code(type(value)):
        return None
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not (callable(value) or isinstance(value, ModuleType)):
        return None
    if isinstance(value, ModuleType):
        name = "numpy" + name.removeprefix("dcarray") if name.startswith("dcarray") else name
        return PublicObject(name) if name in MODULES else None
    if is_draw(value):
        own = vars(sys.modules["random"]).get(name) == value
        return PublicObject(f"random.{name}") if own else None
    names = (name, *_OTHER_NAMES.get(name, ()))
    for path in MODULES:
        held = vars(sys.modules[path]) if path in sys.modules else {}
        for one in names:
            member = held.get(one, _MISSING)
            if member is value and not is_own(one, value):
                return None  # the program has replaced it
            if member is value or (member is not _MISSING and _counterpart(member) is value):
                return PublicObject(f"{path}.{one}")
    return None


def _runs_code(kind: type) -> bool:
    """Whether a look at an object of this class may run code of the program."""
    attributes = [vars(base).get(name) for base in kind.__mro__ for name in _LOOKED_AT]
    return FunctionType in map(type, attributes) or property in map(type, attributes)


_LOOKED_AT = "__getattr__", "__getattribute__", "__class__", "__name__", "__module__"
# Objects that NumPy has under another name than their own.
_OTHER_NAMES = {
    "bool": ("bool_",), "int": ("int_",), "amax": ("max",), "amin": ("min",), "concatenate": ("concat",),
}  # fmt: skip


def _counterpart(member: Any) -> Any:
    """Return the object that replaces a NumPy object in code with wrapped arrays."""
    proxy = sys.modules.get("dcarray.jit.numpy_proxy")
    return member if proxy is None else proxy.counterpart(member)


def makes_wrapped(value: Any) -> bool:
    """Whether an object replaces one of NumPy's in code with wrapped arrays."""
    if "dcarray.jit.numpy_proxy" not in sys.modules:
        return False
    if isinstance(value, ModuleType):
        return value is not sys.modules.get(value.__name__) or value.__name__.startswith("dcarray")
    known = public_description(value) if callable(value) else None
    if known is None or not known.name.startswith("numpy."):
        return False
    path, _, name = known.name.rpartition(".")
    return vars(sys.modules[path]).get(name) is not value
