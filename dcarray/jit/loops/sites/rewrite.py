"""The choice of statements that get sites, in functions and modules, and their rewriting to ask these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from ..entry.members import member_paths
from ..entry.names import ENDED, ITEMS, RANGE
from ..syntax.appends import appending_calls, every_growing_call, growing_names, list_of
from ..syntax.eligibility import (
    eligible_test,
    is_eligible,
    is_eligible_statement,
    items_apart,
    may_resume,
    parts_of,
    runs_of,
    with_items,
)
from ..syntax.exits import blocks_of, copied_block
from ..syntax.liveness import Liveness, LoopNode
from ..syntax.loop_exits import has_exits, is_kept, lowered_loop, program_name, without_else
from ..syntax.purity import is_pure
from ..syntax.source import is_faithful
from ..syntax.supported import KnownCalls
from ..syntax.syntax_facts import COMPREHENSIONS, NONE, Names, facts, loads, stores, walk
from ..syntax.tries import caught_names
from .emit import PlainBody, watch, with_site
from .site_source import SitePlace, SiteSource, constant

__all__ = ["Scope", "Text", "add_sites", "reads_callers", "reads_frames"]

# functions that read the names of frames, also names that are dead
_FRAME_READERS = frozenset((
    "locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "f_locals", "breakpoint",
    "stack",
))  # fmt: skip
_OF_CALLERS = frozenset({"f_back", "tb_frame"})
_OF_THEIR_CALLER = frozenset({"locals", "vars", "eval", "exec", "dir"})


class Text(NamedTuple):
    """Access to the source text of statements.

    Attributes
    ----------
    of : callable
        ``of(statements)`` gives the text of consecutive statements without indentation.
    file : str
    """

    of: Callable[[Sequence[ast.stmt]], str]
    file: str


class Scope(NamedTuple):
    """The names used in the code of one function, or of a module, by their roles.

    Attributes
    ----------
    variables : frozenset of str
        The names whose values compiled statements may get.
    own : frozenset of str
        The names that compiled statements may bind.
    bound : frozenset of str
        The names that are bound whenever the code runs, besides its parameters.
    parameters : frozenset of str
    always : frozenset of str
        The names that other code may read at any time.
    known : KnownCalls
    shared : frozenset of str
        The variables that are global names.
    sees_identity : bool
        Whether code around it compares objects by identity: then no site returns a number that exists.
    is_module : bool
        Whether it is a module's code, all of whose names other code sees.
    """

    variables: Names
    own: Names
    bound: Names
    parameters: Names
    always: Names
    known: KnownCalls
    shared: Names = NONE
    sees_identity: bool = False
    is_module: bool = False


def reads_frames(root: ast.AST, known: KnownCalls) -> bool:
    """Whether code may read local variables by way of frames, as with `locals` or `sys._getframe`: its own,
    its callers', or its module's."""
    others = {
        node.id for node in walk(root) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    others |= {node.arg for node in walk(root) if isinstance(node, ast.arg)}
    readers = _FRAME_READERS - (others & {"stack"})  # a list, say; what is imported is no such name
    return any(
        (isinstance(node, ast.Name) and node.id in readers and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in _FRAME_READERS and not known.is_numpys(node))
        or (isinstance(node, ast.alias) and node.name in _FRAME_READERS)
        for node in walk(root)
    )


def reads_callers(root: ast.AST) -> bool:
    """Whether code may read local variables of functions that call it: by frames, or by functions like
    `locals` under other names."""
    called = {id(node.func) for node in walk(root) if isinstance(node, ast.Call)}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _OF_CALLERS)
        or (isinstance(node, ast.alias) and node.name in _FRAME_READERS - {"_getframe", "currentframe"})
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_getframe") and bool(node.args))
        or (isinstance(node, ast.Name) and node.id in _OF_THEIR_CALLER and id(node) not in called)
        for node in walk(root)
    )


def add_sites(
    body: list[ast.stmt], scope: Scope, text: Text, places: list[SitePlace],
    without: Set[SiteSource] = frozenset(),
) -> None:  # fmt: skip
    """Put the code that asks sites before the statements of a body that may be compiled.  The `SitePlace`
    of each site is appended to ``places``, outer ones first.  Sites whose source is in ``without`` are
    left out."""
    _Adder(body, scope, text, places, without).block(body, -1, frozenset())


_OWN_CODE = COMPREHENSIONS | {
    ast.For, ast.While, ast.AsyncFor, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.Global, ast.Nonlocal,
}  # fmt: skip
_REPEATING = (ast.For, ast.While, ast.AsyncFor)
_GUARDING = (ast.Try, ast.TryStar, ast.With)
_LOOPS = frozenset({ast.For, ast.While, ast.ListComp, ast.GeneratorExp})


class _Adder:
    def __init__(
        self, body: list[ast.stmt], scope: Scope, text: Text, places: list[SitePlace],
        without: Set[SiteSource],
    ) -> None:  # fmt: skip
        self._scope, self._text, self._places, self._without = scope, text, places, without
        self._returns: dict[int, list[ast.Return]] = {}  # of loops, by the number of the site
        self._items: dict[int, ast.expr] = {}  # see `items_apart`, by the number of the site
        self._liveness = Liveness(body, scope.parameters, scope.always)
        self._unsure = (scope.bound | scope.shared).union(*[facts(stmt).gone for stmt in body])
        self._guarded = False  # by ``try`` or ``with``
        self._repeated = not scope.is_module  # else outside of a module's loops: runs once

    def block(self, body: list[ast.stmt], outer: int, counters: Names) -> None:
        """Add the sites of a block, and of the blocks nested in it."""
        runs = [run for run in runs_of(body, self._scope.known)] if self._repeated else []
        in_runs = {id(stmt) for run in runs for stmt in run}
        for stmt in list(body):
            if id(stmt) in in_runs:
                continue
            inside, counted, test, first = outer, counters, None, len(self._places)
            plainly = None
            if isinstance(stmt, ast.For | ast.While):
                inside = self._loop(stmt, outer, counters)
                counted = counters | _counters(stmt)
                # no other loop, and nothing that may not be duplicated
                if all(facts(one).kinds.isdisjoint(_OWN_CODE) for one in stmt.body):
                    plainly = PlainBody(constant(first, "watch"), copied_block(stmt.body))
            elif is_eligible_statement(stmt, self._scope.known):
                inside = self._reduction([stmt], outer, counters)
            if inside == outer and (test := eligible_test(stmt, self._scope.known)) is not None:
                inside = self._reduction([test], outer, counters, stmt)
            guarded, self._guarded = self._guarded, self._guarded or isinstance(stmt, _GUARDING)
            repeated, self._repeated = self._repeated, self._repeated or isinstance(stmt, _REPEATING)
            for inner in blocks_of(stmt):  # before the code around them changes
                self.block(inner, outer if test else inside, counted)
            self._guarded, self._repeated = guarded, repeated
            asked = [place.resumable or not place.source.is_loop for place in self._places[first:]]
            if plainly is not None and any(asked):
                self._watch(first)
            else:
                plainly = None
            if inside != outer:
                at = _position(body, stmt)
                tested = stmt if test and isinstance(stmt, ast.If | ast.Assert) else None
                body[at : at + 1] = self._asking([test or stmt], inside, tested, plainly)
            elif plainly is not None and isinstance(stmt, ast.For | ast.While):
                watch(stmt, plainly)
        for run in runs:
            self._run(body, run, outer, counters)

    def _loop(self, loop: LoopNode, outer: int, counters: Names) -> int:
        """Add the site of a loop; return its number, or ``outer`` (the site around it) if it has none."""
        items = items_apart(loop, self._scope.known, ITEMS)
        own = loop if items is None else self._with_name(loop, items)
        plain = without_else(own)
        appending = [call for calls in appending_calls(plain).values() for call in calls]
        appending += every_growing_call([plain])
        if not is_eligible(plain) or not self._scope.known.all_known(plain, without=appending):
            return outer
        returns = lowered_loop(plain, ENDED, of_site=True)[1] if has_exits(plain) else []
        source = self._source([own], counters, returns, True, items=items)
        if source is None:
            return outer
        site = self._site(source, outer, may_resume(plain))
        self._returns[site] = returns
        if items is not None:
            self._items[site] = items
        return site

    def _with_name(self, loop: LoopNode, items: ast.expr) -> ast.For:
        """Return a copy of a loop that goes through `ITEMS` in place of ``items``."""
        assert isinstance(loop, ast.For)
        name = ast.copy_location(ast.Name(ITEMS, ast.Load()), items)
        copy = ast.For(loop.target, with_items(loop.iter, items, name), loop.body, loop.orelse)
        self._liveness.add_copy(ast.copy_location(copy, loop), loop)
        return copy

    def _reduction(
        self, stmts: Sequence[ast.stmt], outer: int, counters: Names, at: ast.stmt | None = None
    ) -> int:
        """Add the site of a statement with comprehensions, as of a loop; return its number as `_loop`
        does."""
        source = self._source(stmts, counters, is_loop=True, at=at)
        return outer if source is None else self._site(source, outer)

    def _run(self, body: list[ast.stmt], run: list[ast.stmt], outer: int, counters: Names) -> None:
        source, parts = self._source(run, counters), parts_of(run, self._scope.known)
        if source is None:
            for part in parts:
                self._run(body, part, outer, counters)
            return
        site = self._site(source, outer)
        inside = [*run]
        for part in parts:  # which may have plans where the whole has none
            self._run(inside, part, site, counters)
        at = _position(body, run[0])
        body[at : at + len(run)] = self._asking(inside, site)

    def _watch(self, first: int) -> None:
        """Have the sites from the number ``first`` on, those of an innermost loop, watched by one `Watch`.
        The loop's ``else`` may have further sites."""
        for k, place in enumerate(self._places[first:], first):
            if place.watch < 0:
                self._places[k] = place._replace(watch=first)

    def _site(self, source: SiteSource, outer: int, resumable: bool = False) -> int:
        self._places.append(SitePlace(source, outer, resumable))
        return len(self._places) - 1

    def _asking(
        self, stmts: Sequence[ast.stmt], number: int, tested: ast.If | ast.Assert | None = None,
        plainly: PlainBody | None = None,
    ) -> list[ast.stmt]:  # fmt: skip
        source, _, resumable, _ = self._places[number]
        returns = self._returns.get(number, ())
        unsure = [name for name in source.needed if name in self._unsure]
        site, guarded = constant(number), self._guarded
        span = RANGE.format(number) if resumable and not self._scope.is_module else ""
        return with_site(
            stmts, site, source, resumable, returns, tested, plainly, unsure, guarded, span,
            self._items.get(number),
        )  # fmt: skip

    def _source(
        self, stmts: Sequence[ast.stmt], counters: Names, returns: Sequence[ast.Return] = (),
        is_loop: bool = False, at: ast.stmt | None = None, items: ast.expr | None = None,
    ) -> SiteSource | None:  # fmt: skip
        """Return the source of statements that may have a site, or of the condition of the statement ``at``;
        None if they use a name that compiled code cannot."""
        scope, first, last = self._scope, stmts[0], stmts[-1]
        if scope.is_module and any(ast.AnnAssign in facts(one).kinds for one in stmts):
            return None  # a module's code computes annotations, and keeps them
        needed = self._liveness.needed(stmts) & scope.variables
        if not needed <= self._liveness.bound(at or first) | scope.bound:
            return None
        live, is_noted = self._liveness.live(stmts), bool(returns)
        if isinstance(last, ast.For | ast.While) and last.orelse:
            if any(not facts(one).kinds.isdisjoint(_OWN_CODE) for one in last.orelse):
                return None  # it would stand there several times
            first = last = without_else(last)
            stmts, is_noted = [last], True
        if not stores(*stmts) <= scope.own or not all(map(is_faithful, stmts)):
            return None
        text = "return " * (at is not None) + self._text.of(stmts)
        if items is not None:
            text = _text_with_name(text, items, first.col_offset)
        if is_noted:
            read = loads(*returns)
            live |= (read & stores(*stmts)) | {ENDED, *filter(is_kept, read)}
            if "_" in map(program_name, live):  # which no pattern binds
                return None
        lists = (*filter(None, map(list_of, stmts)), *appending_calls(first))
        if isinstance(first, ast.For | ast.While):
            stacks = growing_names([first]) & needed - stores(first)
            lists += tuple(sorted(stacks.difference(lists)))
        if not needed.issuperset(lists):
            return None
        source = SiteSource(
            text, self._text.file, first.lineno, last.end_lineno or last.lineno,
            (*[ITEMS] * (items is not None), *sorted(needed)),
            tuple(sorted(loads(*stmts) - scope.variables - caught_names(*stmts) - {ITEMS})),
            tuple(sorted(live)), counters & needed, is_loop, isinstance(last, ast.Return),
            isinstance(first, ast.For | ast.While) and _has_loop(first.body), member_paths(*stmts), lists,
            tuple(sorted(scope.shared & (needed | stores(*stmts)))), scope.sees_identity,
            isinstance(first, ast.While) and is_pure(first.test) and not isinstance(first.test, ast.Constant),
        )  # fmt: skip
        return None if source in self._without else source


def _text_with_name(text: str, items: ast.expr, indent: int) -> str:
    """Return a loop's source with `ITEMS` in place of ``items``, which are in its first line."""
    head, *others = text.encode().split(b"\n")
    assert items.end_col_offset is not None
    begin, end = items.col_offset - indent, items.end_col_offset - indent
    return b"\n".join([head[:begin] + ITEMS.encode() + head[end:], *others]).decode()


def _has_loop(body: Sequence[ast.stmt]) -> bool:
    """Whether statements are or contain a loop or a comprehension."""
    return any(not facts(stmt).kinds.isdisjoint(_LOOPS) for stmt in body)


def _position(body: Sequence[ast.stmt], stmt: ast.stmt) -> int:
    return next(k for k, one in enumerate(body) if one is stmt)


def _counters(loop: LoopNode) -> Names:
    """Return the variables of a loop that count: of a ``range`` or ``enumerate``."""
    if isinstance(loop, ast.While):
        return frozenset()
    call = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    name = call.id if isinstance(call, ast.Name) else ""
    if name == "range":
        return stores(loop.target)
    if name == "enumerate" and isinstance(loop.target, ast.Tuple):
        return stores(loop.target.elts[0])
    return frozenset()
