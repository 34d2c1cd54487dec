"""Terms of products: what a loop adds up, or a fold in a loop, if it is an element of a matrix product, or of
a product of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Apply, Compute, Dim, Expr, Gather, Index, Iota, Load, Loop, Size, Window
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.match import unused_axes
from dcarray.ir.records import record

from .loop_distribution import over_iterations

_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class Operand:
    """A factor of the terms: an element of an array, its index that moves with the terms, and the one that
    moves with the results, if one does."""

    load: Load
    summed: int
    moving: int | None

    @property
    def expr(self) -> Expr:
        return self.load


@record(frozen=True, slots=True)
class VectorOperand:
    """A factor of the terms that is computed, and is the same for all results."""

    expr: Expr


@record(frozen=True, slots=True)
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
    operands : tuple of Operand or VectorOperand
        Two.
    rest : tuple of Expr
        The factors that all terms have in common.
    """

    fold: Compute
    axis: int
    inner: tuple[Loop, ...]
    op: str
    operands: tuple[Operand | VectorOperand, ...]
    rest: tuple[Expr, ...]

    @property
    def count(self) -> Dim:
        """The number of terms."""
        return self.fold.target.shape[self.axis]

    @property
    def moving(self) -> tuple[tuple[Load, int], ...]:
        """The elements of arrays, and the index of each, that move with the results."""
        found = (one for one in self.operands if isinstance(one, Operand))
        return tuple((one.load, one.moving) for one in found if one.moving is not None)

    @property
    def results(self) -> tuple[tuple[Index, ...], tuple[Dim, ...]]:
        """The map from the fold's domain to the one without the axis of the terms, and its shape."""
        shape = self.fold.target.shape
        kept = [k for k in range(len(shape)) if k != self.axis]
        amap = tuple(Index(0) if k == self.axis else Index(0, 1, kept.index(k)) for k in range(len(shape)))
        return amap, tuple(shape[k] for k in kept)

    def vector(self, operand: VectorOperand) -> Expr:
        """The values of a computed operand, over a domain that is the axis of the terms."""
        rank = len(self.fold.target.shape)
        amap = tuple(Index(0, 1, 0) if k == self.axis else Index(0) for k in range(rank))
        return windows.remap(operand.expr, amap, (self.count,))


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
    found = term_of(stmt)
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
    if len(found.moving) < len(found.operands):
        return Reason("it is a product with a vector", (stmt.target,))
    if not any(dims.free_symbols(part) & outer for load, _ in found.moving for part in _parts(load.window)):
        return Reason("it is the same in all iterations", (stmt.target,))
    return found


def term_of(stmt: Compute) -> tuple[str, Expr] | None:
    """Return the operation that joins the target of a statement with a term, and the term; None if the
    statement is not of this kind."""
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
    operands: list[Operand | VectorOperand] = []
    rest = []
    for factor in _factors(fold.body, axis, variables):
        if not _moves(factor, axis):
            rest.append(factor)
            continue
        operand = _operand(factor, axis, variables)
        if operand is None:
            return Reason("a factor is no element of a row or column", (fold.target,))
        operands.append(operand)
    found = LoopProduct(fold, axis, inner, op, tuple(operands), tuple(rest))
    if len(operands) != 2 or not found.moving:
        return Reason("its terms are no products of two arrays' elements", (fold.target,))
    return found


def _parts(window: Window) -> Iterator[Dim]:
    yield from window.shape
    for ix in window.index:
        yield from (ix.offset, ix.stride)


def _factors(expr: Expr, axis: int, variables: frozenset[str]) -> Iterator[Expr]:
    """The factors of a term; what is the same for all results is one."""
    if isinstance(expr, Apply) and expr.op == "multiply" and not _is_vector(expr, axis, variables):
        for arg in expr.args:
            yield from _factors(arg, axis, variables)
    else:
        yield expr


def _moves(expr: Expr, axis: int) -> bool:
    """Whether the value of an expression may depend on an axis."""
    return any(
        (isinstance(node, Iota) and node.axis == axis)
        or (isinstance(node, Load) and axis in windows.moving_axes(node.window))
        for node in windows.walk(expr)
    )


def _is_vector(expr: Expr, axis: int, variables: frozenset[str]) -> bool:
    """Whether the value of an expression depends on this axis, and neither on others nor on variables."""
    for node in windows.walk(expr):
        if isinstance(node, Gather) or (isinstance(node, Iota) and node.axis != axis):
            return False
        if isinstance(node, Apply) and node.op == "checked":  # which fails where loops may not run
            return False
        if isinstance(node, Size) and dims.free_symbols(node.dim) & variables:
            return False
        if isinstance(node, Load) and any(
            ix.axis not in (None, axis)
            or (dims.free_symbols(ix.offset) | dims.free_symbols(ix.stride)) & variables
            for ix in node.window.index
        ):
            return False
    return _moves(expr, axis)


def _operand(factor: Expr, axis: int, variables: frozenset[str]) -> Operand | VectorOperand | None:
    """A factor as an operand: one index goes with the terms, one at most with the results."""
    vector = VectorOperand(factor) if _is_vector(factor, axis, variables) else None
    if not isinstance(factor, Load):
        return vector
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
        return vector
    return Operand(factor, summed[0], moving[0] if moving else None)
