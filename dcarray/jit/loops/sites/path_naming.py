"""Names in place of the parts of objects, in statements and in the functions of the program that they call.

This is scalar replacement of the parts of objects: where statements use an object for nothing but parts with
known names, these parts are variables to compiled code.  A function that gets an object, as a method does,
or that uses global ones, gets the parts instead: it is rewritten for each combination of objects.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from ..entry.globals import ObjectGuard, rewritten_function
from ..entry.guards import guard_of
from ..syntax.access_paths import Chain, Change, Unnamed, chain_of, changed
from ..syntax.appends import append_call, drop_comma, list_of
from ..syntax.definitions import definition, first_parameters, function_of_text, returning
from ..syntax.liveness import live_before
from ..syntax.originals import original
from ..syntax.path_names import IGNORED, Path, Step, appended, has_own_names, numbered
from ..syntax.source import source_of
from ..syntax.syntax_facts import NONE, Names, children, loads, stores
from .keys import MISSING
from .object_parts import Unread, function_of, is_object, part

__all__ = ["Lookup", "NamedStatements", "Unnamed", "named_statements"]


class Lookup(NamedTuple):
    """How a function was found: as a global name, of which ``path`` has no steps, or on an object."""

    path: Path
    function: Any


class NamedStatements(NamedTuple):
    """Statements with names in place of parts of objects, and of items that are appended.

    Attributes
    ----------
    source : str
    read, written : tuple of Path
        The parts that they may read before they bind them, and those that they bind; the latter in order.
    loads : frozenset of str
        The names that are read somewhere in them.
    lists : tuple of str
        The names of the lists to which they append, in this order.
    functions : dict of str to ObjectGuard
        The guards of rewritten functions by their names.
    lookups : tuple of Lookup
    """

    source: str
    read: tuple[Path, ...]
    written: tuple[Path, ...]
    loads: Names
    lists: tuple[str, ...]
    functions: dict[str, ObjectGuard]
    lookups: tuple[Lookup, ...]


def named_statements(
    source: str, live: Names, lists: Sequence[str], values: Mapping[str, Any], variables: Names,
    names: Mapping[str, Any],
) -> NamedStatements:  # fmt: skip
    """Return statements with names in place of parts of objects, and of what is appended.

    Parameters
    ----------
    source : str
    live : frozenset of str
        The names that the statements bind and that may be read afterwards.
    lists : sequence of str
        The names of lists to which they append, and do nothing else.
    values : mapping
        The values of the names that they read.
    variables : frozenset of str
        Those of them that may be local ones.
    names : mapping
        The global names.

    Raises
    ------
    Unnamed
    """
    if has_own_names(source):
        raise Unnamed("it has names like those that compiled code gives to parts of objects")
    tree = ast.parse(source)
    lines = [line.encode() for line in source.split("\n")]
    appending = [call for call in map(append_call, tree.body) if call is not None and _list(call) in lists]
    for call in appending:
        drop_comma(call, lines)
    bound = stores(tree)
    naming = _Naming(variables | bound, names)
    objects = {name: Path(name, ()) for name, v in values.items() if name not in bound and is_object(v)}
    naming.values = {name: values[name] for name in objects}
    body = _Body(naming, lines, objects, values.get)
    for k, call in enumerate(appending):
        body.change(call.func, f"{appended(k)} = ")
    body.visit(tree, frozenset([id(call.func) for call in appending]))
    text = changed(lines, body.changes)
    stmts = ast.parse(text).body
    paths = naming.paths
    written = stores(*stmts) & paths.keys()
    read = live_before(stmts, live | written) & paths.keys()
    for name in written:
        path = paths[name]
        longer = [
            p for p in paths.values() if p.root == path.root and p.steps[: len(path.steps)] == path.steps
        ]
        if len(longer) > 1:
            raise Unnamed(f"{path} is bound to another object")
    return NamedStatements(
        text,
        tuple([path for name, path in sorted(paths.items()) if name in read]),
        tuple([path for name, path in paths.items() if name in written]),
        loads(*stmts),
        tuple(map(_list, appending)),
        naming.functions,
        tuple(naming.lookups),
    )


def _list(call: ast.Call) -> str:
    return list_of(ast.Expr(call))


class _Rewritten(NamedTuple):
    """A function that gets parts of objects as its first arguments: its name, the names of the parts, and of
    those that it binds, which it returns before its result."""

    name: str
    parts: tuple[str, ...]
    written: tuple[str, ...]


class _Naming:
    """The names that are given so far, in all bodies."""

    def __init__(self, variables: Names, names: Mapping[str, Any]) -> None:
        self._variables, self.names = variables, names
        self.paths: dict[str, Path] = {}
        self.functions: dict[str, ObjectGuard] = {}
        self.lookups: list[Lookup] = []
        self.values: dict[str, Any] = {}  # of roots
        self._known: dict[Any, _Rewritten | None] = {}

    def value(self, path: Path) -> Any:
        """Return the object at the end of an access path; raises `Unread` if it cannot be read."""
        value = self.values[path.root]
        for step in path.steps:
            value = part(value, step)
        return value

    def global_object(self, name: str, names: Mapping[str, Any]) -> Path | None:
        """Return the path of an object with a global name; None if there is none, or it may be another's."""
        if names is not self.names or name in self._variables:
            return None
        if name not in self.values:
            value = names.get(name, MISSING)
            if not is_object(value):
                return None
            self.values[name] = value
        return Path(name, ())

    def rewritten(self, function: FunctionType, objects: Mapping[str, Path]) -> _Rewritten:
        """Return a function with names for parts of the objects that some of its parameters are."""
        key = function, tuple(sorted(objects.items()))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._rewrite(function, objects)
        found = self._known[key]
        if found is None:
            raise Unnamed(f"{function.__name__} calls itself")
        return found

    def _rewrite(self, function: FunctionType, objects: Mapping[str, Path]) -> _Rewritten:
        what, code = function.__name__, original(function)
        source = source_of(function, code)
        if source is None or code.co_freevars:
            raise Unnamed(f"the source of {what} is not known, or it uses names of a function around it")
        text, tree = definition(source)
        if has_own_names(text) or not stores(*tree.body).isdisjoint(objects):
            raise Unnamed(f"{what} binds its parameters anew")
        names = function.__globals__
        own = frozenset((*code.co_varnames, *code.co_cellvars)) - objects.keys()
        lines = [line.encode() for line in text.split("\n")]
        body = _Body(self, lines, objects, names.get, own, names)
        for stmt in tree.body:
            body.visit(stmt, frozenset())
        parts = tuple(sorted(body.used))
        if parts:
            body.changes.append(first_parameters(tree, lines, parts))
        text = changed(lines, body.changes)
        named = function_of_text(text)
        written = tuple(sorted(stores(*named.body).intersection(parts)))
        if written:
            text = changed(lines, [*body.changes, *returning(tree, written)])
            named = function_of_text(text)
        found = loads(*named.body)
        if not found.isdisjoint(objects):
            raise Unnamed(f"{what} uses an object as a whole")
        inner = {name: guard.entry_value for name, guard in self.functions.items() if name in found}
        guard = rewritten_function(function, text, named, inner, frozenset(parts))
        if guard is None:
            raise Unnamed(f"{what} uses names that compiled code does not know")
        name = numbered(what, len(self.functions))
        self.functions[name] = guard
        return _Rewritten(name, parts, written)


