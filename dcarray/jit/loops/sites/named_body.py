"""Replacement of the parts of objects by names in one body: statements, or a function of the program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..entry.guards import ObjectGuard, constants_in, guard_of
from ..syntax.access_paths import Chain, Change, Unnamed, chain_of
from ..syntax.hoisting import InsideExpression
from ..syntax.originals import called_by, original
from ..syntax.path_names import IGNORED, Path, Step
from ..syntax.syntax_facts import NONE, Names, children
from .keys import MISSING
from .object_parts import Unread, function_of, is_object, part, place

__all__ = ["Lookup", "NamedBody", "Paths", "Rewritten"]

_NOT_CONSTANT = (np.ndarray, np.generic, tuple, list)


class Lookup(NamedTuple):
    """A function of the program and the access path that led to it: an attribute of the object at ``path``;
    or a global name, if the path has no steps."""

    path: Path
    function: Any


class Rewritten(NamedTuple):
    """A function rewritten to take parts of objects as its first arguments: its name, the names of these
    parts, and the names of the parts that it assigns, which it returns before its result."""

    name: str
    parts: tuple[str, ...]
    written: tuple[str, ...]


class Paths:
    """The access paths of one site's statements and of the functions that they call.

    Parameters
    ----------
    variables : frozenset of str
        The names that are variables of the statements.
    names : mapping
        The global names.
    bound : frozenset of str
        Global names that the statements, or functions that they call, assign.
    shared : frozenset of str
        The variables that are global names.

    Attributes
    ----------
    by_name : dict of str to Path
        The paths that have been given names so far.
    lookups : list of Lookup
    values : dict of str
        The objects that paths begin with, by name; the empty name stands for the dictionary of global names.
    same : list of (Path, Path)
        Pairs of paths that lead to the same variable, which several functions share; the first one is used.
    """

    def __init__(self, variables: Names, names: Mapping[str, Any], bound: Names, shared: Names) -> None:
        self._variables, self.names, self.bound, self._shared = variables, names, bound, shared
        self.by_name: dict[str, Path] = {}
        self.lookups: list[Lookup] = []
        self.values: dict[str, Any] = {"": names}
        self.same: list[tuple[Path, Path]] = []
        self._cells: dict[Any, Path] = {}

    def value(self, path: Path) -> Any:
        """Return the object at the end of an access path; raises `Unread` if it cannot be read."""
        value = self.values[path.root]
        for step in path.steps:
            value = part(value, step)
        return value

    def current(self, path: Path) -> Any:
        """Return the object at the end of an access path now; `MISSING` if it cannot be read."""
        try:
            return self.value(path)
        except Unread:
            return MISSING

    def name(self, path: Path) -> str:
        """Return the name that replaces a path; the path gets one if it has none."""
        name = str(path.steps[-1].key) if not path.root else ""
        name = name if name in self._shared else path.name
        self.by_name[name] = path
        return name

    def variable(self, name: str, is_bound: bool = False) -> Path | None:
        """Return the path of a global name if it is not constant, or ``is_bound`` (assigned); else None."""
        if (
            not is_bound
            and name not in self.bound
            and not issubclass(type(self.names.get(name)), _NOT_CONSTANT)
        ):
            return None
        return Path("", (Step("item", name),))

    def binds(self, function: FunctionType) -> bool:
        """Whether the value of a name that is assigned somewhere is part of this function's description."""
        guard = guard_of(function) if self.bound else None
        return isinstance(guard, ObjectGuard) and not self.bound.isdisjoint(constants_in(guard.entry_value))

    def cell(self, function: Path, name: str) -> Path:
        """Return the path of a function's free variable; raises `Unread` if it has none of this name."""
        step = Step("cell", name)
        path = function.longer(step)
        first = self._cells.setdefault(place(self.value(function), step), path)
        if first != path and (first, path) not in self.same:
            self.same.append((first, path))
        return first

    def global_object(self, name: str, names: Mapping[str, Any]) -> Path | None:
        """Return the path of the object with a global name; None: none, or not certainly this."""
        if names is not self.names or name in self._variables:
            return None
        if name not in self.values:
            value = names.get(name, MISSING)
            if not is_object(value):
                return None
            self.values[name] = value
        return Path(name, ())


