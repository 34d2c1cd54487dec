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

A term that stands beside other statements leaves the loop over the terms (`loop_fission`), if these have
nothing to do with it: ``s[j] += r[i] * a[i, j]`` and ``q[i] += a[i, j] * p[j]`` in one nest are two products
with vectors.  A factor that is computed, but is the same for all results, is computed before the product.

Terms are then added up in the order of the library, and factors that all terms have in common are multiplied
once: the results are those of `numpy.matmul`, not those of the loop to the last bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, writes
from dcarray.ir.analysis.size_hints import Cases, SizeHints, variations, within
from dcarray.ir.analysis.versions import MAX_ELEMENTS, active, no_larger
from dcarray.ir.nodes import (
    Apply,
    Array,
    Compute,
    Dim,
    Expr,
    Gather,
    Index,
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
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.renaming import numbered

from .loop_fission import alone, can_leave, paths, without
from .product_terms import LoopProduct, Operand, VectorOperand, fold_product, product_of, term_of

#: A product with a shorter axis is not worth it.
MIN_EXTENT = 8
#: At least this part of the product is what loops add up.
MIN_USED = 0.2
_INT = np.dtype(np.int64)


# ---- legality and profit ---------------------------------------------------------------------------------
def can_hoist(found: LoopProduct, written: frozenset[str], region: Region) -> Reason | None:
    """Return why a product cannot be computed before the loops that write these families of arrays."""
    family = families(region)

    def of(window: Window) -> str:
        return family.get(window.array, window.array)

    for operand in found.operands:
        for node in windows.loads(operand.expr):
            if of(node.window) in written:
                return Reason(f"{node.window.array} is written in the loops", (node.window,))
    target = found.fold.target
    for common in windows.walk(*found.rest):
        if isinstance(common, Load | Gather) and of(common.window) == of(target):
            return Reason(f"{common.window.array} changes from term to term", (common.window, target))
    return None


def _reads_inside(before: Compute, arrays: dict[str, Array]) -> Reason | None:
    """Return why a product might read outside of its operands: loops that never run may say any index."""
    for node in windows.loads(before.body):
        if windows.covers(windows.identity(arrays[node.window.array]), node.window) is not True:
            return Reason(f"{node.window.array} may not have all that the product needs", (node.window,))
    return None


def _shape(found: LoopProduct, arrays: dict[str, Array]) -> tuple[Dim, ...]:
    return tuple(arrays[load.window.array].shape[place] for load, place in found.moving)


def pays(
    found: LoopProduct, points: int, shape: tuple[Dim, ...], hints: SizeHints, region: Region
) -> Reason | None:
    """Return why a product is not worth it; ``points`` of it are added up in the loops, as far as it is
    known."""
    extents = [hints(n) for n in shape]
    if min(*extents, hints(found.count)) < MIN_EXTENT:
        return Reason("the product is small")
    size = hints.product(shape)
    if size > MAX_ELEMENTS and not no_larger(shape, region):
        return Reason("the product would be too large")
    if points < MIN_USED * size:
        return Reason("most of the product would not be used")
    version = active((*shape, found.count))
    if version is not None and version.general:  # rows of a product would become one
        return Reason("another version has products, for sizes that are worth it")
    return None


# ---- action --------------------------------------------------------------------------------------------
def stored(found: LoopProduct, name: str) -> tuple[LoopProduct, Compute, Array] | None:
    """Return the product with its computed operand in an array, the statement that computes it, and the
    array; None if it has none."""
    for place, one in enumerate(found.operands):
        if isinstance(one, VectorOperand):
            value, dtype = found.vector(one), dtype_of(one.expr)
            array = Array(name, dtype, (found.count,))
            target = windows.identity(array)
            read = Window(name, found.fold.target.shape, (Index(0, 1, found.axis),))
            operands = list(found.operands)
            operands[place] = Operand(Load(read, dtype), 0, None)
            made = Compute(target, value, loc=found.fold.loc)
            return replace(found, operands=tuple(operands)), made, array
    return None


def product_before(found: LoopProduct, array: Array, arrays: dict[str, Array]) -> Compute:
    """Return the statement that computes the product.

    The axes of its domain are those of the product, and that of the terms: after them, or, of a product with
    a vector, where the matrix has it, so that others can go over the matrix at the same time (`row_fusion`).
    """
    dtype, rank = array.dtype, len(array.shape)
    first = int(rank == 1 and _terms_are_rows(found, arrays))
    terms = 0 if first else rank
    shape = (found.count, *array.shape) if first else (*array.shape, found.count)
    operands: list[Expr] = []
    axis = first
    for one in found.operands:
        assert isinstance(one, Operand)
        index = list(one.load.window.index)
        index[one.summed] = replace(index[one.summed], axis=terms)
        if one.moving is not None:
            index[one.moving] = Index(0, 1, axis)
            axis += 1
        operands.append(Load(Window(one.load.window.array, shape, tuple(index)), dtype))
    target = Window(array.name, shape, tuple(Index(0, 1, first + k) for k in range(rank)))
    body = Apply("multiply", tuple(operands), dtype)
    return Compute(target, body, "add", const(0, dtype), found.fold.loc)


def _terms_are_rows(found: LoopProduct, arrays: dict[str, Array]) -> bool:
    """Whether the terms of a product with a vector go along the rows of the matrix."""
    return any(
        one.moving is not None and one.summed < one.moving and arrays[one.load.window.array].strides is None
        for one in found.operands
        if isinstance(one, Operand)
    )


def without_terms(found: LoopProduct, array: Array) -> Stmt:
    """Return what is left: an element of the product is added."""
    fold, dtype = found.fold, array.dtype
    amap, shape = found.results
    index = tuple(load.window.index[place] for load, place in found.moving)
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
        self.loops = self.visit(loop, frozenset(), [(hints, 1) for hints in variations(region)])

    def visit(self, loop: Loop, outer: frozenset[str], cases: Cases) -> tuple[Stmt, ...]:
        """The loop without terms in it, and what adds their sums."""
        left: Loop | None = loop
        after: list[Stmt] = []
        for path, stmt in reversed([*paths(loop)]):  # the places of those to come stay
            if term_of(stmt) is None or left is None:
                continue
            found = product_of(alone(left, path), outer)
            if not isinstance(found, LoopProduct):
                continue
            reason = can_leave(left, path, stmt, self.region)
            made = self.hoisted(found, cases, reason)
            if made is not None:
                after.insert(0, made)
                left = without(left, path)
        if left is None:
            return tuple(after)
        inside = within(cases, left)
        body = tuple(made for stmt in left.body for made in self.statement(stmt, outer | {left.var}, inside))
        same = len(body) == len(left.body) and all(a is b for a, b in zip(body, left.body, strict=True))
        return (left if same else replace(left, body=body), *after)

    def statement(self, stmt: Stmt, outer: frozenset[str], cases: Cases) -> tuple[Stmt, ...]:
        """A statement of a loop without terms in it."""
        if isinstance(stmt, Loop):
            return self.visit(stmt, outer, cases)
        found = fold_product(stmt, outer) if isinstance(stmt, Compute) and stmt.combine else None
        made = self.hoisted(found, cases) if isinstance(found, LoopProduct) else None
        return (stmt if made is None else made,)

    def hoisted(self, found: LoopProduct, cases: Cases, reason: Reason | None = None) -> Stmt | None:
        """The statement that adds a product, unless there is a reason why it stays."""
        for one in found.inner:
            cases = within(cases, one)
        name = found.fold.target.array
        reason = reason or can_hoist(found, self.written, self.region)
        vector = stored(found, self.unused("factor"))
        before: list[Compute] = []
        made: list[Array] = []
        if vector is not None:
            found = vector[0]
            before.append(vector[1])
            made.append(vector[2])
        array = Array(self.unused("product"), self.arrays[name].dtype, _shape(found, self.arrays))
        before.append(product_before(found, array, self.arrays))
        made.append(array)
        arrays = self.arrays | {one.name: one for one in made}
        for stmt in before:
            reason = reason or _reads_inside(stmt, arrays)
        for hints, points in cases:
            points *= hints.product(found.results[1])
            reason = reason or pays(found, points, array.shape, hints, self.region)
        if reason is not None:
            self.log.refused("loop_products", f"{name} stays a loop: {reason.text}", found.fold.loc)
            return None
        self.made += made
        self.before += before
        version = active((*array.shape, found.count))
        if version is not None and len(array.shape) > 1:
            version.needs([array])
            version.worth((*array.shape, found.count))
        text = f"what is added to {name} is a product before loops"
        self.log.done("loop_products", text, found.fold.loc)
        return without_terms(found, array)

    def unused(self, stem: str) -> str:
        """A name for an array."""
        return numbered(stem, {*self.arrays, *(array.name for array in self.made)})


def _run(region: Region, log: Log) -> Region:
    def fn(loop: Loop, now: Region, _: int) -> tuple[list[Stmt], list[Array]] | None:
        found = _Hoisting(loop, now, log)
        return ([*found.before, *found.loops], found.made) if found.made else None

    return each_loop(region, fn)


LOOP_PRODUCTS = Pass("loop_products", _run)
