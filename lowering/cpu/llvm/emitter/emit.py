"""The emitter of LLVM text from kernels: a pure function of the kernel and the machine.

Each phase becomes an exported function ``phaseK(args, lo, hi)`` that unpacks the arguments and calls an
internal one, whose pointer parameters are ``noalias`` where possible.  Every operation is a few scalar
instructions; LLVM's loop vectoriser makes vectors of the loops marked "vector".
"""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.math import exact_functions
from dcarray.lowering.cpu.llvm.object_code.engine import Machine
from dcarray.lowering.cpu.llvm.ops.scalar_ops import apply
from dcarray.lowering.cpu.llvm.passes.nontemporal_stores import FENCE, LINE
from dcarray.lowering.cpu.llvm.passes.quiet_compare import MARK
from dcarray.lowering.cpu.llvm.text.builder import BITS, Builder, ty
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.flags import INVALID, kernel_flags

from .access_hints import AccessHints
from .loops import Loops
from .masked_tails import lanes
from .transpose_tiles import PREFETCH, transposer

# A copy row by row would become calls that do not know how much is copied in all.
OWN_LOOPS = '"no-builtin-memcpy" "no-builtin-memset"'


class _Phase(Loops):
    """The emitter of one phase of a kernel, or of a routine, as LLVM text."""

    # ---- steps --------------------------------------------------------------------------------------
    def store(self, stmt: k.Store) -> None:
        b, group = self.b, self.b.group
        value, at = self.expr(stmt.value), self.index(self.buffers[stmt.buffer], stmt.at)
        if stmt.nontemporal and group and b.machine.nontemporal:
            b.group = self.hints.past(b, group.rpartition(" ")[2])
            b.declare("sfence", FENCE)
        self.put(self.buffers[stmt.buffer], at, value)
        b.group = group

    def call(self, stmt: k.NumpyCall) -> None:
        count = self.least(stmt.count)
        rows = []
        for row in (*stmt.reads, stmt.write):
            address = self.address(self.buffers[row.buffer], self.affine(row.at))[0]
            rows.append((address, row.step * row.dtype.itemsize))
        code = exact_functions.loop(self.b, stmt, rows, f"%{stmt.loop.code}")
        self.native(stmt.loop, rows, count, code)

    def draw(self, stmt: k.Draw) -> None:
        """Emit the call of a C function that draws a random number."""
        b = self.b
        kinds = [self.types(arg.dtype)[0] for arg in stmt.args]
        values = [str(self.expr(arg)) for arg in stmt.args]
        given = "".join(f", {kind} {value}" for kind, value in zip(kinds, values, strict=True))
        generator = b.op(f"inttoptr i64 {self.expr(stmt.generator)} to ptr")
        function = b.op(f"inttoptr i64 %{stmt.code} to ptr")
        kind = self.types(stmt.dtype)[0]
        self.locals[stmt.name] = b.op(f"call {kind} {function}(ptr {generator}{given})")

    def transpose(self, stmt: k.TransposeTile) -> None:
        """Emit the call of the function that transposes a tile of this dtype."""
        b = self.b
        name, text = transposer(stmt.dtype.itemsize, b.machine.vector_bits)
        b.declare(name, text)
        b.declare("llvm.prefetch", PREFETCH)
        there = self.address(self.buffers[stmt.write], self.affine(stmt.to))[0]
        here = self.address(self.buffers[stmt.read], self.affine(stmt.at))[0]
        numbers = [self.affine(stmt.across), self.affine(stmt.along)]
        numbers += [self.least(stmt.rows), self.least(stmt.cols)]
        b.line(f"call void @{name}(ptr {there}, ptr {here}, {', '.join(f'i64 {n}' for n in numbers)})")

    def update(self, stmt: k.Update) -> None:
        b = self.b
        dtype, _, reassoc = self.variables[stmt.name]
        if stmt.name in self.unordered:
            return self.extreme(stmt)
        value, old = self.expr(stmt.value), self.read(stmt.name)
        kind = self.types(dtype)[0]
        if reassoc and dtype.kind in "fc" and kind != "half":
            if stmt.op == "add":
                pairs = zip(old, value, strict=True) if dtype.kind == "c" else ((old, value),)
                sums = tuple(b.op(f"fadd reassoc {kind} {o}, {v}") for o, v in pairs)
                self.write(stmt.name, sums if dtype.kind == "c" else sums[0])
                return
            if stmt.op == "multiply" and dtype.kind == "f":
                self.write(stmt.name, b.op(f"fmul reassoc {kind} {old}, {value}"))
                return
        self.write(stmt.name, apply(b, stmt.op, (old, value), (dtype, dtype), dtype))

    def extreme(self, stmt: k.Update) -> None:
        """Emit the update of a maximum or minimum: the extreme of the values that are no NaN, and a flag for
        NaNs, which is cheaper than propagating them.  Of 0.0 and -0.0 either may win, as in NumPy."""
        b, (dtype, (slot,), _) = self.b, self.variables[stmt.name]
        t, name = ty(dtype), stmt.op.replace("imum", "num")
        value, old = self.expr(stmt.value), b.op(f"load {ty(dtype)}, ptr {slot}")
        # With a NaN the result is undefined ("nnan"), and not used.
        b.declare(f"llvm.{name}.{t}", f"declare {t} @llvm.{name}.f{BITS[t]}({t}, {t})")
        extreme = b.op(f"call nnan nsz {t} @llvm.{name}.f{BITS[t]}({t} {old}, {t} {value})")
        b.line(f"store {t} {extreme}, ptr {slot}")
        before = b.op(f"load i1, ptr {self.unordered[stmt.name]}")
        b.line(f"store i1 {b.either(before, b.isnan(t, value))}, ptr {self.unordered[stmt.name]}")

    # ---- statements ---------------------------------------------------------------------------------
    def block(self, body: tuple[k.Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case k.Let(name, value):
                    self.locals[name] = self.expr(value)
                case k.Declare():
                    self.declare(stmt)
                case k.Update():
                    self.update(stmt)
                case k.Assign(name, value):
                    self.write(name, self.expr(value))
                case k.Store():
                    self.store(stmt)
                case k.For(var, lower, upper, step, kind, inner, unroll, floors):
                    low, high = self.greatest((lower, *floors)), self.least(upper)
                    low = self.peel_to_alignment(var, low, high, inner)
                    if kind == "serial":
                        self.strips(stmt, low, high)
                    elif kind == "short":
                        self.loop(var, low, high, step, False, inner, unroll)
                    elif size := lanes(stmt, self.b.machine):
                        self.vector_loop(var, low, high, size, inner, self.has_at_most(size, lower, upper))
                    else:
                        self.loop(var, low, high, step, True, inner, unroll)
                case k.Repeat():
                    self.repeat(stmt)
                case k.If():
                    self.branch(stmt)
                case k.Stack(name, dtype, size):
                    self.stack(name, dtype, size)
                case k.NumpyCall():
                    self.call(stmt)
                case k.Draw():
                    self.draw(stmt)
                case k.Invoke():
                    self.invoke(stmt)
                case k.TransposeTile():
                    self.transpose(stmt)

    def peel_to_alignment(self, var: str, low: str, high: str, body: tuple[k.Stmt, ...]) -> str:
        """Emit a loop over the first iterations, up to the first whose streaming store is aligned to a cache
        line, and return that iteration; ``low`` if there are no such stores."""
        b = self.b
        first = next((stmt for stmt in body if isinstance(stmt, k.Store) and stmt.nontemporal), None)
        if first is None or not b.machine.nontemporal:
            return low
        buffer = self.buffers[first.buffer]
        with self.scope({var: low}):
            address = self.address(buffer, self.affine(first.at))[0]
        before = b.op(f"sub i64 0, {b.op(f'ptrtoint ptr {address} to i64')}")
        count = b.op(f"udiv i64 {b.op(f'and i64 {before}, {LINE - 1}')}, {buffer.dtype.itemsize}")
        begin = b.intrinsic("smin", "i64", b.op(f"add nsw i64 {low}, {count}"), high)
        if buffer.dtype.kind == "c":  # its parts may straddle cache lines throughout
            rest = b.op(f"and i64 {before}, {buffer.dtype.itemsize - 1}")
            begin = b.select(b.icmp("eq", "i64", rest, "0"), "i64", begin, high)
        self.loop(var, low, begin, 1, False, body)
        return begin

    def branch(self, stmt: k.If) -> None:
        b = self.b
        then, orelse, end = (b.label(hint) for hint in ("then", "else", "join"))
        b.fork(str(self.expr(stmt.cond)), then, orelse)
        for label, body in ((then, stmt.then), (orelse, stmt.orelse)):
            b.begin(label)
            with self.scope({}):
                self.block(body)
            b.jump(end)
        b.begin(end)

    def run(self) -> list[str]:
        """Return the body of the function."""
        self.block(self.phase.pre)
        vector, low = self.phase.kind == "vector", "%lo"
        if vector:
            low = self.peel_to_alignment(self.phase.var, low, "%hi", self.phase.body)
        self.loop(self.phase.var, low, "%hi", 1, vector, self.phase.body)
        if "sfence" in self.b.declarations:
            self.b.line("call void @llvm.x86.sse.sfence()")
        if self.b.soft_used:
            self.allocas.append("  %soft = alloca i32")
            self.b.line(f"ret i32 {self.b.op('load i32, ptr %soft')}")
            self.end("i32 0")
            return [*self.allocas, "  store i32 0, ptr %soft", *self.b.lines]
        self.b.line("ret i32 0")
        self.end("i32 0")
        return [*self.allocas, *self.b.lines]


def _unpack(kernel: k.Kernel, number: int) -> list[str]:
    lines = [f"define i32 @phase{number}(ptr %args, i64 %lo, i64 %hi) #0 {{"]
    values = []
    for i, name in enumerate([buffer.name for buffer in kernel.buffers] + list(kernel.ints)):
        t = "ptr" if i < len(kernel.buffers) else "i64"
        lines.append(f"  %a{i} = getelementptr i64, ptr %args, i64 {i}")
        lines.append(f"  %{name} = load {t}, ptr %a{i}")
        values.append(f"{t} %{name}")
    arguments = ", ".join([*values, "i64 %lo", "i64 %hi"])
    return [*lines, f"  %r = call i32 @body{number}({arguments})", "  ret i32 %r", "}"]


def emit(kernel: k.Kernel, machine: Machine) -> str:
    """Return the LLVM text of a kernel; raise `Unsupported` if an operation cannot be done exactly as NumPy
    does it."""
    if any(phase.threads for phase in kernel.phases):
        raise Unsupported("the cpu target has no blocks of threads")
    declarations: dict[str, str] = {}
    lines: list[str] = []
    metadata: list[str] = []
    hints = AccessHints()
    quiet = bool(kernel_flags(kernel) & INVALID)
    parameters = [f"ptr{' noalias' if buffer.noalias else ''} %{buffer.name}" for buffer in kernel.buffers]
    parameters += [f"i64 %{name}" for name in kernel.ints]
    count = 0
    for number, phase in enumerate(kernel.phases):
        b = Builder(machine, quiet and not machine.quiet_comparisons, count)
        writer = _Phase(kernel, phase, b, hints)
        body = writer.run()
        head = ", ".join([*parameters, "i64 %lo", "i64 %hi"])
        own = "#4" if "sfence" in b.declarations else "#1"
        lines += [f"define internal i32 @body{number}({head}) {own} {{", "entry:", *body, "}", ""]
        lines += [*_unpack(kernel, number), ""]
        declarations.update(b.declarations)
        metadata += writer.metadata
        count = b.count
    for routine in kernel.routines:
        b = Builder(machine, quiet and not machine.quiet_comparisons, count)
        writer = _Phase(kernel, k.Phase("lo", k.affine(1), "serial", routine.body), b, hints)
        lines += writer.routine(routine)
        declarations.update(b.declarations)
        metadata += writer.metadata
        count = b.count
    used = sorted(name.removeprefix("used:") for name in declarations if name.startswith("used:"))
    if used:
        listed = ", ".join(f"ptr @{name}" for name in used)
        kept = f"[{len(used)} x ptr] [{listed}]"
        lines.append(f'@llvm.compiler.used = appending global {kept}, section "llvm.metadata"')
    lines += [text for _, text in sorted(declarations.items()) if text]
    width = f'"prefer-vector-width"="{machine.vector_bits}"'
    mark = f" {MARK}" if quiet and machine.quiet_comparisons else ""
    pure = "memory(none) nounwind willreturn"
    # Vectors that are spilled around calls would cross cache lines on a stack aligned to 16 bytes.
    stacked = f"nounwind noinline alignstack=64 {width}{mark}"
    attributes = [
        f"attributes #0 = {{ nounwind {width} }}",
        f"attributes #1 = {{ {stacked} }}",
        f"attributes #2 = {{ {pure} }}",
        f"attributes #3 = {{ noinline {pure} {width} }}",
        f"attributes #4 = {{ {stacked} {OWN_LOOPS} }}",
        f"attributes #5 = {{ nounwind {width}{mark} }}",
    ]
    text = "\n".join([*lines, *attributes, "!0 = !{}", *metadata, *hints.lines])
    return text.replace("#pure", "#2").replace("#lane", "#3") + "\n"
