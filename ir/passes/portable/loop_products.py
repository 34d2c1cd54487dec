"""Products of matrices out of loops: what loops add up term by term becomes a sum of products before them.

In ::

    for i in range(0, n, 1) {
      for j in range(i+1, n, 1) {
        for k in range(0, m, 1) {
          c[i,j] = add(c[i,j], multiply(a[k,i], b[k,j]))
        }
      }
    }

the sums over ``k`` are elements of the product of two matrices that no iteration writes.  It is computed
before the loops, where it becomes a library call (`contract`), and the innermost loop becomes ``c[i,j] =
add(c[i,j], product[i,j])``.  So are rows of a product that are folds, ``c[i,i+1:] = a[:,i] @ b[:,i+1:]`` in
NumPy: loops over elements and over rows have one plan.  The product has all elements along the axes of the
operands; loops that need a small part of them stay.

Terms are then added up in the order of the library, and factors that all terms have in common are multiplied
once: the results are those of `numpy.matmul`, not those of the loop to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, writes
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import (
    Apply,
    Array,
    Compute,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Region,
    Size,
    Stmt,
    Window,
)
from dcarray.ir.ops import const
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.renaming import numbered

#: A product with a shorter axis is not worth it.
MIN_EXTENT = 8
#: The most elements of a product.
MAX_ELEMENTS = 1 << 22
#: At least this part of the product is what loops add up.
MIN_USED = 0.2
_DTYPES = "fdFD"


@dataclass(frozen=True, slots=True)
class Operand:
    """A factor of the terms.

    Attributes
    ----------
    load : Load
    summed : int
        Its index that moves with the terms, which is ``first + pace * term``.
    first, pace : Dim
    moving : int or None
        Its index that moves with the results.
    """

    load: Load
    summed: int
    first: Dim
    pace: Dim
    moving: int | None


@dataclass(frozen=True, slots=True)
class LoopProduct:
    """What a loop over terms, or a fold in a loop, adds to elements of an array.

    Attributes
    ----------
    stmt : Compute
        The fold, or the statement that a loop over the terms runs.
    inner : tuple of Loop
        The loops in that loop around the statement.
    axis : int or None
        The axis of the fold's domain that is added up.
    op : str
        "add" or "subtract".
    operands : tuple of Operand
        Two.
    rest : tuple of Expr
        The factors that all terms have in common.
    count : Dim
        The number of terms.
    """

    stmt: Compute
    inner: tuple[Loop, ...]
    axis: int | None
    op: str
    operands: tuple[Operand, ...]
    rest: tuple[Expr, ...]
    count: Dim


# ---- what a loop is --------------------------------------------------------------------------------------
def product_of(loop: Loop, outer: frozenset[str]) -> LoopProduct | Reason:
    """Return the product whose terms a loop adds up, or why there is none.

    Parameters
    ----------
    loop : Loop
    outer : frozenset of str
        The variables of the loops around it before which the product would be computed.
    """
    inner: list[Loop] = []
    body = loop.body
    while len(body) == 1 and isinstance(body[0], Loop):
        inner.append(body[0])
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], Compute):
        return Reason("its body is more than one statement")
    stmt = body[0]
    if stmt.combine is not None or stmt.scan is not None:
        return Reason(f"{stmt.target.array} is a fold", (stmt.target,))
    variables = outer | {one.var for one in inner}
    if any(loop.var in dims.free_symbols(bound) for one in inner for bound in one.bounds):
        return Reason("the extents of its statement differ from term to term")
    if any(dims.free_symbols(bound) & outer for bound in loop.bounds):
        return Reason("results have different numbers of terms")
    count = dims.count(loop.bounds)
    if count is None or dims.prove_le(1, count) is not True:
        return Reason("there may be no terms")
    if any(loop.var in dims.free_symbols(part) for part in _parts(stmt.target)):
        return Reason(f"{stmt.target.array} is written term by term", (stmt.target,))
    found = _term(stmt)
    if found is None:
        return Reason(f"it adds nothing to {stmt.target.array}", (stmt.target,))
    op, term = found
    operands, rest = [], []
    for factor in _factors(term):
        if not _moves(factor, loop.var):
            rest.append(factor)
            continue
        operand = _loop_operand(factor, loop, variables)
        if operand is None:
            return Reason("a factor is no element of a row or column", (stmt.target,))
        operands.append(operand)
    return _made(LoopProduct(stmt, tuple(inner), None, op, tuple(operands), tuple(rest), count))


def fold_product(stmt: Compute, outer: frozenset[str]) -> LoopProduct | Reason:
    """Return the product a row or column of which is a fold in loops over the variables ``outer``, or why
    there is none."""
    if stmt.combine != "add" or stmt.scan is not None or dtype_of(stmt.body).char not in _DTYPES:
        return Reason("it is no sum", (stmt.target,))
    kept = {ix.axis for ix in stmt.target.index}
    axes = [axis for axis in range(len(stmt.target.shape)) if axis not in kept]
    if len(axes) != 1:
        return Reason("it sums along several axes", (stmt.target,))
    count = stmt.target.shape[axes[0]]
    if dims.free_symbols(count) & outer or dims.prove_le(1, count) is not True:
        return Reason("results have different numbers of terms, or none", (stmt.target,))
    operands, rest = [], []
    for factor in _factors(stmt.body):
        loads = windows.loads(factor)
        if not any(isinstance(n, Iota) for n in windows.walk(factor)) and all(
            isinstance(node, Load) and axes[0] not in windows.moving_axes(node.window) for node in loads
        ):
            rest.append(factor)
            continue
        operand = _fold_operand(factor, axes[0], outer)
        if operand is None:
            return Reason("a factor is no element of a row or column", (stmt.target,))
        operands.append(operand)
    found = LoopProduct(stmt, (), axes[0], "add", tuple(operands), tuple(rest), count)
    if not any(dims.free_symbols(part) & outer for one in operands for part in _parts(one.load.window)):
        return Reason("it is the same in all iterations", (stmt.target,))
    return _made(found)


def _made(found: LoopProduct) -> LoopProduct | Reason:
    if len(found.operands) != 2 or all(one.moving is None for one in found.operands):
        return Reason("its terms are no products of two arrays' elements", (found.stmt.target,))
    if found.axis is not None and any(one.moving is None for one in found.operands):
        return Reason("it is a product with a vector", (found.stmt.target,))
    return found


def _parts(window: Window) -> Iterator[Dim]:
    yield from window.shape
    for ix in window.index:
        yield from (ix.offset, ix.stride)


def _term(stmt: Compute) -> tuple[str, Expr] | None:
    """The operation that joins the target with a term, and the term."""
    body = stmt.body
    if not isinstance(body, Apply) or body.op not in ("add", "subtract") or body.dtype.char not in _DTYPES:
        return None

    def is_target(expr: Expr) -> bool:
        return isinstance(expr, Load) and windows.same(expr.window, stmt.target)

    first, second = body.args
    if is_target(first):
        return body.op, second
    return ("add", first) if is_target(second) and body.op == "add" else None


def _factors(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Apply) and expr.op == "multiply":
        for arg in expr.args:
            yield from _factors(arg)
    else:
        yield expr


def _moves(expr: Expr, var: str) -> bool:
    """Whether the value of an expression may depend on a variable."""
    for node in windows.walk(expr):
        if isinstance(node, Load | Gather) and any(
            var in dims.free_symbols(part) for part in _parts(node.window)
        ):
            return True
        if isinstance(node, Size) and var in dims.free_symbols(node.dim):
            return True
    return False


def _loop_operand(factor: Expr, loop: Loop, variables: frozenset[str]) -> Operand | None:
    """A factor as an operand: one index goes with the terms, one at most with the results."""
    if not isinstance(factor, Load):
        return None
    start, _, step = loop.bounds
    summed, moving = [], []
    for place, ix in enumerate(factor.window.index):
        symbols = dims.free_symbols(ix.offset)
        if loop.var in symbols:
            pace = dims.slope(ix.offset, loop.var)
            if ix.axis is not None or symbols & variables or type(pace) is not int:
                return None
            first = dims.substitute(ix.offset, {loop.var: start})
            summed.append((place, first, dims.simplify(pace * step)))
        elif ix.axis is not None or symbols & variables:
            moving.append(place)
    if len(summed) != 1 or len(moving) > 1:
        return None
    return Operand(factor, *summed[0], moving[0] if moving else None)


def _fold_operand(factor: Expr, axis: int, outer: frozenset[str]) -> Operand | None:
    """As `_loop_operand`, of a fold along an axis."""
    if not isinstance(factor, Load):
        return None
    summed, moving = [], []
    for place, ix in enumerate(factor.window.index):
        varies = bool((dims.free_symbols(ix.offset) | dims.free_symbols(ix.stride)) & outer)
        if ix.axis == axis:
            if varies:
                return None
            summed.append((place, ix.offset, ix.stride))
        elif ix.axis is not None or varies:
            moving.append(place)
    if len(summed) != 1 or len(moving) > 1:
        return None
    return Operand(factor, *summed[0], moving[0] if moving else None)


# ---- legality and profit ---------------------------------------------------------------------------------
def can_hoist(found: LoopProduct, written: frozenset[str], region: Region) -> Reason | None:
    """Return why a product cannot be computed before the loops that write these families of arrays."""
    family = families(region)
    for operand in found.operands:
        name = operand.load.window.array
        if family.get(name, name) in written:
            return Reason(f"{name} is written in the loops", (operand.load.window,))
    return None


def _shape(found: LoopProduct, arrays: dict[str, Array]) -> tuple[Dim, ...]:
    return tuple(
        arrays[one.load.window.array].shape[one.moving] for one in found.operands if one.moving is not None
    )


def pays(found: LoopProduct, points: int, shape: tuple[Dim, ...], hints: SizeHints) -> Reason | None:
    """Return why a product is not worth it; ``points`` of it are added up in the loops, as far as it is
    known."""
    extents = [hints(n) for n in shape]
    if min(*extents, hints(found.count)) < MIN_EXTENT:
        return Reason("the product is small")
    size = hints.product(shape)
    if size > MAX_ELEMENTS:
        return Reason("the product would be too large")
    return Reason("most of the product would not be used") if points < MIN_USED * size else None


# ---- action --------------------------------------------------------------------------------------------
def product_before(found: LoopProduct, array: Array) -> Compute:
    """Return the statement that computes the product."""
    dtype, rank = array.dtype, len(array.shape)
    shape = (*array.shape, found.count)
    operands: list[Expr] = []
    axis = 0
    for one in found.operands:
        index = []
        for place, ix in enumerate(one.load.window.index):
            if place == one.summed:
                index.append(Index(one.first, one.pace, rank))
            elif place == one.moving:
                index.append(Index(0, 1, axis))
                axis += 1
            else:
                index.append(ix)
        operands.append(Load(Window(one.load.window.array, shape, tuple(index)), dtype))
    target = Window(array.name, shape, tuple(Index(0, 1, k) for k in range(rank)))
    body = Apply("multiply", tuple(operands), dtype)
    return Compute(target, body, "add", const(0, dtype), found.stmt.loc)


def without_terms(found: LoopProduct, array: Array) -> Stmt:
    """Return what is left: an element of the product is added."""
    stmt, dtype = found.stmt, array.dtype
    amap, shape = _without_axis(stmt.target.shape, found.axis)
    index = tuple(one.load.window.index[one.moving] for one in found.operands if one.moving is not None)
    value: Expr = Load(Window(array.name, stmt.target.shape, index), dtype)
    for factor in reversed(found.rest):
        value = Apply("multiply", (factor, value), dtype)
    start = Load(stmt.target, dtype) if stmt.init is None else stmt.init
    value = windows.remap(Apply(found.op, (start, value), dtype), amap, shape)
    target = windows.compose(stmt.target, amap, shape)
    made: Stmt = replace(stmt, target=target, body=value, combine=None, init=None)
    for one in reversed(found.inner):
        made = replace(one, body=(made,))
    return made


def _without_axis(shape: tuple[Dim, ...], axis: int | None) -> tuple[tuple[Index, ...], tuple[Dim, ...]]:
    """The map from a domain without an axis, and its shape."""
    kept = [k for k in range(len(shape)) if k != axis]
    amap = tuple(Index(0) if k == axis else Index(0, 1, kept.index(k)) for k in range(len(shape)))
    return amap, tuple(shape[k] for k in kept)


class _Hoisting:
    """The products of the loops in one loop, which are computed before it."""

    def __init__(self, loop: Loop, region: Region, log: Log) -> None:
        self.region, self.log = region, log
        self.arrays = {array.name: array for array in region.arrays}
        family = families(region)
        self.written = frozenset(family.get(w.array, w.array) for w in writes(loop))
        self.before: list[Compute] = []
        self.made: list[Array] = []
        self.loop = self.visit(loop, frozenset(), SizeHints(region), 1)

    def visit(self, loop: Loop, outer: frozenset[str], hints: SizeHints, points: int) -> Stmt:
        """The loop without terms in it; ``points`` are those of the loops around."""
        found = product_of(loop, outer)
        if isinstance(found, LoopProduct):
            made = self.hoisted(found, hints, points)
            if made is not None:
                return made
        inside, count = hints.within(loop.var, loop.bounds)
        body = tuple(self.statement(stmt, outer | {loop.var}, inside, points * count) for stmt in loop.body)
        same = all(a is b for a, b in zip(body, loop.body, strict=True))
        return loop if same else replace(loop, body=body)

    def statement(self, stmt: Stmt, outer: frozenset[str], hints: SizeHints, points: int) -> Stmt:
        """A statement of a loop without terms in it."""
        if isinstance(stmt, Loop):
            return self.visit(stmt, outer, hints, points)
        found = fold_product(stmt, outer) if isinstance(stmt, Compute) and stmt.combine else None
        made = self.hoisted(found, hints, points) if isinstance(found, LoopProduct) else None
        return stmt if made is None else made

    def hoisted(self, found: LoopProduct, hints: SizeHints, points: int) -> Stmt | None:
        for one in found.inner:
            hints, count = hints.within(one.var, one.bounds)
            points *= count
        points *= hints.product(_without_axis(found.stmt.target.shape, found.axis)[1])
        shape = _shape(found, self.arrays)
        reason = can_hoist(found, self.written, self.region) or pays(found, points, shape, hints)
        if reason is not None:
            text = f"{found.stmt.target.array} stays a loop: {reason.text}"
            self.log.refused("loop_products", text, found.stmt.loc)
            return None
        dtype = self.arrays[found.stmt.target.array].dtype
        taken = {*self.arrays, *(array.name for array in self.made)}
        array = Array(numbered("product", taken), dtype, shape)
        self.made.append(array)
        self.before.append(product_before(found, array))
        self.log.done(
            "loop_products", f"what is added to {found.stmt.target.array} is a product before loops",
            found.stmt.loc,
        )  # fmt: skip
        return without_terms(found, array)


def _run(region: Region, log: Log) -> Region:
    def fn(loop: Loop, now: Region, _: int) -> tuple[list[Stmt], list[Array]] | None:
        found = _Hoisting(loop, now, log)
        return ([*found.before, found.loop], found.made) if found.made else None

    return each_loop(region, fn)


LOOP_PRODUCTS = Pass("loop_products", _run)
