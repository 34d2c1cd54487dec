"""Functions with sites: the code of functions that are accelerated one by one, and of those they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from ..syntax.cells import free_names
from ..syntax.definitions import undecorated
from ..syntax.liveness import parameters_of
from ..syntax.originals import called_by, original, originals
from ..syntax.source import source_of
from ..syntax.supported import KnownCalls
from .rewrite import Scope, Text, add_sites, reads_frames
from .sampler import SAMPLER
from .site import Site, SitePlace, SiteSource, sites_at, with_constants

__all__ = ["function_code", "functions_of", "holders", "put_sites", "remove_sites", "with_sites"]

holders: dict[int, WeakSet[FunctionType]] = {}
"""By the identity of a code object with sites, functions that run it."""

# by the identities of a code object and of its global names
_known: dict[tuple[int, int], tuple[CodeType, dict[str, Any], tuple[CodeType, list[Site]] | None]] = {}


def with_sites(function: FunctionType) -> tuple[CodeType, list[Site]] | None:
    """Return a function's code with sites, and these; None if it has none, or its source is not certain."""
    code, names = original(function), function.__globals__
    found = _known.get((id(code), id(names)))
    if found is None:
        found = _known[id(code), id(names)] = code, names, _with_sites(function, code)
    return found[2]


def _with_sites(function: FunctionType, code: CodeType) -> tuple[CodeType, list[Site]] | None:
    made, places = function_code(function, code)
    if made is None:
        return None
    sites = sites_at(places, function.__globals__)
    made = with_constants(made, sites)
    originals[id(made)] = made, code
    SAMPLER.add(made, sites)
    return made, sites


def function_code(
    function: FunctionType, code: CodeType, without: Set[SiteSource] = frozenset()
) -> tuple[CodeType | None, list[SitePlace]]:
    """Return a function's code with constants in place of sites, and their places; None if it has none, or
    its source is not certain.

    Parameters
    ----------
    function : FunctionType
    code : CodeType
        The code of its source.
    without : set of SiteSource, optional
        Sites that are left out.
    """
    source = source_of(function, code)
    known = _known_calls(function)
    if source is None or reads_frames(source.tree, known):
        return None, []
    local = frozenset((*code.co_varnames, *code.co_cellvars))
    cells = local & free_names(code, False)
    scope = Scope(
        local | frozenset(code.co_freevars),
        local - cells,
        frozenset(code.co_freevars),
        parameters_of(source.tree),
        cells | local & free_names(code, True),
        known,
    )
    places: list[SitePlace] = []
    add_sites(
        source.tree.body, scope, Text(source.text, source.is_faithful, code.co_filename), places, without
    )
    return source.compile_tree(source.tree) if places else None, places


def _known_calls(function: FunctionType) -> KnownCalls:
    names = function.__globals__
    modules = {name: value.__name__ for name, value in list(names.items()) if type(value) is ModuleType}
    classes = {n: one for n, one in list(names.items()) if isinstance(one, type)}
    own = {n: one for n, one in classes.items() if one.__module__ == names.get("__name__")}
    return KnownCalls(modules, _Trees(names), _MethodTrees([*own.values()]), frozenset(own))


class _Trees(Mapping[str, ast.FunctionDef]):
    """The syntax trees of the functions of a module or class, by their names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> ast.FunctionDef:
        function = called_by(self._names.get(name))
        if type(function) is FunctionType:
            source = source_of(function, original(function))
            if source is not None:  # and this is what is called, whatever its decorators were
                return undecorated(source.tree)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _MethodTrees(Mapping[str, list[ast.FunctionDef]]):
    """The syntax trees of the methods of classes, by name."""

    def __init__(self, classes: Sequence[type]) -> None:
        self._classes = classes

    def __getitem__(self, name: str) -> list[ast.FunctionDef]:
        found = [_Trees(vars(one)).get(name) for one in self._classes]
        trees = [tree for tree in found if tree is not None]
        if not trees:
            raise KeyError(name)
        return trees

    def __iter__(self) -> Iterator[str]:
        return iter({name for one in self._classes for name in vars(one)})

    def __len__(self) -> int:
        return len({*self})


def functions_of(root: FunctionType) -> list[FunctionType]:
    """Return a function and those of its module that it may call by name, transitively."""
    names = root.__globals__
    found, todo = [root], [root]
    while todo:
        for name in original(todo.pop()).co_names:
            value = names.get(name)
            if type(value) is FunctionType and value.__globals__ is names and value not in found:
                found.append(value)
                todo.append(value)
    return found


def put_sites(function: FunctionType) -> list[Site]:
    """Replace a function's code by its code with sites, until `remove_sites`; returns the sites."""
    made = with_sites(function)
    if made is None:
        return []
    code, sites = made
    if function.__code__ is original(function):
        function.__code__ = code
        holders.setdefault(id(code), WeakSet()).add(function)
    return sites


def remove_sites(function: FunctionType) -> None:
    """Give a function its own code again."""
    function.__code__ = original(function)
