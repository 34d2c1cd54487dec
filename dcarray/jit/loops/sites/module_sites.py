"""Which statements of a module get sites: in all functions of a script, or of a module beside it."""

from __future__ import annotations

import ast
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import decode_source
from io import StringIO

from dcarray.lowering.runtime.parsing import parse

from ..syntax.identity import compares_identity
from ..syntax.liveness import parameters_of
from ..syntax.mentions import mentioned, mentions_main
from ..syntax.private_names import has_private, mangle, mangled
from ..syntax.source import text_of
from ..syntax.supported import KnownCalls, imported_modules
from ..syntax.syntax_facts import NONE, children, declared_names, facts, listed, stores
from .rewrite import Scope, Text, add_sites, reads_callers, reads_frames
from .site_code import lined
from .site_source import SitePlace
from .sited_module import SitedModule

__all__ = ["rewritten"]

_COMPILERS = frozenset(
    {"numba", "pythran", "cython", "taichi", "dace", "jax", "torch", "triton", "transonic"}
)
_LOOKED_AT = frozenset(
    {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Call}
)
_YIELDS = frozenset({ast.Yield, ast.YieldFrom, ast.Await})


def rewritten(source: str | bytes, file: str, is_script: bool) -> SitedModule:
    """Return a module compiled with constants in place of sites, with the list of the sites' sources.

    Parameters
    ----------
    source : str or bytes
    file : str
    is_script : bool
        Whether it is the script, whose global names no other module imports.

    Raises
    ------
    SyntaxError, ValueError, RecursionError
        If the module cannot be compiled.
    """
    tree = parse(source, file)
    text = decode_source(source) if isinstance(source, bytes) else source
    table = symtable.symtable(text, file, "exec")
    if has_private(text):
        mangle(tree, "")
    with listed(tree) as nodes:
        adder = _Module(tree, nodes, table, text, file, is_script)
        adder.add()
    code = lined(compile(tree, file, "exec", dont_inherit=True))
    return SitedModule(code, adder.places, adder.places_of)


class _Module:
    """The sites of one module.

    Attributes
    ----------
    places, places_of
        As in `SitedModule`.
    """

    def __init__(
        self, tree: ast.Module, nodes: Sequence[ast.AST], table: symtable.SymbolTable, source: str, file: str,
        is_script: bool,
    ) -> None:  # fmt: skip
        self._tree, self._table = tree, table
        self._is_script = is_script and not mentions_main(nodes)
        self._mentioned = mentioned(nodes)
        lines = StringIO(source, None).readlines()  # as the tokenizer does: not at form feeds
        self._text = Text(partial(text_of, lines, 1), file)
        self._nodes = [node for node in nodes if type(node) in _LOOKED_AT]
        self._sees_identity = compares_identity(nodes)
        self._homes = _homes(self._nodes)  # of imported names
        modules = imported_modules(self._nodes)
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        methods: dict[str, list[ast.FunctionDef]] = {}
        for node in self._nodes:
            if not isinstance(node, ast.ClassDef):
                continue
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    methods.setdefault(mangled(inner.name, node.name), []).append(inner)
        classes = frozenset([node.name for node in tree.body if isinstance(node, ast.ClassDef)])
        self._known = KnownCalls(modules, functions, methods, classes)
        self._known.look()
        self.places: list[SitePlace] = []
        self.places_of: dict[tuple[str, int], list[int]] = {}

    def add(self) -> None:
        """Add the sites of all functions, and of the module itself."""
        given_away = _given_away(self._nodes, self._homes)
        self._may_read_frames = reads_frames(self._tree, self._known)
        self._reads_callers = self._may_read_frames and reads_callers(self._tree)
        for table, node in _functions(self._table, self._nodes):
            if node.name not in given_away and all(map(self._keeps_code, node.decorator_list)):
                self._add_to_function(table, node)
        froms = [node.module for node in self._tree.body if isinstance(node, ast.ImportFrom)]
        if self._may_read_frames or "__future__" in froms:
            return
        variables = stores(*self._tree.body) - _imported(self._nodes)
        shared = _global_reads(self._table)
        read = shared | _global_reads(self._table, True) | self._mentioned
        always = variables & read if self._is_script else variables
        seen = self._sees_identity
        scope = Scope(variables, variables, NONE, NONE, always, self._known, variables, seen, is_module=True)
        self._add(self._tree.body, scope, ("<module>", 1))

    def _keeps_code(self, decorator: ast.expr) -> bool:
        """Whether a decorator is known to leave the function's code alone: it is of the module itself or of
        the standard library.  Others may be compilers, which read the code."""
        while not isinstance(decorator, ast.Name):
            if not isinstance(decorator, ast.Attribute | ast.Call):
                return False
            decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
        where = self._homes.get(decorator.id)
        return where is None or where.partition(".")[0] in sys.stdlib_module_names

    def _add_to_function(self, table: symtable.Function, node: ast.FunctionDef) -> None:
        if self._reads_callers or (self._may_read_frames and reads_frames(node, self._known)):
            return
        if _is_generator(node):
            return
        local = frozenset(table.get_locals())
        cells = local & _free(table, False)
        free = frozenset(table.get_frees())
        shared = declared_names(node, ast.Global)
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        scope = Scope(
            local | free | shared, (local - cells) | free | shared, free | shared, parameters_of(node),
            cells | free | shared | local & (_free(table, True) | self._mentioned), self._known, shared,
            self._sees_identity,
        )  # fmt: skip
        self._add(node.body, scope, (node.name, first))

    def _add(self, body: list[ast.stmt], scope: Scope, code: tuple[str, int]) -> None:
        before = len(self.places)
        add_sites(body, scope, self._text, self.places)
        self.places_of.setdefault(code, []).extend(range(before, len(self.places)))


