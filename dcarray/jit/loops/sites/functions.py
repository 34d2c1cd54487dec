"""Functions with sites: the code of functions that are accelerated one by one, and of those they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

from dcarray.core.faults import passed_over

from ..entry.bound_names import BoundName
from ..syntax.cells import free_names
from ..syntax.definitions import undecorated
from ..syntax.identity import text_compares_identity
from ..syntax.liveness import parameters_of
from ..syntax.mentions import text_mentions
from ..syntax.originals import called_by, original
from ..syntax.source import CO_COROUTINE, CO_GENERATOR, names_in, source_of
from ..syntax.supported import KnownCalls, imported_modules
from ..syntax.syntax_facts import Names, declared_names, listed, walk
from .codes import bound, every, inner_codes
from .rewrite import Scope, Text, add_sites, reads_frames
from .site import Site, sites_at
from .site_code import lined
from .site_source import SitePlace, SiteSource
from .sited_module import SitedModule

__all__ = [
    "bindings", "function_code", "functions_of", "give", "holders", "put_sites", "remove_sites",
    "stays_pythons", "with_sites",
]  # fmt: skip

holders: dict[int, list[ref[FunctionType]]] = {}  # callbacks would run handlers of signals, and lose errors
"""By the identity of a code object with sites, functions that run it."""

bindings: dict[int, dict[str, BoundName]] = {}
"""By the identity of a module's dictionary of names, those that are bound to the code of its functions."""

# by the identities of a code object and of its global names
_known: dict[tuple[int, int], tuple[CodeType, dict[str, Any], tuple[CodeType, list[Site]] | None]] = {}


def with_sites(function: FunctionType) -> tuple[CodeType, list[Site]] | None:
    """Return a function's code with sites, and the list of these; None if nothing in it can be a site, or if
    its source file may not be what it was compiled from."""
    code, names = original(function), function.__globals__
    entry = _known.get((id(code), id(names)))
    if entry is None:
        sited = None
        try:
            sited = _with_sites(function, code)
        except Exception as error:  # the function has to run all the same
            passed_over(error, (code.co_filename, code.co_firstlineno))
        entry = _known[id(code), id(names)] = code, names, sited
    return entry[2]


def _with_sites(function: FunctionType, code: CodeType) -> tuple[CodeType, list[Site]] | None:
    sited = function_code(function, code)
    if sited is None:
        return None
    sites = sites_at(sited.places, function.__globals__)
    return sited.filled(code, sites), sites


def function_code(
    function: FunctionType, code: CodeType, without: Set[SiteSource] = frozenset()
) -> SitedModule | None:
    """Return a function's code with constants in place of sites; None if nothing in it can be a site, or if
    its source file may not be what it was compiled from.

    Parameters
    ----------
    function : FunctionType
    code : CodeType
        The function's original code, without sites.
    without : set of SiteSource, optional
        The sources of sites to leave out.
    """
    source = source_of(function, code)
    if source is None:
        return None
    import linecache  # which sites of a module do not need

    text = Text(source.text, code.co_filename)
    whole = "".join(linecache.getlines(code.co_filename, function.__globals__))
    sees_identity, words = text_compares_identity(whole), text_mentions(whole)
    places: list[SitePlace] = []
    places_of: dict[tuple[str, int], list[int]] = {}
    with listed(source.tree):
        known = _known_calls(function, source.tree)
        if reads_frames(source.tree, known):
            return None
        for inner, tree in [*_definitions(code, source.tree)]:
            before = len(places)
            add_sites(tree.body, _scope(inner, tree, known, sees_identity, words), text, places, without)
            places_of[inner.co_name, inner.co_firstlineno] = [*range(before, len(places))]
    sited = source.compile_tree(source.tree) if places else None
    return None if sited is None else SitedModule(lined(sited), places, places_of)


def _definitions(code: CodeType, tree: ast.FunctionDef) -> Iterator[tuple[CodeType, ast.FunctionDef]]:
    """Yield a function's code and syntax tree, then those of the functions that are defined in it.
    Generators are left out: their variables live on while other code runs."""
    yield code, tree
    inside = {
        (node.name, node.lineno): node
        for stmt in tree.body
        for node in walk(stmt)
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    for inner in inner_codes(code):
        node = inside.get((inner.co_name, inner.co_firstlineno))
        if node is not None and not inner.co_flags & (CO_GENERATOR | CO_COROUTINE):
            yield from _definitions(inner, node)


def _scope(
    code: CodeType, tree: ast.FunctionDef, known: KnownCalls, sees_identity: bool, words: Names
) -> Scope:
    local, free = frozenset((*code.co_varnames, *code.co_cellvars)), frozenset(code.co_freevars)
    cells, shared = local & free_names(code, False), declared_names(tree, ast.Global)
    return Scope(
        local | free | shared, (local - cells) | free | shared, free | shared, parameters_of(tree),
        cells | free | shared | local & (free_names(code, True) | words), known, shared, sees_identity,
    )  # fmt: skip


def _known_calls(function: FunctionType, tree: ast.FunctionDef) -> KnownCalls:
    names = function.__globals__
    held = names.copy()  # other threads may add names
    modules = {name: value.__name__ for name, value in held.items() if type(value) is ModuleType}
    modules |= imported_modules(walk(tree))
    classes = {n: one for n, one in held.items() if isinstance(one, type)}
    own = {n: one for n, one in classes.items() if one.__module__ == names.get("__name__")}
    methods = _MethodTrees([*own.values()])
    unknown = frozenset([*own, *[n for n, one in held.items() if stays_pythons(one)]])
    return KnownCalls(modules, _Trees(names), methods, unknown)


_PYTHONS = ("dcarray.comm", "dcarray.jit.program")


def stays_pythons(value: Any) -> bool:
    """Whether a value belongs to `dcarray.comm` (it sends messages) or to `dcarray.jit.program`, so that a
    statement which calls it cannot be part of a site."""
    kind = type(value)
    where = value.__globals__.get("__name__") if kind is FunctionType else None
    if where is None:
        where = (value if isinstance(value, type) else kind).__module__
    return str(where).startswith(_PYTHONS)


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
        trees = [tree for one in self._classes if (tree := _Trees(vars(one)).get(name)) is not None]
        if not trees:
            raise KeyError(name)
        return trees

    def __iter__(self) -> Iterator[str]:
        return iter({name for one in self._classes for name in vars(one)})

    def __len__(self) -> int:
        return len({*self})


def functions_of(root: FunctionType) -> list[FunctionType]:
    """Return a function and the functions of its module that it may call by their global names, directly or
    through each other."""
    names = root.__globals__
    functions, todo = [root], [root]
    while todo:
        for name in names_in(original(todo.pop())):
            value = names.get(name)
            if type(value) is FunctionType and value.__globals__ is names and value not in functions:
                functions.append(value)
                todo.append(value)
    return functions


def put_sites(function: FunctionType) -> list[Site]:
    """Replace a function's code by its code with sites, until `remove_sites`.  Return the sites; an empty
    list if it can have none."""
    sited = with_sites(function)
    if sited is None:
        return []
    code, sites = sited
    if id(function.__code__) not in every:
        give(function, code)
    return sites


def remove_sites(function: FunctionType) -> None:
    """Give a function its original code again, without sites."""
    give(function, original(function))


def give(function: FunctionType, code: CodeType) -> None:
    """Give a function a code object, to which names of its module are bound if `bindings` has any."""
    names = bindings.get(id(function.__globals__))
    function.__code__ = code = bound(code, names) if names else code
    if id(code) in every:
        holders[id(code)] = [*filter(lambda one: one(), holders.get(id(code), ())), ref(function)]
