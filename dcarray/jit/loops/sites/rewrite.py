"""Rewriting of functions, so that each of their loops first asks a loop site for compiled code.

::

    for i in range(n):                for x, i in site.enter(n, x) if site.enabled else ():
        x = x + a[i]         is           break
                                      else:
                                          for i in range(n):
                                              x = x + a[i]
                                          site.enabled and site.leave()

and operators whose operand is a temporary may reuse its memory, as NumPy does::

    b[1:] = (a[1:] + a[:-1]) * 0.5  is  b[1:] = elided_multiply(a[1:] + a[:-1], 0.5, 1)

A site returns the values of the names that the loop binds, or nothing: then the loop runs in Python.  The
function gets no new names, lines keep their numbers, and errors are raised where they are in the source.
"""

from __future__ import annotations

import ast
import dis
from types import CodeType, FunctionType
from typing import Any

from dcarray.core.native import BUILT

if BUILT:
    from dcarray._native import extension

from ..entry.globals import original, originals
from ..syntax.eligibility import is_eligible
from ..syntax.liveness import Liveness, LoopNode
from ..syntax.source import Source, source_of
from ..syntax.syntax_facts import loads, stores
from .loop_sites import LoopSite
from .loop_source import LoopSource

MAX_FUNCTIONS = 1024  # cached for one module
# Functions that read the local names of other frames, also names that are dead.
_FRAME_READERS = frozenset(
    {"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe", "breakpoint", "stack"}
)
_BACK = frozenset(code for name, code in dis.opmap.items() if "JUMP_BACKWARD" in name or "FOR_ITER" in name)


def with_loop_sites(function: FunctionType) -> CodeType | None:
    """Return a function's code with loop sites; None if it has no eligible loops, or its source cannot be
    verified."""
    code = original(function)
    if _BACK.isdisjoint(code.co_code[::2]) or not _FRAME_READERS.isdisjoint(code.co_names):
        return None
    source = source_of(function, code)
    if source is None:
        return None
    rewriter = _Rewriter(source, function.__globals__)
    rewriter.block(source.tree.body, None)
    if not rewriter.sites:
        return None
    constants: dict[str, Any] = dict(rewriter.sites)
    if BUILT:
        elided = _Elision()
        source.tree.body = [elided.visit(stmt) for stmt in source.tree.body]
        constants[_NATIVE] = extension
    made = source.compile_tree(source.tree)
    if made is None:
        return None
    made = made.replace(
        co_consts=tuple([constants.get(c, c) if type(c) is str else c for c in made.co_consts])
    )
    originals[id(made)] = made, code
    return made


class _Rewriter:
    def __init__(self, source: Source, names: dict[str, Any]) -> None:
        self._source, self._names = source, names
        code = source.code
        self._liveness = Liveness(source.tree, frozenset(code.co_cellvars))
        self._locals = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        self._own = frozenset(code.co_varnames) - frozenset(code.co_cellvars)
        self.sites: dict[str, LoopSite] = {}

    def block(self, body: list[ast.stmt], outer: LoopSite | None) -> None:
        """Put loop sites before the loops of a block."""
        for k, stmt in enumerate(body):
            inside = outer
            site = self._site(stmt, outer) if isinstance(stmt, ast.For | ast.While) else None
            if site is not None:
                body[k] = self._with_site(stmt, site)  # type: ignore[arg-type]
                inside = site
            for inner in _blocks(stmt):
                self.block(inner, inside)

    def _site(self, loop: LoopNode, outer: LoopSite | None) -> LoopSite | None:
        if not is_eligible(loop):
            return None
        live = self._liveness.live(loop)
        names = self._liveness.needed(loop) & self._locals
        bound = names <= self._liveness.bound(loop) | frozenset(self._source.code.co_freevars)
        if not (bound and stores(loop) <= self._own and self._source.is_faithful(loop)):
            return None
        described = LoopSource(
            self._source.text(loop),
            self._source.code.co_filename,
            loop.lineno,
            tuple(sorted(names)),
            tuple(sorted(loads(loop) - self._locals)),
            tuple(sorted(live)),
        )
        site = LoopSite(described, self._names, outer)
        self.sites[f"dcarray's site {len(self.sites)}"] = site
        return site

    def _with_site(self, loop: LoopNode, site: LoopSite) -> ast.For:
        """Return the loop, wrapped in the statement that asks its site."""
        constant = list(self.sites)[-1]
        described = site.loop

        def part(name: str) -> ast.expr:
            return ast.Attribute(ast.Constant(constant), name, ast.Load())

        args: list[ast.expr] = [ast.Name(name, ast.Load()) for name in described.needed]
        test: ast.expr = part("enabled")
        if isinstance(loop, ast.While):
            test = ast.BoolOp(ast.And(), [test, loop.test])
        iterable = ast.IfExp(test, ast.Call(part("enter"), args, []), ast.Tuple([], ast.Load()))
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in described.live], ast.Store())
        left = ast.Expr(ast.BoolOp(ast.And(), [part("enabled"), ast.Call(part("leave"), [], [])]))
        whole = ast.For(target, iterable, [ast.Break()], [loop, left], None)
        for node in ast.walk(iterable):
            _place(node, loop)
        for node in (whole, *ast.walk(target), *whole.body, *ast.walk(left)):
            _place(node, loop)
        return whole


