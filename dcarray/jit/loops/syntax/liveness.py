"""Data-flow analysis of names at the statements of a function or module: live names and bound names.

A forward walk finds the names that are certainly bound, a backward walk those that may still be read.  A
statement without a case of its own counts as one that reads all its names and binds none.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .purity import binds, binds_if_true, is_pure, reads_first
from .syntax_facts import NONE, Names, facts, loads, stores, target_names

LoopNode = ast.For | ast.While


class Liveness:
    """The live and bound names at the statements of one function, or of a module.

    Parameters
    ----------
    body : sequence of ast.stmt
    parameters : frozenset of str
        Names that are bound when the body begins.
    always : frozenset of str
        Names that other code, such as inner functions, may read at any time.
    """

    def __init__(self, body: Sequence[ast.stmt], parameters: Names, always: Names) -> None:
        self._after: dict[ast.stmt, Names] = {}
        self._before: dict[ast.stmt, Names] = {}
        _LiveNames(self._after, always).block(body, NONE)
        _BoundNames(self._before).block(body, parameters)

    def add_copy(self, copy: ast.stmt, stmt: ast.stmt) -> None:
        """Have a statement that is not in the body stand for one that is."""
        self._after[copy], self._before[copy] = self.live([stmt]), self.bound(stmt)

    def live(self, stmts: Sequence[ast.stmt]) -> Names:
        """Return the names that consecutive statements bind and that may be read after them, or that they
        bind to None: what those names had before is to be freed."""
        bound = stores(*stmts)
        if isinstance(loop := stmts[-1], ast.For | ast.While):  # its ``else`` comes after it
            head = [loop.target, loop.iter] if isinstance(loop, ast.For) else [loop.test]
            bound = stores(*stmts[:-1], *head, *loop.body)
        live = self._after.get(stmts[-1], bound) & bound
        for stmt in stmts:
            match stmt:
                case ast.Assign(targets, ast.Constant(None)):
                    live |= target_names(*targets)
        return live

    def needed(self, stmts: Sequence[ast.stmt]) -> Names:
        """Return the names whose earlier values the statements may read.  A loop is assumed to run: names
        that it binds before it reads them are not among these."""
        live, first = self.live(stmts), stmts[0]
        if len(stmts) > 1 or not isinstance(first, ast.For | ast.While):
            return live_before(stmts, live)
        carried, walk = NONE, _LiveNames({}, NONE)
        while True:
            new = walk.loop_body(first.body, live | carried, live)
            if isinstance(first, ast.For):
                new -= stores(first.target)
            else:
                new |= NONE if is_pure(first.test) else live  # then the site does not know that it runs
                new = reads_first(first.test) | (new - binds(first.test))
            if new <= carried:
                break
            carried |= new
        return carried | (loads(first.iter) if isinstance(first, ast.For) else NONE)

    def bound(self, stmt: ast.stmt) -> Names:
        """Return the names that are bound for certain before a statement."""
        return self._before.get(stmt, NONE)


def parameters_of(function: ast.FunctionDef) -> Names:
    """Return the names of a function's parameters."""
    every = function.args
    parameters = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return frozenset(a.arg for a in parameters if a is not None)


def live_before(stmts: Sequence[ast.stmt], after: Names) -> Names:
    """Return the names live before statements, given those live after them and at their exits."""
    return _LiveNames({}, NONE, after).loop_body(stmts, after, after)


def live_in_loop(body: Sequence[ast.stmt], after: Names) -> Names:
    """Return the names live at the start of an iteration, given those live after the loop."""
    head = NONE
    while not (before := _LiveNames({}, NONE).loop_body(body, after | head, after)) <= head:
        head |= before
    return head


