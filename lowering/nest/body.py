"""Lowering of region expressions to statements of a kernel's loop nest, with loop-invariant code motion.

Every value is computed at the outermost loop whose variables it needs, so that values of a row or of the
whole nest are not computed again for each element; values that are used twice are bound to locals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from dcarray.ir import nodes, windows
from dcarray.lowering.kernel.nodes import Affine, DType, Elem, Expr, Index, Let, Lit, Local, Op, Stmt, Store

from .access import Access, Arguments, Spot, equal

MAX_DEPTH = 24  # a subtree deeper than this is bound to a local, so that emitters may recurse


def literal(value: Any, dtype: DType) -> Lit:
    """Return a constant."""
    return Lit(np.asarray(value, dtype=dtype).tobytes(), dtype)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Return the conjunction of conditions."""
    return reduce(lambda a, b: Op("logical_and", (a, b), np.dtype(bool)), conditions)


class Names:
    """A generator of new names for locals and loop variables."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def __call__(self, prefix: str) -> str:
        number = self._count.get(prefix, 0)
        self._count[prefix] = number + 1
        return f"{prefix}{number}"


class Scope:
    """One position in a loop nest where expressions are evaluated.

    ``variables`` has the value of each loop's variable, and ``depths`` the level at which that value is
    known: 0 is before the phase (its ``pre``), 1 the phase's body, and each loop inside it adds one.
    ``deepest`` is the level at which the element is computed.  With ``hoist``, values are computed outside of
    the loops on which they do not depend; without it, loads stay at the deepest level.  That is needed if a
    loop may have no iteration, since a load outside of it could be out of bounds.
    """

    def __init__(
        self,
        arguments: Arguments,
        names: Names,
        variables: Sequence[Affine],
        depths: Sequence[int],
        deepest: int,
        hoist: bool,
    ) -> None:
        self.arguments = arguments
        self.names = names
        self.variables = variables
        self.depths = depths
        self.deepest = deepest
        self.hoist = hoist
        self.tiles: Mapping[Spot, Spot] = {}  # from addresses to those of their copies in tile buffers
        self._pending: dict[int, list[Stmt]] = {}
        self._values: dict[nodes.Expr, tuple[Expr, int, int]] = {}
        self._uses: dict[nodes.Expr, int] = {}
        self._written: list[tuple[nodes.Window, Local | Lit]] = []
        self._families: set[str] = set()

    # ---- what the schedule calls -------------------------------------------------------------------
    def announce(self, roots: Iterable[nodes.Expr], written: Iterable[nodes.Window]) -> None:
        """Count the uses of expressions that will be evaluated, and register windows that will be written."""
        for root in roots:
            self._uses[root] = self._uses.get(root, 0) + 1
        for node in windows.walk(*list(self._uses)):
            for child in windows.children(node):
                self._uses[child] = self._uses.get(child, 0) + 1
        self._families |= {self.arguments.memory.family(w.array) for w in written}

    def take(self, level: int) -> tuple[Stmt, ...]:
        """Remove and return the statements collected for the beginning of a level's body."""
        return tuple(self._pending.pop(level, ()))

    def absorb(self, *others: Scope) -> None:
        """Take over the statements that other scopes have collected."""
        for other in others:
            for level, stmts in other._pending.items():
                self.put(level, stmts)

    def put(self, level: int, stmts: Iterable[Stmt]) -> None:
        """Append statements to a level."""
        self._pending.setdefault(level, []).extend(stmts)

    def preamble(self) -> tuple[Let, ...]:
        """Remove and return the definitions of values that are the same in the whole phase."""
        return tuple(stmt for stmt in self.take(0) if isinstance(stmt, Let))

    def evaluate(self, expr: nodes.Expr) -> Expr:
        """Return a kernel expression for the value of ``expr`` at the deepest level; definitions that it
        needs are collected."""
        for node in windows.walk(expr):
            if node not in self._values:
                self._values[node] = self._make(node)
        return self._use(expr, self.deepest)

    def store(self, window: nodes.Window, value: Expr, forward: bool) -> None:
        """Add the store of an element; with ``forward``, later statements use the value instead of a load."""
        if forward and not isinstance(value, Local | Lit):
            value = self.name(value)
        buffer, at = self.address(window)
        self.add(Store(buffer, at, value))
        if not forward:
            return
        family = self.arguments.memory.family(window.array)
        self._values = {n: known for n, known in self._values.items() if family not in self._reads(n)}
        self._written = [(w, v) for w, v in self._written if not self._identical(w, window)]
        if isinstance(value, Local | Lit):
            self._written.append((window, value))

    def name(self, value: Expr) -> Local:
        """Bind a value to a new local at the deepest level and return the local."""
        local = Local(self.names("v"), value.dtype)
        self.add(Let(local.name, value))
        return local

    def add(self, stmt: Stmt) -> None:
        """Append a statement to the deepest level."""
        self.put(self.deepest, [stmt])

    def address(self, window: nodes.Window) -> Spot:
        """Return the buffer and offset of a window's element."""
        return self._spot(self.arguments.access(window))

    # ---- inside ------------------------------------------------------------------------------------
    def _spot(self, access: Access) -> Spot:
        spot = self.arguments.address(access, self.variables)
        return self.tiles.get(spot, spot)

    def _identical(self, a: nodes.Window, b: nodes.Window) -> bool:
        return self.arguments.memory.identical(a, b)

    def _reads(self, node: nodes.Expr) -> set[str]:
        family = self.arguments.memory.family
        return {family(load.window.array) for load in windows.loads(node)}

    def _use(self, node: nodes.Expr, level: int) -> Expr:
        """Return the value of an evaluated node for use in an expression at level ``level``."""
        value, own, _ = self._values[node]
        if own < level and not isinstance(value, Lit | Index | Local):
            return self._name(node, value, own)
        return value

    def _name(self, node: nodes.Expr, value: Expr, level: int) -> Local:
        local = Local(self.names("v"), value.dtype)
        self._pending.setdefault(level, []).append(Let(local.name, value))
        self._values[node] = (local, level, 0)
        return local

    def _make(self, node: nodes.Expr) -> tuple[Expr, int, int]:
        value, level = self._value(node)
        depth = 1 + max((self._values[child][2] for child in windows.children(node)), default=0)
        shared = self._uses.get(node, 1) > 1 or depth > MAX_DEPTH
        if shared and not isinstance(value, Lit | Index | Local):
            return self._name(node, value, level), level, 0
        return value, level, depth

    def _load_level(self, access: Access) -> int:
        """Return the outermost level at which an element may be loaded."""
        if self.arguments.memory.family(access.array.name) in self._families:
            return self.deepest
        if not self.hoist and access.array.shape:
            return self.deepest
        steps = self.arguments.steps(access)
        return max((d for d, s in zip(self.depths, steps, strict=True) if not equal(s, 0)), default=0)

    def _level(self, node: nodes.Expr) -> int:
        """Return the level at which an operation is computed: the deepest level of its arguments."""
        return max((self._values[child][1] for child in windows.children(node)), default=0)

    def _value(self, node: nodes.Expr) -> tuple[Expr, int]:
        match node:
            case nodes.Const():
                return Lit(node.bits, node.dtype), 0
            case nodes.Size():
                return cast_to(Index(self.arguments.integer(node.dim, "size")), node.dtype), 0
            case nodes.Iota():
                loop = next((k for k, axes in enumerate(self.arguments.loops) if node.axis in axes), None)
                if loop is None:
                    return literal(0, node.dtype), 0
                value = cast_to(Index(self.variables[loop]), node.dtype)
                return value, self.depths[loop] if self.hoist else self.deepest
            case nodes.Load():
                return self._load(node)
            case nodes.Gather():
                return self._gather(node)
            case nodes.Apply():
                level = self._level(node)
                args = tuple(self._use(arg, level) for arg in node.args)
                if node.op == "cast" and args[0].dtype == node.dtype:
                    return args[0], level
                return Op(node.op, args, node.dtype), level
        raise TypeError(f"not an expression: {node!r}")

    def _load(self, node: nodes.Load) -> tuple[Expr, int]:
        for window, local in self._written:
            if self._identical(window, node.window):
                return local, self.deepest
        access = self.arguments.access(node.window)
        buffer, at = self._spot(access)
        return Elem(buffer, at, node.dtype), self._load_level(access)

    def _gather(self, node: nodes.Gather) -> tuple[Expr, int]:
        access = self.arguments.gather_access(node)
        level = max(self._load_level(access), self._level(node))
        more = []
        for axis, index in enumerate(node.index):
            more.append((self._use(index, level), self.arguments.stride(access.array, axis)))
        buffer, at = self.arguments.address(access, self.variables)
        return Elem(buffer, at, node.dtype, tuple(more)), level


def cast_to(value: Expr, dtype: DType) -> Expr:
    """Return a value cast to a dtype; the value itself if it has that dtype."""
    return value if value.dtype == dtype else Op("cast", (value,), dtype)
