"""Recognition of matrix products in loops: sums, by a loop or by a fold in a loop, of products of two
operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Apply, Array, Compute, Dim, Expr, Index, Iota, Load, Loop, Size, Window
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.match import unused_axes
from dcarray.ir.records import record

from .loop_distribution import over_iterations
from .product_factors import Lines, Operand, shift, term_factors

_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class Term:
    """An addend of the summed expression: "add" or "subtract", the two operands, and the factors that are the
    same for all terms of the sum, each with "multiply" or "divide"."""

    op: str
    operands: tuple[Operand, ...]
    rest: tuple[tuple[str, Expr], ...]

    @property
    def moving(self) -> tuple[tuple[Index, Dim], ...]:
        """The operands' indices along the axes of the product, and the lengths of these axes."""
        return tuple((one.at, one.extent) for one in self.operands if one.at is not None)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the product."""
        return tuple(extent for _, extent in self.moving)


@record(frozen=True, slots=True)
class LoopProduct:
    """A sum of products that a loop, or a fold within a loop, adds to elements of an array.

    Attributes
    ----------
    fold : Compute
        The sum, over a domain that has an axis for its terms.
    axis : int
        The domain axis of the terms.
    inner : tuple of Loop
        If a loop runs over the terms: the loops in it around its statement.
    terms : tuple of Term
        The addends, each an element of a matrix product.
    variables : frozenset of str
        The variables of the loops before which the products would be computed.
    """

    fold: Compute
    axis: int
    inner: tuple[Loop, ...]
    terms: tuple[Term, ...]
    variables: frozenset[str]

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

    def is_place(self, ix: Index, operand: Operand) -> bool:
        """Whether an index moves along the axis of the result on which an operand depends."""
        return operand.at is not None and shift(ix, operand.at, self.variables) is not None

    def values(self, operand: Operand, terms: int, places: int, shape: tuple[Dim, ...]) -> Expr:
        """Return an operand over the domain ``shape`` with the axes ``terms`` and ``places`` (of the
        result)."""

        def index(ix: Index) -> Index:
            if ix.axis == self.axis:
                return replace(ix, axis=terms)
            moved = None if operand.at is None else shift(ix, operand.at, self.variables)
            return ix if moved is None else Index(moved, 1, places)

        def fn(node: Expr) -> Expr:
            if isinstance(node, Load):
                window = Window(node.window.array, shape, tuple(map(index, node.window.index)))
                return Load(window, node.dtype)
            if isinstance(node, Iota):
                return windows.coordinate(index(Index(0, 1, node.axis)), node.dtype)
            if isinstance(node, Size):
                return windows.coordinate(index(Index(node.dim)), node.dtype)
            return node

        return windows.rewrite(operand.expr, fn)


# ---- what a loop is --------------------------------------------------------------------------------------
def product_of(loop: Loop, outer: frozenset[str], arrays: Mapping[str, Array]) -> LoopProduct | Reason:
    """Return the products whose terms a loop adds up, or why there are none.

    Parameters
    ----------
    loop : Loop
    outer : frozenset of str
        The variables of the loops around it before which the products would be computed.
    arrays : mapping of str to Array
        The arrays of the region, by name.
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
    addition = term_of(stmt)
    if addition is None:
        return Reason(f"it adds nothing to {stmt.target.array}", (stmt.target,))
    op, term = addition
    fold = over_iterations(replace(stmt, body=term, combine="add"), loop)
    if isinstance(fold, Reason):
        return fold
    return _product(fold, tuple(inner), op, outer | {one.var for one in inner}, arrays)


def fold_product(stmt: Compute, outer: frozenset[str], arrays: Mapping[str, Array]) -> LoopProduct | Reason:
    """Return the products of which a fold, in loops over the variables ``outer``, computes a row or column,
    or why there are none."""
    if stmt.combine != "add" or stmt.scan is not None or dtype_of(stmt.body).char not in _DTYPES:
        return Reason("it is not a sum", (stmt.target,))
    product = _product(stmt, (), "add", outer, arrays)
    if isinstance(product, Reason):
        return product
    for term in product.terms:
        if len(term.moving) < len(term.operands):
            return Reason("it is a product with a vector", (stmt.target,))
        if not any(
            dims.free_symbols(part) & outer for at, _ in term.moving for part in (at.offset, at.stride)
        ):
            return Reason("it is the same in all iterations", (stmt.target,))
    return product


def term_of(stmt: Compute) -> tuple[str, Expr] | None:
    """Return the operation and the term ``x`` of a statement ``target = target + x`` or ``target - x``; None
    for other statements."""
    body = stmt.body
    if not isinstance(body, Apply) or body.op not in ("add", "subtract") or body.dtype.char not in _DTYPES:
        return None

    def is_target(expr: Expr) -> bool:
        return isinstance(expr, Load) and windows.same(expr.window, stmt.target)

    first, second = body.args
    if is_target(first):
        return body.op, second
    return ("add", first) if is_target(second) and body.op == "add" else None


def _product(
    fold: Compute, inner: tuple[Loop, ...], op: str, variables: frozenset[str], arrays: Mapping[str, Array]
) -> LoopProduct | Reason:
    """Return the products whose elements a fold computes in loops over ``variables``, or why there are
    none."""
    axes = unused_axes(fold.target)
    if len(axes) != 1:
        return Reason("it sums along several axes", (fold.target,))
    (axis,) = axes
    count = fold.target.shape[axis]
    if dims.free_symbols(count) & variables:
        return Reason("results have different numbers of terms", (fold.target,))
    if dims.prove_le(0, count) is not True or dims.is_number(count, 0):
        return Reason("there may be no terms")
    lines = Lines(axis, variables, arrays)
    terms = []
    for sign, addend in _addends(fold.body, op):
        factors = term_factors(addend, lines, dims.prove_le(1, count) is True)
        if isinstance(factors, Reason):
            return factors
        terms.append(Term(sign, *factors))
    return LoopProduct(fold, axis, inner, tuple(terms), variables)


_OTHER = {"add": "subtract", "subtract": "add"}


def _addends(expr: Expr, op: str) -> Iterator[tuple[str, Expr]]:
    """Yield the addends of an expression, each with "add" or "subtract"; ``op`` is that of the whole."""
    if isinstance(expr, Apply) and expr.op in _OTHER:
        first, second = expr.args
        yield from _addends(first, op)
        yield from _addends(second, op if expr.op == "add" else _OTHER[op])
    elif isinstance(expr, Apply) and expr.op == "negative":
        yield from _addends(expr.args[0], _OTHER[op])
    else:
        yield op, expr


def _parts(window: Window) -> Iterator[Dim]:
    yield from window.shape
    for ix in window.index:
        yield from (ix.offset, ix.stride)
