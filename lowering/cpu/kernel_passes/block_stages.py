"""Loop fission of a block of iterations into stages: each is a loop that stores arguments to rows (small
arrays), then calls of NumPy's loops on these rows.

The *moment* of an access is twice the number of its stage if it is in the stage's loop, and one more if it
is in the calls.  Accesses to memory that the kernel writes keep their order: their moments never decrease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.walk import buffers, map_children, map_values, walk
from dcarray.lowering.nest.access import scale, unit_step


class Maker(Protocol):
    """The services of a kernel's rewriter that its blocks use."""

    free: frozenset[str]

    def native(self, op: k.Op) -> k.NumpyLoop | None:
        """Return NumPy's loop for an operation; None if the target computes the operation itself."""

    def fresh(self, prefix: str) -> str:
        """Return a new name."""


@dataclass(slots=True)
class Stages:
    """The stages of one block of a loop, from ``start`` to the minimum of ``stops``."""

    maker: Maker
    loop: k.For
    start: k.Affine
    stops: tuple[k.Affine, ...]
    inside: frozenset[str]  # the locals that the body defines
    stage: dict[str, int] = field(default_factory=dict)  # the stage that defines a local
    home: dict[str, tuple[k.Elem, int]] = field(default_factory=dict)  # locals that are elements of rows
    lets: dict[str, k.Expr] = field(default_factory=dict)
    loops: dict[int, list[k.Stmt]] = field(default_factory=dict)
    calls: dict[int, list[k.Stmt]] = field(default_factory=dict)
    # rows: dtype, and 1 for a single element
    kinds: dict[str, tuple[k.DType, int]] = field(default_factory=dict)
    spilled: dict[str, str] = field(default_factory=dict)  # the rows that hold locals
    stored: int = 0  # the last moment of a write to memory
    touched: int = 0  # the last moment of a read or write

    # ---- statements ---------------------------------------------------------------------------------
    def add(self, stmt: k.Stmt) -> None:
        """Append the next statement of the body."""
        match stmt:
            case k.Let(name, value):
                new, ready = self.value(value)
                if isinstance(new, k.Elem) and new.buffer in self.kinds:
                    self.home[name] = new, ready
                    return
                self.stage[name], self.lets[name] = ready, new
                self.put(ready, k.Let(name, new), new)
            case k.Update(name, op, value):
                new, ready = self.value(value)
                self.put(ready, k.Update(name, op, new), new)
            case k.Store(buffer, at, value):
                new, ready = self.value(value)
                if isinstance(value, k.Op) and self.redirect(new, ready, buffer, at):
                    return
                moment = max(2 * ready, self.touched + self.touched % 2)
                self.put(moment // 2, k.Store(buffer, at, new), new)
                self.stored = self.touched = moment

    def put(self, stage: int, stmt: k.Stmt, value: k.Expr) -> None:
        """Append a statement, which uses ``value``, to the loop of a stage."""
        self.loops.setdefault(stage, []).append(stmt)
        if self.ordered(value):
            self.touched = max(self.touched, 2 * stage)

    def redirect(self, value: k.Expr, ready: int, buffer: str, at: k.Affine) -> bool:
        """Let the call that computes a value write to the store's target; return whether it can."""
        last = self.calls.get(ready - 1, [])
        if not (isinstance(value, k.Elem) and value.buffer in self.kinds and last and self.step(at) == 1):
            return False
        call = last[-1]
        if (
            not isinstance(call, k.NumpyCall)
            or call.write.buffer != value.buffer
            or self.touched > 2 * ready - 1
        ):
            return False
        del self.kinds[value.buffer]
        last[-1] = replace(call, write=k.Row(buffer, self.at_start(at), 1, call.write.dtype))
        self.stored = self.touched = 2 * ready - 1
        return True

    # ---- values -------------------------------------------------------------------------------------
    def value(self, expr: k.Expr) -> tuple[k.Expr, int]:
        """Return an expression that loads calls' results from rows and the first stage to compute it."""
        if isinstance(expr, k.Local):
            return self.home.get(expr.name) or (expr, self.stage.get(expr.name, 0))
        ready = [0]

        def inner(arg: k.Expr) -> k.Expr:
            new, stage = self.value(arg)
            ready.append(stage)
            return new

        loop = self.maker.native(expr) if isinstance(expr, k.Op) else None
        if loop is not None and isinstance(expr, k.Op):
            if not any(k.STEPS.get((expr.name, n)) == 0 and self.varies(a) for n, a in enumerate(expr.args)):
                return self.call(expr, loop)
            expr = k.NumpyOp(expr.name, expr.args, expr.dtype, loop)
        new = map_children(expr, inner)
        if isinstance(new, k.Elem) and not self.is_free(new.buffer):
            ready.append((self.stored + 1) // 2)
        return new, max(ready)

    def call(self, op: k.Op, loop: k.NumpyLoop) -> tuple[k.Expr, int]:
        """Add a call of NumPy's loop for an operation; return the element and the first stage that has it."""
        reads, before, after = [], list[k.Stmt](), 0
        for position, arg in enumerate(op.args):
            new, ready = self.value(arg)
            row, moment = self.row(new, ready, before, k.STEPS.get((op.name, position)) == 1)
            reads.append(row)
            after = max(after, moment)
        if any(self.ordered(stmt.value) for stmt in before if isinstance(stmt, k.Store)) or any(
            not self.is_free(row.buffer) for row in reads
        ):
            self.touched = max(self.touched, 2 * after + 1)
        name = self.new_row(op.dtype)
        counts = tuple(k.affine(0, stop, scale(-1, self.start)) for stop in self.stops)
        write = k.Row(name, k.affine(), 1, op.dtype)
        self.calls.setdefault(after, []).extend(
            [*before, k.NumpyCall(op.name, tuple(reads), write, counts, loop)]
        )
        return self.element(name), after + 1

    def row(self, value: k.Expr, ready: int, before: list[k.Stmt], each: bool) -> tuple[k.Row, int]:
        """Return an argument as a row in memory, and the stage after which it is complete.  Loop-invariant
        values are stored ``before`` the call as one element, unless ``each`` element needs one."""
        if isinstance(value, k.Local) and self.cheap(self.lets.get(value.name)):
            value = self.lets[value.name]
        if isinstance(value, k.Elem) and not value.more:
            step = self.step(value.at)
            if value.buffer in self.kinds:
                return k.Row(value.buffer, k.affine(), 1, value.dtype), ready - 1
            if step is not None and (step or not each):
                after = 0 if self.is_free(value.buffer) else self.stored // 2
                return k.Row(value.buffer, self.at_start(value.at), step, value.dtype), after
        varies = self.varies(value)
        if not varies and not each:
            name = self.new_row(value.dtype, True)
            before.append(k.Store(name, k.affine(), value))
            constant = value if isinstance(value, k.Lit) else None
            return k.Row(name, k.affine(), 0, value.dtype, constant), max(ready, self.stored // 2)
        if isinstance(value, k.Local) and varies:
            return k.Row(self.spill(value), k.affine(), 1, value.dtype), ready
        name = self.new_row(value.dtype)
        self.put(ready, k.Store(name, self.element(name).at, value), value)
        return k.Row(name, k.affine(), 1, value.dtype), ready

    # ---- small questions ------------------------------------------------------------------------------
    def is_free(self, buffer: str) -> bool:
        """Whether loads from a buffer may be moved: the kernel does not write it, or it is a row."""
        return buffer in self.maker.free or buffer in self.kinds

    def cheap(self, value: k.Expr | None) -> bool:
        """Whether recomputing a value costs no more than loading it from a row."""
        if isinstance(value, k.Elem) and not value.more:
            return value.buffer in self.maker.free and self.step(value.at) is not None
        return isinstance(value, k.Index)

    def ordered(self, value: k.Expr) -> bool:
        """Whether a value loads from memory that the kernel writes, so that its order matters."""
        return any(isinstance(node, k.Elem) and not self.is_free(node.buffer) for node in walk(value))

    def varies(self, value: k.Expr) -> bool:
        """Whether a value may differ from one iteration to the next."""
        return any(
            (isinstance(node, k.Local) and node.name in self.inside)
            or (isinstance(node, k.Elem) and (node.buffer in self.kinds or self.step(node.at) != 0))
            or (isinstance(node, k.Index) and self.step(node.at) != 0)
            for node in walk(value)
        )

    def step(self, at: k.Affine) -> int | None:
        """Return by how much an offset grows per iteration if that is 0 or 1; else None."""
        return unit_step(at, self.loop.var)

    def at_start(self, at: k.Affine) -> k.Affine:
        """Return the value of an offset, which grows by 0 or 1, at the block's first iteration."""
        rest = [term for term in at.terms if term.var != self.loop.var]
        return k.affine(at.const, *rest, *([self.start] if self.step(at) else []))

    def new_row(self, dtype: k.DType, one: bool = False) -> str:
        """Return the name of a new row on the stack, of one element if ``one``."""
        name = self.maker.fresh("r")
        self.kinds[name] = dtype, 1 if one else 0
        return name

    def element(self, name: str) -> k.Elem:
        """Return the load of the current iteration's element of a row."""
        return k.Elem(
            name, k.affine(0, k.Term(1, None, self.loop.var), scale(-1, self.start)), self.kinds[name][0]
        )

    def spill(self, local: k.Local) -> str:
        """Return the row that stores the values of a local of an earlier stage."""
        if local.name not in self.spilled:
            self.spilled[local.name] = self.new_row(local.dtype)
        return self.spilled[local.name]

    # ---- the result -----------------------------------------------------------------------------------
    def finish(self, size: int) -> tuple[k.Stmt, ...]:
        """Return the rows, loops and calls of a block of ``size`` elements."""
        last = max([0, *self.loops, *self.calls])
        bodies = {stage: self.resolve(stage) for stage in range(last + 1)}
        steps: list[k.Stmt] = []
        for stage, body in bodies.items():
            stmts: list[k.Stmt] = []
            for stmt in body:
                stmts.append(stmt)
                if isinstance(stmt, k.Let) and stmt.name in self.spilled:
                    name = self.spilled[stmt.name]
                    stmts.append(k.Store(name, self.element(name).at, k.Local(stmt.name, stmt.value.dtype)))
            if stmts:
                plain = self.loop.kind == "vector" or not any(isinstance(stmt, k.Update) for stmt in stmts)
                own: Literal["serial", "vector"] = "vector" if plain else "serial"
                steps.append(
                    k.For(self.loop.var, self.start, self.stops, 1, own, tuple(stmts), self.loop.unroll)
                )
            steps += self.calls.get(stage, [])
        return _pack(steps, {name: (d, 1 if one else size) for name, (d, one) in self.kinds.items()})

    def resolve(self, stage: int) -> list[k.Stmt]:
        """Return a stage's statements, with earlier stages' locals recomputed or loaded from rows."""
        again: dict[str, k.Let] = {}

        def known(expr: k.Expr) -> k.Expr:
            if not isinstance(expr, k.Local) or self.stage.get(expr.name, stage) == stage:
                return map_children(expr, known)
            value = self.lets[expr.name]
            if self.cheap(value):
                let = again.setdefault(expr.name, k.Let(self.maker.fresh("w"), value))
                return k.Local(let.name, expr.dtype)
            return self.element(self.spill(expr))

        new = [map_values(stmt, known) for stmt in self.loops.get(stage, [])]
        return [*again.values(), *new]


def _pack(steps: Sequence[k.Stmt], kinds: dict[str, tuple[k.DType, int]]) -> tuple[k.Stmt, ...]:
    """Return the steps of a block with their rows declared; rows with disjoint lifetimes share storage."""
    ends: dict[str, tuple[int, int]] = {}
    for position, stmt in enumerate(steps):
        for name in sorted(buffers(stmt) & kinds.keys()):
            ends[name] = ends.get(name, (position, position))[0], position
    stacks: list[k.Stack] = []
    until: list[int] = []
    names: dict[str, str] = {}
    for name, (first, last) in sorted(ends.items(), key=lambda item: (item[1], item[0])):
        dtype, size = kinds[name]
        for slot, stack in enumerate(stacks):
            if until[slot] < first and (stack.dtype, stack.size) == (dtype, size):
                names[name], until[slot] = stack.name, last
                break
        else:
            names[name] = name
            stacks.append(k.Stack(name, dtype, size))
            until.append(last)

    def place(row: k.Row) -> k.Row:
        return replace(row, buffer=names.get(row.buffer, row.buffer))

    def renamed(expr: k.Expr) -> k.Expr:
        new = map_children(expr, renamed)
        return replace(new, buffer=names.get(new.buffer, new.buffer)) if isinstance(new, k.Elem) else new

    def step(stmt: k.Stmt) -> k.Stmt:
        if isinstance(stmt, k.For):
            return replace(stmt, body=tuple(map(step, stmt.body)))
        if isinstance(stmt, k.NumpyCall):
            return replace(stmt, reads=tuple(map(place, stmt.reads)), write=place(stmt.write))
        new = map_values(stmt, renamed)
        return replace(new, buffer=names.get(new.buffer, new.buffer)) if isinstance(new, k.Store) else new

    return (*stacks, *map(step, steps))
