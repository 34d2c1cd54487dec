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
with vectors.  A factor like ``(a[k,i] - p[i])`` or ``x[k] + 1.0``, which is the same for all results or
differs among them along one line, is computed before the product (`product_factors`).  Terms that are sums
are several products.

Terms are then added up in the order of the library, and factors that all terms have in common are multiplied
once: the results are those of `numpy.matmul`, not those of the loop to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .product_factors import Lines, Operand
from .product_terms import LoopProduct, Term, fold_product, product_of, term_of

#: A product with a shorter axis is not worth it.
MIN_EXTENT = 8
#: At least this part of the product is what loops add up.
MIN_USED = 0.2
_INT = np.dtype(np.int64)


# ---- legality and profit ---------------------------------------------------------------------------------
def can_hoist(product: LoopProduct, written: frozenset[str], region: Region) -> Reason | None:
    """Return why products cannot be computed before the loops; these write the families ``written``."""
    family = families(region)

    def of(window: Window) -> str:
        return family.get(window.array, window.array)

    target = product.fold.target
    for term in product.terms:
        for operand in term.operands:
            for node in windows.loads(operand.expr):
                if of(node.window) in written:
                    return Reason(f"{node.window.array} is written in the loops", (node.window,))
        for common in windows.walk(*(factor for _, factor in term.rest)):
            if isinstance(common, Load | Gather) and of(common.window) == of(target):
                return Reason(f"{common.window.array} changes from term to term", (common.window, target))
    return None


def _reads_inside(before: Compute, arrays: dict[str, Array]) -> Reason | None:
    """Return why a product may read out of bounds: indices in loops without iterations need not be valid."""
    for node in windows.loads(before.body):
        if windows.covers(windows.identity(arrays[node.window.array]), node.window) is not True:
            return Reason(f"{node.window.array} may not have all that the product needs", (node.window,))
    return None


def _too_large(shape: tuple[Dim, ...], hints: SizeHints, region: Region) -> Reason | None:
    if hints.product(shape) > MAX_ELEMENTS and not no_larger(shape, region):
        return Reason("the product would be too large")
    return None


def pays(count: Dim, points: int, shape: tuple[Dim, ...], hints: SizeHints) -> Reason | None:
    """Return why a library call for a product of the shape ``shape`` does not pay; None if it does.  The
    loops use about ``points`` of its elements, each a sum of ``count`` terms."""
    extents = [hints(n) for n in shape]
    if min(*extents, hints(count)) < MIN_EXTENT:
        return Reason("the product is small")
    if points < MIN_USED * hints.product(shape):
        return Reason("most of the product would not be used")
    version = active((*shape, count))
    if version is not None and version.general:  # rows of a product would become one
        return Reason("another version has products, for sizes that are worth it")
    return None


# ---- action --------------------------------------------------------------------------------------------
def product_before(product: LoopProduct, term: Term, array: Array, arrays: dict[str, Array]) -> Compute:
    """Return the statement that computes a term's product into ``array``.

    Its domain has the axes of the product and the axis of the summed terms: last, or, for a matrix and a
    vector, in the order of the matrix's axes, so that `row_fusion` can join it with others that read the
    matrix.
    """
    dtype, rank = array.dtype, len(array.shape)
    first = int(rank == 1 and any(_terms_are_rows(product, one, arrays) for one in term.operands))
    terms = 0 if first else rank
    shape = (product.count, *array.shape) if first else (*array.shape, product.count)
    operands: list[Expr] = []
    place = first
    for one in term.operands:
        operands.append(product.values(one, terms, place, shape))
        place += one.at is not None
    target = Window(array.name, shape, tuple(Index(0, 1, first + k) for k in range(rank)))
    body = Apply("multiply", tuple(operands), dtype)
    return Compute(target, body, "add", const(0, dtype), product.fold.loc)


