"""Attributes of ``self``, and items of lists, as values of a site: read before its plan runs, bound after."""

from __future__ import annotations

from typing import Any

from ..syntax.attribute_names import OWNER, appended, name_of
from .site import SiteSource

_MISSING = object()


class AttributeValues:
    """The attributes that the statements of one site use.

    Attributes
    ----------
    needed, live : tuple of str
        The names of the values that the plan gets and gives, attributes among them.
    """

    def __init__(self, source: SiteSource) -> None:
        attributes = source.attributes
        assert attributes is not None
        self._read, self._written = attributes.read, attributes.written
        self._lists = [source.needed.index(name) for name in attributes.lists]
        self._owner = source.needed.index(OWNER) if self._read or self._written else None
        apart = {*self._lists, self._owner}
        self._others = [k for k in range(len(source.needed)) if k not in apart]
        self.needed = (*[source.needed[k] for k in self._others], *map(name_of, self._read))
        items = map(appended, range(len(self._lists)))
        self.live = (*map(name_of, self._written), *items, *source.live)

    def read(self, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the values that the plan gets; None if reading or binding an attribute may run code."""
        others = tuple([values[k] for k in self._others])
        if self._lists and (
            list in map(type, others) or any(type(values[k]) is not list for k in self._lists)
        ):
            return None  # one of them may be read
        if self._owner is None:
            return others
        owner = values[self._owner]
        kind = type(owner)
        if (
            _of_class(kind, "__getattribute__") is not _of_class(object, "__getattribute__")
            or _of_class(kind, "__setattr__") is not _of_class(object, "__setattr__")
            or type(own := getattr(owner, "__dict__", None)) is not dict
        ):
            return None
        for attribute in self._written:
            if _is_descriptor(_of_class(kind, attribute)):
                return None
        found = []
        for attribute in self._read:
            of_class = _of_class(kind, attribute)
            if attribute in self._written and attribute not in own:
                return None  # of the class, and perhaps it stays so
            value = own.get(attribute, of_class)
            if value is _MISSING or _is_descriptor(of_class) or (self._lists and type(value) is list):
                return None
            found.append(value)
        return (*others, *found)

    def bind(self, values: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Bind attributes to the first of the values that a plan gave, and append to lists the next; returns
        the others."""
        if self._owner is not None:
            for attribute, value in zip(self._written, given, strict=False):
                setattr(values[self._owner], attribute, value)
        count = len(self._written)
        for k, value in zip(self._lists, given[count:], strict=False):
            values[k].append(value)
        return given[count + len(self._lists) :]


def _of_class(kind: type, attribute: str) -> Any:
    """Return what a class or its bases have under a name."""
    for base in kind.__mro__:
        if attribute in base.__dict__:
            return base.__dict__[attribute]
    return _MISSING


def _is_descriptor(value: Any) -> bool:
    """Whether a class's attribute runs code where one of its objects' is read or bound."""
    kind = type(value)
    return hasattr(kind, "__get__") or hasattr(kind, "__set__") or hasattr(kind, "__delete__")
