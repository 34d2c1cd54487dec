"""The values of a phase as LLVM text: integers, memory, expressions, variables, and NumPy's own loops."""

from __future__ import annotations

import numpy as np

from dcarray.ir.ops import FITS
from dcarray.lowering.cpu.llvm.math import exact_functions, magnitude_compare, powers
from dcarray.lowering.cpu.llvm.ops.integer_ops import with_overflow_flag
from dcarray.lowering.cpu.llvm.ops.scalar_ops import apply
from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, Value, part, real, ty
from dcarray.lowering.cpu.llvm.text.literals import literal
from dcarray.lowering.kernel.flags import INVALID, op_flags
from dcarray.lowering.kernel.nodes import (
    STEPS,
    Affine,
    Buffer,
    Declare,
    Elem,
    Expr,
    Index,
    Kernel,
    Lit,
    Local,
    NumpyLoop,
    NumpyOp,
    Op,
    Phase,
)
from dcarray.lowering.kernel.walk import updates, walk
from dcarray.lowering.runtime.threads import exceptions

from .access_hints import AccessHints
from .select_barriers import NestedSelects, make_opaque

_INT64 = np.dtype(np.int64)
LOWEST_INDEX = -(2**62)  # the lower bound of strides and indices, which LLVM cannot know
MAX_STRIDE = 8  # the largest stride for which LLVM loads whole vectors, gaps included
_SMAX = "declare i64 @llvm.smax.i64(i64, i64)"


def _memory_type(dtype: DType) -> str:
    """Return the type of an element, or of one part of a complex element, in memory."""
    if dtype.kind == "c":
        return ty(part(dtype))
    return "i8" if dtype.kind == "b" else ty(dtype)


def _align(dtype: DType) -> int:
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def _extremes(phase: Phase) -> frozenset[str]:
    """Return the variables that are only updated with maximum or minimum."""
    every = list(updates(phase.body))
    others = {stmt.name for stmt in every if stmt.op not in ("maximum", "minimum")}
    return frozenset(stmt.name for stmt in every if stmt.name not in others)


def _known(expr: Expr) -> bool:
    """Whether an expression consists of constants and loop variables alone."""
    return all(isinstance(node, Lit | Index | Op) for node in walk(expr))