def _terms_are_rows(product: LoopProduct, operand: Operand, arrays: dict[str, Array]) -> bool:
    """Whether the terms of an operand go along the rows of a matrix."""
    for node in windows.loads(operand.expr):
        axes = [ix.axis for ix in node.window.index]
        places = [k for k, ix in enumerate(node.window.index) if product.is_place(ix, operand)]
        if places and product.axis in axes and arrays[node.window.array].strides is None:
            return axes.index(product.axis) < places[0]
    return False


def without_terms(product: LoopProduct, products: Sequence[Window]) -> Stmt:
    """Return the statement that adds elements of the computed products, in place of the loop or fold."""
    fold, dtype = product.fold, dtype_of(product.fold.body)
    amap, shape = product.results
    start = Load(fold.target, dtype) if fold.init is None else fold.init
    value: Expr = start
    for term, window in zip(product.terms, products, strict=True):
        added: Expr = Load(window, dtype)
        for how, factor in reversed(term.rest):
            added = Apply(how, (added, factor) if how == "divide" else (factor, added), dtype)
        value = Apply(term.op, (value, added), dtype)
    plain = fold.init is not None and is_zero(fold.init) and not any(term.rest for term in product.terms)
    if not plain and dims.prove_le(1, product.count) is not True:  # without terms it stays, also -0.0
        some = Apply("greater", (Size(product.count, _INT), const(0, _INT)), np.dtype(np.bool_))
        value = Apply("where", (some, value, start), dtype)
    value = windows.remap(value, amap, shape)
    target = windows.compose(fold.target, amap, shape)
    left: Stmt = replace(fold, target=target, body=value, combine=None, init=None)
    for one in reversed(product.inner):
        left = replace(one, body=(left,))
    return left


class _Products:
    """Products that are computed before loops: the statements that compute them, and their arrays."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = dict(arrays)
        self.statements: list[Compute] = []
        self.temporaries: list[Array] = []
        self._products: dict[tuple[Expr, ...], Array] = {}

    def copy(self) -> _Products:
        """Return an independent copy, to which products can be added on trial."""
        copy = _Products(self.arrays)
        copy.statements, copy.temporaries = [*self.statements], [*self.temporaries]
        copy._products = dict(self._products)
        return copy

    def new(self, stem: str, dtype: np.dtype[np.generic], shape: tuple[Dim, ...]) -> Array:
        """Declare a new temporary with a name like ``stem`` and return it."""
        array = Array(numbered(stem, self.arrays), dtype, shape)
        self.arrays[array.name] = array
        self.temporaries.append(array)
        return array

    def product(self, product: LoopProduct, term: Term) -> Window:
        """Return the window of a term's element in its product, which is computed first if it is not yet."""
        operands = tuple(self.stored(product, one) for one in term.operands)
        term = replace(term, operands=operands)
        key = tuple(product.values(one, 0, 1, (product.count, one.extent or 1)) for one in operands)
        at = tuple(ix for ix, _ in term.moving)
        array = self._products.get(key)
        if array is None and len(at) == 2 and key[::-1] in self._products:  # transposed
            array, at = self._products[key[::-1]], at[::-1]
        if array is None:
            array = self.new("product", dtype_of(product.fold.body), term.shape)
            self._products[key] = array
            self.statements.append(product_before(product, term, array, self.arrays))
        return Window(array.name, product.fold.target.shape, at)

    def stored(self, product: LoopProduct, operand: Operand) -> Operand:
        """Return an operand that is read from an array, which is computed first if it is an expression."""
        if Lines(product.axis, product.variables, self.arrays).is_stored("multiply", operand.expr):
            return operand
        dtype = dtype_of(operand.expr)
        rows = operand.at is None or _terms_are_rows(product, operand, self.arrays)
        line = () if operand.at is None else (operand.extent,)
        shape = (product.count, *line) if rows else (*line, product.count)
        value = product.values(operand, 0 if rows else 1, 1 if rows else 0, shape)
        same = (one for one in self.statements if one.body is value and one.combine is None)
        known = next(same, None)
        if known is not None:
            array = self.arrays[known.target.array]
        else:
            array = self.new("factor", dtype, shape)
            self.statements.append(Compute(windows.identity(array), value, loc=product.fold.loc))
        terms = Index(0, 1, product.axis)
        index = (terms,) if operand.at is None else (terms, operand.at) if rows else (operand.at, terms)
        return replace(operand, expr=Load(Window(array.name, product.fold.target.shape, index), dtype))


