"""The verified source of a function: compiled again, it gives the function's code object.

Verification fails if the file has changed since its import, if the code has no file, or if a tool has
compiled something else than the file's text (as pytest does with ``assert``).
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from dcarray.ir.records import record, replaced
from dcarray.lowering.runtime.parsing import parse

from .originals import original
from .private_names import class_around, has_private, in_text, is_written_plainly, mangle
from .syntax_facts import facts, forget, walk

_FUTURE = 0x1FF0000  # the flags of ``from __future__`` in a code object
_NESTED, CO_GENERATOR, CO_COROUTINE = 0x10, 0x20, 0x80  # those of `inspect`, without loading that
_METHOD = 0x8000000  # from Python 3.14 on the code of what is defined in a class has it


@record(frozen=True, slots=True)
class Source:
    """A function's verified source.

    Attributes
    ----------
    tree : ast.FunctionDef
        The function's syntax tree, with the positions of the file.
    lines : tuple of str
        The lines of the file from ``first`` on.
    first : int
    code : code object
    imported : tuple of str
        The imported global names that the function reads: the compiler treats method calls on them
        differently.
    private : str
        The class around the function, if its private names count; else empty.
    """

    tree: ast.FunctionDef
    lines: tuple[str, ...]
    first: int
    code: CodeType
    imported: tuple[str, ...]
    private: str = ""

    def text(self, stmts: Sequence[ast.stmt]) -> str:
        """Return consecutive statements without indentation."""
        return text_of(self.lines, self.first, stmts)

    def compile_tree(self, tree: ast.FunctionDef) -> CodeType | None:
        """Return the code object of a function's tree, compiled in the same context as the original."""
        code = self.code
        body: list[ast.stmt] = [tree]
        depth = 1
        if self.private:
            cls = ast.ClassDef(self.private, bases=[], keywords=[], body=body, decorator_list=[])
            cls.type_params = []  # type: ignore[attr-defined, unused-ignore]
            body, depth = [ast.copy_location(cls, tree)], 2
        if code.co_flags & _NESTED:
            outer = parse(f"def outer({', '.join(code.co_freevars)}): pass").body[0]
            assert isinstance(outer, ast.FunctionDef)
            outer.body = body
            body, depth = [outer], depth + 1
        imports = parse("".join(f"import {name}\n" for name in self.imported)).body
        module = ast.Module(body=[*imports, *body], type_ignores=[])
        try:
            with unwarned():
                whole = compile(
                    module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True
                )
        except (SyntaxError, ValueError, RecursionError):
            return None
        inner = _inner_code(whole, tree.name, depth)
        if inner is None:
            return None
        flags = inner.co_flags | code.co_flags & _METHOD
        return inner.replace(co_qualname=code.co_qualname, co_flags=flags)


@contextmanager
def unwarned() -> Iterator[None]:
    """A context in which the compiler repeats no warning that it has already given for this source.

    The list of warning filters is changed in place: `warnings.catch_warnings` would make Python forget which
    warnings it has shown, and show all of them again.
    """
    added: list[Any] = [("ignore", None, kind, None, 0) for kind in (SyntaxWarning, DeprecationWarning)]
    filters: Any = warnings.filters
    filters[:0] = added
    try:
        yield
    finally:
        for one in added:
            filters.remove(one)


def is_faithful(node: ast.stmt) -> bool:
    """Whether a statement's text without its indentation means the same; strings over lines change."""
    return (node.col_offset == 0 or not facts(node).long) and is_written_plainly(node)


def text_of(lines: Sequence[str], number: int, stmts: Sequence[ast.stmt]) -> str:
    """Return the source text of consecutive statements, without indentation; ``number`` is the line number of
    ``lines[0]``, as syntax trees have them.  An ``elif`` becomes the ``if`` that it is in the tree."""
    first, last = stmts[0], stmts[-1]
    begin, indent = first.lineno, first.col_offset
    if isinstance(first, ast.FunctionDef) and first.decorator_list:
        begin = first.decorator_list[0].lineno
    block = [*lines[begin - number : (last.end_lineno or last.lineno) - number + 1]]
    block[-1] = block[-1].encode()[: last.end_col_offset].decode()
    block[0] = " " * indent + block[0].encode()[indent:].decode()  # others may be before it on its line
    if has_private("".join(block)):
        block = in_text(block, begin, [node for stmt in stmts for node in walk(stmt)])
    text = "\n".join(line[min(indent, len(line) - len(line.lstrip())) :].rstrip("\r\n") for line in block)
    return text.removeprefix("el") if isinstance(first, ast.If) else text


# by the identities of code objects that `with_parameters` has made: these, the functions and the names
_variants: dict[int, tuple[CodeType, FunctionType, tuple[str, ...]]] = {}


def with_parameters(function: FunctionType, code: CodeType, names: tuple[str, ...]) -> FunctionType | None:
    """Return a copy of a function that takes the values of some global names as keyword arguments; None if
    its source cannot be verified."""
    source = _with_parameters(function, code, names)
    if source is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple([cells[name] for name in source.code.co_freevars])
    variant = FunctionType(source.code, function.__globals__, function.__name__, None, closure)
    variant.__defaults__, variant.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    variant.__qualname__, variant.__module__ = function.__qualname__, function.__module__
    _variants[id(source.code)] = source.code, function, names
    return variant