class _Body:
    """The changes of one body: of statements, or of a function.

    Parameters
    ----------
    naming : _Naming
    lines : sequence of bytes
        Its text.
    objects : mapping of str to Path
        The names that are objects.
    value_of : callable
        Gives the value of another name, or None.
    own : frozenset of str, optional
        Local names of a function.
    names : mapping, optional
        The global names of a function.
    """

    def __init__(
        self, naming: _Naming, lines: Sequence[bytes], objects: Mapping[str, Path],
        value_of: Callable[[str], Any], own: Names = NONE, names: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._naming, self._lines, self._objects = naming, lines, objects
        self._value_of, self._own, self._names = value_of, own, names
        self.changes: list[Change] = []
        self.used: set[str] = set()  # names of parts

    def change(self, node: ast.expr, text: str) -> None:
        made = Change.of(node, text)
        if made is None:
            raise Unnamed("a part of an object is written on several lines")
        self.changes.append(made)

    def visit(self, node: ast.AST, apart: frozenset[Any]) -> None:
        """Make the changes of a node, without some that are in it."""
        if id(node) in apart:
            return
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            if self._call(node.value, apart, node):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    self.visit(target, apart)
                return
        elif isinstance(node, ast.Call) and self._call(node, apart):
            return
        if isinstance(node, ast.Attribute | ast.Subscript) and (chain := chain_of(node)) is not None:
            self._chain(chain)
            return
        for child in children(node):
            self.visit(child, apart)

    def _path(self, root: str) -> Path | None:
        """Return the path of the object that a name is; None if it is none."""
        found = self._objects.get(root)
        if found is None and self._names is not None and root not in self._own:
            found = self._naming.global_object(root, self._names)
        return found

    def _chain(self, chain: Chain) -> None:
        path = self._path(chain.root)
        if path is None:
            return
        value = self._naming.value(path)
        for k, step in enumerate(chain.steps):
            if not is_object(value) or step.is_item != (type(value) is dict):
                if k:
                    self._name(chain.nodes[k - 1], path)
                return
            last = k + 1 == len(chain.nodes)
            if last and chain.is_bound():
                if isinstance(getattr(chain.nodes[-1], "ctx", None), ast.Del):
                    raise Unnamed("it deletes parts of objects")
                self._name(chain.nodes[k], _longer(path, step))
                return
            callee = function_of(value, step)
            if callee is not None and callee.kind == "property":
                made = self._rewritten(callee.function, _first_parameter(callee.function, path))
                if made.written:
                    raise Unnamed(f"{_longer(path, step)} binds parts of objects")
                self._naming.lookups.append(Lookup(_longer(path, step), callee.function))
                self.change(chain.nodes[k], f"{made.name}({', '.join([*made.parts, 'None'])})")
                return
            path = _longer(path, step)
            try:
                value = part(value, step)
            except Unread:
                raise Unnamed(f"{path} is not a plain attribute or item that is there") from None
        if not is_object(value):
            self._name(chain.nodes[-1], path)

    def _name(self, node: ast.expr, path: Path) -> None:
        self._naming.paths[path.name] = path
        self.used.add(path.name)
        self.change(node, path.name)

    def _call(self, node: ast.Call, apart: frozenset[Any], stmt: ast.Expr | ast.Assign | None = None) -> bool:
        """Make the changes of a call of a function that has to be rewritten; returns whether it is one. A
        function that binds parts of objects may be all of a statement only."""
        chain = chain_of(node.func)
        if chain is None or any(isinstance(arg, ast.Starred) for arg in node.args):
            return False
        found = self._callee(chain)
        if found is None:
            return False
        function, owner, lookup = found
        code = original(function)
        places = [*code.co_varnames[: code.co_argcount]]
        objects = {places.pop(0): owner} if owner is not None and places else {}
        whole: list[ast.expr] = []
        given = [*zip(places, node.args, strict=False)]
        given += [(one.arg, one.value) for one in node.keywords if one.arg is not None]
        for name, arg in given:
            path = self._object(arg)
            if path is not None:
                objects[name] = path
                whole.append(arg)
        if not objects and guard_of(function) is not None:
            return False
        made = self._rewritten(function, objects)
        self._naming.lookups.append(lookup)
        if made.written:
            self._bind(stmt, made)
        first = [*made.parts, *["None"] * (owner is not None)]
        comma = ", " if first and (node.args or node.keywords) else ""
        self._replace_callee(node.func, f"{made.name}({', '.join(first)}{comma}")
        for arg in whole:
            self.change(arg, "None")
        for arg in [*node.args, *[one.value for one in node.keywords]]:
            if arg not in whole:
                self.visit(arg, apart)
        return True

    def _bind(self, stmt: ast.Expr | ast.Assign | None, made: _Rewritten) -> None:
        """Make the changes by which a statement binds what a function returns before its result."""
        if stmt is None or (isinstance(stmt, ast.Assign) and len(stmt.targets) > 1):
            raise Unnamed("a function that binds parts of objects is called inside of an expression")
        self.used.update(made.written)
        first, start = ", ".join(made.written), stmt.col_offset
        if isinstance(stmt, ast.Expr):
            self.changes.append(Change(stmt.lineno, start, start, f"{first}, {IGNORED} = "))
            return
        end = stmt.targets[0].end_col_offset or 0
        self.changes.append(Change(stmt.lineno, start, start, f"{first}, ("))  # the target is bound last
        self.changes.append(Change(stmt.targets[0].end_lineno or 0, end, end, ")"))

    def _replace_callee(self, node: ast.expr, text: str) -> None:
        """Replace what is called, and the parenthesis after it."""
        made = Change.of(node, text)
        if made is None or self._lines[made.line - 1][made.end : made.end + 1] != b"(":
            raise Unnamed("what is called is written on several lines")
        self.changes.append(made._replace(end=made.end + 1))

    def _callee(self, chain: Chain) -> tuple[Any, Path | None, Lookup] | None:
        """Return the function of the program that is called, the object whose method it is, and how it was
        found."""
        if not chain.steps:
            if chain.root in self._own or chain.root in self._objects:
                return None
            function: Any = self._value_of(chain.root)
            if type(function) is not FunctionType or self._naming.names.get(chain.root) is not function:
                return None
            return function, None, Lookup(Path(chain.root, ()), function)
        path = self._path(chain.root)
        if path is None:
            return None
        for step in chain.steps[:-1]:
            path = _longer(path, step)
        try:
            owner = self._naming.value(path)
        except Unread:
            return None
        callee = function_of(owner, chain.steps[-1]) if is_object(owner) else None
        if callee is None or callee.kind == "property":
            return None
        lookup = Lookup(_longer(path, chain.steps[-1]), callee.function)
        return callee.function, path if callee.kind == "method" else None, lookup

    def _object(self, node: ast.expr) -> Path | None:
        """Return the path of the object that an argument is; None if it is none."""
        chain = chain_of(node)
        path = self._path(chain.root) if chain is not None else None
        if chain is None or path is None:
            return None
        path = Path(path.root, (*path.steps, *chain.steps))
        try:
            return path if is_object(self._naming.value(path)) else None
        except Unread:
            return None

    def _rewritten(self, function: FunctionType, objects: Mapping[str, Path]) -> _Rewritten:
        made = self._naming.rewritten(function, objects)
        self.used.update(made.parts)
        return made


def _first_parameter(function: FunctionType, path: Path) -> dict[str, Path]:
    return {name: path for name in original(function).co_varnames[: original(function).co_argcount][:1]}


def _longer(path: Path, step: Step) -> Path:
    return Path(path.root, (*path.steps, step))
