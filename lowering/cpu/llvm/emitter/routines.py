"""The routines of a kernel as LLVM text: functions that its phases call, and that may call themselves."""

from __future__ import annotations

from collections.abc import Callable

from dcarray.lowering.kernel.nodes import Invoke, Routine, Stmt
from dcarray.lowering.kernel.walk import walk_statements
from dcarray.lowering.runtime.stopping import STOP

from .values import Values


class Routines(Values):
    """The emitter of routines and of their calls; the subclass adds statements."""

    block: Callable[[tuple[Stmt, ...]], None]

    def invoke(self, stmt: Invoke) -> None:
        """Emit the call of a routine, which gets the kernel's arguments besides its own."""
        b = self.b
        b.soft_used = True
        values = [self.expr(arg) for arg in stmt.args]
        given = [*self.closure(), "ptr %soft"]
        for arg, value in zip(stmt.args, values, strict=True):
            parts = value if arg.dtype.kind == "c" else (value,)
            given += [f"{t} {part}" for t, part in zip(self.types(arg.dtype), parts, strict=True)]
        kinds = [t for local in stmt.results for t in self.types(local.dtype)]
        call = b.op(f"call {{ {', '.join(kinds)} }} @{stmt.routine}({', '.join(given)})")
        items = iter([b.op(f"extractvalue {{ {', '.join(kinds)} }} {call}, {k}") for k in range(len(kinds))])
        for local in stmt.results:
            parts = tuple([next(items) for _ in self.types(local.dtype)])
            self.locals[local.name] = parts if local.dtype.kind == "c" else parts[0]

    def routine(self, routine: Routine) -> list[str]:
        """Return the text of a routine."""
        b = self.b
        taken = [*self.closure(), "ptr %soft"]
        for local in routine.parameters:
            names = tuple([f"%{local.name}.{k}" for k in range(len(self.types(local.dtype)))])
            taken += [f"{t} {name}" for t, name in zip(self.types(local.dtype), names, strict=True)]
            self.locals[local.name] = names if local.dtype.kind == "c" else names[0]
        if any(isinstance(stmt, Invoke) for stmt in walk_statements(routine.body)):
            self.stop()
        self.block(routine.body)
        kinds = [t for value in routine.results for t in self.types(value.dtype)]
        kind, struct = f"{{ {', '.join(kinds)} }}", "undef"
        values = [self.expr(value) for value in routine.results]
        parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
        for k, (t, part) in enumerate(zip(kinds, parts, strict=True)):
            struct = b.op(f"insertvalue {kind} {struct}, {t} {part}, {k}")
        b.line(f"ret {kind} {struct}")
        self.end(f"{kind} zeroinitializer")
        head = f"define internal {kind} @{routine.name}({', '.join(taken)}) #5 {{"
        return [head, "entry:", *self.allocas, *b.lines, "}", ""]

    def has_come(self) -> str:
        """Emit the test whether the run is to be stopped (`dcarray.lowering.runtime.stopping`)."""
        b = self.b
        b.declare("dc_stop", STOP)
        word = b.op("load ptr, ptr @dc_stop, !invariant.load !0")
        return b.icmp("ne", "i32", b.op(f"load volatile i32, ptr {word}"), "0")

    def stop(self) -> None:
        """Emit the end of the function if the run is to be stopped."""
        go_on = self.b.label("on")
        self.b.fork(self.has_come(), "stopped", go_on)
        self.b.begin(go_on)

    def end(self, result: str) -> None:
        """Emit what the function returns where it is stopped."""
        if any("%stopped" in line for line in self.b.lines):
            self.b.begin("stopped")
            self.b.line(f"ret {result}")

    def closure(self) -> list[str]:
        """Return the parameters of every routine besides its own: the kernel's arguments."""
        pointers = [f"ptr %{buffer.name}" for buffer in self.kernel.buffers]
        return [*pointers, *[f"i64 %{name}" for name in (*self.kernel.ints, "lo")]]
