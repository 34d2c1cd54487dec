"""The printer of kernels in a dialect of C: a pure function from the kernel IR to readable text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dcarray.ir.ops import C_LIBRARY
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k

from .dialect import C, Dialect
from .ops import (
    CALL,
    TEMPLATES,
    affine,
    call_function,
    cast,
    cast_width,
    checked,
    checked_conversion,
    expression,
    function,
    greatest,
    least,
    literal,
)


def emit(kernel: k.Kernel, names: Mapping[str, str] | None = None, dialect: Dialect = C) -> str:
    """Return the text of a kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel to print.
    names : mapping, optional
        Names of the arrays behind the buffers, for the comments.
    dialect : Dialect, optional

    Raises
    ------
    Unsupported
        If the dialect cannot do an operation exactly as NumPy does.
    """
    if any(phase.threads for phase in kernel.phases):
        raise Unsupported(f"the {dialect.name} target has no blocks of threads")
    printer = Printer(kernel, names or {}, dialect)
    phases = [line for number, phase in enumerate(kernel.phases) for line in printer.phase(number, phase)]
    run = _run(kernel, dialect) if dialect.runs_phases else ()
    routines = printer.routines()
    return "\n".join([dialect.head, *printer.helpers, "", *routines, *phases, *run]) + "\n"


def _run(kernel: k.Kernel, dialect: Dialect) -> Iterator[str]:
    yield "/* All phases: the extent and the work of each, then the pointers and integers. */"
    yield f"{dialect.phase}int32_t run(const int64_t *a) {{"
    yield "  int32_t flags = 0;"
    yield "  feclearexcept(FE_ALL_EXCEPT);"
    for number in range(len(kernel.phases)):
        yield f"  flags |= phase{number}(a + {2 * len(kernel.phases)}, 0, a[{2 * number}]);"
    yield "  int raised = fetestexcept(FE_ALL_EXCEPT);"
    yield "  return flags | (raised & FE_DIVBYZERO ? 1 : 0) | (raised & FE_OVERFLOW ? 2 : 0)"
    yield "    | (raised & FE_UNDERFLOW ? 4 : 0) | (raised & FE_INVALID ? 8 : 0);"
    yield "}"


def _simd(body: tuple[k.Stmt, ...]) -> Iterator[str]:
    """Yield OpenMP's pragma for a vector loop with its reductions; nothing if C has no such reduction."""
    clauses, inner = "", {stmt.name for stmt in body if isinstance(stmt, k.Declare)}
    for stmt in body:
        if isinstance(stmt, k.Update) and stmt.name not in inner:
            sign = {"add": "+", "multiply": "*"}.get(stmt.op)
            if sign is None or stmt.value.dtype.kind not in "iuf" or stmt.value.dtype == np.float16:
                return
            clauses += f" reduction({sign}:{stmt.name})"
        elif isinstance(stmt, k.For | k.Repeat | k.If | k.Assign):
            return
    yield "#pragma omp simd" + clauses


