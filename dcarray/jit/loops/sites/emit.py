"""The code that asks sites, as syntax trees that take the place of a program's statements.

::

    for i in range(n):                match site.asks and site.enter(n, x):
        x = x + a[i]         is           case [[x, i]]:
                                              pass
                                          case _:
                                              span = range(n)
                                              for i in span:
                                                  if site.asks_again:
                                                      match site.resume(i, span, n, x):
                                                          case [[x, i]]:
                                                              pass
                                                      if site.done():
                                                          break
                                                  x = x + a[i]
                                              else:
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

What a loop goes through, if compiled code cannot make it, is computed once::

    for k in np.argsort(z):     is    if site.asks: header.hold(np.argsort(z))
                                      match site.asks and header.known() and site.enter(header.held(), z): ...
                                          for k in (header.take() if header.known() else np.argsort(z)):

The program gets no new names, lines keep their numbers, and errors are raised where they are in the source.
How a loop ended, by a ``return`` or without ``break``, is a number among its site's results, which a pattern
compares.  The ``else`` of a loop stands there three times: in the loop, after compiled code did all
iterations, and after it did the remaining ones.  A name that may not be bound is looked up before the site is
asked.  What compiled code returns has a hidden name, which is no identifier; and none in ``try`` and
``with``, whose code may see it.  So has what a running loop goes through (``span``) in functions; in a
module's code its site keeps it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..entry.names import ENDED, ITEMS, RETURNED
from ..syntax.eligibility import goes_through, with_items
from ..syntax.exits import blocks_of, copied_block
from ..syntax.loop_exits import is_kept, program_name, renamed
from ..syntax.purity import is_pure
from ..syntax.syntax_facts import COMPREHENSIONS, facts, loads
from .site_source import SiteSource

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
    test = ast.Attribute(ast.Constant(plainly.watch), "on", _LOAD)
    branch = ast.If(test, loop.body, plainly.stmts)
    for node in (branch, test, test.value):
        ast.copy_location(node, at)
        node.end_lineno, node.end_col_offset = at.lineno, at.col_offset + 3  # one line for tools
    loop.body = [branch]


def with_site(
    stmts: Sequence[ast.stmt], constant: str, source: SiteSource, resumable: bool,
    returns: Sequence[ast.Return] = (), tested: ast.If | ast.Assert | None = None,
    plainly: PlainBody | None = None, unsure: Sequence[str] = (), guarded: bool = False, span: str = "",
    items: ast.expr | None = None,
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
    unsure : sequence of str, optional
        The names among those that the site needs that may not be bound.
    guarded : bool, optional
        Whether other code may run between a ``return`` and the end of the function.
    span : str, optional
        The name that keeps what a running loop goes through; empty: the site keeps it, in a module's code.
    items : ast.expr, optional
        The part of a loop's iterable that is computed before the site is asked
        (`dcarray.jit.loops.syntax.eligibility.items_apart`).
    """
    first, body = stmts[0], [*stmts]

    def new(kind: type[_Node], at: ast.stmt | ast.expr | None, *fields: Any) -> _Node:
        """Return a new node of class ``kind`` with the source position of the node ``at``; without it,
        the node has no line that a tool could see."""
        node = kind(*fields)
        line, column = (at.lineno, at.col_offset) if at is not None else (-1, -4)
        node.lineno = node.end_lineno = line
        node.col_offset, node.end_col_offset = max(column, -1), column + 3
        return node

    def part(name: str, at: ast.stmt | ast.expr | None) -> ast.expr:
        node: ast.expr = new(ast.Constant, at, constant)
        for one in name.split("."):
            node = new(ast.Attribute, at, node, one, _LOAD)
        return node

    def call(name: str, at: ast.stmt | ast.expr | None, *args: ast.expr) -> ast.expr:
        return new(ast.Call, at, part(name, at), [*args], [])

    def place(at: ast.stmt | ast.expr | None, context: ast.expr_context) -> ast.expr:
        """Return the place that keeps what a running loop goes through."""
        if span:
            return new(ast.Name, at, span, context)
        return new(ast.Attribute, at, new(ast.Constant, at, constant), "range", context)

    def both(at: ast.stmt | ast.expr | None, *values: ast.expr) -> ast.expr:
        return new(ast.BoolOp, at, ast.And(), [*values])

    def asked(name: str, *args: ast.expr) -> list[ast.expr]:
        """Return the conditions, the last of which asks the site, if all names that it needs are bound."""
        needed: list[ast.expr] = [new(ast.Name, first, name, _LOAD) for name in source.needed]
        if items is not None:
            needed[0] = place(first, _LOAD) if name == "resume" else call("header.held", first)
        asking = call(name, first, *args, *needed)
        if items is not None and name != "resume":
            asking = call("header.release", first, asking)
        if guarded and source.returns:
            asking = call("hold", first, asking)
        is_noted = both(first, part("notes", first), call("noted", first))
        return [*[new(ast.UnaryOp, first, ast.Not(), is_noted)] * bool(unsure), asking]

    def looking_up() -> list[ast.stmt]:
        """Return the statements that note if a name is not bound; a site is not asked then."""
        names: list[ast.stmt] = [new(ast.Expr, first, new(ast.Name, first, name, _LOAD)) for name in unsure]
        noting: list[ast.stmt] = [new(ast.Expr, first, call("unbound", first))]
        handler = ast.copy_location(ast.ExceptHandler(part("Unbound", first), None, noting), noting[0])
        return [new(ast.Try, first, names, [handler], [], [])] if names else []

    def pattern(ended: int | None, kept: Mapping[str, str]) -> ast.pattern:
        """Return the pattern that matches a site's results and binds the live names, if the loop ended in the
        way ``ended`` (None: in another one).  ``kept`` are the names of the values that a ``return`` reads,
        with the program's names."""
        parts: list[ast.pattern] = []
        for name in source.live:
            if name == ENDED and ended is not None:
                parts.append(new(ast.MatchValue, first, new(ast.Constant, first, ended)))
            else:
                own = None if name == ENDED or is_kept(name) or name in kept.values() else name
                parts.append(new(ast.MatchAs, first, None, kept.get(name, own)))
        if source.returns:
            parts.append(new(ast.MatchAs, first, None, None if guarded else RETURNED))
        return new(ast.MatchSequence, first, [new(ast.MatchSequence, first, parts)])

    def taking(values: ast.expr, otherwise: list[ast.stmt], again: bool) -> ast.stmt:
        """Return the statement that binds the names to ``values`` if the site returned any, and else runs
        ``otherwise``.  With ``again`` it is in the loop, which is left afterwards."""
        then: list[ast.stmt] = []
        if source.returns:
            value = call("held", first) if guarded else new(ast.Name, first, RETURNED, _LOAD)
            then = [new(ast.Return, first, value)]
        if "_" in source.live:  # which no pattern binds
            names = [*source.live, *[RETURNED] * source.returns]
            target = new(ast.Tuple, first, [new(ast.Name, first, name, _STORE) for name in names], _STORE)
            items = new(ast.BoolOp, first, ast.Or(), [values, new(ast.Tuple, first, [], _LOAD)])
            then = then or [new(ast.Break if otherwise else ast.Pass, first)]
            return new(ast.For, first, target, items, then, otherwise)
        done: list[ast.stmt] = [new(ast.Expr, first, call("done", first))] * again
        cases = []
        for k, one in enumerate(returns, 1):
            kept = {name: program_name(name) for name in loads(one) if is_kept(name)}
            due = renamed(one, kept) if kept else one
            returning = ast.copy_location(ast.Return(due.value), one)
            cases.append(ast.match_case(pattern(k, kept), None, [*done, returning]))
        if orelse:
            note: list[ast.stmt] = [new(ast.Expr, first, call("note", first))]
            cases.append(ast.match_case(pattern(0, {}), None, note if again else copied_block(orelse)))
        cases.append(ast.match_case(pattern(None, {}), None, then or [new(ast.Pass, first)]))
        if otherwise:
            cases.append(ast.match_case(new(ast.MatchAs, first), None, otherwise))
        return new(ast.Match, first, values, cases)

    def leave(at: ast.stmt) -> ast.expr:
        return both(at, part("asks", at), call("leave", at))

    def leaving(at: ast.stmt) -> ast.stmt:
        return new(ast.Expr, at, leave(at))

    def valued(value: ast.expr, at: ast.stmt) -> ast.expr:
        """Return the expression that has the value ``value`` and then leaves the site."""
        pair = new(ast.Tuple, at, [value, leave(at)], _LOAD)
        return new(ast.Subscript, at, pair, new(ast.Constant, at, 0), _LOAD)

    asks, last = part("asks", first), body[-1]
    doing, stale = looking_up(), list[ast.stmt]()
    if items is not None:  # which may unbind names
        doing.insert(0, new(ast.Expr, first, call("header.hold", first, items)))
        stale = [new(ast.Expr, first, both(first, part("header", first), call("header.release", first)))]
    before: list[ast.stmt] = [new(ast.If, first, asks, doing, stale)] if doing else []
    if tested is not None:
        assert isinstance(last, ast.Return) and last.value is not None
        plain = new(ast.Tuple, first, [valued(last.value, last)], _LOAD)
        either = [both(first, asks, *asked("enter")), new(ast.Tuple, first, [plain], _LOAD)]
        chosen: ast.expr = new(ast.BoolOp, first, ast.Or(), either)
        for _ in range(2):
            chosen = new(ast.Subscript, first, chosen, new(ast.Constant, first, 0), _LOAD)
        tested.test = chosen
        return [*before, tested]
    orelse: list[ast.stmt] = []
    begins, left = list[ast.stmt](), list[ast.stmt]()
    if isinstance(first, ast.For | ast.While):
        orelse = first.orelse
        if resumable:
            start: list[ast.expr] = [new(ast.Constant, first, None), new(ast.Constant, first, None)]
            if isinstance(first, ast.For):
                named = first.iter if items is None else with_items(first.iter, items, ast.Name(ITEMS, _LOAD))
                place_in = goes_through(ast.For(first.target, named, [], []))
                assert place_in is not None
                through = place_in[1] if items is None else items
                begins = [new(ast.Assign, through, [place(through, _STORE)], through)]
                first.iter = with_items(first.iter, through, place(through, _LOAD))
                start = [new(ast.Name, first, place_in[0], _LOAD), place(first, _LOAD)]
                if span:
                    left = [new(ast.Delete, None, [place(None, ast.Del())])]
                elif through is not named:  # no range, but a list, say
                    left = [new(ast.Assign, None, [place(None, _STORE)], new(ast.Constant, None, None))]
            finished = new(ast.If, first, call("done", first), [new(ast.Break, first)], [])
            again, *more = reversed(asked("resume", *start))
            again = both(first, *more, again) if more else again
            block = [*looking_up(), taking(again, [], True), finished]
            inside = first.body[0]  # to which the loop jumps back, and of which tools see the line
            first.body = [new(ast.If, inside, part("asks_again", inside), block, []), *first.body]
        if plainly is not None:
            watch(first, plainly)
        first.orelse = [leaving(first), *orelse]
        if orelse and resumable:
            is_noted = both(None, part("notes", None), call("noted", None))
            left.append(new(ast.If, None, is_noted, copied_block(orelse), []))
        _put_before((ast.Return, ast.Break), leaving, first.body)
    elif isinstance(last, ast.Return) and last.value is not None:
        value = valued(last.value, last)
        if facts(last.value).kinds.isdisjoint({*COMPREHENSIONS, ast.Lambda}):  # it may stand there twice
            value = new(ast.IfExp, last, part("asks", last), value, last.value)
        body[-1] = ast.copy_location(ast.Return(value), last)
    else:
        _put_at_end(leaving, body)
    asking = [asks, *asked("enter")]
    if isinstance(first, ast.While) and is_pure(first.test) and not isinstance(first.test, ast.Constant):
        before.append(new(ast.Expr, first, both(first, part("header", first), call("header.release", first))))
        test, true, false = first.test, *[new(ast.Constant, first, one) for one in (True, False)]
        entering = new(ast.BoolOp, first, ast.Or(), [both(first, *asking), call("header.hold", first, true)])
        asking = [asks, new(ast.IfExp, first, test, entering, call("header.hold", first, false))]
        is_known = both(test, part("header", test), call("header.known", test))
        first.test = new(ast.IfExp, test, is_known, call("header.take", test), test)
    if items is not None:
        assert isinstance(first, ast.For)
        is_known = both(items, part("header", items), call("header.known", items))
        taken = new(ast.IfExp, items, is_known, call("header.take", items), items)
        if begins:
            begins = [new(ast.Assign, items, [place(items, _STORE)], taken)]
        else:
            first.iter = with_items(first.iter, items, taken)
        asking.insert(1, call("header.known", first))
    return [*before, taking(both(first, *asking), [*begins, *body, *left], False)]