class _Hoisting:
    """The rewrite of one outermost loop: sums of products in it become products before it."""

    def __init__(self, loop: Loop, region: Region, log: Log) -> None:
        self.region, self.log = region, log
        self.arrays = {array.name: array for array in region.arrays}
        family = families(region)
        self.written = frozenset(family.get(w.array, w.array) for w in writes(loop))
        self.products = _Products(self.arrays)
        self.loops = self.visit(loop, frozenset(), [(hints, 1) for hints in variations(region)])

    def visit(self, loop: Loop, outer: frozenset[str], cases: Cases) -> tuple[Stmt, ...]:
        """Return what replaces a loop: the loop without sums of products, and statements that add these."""
        left: Loop | None = loop
        after: list[Stmt] = []
        for path, stmt in reversed([*paths(loop)]):  # the places of those to come stay
            if term_of(stmt) is None or left is None:
                continue
            product = product_of(alone(left, path), outer, self.arrays)
            if not isinstance(product, LoopProduct):
                continue
            reason = can_leave(left, path, stmt, self.region)
            new = self.hoisted(product, cases, reason)
            if new is not None:
                after.insert(0, new)
                left = without(left, path)
        if left is None:
            return tuple(after)
        inside = within(cases, left)
        body = tuple(new for stmt in left.body for new in self.statement(stmt, outer | {left.var}, inside))
        same = len(body) == len(left.body) and all(a is b for a, b in zip(body, left.body, strict=True))
        return (left if same else replace(left, body=body), *after)

    def statement(self, stmt: Stmt, outer: frozenset[str], cases: Cases) -> tuple[Stmt, ...]:
        """Return what replaces a statement of a loop: itself, if it holds no sum of products."""
        if isinstance(stmt, Loop):
            return self.visit(stmt, outer, cases)
        if not isinstance(stmt, Compute) or stmt.combine is None:
            return (stmt,)
        product = fold_product(stmt, outer, self.arrays)
        new = self.hoisted(product, cases) if isinstance(product, LoopProduct) else None
        return (stmt if new is None else new,)

    def hoisted(self, product: LoopProduct, cases: Cases, reason: Reason | None = None) -> Stmt | None:
        """Return the statement that adds the products, whose computation is recorded; None if they do not
        pay."""
        for one in product.inner:
            cases = within(cases, one)
        name = product.fold.target.array
        trial = self.products.copy()
        products = [trial.product(product, term) for term in product.terms]
        new = trial.temporaries[len(self.products.temporaries) :]
        shapes = [trial.arrays[one].shape for one in dict.fromkeys(window.array for window in products)]
        reason = reason or can_hoist(product, self.written, self.region)
        for stmt in trial.statements:
            reason = reason or _reads_inside(stmt, trial.arrays)
        for hints, points in cases:
            points *= hints.product(product.results[1])
            for shape in shapes:
                reason = reason or pays(product.count, points, shape, hints)
            for array in new:
                reason = reason or _too_large(array.shape, hints, self.region)
        if reason is not None:
            self.log.refused("loop_products", f"{name} stays a loop: {reason.text}", product.fold.loc)
            return None
        self.products = trial
        for shape in shapes:
            version = active((*shape, product.count))
            if version is not None and len(shape) > 1:
                version.needs(new)
                version.worth((*shape, product.count))
        text = f"what is added to {name} is a product before the loops"
        self.log.done("loop_products", text, product.fold.loc)
        return without_terms(product, products)


def _run(region: Region, log: Log) -> Region:
    def fn(loop: Loop, now: Region, _: int) -> tuple[list[Stmt], list[Array]] | None:
        hoisting = _Hoisting(loop, now, log)
        new = hoisting.products
        return ([*new.statements, *hoisting.loops], new.temporaries) if new.temporaries else None

    return each_loop(region, fn)


LOOP_PRODUCTS = Pass("loop_products", _run)
