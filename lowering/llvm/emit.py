"""Kernel -> LLVM text: a pure function of the kernel and the machine.

Each phase becomes an exported function ``phaseK(args, lo, hi)`` that unpacks the arguments and calls an
internal one, whose pointer parameters can say what they do not alias.  Every operation is a few plain
instructions on scalars; vectors are made by LLVM's loop vectoriser from the loops marked "vector".
"""

from __future__ import annotations

import numpy as np

from ..flags import possible
from ..kernel import (
    Affine,
    Assign,
    Buffer,
    Call,
    Declare,
    Elem,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Lit,
    Local,
    Loop,
    Native,
    Op,
    Phase,
    Stack,
    Stmt,
    Store,
    Turn,
    Update,
)
from ..target import INVALID
from ..walk import updates
from .builder import BITS, Builder, DType, Value, part, real, ty
from .engine import Machine
from .literals import literal
from .pool import exceptions
from .scalar_ops import apply
from .tiles import PREFETCH, transposer

_INT64 = np.dtype(np.int64)


def _memory_type(dtype: DType) -> str:
    """The type of an element, or of one part of a complex element, in memory."""
    if dtype.kind == "c":
        return ty(part(dtype))
    return "i8" if dtype.kind == "b" else ty(dtype)


def _extremes(phase: Phase) -> frozenset[str]:
    """The variables that hold nothing but the largest or the least of values."""
    every = list(updates(phase.body))
    others = {stmt.name for stmt in every if stmt.op not in ("maximum", "minimum")}
    return frozenset(stmt.name for stmt in every if stmt.name not in others)