class _LiveNames:
    """The backward walk: names that may be read after each statement."""

    def __init__(self, after: dict[ast.stmt, Names], always: Names, returned: Names = NONE) -> None:
        self._after, self._returned = after, returned  # names live when the function returns
        self._caught = always  # live everywhere: names read by inner functions and by handlers
        self._jumps: list[tuple[Names, Names]] = []  # names live after ``break`` and ``continue``
        self._heads: dict[LoopNode, Names] = {}  # names live at the start of each iteration, so far

    def block(self, body: Sequence[ast.stmt], live: Names) -> Names:
        for stmt in reversed(body):
            self._after[stmt] = live | self._caught
            live = self._stmt(stmt, live | self._caught)
        return live | self._caught

    def loop_body(self, body: Sequence[ast.stmt], again: Names, out: Names) -> Names:
        """Return the names live before a loop's body."""
        self._jumps.append((out, again))
        live = self.block(body, again)
        self._jumps.pop()
        return live

    def _stmt(self, node: ast.stmt, live: Names) -> Names:
        match node:
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return self._assign(node, live)
            case ast.If(test, body, orelse):
                then = self.block(body, live) - binds_if_true(test)
                return reads_first(test) | then | (self.block(orelse, live) - binds(test))
            case ast.For() | ast.While():
                return self._loop(node, live)
            case ast.Return(value):
                return reads_first(value) | ((live & facts(node).binds) | self._returned) - binds(value)
            case ast.Raise():
                return loads(node)
            case ast.Break():
                return self._jumps[-1][0]
            case ast.Continue():
                return self._jumps[-1][1]
            case ast.Try():
                return self._try(node, live)
            case ast.With(items, body):  # an exception may be suppressed
                read = loads(*[part for item in items for part in (item.context_expr, item.optional_vars)])
                return read | live | self._guarded(body, live, live)
            case ast.Match(subject, cases):
                inner = [self.block(case.body, live) | loads(case.pattern, case.guard) for case in cases]
                return loads(subject) | live.union(*inner)
        # del: the names must be bound
        return live | facts(node).reads | facts(node).binds | facts(node).gone

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, live: Names) -> Names:
        if isinstance(node, ast.AugAssign):
            more = reads_first(node.target, node.value) | stores(node.target)
            return (live - binds(node.value)) | more
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        bound = NONE if node.value is None else target_names(*targets) | binds(node.value)
        note = node.annotation if isinstance(node, ast.AnnAssign) else None
        return (live - bound) | reads_first(node.value, *targets) | loads(note)

    def _loop(self, node: LoopNode, live: Names) -> Names:
        end = self.block(node.orelse, live)
        if node in self._after:
            self._after[node] |= end
        tested = isinstance(node, ast.While)
        test = reads_first(node.test) if isinstance(node, ast.While) else NONE
        bound = binds(node.test) if isinstance(node, ast.While) else stores(node.target)
        head = (end - bound if tested else end) | test | self._heads.get(node, NONE)  # it only grows
        while True:
            new = head | test | (self.loop_body(node.body, head, live) - bound)
            if isinstance(node, ast.For):
                new |= loads(node.target)
            if new == head:
                break
            head = new
        self._heads[node] = head
        return head | (loads(node.iter) if isinstance(node, ast.For) else NONE)

    def _try(self, node: ast.Try, live: Names) -> Names:
        last = self.block(node.finalbody, live)
        handled = last
        for handler in node.handlers:
            kinds = loads(handler.type)
            handled |= kinds | self._guarded(handler.body, last, last)
        return self._guarded(node.body, self._guarded(node.orelse, last, last), handled) | handled

    def _guarded(self, body: Sequence[ast.stmt], live: Names, caught: Names) -> Names:
        """Return the names live before a block that may raise at any statement."""
        before, self._caught = self._caught, self._caught | caught
        live = self.block(body, live)
        self._caught = before
        return live


class _BoundNames:
    """The forward walk: names certainly bound before each statement; None where control never arrives."""

    def __init__(self, before: dict[ast.stmt, Names]) -> None:
        self._before = before

    def block(self, body: Sequence[ast.stmt], have: Names | None) -> Names | None:
        for stmt in body:
            self._before[stmt] = have or NONE
            have = self._stmt(stmt, have or NONE)
        return have

    def _stmt(self, node: ast.stmt, have: Names) -> Names | None:
        if not isinstance(node, ast.If):
            have -= facts(node).gone  # in a loop it may be bound in the first iteration only
        match node:
            case ast.Assign(targets, value):
                return have | target_names(*targets) | binds(value)
            case ast.AnnAssign(target, _, value):
                return have | (target_names(target) if value is not None else NONE)
            case ast.If(test, body, orelse):
                then = self.block(body, have | binds_if_true(test))
                return _both(then, self.block(orelse, have | binds(test)))
            case ast.For(target, _, body, orelse):
                self.block(body, have | target_names(target))
                self.block(orelse, have)
            case ast.While(test, body, orelse):
                have |= binds(test)
                self.block(body, have)
                self.block(orelse, have)
            case ast.Try(body, handlers, orelse, finalbody):
                self.block(orelse, _both(self.block(body, have), None))
                for handler in handlers:
                    self.block(handler.body, have)
                return self.block(finalbody, have)
            case ast.With(_, body):
                self.block(body, have)
            case ast.Match(_, cases):
                for case in cases:
                    self.block(case.body, have)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                return have | {name}
            case ast.Import(names) | ast.ImportFrom(names=names):
                return have | {one.asname or one.name.partition(".")[0] for one in names}
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return None
        return have


def _both(a: Names | None, b: Names | None) -> Names | None:
    return b if a is None else a if b is None else a & b
