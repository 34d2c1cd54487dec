"""Parts of the program's objects as values of a site: read before its plan runs, bound after.

Which of its access paths lead through objects is found out from the values of its first run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from dcarray.ir.records import replaced

from ..entry.guards import guard_of
from ..syntax.access_paths import Chain, WithNames, with_names
from ..syntax.path_names import Path, Step, appended
from .site import SiteSource

__all__ = ["PathValues"]

_MISSING = object()


class _Fields(NamedTuple):
    field: int


_FIELD = type(vars(_Fields)["field"])


class _Owner(NamedTuple):
    """An object on a path: a value of the site or a global name, or the part of another owner."""

    root: int | str
    parent: int
    step: Step | None
    kind: type


class _Unread(Exception):
    """To read a part of an object may run code of the program, or there is none."""


class PathValues:
    """The parts of objects that the statements of one site use, and the lists to which they append.

    Parameters
    ----------
    source : SiteSource
    named : WithNames
        The statements with names for these.
    values : sequence
        Those of the first run.
    names : mapping
        The global names.

    Attributes
    ----------
    source : SiteSource
        The statements with names in place of the parts and of appended items, which are values like others.
    """

    def __init__(
        self, source: SiteSource, named: WithNames, values: Sequence[Any], names: Mapping[str, Any]
    ) -> None:
        self._names, self._lists = names, [source.needed.index(name) for name in named.lists]
        self._owners: list[_Owner] = []
        firsts: list[Any] = []

        def place(path: Path) -> tuple[int, Step]:
            """Return the number of the owner that a path leads to, and its last step."""
            root = source.needed.index(path.root) if path.root in source.needed else path.root
            at = -1
            for step in (None, *path.steps[:-1]):
                parent = at
                at = next((k for k, one in enumerate(self._owners) if one[:3] == (root, parent, step)), -1)
                if at < 0:
                    at = len(firsts)
                    firsts.append(self._root(root, values) if step is None else _part(firsts[parent], step))
                    self._owners.append(_Owner(root, parent, step, type(firsts[-1])))
            return at, path.steps[-1]

        self._written = [place(path) for path in named.written]
        self._read = [place(path) for path in named.read]
        self._updated = [one for one in self._read if one in self._written]
        roots = {one.root if isinstance(one.root, str) else source.needed[one.root] for one in self._owners}
        apart = roots - named.loads | set(named.lists)
        self._others = [k for k, name in enumerate(source.needed) if name not in apart]
        self.source = replaced(
            source,
            source=named.source,
            needed=(*[source.needed[k] for k in self._others], *[path.name for path in named.read]),
            others=tuple([name for name in source.others if name not in apart]),
            live=(
                *[path.name for path in named.written],
                *map(appended, range(len(named.lists))),
                *source.live,
            ),
        )

    @staticmethod
    def of(source: SiteSource, values: Sequence[Any], names: Mapping[str, Any]) -> PathValues | str | None:
        """Return those of a site's statements, given the values of its first run; None if they use none, and
        if they use some that cannot be values, why."""
        known = {name: names.get(name, _MISSING) for name in source.others}
        known |= dict(zip(source.needed, values, strict=True))
        if not source.lists and not any(map(_is_object, known.values())):
            return None
        reasons: list[str] = []

        def length(chain: Chain) -> int:
            value = known.get(chain.path.root, _MISSING)
            for k, step in enumerate(chain.path.steps):
                if not _is_object(value) or step.is_item != (type(value) is dict):
                    return k
                if k + 1 < len(chain.nodes) or not chain.is_bound():
                    try:
                        value = _part(value, step)
                    except _Unread:
                        part = Path(chain.path.root, chain.path.steps[: k + 1])
                        reasons.append(f"{part} is not a plain attribute or item that is there")
                        return 0
            return len(chain.path.steps)

        named = with_names(source.source, frozenset(source.live), source.lists, length)
        if isinstance(named, str):
            return named
        if reasons:
            return reasons[0]
        return (
            PathValues(source, named, values, names) if named.read or named.written or named.lists else None
        )

    def _root(self, root: int | str, values: Sequence[Any]) -> Any:
        return values[root] if isinstance(root, int) else self._names.get(root, _MISSING)

    def read(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]] | None:
        """Return the values that the plan gets, and the owners to be passed to `bind`; None if to read or to
        bind a part may run code, or if a part that is bound may have two names."""
        given = [values[k] for k in self._others]
        owners: list[Any] = []
        try:
            for root, parent, step, kind in self._owners:
                owner = self._root(root, values) if step is None else _part(owners[parent], step)
                if type(owner) is not kind:
                    return None
                owners.append(owner)
            given += [_part(owners[at], step) for at, step in self._read]
        except _Unread:
            return None
        if self._lists and (
            list in map(type, given) or any(type(values[k]) is not list for k in self._lists)
        ):
            return None  # one of them may be read
        if self._written and not self._may_bind(owners):
            return None
        return tuple(given), owners

    def _may_bind(self, owners: Sequence[Any]) -> bool:
        """Whether binding the parts runs no code, and none of them has another path."""
        if not all(_is_bindable(owners[at], step) for at, step in self._written):
            return False
        if not all(_is_own(owners[at], step) for at, step in self._updated):
            return False  # of the class, and perhaps it stays so
        if len(owners) == 1:
            return True
        spaces = [id(_space(owner)) for owner in owners]
        places = [(one.parent, one.step) for one in self._owners if one.step is not None]
        places += {*self._read, *self._written}
        found = Counter([(spaces[at], step.key) for at, step in places])
        return all(found[spaces[at], step.key] == 1 for at, step in self._written)

    def bind(self, values: Sequence[Any], owners: Sequence[Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Bind parts to the first of the values that a plan gave, and append the next to lists; returns the
        others."""
        for (at, step), value in zip(self._written, given, strict=False):
            if step.is_item:
                owners[at][step.key] = value
            else:
                setattr(owners[at], str(step.key), value)
        count = len(self._written)
        for k, value in zip(self._lists, given[count:], strict=False):
            values[k].append(value)
        return given[count + len(self._lists) :]