class Printer:
    """The printer of one kernel: of its expressions, statements and phases."""

    def __init__(
        self, kernel: k.Kernel, names: Mapping[str, str], dialect: Dialect, prefix: str = ""
    ) -> None:
        self.kernel, self.names, self.dialect = kernel, names, dialect
        self.prefix = prefix  # of the names of phases
        self.helpers: list[str] = []

    # ---- expressions ----
    def expr(self, expr: k.Expr) -> str:
        match expr:
            case k.Lit():
                return literal(expr, self.dialect)
            case k.Index(at):
                return f"({affine(at)})"
            case k.Local(name, _):
                return name
            case k.Elem(buffer, at, _, more):
                extra = "".join(f" + ({self.dialect.index}){self.expr(e)} * ({affine(s)})" for e, s in more)
                return f"{buffer}[{affine(at)}{extra}]"
            case k.Op("cast", (arg,), dtype):
                return self.cast(self.expr(arg), arg.dtype, dtype)
            case k.Op("where", args, dtype):
                return self.apply("where", [self.expr(arg) for arg in args], [dtype], dtype)
            case k.Op("checked", (fits, value), dtype):
                helper = self.helper(*checked(dtype, self.dialect))
                return f"{helper}({self.expr(fits)}, {self.expr(value)})"
            case k.Op(name, args, dtype):
                return self.apply(name, [self.expr(arg) for arg in args], [arg.dtype for arg in args], dtype)
            case k.NumpyOp(name, args, dtype, loop):
                self.numpy_loops()
                helper = self.helper(*call_function(name, [arg.dtype for arg in args], dtype))
                return f"{helper}({', '.join([loop.code, loop.data, *map(self.expr, args)])})"

    def cast(self, text: str, source: k.DType, dtype: k.DType) -> str:
        """Return the text that converts a value of the dtype ``source`` to ``dtype``."""
        part = np.dtype(f"f{source.itemsize // 2}") if source.kind == "c" else source
        if self.dialect.checks_conversions and part.kind == "f" and dtype.kind in "iu":
            text = cast(text, source, part, self.dialect)
            wide = cast_width(dtype)
            if part == np.float16:
                text, part = self.dialect.widened_half(text), np.dtype(np.float32)
            if wide.kind == "u":
                self.helper(*checked_conversion(part, np.dtype(np.int64), self.dialect))
            helper = self.helper(*checked_conversion(part, wide, self.dialect))
            return cast(f"{helper}({text})", wide, dtype, self.dialect)
        return cast(text, source, dtype, self.dialect)

    def apply(self, name: str, args: list[str], kinds: list[k.DType], dtype: k.DType) -> str:
        source = kinds[0]
        if name in C_LIBRARY and not self.dialect.c_library:
            raise Unsupported(f"the {self.dialect.name} target has no {name} for {source.name}")
        if any(kind != source for kind in kinds) and not (name == "ldexp" and kinds[1].itemsize <= 4):
            raise Unsupported(f"the {self.dialect.name} target has no {name} for mixed dtypes")
        if source == np.float16 and name != "where":  # computed in float and rounded, as NumPy does
            if name in ("spacing", "nextafter"):
                raise Unsupported(f"the {self.dialect.name} target has no {name} for float16")
            wide = [np.dtype(np.float32) if kind == source else kind for kind in kinds]
            widened = self.dialect.widened_half
            args = [widened(arg) if kind == source else arg for arg, kind in zip(args, kinds, strict=True)]
            name = f"{name}_half" if (f"{name}_half", "f") in TEMPLATES else name
            text = self.apply(name, args, wide, wide[0] if dtype == source else dtype)
            return self.dialect.rounded_half(text, wide[0]) if dtype == source else text
        helper = function(name, source, dtype, self.dialect)
        if helper is not None:
            return f"{self.helper(*helper)}({', '.join(args)})"
        code = expression(name, args, source, dtype, self.dialect)
        if code is None:
            raise Unsupported(f"the {self.dialect.name} target has no {name} for {source.name}")
        return code

    def helper(self, name: str, text: str) -> str:
        """Add the text of a helper function, unless it is there already, and return its name."""
        if text not in self.helpers:
            self.helpers.append(text)
        return name

    def numpy_loops(self) -> None:
        """Add the helper function that calls NumPy's loops."""
        if not self.dialect.numpy_loops:
            raise Unsupported(f"the {self.dialect.name} target cannot call NumPy's loops")
        self.helper("call", CALL)

    def call(self, stmt: k.NumpyCall) -> str:
        self.numpy_loops()
        rows = [*stmt.reads, stmt.write]
        places = ", ".join(f"{row.buffer} + ({affine(row.at)})" for row in rows)
        steps = ", ".join(f"{row.step} * (int)sizeof *{row.buffer}" for row in rows)
        function = f"{stmt.loop.code}, {stmt.loop.data}, {least(stmt.count)}"
        return f"call({function}, (void *[]){{{places}}}, (intptr_t[]){{{steps}}});  /* {stmt.name} */"

    def draw(self, stmt: k.Draw) -> str:
        if not self.dialect.numpy_loops:
            raise Unsupported(f"the {self.dialect.name} target cannot draw from NumPy's generators")
        kind = self.dialect.type(stmt.dtype)
        kinds = "".join(f", {self.dialect.type(arg.dtype)}" for arg in stmt.args)
        given = "".join(f", {self.expr(arg)}" for arg in stmt.args)
        function = f"(({kind} (*)(void *{kinds})){stmt.code})((void *){self.expr(stmt.generator)}{given})"
        return f"const {kind} {stmt.name} = {function};  /* {stmt.function} */"

    # ---- routines ----
    def routines(self) -> list[str]:
        """Return the functions that phases call, which get the kernel's arguments and their own parameters
        and return structs."""
        heads, texts = [], []
        pointers = []
        for buffer in self.kernel.buffers:
            constant = "const " if buffer.access == "r" else ""
            pointers.append(f"{constant}{self.dialect.type(buffer.dtype)} *{buffer.name}")
        for routine in self.kernel.routines:
            name, index = self.prefix + routine.name, self.dialect.index
            taken = [*pointers, *[f"{index} {number}" for number in self.kernel.ints]]
            taken += [f"{self.dialect.type(local.dtype)} {local.name}" for local in routine.parameters]
            kinds = [self.dialect.type(value.dtype) for value in routine.results]
            fields = " ".join(f"{kind} v{k};" for k, kind in enumerate(kinds))
            head = f"static {name}_t {name}({', '.join(taken)})"
            heads += [f"typedef struct {{ {fields} }} {name}_t;", f"{head};"]
            values = ", ".join(map(self.expr, routine.results))
            texts += [f"{head} {{", *self.block(routine.body), f"  return ({name}_t){{{values}}};", "}", ""]
        return [*heads, *texts]

    def invoke(self, stmt: k.Invoke) -> Iterator[str]:
        name, pointers = self.prefix + stmt.routine, [buffer.name for buffer in self.kernel.buffers]
        given = [*pointers, *self.kernel.ints, *map(self.expr, stmt.args)]
        (first, *_) = stmt.results
        yield f"const {name}_t {first.name}_of = {name}({', '.join(given)});"
        for number, local in enumerate(stmt.results):
            yield f"const {self.dialect.type(local.dtype)} {local.name} = {first.name}_of.v{number};"

    # ---- statements ----
    def phase(self, number: int, phase: k.Phase) -> Iterator[str]:
        dialect, index = self.dialect, self.dialect.index
        space = dialect.global_space
        status = dialect.type(np.dtype(np.int32))
        name = f"{self.prefix}phase{number}"
        yield f"{dialect.phase}{status} {name}({space}const {index} *args, {index} lo, {index} hi) {{"
        if dialect.contraction:
            yield dialect.contraction
        for position, buffer in enumerate(self.kernel.buffers):
            constant = "const " if buffer.access == "r" else ""
            restrict = dialect.restrict if buffer.noalias else ""
            comment = f"  /* {self.names[buffer.name]} */" if buffer.name in self.names else ""
            kind = f"{space}{constant}{dialect.type(buffer.dtype)} *"
            yield f"  {kind}{restrict}{buffer.name} = ({kind})args[{position}];{comment}"
        for position, name in enumerate(self.kernel.ints):
            yield f"  const {index} {name} = args[{len(self.kernel.buffers) + position}];"
        yield from self.block(phase.pre)
        if phase.kind == "vector" and dialect.vector_loops:
            yield "#pragma omp simd"
        yield f"  for ({index} {phase.var} = lo; {phase.var} < hi; {phase.var}++) {{"
        yield from ("  " + line for line in self.block(phase.body))
        yield from ("  }", "  return 0;", "}", "")

    def block(self, body: Iterable[k.Stmt]) -> Iterator[str]:
        for stmt in body:
            for line in self.stmt(stmt):
                yield line if line.startswith("#") else "  " + line

    def loop(self, loop: k.For) -> Iterator[str]:
        """Yield the lines that begin a loop."""
        if loop.kind == "vector" and self.dialect.vector_loops:
            yield from _simd(loop.body)
        yield self.loop_head(loop)

    def loop_head(self, loop: k.For) -> str:
        """Return the head of a ``for`` loop, with its opening brace."""
        var, step = loop.var, loop.step
        advance = f"{var} += {step}" if step > 1 else f"{var}++"
        head = f"{self.dialect.index} {var} = {greatest((loop.lower, *loop.floors))}"
        return f"for ({head}; {var} < {least(loop.upper)}; {advance}) {{"

    def stmt(self, stmt: k.Stmt) -> Iterator[str]:
        match stmt:
            case k.Let(name, value):
                yield f"const {self.dialect.type(value.dtype)} {name} = {self.expr(value)};"
            case k.Declare(name, init, _):
                yield f"{self.dialect.type(init.dtype)} {name} = {self.expr(init)};"
            case k.Update(name, op, value):
                yield f"{name} = {self.apply(op, [name, self.expr(value)], [value.dtype] * 2, value.dtype)};"
            case k.Assign(name, value):
                yield f"{name} = {self.expr(value)};"
            case k.Store(buffer, at, value):
                yield f"{buffer}[{affine(at)}] = {self.expr(value)};"
            case k.For(body=body):
                yield from self.loop(stmt)
                yield from self.block(body)
                yield "}"
            case k.Repeat(head, cond, body):
                yield "for (;;) {"
                yield from self.block(head)
                yield f"  if (!({self.expr(cond)})) break;"
                yield from self.block(body)
                yield "}"
            case k.If(cond, then, orelse):
                yield f"if ({self.expr(cond)}) {{"
                yield from self.block(then)
                if orelse:
                    yield "} else {"
                    yield from self.block(orelse)
                yield "}"
            case k.Stack(name, dtype, size):
                yield f"{self.dialect.type(dtype)} {name}[{size}];"
            case k.NumpyCall():
                yield self.call(stmt)
            case k.Draw():
                yield self.draw(stmt)
            case k.Invoke():
                yield from self.invoke(stmt)
            case k.TransposeTile(write, to, across, read, at, along, rows, cols):
                index = self.dialect.index
                yield f"for ({index} c = 0; c < {least(cols)}; c++)"
                yield f"  for ({index} r = 0; r < {least(rows)}; r++)"
                there = f"{write}[{affine(to)} + c * ({affine(across)}) + r]"
                yield f"    {there} = {read}[{affine(at)} + r * ({affine(along)}) + c];"
