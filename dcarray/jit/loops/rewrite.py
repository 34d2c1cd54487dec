"""Functions whose loops ask first whether compiled code serves them.

::

    for i in range(n):                for x, i in site.enter(n, x) if site.open else ():
        x = x + a[i]         is           break
                                      else:
                                          for i in range(n):
                                              x = x + a[i]
                                          site.open and site.left()

and where NumPy would write over a temporary, so may ours::

    b[1:] = (a[1:] + a[:-1]) * 0.5  is  b[1:] = elided_multiply(a[1:] + a[:-1], 0.5, 1)

A site answers with what the names that the loop binds are bound to afterwards, or with nothing: then the loop
runs as it is written.  So nothing is added to the names of the function, every line has its number, and what
goes wrong in a loop goes wrong where it is written.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from dcarray.core.native import BUILT

if BUILT:
    from dcarray._native import extension

from .eligibility import eligible
from .globals import original, originals
from .liveness import Flow, LoopNode
from .loop_sites import LoopSite, LoopSource
from .source import Source, source_of
from .syntax_facts import loads, stores

MOST = 1024  # functions of one module that are remembered
# What looks at the names of a function from elsewhere, where those that nobody reads are missed too.
_LOOKERS = frozenset(
    {"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe", "breakpoint", "stack"}
)
_BACK = frozenset(code for name, code in dis.opmap.items() if "JUMP_BACKWARD" in name or "FOR_ITER" in name)


def rewritten(function: FunctionType) -> CodeType | None:
    """The code of a function with sites before its loops; None if it has none, or if its source is not
    certain."""
    code = original(function)
    if _BACK.isdisjoint(code.co_code[::2]) or not _LOOKERS.isdisjoint(code.co_names):
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
        elided = _Elided()
        source.tree.body = [elided.visit(stmt) for stmt in source.tree.body]
        constants[_SPEEDUPS] = extension
    made = source.compiled(source.tree)
    if made is None:
        return None
    made = _with_constants(made, constants)
    originals[id(made)] = made, code
    return made


class _Rewriter:
    def __init__(self, source: Source, names: dict[str, Any]) -> None:
        self._source, self._names = source, names
        code = source.code
        self._flow = Flow(source.tree, frozenset(code.co_cellvars))
        self._locals = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        self._own = frozenset(code.co_varnames) - frozenset(code.co_cellvars)
        self.sites: dict[str, LoopSite] = {}

    def block(self, body: list[ast.stmt], outer: LoopSite | None) -> None:
        """Put sites before the loops of a block."""
        for k, stmt in enumerate(body):
            inside = outer
            site = self._site(stmt, outer) if isinstance(stmt, ast.For | ast.While) else None
            if site is not None:
                body[k] = self._asking(stmt, site)  # type: ignore[arg-type]
                inside = site
            for inner in _blocks(stmt):
                self.block(inner, inside)

    def _site(self, loop: LoopNode, outer: LoopSite | None) -> LoopSite | None:
        if not eligible(loop):
            return None
        live = self._flow.live(loop)
        names = self._flow.needed(loop) & self._locals
        bound = names <= self._flow.bound(loop) | frozenset(self._source.code.co_freevars)
        if not (bound and stores(loop) <= self._own and self._source.faithful(loop)):
            return None
        place = LoopSource(
            self._source.text(loop),
            self._source.code.co_filename,
            loop.lineno,
            tuple(sorted(names)),
            tuple(sorted(loads(loop) - self._locals)),
            tuple(sorted(live)),
        )
        site = LoopSite(place, self._names, outer)
        self.sites[f"dcarray's site {len(self.sites)}"] = site
        return site

    def _asking(self, loop: LoopNode, site: LoopSite) -> ast.For:
        """The loop with its question before it."""
        mark = list(self.sites)[-1]
        place = site.place

        def part(name: str) -> ast.expr:
            return ast.Attribute(ast.Constant(mark), name, ast.Load())

        args: list[ast.expr] = [ast.Name(name, ast.Load()) for name in place.needed]
        test: ast.expr = part("open")
        if isinstance(loop, ast.While):
            test = ast.BoolOp(ast.And(), [test, loop.test])
        asked = ast.IfExp(test, ast.Call(part("enter"), args, []), ast.Tuple([], ast.Load()))
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in place.live], ast.Store())
        left = ast.Expr(ast.BoolOp(ast.And(), [part("open"), ast.Call(part("left"), [], [])]))
        whole = ast.For(target, asked, [ast.Break()], [loop, left], None)
        for node in ast.walk(asked):
            _place(node, loop)
        for node in (whole, *ast.walk(target), *whole.body, *ast.walk(left)):
            _place(node, loop)
        return whole


def _place(node: ast.AST, loop: LoopNode) -> None:
    """What is added stands where the loop begins; parts of the loop stay where they are."""
    if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
        node.lineno = node.end_lineno = loop.lineno
        node.col_offset, node.end_col_offset = loop.col_offset, loop.col_offset + 3


def _blocks(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement, but not those of functions and classes."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [getattr(stmt, name, []) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(stmt, "handlers", [])]
    found += [case.body for case in getattr(stmt, "cases", [])]
    return found


def _with_constants(code: CodeType, constants: dict[str, Any]) -> CodeType:
    """The code with objects among its constants in place of their names."""

    def put(consts: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([constants.get(c, c) if type(c) is str else c for c in consts])

    return code.replace(co_consts=put(code.co_consts))


_SPEEDUPS = "dcarray's speedups"
_ELIDED = {
    ast.Add: "elided_add", ast.Sub: "elided_subtract", ast.Mult: "elided_multiply", ast.Div: "elided_divide"
}  # fmt: skip


class _Elided(ast.NodeTransformer):
    """Operators of loops with an operand that an operator or a call has given just before: if its only
    reference is the interpreter's, which drops it, NumPy may write the result over it.  Any other costs 10 ns
    more so."""

    def __init__(self) -> None:
        self._loops = 0

    def _loop(self, node: ast.AST) -> ast.AST:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1
        return node

    visit_For = visit_While = _loop

    def _apart(self, node: ast.AST) -> ast.AST:
        """What has a code of its own stays as it is."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _apart
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _apart

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sides = node.left, node.right
        which = sum(k for k, side in enumerate(sides, 1) if isinstance(side, ast.BinOp | ast.Call))
        self.generic_visit(node)
        name = _ELIDED.get(type(node.op)) if which and self._loops else None
        if name is None:
            return node
        function, number = ast.Attribute(ast.Constant(_SPEEDUPS), name, ast.Load()), ast.Constant(which)
        call = ast.Call(function, [node.left, node.right, number], [])
        for new in (call, function, function.value, number):
            ast.copy_location(new, node)
        return call