def _place(node: ast.AST, loop: LoopNode) -> None:
    """Give an added node the source position of the loop."""
    if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
        node.lineno = node.end_lineno = loop.lineno
        node.col_offset, node.end_col_offset = loop.col_offset, loop.col_offset + 3


def _blocks(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a statement, without those of functions and classes."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [getattr(stmt, name, []) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(stmt, "handlers", [])]
    found += [case.body for case in getattr(stmt, "cases", [])]
    return found


_NATIVE = "dcarray's speedups"
_ELISIONS = {
    ast.Add: "elided_add", ast.Sub: "elided_subtract", ast.Mult: "elided_multiply", ast.Div: "elided_divide"
}  # fmt: skip


class _Elision(ast.NodeTransformer):
    """Temporary elision for operators in loops: an operand that is the result of an operator or a call may be
    overwritten if the interpreter has its only reference.  Other calls take 10 ns longer."""

    def __init__(self) -> None:
        self._loops = 0

    def _loop(self, node: ast.AST) -> ast.AST:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1
        return node

    visit_For = visit_While = _loop

    def _unchanged(self, node: ast.AST) -> ast.AST:
        """Return a node with a code object of its own, unchanged."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _unchanged
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _unchanged

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sides = node.left, node.right
        which = sum(k for k, side in enumerate(sides, 1) if isinstance(side, ast.BinOp | ast.Call))
        self.generic_visit(node)
        name = _ELISIONS.get(type(node.op)) if which and self._loops else None
        if name is None:
            return node
        function, number = ast.Attribute(ast.Constant(_NATIVE), name, ast.Load()), ast.Constant(which)
        call = ast.Call(function, [node.left, node.right, number], [])
        for new in (call, function, function.value, number):
            ast.copy_location(new, node)
        return call


class _CallGraph:
    """The functions of a module that a function may call by name, transitively, and their codes with sites.

    Parameters
    ----------
    root : FunctionType
    names : dict
        The module's global names.
    known : dict
        Cached codes with sites, by the identity of the original code.
    """

    def __init__(self, root: FunctionType, names: dict[str, Any], known: _Codes) -> None:
        self.code = original(root)
        self.fingerprint = -1  # of the names when this was last valid
        self.changes: list[tuple[FunctionType | None, CodeType, CodeType]] = []  # None: the root
        self._named: dict[str, Any] = {}
        found, todo = {root}, [root]
        while todo:
            function = todo.pop()
            code = original(function)
            if id(code) not in known:
                known[id(code)] = code, with_loop_sites(function)
            _, with_sites = known[id(code)]
            if with_sites is not None:
                self.changes.append((None if function is root else function, code, with_sites))
            for name in code.co_names:
                value = self._named[name] = names.get(name)
                if type(value) is FunctionType and value.__globals__ is names and value not in found:
                    found.add(value)
                    todo.append(value)
        self._named = {n: v for n, v in self._named.items() if v is None or type(v) is FunctionType}

    def ready(self, root: FunctionType, fingerprint: int) -> bool:
        """Whether this is known to be valid for a function, without a look at each name, and no code is
        replaced."""
        if root.__code__ is not self.code or not 0 <= fingerprint == self.fingerprint:
            return False
        for function, without, _ in self.changes:
            if function is not None and function.__code__ is not without:
                return False
        return True

    def holds(self, root: FunctionType, names: dict[str, Any], fingerprint: int) -> bool:
        """Whether the names still mean these functions; a fingerprint of -1 is unknown.  The root may be
        another function of the same code: each run of an enclosing function's `def` makes one."""
        if original(root) is not self.code:
            return False
        if fingerprint < 0 or fingerprint != self.fingerprint:
            for name, value in self._named.items():
                if names.get(name) is not value:
                    return False
            self.fingerprint = fingerprint
        return all([f is None or original(f) is without for f, without, _ in self.changes])


_Codes = dict[int, tuple[CodeType, CodeType | None]]


class ModuleRewrites:
    """The replacement of the code of one module's functions by code with loop sites."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._known: _Codes = {}
        self._graphs: dict[int, _CallGraph] = {}
        self._last: _CallGraph | None = None
        self._changed: list[tuple[FunctionType, CodeType, CodeType]] = []

    def put(self, root: FunctionType, fingerprint: int = -1) -> None:
        """Give a function, and those of its module that it calls by name, code with sites; ``fingerprint`` is
        that of the module's names, if it is known."""
        graph = self._last
        if graph is None or not graph.ready(root, fingerprint):
            graph = self._last = self._graph_of(root, fingerprint)
        for named, without, with_sites in graph.changes:
            function = root if named is None else named
            if function.__code__ is without:
                function.__code__ = with_sites
                self._changed.append((function, without, with_sites))

    def _graph_of(self, root: FunctionType, fingerprint: int) -> _CallGraph:
        code = original(root)
        graph = self._graphs.get(id(code))
        if graph is None or not graph.holds(root, self._names, fingerprint):
            if len(self._known) >= MAX_FUNCTIONS:
                self._known.clear()
                self._graphs.clear()
            graph = self._graphs[id(code)] = _CallGraph(root, self._names, self._known)
        return graph

    def restore(self) -> None:
        """Give the functions their original code again."""
        while self._changed:
            function, without, with_sites = self._changed.pop()
            if function.__code__ is with_sites:
                function.__code__ = without