def _with_parameters(function: FunctionType, code: CodeType, names: tuple[str, ...]) -> Source | None:
    source = source_of(function, code)
    if source is None:
        return None
    tree, spec = copy.copy(source.tree), copy.copy(source.tree.args)
    forget(tree)
    forget(spec)
    spec.kwonlyargs = [*spec.kwonlyargs, *(ast.copy_location(ast.arg(name), tree) for name in names)]
    spec.kw_defaults = [*spec.kw_defaults, *[None] * len(names)]
    tree.args = spec
    compiled = source.compile_tree(tree)
    return None if compiled is None else replaced(source, tree=tree, code=compiled)


def source_of(function: FunctionType, code: CodeType) -> Source | None:
    """Return the source of a function with this code object; None if it cannot be verified."""
    known = _variants.get(id(code))
    if known is not None:
        return _with_parameters(known[1], original(known[1]), known[2])
    if code.co_name == "<lambda>" or code.co_flags & (CO_GENERATOR | CO_COROUTINE):
        return None
    import linecache

    first = code.co_firstlineno
    try:
        whole = linecache.getlines(code.co_filename, function.__globals__)
        lines = whole[first - 1 :]
        if not lines:
            return None
        try:
            block = _function_lines(lines, _last_line(code) - first)
            tree = _parse(block, first)
        except SyntaxError:  # the block ends somewhere else: the slower way
            from inspect import getblock

            block = getblock(lines)
            tree = _parse(block, first)
    except (OSError, SyntaxError, ValueError, IndexError, RecursionError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        return None
    private = class_around(code.co_qualname) if has_private("".join(block)) else ""
    mangle(tree, private)
    imported = _imported_names(code, function.__globals__)
    source = Source(tree, tuple(block), first, code, imported, private)
    if _is_same_code(source.compile_tree(tree), code):
        return source
    names = _import_statement_names("".join(whole))
    source = replaced(source, imported=tuple([name for name in names_in(code) if name in names]))
    return source if _is_same_code(source.compile_tree(tree), code) else None


def _last_line(code: CodeType) -> int:
    """Return the last line of a code object's instructions."""
    lines = [line for *_, line in code.co_lines() if line is not None]
    inner = [_last_line(const) for const in code.co_consts if isinstance(const, CodeType)]
    return max(*lines, *inner, code.co_firstlineno)


def _function_lines(lines: list[str], last: int) -> list[str]:
    """Return the lines of a function by its indentation; ``last`` is the index of one of its lines."""
    blanks = len(lines[0]) - len(lines[0].lstrip())
    end = last + 1
    while end < len(lines):
        text = lines[end].lstrip()
        if text and text[0] not in "#)]}" and len(lines[end]) - len(text) <= blanks:
            break
        end += 1
    return lines[:end]


def _parse(lines: list[str], first: int) -> ast.stmt:
    """Return the statement, with the line numbers of the file."""
    inner = lines[0][:1].isspace()
    before = "\n" * (first - 2) + "if 1:\n" if inner else "\n" * (first - 1)
    (tree,) = parse(before + "".join(lines)).body
    if inner:
        assert isinstance(tree, ast.If)
        (tree,) = tree.body
    return tree


def _imported_names(code: CodeType, names: dict[str, Any]) -> tuple[str, ...]:
    """Return the names that a code object reads and that are imported, judging by their values."""
    imported = []
    for name in names_in(code):
        value = names.get(name)
        kind = type(value)  # no `isinstance`, which may run code of the value's class
        if issubclass(kind, ModuleType) or (
            issubclass(kind, type | FunctionType | BuiltinFunctionType)
            and value.__module__ != names.get("__name__")
        ):
            imported += [name] * name.isidentifier()  # tools that rewrite code have others
    return tuple(imported)


def names_in(code: CodeType) -> dict[str, None]:
    """Return the names of a code object and of those inside of it, in order."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= names_in(inner)
    return names


@lru_cache(maxsize=4)
def _import_statement_names(text: str) -> frozenset[str]:
    """Return the names of a module that the compiler knows to be imported: those of an ``import`` statement,
    but not of ``import *``, and no variables bound to modules."""
    import symtable

    try:
        symbols = symtable.symtable(text, "<module>", "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(symbol.get_name() for symbol in symbols if symbol.is_imported())


def _inner_code(code: CodeType, name: str, depth: int) -> CodeType | None:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if depth == 1 and inner.co_name == name:
                return inner
            if depth > 1:
                return _inner_code(inner, name, depth - 1)
    return None


def _is_same_code(a: CodeType | None, b: CodeType) -> bool:
    return (
        a == b
        and a.co_linetable == b.co_linetable
        and a.co_exceptiontable == b.co_exceptiontable
        and a.co_freevars == b.co_freevars
    )