class _Reach:
    """The functions that a function may call by their names in the module, and their codes with sites.

    Parameters
    ----------
    root : FunctionType
    names : dict
        The module's.
    known : dict
        Codes with sites, by the identity of the code without; more are added.
    """

    def __init__(self, root: FunctionType, names: dict[str, Any], known: _Codes) -> None:
        self.code = original(root)
        self.fingerprint = -1  # of the names when this was last found to hold
        self.changes: list[tuple[FunctionType | None, CodeType, CodeType]] = []  # None: of the root
        self._named: dict[str, Any] = {}
        found, todo = {root}, [root]
        while todo:
            function = todo.pop()
            code = original(function)
            if id(code) not in known:
                known[id(code)] = code, rewritten(function)
            _, ours = known[id(code)]
            if ours is not None:
                self.changes.append((None if function is root else function, code, ours))
            for name in code.co_names:
                value = self._named[name] = names.get(name)
                if type(value) is FunctionType and value.__globals__ is names and value not in found:
                    found.add(value)
                    todo.append(value)
        self._named = {n: v for n, v in self._named.items() if v is None or type(v) is FunctionType}

    def ready(self, root: FunctionType, fingerprint: int) -> bool:
        """Is this found at once to hold for a function, where none of them has sites now?"""
        if root.__code__ is not self.code or not 0 <= fingerprint == self.fingerprint:
            return False
        for function, theirs, _ in self.changes:
            if function is not None and function.__code__ is not theirs:
                return False
        return True

    def holds(self, root: FunctionType, names: dict[str, Any], fingerprint: int) -> bool:
        """Are these still the functions?  The fingerprint of the names is -1 if they may be others.  The root
        may be another one of the same code: each run of a `def` inside of a function makes one."""
        if original(root) is not self.code:
            return False
        if fingerprint < 0 or fingerprint != self.fingerprint:
            for name, value in self._named.items():
                if names.get(name) is not value:
                    return False
            self.fingerprint = fingerprint
        return all([f is None or original(f) is theirs for f, theirs, _ in self.changes])


_Codes = dict[int, tuple[CodeType, CodeType | None]]


class Rewrites:
    """The functions of one module that have sites for now."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._known: _Codes = {}
        self._reaches: dict[int, _Reach] = {}
        self._last: _Reach | None = None
        self._changed: list[tuple[FunctionType, CodeType, CodeType]] = []

    def put(self, root: FunctionType, fingerprint: int = -1) -> None:
        """Give sites to a function, and to those of its module that it calls by name; with the fingerprint of
        the module's names, if it is known."""
        reach = self._last
        if reach is None or not reach.ready(root, fingerprint):
            reach = self._last = self._reach(root, fingerprint)
        for named, theirs, ours in reach.changes:
            function = root if named is None else named
            if function.__code__ is theirs:
                function.__code__ = ours
                self._changed.append((function, theirs, ours))

    def _reach(self, root: FunctionType, fingerprint: int) -> _Reach:
        code = original(root)
        reach = self._reaches.get(id(code))
        if reach is None or not reach.holds(root, self._names, fingerprint):
            if len(self._known) >= MOST:
                self._known.clear()
                self._reaches.clear()
            reach = self._reaches[id(code)] = _Reach(root, self._names, self._known)
        return reach

    def take_back(self) -> None:
        """Give the functions their own code again."""
        while self._changed:
            function, theirs, ours = self._changed.pop()
            if function.__code__ is ours:
                function.__code__ = theirs
