"""Comprehensions as loops: what a reduction of a generator expression does to each item.

::

    sum(f(x) for x in a if x > 0)         is         total = 0
                                                     for x in a:
                                                         if x > 0:
                                                             total = total + f(x)

The names that a comprehension binds are its own: in the loop they get names that no program has.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import NamedTuple

from .syntax_facts import COMPREHENSIONS, NONE, Names, facts, forget, stores

__all__ = [
    "COMPENSATED", "FLOATS", "FUNCTIONS", "LIST", "TAKE_ALL", "Comprehension", "ReductionLoop",
    "compensation", "comprehensions_in", "is_known", "leaves_out", "reduction_loop",
]  # fmt: skip

Comprehension = ast.ListComp | ast.GeneratorExp

FLOATS, COMPENSATED = "floats", "compensated"
"""The names of sums of floats, which begin as 0.0: the second from Python 3.12 on."""
FUNCTIONS = {name: f"the function {name}" for name in ("builtins.abs", "math.isfinite")}
"""The functions that a compensated sum calls, by names that no program has."""
LIST = "list"
"""The name of the reduction that makes a list."""
TAKE_ALL = frozenset({"all", "any", "max", "min", "sum"})
"""Functions that take all items of an iterable at once."""


class ReductionLoop(NamedTuple):
    """A reduction of a comprehension as a loop.

    Attributes
    ----------
    loop : ast.For
    items : str
        The name of the first iterable; for a list comprehension without ``if`` the name of ``enumerate`` of
        it.
    result : str
        The name of the result: a sum so far, whether any or all items are true so far, an extremum of those
        so far, which begins as any number of their type, or a list that has room for all.
    item : str
        The name of the last item; for a list comprehension, of its index.
    began : str
        The name of the bool that says whether there was an item, for an extremum or a sum of floats; it
        begins as False.
    error : str
        The name of the correction that is added to a compensated sum at the end; it begins as 0.0.
    names : frozenset of str
        All names that the loop binds.
    """

    loop: ast.For
    items: str
    result: str
    item: str
    began: str
    error: str
    names: Names


def is_known(items: ast.expr) -> bool:
    """Whether the source shows how many items an iterable has."""
    if isinstance(items, ast.Call):
        name = items.func.id if isinstance(items.func, ast.Name) else ""
        return name == "range" and all(isinstance(arg, ast.Constant) for arg in items.args)
    return isinstance(items, ast.Tuple | ast.List)


def comprehensions_in(node: ast.AST) -> list[Comprehension]:
    """Return the comprehensions in an expression, except those nested in another one."""
    if isinstance(node, Comprehension):
        return [node]
    if facts(node).kinds.isdisjoint(COMPREHENSIONS):
        return []
    return [one for child in ast.iter_child_nodes(node) for one in comprehensions_in(child)]


def reduction_loop(name: str, node: Comprehension) -> ReductionLoop:
    """Return the loop that computes a reduction; for ``any([...])`` it does not stop early.

    Parameters
    ----------
    name : str
        One of `TAKE_ALL`, `FLOATS`, `COMPENSATED` or `LIST`.
    node : ast.ListComp or ast.GeneratorExp
    """
    place = f"{node.lineno}:{node.col_offset}"  # the names are no names of a program
    parts = ("items", name, "item", "began", "error")
    items, result, item, began, error = [f"{one} of {place}" for one in parts]
    own = _with_own_names(node, place)
    ends: list[ast.stmt] = []  # by which a loop ends after one inside of it that has
    if name == "sum":
        body = [_assigned(result, ast.BinOp(_read(result), ast.Add(), own.elt))]
    elif name in (FLOATS, COMPENSATED):
        body = [_assigned(item, own.elt), _assigned(began, ast.Constant(True))]
        if name == FLOATS:
            body.append(_assigned(result, ast.BinOp(_read(result), ast.Add(), _read(item))))
        else:
            body += _compensated(result, item, error, f"next of {place}")
    elif name == LIST:
        body = _put(result, item, own)
    elif name in ("max", "min"):
        better = ast.Compare(_read(item), [ast.Gt() if name == "max" else ast.Lt()], [_read(result)])
        taken = ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), _read(began)), better])
        body = [_assigned(item, own.elt), ast.If(taken, [_assigned(result, _read(item))], [])]
        body.append(_assigned(began, ast.Constant(True)))
    else:
        decides = [_assigned(result, ast.Constant(name == "any"))]
        if isinstance(node, ast.GeneratorExp):
            decides.append(ast.Break())
            ends = [ast.If(_if(name == "any", _read(result)), [ast.Break()], [])]
        body = [ast.If(_if(name == "any", own.elt), decides, [])]
    for one in reversed(own.generators):
        for test in reversed(one.ifs):
            body = [ast.copy_location(ast.If(test, body, []), test)]
        first = one is own.generators[0]
        loop = ast.For(one.target, _read(items) if first else one.iter, body, [])
        body = [ast.copy_location(loop, one.target), *copy.deepcopy([] if first else ends)]
    _locate(loop, loop)
    return ReductionLoop(loop, items, result, item, began, error, stores(loop) | {items, result})


def _compensated(total: str, item: str, error: str, new: str) -> list[ast.stmt]:
    """Return the statements of Neumaier's sum: the rounding error of each addition is added to ``error``."""

    def lost(large: str, small: str) -> ast.stmt:
        rounding = ast.BinOp(ast.BinOp(_read(large), ast.Sub(), _read(new)), ast.Add(), _read(small))
        return _assigned(error, ast.BinOp(_read(error), ast.Add(), rounding))

    sizes = [_call(FUNCTIONS["builtins.abs"], name) for name in (total, item)]
    larger = ast.Compare(sizes[0], [ast.GtE()], sizes[1:])
    return [
        _assigned(new, ast.BinOp(_read(total), ast.Add(), _read(item))),
        ast.If(larger, [lost(total, item)], [lost(item, total)]),
        _assigned(total, _read(new)),
    ]


