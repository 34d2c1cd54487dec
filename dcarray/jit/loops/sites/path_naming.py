"""Names in place of the parts of objects, in statements and in the functions of the program that they call.

This is scalar replacement of the parts of objects: where statements use an object for nothing but parts with
known names, these parts are variables to compiled code.  A function that gets an object, as a method does,
or that uses global ones, gets the parts instead: it is rewritten for each combination of objects.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from dcarray.lowering.runtime.parsing import parse

from ..entry.guards import ObjectGuard, rewritten_function
from ..syntax.access_paths import Unnamed, changed
from ..syntax.appends import append_call, appending_calls, drop_comma, list_of
from ..syntax.definitions import definition, first_parameters, function_of_text, returning
from ..syntax.hoisting import InsideExpression, hoisted
from ..syntax.lambdas import inlined_source
from ..syntax.liveness import live_before
from ..syntax.originals import original
from ..syntax.path_names import Path, appended, has_own_names, numbered, stacked
from ..syntax.source import names_in
from ..syntax.syntax_facts import NONE, Names, loads, stores, walk
from .named_body import Lookup, NamedBody, Paths, Rewritten
from .object_parts import Unread, is_object

__all__ = ["NamedStatements", "named_statements"]


class NamedStatements(NamedTuple):
    """A site's statements in which names stand for parts of objects and for the items appended to lists.

    Attributes
    ----------
    source : str
    read, written : tuple of (str, Path)
        The names, with access paths, of the parts that the statements may read before they assign them, and
        of those that they assign, in the order of the source.
    in_order : bool
        Whether that is also the order in which they are first assigned, whatever conditions hold.
    loads : frozenset of str
        The names that are read somewhere in them.
    lists : tuple of str
        The names of the lists to which they append, in this order.
    grows : bool
        Whether the statements are a loop, which may append several items to each list.
    stacks : tuple of str
        The names of the lists that the statements read, and also lengthen or shorten.
    functions : dict of str to ObjectGuard
        The guards of rewritten functions by their names.
    lookups : tuple of Lookup
    same : tuple of (Path, Path)
        Paths that lead to one variable, of which the first is among those that are read or written.
    """

    source: str
    read: tuple[tuple[str, Path], ...]
    written: tuple[tuple[str, Path], ...]
    in_order: bool
    loads: Names
    lists: tuple[str, ...]
    grows: bool
    stacks: tuple[str, ...]
    functions: dict[str, ObjectGuard]
    lookups: tuple[Lookup, ...]
    same: tuple[tuple[Path, Path], ...]


def named_statements(
    source: str, live: Names, lists: Sequence[str], values: Mapping[str, Any], variables: Names,
    names: Mapping[str, Any], shared: Names = NONE,
) -> NamedStatements:  # fmt: skip
    """Return statements in which names stand for parts of objects, and for the items appended to lists.

    Parameters
    ----------
    source : str
    live : frozenset of str
        The names that the statements bind and that may be read afterwards.
    lists : sequence of str
        The names of lists that grow or shrink.
    values : mapping
        The values of the names that they read.
    variables : frozenset of str
        The names among them that may be local variables.
    names : mapping
        The global names.
    shared : frozenset of str, optional
        The variables of the statements that are global names.

    Raises
    ------
    Unnamed
    """
    if has_own_names(source):
        raise Unnamed("it has names like those that compiled code gives to parts of objects")
    return _named(source, live, lists, values, variables, names, shared, NONE)


def _named(
    source: str, live: Names, lists: Sequence[str], values: Mapping[str, Any], variables: Names,
    names: Mapping[str, Any], shared: Names, rebound: Names,
) -> NamedStatements:  # fmt: skip
    """Return the result of `named_statements`, given the global names that callees assign (``rebound``)."""
    tree = parse(source)
    lines = [line.encode() for line in source.split("\n")]
    growing = {name: calls for name, calls in appending_calls(tree.body[0]).items() if name in lists}
    appending = [call for call in map(append_call, tree.body) if call is not None and _list(call) in lists]
    stacks = [name for name in lists if name not in growing and name not in map(_list, appending)]
    for call in appending:
        drop_comma(call, lines)
    bound = stores(tree)
    paths = Paths(variables | bound, names, rebound | (bound & shared), shared)
    objects = {name: Path(name, ()) for name, v in values.items() if name not in bound and is_object(v)}
    paths.values |= {name: values[name] for name in objects}
    variables_here = {name: paths.variable(name) for name in rebound & loads(tree) - variables - bound}
    objects |= {name: path for name, path in variables_here.items() if path is not None}
    functions = _Functions(paths)
    body = NamedBody(paths, functions.rewritten, lines, objects, values.get)
    for k, call in enumerate(appending):
        body.change(call.func, f"{appended(k)} = ")
    for k, calls in enumerate(growing.values()):
        for call in calls:
            body.change(call.func, f"{appended(k)}.append")
    for node in walk(tree):
        if isinstance(node, ast.Name) and node.id in stacks:
            body.change(node, stacked(stacks.index(node.id)))
    apart = [call.func for call in (*appending, *[call for calls in growing.values() for call in calls])]
    try:
        body.visit(tree, frozenset(map(id, apart)))
    except InsideExpression as inside:
        source = hoisted(source, tree, inside.call, objects, (variables | bound) - shared - objects.keys())
        return _named(source, live, lists, values, variables, names, shared, rebound)
    text = changed(lines, body.changes)
    stmts = parse(text).body
    by_name = paths.by_name
    written = stores(*stmts) & by_name.keys()
    read = live_before(stmts, live | written) & by_name.keys()
    for path in by_name.values():
        if any(step.kind == "cell" and step.key in bound for step in path.steps):
            raise Unnamed(f"{path} has two names")
    for name in written:
        path = by_name[name]
        longer = [
            p for p in by_name.values() if p.root == path.root and p.steps[: len(path.steps)] == path.steps
        ]
        if len(longer) > 1:
            raise Unnamed(f"{path} is bound to another object")
        if path.steps[-1].kind == "cell" and path.steps[-1].key in values:
            raise Unnamed(f"{path} has two names")
    others = frozenset([str(by_name[name].steps[-1].key) for name in written if not by_name[name].root])
    if not others <= paths.bound:
        return _named(source, live, lists, values, variables, names, shared, rebound | others)
    forks = [stmt for stmt in stmts if isinstance(stmt, ast.If | ast.For | ast.While)]
    in_order = len(written) < 2 or written.isdisjoint(stores(*forks))
    return NamedStatements(
        text, tuple([(name, path) for name, path in sorted(by_name.items()) if name in read]),
        tuple([(name, path) for name, path in by_name.items() if name in written]), in_order, loads(*stmts),
        tuple(growing) or tuple(map(_list, appending)), bool(growing), tuple(stacks), functions.guards,
        tuple(paths.lookups), tuple(paths.same),
    )  # fmt: skip


def _list(call: ast.Call) -> str:
    return list_of(ast.Expr(call))


class _Functions:
    """The functions that are rewritten for one site.

    Attributes
    ----------
    guards : dict of str to ObjectGuard
        The guards of the rewritten functions, by their names.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.guards: dict[str, ObjectGuard] = {}
        self._known: dict[Any, Rewritten | None] = {}

    def rewritten(self, function: FunctionType, path: Path, objects: Mapping[str, Path]) -> Rewritten:
        """Return a function rewritten to take, as arguments, the parts of its object parameters and the free
        variables that it has from functions around it."""
        try:
            cells = {name: self._paths.cell(path, name) for name in original(function).co_freevars}
        except Unread:
            raise Unnamed(f"the variables of {function.__name__} are not known") from None
        every = {**objects, **cells}
        key = function, tuple(sorted(every.items()))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._rewrite(function, every)
        rewritten = self._known[key]
        if rewritten is None:
            raise Unnamed(f"{function.__name__} calls itself")
        return rewritten

    def _variables(self, function: FunctionType, tree: ast.FunctionDef) -> dict[str, Path]:
        """Return the paths of a function's global names that are not constant, or that it assigns."""
        code = original(function)
        declared = {name for node in walk(tree) if isinstance(node, ast.Global) for name in node.names}
        if function.__globals__ is not self._paths.names:
            if declared:
                raise Unnamed(f"{function.__name__} binds names of another module")
            return {}
        read = {*names_in(code)}.difference(code.co_varnames, code.co_cellvars, code.co_freevars)
        paths = {name: self._paths.variable(name, name in declared) for name in read}
        return {name: path for name, path in paths.items() if path is not None}

    def _rewrite(self, function: FunctionType, objects: Mapping[str, Path]) -> Rewritten:
        what, code = function.__name__, original(function)
        source = inlined_source(function, code)
        if source is None:
            raise Unnamed(f"the source of {what} is not known")
        try:
            given = {name: self._paths.value(path) for name, path in objects.items() if path.root}
        except Unread:
            raise Unnamed(f"a variable of {what} is not bound") from None
        whole = [name for name, value in given.items() if is_object(value)]
        text, tree = definition(source)
        objects = {**objects, **self._variables(function, tree)}
        if has_own_names(text):
            raise Unnamed(f"{what} has names like those that compiled code gives to parts of objects")
        return self._named(function, text, tree, objects, whole)

    def _named(
        self, function: FunctionType, text: str, tree: ast.FunctionDef, objects: Mapping[str, Path],
        whole: Sequence[str],
    ) -> Rewritten:  # fmt: skip
        """Return a function, of which ``text`` is the source, with names in place of parts of its objects."""
        what, code = function.__name__, original(function)
        if not stores(*tree.body).isdisjoint(whole):
            raise Unnamed(f"{what} assigns to its own parameters")
        names = function.__globals__
        own = frozenset((*code.co_varnames, *code.co_cellvars)) - objects.keys()
        lines = [line.encode() for line in text.split("\n")]
        body = NamedBody(self._paths, self.rewritten, lines, objects, names.get, own, names)
        try:
            for stmt in tree.body:
                body.visit(stmt, frozenset())
        except InsideExpression as inside:
            text = hoisted(text, tree, inside.call, objects, own - {*code.co_cellvars})
            return self._named(function, text, function_of_text(text), objects, whole)
        parts = tuple(sorted(body.used))
        if parts:
            body.changes.append(first_parameters(tree, lines, parts))
        text = changed(lines, body.changes)
        named = function_of_text(text)
        written = tuple(sorted(stores(*named.body).intersection(parts)))
        if written:
            text = changed(lines, [*body.changes, *returning(tree, written)])
            named = function_of_text(text)
        read = loads(*named.body)
        if not read.isdisjoint([name for name, path in objects.items() if path.root]):
            raise Unnamed(f"{what} passes an object on instead of using its attributes")
        inner = {name: guard.entry_value for name, guard in self.guards.items() if name in read}
        values = {name: self._paths.current(self._paths.by_name[name]) for name in parts}
        guard = rewritten_function(function, text, named, inner, values)
        if guard is None:
            raise Unnamed(f"{what} uses names that compiled code does not know")
        name = numbered(named.name, len(self.guards))
        self.guards[name] = guard
        return Rewritten(name, parts, written)
