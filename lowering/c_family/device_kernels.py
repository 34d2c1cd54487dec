"""Printers of device kernels in OpenCL C and CUDA C: one function per phase, which each thread runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from dcarray.ir.records import record
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.walk import shared_stacks, values, walk, walk_statements

from .dialect import C_TYPES, Dialect
from .emit import Printer
from .ops import affine

_TYPES = C_TYPES | {"float16": "uint16_t"}  # its bits
MIN_THREADS = 32
"""Threads of a block from which on a device vectorises over them, not over the loops of each."""
_COMPARISONS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "=="}


_OF_C = {
    f"c_{name}": name
    for name in (
        "cos",
        "cosh",
        "exp",
        "exp2",
        "expm1",
        "fmod",
        "log",
        "log10",
        "log1p",
        "log2",
        "sin",
        "sinh",
    )
}
_OF_C |= {f"c_a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")}
_OF_C["c_pow"] = "power"
FAILED = "check_failed"
"""What kernels with checks call the buffer in which they write that one has failed."""
_FITS = {
    ("add_fits", "i"): "{T} r = ({T})(({U})a + ({U})b); return ((a ^ r) & (b ^ r)) >= 0;",
    ("add_fits", "u"): "return ({T})(a + b) >= a;",
    ("subtract_fits", "i"): "{T} r = ({T})(({U})a - ({U})b); return ((a ^ b) & (a ^ r)) >= 0;",
    ("subtract_fits", "u"): "return a >= b;",
    ("multiply_fits", "i"): (
        "if (a == 0 || b == 0) return 1; if (a == -1) return b != {low}; if (b == -1) return a != {low}; "
        "{T} r = ({T})((uint64_t)a * (uint64_t)b); return r / b == a;"
    ),
    ("multiply_fits", "u"): "return a == 0 || ({T})((uint64_t)a * b) / a == b;",
}


@record(frozen=True, slots=True)
class DeviceDialect(Dialect):
    """A dialect of C for devices; the defaults are what the devices have in common.  The type of sizes and
    indices is ``index_t``, of 32 bits where all of them fit.

    Attributes
    ----------
    block, thread : str
        Expressions of the number of the block, and of the thread within the block.
    barrier : str
        The statement that waits for all threads of the block.
    shared : str
        The qualifier of memory that the threads of a block share.
    bounds : str
        The qualifier of a phase whose blocks have ``{threads}`` threads.
    in_order : str
        The line before a loop that keeps the compiler from vectorising it, used in phases of few threads.
    """

    types: Mapping[str, str] = field(default_factory=lambda: _TYPES)
    vector_loops: bool = False
    wraps: bool = False
    numpy_loops: bool = False
    runs_phases: bool = False
    native_half: bool = False
    checks_conversions: bool = True
    block: str = ""
    thread: str = ""
    barrier: str = ""
    shared: str = ""
    bounds: str = ""
    in_order: str = ""

    @property
    def index(self) -> str:
        """The type of sizes and indices."""
        return "index_t"


def emit(kernel: k.Kernel, dialect: DeviceDialect) -> str:
    """Return the text of a kernel: a function ``phaseK`` for each of its phases.

    The arguments are the buffers in order - a pointer and an offset in elements, or the value - and then the
    integers.

    Raises
    ------
    Unsupported
        If the dialect cannot do an operation exactly as NumPy does.
    """
    if not all(phase.threads for phase in kernel.phases):
        raise Unsupported(f"the {dialect.name} target runs blocks of threads only")
    if kernel.routines:
        raise Unsupported(f"the {dialect.name} target has no functions that call themselves")
    printer = DevicePrinter(kernel, {}, dialect)
    phases = [line for number, phase in enumerate(kernel.phases) for line in printer.phase(number, phase)]
    return "\n".join([dialect.head, *printer.helpers, "", *phases]) + "\n"


def has_checks(kernel: k.Kernel) -> bool:
    """Whether a kernel checks values at run time."""
    roots = [
        root
        for phase in kernel.phases
        for stmt in walk_statements((*phase.pre, *phase.body))
        for root in (*values(stmt), *((stmt.cond,) if isinstance(stmt, k.If | k.Repeat) else ()))
    ]
    return any(isinstance(node, k.Op) and node.name == "checked" for root in roots for node in walk(root))


class DevicePrinter(Printer):
    """The printer of one kernel for a device."""

    dialect: DeviceDialect
    few_threads = False  # in the phase that is printed

    def loop(self, loop: k.For) -> Iterator[str]:
        """Yield the lines that begin a loop; one of kind "vector" has independent iterations."""
        if self.few_threads and self.dialect.in_order and loop.kind != "vector":
            yield self.dialect.in_order
        yield self.loop_head(loop)

    def expr(self, expr: k.Expr) -> str:
        match expr:
            case k.Index(at):  # an int64 value, however wide indices are
                return f"(({self.dialect.type(expr.dtype)})({affine(at)}))"
            case k.Op(name, (k.Index(left), k.Index(right))) if name in _COMPARISONS:
                return f"({affine(left)} {_COMPARISONS[name]} {affine(right)})"
            case k.Op("checked", (fits, value), dtype):
                return f"{self._checking(dtype)}({self.expr(fits)}, {self.expr(value)}, {FAILED})"
            case k.Op("add_fits" | "subtract_fits" | "multiply_fits" as name, (a, b)):
                return f"{self._fits(name, a.dtype)}({self.expr(a)}, {self.expr(b)})"
        return super().expr(expr)

    def apply(self, name: str, args: list[str], kinds: list[k.DType], dtype: k.DType) -> str:
        """An operation; a function of the C library's is NumPy's, within the same units in the last place."""
        return super().apply(_OF_C.get(name, name), args, kinds, dtype)

    def _checking(self, dtype: k.DType) -> str:
        """The function that gives a value, and writes where one does not fit."""
        kind, truth = self.dialect.type(dtype), self.dialect.type(np.dtype(bool))
        arguments = f"{truth} fits, {kind} value, {self.dialect.global_space}int32_t *failed"
        name = f"checked_{dtype.name}"
        text = f"{kind} {name}({arguments}) {{ if (!fits) *failed = 1; return value; }}"
        return self.helper(name, self.dialect.function + text)

    def _fits(self, name: str, dtype: k.DType) -> str:
        """The function that says whether integers have a sum, a difference or a product of their type."""
        kind, least = self.dialect.type(dtype), np.iinfo(dtype).min
        unsigned = self.dialect.type(np.dtype(f"u{dtype.itemsize}"))
        low = f"({kind})(({unsigned})1 << {8 * dtype.itemsize - 1})"
        how = _FITS[name, dtype.kind].format(T=kind, U=unsigned, low=low if least else "0")
        text = f"{self.dialect.function}int {name}_{dtype.name}({kind} a, {kind} b) {{ {how} }}"
        return self.helper(f"{name}_{dtype.name}", text)

    def phase(self, number: int, phase: k.Phase) -> Iterator[str]:
        dialect, index = self.dialect, self.dialect.index
        self.few_threads = phase.threads < MIN_THREADS
        arguments, pointers = [], []
        for buffer in self.kernel.buffers:
            name, kind = buffer.name, dialect.type(buffer.dtype)
            if buffer.by_value:
                arguments.append(f"const {kind} {name}_value")
                pointers.append(f"const {kind} *{name} = &{name}_value;")
                continue
            pointer = f"{dialect.global_space}{'const ' if buffer.access == 'r' else ''}{kind} *"
            arguments += [
                f"{pointer}{dialect.restrict if buffer.noalias else ''}{name}_base",
                f"const {index} {name}_at",
            ]
            pointers.append(f"{pointer}{name} = {name}_base + {name}_at;")
        if has_checks(self.kernel):
            arguments += [f"{dialect.global_space}int32_t *{FAILED}_base", f"const {index} {FAILED}_at"]
            pointers.append(f"{dialect.global_space}int32_t *{FAILED} = {FAILED}_base + {FAILED}_at;")
        arguments += [f"const {index} {name}" for name in self.kernel.ints]
        yield f"{dialect.phase}{dialect.bounds.format(threads=phase.threads)}void phase{number}("
        yield from (f"    {argument}," for argument in arguments[:-1])
        yield f"    {arguments[-1] if arguments else ''}) {{"
        if dialect.contraction:
            yield dialect.contraction
        yield from ("  " + line for line in pointers)
        yield f"  const {index} {phase.var} = {dialect.block};"
        for stack in shared_stacks(phase.body):
            yield f"  {dialect.shared}{dialect.type(stack.dtype)} {stack.name}[{stack.size}];"
        yield from self.together(phase.pre)
        yield from self.final(phase.body)
        yield from ("}", "")

    def final(self, body: Sequence[k.Stmt]) -> Iterator[str]:
        """Yield the body of a phase, or of a condition at its end, without a barrier at its end."""
        yield from self.together(body[:-1])
        match body[-1] if body else None:
            case k.Threads() as last:
                yield from ("  " + line for line in self.threads(last))
            case k.If(cond, then, orelse):
                self._settled(cond)
                yield f"  if ({self.expr(cond)}) {{"
                yield from ("  " + line for line in self.final(then))
                if orelse:
                    yield "  } else {"
                    yield from ("  " + line for line in self.final(orelse))
                yield "  }"
            case _:
                yield from self.together(body[-1:])

    def stmt(self, stmt: k.Stmt) -> Iterator[str]:
        """Yield a statement.  A local that only indices use gets their type: CPU compilers do not recognise
        contiguous accesses through conversions."""
        if isinstance(stmt, k.Let) and stmt.name not in self._values:
            text = self._index(stmt.value)
            if text is not None:
                yield f"const {self.dialect.index} {stmt.name} = {text};"
                return
        yield from super().stmt(stmt)

    @cached_property
    def _values(self) -> frozenset[str]:
        """The names of the locals that are used as values, and not only in indices."""
        roots = [
            root
            for phase in self.kernel.phases
            for stmt in walk_statements((*phase.pre, *phase.body))
            for root in (*values(stmt), *((stmt.cond,) if isinstance(stmt, k.If | k.Repeat) else ()))
        ]
        return frozenset(node.name for root in roots for node in walk(root) if isinstance(node, k.Local))

    def _index(self, expr: k.Expr) -> str | None:
        """Return the text of an integer that the schedule computes, in the type of indices; None if it may
        need more bits."""
        match expr:
            case k.Index(at):
                return affine(at)
            case k.Op("floor_divide" | "bitwise_and" | "right_shift" as name, (left, k.Lit(bits, dtype))):
                number = int(np.frombuffer(bits, dtype)[0]) if dtype.kind in "iu" else -1
                first = self._index(left)
                low, high = (1 if name == "floor_divide" else 0), (32 if name == "right_shift" else 1 << 31)
                if first is None or not low <= number < high:
                    return None
                return self._index_operation(name, first, str(number))
            case k.Op("floor_divide", (k.Index(left), k.Index(right))):
                return self._index_operation("floor_divide", affine(left), affine(right))
        return None

    def _index_operation(self, name: str, left: str, right: str) -> str:
        if name != "floor_divide":
            return f"({left}) {'&' if name == 'bitwise_and' else '>>'} {right}"
        index = self.dialect.index
        text = (
            f"{self.dialect.function}{index} floor_divide_index({index} a, {index} b) "
            "{ return a / b - ((a % b != 0) & ((a % b < 0) != (b < 0))); }"
        )
        return f"{self.helper('floor_divide_index', text)}({left}, {right})"

    def threads(self, stmt: k.Threads) -> Iterator[str]:
        """Yield the statements that each thread of a block runs, without a barrier after them."""
        yield "{"
        yield f"  const {self.dialect.index} {stmt.var} = {self.dialect.thread};"
        yield from self.block(stmt.body)
        yield "}"

    def together(self, body: Iterable[k.Stmt]) -> Iterator[str]:
        """Yield statements outside of `Threads`, which all threads of the block run in the same way."""
        for stmt in body:
            for line in self._alike(stmt):
                yield line if line.startswith("#") else "  " + line

    def _alike(self, stmt: k.Stmt) -> Iterator[str]:
        match stmt:
            case k.Threads():
                yield from self.threads(stmt)
                yield self.dialect.barrier
            case k.Stack(name, dtype, size, per_thread):
                if per_thread:
                    yield f"{self.dialect.type(dtype)} {name}[{size}];"
            case k.For(body=inner):
                yield from self.loop(stmt)
                yield from self.together(inner)
                yield "}"
            case k.If(cond, then, orelse):
                self._settled(cond)
                yield f"if ({self.expr(cond)}) {{"
                yield from self.together(then)
                if orelse:
                    yield "} else {"
                    yield from self.together(orelse)
                yield "}"
            case k.Repeat(head, cond, inner):
                self._settled(cond)
                yield "for (;;) {"
                yield from self.together(head)
                yield f"  if (!({self.expr(cond)})) break;"
                yield from self.together(inner)
                yield "}"
            case _:
                yield from self.stmt(stmt)
                if any(map(self._may_change, values(stmt))):  # others may be ahead, and store there
                    yield self.dialect.barrier

    def _settled(self, cond: k.Expr) -> None:
        if self._may_change(cond):
            raise Unsupported("a condition of all threads that reads what they write")

    def _may_change(self, expr: k.Expr) -> bool:
        """Whether an expression loads from memory that this kernel writes."""
        fixed = {buffer.name for buffer in self.kernel.buffers if buffer.access == "r"}
        return any(isinstance(node, k.Elem) and node.buffer not in fixed for node in walk(expr))
