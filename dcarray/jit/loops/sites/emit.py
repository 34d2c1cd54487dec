"""The code that asks sites, as syntax trees that take the place of a program's statements.

::

    for i in range(n):                for x, i in site.enter(n, x) if site.enabled else ():
        x = x + a[i]         is           break
                                      else:
                                          for i in range(n):
                                              if site.resuming:
                                                  for x, i in site.resume(i, range(n), n, x):
                                                      break
                                                  if site.done():
                                                      break
                                              x = x + a[i]
                                          site.enabled and site.leave()

A site returns the values of the names that its statements bind, or nothing: then they run in Python.  The
program gets no new names, lines keep their numbers, and errors are raised where they are in the source.  What
statements return has a name of its own, which is no identifier.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from ..entry.names import RETURNED
from .site import SiteSource

__all__ = ["with_site"]


def with_site(stmts: Sequence[ast.stmt], constant: str, source: SiteSource, resumable: bool) -> ast.stmt:
    """Return statements with the code that asks their site.

    Parameters
    ----------
    stmts : sequence of ast.stmt
    constant : str
        A constant in place of the site, which is put there when all is compiled.
    source : SiteSource
    resumable : bool
        Whether a loop also asks in each iteration.
    """
    first, body = stmts[0], [*stmts]

    def part(name: str) -> ast.expr:
        return ast.Attribute(ast.Constant(constant), name, ast.Load())

    def call(name: str, args: list[ast.expr]) -> ast.expr:
        return ast.Call(part(name), args, [])

    def needed() -> list[ast.expr]:
        return [ast.Name(name, ast.Load()) for name in source.needed]

    def taking(values: ast.expr) -> ast.For:
        """Return the loop that takes over a site's values, if there are any."""
        names = [*source.live, *[RETURNED] * source.returns]  # the first ones for ``finally`` and ``except``
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        end = ast.Return(ast.Name(RETURNED, ast.Load())) if source.returns else ast.Break()
        return ast.For(target, values, [end], [], None)

    test = part("enabled")
    if isinstance(first, ast.While):
        test = ast.BoolOp(ast.And(), [test, first.test])
    if resumable and isinstance(first, ast.For | ast.While):
        start: list[ast.expr] = [ast.Constant(None), ast.Constant(None)]
        if isinstance(first, ast.For) and isinstance(first.target, ast.Name):
            start = [ast.Name(first.target.id, ast.Load()), copy.deepcopy(first.iter)]
        again = taking(call("resume", [*start, *needed()]))
        ended = ast.If(call("done", []), [ast.Break()], [])
        first.body = [ast.If(part("resuming"), [again, ended], []), *first.body]
    whole = taking(ast.IfExp(test, call("enter", needed()), ast.Tuple([], ast.Load())))
    left: list[ast.stmt] = [ast.Expr(ast.BoolOp(ast.And(), [part("enabled"), call("leave", [])]))]
    last = body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        bound = ast.Assign([ast.Name(RETURNED, ast.Store())], last.value)
        back = ast.Return(ast.Name(RETURNED, ast.Load()))
        body.pop()
        left = [bound, *left, back]
        for node in (bound, *left):
            _place(node, last)
    whole.orelse = [*body, *left]
    _place(whole, first)
    return whole


def _place(new: ast.AST, at: ast.stmt) -> None:
    """Give added nodes the source position of the statement that they stand before."""
    stack = [new]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.expr | ast.stmt):
            if hasattr(node, "lineno"):
                if node is not at:
                    continue  # of the source, as all that is in it
            else:
                node.lineno = node.end_lineno = at.lineno
                node.col_offset, node.end_col_offset = at.col_offset, at.col_offset + 3
        stack += ast.iter_child_nodes(node)
