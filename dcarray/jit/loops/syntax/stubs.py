"""Stubs of ``python -m dcarray hints``: ``script.hints.pyi`` beside ``script.py`` has types of its functions.

A stub describes the functions as they were when it was made: functions whose arguments have changed since are
ignored.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from dcarray.core.unpatched import open_file
from dcarray.lowering.runtime.parsing import parse

__all__ = ["Hint", "Stub", "function_at", "functions_in", "qualname_of", "stub_of", "stub_path"]

_ENDING = ".hints.pyi"
_SECONDS = re.compile(r"# line \d+, \d+ calls?, ([\d.e+-]+) s")
_known: dict[str, tuple[tuple[int, int], Stub]] = {}  # by path, with the time and size of the file


class Hint(NamedTuple):
    """The hint of a stub for one function.

    Attributes
    ----------
    arguments : ast.arguments
        The function's arguments, annotated with types.
    file : str
        The stub's path.
    names : dict
        The names that the types use.
    seconds : float
        How long the calls took in the run from which the stub was made; 0.0 if the stub does not say.
    """

    arguments: ast.arguments
    file: str
    names: dict[str, Any]
    seconds: float

    @property
    def has_arrays(self) -> bool:
        """Whether the function gets arrays, or is a method of an object with arrays."""
        spec = _arguments(self.arguments)
        return not spec[0].annotation or any(isinstance(a.annotation, ast.Subscript) for a in spec)

    @property
    def is_complete(self) -> bool:
        """Whether all arguments have types; ``self`` of a method needs none."""
        return all(a.annotation for a in _arguments(self.arguments))


class Stub:
    """The hints that a stub file holds.

    Parameters
    ----------
    path : str
    text : str

    Attributes
    ----------
    path : str
    problem : str
        Why it is no stub; empty if it is one.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path, self.problem = path, ""
        self._names: dict[str, Any] | None = None
        self._heading: list[ast.stmt] = []  # imports and symbols
        self._functions: dict[str, ast.FunctionDef] = {}
        self._lines = text.split("\n")
        try:
            tree = parse(text)
        except (SyntaxError, ValueError) as error:
            self.problem = f"{os.path.basename(path)} is not a stub: {error}"
            return
        kinds = ast.Import | ast.ImportFrom | ast.Assign
        self._heading = [stmt for stmt in tree.body if isinstance(stmt, kinds)]
        self._functions = {
            name: node
            for name, node in functions_in(tree)
            if any(a.annotation for a in _arguments(node.args))
        }

    def __contains__(self, qualname: str) -> bool:
        return qualname in self._functions

    def hint(self, qualname: str, arguments: ast.arguments) -> Hint | str:
        """Return the hint for a function with these arguments, or the reason why there is none."""
        definition = self._functions.get(qualname)
        if self.problem or definition is None:
            return self.problem or f"{os.path.basename(self.path)} says nothing of {qualname}"
        there, now = _signature(definition.args), _signature(arguments)
        if there != now:
            return (
                f"{os.path.basename(self.path)} is out of date: it is of {qualname}({there}), "
                f"not of {qualname}({now})"
            )
        names = self._evaluated()
        seconds = _SECONDS.search(self._lines[definition.lineno - 1])
        return self.problem or Hint(definition.args, self.path, names, float(seconds[1]) if seconds else 0.0)

    def _evaluated(self) -> dict[str, Any]:
        if self._names is None:
            names: dict[str, Any] = {}
            heading = ast.Module(body=[*self._heading], type_ignores=[])
            try:
                exec(compile(heading, self.path, "exec", dont_inherit=True), names)
            except Exception as error:
                self.problem = f"{os.path.basename(self.path)} fails: {type(error).__name__}: {error}"
            self._names = names
        return self._names


def stub_path(file: str) -> str:
    """Return the path of the stub of a file."""
    return (file[:-3] if file.endswith(".py") else file) + _ENDING


def stub_of(file: str) -> Stub | None:
    """Return the stub of a file, if it has one."""
    path = stub_path(file)
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    version = state.st_mtime_ns, state.st_size
    known = _known.get(path)
    if known is None or known[0] != version:
        try:
            with open_file(path, encoding="utf-8") as opened:
                known = _known[path] = version, Stub(path, opened.read())
        except (OSError, UnicodeDecodeError) as error:
            known = version, Stub(path, "")
            known[1].problem = f"{os.path.basename(path)} cannot be read: {error}"
    return known[1]


def qualname_of(code: CodeType) -> str:
    """Return a code object's qualified name as stubs write it, such as ``Class.method``."""
    return code.co_qualname.replace(".<locals>", "")


def functions_in(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a syntax tree with their names (``Class.method``, ``outer.inner``)."""
    todo = [("", node) for node in ast.iter_child_nodes(tree)]
    while todo:
        prefix, node = todo.pop()
        inner = prefix
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{node.name}."
        todo += [(inner, child) for child in ast.iter_child_nodes(node)]


def function_at(file: str, line: int) -> str:
    """Return the name of the function that contains a line; ``<module>`` if none does, or without the
    file."""
    try:
        tree = parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return "<module>"
    around = [(node.lineno, name) for name, node in functions_in(tree) if node.lineno <= line <= _last(node)]
    return max(around, default=(0, "<module>"))[1]


def _last(node: ast.FunctionDef) -> int:
    return node.end_lineno or node.lineno


def _arguments(spec: ast.arguments) -> list[ast.arg]:
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]


def _signature(spec: ast.arguments) -> str:
    """Return the arguments of a function as a text without types and defaults."""
    bare = ast.arguments(
        [ast.arg(a.arg) for a in spec.posonlyargs],
        [ast.arg(a.arg) for a in spec.args],
        None if spec.vararg is None else ast.arg(spec.vararg.arg),
        [ast.arg(a.arg) for a in spec.kwonlyargs],
        [None] * len(spec.kwonlyargs),
        None if spec.kwarg is None else ast.arg(spec.kwarg.arg),
        [],
    )
    return ast.unparse(bare)