def _functions(
    table: symtable.SymbolTable, nodes: Sequence[ast.AST]
) -> Iterator[tuple[symtable.Function, ast.FunctionDef]]:
    """Yield the symbol table and the syntax tree of each function and method of a module, inner ones, too."""
    tables = {
        (child.get_name(), child.get_lineno()): child
        for child in _all_tables(table)
        if isinstance(child, symtable.Function)
    }
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            symbols = tables.get((node.name, node.lineno)) or (
                tables.get((node.name, node.decorator_list[0].lineno)) if node.decorator_list else None
            )
            if symbols is not None:
                yield symbols, node


def _all_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _all_tables(child)


# What runs where it stands, before Python 3.12 as a function of its own, and what may run later.
_AT_ONCE = frozenset({"listcomp", "setcomp", "dictcomp"})
_LATER = "genexpr"


def _inner(table: symtable.SymbolTable, generators: bool) -> Iterator[symtable.SymbolTable]:
    """Yield the symbol tables of the inner functions and classes of a table; with ``generators``, those of
    its generator expressions instead.  Comprehensions count as part of the code around them."""
    for child in table.get_children():
        # a function may have such a name, too
        name = child.get_name() if ".0" in getattr(child, "get_parameters", tuple)() else ""
        if name in _AT_ONCE or (name == _LATER and not generators):
            yield from _inner(child, generators)
        elif generators == (name == _LATER):
            yield child


def _free(table: symtable.SymbolTable, generators: bool) -> frozenset[str]:
    """Return the names that inner functions, or generator expressions, take from the code around them."""
    return frozenset(
        symbol.get_name()
        for child in _inner(table, generators)
        for inner in (_classes(child) or [child])
        for symbol in inner.get_symbols()
        if symbol.is_free() or (_is_class(inner) and symbol.is_referenced())
    )


def _is_class(table: symtable.SymbolTable) -> bool:
    """Whether a table is a class's, which reads outer names that it binds itself, before it does, and hides
    them from its table, but not from its methods."""
    return isinstance(table, symtable.Class)


def _classes(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """Return a class's table and those of what is in it; an empty list for other tables."""
    return [table, *_all_tables(table)] if _is_class(table) else []


def _global_reads(table: symtable.SymbolTable, generators: bool = False) -> frozenset[str]:
    """Return the global names that a module's functions and classes use; with ``generators``, those that
    generator expressions use."""
    tables = [inner for child in _inner(table, generators) for inner in (child, *_all_tables(child))]
    return frozenset(
        s.get_name()
        for child in tables
        for s in child.get_symbols()
        if s.is_global() or (_is_class(child) and s.is_referenced())
    )


def _is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function is a generator: its own code has a ``yield``, not only an inner one's."""
    if facts(node).kinds.isdisjoint(_YIELDS):
        return False
    stack: list[ast.AST] = [*node.body]
    while stack:
        one = stack.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom | ast.Await):
            return True
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack += children(one)
    return False


def _imported(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names that a module's imports, functions and classes bind."""
    imported: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {a.asname or a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            imported.add(node.name)
    return frozenset(imported)


def _homes(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Return a dictionary from each imported name of a module to the module that it comes from."""
    homes: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            homes.update((a.asname or a.name, node.module or ".") for a in node.names)
        elif isinstance(node, ast.Import):
            homes.update((a.asname or a.name.partition(".")[0], a.name) for a in node.names)
    return homes


def _given_away(nodes: Sequence[ast.AST], homes: Mapping[str, str]) -> frozenset[str]:
    """Return the names of functions that are passed to functions of other libraries; these may be compilers,
    which read the functions' code."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            root: ast.AST = node
            while isinstance(root, ast.Call | ast.Attribute):
                root = root.func if isinstance(root, ast.Call) else root.value
            where = homes.get(root.id, "") if isinstance(root, ast.Name) else ""
            if where.partition(".")[0] in _COMPILERS:
                names.update(arg.id for arg in node.args if isinstance(arg, ast.Name))
    return frozenset(names)
