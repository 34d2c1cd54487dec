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


_At = ast.stmt | ast.expr | None
"""The node of the program whose source position a new node has; None: no line that a tool could see."""


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
    code = _Asking(first, constant, source, returns, unsure, guarded, span, items)
    before, last = code.before(), body[-1]
    if tested is not None:
        assert isinstance(last, ast.Return) and last.value is not None
        tested.test = code.condition(last.value, last)
        return [*before, tested]
    begins, left = list[ast.stmt](), list[ast.stmt]()
    if isinstance(first, ast.For | ast.While):
        if resumable:
            begins, left = code.resume_in(first)
        if plainly is not None:
            watch(first, plainly)
        first.orelse = [code.leaving(first), *code.orelse]
        _put_before((ast.Return, ast.Break), code.leaving, first.body)
    elif isinstance(last, ast.Return) and last.value is not None:
        value = code.valued(last.value, last)
        if facts(last.value).kinds.isdisjoint({*COMPREHENSIONS, ast.Lambda}):  # it may stand there twice
            value = _new(ast.IfExp, last, code.part("asks", last), value, last.value)
        body[-1] = ast.copy_location(ast.Return(value), last)
    else:
        _put_at_end(code.leaving, body)
    asking = [code.part("asks", first), *code.asked("enter")]
    if source.asked:
        assert isinstance(first, ast.While)
        before.append(code.releasing())
        asking = [asking[0], code.entering(first.test, asking)]
        first.test = code.taken(first.test)
    if items is not None:
        assert isinstance(first, ast.For)
        if begins:
            begins = [_new(ast.Assign, items, [code.place(items, _STORE)], code.taken(items))]
        else:
            first.iter = with_items(first.iter, items, code.taken(items))
        asking.insert(1, code.call("header.known", first))
    return [*before, code.taking(_both(first, *asking), [*begins, *body, *left], False)]


def _new(kind: type[_Node], at: _At, *fields: Any) -> _Node:
    """Return a new node of class ``kind`` with the source position of the node ``at``."""
    node = kind(*fields)
    line, column = (at.lineno, at.col_offset) if at is not None else (-1, -4)
    node.lineno = node.end_lineno = line
    node.col_offset, node.end_col_offset = max(column, -1), column + 3
    return node


def _both(at: _At, *values: ast.expr) -> ast.expr:
    return _new(ast.BoolOp, at, ast.And(), [*values])