def _put_before(
    kinds: tuple[type[ast.stmt], ...], make: Callable[[ast.stmt], ast.stmt], body: list[ast.stmt]
) -> None:
    """Insert a copy of a new statement, with the same line, before each statement of these kinds that leaves
    a block, also in the blocks nested in it; a ``break`` of an inner loop does not leave it."""
    for k in reversed(range(len(body))):
        one = body[k]
        if isinstance(one, kinds):
            body.insert(k, make(one))
        for inner in blocks_of(one):
            of_loop = isinstance(one, ast.For | ast.While) and inner is one.body
            _put_before((ast.Return,) if of_loop else kinds, make, inner)


def _put_at_end(make: Callable[[ast.stmt], ast.stmt], body: list[ast.stmt]) -> None:
    """Append a new statement to a block, or to each of the branches at its end: it has the line of what ran
    last, since a tool that sees lines is to see no other."""
    match last := body[-1]:
        case ast.If(_, then, otherwise):
            _put_at_end(make, then)
            if otherwise:
                _put_at_end(make, otherwise)
            else:
                last.orelse = [make(last)]
        case ast.Match(_, [*cases]) if isinstance(cases[-1].pattern, ast.MatchAs):  # of a site
            for one in cases:
                _put_at_end(make, one.body)
        case _:
            body.append(make(last))
