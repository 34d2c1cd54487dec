"""Loops that are left by ``return``, or have an ``else``, as loops that are left by ``break`` alone.

::

    for i in range(n):                ended = 0
        if x[i] > 1:                  for i in range(n):
            return i         is           if x[i] > 1:
    else:                                     ended = 1
        y = 0                                 break
                                      if ended == 1:
                                          return i
                                      if ended == 0:
                                          y = 0

The returned expression is evaluated after the loop; no name is bound in between.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .exits import blocks_of, has_break
from .liveness import LoopNode, live_in_loop
from .purity import is_pure
from .syntax_facts import NONE, facts, loads, stores

__all__ = ["has_exits", "is_kept", "lowered", "lowered_loop", "program_name", "renamed", "without_else"]

_BROKEN = -1
"""How a loop with an ``else`` has ended that was left by ``break``."""

_KEPT = "returned "  # begins names that are no names of a program


def has_exits(loop: LoopNode) -> bool:
    """Whether a loop, or one inside of it, is left by ``return``."""
    return ast.Return in facts(loop).kinds


def lowered(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function with loops that are left by ``break`` alone."""
    stmts: list[ast.stmt] = []
    for stmt in body:
        if isinstance(stmt, ast.For | ast.While):
            name = f"{stmt.lineno}:{stmt.col_offset} ended"  # no name of a program
            parts, returns = lowered_loop(stmt, name)
            stmts += parts
            last = returns.pop() if returns and _is_endless(stmt) else None
            stmts += [_if_ended(name, k + 1, [one]) for k, one in enumerate(returns)]
            stmts += [] if last is None else [last]
            if stmt.orelse:
                stmts.append(_if_ended(name, 0, lowered(stmt.orelse)))
        elif isinstance(stmt, ast.If):
            stmts.append(_if(stmt, lowered(stmt.body), lowered(stmt.orelse)))
        else:
            stmts.append(stmt)
    return stmts


def _if(stmt: ast.If, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
    """Return a condition with other blocks.  Each part of ``a and (b := c)`` gets a condition of its own, so
    that ``b`` is certainly bound in the block."""
    tests = [stmt.test]
    if isinstance(stmt.test, ast.BoolOp) and isinstance(stmt.test.op, ast.And) and not orelse:
        tests = stmt.test.values if ast.NamedExpr in facts(stmt.test).kinds else tests
    for test in reversed(tests):
        body = [ast.copy_location(ast.If(test, body, orelse), stmt)]
    return body[0]


def without_else(loop: LoopNode) -> LoopNode:
    """Return a loop without its ``else``."""
    if not loop.orelse:
        return loop
    new_loop, last = _with_body(loop, loop.body), loop.body[-1]
    new_loop.end_lineno, new_loop.end_col_offset = last.end_lineno, last.end_col_offset
    return new_loop


def _with_body(loop: LoopNode, body: list[ast.stmt]) -> LoopNode:
    """Return a loop with another body, and without ``else``."""
    if isinstance(loop, ast.For):
        return ast.copy_location(ast.For(loop.target, loop.iter, body, []), loop)
    return ast.copy_location(ast.While(loop.test, body, []), loop)


def lowered_loop(loop: LoopNode, name: str, of_site: bool = False) -> tuple[list[ast.stmt], list[ast.Return]]:
    """Return the statements of a loop changed so that only ``break`` leaves it, without its ``else``; and the
    ``return`` statements that may have to follow it.

    Parameters
    ----------
    loop : ast.For or ast.While
    name : str
        The variable that says how the loop has ended: 0, the number of the ``return`` that is due, from 1 on,
        or `_BROKEN`.
    of_site : bool, optional
        Whether the loop is a site's: then it always notes how it ended, since the ``else`` stays in the
        program.
    """
    body = lowered(loop.body)
    returns: list[ast.Return] = []
    if loop.orelse or of_site or has_exits(loop):
        exits = _Exits(loop, name, of_site)
        body, returns = exits.with_breaks(body), exits.returns
    new_loop = _with_body(loop, body)
    before = [_assigned(name, ast.Constant(0), loop)] if returns or loop.orelse or of_site else []
    return [*before, new_loop], returns


class _Exits:
    """The statements that leave a loop."""

    def __init__(self, loop: LoopNode, name: str, of_site: bool) -> None:
        self._name, self._has_else = name, bool(loop.orelse) or of_site
        self.returns: list[ast.Return] = []
        runs = of_site and (isinstance(loop, ast.For) or is_pure(loop.test))
        always = [one for one in loop.body if not any(blocks_of(one))] if runs else []
        target = stores(loop.target) if isinstance(loop, ast.For) else NONE
        carried = live_in_loop(loop.body, NONE) - target
        # What is read then may not be bound whenever the loop ends: it gets another name where it is.
        self._kept = stores(*loop.body) - stores(*always) - carried | (NONE if runs else target)

    def with_breaks(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return a part of the loop's body in which each ``return`` notes its number and ends the loop."""
        stmts: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.If):
                stmts.append(_if(stmt, *map(self.with_breaks, (stmt.body, stmt.orelse))))
            elif isinstance(stmt, ast.Return):
                number = len(self.returns) + 1
                kept = {one: f"{_KEPT}{one} {number}" for one in loads(stmt) & self._kept}
                stmts += [_assigned(kept[one], ast.Name(one, ast.Load()), stmt) for one in sorted(kept)]
                self.returns.append(renamed(stmt, kept) if kept else stmt)
                stmts.append(_assigned(self._name, ast.Constant(number), stmt))
                stmts.append(ast.copy_location(ast.Break(), stmt))
            elif isinstance(stmt, ast.Break) and self._has_else:
                stmts += [_assigned(self._name, ast.Constant(_BROKEN), stmt), stmt]
            else:
                stmts.append(stmt)
        return stmts


def _is_endless(loop: LoopNode) -> bool:
    """Whether only ``return`` leaves a loop."""
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return endless and not has_break(loop)


def renamed(stmt: ast.Return, names: dict[str, str]) -> ast.Return:
    """Return a copy of a statement that reads other names."""
    new = copy.deepcopy(stmt)
    for node in ast.walk(new):
        for name in [one for one in vars(node) if one.startswith("_")]:  # found out of the original
            delattr(node, name)
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return new


def is_kept(name: str) -> bool:
    """Whether a name holds a value for a ``return`` after the loop; bound only if that follows."""
    return name.startswith(_KEPT)


def program_name(name: str) -> str:
    """Return the name in the program that such a name stands for; the name itself if it is one of those."""
    while is_kept(name):  # of a loop in a loop
        name = name.removeprefix(_KEPT).rpartition(" ")[0]
    return name


def _assigned(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], ast.copy_location(value, at)), at)


def _if_ended(name: str, value: int, body: list[ast.stmt]) -> ast.stmt:
    """Return a condition that runs ``body`` if the loop ended in the way ``value``."""
    at = body[0]
    parts = [ast.copy_location(node, at) for node in (ast.Name(name, ast.Load()), ast.Constant(value))]
    test = ast.Compare(parts[0], [ast.Eq()], [parts[1]])
    return ast.copy_location(ast.If(ast.copy_location(test, at), body, []), at)
