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

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, writes
from dcarray.ir.analysis.size_hints import Cases, SizeHints, variations, within
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
from dcarray.ir.passes.exprs import dtype_of, is_zero
from dcarray.ir.passes.match import unused_axes
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.renaming import numbered

from .loop_distribution import over_iterations

#: A product with a shorter axis is not worth it.
MIN_EXTENT = 8
#: The most elements of a product.
MAX_ELEMENTS = 1 << 22
#: At least this part of the product is what loops add up.
MIN_USED = 0.2
_DTYPES = "fdFD"
_INT = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Operand:
    """A factor of the terms: an array, its index that moves with the terms, and the one that moves with the
    results, if one does."""

    load: Load
    summed: int
    moving: int | None


@dataclass(frozen=True, slots=True)
class LoopProduct:
    """What a loop over terms, or a fold in a loop, adds to elements of an array.

    Attributes
    ----------
    fold : Compute
        The sum of the terms, over a domain that has an axis for them.
    axis : int
        That axis.
    inner : tuple of Loop
        The loops inside of a loop over terms, around its statement.
    op : str
        "add" or "subtract".
    operands : tuple of Operand
        Two.
    rest : tuple of Expr
        The factors that all terms have in common.
    """

    fold: Compute
    axis: int
    inner: tuple[Loop, ...]
    op: str
    operands: tuple[Operand, ...]
    rest: tuple[Expr, ...]

    @property
    def count(self) -> Dim:
        """The number of terms."""
        return self.fold.target.shape[self.axis]

    @property
    def results(self) -> tuple[tuple[Index, ...], tuple[Dim, ...]]:
        """The map from the fold's domain to the one without the axis of the terms, and its shape."""
        shape = self.fold.target.shape
        kept = [k for k in range(len(shape)) if k != self.axis]
        amap = tuple(Index(0) if k == self.axis else Index(0, 1, kept.index(k)) for k in range(len(shape)))
        return amap, tuple(shape[k] for k in kept)


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
    if any(loop.var in dims.free_symbols(bound) for one in inner for bound in one.bounds):
        return Reason("the extents of its statement differ from term to term")
    if any(dims.free_symbols(bound) & outer for bound in loop.bounds):
        return Reason("results have different numbers of terms")
    if any(loop.var in dims.free_symbols(part) for part in _parts(stmt.target)):
        return Reason(f"{stmt.target.array} is written term by term", (stmt.target,))
    found = _term(stmt)
    if found is None:
        return Reason(f"it adds nothing to {stmt.target.array}", (stmt.target,))
    op, term = found
    fold = over_iterations(replace(stmt, body=term, combine="add"), loop)
    if isinstance(fold, Reason):
        return fold
    return _product(fold, tuple(inner), op, outer | {one.var for one in inner})


def fold_product(stmt: Compute, outer: frozenset[str]) -> LoopProduct | Reason:
    """Return the product a row or column of which is a fold in loops over the variables ``outer``, or why
    there is none."""
    if stmt.combine != "add" or stmt.scan is not None or dtype_of(stmt.body).char not in _DTYPES:
        return Reason("it is no sum", (stmt.target,))
    found = _product(stmt, (), "add", outer)
    if isinstance(found, Reason):
        return found
    if any(one.moving is None for one in found.operands):
        return Reason("it is a product with a vector", (stmt.target,))
    if not any(dims.free_symbols(part) & outer for one in found.operands for part in _parts(one.load.window)):
        return Reason("it is the same in all iterations", (stmt.target,))
    return found


def _product(
    fold: Compute, inner: tuple[Loop, ...], op: str, variables: frozenset[str]
) -> LoopProduct | Reason:
    """The product of a fold that runs once for all values of variables."""
    axes = unused_axes(fold.target)
    if len(axes) != 1:
        return Reason("it sums along several axes", (fold.target,))
    (axis,) = axes
    count = fold.target.shape[axis]
    if dims.free_symbols(count) & variables:
        return Reason("results have different numbers of terms", (fold.target,))
    if dims.prove_le(0, count) is not True or dims.is_number(count, 0):
        return Reason("there may be no terms")
    operands, rest = [], []
    for factor in _factors(fold.body):
        if not _moves(factor, axis):
            rest.append(factor)
            continue
        operand = _operand(factor, axis, variables)
        if operand is None:
            return Reason("a factor is no element of a row or column", (fold.target,))
        operands.append(operand)
    if len(operands) != 2 or all(one.moving is None for one in operands):
        return Reason("its terms are no products of two arrays' elements", (fold.target,))
    return LoopProduct(fold, axis, inner, op, tuple(operands), tuple(rest))


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


def _moves(expr: Expr, axis: int) -> bool:
    """Whether the value of an expression may depend on an axis."""
    return any(
        (isinstance(node, Iota) and node.axis == axis)
        or (isinstance(node, Load) and axis in windows.moving_axes(node.window))
        for node in windows.walk(expr)
    )


def _operand(factor: Expr, axis: int, variables: frozenset[str]) -> Operand | None:
    """A factor as an operand: one index goes with the terms, one at most with the results."""
    if not isinstance(factor, Load):
        return None
    summed, moving = [], []
    for place, ix in enumerate(factor.window.index):
        varies = (dims.free_symbols(ix.offset) | dims.free_symbols(ix.stride)) & variables
        if ix.axis == axis:
            if varies:
                return None
            summed.append(place)
        elif ix.axis is not None or varies:
            moving.append(place)
    if len(summed) != 1 or len(moving) > 1:
        return None
    return Operand(factor, summed[0], moving[0] if moving else None)