class Values:
    """The emitter of the values of one phase."""

    def __init__(self, kernel: Kernel, phase: Phase, b: Builder, hints: AccessHints) -> None:
        self.b = b
        self.hints = hints
        self.phase = phase
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.kernel = kernel
        self.vars: dict[str, str] = {}
        self.locals: dict[str, Value] = {}
        self.variables: dict[str, tuple[DType, tuple[str, ...], bool]] = {}
        self.extremes = _extremes(phase)
        self.choices = NestedSelects(phase)
        self.unordered: dict[str, str] = {}
        self.hides = False  # whether constants are made opaque to LLVM
        self.along = False  # in a loop with unit strides, which LLVM may vectorise
        self.allocas: list[str] = []
        self.metadata: list[str] = []

    # ---- integers and memory ------------------------------------------------------------------------
    def affine(self, value: Affine, element: bool = False, loaded: bool = False) -> str:
        b = self.b
        total = ""
        for term in value.terms:
            coef = term.coef
            factors = [f"%{term.arg}"] if term.arg else []
            if element and term.arg and term.var and b.machine.masks:
                factors = [self.step(term.arg)]
            elif loaded and term.var and not term.arg and 1 < abs(coef) <= MAX_STRIDE:
                factors, coef = [self.step(coef)], 1
            factors += [self.variable(term.var)] if term.var else []
            product = factors[0]
            for factor in factors[1:]:
                product = b.op(f"mul nsw i64 {product}, {factor}")
            if coef != 1:
                product = b.op(f"mul nsw i64 {product}, {coef}")
            total = b.op(f"add nsw i64 {total}, {product}") if total else product
        if not total:
            return str(value.const)
        return b.op(f"add nsw i64 {total}, {value.const}") if value.const else total

    def variable(self, name: str) -> str:
        """Return the value of a loop variable, or of a local in an affine expression."""
        return self.vars[name] if name in self.vars else self.locals[name]

    def index(self, buffer: Buffer, at: Affine, loaded: bool = False) -> str:
        """Emit the computation of an element's index in a buffer, and return its name."""
        wide = buffer.dtype.itemsize >= 4
        return self.affine(at, element=wide, loaded=loaded and wide)

    def step(self, stride: str | int) -> str:
        """Return a stride, the name of an argument or a number, opaque to LLVM.

        LLVM versions a loop for unknown strides that are 1, behind a test of the stride; but here a stride of
        1 is a constant, so that loop would never run.  For a small known stride it loads the gaps, too, and
        may compute with them before it extracts the elements, which raises spurious exceptions.  With an
        opaque stride it gathers, or loads elements one by one where a processor has no masks.
        """
        name = f"%{stride}.step" if isinstance(stride, str) else f"%by.{stride}"
        if all(not line.startswith(f"  {name} ") for line in self.allocas):
            if isinstance(stride, str):
                self.b.declare("llvm.smax.i64", _SMAX)
                line = f"  {name} = call i64 @llvm.smax.i64(i64 %{stride}, i64 {LOWEST_INDEX})"
            else:
                line = f"  {name} = add i64 {self.opaque_zero()}, {stride}"
            self.allocas.append(line)
        return name

    def opaque_zero(self) -> str:
        """Return zero, opaque to LLVM."""
        if "  %nothing = xor i64 %nothing.least, %lo" not in self.allocas:
            self.b.declare("llvm.smax.i64", _SMAX)
            self.allocas += [
                f"  %nothing.least = call i64 @llvm.smax.i64(i64 %lo, i64 {LOWEST_INDEX})",
                "  %nothing = xor i64 %nothing.least, %lo",
            ]
        return "%nothing"

    def opaque_constant(self, bits: bytes, dtype: DType) -> str:
        """Return a constant, opaque to LLVM."""
        number, t = int.from_bytes(bits, "little", signed=True), f"i{8 * dtype.itemsize}"
        name = f"%unseen.{ty(dtype)}.{bits.hex()}"
        if all(not line.startswith(f"  {name} ") for line in self.allocas):
            zero = self.opaque_zero()
            if t != "i64":
                self.allocas.append(f"  {name}.zero = trunc i64 {zero} to {t}")
                zero = f"{name}.zero"
            self.allocas += [
                f"  {name}.bits = xor {t} {zero}, {number}",
                f"  {name} = bitcast {t} {name}.bits to {ty(dtype)}",
            ]
        return name

    def least(self, values: tuple[Affine, ...], intrinsic: str = "smin") -> str:
        """Return the minimum of some integers."""
        first, *rest = map(self.affine, values)
        for other in rest:
            first = self.b.intrinsic(intrinsic, "i64", first, other)
        return first

    def greatest(self, values: tuple[Affine, ...]) -> str:
        """Return the maximum of some integers."""
        return self.least(values, "smax")

    def address(self, buffer: Buffer, index: str) -> tuple[str, ...]:
        """Return the addresses of an element, or of both parts of a complex one."""
        b, t = self.b, _memory_type(buffer.dtype)
        base = f"%{buffer.name}"
        if buffer.dtype.kind != "c":
            return (b.op(f"getelementptr inbounds {t}, ptr {base}, i64 {index}"),)
        first = b.op(f"getelementptr inbounds [2 x {t}], ptr {base}, i64 {index}")
        return first, b.op(f"getelementptr inbounds {t}, ptr {first}, i64 1")

    def load(self, expr: Elem) -> Value:
        b, buffer = self.b, self.buffers[expr.buffer]
        index = self.index(buffer, expr.at, loaded=True)
        for position, stride in expr.more:
            i = apply(b, "cast", (self.expr(position),), (position.dtype,), _INT64)
            step = b.op(f"mul nsw i64 {i}, {self.affine(stride)}")
            index = b.op(f"add nsw i64 {index}, {step}")
        between = any(term.coef > 1 and term.var and not term.arg for term in expr.at.terms)
        return self.fetch(buffer, index, between)

    def isolate(self, value: str, t: str) -> str:
        """Return a narrow integer behind a barrier: LLVM may load gaps with it, but not compute with them."""
        opaque_zero = self.b.op(f"trunc i64 {self.opaque_zero()} to {t}")
        return self.b.op(f"xor {t} {value}, {opaque_zero}")

    def fetch(self, buffer: Buffer, index: str, between: bool = False) -> Value:
        """Load the element of a buffer; ``between``: the loop's elements have gaps between them."""
        b, t = self.b, _memory_type(buffer.dtype)
        align = _align(buffer.dtype)
        values = [b.op(f"load {t}, ptr {at}, align {align}{b.group}") for at in self.address(buffer, index)]
        if between and buffer.dtype.itemsize < 4 and buffer.dtype.kind in "iub":
            values = [self.isolate(values[0], t)]
        if buffer.dtype.kind == "b":
            return b.icmp("ne", "i8", values[0], "0")
        return tuple(values) if buffer.dtype.kind == "c" else values[0]

    def put(self, buffer: Buffer, index: str, value: Value) -> None:
        """Store the element of a buffer."""
        b = self.b
        if buffer.dtype.kind == "b":
            value = b.op(f"zext i1 {value} to i8")
        values = value if buffer.dtype.kind == "c" else (value,)
        t = _memory_type(buffer.dtype)
        for at, v in zip(self.address(buffer, index), values, strict=True):
            b.line(f"store {t} {v}, ptr {at}, align {_align(buffer.dtype)}{b.group}")

    def stack(self, name: str, dtype: DType, size: int) -> Buffer:
        """Declare an array on the stack and return it as a buffer."""
        size *= 2 if dtype.kind == "c" else 1
        self.allocas.append(f"  %{name} = alloca [{size} x {_memory_type(dtype)}], align 64")
        self.buffers[name] = Buffer(name, dtype, "rw")
        return self.buffers[name]

    # ---- NumPy's loops ------------------------------------------------------------------------------
    def native(self, loop: NumpyLoop, rows: list[tuple[str, int]], count: str, code: str = "") -> None:
        """Emit the call of NumPy's loop, or of an equivalent one at address ``code``, on ``count`` elements
        of rows, each given as its address and its stride in bytes."""
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
        function = b.op(f"inttoptr i64 {code or f'%{loop.code}'} to ptr")
        last = b.op(f"inttoptr i64 %{loop.data} to ptr")
        call = f"call void {function}(ptr {pointers}, ptr {number}, ptr {strides}, ptr {last})"
        if not loop.clears:
            return b.line(call)
        b.declare("fetestexcept", "declare i32 @fetestexcept(i32)")
        b.declare("feraiseexcept", "declare i32 @feraiseexcept(i32)")
        raised = b.op(f"call i32 @fetestexcept(i32 {sum(exceptions())})")
        b.line(call)
        b.line(f"call i32 @feraiseexcept(i32 {raised})")

    def one(self, expr: NumpyOp) -> Value:
        """Emit the call of NumPy's loop for one element; return the result."""
        b = self.b
        kinds = [*(arg.dtype for arg in expr.args), expr.dtype]
        values = [self.expr(arg) for arg in expr.args]
        if (
            asked := exact_functions.single(b, expr.name, expr.args, [str(value) for value in values])
        ) is not None:
            return asked
        places = [self.stack(b.label("one"), dtype, 1) for dtype in kinds]
        group, b.group = b.group, ""  # iterations share these places
        for place, value in zip(places, values, strict=False):
            self.put(place, "0", value)
        steps = [STEPS.get((expr.name, k), 0) * dtype.itemsize for k, dtype in enumerate(kinds)]
        rows = [(f"%{place.name}", step) for place, step in zip(places, steps, strict=True)]
        self.native(expr.loop, rows, "1")
        result = self.fetch(places[-1], "0")
        b.group = group
        return result

    # ---- expressions --------------------------------------------------------------------------------
    def expr(self, expr: Expr) -> Value:
        match expr:
            case Lit(bits, dtype):
                return (
                    self.opaque_constant(bits, dtype)
                    if self.hides and dtype.kind == "f"
                    else literal(bits, dtype)
                )
            case Index(at):
                value = self.affine(at)
                return self.b.op(f"add i64 {value}, {self.opaque_zero()}") if self.hides else value
            case Local(name, _):
                return self.locals[name] if name in self.locals else self.read(name)
            case Elem():
                return self.load(expr)
            case Op(name, args, dtype):
                types = tuple(a.dtype for a in args)
                if (size := magnitude_compare.magnitude_argument(name, args, self.b)) is not None:
                    return self.compare_magnitudes(expr, size)
                if self.is_overflow_checked(expr):
                    return self.overflowing(expr)
                if name == "power" and self.b.machine.exact_powers and powers.is_one_instruction(args[1]):
                    return powers.power(self.b, str(self.arguments(expr)[0]), args[1])
                return apply(self.b, name, self.arguments(expr), types, dtype)
            case NumpyOp():
                return self.one(expr)

    def is_overflow_checked(self, expr: Op) -> bool:
        """Whether an expression is an integer operation with an overflow check that one scalar instruction
        does; in vector loops there is no such instruction."""
        if expr.name != "checked" or self.b.group or self.along:
            return False
        fits, value = expr.args
        if not (isinstance(fits, Op) and isinstance(value, Op) and FITS.get(fits.name) == value.name):
            return False
        return fits.args == value.args

    def overflowing(self, expr: Op) -> Value:
        """Emit an integer operation that raises the flag "invalid" on overflow; return its result."""
        value = expr.args[1]
        assert isinstance(value, Op)
        x, y = self.arguments(value)
        result, wrapped = with_overflow_flag(self.b, value.name, (str(x), str(y)), value.dtype)
        self.b.soft(wrapped, INVALID)
        return result

    def arguments(self, expr: Op) -> tuple[Value, ...]:
        types = tuple(a.dtype for a in expr.args)
        values = []
        hides = self.hides
        # LLVM folds constants, which raises no flag, and compares roots without taking them
        known = op_flags(expr.name, types, expr.dtype) != 0 and _known(expr)
        root = any(isinstance(a, Op) and a.name == "sqrt" for a in expr.args)
        self.hides = hides or known or (root and expr.dtype.kind == "b")
        for a in expr.args:
            value = self.expr(a)
            guards = self.choices.guards(a, expr.name, types, expr.dtype)
            values.append(make_opaque(self.b, value, a.dtype) if guards else value)
        self.hides = hides
        return tuple(values)

    def compare_magnitudes(self, expr: Op, size: int) -> Value:
        """Emit a comparison with the absolute value of a complex number; return its result."""
        measured = expr.args[size]
        assert isinstance(measured, Op)
        values = [self.expr(a) if k != size else "" for k, a in enumerate(expr.args)]
        (z,) = self.arguments(measured)
        values[size] = magnitude_compare.comparable_magnitude(self.b, z, values[1 - size])
        return apply(self.b, expr.name, tuple(values), tuple(a.dtype for a in expr.args), expr.dtype)

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
            is_nan = self.b.op(f"load i1, ptr {self.unordered[name]}")
            return self.b.select(is_nan, ty(dtype), real(np.nan, ty(dtype)), values[0])
        return values if dtype.kind == "c" else values[0]

    def write(self, name: str, value: Value) -> None:
        dtype, slots, _ = self.variables[name]
        if name in self.unordered:
            self.b.line(f"store i1 {self.b.isnan(ty(dtype), value)}, ptr {self.unordered[name]}")
        values = value if dtype.kind == "c" else (value,)
        for slot, t, v in zip(slots, self.types(dtype), values, strict=True):
            self.b.line(f"store {t} {v}, ptr {slot}")
