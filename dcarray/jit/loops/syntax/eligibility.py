"""Eligible loops and statements: a syntactic filter for what may be compiled and gets a site.

What is eligible may still contain what `trace` does not support.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .appends import append_call, list_of
from .comprehension_loops import TAKE_ALL, comprehensions_in, is_known
from .liveness import LoopNode
from .purity import is_pure
from .supported import DRAWS, RANDOM, KnownCalls
from .syntax_facts import facts, loads, stores, walk
from .tries import guard_statements

_EXCLUDED = frozenset((
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete,
    ast.Starred, ast.Match, ast.JoinedStr,
))  # fmt: skip
_NOT_IN_LOOPS = _EXCLUDED - {ast.Return}
_IN_RUNS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If)
_NOT_IN_RUNS = _EXCLUDED | {ast.For, ast.While, ast.Break, ast.Continue, ast.Raise, ast.Assert}
_COMPUTING = frozenset({ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.AugAssign})
_ITERABLES = frozenset({"enumerate", "reversed", "zip"})


def runs_of(body: Sequence[ast.stmt], known: KnownCalls) -> Iterator[list[ast.stmt]]:
    """Yield the runs of consecutive statements of a block that may be compiled together: assignments, calls
    and conditions without loops, at the end perhaps a ``return``."""
    run: list[ast.stmt] = []
    lists, used = set[str](), set[str]()  # to which the run appends, and the other names in it
    for stmt in body:
        grown, names = list_of(stmt), _names(stmt)
        if run and (grown in used or not names.isdisjoint({*lists, grown})):  # a list is used otherwise, too
            if any(map(_computes, run)):
                yield run
            run = []
        if grown in names:
            continue
        if not run:
            lists, used = set[str](), set[str]()
        used |= names
        lists |= {grown}
        if isinstance(stmt, ast.Return) and stmt.value is not None and known.all_known(stmt):
            if _is_plain(stmt, _NOT_IN_LOOPS):
                run.append(stmt)
        elif isinstance(stmt, _IN_RUNS) and _is_plain(stmt, _NOT_IN_RUNS) and known.all_known(*_parts(stmt)):
            run.append(stmt)
            continue
        if any(map(_computes, run)):
            yield run
        run = []
    if any(map(_computes, run)):
        yield run


def parts_of(run: Sequence[ast.stmt], known: KnownCalls) -> list[list[ast.stmt]]:
    """Return the parts of a run of statements between statements that may have no plan.  These are
    conditions, draws of random numbers, calls of methods of the program, appends to lists, comprehensions,
    and ``return``."""
    parts: list[list[ast.stmt]] = [[]]
    for stmt in run:
        if _is_doubtful(stmt, known):
            parts.append([])
        else:
            parts[-1].append(stmt)
    return [part for part in parts if len(part) < len(run) and any(map(_computes, part))]


def _is_doubtful(stmt: ast.stmt, known: KnownCalls) -> bool:
    if isinstance(stmt, ast.If | ast.Return) or list_of(stmt):
        return True
    return any(
        isinstance(node, ast.comprehension)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and (node.func.attr in DRAWS | RANDOM or known.is_method(node.func.attr))
        )
        for node in walk(stmt)
    )


def _parts(stmt: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement that count: ``item`` of ``name.append(item)``, else all of it."""
    call = append_call(stmt)
    return [stmt] if call is None else [*call.args]


def _names(stmt: ast.stmt) -> frozenset[str]:
    """Return the names in a statement, without that of a list to which it appends."""
    return loads(*_parts(stmt)) | stores(stmt)


def _is_plain(stmt: ast.stmt, excluded: frozenset[type]) -> bool:
    return _has_none(stmt, excluded) and not (
        isinstance(stmt, ast.Expr) and not isinstance(stmt.value, ast.Call)
    )


def _has_none(stmt: ast.stmt, excluded: frozenset[type]) -> bool:
    """Whether a statement has no nodes of the types ``excluded``.  Comprehensions over a few known items, and
    arguments ``*items``, are allowed."""
    kinds = facts(stmt).kinds & excluded
    if ast.Starred in kinds and _are_arguments(walk(stmt)):
        kinds -= {ast.Starred}
    return not kinds or (kinds <= _TAKEN and _are_taken(walk(stmt), True))


