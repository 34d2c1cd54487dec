"""Sites for the statements of functions and modules: which get one, and the code that asks them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ..entry.members import member_paths
from ..syntax.attributes import OWNER, attributes_as_names, list_of
from ..syntax.eligibility import is_eligible, may_resume, parts_of, runs_of
from ..syntax.liveness import Liveness, LoopNode
from ..syntax.supported import KnownCalls
from ..syntax.syntax_facts import Names, facts, loads, stores, walk
from .emit import with_site
from .site import Site, SiteSource

__all__ = ["Scope", "Text", "add_sites", "reads_frames", "with_constants"]

# functions that read the names of frames, also names that are dead
_FRAME_READERS = frozenset(
    {"locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "breakpoint", "stack"}
)


@dataclass(frozen=True)
class Text:
    """How the source of a statement reads.

    Attributes
    ----------
    of : callable
        Gives the text of consecutive statements without indentation.
    is_faithful : callable
        Whether that means the same as in its place.
    file : str
    """

    of: Callable[[Sequence[ast.stmt]], str]
    is_faithful: Callable[[ast.stmt], bool]
    file: str


@dataclass(frozen=True)
class Scope:
    """The names of the code of one function, or of a module.

    Attributes
    ----------
    variables : frozenset of str
        The names that its statements may get as values.
    own : frozenset of str
        Those that its statements may bind.
    bound : frozenset of str
        Those that are bound whenever it runs, besides its parameters.
    parameters : frozenset of str
    always : frozenset of str
        Those that other code may read at any time.
    names : dict
        The global names.
    known : KnownCalls
    """

    variables: Names
    own: Names
    bound: Names
    parameters: Names
    always: Names
    names: dict[str, Any]
    known: KnownCalls
    sites: dict[str, Site] = field(default_factory=dict)


def reads_frames(root: ast.AST, known: KnownCalls) -> bool:
    """Whether code may read the names of frames: its own, those of its callers, or its module's."""
    return any(
        (isinstance(node, ast.Name) and node.id in _FRAME_READERS and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in _FRAME_READERS and not known.is_numpys(node))
        or (isinstance(node, ast.alias) and node.name in _FRAME_READERS)
        for node in walk(root)
    )


def add_sites(body: list[ast.stmt], scope: Scope, text: Text) -> list[Site]:
    """Put the code that asks sites before the statements of a function or module that may be compiled.

    Returns the sites, outer ones first; ``scope.sites`` has them by the constants in their place.
    """
    before = len(scope.sites)
    _Adder(body, scope, text).block(body, None, frozenset())
    return [*scope.sites.values()][before:]


_LOOPS = frozenset({ast.For, ast.While, ast.ListComp, ast.GeneratorExp})


class _Adder:
    def __init__(self, body: list[ast.stmt], scope: Scope, text: Text) -> None:
        self._scope, self._text = scope, text
        self._liveness = Liveness(body, scope.parameters, scope.always)

    def block(self, body: list[ast.stmt], outer: Site | None, counters: Names) -> None:
        """Add the sites of a block, and of the blocks inside of it."""
        runs = [run for run in runs_of(body, self._scope.known)]
        in_runs = {id(stmt) for run in runs for stmt in run}
        for stmt in list(body):
            if id(stmt) in in_runs:
                continue
            inside, counted = outer, counters
            if isinstance(stmt, ast.For | ast.While):
                inside = self._loop(stmt, outer, counters) or outer
                counted = counters | _counters(stmt)
            key = [*self._scope.sites][-1] if inside is not outer else ""
            for inner in _blocks(stmt):  # before the code around them changes
                self.block(inner, inside, counted)
            if inside is not None and inside is not outer:
                body[_position(body, stmt)] = with_site([stmt], key, inside.source, inside.resumable)
        for run in runs:
            self._run(body, run, outer, counters)

    def _loop(self, loop: LoopNode, outer: Site | None, counters: Names) -> Site | None:
        if not is_eligible(loop) or not self._scope.known.all_known(loop):
            return None
        source = self._source([loop], counters)
        return None if source is None else self._site(source, outer, may_resume(loop))

    def _run(self, body: list[ast.stmt], run: list[ast.stmt], outer: Site | None, counters: Names) -> None:
        source, parts = self._source(run, counters), parts_of(run)
        if source is None:
            for part in parts:
                self._run(body, part, outer, counters)
            return
        site = self._site(source, outer, False)
        key, inside = [*self._scope.sites][-1], [*run]
        for part in parts:  # which may have plans where the whole has none
            self._run(inside, part, site, counters)
        at = _position(body, run[0])
        body[at : at + len(run)] = [with_site(inside, key, source, False)]

    def _site(self, source: SiteSource, outer: Site | None, resumable: bool) -> Site:
        made = Site(source, self._scope.names, outer, resumable)
        self._scope.sites[f"dcarray's site {len(self._scope.sites)}"] = made
        return made

    def _source(self, stmts: Sequence[ast.stmt], counters: Names) -> SiteSource | None:
        """Return the source of statements that may have a site; None if a name is in the way."""
        scope, first, last = self._scope, stmts[0], stmts[-1]
        needed = self._liveness.needed(stmts) & scope.variables
        if not needed <= self._liveness.bound(first) | scope.bound:
            return None
        if not stores(*stmts) <= scope.own or not all(map(self._text.is_faithful, stmts)):
            return None
        text, live = self._text.of(stmts), self._liveness.live(stmts)
        attributes, lists = None, frozenset(filter(None, map(list_of, stmts)))
        if lists or (OWNER in needed and OWNER in scope.parameters):
            attributes = attributes_as_names(text, live, lists)
            if lists and (attributes is None or not lists <= needed):
                return None
        return SiteSource(
            text,
            self._text.file,
            first.lineno,
            last.end_lineno or last.lineno,
            tuple(sorted(needed)),
            tuple(sorted(loads(*stmts) - scope.variables)),
            tuple(sorted(live)),
            counters & needed,
            isinstance(first, ast.For | ast.While),
            isinstance(last, ast.Return),
            isinstance(first, ast.For | ast.While) and _has_loop(first.body),
            tuple([path for path in member_paths(*stmts) if path[0] not in scope.variables]),
            attributes,
        )


def _has_loop(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a loop among statements or in them, or a comprehension."""
    return any(not facts(stmt).kinds.isdisjoint(_LOOPS) for stmt in body)


def _position(body: Sequence[ast.stmt], stmt: ast.stmt) -> int:
    return next(k for k, one in enumerate(body) if one is stmt)


def _counters(loop: LoopNode) -> Names:
    """Return the variables of a loop that are ints which change."""
    if isinstance(loop, ast.While):
        return frozenset()
    call = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    name = call.id if isinstance(call, ast.Name) else ""
    if name == "range":
        return stores(loop.target)
    if name == "enumerate" and isinstance(loop.target, ast.Tuple):
        return stores(loop.target.elts[0])
    return frozenset()


def _blocks(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a statement, without those of functions and classes."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [getattr(stmt, name, []) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(stmt, "handlers", [])]
    found += [case.body for case in getattr(stmt, "cases", [])]
    return found


def with_constants(code: CodeType, sites: Mapping[str, Site]) -> CodeType:
    """Return a code object in which sites have the places of their constants."""
    found = [
        sites.get(c, c) if type(c) is str else with_constants(c, sites) if type(c) is CodeType else c
        for c in code.co_consts
    ]
    return code.replace(co_consts=tuple(found))
