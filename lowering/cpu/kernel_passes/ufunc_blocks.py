"""Calls of NumPy's ufunc inner loops from kernels, for functions whose last bits IEEE 754 leaves open.

The last bits of ``exp``, ``sin`` or ``power`` depend on the implementation, so kernels call the loops
that NumPy itself runs: results are NumPy's to the bit.  An innermost loop is cut into blocks that stay in
the first cache, and each block is done in stages (``block_stages``).  Elsewhere NumPy's loop is called for
one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

import numpy as np

from dcarray.ir import dims
from dcarray.ir.ops import C_LIBRARY, LOOPS_OF
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.walk import map_children, map_values, operations, values, walk
from dcarray.lowering.runtime import numpy_loops

from .block_stages import Stages

ROW = 4096  # bytes of a row on the stack
PLAIN = 8  # the factor by which a block without such rows is larger
CALLS = 8  # with more calls in a block, rows are smaller, so that all stay in the first caches

Exact = Callable[[k.Op], bool]
Find = Callable[[str, tuple[k.DType, ...], k.DType], tuple[int, int, bool] | None]

_OPEN = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "logaddexp", "logaddexp2"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "hypot", "power", "float_power"),
        "array_power",
        *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    }
)  # functions that IEEE 754 does not define to the bit
_COMPLEX = frozenset({"sqrt", "sign", "absolute"})
_HALF = frozenset({"spacing", "nextafter"})


def call_numpy_loops(
    kernel: k.Kernel,
    binding: k.Binding,
    exact: bool = True,
    is_exact: Exact = lambda op: False,
    find: Find = numpy_loops.find,
) -> tuple[k.Kernel, k.Binding]:
    """Return the kernel and its binding with NumPy's loops called for operations that IEEE 754 does not
    define to the bit; the same objects if there are no such operations.

    The target itself computes operations for which ``is_exact`` holds, those for which ``find`` (like
    `numpy_loops.find`) has no loop, and, unless ``exact``, real functions that its libraries have.
    """
    maker = _Maker(kernel, binding, exact, is_exact, find)
    phases = [maker.phase(number) for number in range(len(kernel.phases))]
    routines = tuple([
        replace(one, body=maker.block(one.body), results=tuple(map(maker.single, one.results)))
        for one in kernel.routines
    ])  # fmt: skip
    if not maker.loops:
        return kernel, binding
    new = replace(kernel, phases=tuple(phases), ints=tuple(maker.ints), routines=routines)
    then = binding.then
    if then is not None:  # of a kernel whose phases stay as they are
        then = replace(then, ints=(*then.ints, *maker.values[len(binding.ints) :]))
    return new, replace(
        binding, ints=tuple(maker.values), extents=tuple(maker.extents), work=tuple(maker.work), then=then
    )


class _Maker:
    """The state of the rewrite of one kernel."""

    def __init__(
        self, kernel: k.Kernel, binding: k.Binding, exact: bool, is_exact: Exact, find: Find
    ) -> None:
        self.kernel, self.exact, self.is_exact, self.find = kernel, exact, is_exact, find
        self.ints, self.values = list(kernel.ints), list(binding.ints)
        self.extents, self.work = list(binding.extents), list(binding.work)
        self.loops: dict[tuple[str, tuple[k.DType, ...], k.DType], k.NumpyLoop] = {}
        self.numbers = count()
        self.free = frozenset(b.name for b in kernel.buffers if b.access == "r" and b.noalias)

    def integer(self, value: object) -> str:
        """Add an integer argument with this value to the kernel, and return its name."""
        self.ints.append(f"n{len(self.ints)}")
        self.values.append(value)
        return self.ints[-1]

    def fresh(self, prefix: str) -> str:
        """Return a new name; no other part of the lowering uses these prefixes."""
        return f"{prefix}{next(self.numbers)}"

    def native(self, op: k.Op) -> k.NumpyLoop | None:
        """Return NumPy's loop for an operation; None if the target computes the operation itself."""
        if not op.args or not self.wanted(op):
            return None
        key = op.name, tuple(arg.dtype for arg in op.args), op.dtype
        if key not in self.loops:
            loop = self.find(LOOPS_OF.get(op.name, op.name), *key[1:])
            if loop is None:
                return None
            self.loops[key] = k.NumpyLoop(self.integer(loop[0]), self.integer(loop[1]), loop[2])
        return self.loops[key]

    def wanted(self, op: k.Op) -> bool:
        """Whether an operation is to be computed by NumPy's loop."""
        name, dtype = op.name, op.args[0].dtype
        if self.is_exact(op):
            return False
        if name in C_LIBRARY:
            return True
        if dtype.kind == "c":
            return name in _OPEN or name in _COMPLEX
        return dtype.kind == "f" and (
            (self.exact and name in _OPEN) or (name in _HALF and dtype == np.float16)
        )

    def phase(self, number: int) -> k.Phase:
        """Return the rewritten phase; a vector loop becomes a serial one over blocks."""
        phase = self.kernel.phases[number]
        pre = tuple(k.Let(let.name, self.single(let.value)) for let in phase.pre)
        if phase.kind == "serial" or not self.calls(phase.body):
            return replace(phase, pre=pre, body=self.block(phase.body))
        var = self.fresh("k")
        parts = self.pieces(k.For(phase.var, k.affine(), (phase.extent,), 1, "vector", phase.body), var, True)
        if parts is None:
            return replace(phase, pre=pre, body=self.block(phase.body))
        body, size = parts
        blocks = dims.simplify((self.extents[number] + size - 1) // size)
        extent = k.affine(blocks) if type(blocks) is int and not phase.extent.terms else None
        self.extents[number], self.work[number] = blocks, dims.simplify(self.work[number] * size)
        extent = extent or k.affine(0, k.Term(1, self.integer(blocks)))
        return k.Phase(var, extent, "serial", body, pre)

    def block(self, body: Iterable[k.Stmt]) -> tuple[k.Stmt, ...]:
        """Return the rewritten statements of a block."""
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: k.Stmt) -> tuple[k.Stmt, ...]:
        """Return the rewritten form of a statement outside of blocks."""
        match stmt:
            case k.For(_, lower, upper, step, _, body, _, floors):
                if step == 1 and self.calls(body):
                    block = self.fresh("k")
                    pieces = self.pieces(stmt, block, False)
                    if pieces is not None:
                        return (k.For(block, lower, upper, pieces[1], "serial", pieces[0], 0, floors),)
                return (replace(stmt, body=self.block(body)),)
            case k.Repeat(head, cond, body):
                return (k.Repeat(self.block(head), self.single(cond), self.block(body)),)
            case k.If(cond, then, orelse):
                return (k.If(self.single(cond), self.block(then), self.block(orelse)),)
            case k.Stack() | k.NumpyCall():
                return (stmt,)
        return (map_values(stmt, self.single),)

    def single(self, expr: k.Expr) -> k.Expr:
        """Return an expression with NumPy's loops called for one element."""
        new = map_children(expr, self.single)
        loop = self.native(new) if isinstance(new, k.Op) else None
        return k.NumpyOp(new.name, new.args, new.dtype, loop) if loop and isinstance(new, k.Op) else new

    def calls(self, body: Iterable[k.Stmt]) -> bool:
        """Whether one of the statements (not those nested in them) needs a NumPy loop."""
        return any(self.native(op) for op in operations(body))

    def pieces(self, loop: k.For, block: str, counted: bool) -> tuple[tuple[k.Stmt, ...], int] | None:
        """Return the statements, in stages, of one block of a loop's iterations, and the block's size; None
        if the loop cannot be divided.  ``block`` is the block's number if ``counted``, else its start."""
        if not _divisible(loop):
            return None
        ops = [op for op in operations(loop.body) if self.native(op)]
        narrow = min(3, ((len(ops) - 1) // CALLS).bit_length())
        size = max(1, ROW // max(op.dtype.itemsize for op in ops) >> narrow)
        inside = frozenset(stmt.name for stmt in loop.body if isinstance(stmt, k.Let))
        for elements in (PLAIN * size, size):
            start = k.affine(0, k.Term(elements if counted else 1, None, block))
            stages = Stages(self, loop, start, (k.affine(elements, start), *loop.upper), inside)
            for stmt in loop.body:
                stages.add(stmt)
            stmts = stages.finish(elements)
            if not any(isinstance(stmt, k.Stack) and stmt.size > 1 for stmt in stmts):
                break
        return stmts, elements


def _divisible(loop: k.For) -> bool:
    """Whether a loop may be divided into stages: a vector loop, whose iterations are independent, or a serial
    loop that only reduces, which one stage then does in order."""
    if loop.kind == "vector":
        return all(isinstance(stmt, k.Let | k.Store | k.Update) for stmt in loop.body)
    folded = [stmt.name for stmt in loop.body if isinstance(stmt, k.Update)]
    read = {node.name for s in loop.body for v in values(s) for node in walk(v) if isinstance(node, k.Local)}
    plain = all(isinstance(stmt, k.Let | k.Update) for stmt in loop.body)
    return plain and len(folded) == len(set(folded)) and not read.intersection(folded)
