"""The attributes of ``self`` as values of a site: read before its plan runs, and bound after it."""

from __future__ import annotations

from typing import Any

from ..syntax.attributes import OWNER, name_of
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
        self._owner = source.needed.index(OWNER)
        self._read, self._written = attributes.read, attributes.written
        names = source.needed[: self._owner] + source.needed[self._owner + 1 :]
        self.needed = (*names, *map(name_of, self._read))
        self.live = (*map(name_of, self._written), *source.live)

    def read(self, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the values that the plan gets; None if reading or binding an attribute may run code."""
        owner = values[self._owner]
        kind = type(owner)
        if (
            kind.__getattribute__ is not object.__getattribute__
            or kind.__setattr__ is not object.__setattr__
            or type(own := getattr(owner, "__dict__", None)) is not dict
        ):
            return None
        for attribute in self._written:
            if _is_descriptor(_of_class(kind, attribute)):
                return None
        found = []
        for attribute in self._read:
            of_class = _of_class(kind, attribute)
            value = own.get(attribute, of_class)
            if value is _MISSING or _is_descriptor(of_class):
                return None
            found.append(value)
        return (*values[: self._owner], *values[self._owner + 1 :], *found)

    def bind(self, values: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Bind attributes to the first of the values that a plan gave; returns the others."""
        owner, count = values[self._owner], len(self._written)
        for attribute, value in zip(self._written, given, strict=False):
            setattr(owner, attribute, value)
        return given[count:]


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