class NamedBody:
    """The changes of one body: of statements, or of a function.

    Parameters
    ----------
    paths : Paths
    rewrite : callable
        ``rewrite(function, path, objects)`` gives a function that takes parts of its object arguments.
    lines : sequence of bytes
        The lines of the body's source.
    objects : mapping of str to Path
        The paths of names that mean objects, or variables of functions around this one.
    value_of : callable
        Gives the value of any other name, or None if it has none.
    own : frozenset of str, optional
        The function's local names, if the body is a function's.
    names : mapping, optional
        The function's global names, if the body is a function's.
    """

    def __init__(
        self, paths: Paths, rewrite: Callable[[FunctionType, Path, Mapping[str, Path]], Rewritten],
        lines: Sequence[bytes], objects: Mapping[str, Path],
        value_of: Callable[[str], Any], own: Names = NONE, names: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._paths, self._rewrite, self._lines, self._objects = paths, rewrite, lines, objects
        self._value_of, self._own, self._names = value_of, own, names
        self.changes: list[Change] = []
        self.used: set[str] = set()  # names of parts

    def change(self, node: ast.expr | ast.stmt, text: str) -> None:
        change = Change.of(node, text)
        if change is None:
            raise Unnamed("a part of an object is written on several lines")
        self.changes.append(change)

    def visit(self, node: ast.AST, apart: frozenset[Any]) -> None:
        """Note the replacements for a node and its children, except the nodes in ``apart``."""
        if id(node) in apart:
            return
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            if self._call(node.value, apart, node):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    self.visit(target, apart)
                return
        elif isinstance(node, ast.Call) and self._call(node, apart):
            return
        if isinstance(node, ast.Nonlocal | ast.Global):
            self.change(node, "pass")
            return
        if (
            isinstance(node, ast.Attribute | ast.Subscript | ast.Name)
            and (chain := chain_of(node)) is not None
        ):
            self._chain(chain)
            return
        for child in children(node):
            self.visit(child, apart)

    def _path(self, root: str) -> Path | None:
        """Return the path of the object that a name means; None if it means no object with parts."""
        path = self._objects.get(root)
        if path is None and self._names is not None and root not in self._own:
            path = self._paths.global_object(root, self._names)
        return path

    def _chain(self, chain: Chain) -> None:
        """Note the replacement of a chain of attributes and items by the name of what it leads to."""
        path = self._path(chain.root)
        if path is None:
            return
        if not path.root or (path.steps and not is_object(self._paths.value(path))):  # a variable
            self._name(chain.name, path)
            return
        value = self._paths.value(path)
        for k, step in enumerate(chain.steps):
            if not is_object(value) or (step.kind == "item") != (type(value) is dict):
                if k:
                    self._name(chain.nodes[k - 1], path)
                else:
                    self._name_dictionary(chain, value)
                return
            last = k + 1 == len(chain.nodes)
            if last and chain.is_bound():
                if isinstance(getattr(chain.nodes[-1], "ctx", None), ast.Del):
                    raise Unnamed("it deletes parts of objects")
                self._name(chain.nodes[k], path.longer(step))
                return
            callee = function_of(value, step)
            if callee is not None and callee.kind == "property":
                rewritten = self._rewritten(
                    callee.function, path.longer(step), _first_parameter(callee.function, path)
                )
                if rewritten.written:
                    raise Unnamed(f"{path.longer(step)} binds parts of objects")
                self._paths.lookups.append(Lookup(path.longer(step), callee.function))
                self.change(chain.nodes[k], f"{rewritten.name}({', '.join([*rewritten.parts, 'None'])})")
                return
            path = path.longer(step)
            try:
                value = part(value, step)
            except Unread:
                raise Unnamed(f"{path} is missing or is computed by code") from None
        if chain.nodes and (type(value) is dict or not is_object(value)):
            self._name(chain.nodes[-1], path)
        elif not chain.nodes:
            self._name_dictionary(chain, value)

    def _name_dictionary(self, chain: Chain, value: Any) -> None:
        """Note the replacement of a function's global name of a dictionary that is used as a whole."""
        if type(value) is dict and chain.root not in self._objects:
            self._name(chain.name, Path("", (Step("item", chain.root),)))

    def _name(self, node: ast.expr, path: Path) -> None:
        name = self._paths.name(path)
        self.used.add(name)
        self.change(node, name)

    def _call(self, node: ast.Call, apart: frozenset[Any], stmt: ast.Expr | ast.Assign | None = None) -> bool:
        """Note the replacements for a call of a function that has to be rewritten; return whether the call is
        of that kind.  A function that assigns parts of objects may only be called as a whole statement."""
        chain = chain_of(node.func)
        if chain is None or any(isinstance(arg, ast.Starred) for arg in node.args):
            return False
        callee = self._callee(chain)
        if callee is None:
            return False
        function, owner, lookup = callee
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
        if not (objects or is_object(function) or self._paths.binds(function)):
            return False
        rewritten = self._rewritten(function, lookup.path, objects)
        self._paths.lookups.append(lookup)
        if rewritten.written:
            self._bind(stmt, node, rewritten)
        first = [*rewritten.parts, *["None"] * (owner is not None)]
        comma = ", " if first and (node.args or node.keywords) else ""
        self._replace_callee(node.func, f"{rewritten.name}({', '.join(first)}{comma}")
        for arg in whole:
            self.change(arg, "None")
        for arg in [*node.args, *[one.value for one in node.keywords]]:
            if arg not in whole:
                self.visit(arg, apart)
        return True

    def _bind(self, stmt: ast.Expr | ast.Assign | None, call: ast.Call, rewritten: Rewritten) -> None:
        """Note the replacements to assign the parts that a function returns before its result."""
        if stmt is None or (isinstance(stmt, ast.Assign) and len(stmt.targets) > 1):
            raise InsideExpression(call)
        self.used.update(rewritten.written)
        first, start = ", ".join(rewritten.written), stmt.col_offset
        if isinstance(stmt, ast.Expr):
            self.changes.append(Change(stmt.lineno, start, start, f"{first}, {IGNORED} = "))
            return
        end = stmt.targets[0].end_col_offset or 0
        self.changes.append(Change(stmt.lineno, start, start, f"{first}, ("))  # the target is bound last
        self.changes.append(Change(stmt.targets[0].end_lineno or 0, end, end, ")"))

    def _replace_callee(self, node: ast.expr, text: str) -> None:
        """Replace the callee of a call by a text, which includes the opening parenthesis."""
        change = Change.of(node, text)
        if change is None or self._lines[change.line - 1][change.end : change.end + 1] != b"(":
            raise Unnamed("the name of the called function is written on several lines")
        self.changes.append(change._replace(end=change.end + 1))

    def _callee(self, chain: Chain) -> tuple[Any, Path | None, Lookup] | None:
        """Return the program's function that a chain of attributes calls, the path of the object whose method
        it is, and its `Lookup`; None if it calls no such function."""
        path = self._path(chain.root)
        if not chain.steps:
            function: Any = MISSING
            if path is not None:
                function = self._paths.value(path) if path.root else None
            elif chain.root not in self._own:
                function = self._value_of(chain.root)
                if self._paths.names.get(chain.root) is not function:
                    return None
            function = called_by(function)
            if type(function) is not FunctionType:
                return None
            return function, None, Lookup(path or Path(chain.root, ()), function)
        if path is None or not path.root:
            return None
        for step in chain.steps[:-1]:
            path = path.longer(step)
        try:
            owner = self._paths.value(path)
        except Unread:
            return None
        callee = function_of(owner, chain.steps[-1]) if is_object(owner) else None
        if callee is None or callee.kind == "property":
            return None
        lookup = Lookup(path.longer(chain.steps[-1]), callee.function)
        return callee.function, path if callee.kind == "method" else None, lookup

    def _object(self, node: ast.expr) -> Path | None:
        """Return the path of the object that is passed as an argument; None if it is no object."""
        chain = chain_of(node)
        path = self._path(chain.root) if chain is not None else None
        if chain is None or path is None or not path.root:
            return None
        path = path.longer(*chain.steps)
        try:
            return path if is_object(self._paths.value(path)) else None
        except Unread:
            return None

    def _rewritten(self, function: FunctionType, path: Path, objects: Mapping[str, Path]) -> Rewritten:
        rewritten = self._rewrite(function, path, objects)
        self.used.update(rewritten.parts)
        return rewritten


def _first_parameter(function: FunctionType, path: Path) -> dict[str, Path]:
    return {name: path for name in original(function).co_varnames[: original(function).co_argcount][:1]}