def _are_arguments(nodes: Sequence[ast.AST]) -> bool:
    """Whether all starred expressions among nodes are positional arguments of calls."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    given = {id(arg) for call in calls for arg in call.args}
    named = [one for call in calls for one in call.keywords]
    return all(id(node) in given for node in nodes if isinstance(node, ast.Starred)) and all(
        one.arg is not None for one in named
    )


def _are_taken(nodes: Sequence[ast.AST], few: bool) -> bool:
    """Whether all generator expressions among nodes are consumed at once; with ``few`` all comprehensions
    must also be over items that the source shows."""
    used = {
        id(arg)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TAKE_ALL
        for arg in node.args[:1]
    }
    if any(ast.NamedExpr in facts(node).kinds for node in nodes if type(node) in _TAKEN):
        return False  # it binds a name outside of a comprehension
    return all(
        not node.is_async and (is_known(node.iter) or not few)
        if isinstance(node, ast.comprehension)
        else id(node) in used
        for node in nodes
        if isinstance(node, ast.comprehension | ast.GeneratorExp)
    )


_TAKEN = frozenset({ast.ListComp, ast.GeneratorExp})


def is_eligible_statement(stmt: ast.stmt, known: KnownCalls) -> bool:
    """Whether a statement with comprehensions over many items gets a site, as a loop does."""
    if isinstance(stmt, ast.Return):
        excluded, parts = _NOT_IN_LOOPS, [] if stmt.value is None else comprehensions_in(stmt.value)
    elif isinstance(stmt, _IN_RUNS):
        excluded = _NOT_IN_RUNS
        parts = comprehensions_in(stmt.test if isinstance(stmt, ast.If) else stmt)
    else:
        return False
    kinds = facts(stmt).kinds & excluded
    return (
        bool(parts)
        and kinds <= _TAKEN
        and not _are_taken(walk(stmt), True)
        and _are_taken(walk(stmt), False)
        and list_of(stmt) not in _names(stmt)
        and (not isinstance(stmt, ast.Expr) or isinstance(stmt.value, ast.Call))
        and known.all_known(*_parts(stmt))
    )


def eligible_test(stmt: ast.stmt, known: KnownCalls) -> ast.Return | None:
    """Return a ``return`` of a statement's condition, if that condition gets a site of its own since it has
    comprehensions over many items; else None."""
    if not isinstance(stmt, ast.If) and not (isinstance(stmt, ast.Assert) and __debug__):
        return None
    condition = ast.copy_location(ast.Return(stmt.test), stmt.test)
    one_line = condition.lineno == condition.end_lineno  # else it may be no statement without parentheses
    binds = ast.NamedExpr in facts(stmt.test).kinds
    return condition if one_line and not binds and is_eligible_statement(condition, known) else None


def _computes(stmt: ast.stmt) -> bool:
    """Whether a statement has an operator, an element or a call, so that it may take some time."""
    return any(not facts(part).kinds.isdisjoint(_COMPUTING) for part in _parts(stmt))


def is_eligible(loop: LoopNode) -> bool:
    """Whether a loop without ``else`` gets a site."""
    if isinstance(loop, ast.For) and not (_is_iterable(loop.iter) and _only_names(loop.target)):
        return False
    kinds = facts(loop).kinds & _NOT_IN_LOOPS
    if ast.Try in kinds and guard_statements(loop):
        kinds -= {ast.Try}
    return not kinds or (kinds <= _TAKEN and _are_taken(walk(loop), False))


def items_apart(loop: LoopNode, known: KnownCalls, name: str) -> ast.expr | None:
    """Return the part of a loop's iterable that the program is to compute before it asks the loop's site,
    since compiled code cannot; None if there is none, or the loop uses the ``name`` that it would have."""
    if isinstance(loop, ast.While) or _is_iterable(loop.iter):
        return None
    items = loop.iter
    while isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.args:
        if items.func.id not in ("enumerate", "reversed") or items.keywords:
            break
        items = items.args[0]
    one_line = items.lineno == items.end_lineno == loop.lineno
    may_move = facts(items).kinds.isdisjoint(_EXCLUDED | {ast.NamedExpr}) and name not in loads(loop)
    return items if one_line and may_move and known.makes_items(items) else None


def with_items(iterable: ast.expr, items: ast.expr, others: ast.expr) -> ast.expr:
    """Return a loop's iterable with ``others`` in place of the result of `items_apart`."""
    if iterable is items:
        return others
    assert isinstance(iterable, ast.Call)
    args = [with_items(iterable.args[0], items, others), *iterable.args[1:]]
    return ast.copy_location(ast.Call(iterable.func, args, []), iterable)


def _is_iterable(items: ast.expr) -> bool:
    """Whether an iterable of a ``for`` loop is supported; a compiled loop does not evaluate it."""
    if not isinstance(items, ast.Call):
        return isinstance(items, ast.Name | ast.Attribute | ast.Subscript) and is_pure(items)
    name = items.func.id if isinstance(items.func, ast.Name) else ""
    if name == "range":
        starred = any(isinstance(arg, ast.Starred) for arg in items.args)
        return not items.keywords and not starred and 1 <= len(items.args) <= 3
    if isinstance(items.func, ast.Attribute) and items.func.attr == "ndindex":
        given = [arg.value if isinstance(arg, ast.Starred) else arg for arg in items.args]
        return not items.keywords and all(map(is_pure, given))
    return (
        name in _ITERABLES
        and not items.keywords
        and all(map(_is_iterable, items.args[:1] if name == "enumerate" else items.args))
    )


def _only_names(target: ast.expr) -> bool:
    """Whether a loop's target consists of names."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_only_names, target.elts))
    return isinstance(target, ast.Name)


def goes_through(loop: ast.For) -> tuple[str, ast.expr] | None:
    """Return the variable that says where a running loop is, and what it goes through: the call of ``range``,
    or the name or attribute that ``enumerate`` numbers.  None: no variable says it."""
    match loop:
        case ast.For(ast.Name(name), ast.Call(ast.Name("range")) as items):
            return name, items
        case ast.For(ast.Tuple([ast.Name(name), other]), ast.Call(ast.Name("enumerate"), [items], [])):
            root = items
            while isinstance(root, ast.Attribute):
                root = root.value
            return None if name in stores(other) or not isinstance(root, ast.Name) else (name, items)
    return None


def may_resume(loop: LoopNode) -> bool:
    """Whether compiled code may do the remaining iterations of a loop that has begun: a ``while``, or a loop
    over what can be computed again and does not change in its body, by `goes_through`."""
    if isinstance(loop, ast.While):
        return is_pure(loop.test)
    place = goes_through(loop)
    if place is None:
        return False
    name, items = place
    read = items.args if isinstance(items, ast.Call) else [items]
    changed = stores(*loop.body)
    again = loads(*read).isdisjoint(changed | stores(loop.target))
    return all(map(is_pure, read)) and again and name not in changed