class _Phase:
    """Emits one phase."""

    def __init__(self, kernel: Kernel, phase: Phase, b: Builder) -> None:
        self.b = b
        self.phase = phase
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.vars: dict[str, str] = {}
        self.locals: dict[str, Value] = {}
        self.variables: dict[str, tuple[DType, tuple[str, ...], bool]] = {}
        self.extremes = _extremes(phase)
        self.unordered: dict[str, str] = {}
        self.allocas: list[str] = []
        self.metadata: list[str] = []

    # ---- integers and memory ------------------------------------------------------------------------
    def affine(self, value: Affine) -> str:
        b = self.b
        total = ""
        for term in value.terms:
            factors = [f"%{term.arg}"] if term.arg else []
            factors += [self.vars[term.var]] if term.var else []
            product = factors[0]
            for factor in factors[1:]:
                product = b.op(f"mul nsw i64 {product}, {factor}")
            if term.coef != 1:
                product = b.op(f"mul nsw i64 {product}, {term.coef}")
            total = b.op(f"add nsw i64 {total}, {product}") if total else product
        if not total:
            return str(value.const)
        return b.op(f"add nsw i64 {total}, {value.const}") if value.const else total

    def address(self, buffer: Buffer, index: str) -> tuple[str, ...]:
        """The addresses of an element, or of both parts of a complex one."""
        b, t = self.b, _memory_type(buffer.dtype)
        base = f"%{buffer.name}"
        if buffer.dtype.kind != "c":
            return (b.op(f"getelementptr inbounds {t}, ptr {base}, i64 {index}"),)
        first = b.op(f"getelementptr inbounds [2 x {t}], ptr {base}, i64 {index}")
        return first, b.op(f"getelementptr inbounds {t}, ptr {first}, i64 1")

    def load(self, expr: Elem) -> Value:
        b, buffer = self.b, self.buffers[expr.buffer]
        index = self.affine(expr.at)
        for position, stride in expr.more:
            i = apply(b, "cast", (self.expr(position),), (position.dtype,), _INT64)
            step = b.op(f"mul nsw i64 {i}, {self.affine(stride)}")
            index = b.op(f"add nsw i64 {index}, {step}")
        return self.fetch(buffer, index)

    def fetch(self, buffer: Buffer, index: str) -> Value:
        """The element of a buffer."""
        b, t = self.b, _memory_type(buffer.dtype)
        align = np.dtype(part(buffer.dtype) if buffer.dtype.kind == "c" else buffer.dtype).itemsize
        values = [b.op(f"load {t}, ptr {at}, align {align}{b.group}") for at in self.address(buffer, index)]
        if buffer.dtype.kind == "b":
            return b.icmp("ne", "i8", values[0], "0")
        return tuple(values) if buffer.dtype.kind == "c" else values[0]

    def store(self, stmt: Store) -> None:
        value = self.expr(stmt.value)
        self.put(self.buffers[stmt.buffer], self.affine(stmt.at), value)

    def put(self, buffer: Buffer, index: str, value: Value) -> None:
        """Write the element of a buffer."""
        b = self.b
        if buffer.dtype.kind == "b":
            value = b.op(f"zext i1 {value} to i8")
        values = value if buffer.dtype.kind == "c" else (value,)
        t = _memory_type(buffer.dtype)
        align = np.dtype(part(buffer.dtype) if buffer.dtype.kind == "c" else buffer.dtype).itemsize
        for at, v in zip(self.address(buffer, index), values, strict=True):
            b.line(f"store {t} {v}, ptr {at}, align {align}{b.group}")

    def stack(self, name: str, dtype: DType, size: int) -> Buffer:
        """A new buffer on the stack."""
        size *= 2 if dtype.kind == "c" else 1
        self.allocas.append(f"  %{name} = alloca [{size} x {_memory_type(dtype)}], align 64")
        self.buffers[name] = Buffer(name, dtype, "rw")
        return self.buffers[name]

    # ---- NumPy's loops ------------------------------------------------------------------------------
    def native(self, loop: Loop, rows: list[tuple[str, int]], count: str) -> None:
        """Call a loop on addresses and strides in bytes."""
        b, names = self.b, [self.b.label(f"%{hint}") for hint in ("pointers", "strides", "count")]
        pointers, strides, number = names
        self.allocas += [f"  {pointers} = alloca [{len(rows)} x ptr]", f"  {number} = alloca i64"]
        self.allocas += [f"  {strides} = alloca [{len(rows)} x i64]"]
        for position, (address, stride) in enumerate(rows):
            slot = b.op(f"getelementptr [{len(rows)} x ptr], ptr {pointers}, i64 0, i64 {position}")
            b.line(f"store ptr {address}, ptr {slot}")
            slot = b.op(f"getelementptr [{len(rows)} x i64], ptr {strides}, i64 0, i64 {position}")
            b.line(f"store i64 {stride}, ptr {slot}")
        b.line(f"store i64 {count}, ptr {number}")
        function = b.op(f"inttoptr i64 %{loop.code} to ptr")
        last = b.op(f"inttoptr i64 %{loop.data} to ptr")
        call = f"call void {function}(ptr {pointers}, ptr {number}, ptr {strides}, ptr {last})"
        if not loop.clears:
            return b.line(call)
        b.declare("fetestexcept", "declare i32 @fetestexcept(i32)")
        b.declare("feraiseexcept", "declare i32 @feraiseexcept(i32)")
        raised = b.op(f"call i32 @fetestexcept(i32 {sum(exceptions())})")
        b.line(call)
        b.line(f"call i32 @feraiseexcept(i32 {raised})")

    def call(self, stmt: Call) -> None:
        count = self.least(stmt.count)
        rows = []
        for row in (*stmt.reads, stmt.write):
            address = self.address(self.buffers[row.buffer], self.affine(row.at))[0]
            rows.append((address, row.step * row.dtype.itemsize))
        self.native(stmt.loop, rows, count)

    def turn(self, stmt: Turn) -> None:
        """Call the function that transposes tiles of this dtype."""
        b = self.b
        name, text = transposer(stmt.dtype.itemsize, b.machine.vector_bits)
        b.declare(name, text)
        b.declare("llvm.prefetch", PREFETCH)
        there = self.address(self.buffers[stmt.write], self.affine(stmt.to))[0]
        here = self.address(self.buffers[stmt.read], self.affine(stmt.at))[0]
        numbers = [self.affine(stmt.across), self.affine(stmt.along)]
        numbers += [self.least(stmt.rows), self.least(stmt.cols)]
        b.line(f"call void @{name}(ptr {there}, ptr {here}, {', '.join(f'i64 {n}' for n in numbers)})")

    def one(self, expr: Native) -> Value:
        """A loop called for one element."""
        b = self.b
        kinds = [*(arg.dtype for arg in expr.args), expr.dtype]
        values = [self.expr(arg) for arg in expr.args]
        places = [self.stack(b.label("one"), dtype, 1) for dtype in kinds]
        group, b.group = b.group, ""  # iterations share these places
        for place, value in zip(places, values, strict=False):
            self.put(place, "0", value)
        self.native(expr.loop, [(f"%{place.name}", 0) for place in places], "1")
        result = self.fetch(places[-1], "0")
        b.group = group
        return result

    # ---- expressions --------------------------------------------------------------------------------
    def expr(self, expr: Expr) -> Value:
        match expr:
            case Lit(bits, dtype):
                return literal(bits, dtype)
            case Index(at):
                return self.affine(at)
            case Local(name, _):
                return self.locals[name] if name in self.locals else self.read(name)
            case Elem():
                return self.load(expr)
            case Op(name, args, dtype):
                values = tuple(self.expr(a) for a in args)
                return apply(self.b, name, values, tuple(a.dtype for a in args), dtype)
            case Native():
                return self.one(expr)

    # ---- variables ----------------------------------------------------------------------------------
    def types(self, dtype: DType) -> tuple[str, ...]:
        return (ty(part(dtype)),) * 2 if dtype.kind == "c" else (ty(dtype),)

    def declare(self, stmt: Declare) -> None:
        dtype = stmt.init.dtype
        slots = tuple(self.b.label("%v") for _ in self.types(dtype))
        for slot, t in zip(slots, self.types(dtype), strict=True):
            self.allocas.append(f"  {slot} = alloca {t}")
        self.variables[stmt.name] = (dtype, slots, stmt.reassoc)
        if stmt.reassoc and stmt.name in self.extremes and dtype.kind == "f" and dtype.itemsize > 2:
            self.unordered[stmt.name] = self.b.label("%v")
            self.allocas.append(f"  {self.unordered[stmt.name]} = alloca i1")
        self.write(stmt.name, self.expr(stmt.init))

    def read(self, name: str) -> Value:
        dtype, slots, _ = self.variables[name]
        values = tuple(self.b.op(f"load {t}, ptr {s}") for s, t in zip(slots, self.types(dtype), strict=True))
        if name in self.unordered:
            found = self.b.op(f"load i1, ptr {self.unordered[name]}")
            return self.b.select(found, ty(dtype), real(np.nan, ty(dtype)), values[0])
        return values if dtype.kind == "c" else values[0]

    def write(self, name: str, value: Value) -> None:
        dtype, slots, _ = self.variables[name]
        if name in self.unordered:
            self.b.line(f"store i1 {self.b.isnan(ty(dtype), value)}, ptr {self.unordered[name]}")
        values = value if dtype.kind == "c" else (value,)
        for slot, t, v in zip(slots, self.types(dtype), values, strict=True):
            self.b.line(f"store {t} {v}, ptr {slot}")

    def update(self, stmt: Update) -> None:
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

    def extreme(self, stmt: Update) -> None:
        """Keep the extreme of what is ordered, and whether there was a NaN, which is cheaper than to have
        it win each time.  Which zero wins is left open, as by NumPy's own lanes."""
        b, (dtype, (slot,), _) = self.b, self.variables[stmt.name]
        t, name = ty(dtype), stmt.op.replace("imum", "num")
        value, old = self.expr(stmt.value), b.op(f"load {ty(dtype)}, ptr {slot}")
        # With a NaN the result is undefined ("nnan"), and not used.
        b.declare(f"llvm.{name}.{t}", f"declare {t} @llvm.{name}.f{BITS[t]}({t}, {t})")
        made = b.op(f"call nnan nsz {t} @llvm.{name}.f{BITS[t]}({t} {old}, {t} {value})")
        b.line(f"store {t} {made}, ptr {slot}")
        before = b.op(f"load i1, ptr {self.unordered[stmt.name]}")
        b.line(f"store i1 {b.either(before, b.isnan(t, value))}, ptr {self.unordered[stmt.name]}")

    # ---- statements ---------------------------------------------------------------------------------
    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case Let(name, value):
                    self.locals[name] = self.expr(value)
                case Declare():
                    self.declare(stmt)
                case Update():
                    self.update(stmt)
                case Assign(name, value):
                    self.write(name, self.expr(value))
                case Store():
                    self.store(stmt)
                case For(var, lower, upper, step, kind, inner, unroll):
                    low, high = self.affine(lower), self.least(upper)
                    self.loop(var, low, high, step, kind == "vector", inner, unroll)
                case If():
                    self.branch(stmt)
                case Stack(name, dtype, size):
                    self.stack(name, dtype, size)
                case Call():
                    self.call(stmt)
                case Turn():
                    self.turn(stmt)

    def least(self, values: tuple[Affine, ...]) -> str:
        """The least of some integers."""
        first, *rest = map(self.affine, values)
        for other in rest:
            first = self.b.intrinsic("smin", "i64", first, other)
        return first

    def loop(
        self, var: str, low: str, high: str, step: int, vector: bool, body: tuple[Stmt, ...], unroll: int = 0
    ) -> None:
        b = self.b
        start, head, inside, latch, end = (
            b.label(hint) for hint in ("start", "head", "body", "latch", "end")
        )
        b.line(f"br label %{start}")
        b.lines.append(f"{start}:")
        b.line(f"br label %{head}")
        b.lines.append(f"{head}:")
        i, following = b.name(), b.name()
        b.line(f"{i} = phi i64 [ {low}, %{start} ], [ {following}, %{latch} ]")
        b.line(f"br i1 {b.icmp('slt', 'i64', i, high)}, label %{inside}, label %{end}")
        b.lines.append(f"{inside}:")
        outer_group, outer_locals, outer_vars = b.group, self.locals, self.vars
        self.locals, self.vars = dict(self.locals), {**self.vars, var: i}
        group, calls = f"!{b.label('')}", b.calls
        if vector:
            b.group = f", !llvm.access.group {group}"
        self.block(body)
        b.group, self.locals, self.vars = outer_group, outer_locals, outer_vars
        b.line(f"br label %{latch}")
        b.lines.append(f"{latch}:")
        b.line(f"{following} = add nsw i64 {i}, {step}")
        # Interleaved iterations around a call would all spill what they hold.
        note = self.note(group, 1 if b.calls > calls else unroll) if vector else ""
        b.line(f"br label %{head}{note}")
        b.lines.append(f"{end}:")

    def note(self, group: str, unroll: int) -> str:
        """What the vectoriser is told of a loop: that its iterations are independent."""
        self.metadata.append(f"{group} = distinct !{{}}")
        parts = [f'!{{!"llvm.loop.parallel_accesses", {group}}}']
        if unroll:
            parts.append(f'!{{!"llvm.loop.interleave.count", i32 {unroll}}}')
        names = []
        for text in parts:
            names.append(f"!{self.b.label('')}")
            self.metadata.append(f"{names[-1]} = {text}")
        own = f"!{self.b.label('')}"
        self.metadata.append(f"{own} = distinct !{{{', '.join([own, *names])}}}")
        return f", !llvm.loop {own}"

    def branch(self, stmt: If) -> None:
        b = self.b
        then, orelse, end = (b.label(hint) for hint in ("then", "else", "join"))
        b.line(f"br i1 {self.expr(stmt.cond)}, label %{then}, label %{orelse}")
        for label, body in ((then, stmt.then), (orelse, stmt.orelse)):
            b.lines.append(f"{label}:")
            outer = self.locals
            self.locals = dict(outer)
            self.block(body)
            self.locals = outer
            b.line(f"br label %{end}")
        b.lines.append(f"{end}:")

    def run(self) -> list[str]:
        """The body of the function."""
        self.block(self.phase.pre)
        self.loop(self.phase.var, "%lo", "%hi", 1, self.phase.kind == "vector", self.phase.body)
        if self.b.soft_used:
            self.allocas.append("  %soft = alloca i32")
            self.b.line(f"ret i32 {self.b.op('load i32, ptr %soft')}")
            return [*self.allocas, "  store i32 0, ptr %soft", *self.b.lines]
        self.b.line("ret i32 0")
        return [*self.allocas, *self.b.lines]