class _Asking:
    """The parts of the code that asks a site; the parameters are those of `with_site`.

    Attributes
    ----------
    orelse : list of ast.stmt
        The ``else`` of a loop.
    """

    def __init__(
        self, first: ast.stmt, constant: str, source: SiteSource, returns: Sequence[ast.Return],
        unsure: Sequence[str], guarded: bool, span: str, items: ast.expr | None,
    ) -> None:  # fmt: skip
        self._first, self._constant, self._source, self._returns = first, constant, source, returns
        self._unsure, self._guarded, self._span, self._items = unsure, guarded, span, items
        self.orelse = first.orelse if isinstance(first, ast.For | ast.While) else []

    # ---- single nodes -----------------------------------------------------------------------------------
    def part(self, name: str, at: _At) -> ast.expr:
        node: ast.expr = _new(ast.Constant, at, self._constant)
        for one in name.split("."):
            node = _new(ast.Attribute, at, node, one, _LOAD)
        return node

    def call(self, name: str, at: _At, *args: ast.expr) -> ast.expr:
        return _new(ast.Call, at, self.part(name, at), [*args], [])

    def place(self, at: _At, context: ast.expr_context) -> ast.expr:
        """Return the place that keeps what a running loop goes through."""
        if self._span:
            return _new(ast.Name, at, self._span, context)
        return _new(ast.Attribute, at, _new(ast.Constant, at, self._constant), "range", context)

    def leave(self, at: ast.stmt) -> ast.expr:
        return _both(at, self.part("asks", at), self.call("leave", at))

    def leaving(self, at: ast.stmt) -> ast.stmt:
        return _new(ast.Expr, at, self.leave(at))

    def valued(self, value: ast.expr, at: ast.stmt) -> ast.expr:
        """Return the expression that has the value ``value`` and then leaves the site."""
        pair = _new(ast.Tuple, at, [value, self.leave(at)], _LOAD)
        return _new(ast.Subscript, at, pair, _new(ast.Constant, at, 0), _LOAD)

    # ---- before the statements --------------------------------------------------------------------------
    def before(self) -> list[ast.stmt]:
        """Return what is done before the site is asked, if it asks: the items that the loop goes through are
        computed, and names that may not be bound are looked up."""
        first, doing, stale = self._first, self.looking_up(), list[ast.stmt]()
        if self._items is not None:  # which may unbind names
            doing.insert(0, _new(ast.Expr, first, self.call("header.hold", first, self._items)))
            stale = [self.releasing()]
        return [_new(ast.If, first, self.part("asks", first), doing, stale)] if doing else []

    def looking_up(self) -> list[ast.stmt]:
        """Return the statements that note if a name is not bound; a site is not asked then."""
        first = self._first
        names: list[ast.stmt] = [
            _new(ast.Expr, first, _new(ast.Name, first, name, _LOAD)) for name in self._unsure
        ]
        noting: list[ast.stmt] = [_new(ast.Expr, first, self.call("unbound", first))]
        handler = ast.copy_location(ast.ExceptHandler(self.part("Unbound", first), None, noting), noting[0])
        return [_new(ast.Try, first, names, [handler], [], [])] if names else []

    def releasing(self) -> ast.stmt:
        """Return the statement that forgets what a header has computed and its loop has not taken."""
        first = self._first
        return _new(
            ast.Expr, first, _both(first, self.part("header", first), self.call("header.release", first))
        )

    def taken(self, header: ast.expr) -> ast.expr:
        """Return the expression for what a loop's header computes, unless that is known."""
        is_known = _both(header, self.part("header", header), self.call("header.known", header))
        return _new(ast.IfExp, header, is_known, self.call("header.take", header), header)

    def entering(self, test: ast.expr, asking: Sequence[ast.expr]) -> ast.expr:
        """Return the condition that asks the site if that of its ``while`` holds."""
        first = self._first
        true, false = (_new(ast.Constant, first, one) for one in (True, False))
        held = [_both(first, *asking), self.call("header.hold", first, true)]
        entering = _new(ast.BoolOp, first, ast.Or(), held)
        return _new(ast.IfExp, first, test, entering, self.call("header.hold", first, false))

    def asked(self, name: str, *args: ast.expr) -> list[ast.expr]:
        """Return the conditions, the last of which asks the site, if all names that it needs are bound."""
        first, resumes = self._first, name == "resume"
        needed: list[ast.expr] = [_new(ast.Name, first, name, _LOAD) for name in self._source.needed]
        if self._items is not None:
            needed[0] = self.place(first, _LOAD) if resumes else self.call("header.held", first)
        asking = self.call(name, first, *args, *needed)
        if self._items is not None and not resumes:
            asking = self.call("header.release", first, asking)
        if self._guarded and self._source.returns:
            asking = self.call("hold", first, asking)
        is_noted = _both(first, self.part("notes", first), self.call("noted", first))
        return [*[_new(ast.UnaryOp, first, ast.Not(), is_noted)] * bool(self._unsure), asking]

    def condition(self, test: ast.expr, at: ast.stmt) -> ast.expr:
        """Return the expression for a condition that the site computes, or the program."""
        first = self._first
        plain = _new(ast.Tuple, first, [self.valued(test, at)], _LOAD)
        asking = _both(first, self.part("asks", first), *self.asked("enter"))
        chosen: ast.expr = _new(ast.BoolOp, first, ast.Or(), [asking, _new(ast.Tuple, first, [plain], _LOAD)])
        for _ in range(2):
            chosen = _new(ast.Subscript, first, chosen, _new(ast.Constant, first, 0), _LOAD)
        return chosen

    # ---- the results ------------------------------------------------------------------------------------
    def pattern(self, ended: int | None, kept: Mapping[str, str]) -> ast.pattern:
        """Return the pattern that matches a site's results and binds the live names, if the loop ended in the
        way ``ended`` (None: in another one).  ``kept`` are the names of the values that a ``return`` reads,
        with the program's names."""
        first, parts = self._first, list[ast.pattern]()
        for name in self._source.live:
            if name == ENDED and ended is not None:
                parts.append(_new(ast.MatchValue, first, _new(ast.Constant, first, ended)))
            else:
                own = None if name == ENDED or is_kept(name) or name in kept.values() else name
                parts.append(_new(ast.MatchAs, first, None, kept.get(name, own)))
        if self._source.returns:
            parts.append(_new(ast.MatchAs, first, None, None if self._guarded else RETURNED))
        return _new(ast.MatchSequence, first, [_new(ast.MatchSequence, first, parts)])

    def taking(self, values: ast.expr, otherwise: list[ast.stmt], again: bool) -> ast.stmt:
        """Return the statement that binds the names to ``values`` if the site returned any, and else runs
        ``otherwise``.  With ``again`` it is in the loop, which is left afterwards."""
        first, source, then = self._first, self._source, list[ast.stmt]()
        if source.returns:
            value = self.call("held", first) if self._guarded else _new(ast.Name, first, RETURNED, _LOAD)
            then = [_new(ast.Return, first, value)]
        if "_" in source.live:  # which no pattern binds
            names = [*source.live, *[RETURNED] * source.returns]
            target = _new(ast.Tuple, first, [_new(ast.Name, first, name, _STORE) for name in names], _STORE)
            items = _new(ast.BoolOp, first, ast.Or(), [values, _new(ast.Tuple, first, [], _LOAD)])
            then = then or [_new(ast.Break if otherwise else ast.Pass, first)]
            return _new(ast.For, first, target, items, then, otherwise)
        done: list[ast.stmt] = [_new(ast.Expr, first, self.call("done", first))] * again
        cases = []
        for k, one in enumerate(self._returns, 1):
            kept = {name: program_name(name) for name in loads(one) if is_kept(name)}
            due = renamed(one, kept) if kept else one
            returning = ast.copy_location(ast.Return(due.value), one)
            cases.append(ast.match_case(self.pattern(k, kept), None, [*done, returning]))
        if self.orelse:
            note: list[ast.stmt] = [_new(ast.Expr, first, self.call("note", first))]
            cases.append(
                ast.match_case(self.pattern(0, {}), None, note if again else copied_block(self.orelse))
            )
        cases.append(ast.match_case(self.pattern(None, {}), None, then or [_new(ast.Pass, first)]))
        if otherwise:
            cases.append(ast.match_case(_new(ast.MatchAs, first), None, otherwise))
        return _new(ast.Match, first, values, cases)

    # ---- in a running loop ------------------------------------------------------------------------------
    def resume_in(self, loop: ast.For | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Have a loop ask its site in each iteration, too.  Return the statements before the loop and behind
        it."""
        begins, left = list[ast.stmt](), list[ast.stmt]()
        start: list[ast.expr] = [_new(ast.Constant, loop, None), _new(ast.Constant, loop, None)]
        if isinstance(loop, ast.For):
            items = self._items
            named = loop.iter if items is None else with_items(loop.iter, items, ast.Name(ITEMS, _LOAD))
            place_in = goes_through(ast.For(loop.target, named, [], []))
            assert place_in is not None
            through = place_in[1] if items is None else items
            begins = [_new(ast.Assign, through, [self.place(through, _STORE)], through)]
            loop.iter = with_items(loop.iter, through, self.place(through, _LOAD))
            start = [_new(ast.Name, loop, place_in[0], _LOAD), self.place(loop, _LOAD)]
            if self._span:
                left = [_new(ast.Delete, None, [self.place(None, ast.Del())])]
            elif through is not named:  # no range, but a list, say
                left = [_new(ast.Assign, None, [self.place(None, _STORE)], _new(ast.Constant, None, None))]
        finished = _new(ast.If, loop, self.call("done", loop), [_new(ast.Break, loop)], [])
        again, *more = reversed(self.asked("resume", *start))
        again = _both(loop, *more, again) if more else again
        block = [*self.looking_up(), self.taking(again, [], True), finished]
        inside = loop.body[0]  # to which the loop jumps back, and of which tools see the line
        loop.body = [_new(ast.If, inside, self.part("asks_again", inside), block, []), *loop.body]
        if self.orelse:
            is_noted = _both(None, self.part("notes", None), self.call("noted", None))
            left.append(_new(ast.If, None, is_noted, copied_block(self.orelse), []))
        return begins, left


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
