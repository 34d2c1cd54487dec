"""The verifier of the kernel IR: the invariants that every emitter relies on."""

from __future__ import annotations

import numpy as np

from dcarray.ir.draws import DRAWS

from . import nodes as k

_PLACE = (
    np.dtype(np.int64),
    False,
)  # dtype and mutability of locals that an offset may use, beside loop variables


class _Checker:
    """The state of checking a kernel: the names in scope, and their dtypes."""

    def __init__(self, kernel: k.Kernel) -> None:
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.ints = frozenset(kernel.ints)
        self.variables: set[str] = set()
        self.locals: dict[str, tuple[k.DType, bool]] = {}  # dtype and mutability
        self.used: set[str] = set()
        self.inside = self.locals, self.buffers  # the scope at the end of the last block
        self.routines = {routine.name: routine for routine in kernel.routines}
        self.threads = 0  # in the threads of a block in this phase
        self.stores = True  # here

    def need(self, condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"malformed kernel: {what}")

    def affine(self, *values: k.Affine) -> None:
        for term in (term for value in values for term in value.terms):
            self.need(term.arg is None or term.arg in self.ints, f"no integer argument {term.arg}")
            known = term.var is None or term.var in self.variables or self.locals.get(term.var) == _PLACE
            self.need(known, f"no loop variable {term.var}")

    def access(self, name: str, mode: str, dtype: k.DType, at: k.Affine) -> None:
        self.affine(at)
        buffer = self.buffers.get(name)
        self.need(buffer is not None and mode in buffer.access, f"{name} is not declared for {mode!r}")
        self.need(buffer is not None and buffer.dtype == dtype, f"{name} does not hold {dtype}")

    def expr(self, expr: k.Expr) -> k.DType:
        match expr:
            case k.Lit(bits, dtype):
                self.need(len(bits) == dtype.itemsize, "a constant of the wrong size")
            case k.Index(at):
                self.affine(at)
            case k.Local(name, dtype):
                known = self.locals.get(name)
                self.need(known is not None and known[0] == dtype, f"no local {name} of {dtype}")
            case k.Elem(buffer, at, dtype, more):
                self.access(buffer, "r", dtype, at)
                for index, stride in more:
                    self.need(self.expr(index).kind in "iu", "a gather by what is not an integer")
                    self.affine(stride)
            case k.Op(_, args, _):
                for arg in args:
                    self.expr(arg)
            case k.NumpyOp(_, args, _, loop):
                self.addresses(loop)
                for arg in args:
                    self.expr(arg)
        return expr.dtype

    def addresses(self, loop: k.NumpyLoop) -> None:
        for name in (loop.code, loop.data):
            self.need(name in self.ints, f"no integer argument {name}")

    def call(self, stmt: k.NumpyCall) -> None:
        self.addresses(stmt.loop)
        self.need(len(stmt.count) > 0, "a call without a count")
        self.affine(*stmt.count)
        rows: list[tuple[k.Row, str]] = [(row, "r") for row in stmt.reads]
        for row, mode in [*rows, (stmt.write, "w")]:
            self.access(row.buffer, mode, row.dtype, row.at)
            self.need(row.step > 0 or (mode == "r" and row.step == 0), "a row that goes nowhere")

    def draw(self, stmt: k.Draw) -> None:
        draw = DRAWS.get(stmt.function)
        self.need(draw is not None and draw.result == stmt.dtype, f"{stmt.function} is not known")
        self.need(stmt.code in self.ints, f"no integer argument {stmt.code}")
        self.need(self.expr(stmt.generator).kind == "u", "a generator that is no address")
        given = tuple(map(self.expr, stmt.args))
        self.need(draw is not None and given == draw.arguments, f"arguments of {stmt.function}")
        self.name(stmt.name, stmt.dtype, False)

    def invoke(self, stmt: k.Invoke) -> None:
        routine = self.routines.get(stmt.routine)
        given = [self.expr(arg) for arg in stmt.args]
        self.need(
            routine is not None
            and given == [local.dtype for local in routine.parameters]
            and [local.dtype for local in stmt.results] == [value.dtype for value in routine.results],
            f"a call of {stmt.routine} that it does not fit",
        )
        for local in stmt.results:
            self.name(local.name, local.dtype, False)

    def routine(self, routine: k.Routine) -> None:
        """Check a routine, which may use only its parameters and the kernel's arguments."""
        outside, self.buffers, self.locals = (self.buffers, self.locals), dict(self.buffers), {}
        for local in routine.parameters:
            self.name(local.name, local.dtype, False)
        self.block(routine.body)
        self.locals, self.buffers = self.inside
        for value in routine.results:
            self.expr(value)
        self.buffers, self.locals = outside

    def declare(self, name: str, value: k.Expr, mutable: bool) -> None:
        self.name(name, self.expr(value), mutable)

    def name(self, name: str, dtype: k.DType, mutable: bool) -> None:
        self.need(name not in self.used, f"{name} is declared twice")
        self.used.add(name)
        self.locals[name] = (dtype, mutable)

    def change(self, name: str, value: k.Expr) -> None:
        known, dtype = self.locals.get(name), self.expr(value)
        self.need(known is not None and known == (dtype, True), f"{name} cannot be given this value")

    def block(self, body: tuple[k.Stmt, ...]) -> None:
        outside, buffers = dict(self.locals), dict(self.buffers)
        for stmt in body:
            match stmt:
                case k.Let(name, value):
                    self.declare(name, value, False)
                case k.Declare(name, init, _):
                    self.declare(name, init, True)
                case k.Update(name, _, value) | k.Assign(name, value):
                    self.change(name, value)
                case k.Store(buffer, at, value):
                    self.need(self.stores, f"a store to {buffer} by no thread")
                    self.access(buffer, "w", self.expr(value), at)
                case k.For(var, lower, upper, step, _, inner, _, floors):
                    self.need(step > 0 and len(upper) > 0, "a loop that cannot end")
                    self.affine(lower, *floors, *upper)
                    self.loop(var, inner)
                case k.Repeat(head, cond, inner):
                    known = dict(self.locals), dict(self.buffers)
                    self.block(head)
                    self.locals, self.buffers = self.inside
                    self.need(self.expr(cond).kind == "b", "a condition that is not boolean")
                    self.block(inner)
                    self.locals, self.buffers = known
                case k.If(cond, then, orelse):
                    self.need(self.expr(cond).kind == "b", "a condition that is not boolean")
                    self.block(then)
                    self.block(orelse)
                case k.Threads(var, count, inner):
                    self.need(count == self.threads and not self.stores, f"{count} threads here")
                    self.stores = True
                    self.loop(var, inner)
                    self.stores = False
                case k.Stack(name, dtype, size, per_thread):
                    self.need(name not in self.used and name not in self.buffers, f"{name} is declared twice")
                    self.need(size > 0, f"{name} has no room")
                    self.need(not (per_thread and self.stores), f"{name} is one thread's own anyway")
                    self.used.add(name)
                    self.buffers[name] = k.Buffer(name, dtype, "rw")
                case k.NumpyCall():
                    self.call(stmt)
                case k.Draw():
                    self.need(self.stores, "a draw by no thread")
                    self.draw(stmt)
                case k.Invoke():
                    self.need(self.stores, "a call by no thread")
                    self.invoke(stmt)
                case k.TransposeTile(write, to, across, read, at, along, rows, cols, dtype):
                    self.access(write, "w", dtype, to)
                    self.access(read, "r", dtype, at)
                    self.affine(across, along, *rows, *cols)
                    self.need(write != read and len(rows) > 0 and len(cols) > 0, "a tile without an extent")
        self.inside = self.locals, self.buffers
        self.locals, self.buffers = outside, buffers

    def loop(self, var: str, body: tuple[k.Stmt, ...]) -> None:
        self.need(var not in self.variables, f"{var} is already a loop variable")
        taken = var in self.locals or var in self.buffers or var in self.ints
        self.need(not taken, f"the loop variable {var} hides another name")
        self.variables.add(var)
        self.block(body)
        self.variables.remove(var)


def check(kernel: k.Kernel) -> None:
    """Check that every name is declared where it is used and that dtypes agree.

    Raises
    ------
    ValueError
        If a rule is broken; the text names it.
    """
    checker = _Checker(kernel)
    for routine in kernel.routines:
        checker.routine(routine)
    for phase in kernel.phases:
        checker.affine(phase.extent)
        outside = dict(checker.locals)
        for let in phase.pre:
            checker.declare(let.name, let.value, False)
        blocks = phase.kind == "blocks"
        checker.need(blocks == (phase.threads > 0), "threads of a phase without blocks")
        checker.threads, checker.stores = phase.threads, not blocks
        checker.loop(phase.var, phase.body)
        checker.locals = outside