def _unpack(kernel: Kernel, number: int) -> list[str]:
    lines = [f"define i32 @phase{number}(ptr %args, i64 %lo, i64 %hi) #0 {{"]
    values = []
    for i, name in enumerate([buffer.name for buffer in kernel.buffers] + list(kernel.ints)):
        t = "ptr" if i < len(kernel.buffers) else "i64"
        lines.append(f"  %a{i} = getelementptr i64, ptr %args, i64 {i}")
        lines.append(f"  %{name} = load {t}, ptr %a{i}")
        values.append(f"{t} %{name}")
    arguments = ", ".join([*values, "i64 %lo", "i64 %hi"])
    return [*lines, f"  %r = call i32 @body{number}({arguments})", "  ret i32 %r", "}"]


def emit(kernel: Kernel, machine: Machine) -> str:
    """The LLVM text of a kernel.

    Raises
    ------
    Unsupported
        If an operation cannot be done exactly as NumPy does it.
    """
    declarations: dict[str, str] = {}
    lines: list[str] = []
    metadata: list[str] = []
    quiet = bool(possible(kernel) & INVALID)
    parameters = [f"ptr{' noalias' if buffer.noalias else ''} %{buffer.name}" for buffer in kernel.buffers]
    parameters += [f"i64 %{name}" for name in kernel.ints]
    count = 0
    for number, phase in enumerate(kernel.phases):
        b = Builder(machine, quiet, count)
        writer = _Phase(kernel, phase, b)
        body = writer.run()
        head = ", ".join([*parameters, "i64 %lo", "i64 %hi"])
        lines += [f"define internal i32 @body{number}({head}) #1 {{", "entry:", *body, "}", ""]
        lines += [*_unpack(kernel, number), ""]
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
    pure = "memory(none) nounwind willreturn"
    attributes = [
        f"attributes #0 = {{ nounwind {width} }}",
        # Vectors that are spilled around calls would cross cache lines on a stack aligned to 16 bytes.
        f"attributes #1 = {{ nounwind noinline alignstack=64 {width} }}",
        f"attributes #2 = {{ {pure} }}",
        f"attributes #3 = {{ noinline {pure} {width} }}",
    ]
    text = "\n".join([*lines, *attributes, "!0 = !{}", *metadata])
    return text.replace("#pure", "#2").replace("#lane", "#3") + "\n"
