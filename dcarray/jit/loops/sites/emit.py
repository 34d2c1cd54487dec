"""The code that asks sites, as syntax trees that take the place of a program's statements.

::

    for i in range(n):                match site.asks and site.enter(n, x):
        x = x + a[i]         is           case [[x, i]]:
                                              pass
                                          case _:
                                              for i in range(n):
                                                  if site.asks_again:
                                                      match site.resume(i, range(n), n, x):
                                                          case [[x, i]]:
                                                              pass
                                                      if site.done():
                                                          break
                                                  x = x + a[i]
                                              site.asks and site.leave()

A site returns the values of the names that its statements bind, or nothing: then they run in Python.  The
body of an innermost loop stands there twice, since it may be run millions of times, and one look in each
iteration at ``watch.on`` tells whether any site in it is active::

    while j < n:     is    while j < n:
        s[j] = 0               if watch.on:
        j += m                     match site.asks and site.enter(j, m, s): ...
                               else:
                                   s[j] = 0
                                   j += m



A loop's ``else`` stands there twice, too: in the loop, and where compiled code has run the loop to its end.

The program gets no new names, lines keep their numbers, and errors are raised where they are in the source.
A hidden name, which is no identifier, holds the value of a ``return`` in the statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..entry.names import ENDED, RETURNED, UNDERSCORE
from ..syntax.exits import blocks_of, copied_block
from ..syntax.purity import is_pure
from .site import SiteSource

__all__ = ["PlainBody", "watch", "with_site"]

_Node = TypeVar("_Node", bound=ast.expr | ast.stmt | ast.pattern)
_LOAD, _STORE = ast.Load(), ast.Store()


class PlainBody(NamedTuple):
    """The body of an innermost loop as it is in the program.

    Attributes
    ----------
    watch : str
        The constant that stands for the loop's `Watch` until the code is compiled.
    stmts : list of ast.stmt
        A copy of the body's statements, which no other code changes.
    """

    watch: str
    stmts: list[ast.stmt]


def watch(loop: ast.For | ast.While, plainly: PlainBody) -> None:
    """Change an innermost loop so that it runs its original body (``plainly``) while no site in it is
    active."""
    at = loop.body[0]
    watched = ast.copy_location(ast.Constant(plainly.watch), at)
    test = ast.copy_location(ast.Attribute(watched, "on", _LOAD), at)
    loop.body = [ast.copy_location(ast.If(test, loop.body, plainly.stmts), at)]


def with_site(
    stmts: Sequence[ast.stmt], constant: str, source: SiteSource, resumable: bool,
    returns: Sequence[ast.Return] = (), tested: ast.If | ast.Assert | None = None,
    plainly: PlainBody | None = None,
) -> list[ast.stmt]:  # fmt: skip
    """Return statements with the code that asks their site.

    Parameters
    ----------
    stmts : sequence of ast.stmt
    constant : str
        The constant that stands for the site until the code is compiled.
    source : SiteSource
    resumable : bool
        Whether the statements are a loop that asks the site in each iteration, too.
    returns : sequence of ast.Return, optional
        The ``return`` statements of a loop, one of which may have to be executed after compiled code has run
        (`dcarray.jit.loops.syntax.loop_exits`).
    tested : ast.If or ast.Assert, optional
        The statement whose condition the site computes; ``stmts`` is then one ``return`` of this condition.
    plainly : PlainBody, optional
        The body of an innermost loop as it is in the program.
    """
    first, body = stmts[0], [*stmts]

    def new(kind: type[_Node], at: ast.stmt, *fields: Any) -> _Node:
        """Return a new node of class ``kind`` with the source position of the statement ``at``."""
        node = kind(*fields)
        node.lineno = node.end_lineno = at.lineno
        node.col_offset, node.end_col_offset = at.col_offset, at.col_offset + 3
        return node

    def part(name: str, at: ast.stmt) -> ast.expr:
        return new(ast.Attribute, at, new(ast.Constant, at, constant), name, _LOAD)

    def call(name: str, at: ast.stmt, args: list[ast.expr]) -> ast.expr:
        return new(ast.Call, at, part(name, at), args, [])

    def needed() -> list[ast.expr]:
        return [new(ast.Name, first, name, _LOAD) for name in source.needed]

    def pattern(names: list[str], ended: int | None) -> ast.pattern:
        """Return the pattern that matches a site's results and binds the live names, if the loop ended in the
        way ``ended``."""
        parts: list[ast.pattern] = [new(ast.MatchAs, first, None, name) for name in names]
        if ended is not None:
            value = new(ast.Constant, first, ended)
            parts[names.index(ENDED)] = new(ast.MatchValue, first, value)
        elif ENDED in names:
            parts[names.index(ENDED)] = new(ast.MatchAs, first)
        return new(ast.MatchSequence, first, [new(ast.MatchSequence, first, parts)])

    def taking(values: ast.expr, otherwise: list[ast.stmt], *before: ast.stmt) -> ast.Match:
        """Return the ``match`` statement that binds the names to ``values`` if the site returned any, and
        else runs ``otherwise``.  The statements ``before`` run ahead of each ``return``; ``orelse`` runs if
        the loop came to its end."""
        names = [*source.live, *[RETURNED] * source.returns]  # the first ones for ``finally`` and ``except``
        then: list[ast.stmt] = []
        due = [ast.copy_location(ast.Return(one.value), one) for one in returns]
        if "_" in names:  # which no pattern binds
            names[names.index("_")] = UNDERSCORE
            value = new(ast.Name, first, UNDERSCORE, _LOAD)
            then.append(new(ast.Assign, first, [new(ast.Name, first, "_", _STORE)], value))
            then.append(forgetting(UNDERSCORE))
        cases = [
            ast.match_case(pattern(names, k + 1), None, [*then, *before, one]) for k, one in enumerate(due)
        ]
        if source.returns:
            then += returning(first)
        if orelse:
            cases.append(ast.match_case(pattern(names, 0), None, [*then, *orelse]))
        cases.append(ast.match_case(pattern(names, None), None, then or [new(ast.Pass, first)]))
        if otherwise:
            cases.append(ast.match_case(new(ast.MatchAs, first), None, otherwise))
        return new(ast.Match, first, values, cases)

    def returning(at: ast.stmt) -> list[ast.stmt]:
        return [] if tested else [new(ast.Return, at, new(ast.Name, at, RETURNED, _LOAD))]

    def forgetting(name: str) -> ast.stmt:
        return new(ast.Delete, first, [new(ast.Name, first, name, ast.Del())])

    def leaving(at: ast.stmt) -> ast.stmt:
        asked = new(ast.BoolOp, at, ast.And(), [part("asks", at), call("leave", at, [])])
        return new(ast.Expr, at, asked)

    orelse = copied_block(first.orelse) if isinstance(first, ast.For | ast.While) else []
    if resumable and isinstance(first, ast.For | ast.While):
        start: list[ast.expr] = [new(ast.Constant, first, None), new(ast.Constant, first, None)]
        if isinstance(first, ast.For) and isinstance(first.target, ast.Name):
            start = [new(ast.Name, first, first.target.id, _LOAD), first.iter]  # the same nodes once more
        noted = new(ast.Expr, first, call("done", first, []))
        again = taking(call("resume", first, [*start, *needed()]), [], noted)
        finished = new(ast.If, first, call("done", first, []), [new(ast.Break, first)], [])
        asks = new(ast.If, first, part("asks_again", first), [again, finished], [])
        first.body = [asks, *first.body]
    if plainly is not None and isinstance(first, ast.For | ast.While):
        watch(first, plainly)
    last = body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    at = first if value is None else last
    left: list[ast.stmt] = [leaving(at)]
    if value is not None:
        bound = new(ast.Assign, at, [new(ast.Name, at, RETURNED, _STORE)], value)
        left = [bound, *left, *returning(at)]
        body.pop()
    if returns or orelse:
        _put_before((ast.Return, ast.Break, ast.Continue), leaving, body)
    tests = [part("asks", first)]
    if isinstance(first, ast.While) and is_pure(first.test):
        tests.append(first.test)
    asked = new(ast.BoolOp, first, ast.And(), [*tests, call("enter", first, needed())])
    asking: list[ast.stmt] = [taking(asked, [*body, *left])]
    if tested is not None:
        tested.test = new(ast.Name, first, RETURNED, _LOAD)
        asking.append(tested)
        if isinstance(tested, ast.If):
            tested.body.insert(0, forgetting(RETURNED))
            tested.orelse.insert(0, forgetting(RETURNED))
    return asking


def _put_before(
    kinds: tuple[type[ast.stmt], ...], made: Callable[[ast.stmt], ast.stmt], body: list[ast.stmt]
) -> None:
    """Insert a copy of a new statement before each statement of these kinds that leaves a block, also in the
    blocks nested in it; a ``break`` or ``continue`` of an inner loop does not leave it."""
    for k in reversed(range(len(body))):
        one = body[k]
        if isinstance(one, kinds):
            body.insert(k, made(one))
        for inner in blocks_of(one):
            of_loop = isinstance(one, ast.For | ast.While) and inner is one.body
            _put_before((ast.Return,) if of_loop else kinds, made, inner)