# ---- legality and profit ---------------------------------------------------------------------------------
def can_hoist(found: LoopProduct, written: frozenset[str], region: Region) -> Reason | None:
    """Return why a product cannot be computed before the loops that write these families of arrays."""
    family = families(region)

    def of(window: Window) -> str:
        return family.get(window.array, window.array)

    for operand in found.operands:
        if of(operand.load.window) in written:
            return Reason(f"{operand.load.window.array} is written in the loops", (operand.load.window,))
    target = found.fold.target
    for node in windows.walk(*found.rest):
        if isinstance(node, Load | Gather) and of(node.window) == of(target):
            return Reason(f"{node.window.array} changes from term to term", (node.window, target))
    return None


def _reads_inside(before: Compute, arrays: dict[str, Array]) -> Reason | None:
    """Return why a product might read outside of its operands: loops that never run may say any index."""
    for node in windows.loads(before.body):
        if windows.covers(windows.identity(arrays[node.window.array]), node.window) is not True:
            return Reason(f"{node.window.array} may not have all that the product needs", (node.window,))
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
        index = list(one.load.window.index)
        index[one.summed] = replace(index[one.summed], axis=rank)
        if one.moving is not None:
            index[one.moving] = Index(0, 1, axis)
            axis += 1
        operands.append(Load(Window(one.load.window.array, shape, tuple(index)), dtype))
    target = Window(array.name, shape, tuple(Index(0, 1, k) for k in range(rank)))
    body = Apply("multiply", tuple(operands), dtype)
    return Compute(target, body, "add", const(0, dtype), found.fold.loc)


def without_terms(found: LoopProduct, array: Array) -> Stmt:
    """Return what is left: an element of the product is added."""
    fold, dtype = found.fold, array.dtype
    amap, shape = found.results
    index = tuple(one.load.window.index[one.moving] for one in found.operands if one.moving is not None)
    value: Expr = Load(Window(array.name, fold.target.shape, index), dtype)
    for factor in reversed(found.rest):
        value = Apply("multiply", (factor, value), dtype)
    start = Load(fold.target, dtype) if fold.init is None else fold.init
    value = Apply(found.op, (start, value), dtype)
    plain = found.op == "add" and not found.rest and fold.init is not None and is_zero(fold.init)
    if not plain and dims.prove_le(1, found.count) is not True:  # without terms it stays, also if it is -0.0
        some = Apply("greater", (Size(found.count, _INT), const(0, _INT)), np.dtype(np.bool_))
        value = Apply("where", (some, value, start), dtype)
    value = windows.remap(value, amap, shape)
    target = windows.compose(fold.target, amap, shape)
    made: Stmt = replace(fold, target=target, body=value, combine=None, init=None)
    for one in reversed(found.inner):
        made = replace(one, body=(made,))
    return made


class _Hoisting:
    """The products of the loops in one loop, which are computed before it."""

    def __init__(self, loop: Loop, region: Region, log: Log) -> None:
        self.region, self.log = region, log
        self.arrays = {array.name: array for array in region.arrays}
        family = families(region)
        self.written = frozenset(family.get(w.array, w.array) for w in writes(loop))
        self.before: list[Compute] = []
        self.made: list[Array] = []
        self.loop = self.visit(loop, frozenset(), [(hints, 1) for hints in variations(region)])

    def visit(self, loop: Loop, outer: frozenset[str], cases: Cases) -> Stmt:
        """The loop without terms in it."""
        found = product_of(loop, outer)
        if isinstance(found, LoopProduct):
            made = self.hoisted(found, cases)
            if made is not None:
                return made
        inside = within(cases, loop)
        body = tuple(self.statement(stmt, outer | {loop.var}, inside) for stmt in loop.body)
        same = all(a is b for a, b in zip(body, loop.body, strict=True))
        return loop if same else replace(loop, body=body)

    def statement(self, stmt: Stmt, outer: frozenset[str], cases: Cases) -> Stmt:
        """A statement of a loop without terms in it."""
        if isinstance(stmt, Loop):
            return self.visit(stmt, outer, cases)
        found = fold_product(stmt, outer) if isinstance(stmt, Compute) and stmt.combine else None
        made = self.hoisted(found, cases) if isinstance(found, LoopProduct) else None
        return stmt if made is None else made

    def hoisted(self, found: LoopProduct, cases: Cases) -> Stmt | None:
        for one in found.inner:
            cases = within(cases, one)
        shape = _shape(found, self.arrays)
        dtype = self.arrays[found.fold.target.array].dtype
        taken = {*self.arrays, *(array.name for array in self.made)}
        array = Array(numbered("product", taken), dtype, shape)
        before = product_before(found, array)
        reason = can_hoist(found, self.written, self.region) or _reads_inside(before, self.arrays)
        for hints, points in cases:
            points *= hints.product(found.results[1])
            reason = reason or pays(found, points, shape, hints)
        if reason is not None:
            text = f"{found.fold.target.array} stays a loop: {reason.text}"
            self.log.refused("loop_products", text, found.fold.loc)
            return None
        self.made.append(array)
        self.before.append(before)
        self.log.done(
            "loop_products", f"what is added to {found.fold.target.array} is a product before loops",
            found.fold.loc,
        )  # fmt: skip
        return without_terms(found, array)


def _run(region: Region, log: Log) -> Region:
    def fn(loop: Loop, now: Region, _: int) -> tuple[list[Stmt], list[Array]] | None:
        found = _Hoisting(loop, now, log)
        return ([*found.before, found.loop], found.made) if found.made else None

    return each_loop(region, fn)


LOOP_PRODUCTS = Pass("loop_products", _run)