def _is_object(value: Any) -> bool:
    """Whether a value is an object of the program, a dictionary, class or module, of which parts are used."""
    kind = type(value)
    if (
        value is _MISSING
        or kind in (list, str, tuple)
        or hasattr(kind, "__array__")
        or hasattr(kind, "__get__")
    ):
        return False
    return guard_of(value) is None


def _part(owner: Any, step: Step) -> Any:
    """Return a part of an object; raises `_Unread` if there is none, or if code may run."""
    kind, (is_item, key) = type(owner), step
    if is_item:
        if kind is not dict or key not in owner:
            raise _Unread
        return owner[key]
    if kind is type:
        of_class = _of_class(owner, key)
        if of_class is _MISSING or hasattr(type(of_class), "__get__"):
            raise _Unread
        return of_class
    if _of_class(kind, "__getattribute__") not in _GETTERS:
        raise _Unread
    of_class = _of_class(kind, key)
    descriptor = type(of_class)
    if descriptor is MemberDescriptorType or descriptor is _FIELD:
        try:
            return of_class.__get__(owner, kind)
        except AttributeError:
            raise _Unread from None
    own = _space(owner)
    if _is_setting(descriptor) or type(own) is not dict:
        raise _Unread
    if key in own:
        return own[key]
    if of_class is _MISSING or hasattr(descriptor, "__get__"):
        raise _Unread
    return of_class


def _is_own(owner: Any, step: Step) -> bool:
    """Whether an object has a part itself, not its class."""
    own = _space(owner)
    return (type(own) is dict and step.key in own) or type(
        _of_class(type(owner), step.key)
    ) is MemberDescriptorType


def _is_bindable(owner: Any, step: Step) -> bool:
    """Whether to bind a part of an object runs no code of the program."""
    kind = type(owner)
    if step.is_item:
        return kind is dict
    if isinstance(owner, type) or _of_class(kind, "__setattr__") not in _SETTERS:
        return False
    descriptor = type(_of_class(kind, step.key))
    if descriptor is MemberDescriptorType:
        return True
    return type(_space(owner)) is dict and not _is_setting(descriptor)


def _space(owner: Any) -> Any:
    """Return the dictionary that has an object's parts; itself if it has none."""
    return owner if isinstance(owner, type) else getattr(owner, "__dict__", owner)


def _of_class(kind: type, key: Any) -> Any:
    """Return what a class or its bases have under a name."""
    for base in kind.__mro__:
        found = base.__dict__.get(key, _MISSING)
        if found is not _MISSING:
            return found
    return _MISSING


def _is_setting(descriptor: type) -> bool:
    """Whether a class's attribute of this type comes before those of its objects."""
    return hasattr(descriptor, "__set__") or hasattr(descriptor, "__delete__")


_PLAIN = (object, ModuleType, SimpleNamespace, tuple)
_GETTERS = frozenset([_of_class(kind, "__getattribute__") for kind in _PLAIN])
_SETTERS = frozenset([_of_class(kind, "__setattr__") for kind in _PLAIN])
