"""The source of a function, if it is certain to be that: compiled as it is found, it gives the very code that
the function has.

A file may have changed since it was imported, code may have been made without a file, and some tools compile
something else than what the file says (pytest does with ``assert``).  Then there is no source.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .syntax_facts import facts

_FUTURE = 0x1FF0000  # the flags of ``from __future__`` in a code object


@dataclass(frozen=True, slots=True)
class Source:
    """A function's source.

    Attributes
    ----------
    tree : ast.FunctionDef
        With the positions of the file.
    lines : tuple of str
        The lines of the file from ``first`` on.
    first : int
    code : code object
    imported : tuple of str
        The global names that the module has imported, as far as the function reads them: attributes of these
        are compiled in another way.
    """

    tree: ast.FunctionDef
    lines: tuple[str, ...]
    first: int
    code: CodeType
    imported: tuple[str, ...]

    def text(self, node: ast.stmt) -> str:
        """A statement without indentation."""
        first = (
            node.decorator_list[0].lineno if isinstance(node, ast.FunctionDef) and node.decorator_list else 0
        )
        start, stop = (first or node.lineno) - self.first, (node.end_lineno or node.lineno) - self.first
        lines = list(self.lines[start : stop + 1])
        lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
        indent = node.col_offset
        return "\n".join(line[min(indent, len(line) - len(line.lstrip())) :].rstrip("\r\n") for line in lines)

    def faithful(self, node: ast.stmt) -> bool:
        """Does the text of a statement mean what the statement does?  In it, texts over several lines lose
        some of their blanks."""
        return node.col_offset == 0 or not facts(node).long

    def compiled(self, tree: ast.FunctionDef) -> CodeType | None:
        """The code of a function, compiled where the function was."""
        code = self.code
        body: list[ast.stmt] = [tree]
        if code.co_freevars:
            outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass").body[0]
            assert isinstance(outer, ast.FunctionDef)
            outer.body = body
            body = [outer]
        imports = ast.parse("".join(f"import {name}\n" for name in self.imported)).body
        module = ast.Module(body=[*imports, *body], type_ignores=[])
        try:
            whole = compile(
                module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True
            )
        except (SyntaxError, ValueError, RecursionError):
            return None
        found = _inside(whole, tree.name, 2 if code.co_freevars else 1)
        return None if found is None else found.replace(co_qualname=code.co_qualname)


def source_of(function: FunctionType, code: CodeType) -> Source | None:
    """The source of a function that has this code, or None if that is not certain."""
    if code.co_name == "<lambda>" or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return None
    first = code.co_firstlineno
    try:
        whole = linecache.getlines(code.co_filename, function.__globals__)
        lines = whole[first - 1 :]
        if not lines:
            return None
        try:
            block = _block(lines, _last(code) - first)
            tree = _parsed(block, first)
        except SyntaxError:  # it ends somewhere else: this takes more time
            block = inspect.getblock(lines)
            tree = _parsed(block, first)
    except (OSError, SyntaxError, ValueError, IndexError, RecursionError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        return None
    found = Source(tree, tuple(block), first, code, _imported(code, function.__globals__))
    if _equal(found.compiled(tree), code):
        return found
    names = _imports("".join(whole))
    found = replace(found, imported=tuple([name for name in code.co_names if name in names]))
    return found if _equal(found.compiled(tree), code) else None


def _last(code: CodeType) -> int:
    """The last line that a code has instructions for."""
    lines = [line for *_, line in code.co_lines() if line is not None]
    inner = [_last(const) for const in code.co_consts if isinstance(const, CodeType)]
    return max(*lines, *inner, code.co_firstlineno)


def _block(lines: list[str], last: int) -> list[str]:
    """The lines of a function, as its indentation shows them; ``last`` is one that belongs to it."""
    blanks = len(lines[0]) - len(lines[0].lstrip())
    end = last + 1
    while end < len(lines):
        text = lines[end].lstrip()
        if text and text[0] not in "#)]}" and len(lines[end]) - len(text) <= blanks:
            break
        end += 1
    return lines[:end]


def _parsed(lines: list[str], first: int) -> ast.stmt:
    """The statement, with the lines of the file."""
    inner = lines[0][:1].isspace()
    before = "\n" * (first - 2) + "if 1:\n" if inner else "\n" * (first - 1)
    (tree,) = ast.parse(before + "".join(lines)).body
    if inner:
        assert isinstance(tree, ast.If)
        (tree,) = tree.body
    return tree


def _imported(code: CodeType, names: dict[str, Any]) -> tuple[str, ...]:
    """The imported names among those that a code reads, as their values show them."""
    found = []
    for name in code.co_names:
        value = names.get(name)
        elsewhere = getattr(value, "__module__", None) != names.get("__name__")
        if isinstance(value, ModuleType) or (
            isinstance(value, type | FunctionType | BuiltinFunctionType) and elsewhere
        ):
            found.append(name)
    return tuple(found)


@lru_cache(maxsize=4)
def _imports(text: str) -> frozenset[str]:
    """The names of a module that the compiler knows to be imported: neither those of ``import *``, nor
    another name for a module, which look like such, but whatever has an ``import`` of its own."""
    try:
        symbols = symtable.symtable(text, "<module>", "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(symbol.get_name() for symbol in symbols if symbol.is_imported())


def _inside(code: CodeType, name: str, depth: int) -> CodeType | None:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if depth == 1 and inner.co_name == name:
                return inner
            if depth > 1:
                return _inside(inner, name, depth - 1)
    return None


def _equal(a: CodeType | None, b: CodeType) -> bool:
    return (
        a == b
        and a.co_linetable == b.co_linetable
        and a.co_exceptiontable == b.co_exceptiontable
        and a.co_freevars == b.co_freevars
    )
