"""Values of a loop that nothing reads, but whose floating-point exceptions must be reported.

NumPy warns of them as of any other, but compiled code may drop them, or compute them only where they are
used.  So they get run-time checks, as integer overflows do (`operations.flag_checks`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from dcarray.ir.nodes import Apply, Expr
from dcarray.ir.ops import const

from ..syntax.definitions import function_of_text
from ..syntax.exits import may_exit
from ..syntax.loop_exits import lowered
from ..syntax.syntax_facts import loads, stores
from ..syntax.tries import without_tries

_BOOL, _F8 = np.dtype(np.bool_), np.dtype(np.float64)


def check(holds: Expr) -> Expr:
    """Return a number computed only for its check: if ``holds`` is false, Python runs the statements."""
    return Apply("checked", (holds, const(0.0, _F8)), _F8)


# ---- in the source ------------------------------------------------------------------------------------
def dead_targets(body: Sequence[ast.stmt], live: Iterable[str] = ()) -> frozenset[ast.expr]:
    """Return the assignments' targets whose values may be dead, in statements after which the names ``live``
    are read: the name is bound again before it is certainly read, or the element is assigned again.  What
    nothing reads on any path is found in the region (`with_checked_temporaries`)."""
    reads: list[ast.stmt] = [ast.Expr(ast.Name(name, ast.Load())) for name in live]
    return frozenset(_DeadTargets().of_block(body, reads))


@lru_cache(maxsize=256)
def parsed_function(source: str) -> tuple[ast.FunctionDef, frozenset[ast.expr]]:
    """Return the syntax tree of a function, and its dead targets."""
    tree = function_of_text(source)
    tree.body = lowered(without_tries(tree.body))
    return tree, dead_targets(tree.body)


class _DeadTargets:
    """The search for targets of assignments whose values are never read (see `dead_targets`).

    The names that later statements read are cached.
    """

    def __init__(self) -> None:
        # by name and the identities of the first and last statement, which are not freed meanwhile
        self._read: dict[tuple[str, int, int, int], bool] = {}
        self._tests: list[ast.stmt] = []

    def of_block(self, block: Sequence[ast.stmt], follow: Sequence[ast.stmt]) -> Iterator[ast.expr]:
        """Yield the dead targets of a block, after which the statements ``follow`` run."""
        # backwards, so that what is read after a statement is known before it is asked for
        for k, stmt in reversed([*enumerate(block)]):
            following = [*block[k + 1 :], *follow]
            match stmt:
                case ast.Assign(targets):
                    parts = [part for target in targets for part in _single_targets(target)]
                    yield from (p for p in parts if self._may_be_dead(p, following, block[k + 1 :]))
                case ast.AugAssign(target) | ast.AnnAssign(target):
                    yield from [target] * self._may_be_dead(target, following, block[k + 1 :])
                case ast.If(_, body, orelse):
                    yield from self.of_block(body, following)
                    yield from self.of_block(orelse, following)
                case ast.For(_, _, body):
                    yield from self.of_block(body, body)
                case ast.While(test, body):
                    again = ast.Expr(test)
                    self._tests.append(again)
                    yield from self.of_block(body, [again, *body])

    def _may_be_dead(
        self, target: ast.expr, following: Sequence[ast.stmt], block: Sequence[ast.stmt],
        stmt: ast.stmt | None = None,
    ) -> bool:  # fmt: skip
        if isinstance(target, ast.Name):
            return not self._is_certainly_read(target.id, following)
        return isinstance(target, ast.Subscript) and _is_assigned_again(ast.unparse(target), block, stmt)

    def _is_certainly_read(self, name: str, stmts: Sequence[ast.stmt]) -> bool:
        """Whether a live statement certainly reads the value that a name has before these statements."""
        if not stmts:
            return False
        key = name, id(stmts[0]), len(stmts), id(stmts[-1])
        if key not in self._read:
            self._read[key] = self._look(name, stmts)
        return self._read[key]

    def _look(self, name: str, stmts: Sequence[ast.stmt]) -> bool:
        """Compute the answer that `_is_certainly_read` caches."""
        for k, stmt in enumerate(stmts):
            match stmt:
                case ast.Assign() | ast.AnnAssign():
                    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
                    names = [part for target in targets for part in _single_targets(target)]
                    if name in loads(*targets):
                        return True
                    if stmt.value is not None and name in _certain_reads(stmt.value):
                        following = stmts[k + 1 :]
                        if not all(self._may_be_dead(part, following, following, stmt) for part in names):
                            return True
                case ast.AugAssign(target, _, value):
                    if name in _certain_reads(value) | loads(target) | stores(target):
                        return True
                case ast.Expr(value) | ast.For(iter=value) | ast.While(value):
                    if name in _certain_reads(value):
                        return True
                case ast.If(test, body, orelse):
                    if name in _certain_reads(test):
                        return True
                    if (
                        orelse
                        and self._is_certainly_read(name, body)
                        and self._is_certainly_read(name, orelse)
                    ):
                        return True
                    if may_exit([stmt]):
                        return False
                case ast.Return(value):
                    return value is not None and name in _certain_reads(value)
                case _:
                    return False
            if name in stores(stmt):
                return False
        return False


def _single_targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _single_targets(part)
    else:
        yield target


def _is_assigned_again(element: str, stmts: Sequence[ast.stmt], once: ast.stmt | None) -> bool:
    """Whether another statement assigns an element without reading it."""
    return any(
        node is not once and element in targets and element not in value
        for stmt in stmts
        for node, targets, value in _assignments(stmt)
    )


@lru_cache(maxsize=1024)
def _assignments(stmt: ast.stmt) -> list[tuple[ast.Assign, list[str], str]]:
    """Return the assignments in a statement, with the texts of their targets and values."""
    return [
        (node, [ast.unparse(part) for part in node.targets], ast.unparse(node.value))
        for node in ast.walk(stmt)
        if isinstance(node, ast.Assign)
    ]


@lru_cache(maxsize=4096)
def _certain_reads(node: ast.expr) -> frozenset[str]:
    """Return the names that an expression certainly reads."""
    match node:
        case ast.Name(name):
            return frozenset({name})
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return frozenset()
        case ast.IfExp(test):
            parts = [test]
        case ast.BoolOp(_, values):
            parts = values[:1]
        case ast.Compare(left, _, others):
            parts = [left, others[0]]
        case ast.NamedExpr(_, value):
            parts = [value]
        case _:
            parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return frozenset().union(*map(_certain_reads, parts))