def compensation(reduction: ReductionLoop) -> ast.stmt:
    """Return the statement that ends a compensated sum."""
    finite = _call(FUNCTIONS["math.isfinite"], reduction.error)
    more = _assigned(reduction.result, ast.BinOp(_read(reduction.result), ast.Add(), _read(reduction.error)))
    stmt = ast.copy_location(ast.If(finite, [more], []), reduction.loop)
    _locate(stmt, stmt)
    return stmt


def _call(function: str, name: str) -> ast.expr:
    return ast.Call(_read(function), [_read(name)], [])


def leaves_out(node: Comprehension) -> bool:
    """Whether a comprehension has a condition, so that it may leave out items."""
    return any(one.ifs for one in node.generators)


def _put(result: str, at: str, node: Comprehension) -> list[ast.stmt]:
    """Return the statements that put an item of a comprehension into a list."""
    body: list[ast.stmt] = [ast.Assign([ast.Subscript(_read(result), _read(at), ast.Store())], node.elt)]
    if leaves_out(node):
        return [*body, _assigned(at, ast.BinOp(_read(at), ast.Add(), ast.Constant(1)))]
    first = node.generators[0]
    first.target = ast.copy_location(
        ast.Tuple([ast.Name(at, ast.Store()), first.target], ast.Store()), first.target
    )
    return body


def _if(holds: bool, test: ast.expr) -> ast.expr:
    return test if holds else ast.UnaryOp(ast.Not(), test)


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _with_own_names(node: Comprehension, place: str) -> Comprehension:
    """Return a copy of a comprehension in which names that no program uses replace those that it binds."""
    names = {name: f"{name} of {place}" for name in _targets(node)}
    renamed = copy.deepcopy(node)
    for one in ast.walk(renamed):
        forget(one)
    _rename(renamed, names, [renamed.generators[0].iter])
    return renamed


def _targets(node: ast.AST) -> Names:
    """Return the names that a comprehension binds for itself."""
    return stores(*[one.target for one in node.generators]) if isinstance(node, Comprehension) else NONE


def _rename(node: ast.AST, names: dict[str, str], skipped: Sequence[ast.AST] = ()) -> None:
    """Rename names in a comprehension, except in its first iterable, which is evaluated outside of it."""
    if isinstance(node, ast.Name):
        node.id = names.get(node.id, node.id)
    for child in ast.iter_child_nodes(node):
        if any(child is one for one in skipped):
            continue
        if isinstance(child, Comprehension):
            first = child.generators[0].iter
            inner = {name: new for name, new in names.items() if name not in _targets(child)}
            _rename(ast.Expr(first), names)
            _rename(child, inner, [first])
        else:
            _rename(child, names, skipped)


def _locate(node: ast.AST, at: ast.AST) -> None:
    """Give nodes without a source position the position of the node around them."""
    if isinstance(node, ast.expr | ast.stmt):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, at)
        at = node
    for child in ast.iter_child_nodes(node):
        _locate(child, at)


def _read(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
