"""Parts of the program's objects as values of a site: read before its plan runs, assigned after.

The values of a site's first run show which of its access paths lead through objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from dcarray.ir.records import replaced

from ..entry.lists import MOST_LEVELS
from ..syntax.access_paths import Unnamed
from ..syntax.originals import without_cells
from ..syntax.path_names import Path, Step, appended, stacked
from .keys import MISSING, reads_bound
from .object_parts import (
    Unread,
    bind,
    class_attribute,
    function_of,
    held,
    is_bindable,
    is_object,
    is_own,
    is_plainly_read,
    is_same_function,
    part,
    place,
    space,
)
from .path_naming import NamedStatements, named_statements
from .site import Site
from .site_source import SiteSource

__all__ = ["PathValues"]


class _Owner(NamedTuple):
    """An object on an access path: a value of the site, a global name's value, or a part of another owner."""

    root: int | str
    parent: int
    step: Step | None
    kind: type


def _are_apart(growing: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether objects are different lists, none of which is among ``given`` or an item of a list there."""
    if not growing:
        return True
    known = {*map(id, growing)}
    if len(known) < len(growing) or any(type(one) is not list for one in growing):
        return False
    level = [value for value in given if type(value) is list]
    for _ in range(MOST_LEVELS):  # a list may contain itself
        if not known.isdisjoint(map(id, level)):
            return False
        inner = [
            value for value in level if value and type(value[0]) is list
        ]  # others are of numbers, or no values
        level = [*{id(row): row for value in inner for row in value if type(row) is list}.values()]
    return not level


class PathValues:
    """The parts of objects that a site's statements use, and the lists to which they append.

    Parameters
    ----------
    source : SiteSource
    named : NamedStatements
        The statements with names in place of these parts and lists.
    values : sequence
        The values of the site's names in the first run.
    names : mapping
        The global names.

    Attributes
    ----------
    source : SiteSource
        The statements with names in place of the parts and of appended items, which are values like others.
    unread : str
        The reason for the report when `read` returns None.
    """

    def __init__(
        self, source: SiteSource, named: NamedStatements, values: Sequence[Any], names: Mapping[str, Any]
    ) -> None:
        self._names, self._lists = names, [source.needed.index(name) for name in named.lists]
        self._grows = named.grows
        self._stacks = [source.needed.index(name) for name in named.stacks]
        stacks = [stacked(k) for k in range(len(self._stacks))]
        self._owners: list[_Owner] = []
        firsts: list[Any] = []

        def root_of(path: Path) -> int | str:
            return source.needed.index(path.root) if path.root in source.needed else path.root

        def end(path: Path) -> tuple[int, Step]:
            """Return the number of the owner that a path leads to, and its last step."""
            root, at = root_of(path), -1
            for step in (None, *path.steps[:-1]):
                parent = at
                at = next((k for k, one in enumerate(self._owners) if one[:3] == (root, parent, step)), -1)
                if at < 0:
                    at = len(firsts)
                    firsts.append(self._root(root, values) if step is None else part(firsts[parent], step))
                    self._owners.append(_Owner(root, parent, step, type(firsts[-1])))
            return at, path.steps[-1]

        self.unread = "it appends to something that is not a list, or to a list that is also read"
        if named.read or named.written or named.functions:
            self.unread = "its objects have attributes that are computed by code, or one object has two names"
        read = [(name, path) for name, path in named.read if name not in source.needed]
        written = [(name, path) for name, path in named.written if name not in source.live]
        self._written = [end(path) for _, path in written]
        self._read = [end(path) for _, path in read]
        self._functions = [
            (*(end(path) if path.steps else (0, None)), root_of(path), without_cells(function))
            for path, function in named.lookups
        ]
        self._same = [(*end(first), *end(other)) for first, other in named.same]
        self._guards = tuple(named.functions.values())
        # those that have to be there: else they may stay their class's, or appear in another order
        self._updated = [one for one in self._written if one in self._read or not named.in_order]
        roots = {one.root if isinstance(one.root, str) else source.needed[one.root] for one in self._owners}
        roots |= {path.root for path, _ in named.lookups}
        apart = roots - named.loads | {*named.lists, *named.stacks}
        self._others = [k for k, name in enumerate(source.needed) if name not in apart]
        given, bound = [source.needed[k] for k in self._others], [name for name, _ in written]
        self.source = replaced(
            source, source=named.source,
            needed=(*given, *stacks, *[name for name, _ in read], *named.functions),
            others=tuple([name for name in source.others if name not in apart]),
            live=(*bound, *map(appended, range(len(named.lists))), *stacks, *source.live),
        )  # fmt: skip

    @staticmethod
    def of(source: SiteSource, values: Sequence[Any], names: Mapping[str, Any]) -> PathValues | str | None:
        """Return the `PathValues` of a site, given the values of its first run; None if the statements use no
        parts of objects; a text, the reason, if a part cannot be a value of compiled code."""
        known = {name: names.get(name, MISSING) for name in source.others}
        known |= dict(zip(source.needed, values, strict=True))
        if not (source.lists or any(map(is_object, known.values())) or reads_bound(source, known.values())):
            return None
        try:
            named = named_statements(
                source.source, frozenset(source.live), source.lists, known, frozenset(source.needed),
                names, frozenset(source.shared),
            )  # fmt: skip
        except Unnamed as reason:
            return str(reason)
        if named.read or named.written or named.lists or named.stacks or named.functions:
            return PathValues(source, named, values, names)
        return None

    def object_run(self, site: Site, run: Any, values: Sequence[Any]) -> Any:
        """Return a C function that does `read`, a short run and `bind` for values like ``values``, the
        site's now; None if C code does not support these."""
        reading = self.read(values)
        if reading is None or self._lists or self._stacks or self._same:
            return None
        if any(step.kind == "item" for _, step in {*self._updated}.difference(self._read)):
            return None  # C does not look whether a dictionary has them
        owners, steps = reading[1], {"attribute": "a", "item": "i"}
        parents = [(owners[at], step) for at, step in (*self._read, *self._written)]
        parents += [(owners[one.parent], one.step) for one in self._owners if one.step is not None]
        if not all(step.kind in steps and is_plainly_read(owner, step) for owner, step in parents):
            return None
        functions = [self._lookup(owners, values, *one[:3]) for one in self._functions]
        if any(one is None or without_cells(one[3]) is not one[3] for one in functions):
            return None
        places = [
            (steps[step.kind], parent, step.key, kind)
            if step is not None
            else ("v", root, "", kind)
            if isinstance(root, int)
            else ("g" if root else "n", 0, root, kind)
            for root, parent, step, kind in self._owners
        ]
        from dcarray._native.extension import make_object_run

        read, written = [
            tuple([(steps[step.kind], at, step.key, None) for at, step in parts])
            for parts in (self._read, self._written)
        ]
        try:
            return make_object_run(
                site.ask, run, site.names, len(values), tuple(self._others), self._guards,
                tuple(places), tuple([one for one in functions if one]), read, written,
            )  # fmt: skip
        except ValueError:  # too many of something
            return None

    def _lookup(self, owners: list[Any], values: Sequence[Any], at: int, last: Any, root: Any) -> Any:
        """Return how `object_run` finds a function, and what it has to be; None if it does not know how."""
        if last is None:
            place = ("v", root, "") if isinstance(root, int) else ("g", 0, root)
            return (*place, self._root(root, values))
        if last.kind == "item":
            return "i", at, last.key, owners[at].get(last.key) if type(owners[at]) is dict else None
        callee = function_of(owners[at], last)
        if callee is None or callee.kind == "plain" or not is_plainly_read(owners[at], last):
            return None  # such as a function in the instance, which hides the method of its class
        return callee.kind[0], at, last.key, class_attribute(type(owners[at]), last.key)

    def _root(self, root: int | str, values: Sequence[Any]) -> Any:
        if isinstance(root, int):
            return values[root]
        return self._names.get(root, MISSING) if root else self._names

    def read(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]] | None:
        """Return the values for the plan, and the owners for `bind`; None if that is not safe: reading or
        assigning a part may run code of the program, or two paths may lead to a part that is assigned."""
        try:
            return self._read_parts(values)
        except Unread:
            return None

    def _read_parts(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]] | None:
        """Return the result of `read`; raises `Unread` where that part cannot be read."""
        given = [values[k] for k in self._others]
        owners: list[Any] = []
        for root, parent, step, kind in self._owners:
            owner = self._root(root, values) if step is None else part(owners[parent], step)
            if type(owner) is not kind:
                return None
            is_space = kind is dict or kind is ModuleType
            if is_space and (root, step) != ("", None) and space(owner) is self._names:
                return None  # what is a global name, too
            owners.append(owner)
        for at, last, root, function in self._functions:
            found = None if last is None else function_of(owners[at], last)
            callee = self._root(root, values) if last is None else found and found.function
            if not is_same_function(callee, function):
                return None
        given += [part(owners[at], step) for at, step in self._read]
        stacks = [values[k] for k in self._stacks]
        if not _are_apart([*[values[k] for k in self._lists], *stacks], given):
            return None
        given[len(self._others) : len(self._others)] = stacks
        if self._written and not self._may_bind(owners):
            return None
        if any(space(owners[at]) is one for at, _ in self._written for one in given if type(one) is dict):
            return None  # a dictionary that is also looked up
        if any(place(owners[a], x) != place(owners[b], y) for a, x, b, y in self._same):
            return None
        return (*given, *self._guards), owners

    def _may_bind(self, owners: Sequence[Any]) -> bool:
        """Whether assigning the parts runs no code of the program, and no part has a second path."""
        if not all(is_bindable(owners[at], step) for at, step in self._written):
            return False
        if not all(is_own(owners[at], step) for at, step in self._updated):
            return False
        if len(owners) == 1:
            return True
        parts = [(one.parent, one.step) for one in self._owners if one.step is not None]
        parts += {*self._read, *self._written}
        counts = Counter([place(owners[at], step) for at, step in parts])
        return all(counts[place(owners[at], step)] == 1 for at, step in self._written)

    def bind(
        self, values: Sequence[Any], owners: Sequence[Any], undo: list[Callable[[], None]],
        given: tuple[Any, ...],
    ) -> tuple[Any, ...]:  # fmt: skip
        """Store the results of a plan: the first ones in parts of objects, the next in lists, by appending
        them or as the lists' new items.  Return the rest; functions that undo this are added to ``undo``."""
        for (at, step), value in zip(self._written, given, strict=False):
            undo.append(partial(bind, owners[at], step, held(owners[at], step)))
            bind(owners[at], step, value)
        count = len(self._written)
        for k, value in zip(self._lists, given[count:], strict=False):
            undo.append(partial(values[k].__delitem__, slice(len(values[k]), None)))
            if self._grows:
                values[k].extend(value)
            else:
                values[k].append(value)
        count += len(self._lists)
        for k, value in zip(self._stacks, given[count:], strict=False):
            undo.append(partial(values[k].__setitem__, slice(None), [*values[k]]))
            values[k][:] = value
        return given[count + len(self._stacks) :]
