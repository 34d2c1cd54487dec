"""Factors of the terms of a sum: how each depends on the summed axis and on the axes of the result.

In ``(a[k,i] - p[i]) * w[k] * b[k,j] / s[i]``, summed over ``k``, the first factor depends on ``i`` and the
third on ``j``; the second is the same for all results, and the last for all terms.  So the sum is an element
of a matrix product, whose first operand has to be computed, divided by ``s[i]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Apply, Array, Const, Dim, Expr, Gather, Index, Iota, Load, Size
from dcarray.ir.ops import const_value
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.records import record

#: A factor, and whether it is multiplied or divides.
Factor = tuple[str, Expr]
#: Where something lies on a line of results, and how many places there are, if something says so.
Place = tuple[Index, Dim | None]


@record(frozen=True, slots=True)
class Operand:
    """An operand of a product: a factor of the terms that depends on at most one axis of the result.

    Attributes
    ----------
    expr : Expr
        Its value over the domain of the fold.
    at : Index or None
        The operand's position along that axis.
    extent : Dim or None
        The length of that axis.
    """

    expr: Expr
    at: Index | None = None
    extent: Dim | None = None


def shift(ix: Index, origin: Index, variables: frozenset[str]) -> Dim | None:
    """Return the constant distance ``ix - origin`` of two indices; None if they do not move alike."""
    if ix.axis != origin.axis or dims.prove_eq(ix.stride, origin.stride) is not True:
        return None
    apart = dims.simplify(ix.offset - origin.offset)
    if dims.free_symbols(apart) & variables:
        return None
    return apart if _moves_with_results(ix, variables) and _moves_with_results(origin, variables) else None


def _moves_with_results(ix: Index, variables: frozenset[str]) -> bool:
    return ix.axis is not None or bool(
        (dims.free_symbols(ix.offset) | dims.free_symbols(ix.stride)) & variables
    )


class Lines:
    """A test of how expressions vary: along ``axis``, the domain axis of the terms, or with the results,
    which move along the other axes and with the loop variables."""

    def __init__(self, axis: int, variables: frozenset[str], arrays: Mapping[str, Array]) -> None:
        self.axis, self.variables, self.arrays = axis, variables, arrays

    def with_terms(self, expr: Expr) -> bool:
        """Whether an expression may have different values in different terms of the sum."""
        return any(
            (isinstance(node, Iota) and node.axis == self.axis)
            or (isinstance(node, Load) and self.axis in windows.moving_axes(node.window))
            for node in windows.walk(expr)
        )

    def places(self, expr: Expr) -> list[Place] | None:
        """Return the indices, with extents, by which an expression depends on one axis of the result; None if
        it depends on several axes, or in another way."""
        places: list[Place] = []
        for node in windows.walk(expr):
            if isinstance(node, Gather):
                return None
            if isinstance(node, Load):
                extents = self.arrays[node.window.array].shape
                moves: list[Place] = [*zip(node.window.index, extents, strict=True)]
            elif isinstance(node, Iota):
                moves = [(Index(0, 1, node.axis), None)]
            else:
                moves = [(Index(node.dim), None)] if isinstance(node, Size) else []
            for ix, extent in moves:
                if ix.axis != self.axis and _moves_with_results(ix, self.variables):
                    places.append((ix, extent))
                elif (dims.free_symbols(ix.offset) | dims.free_symbols(ix.stride)) & self.variables:
                    return None
        return places if all(self.alike(places, [place]) for place in places) else None

    def alike(self, some: list[Place], others: list[Place]) -> bool:
        """Whether both lists of indices go along the same axis of the result, or both are empty."""
        if not some or not others:
            return not some and not others
        return shift(others[0][0], some[0][0], self.variables) is not None

    def is_stored(self, how: str, expr: Expr) -> bool:
        """Whether a factor can be read from an array as it is, and need not be computed."""
        if how == "divide" or not isinstance(expr, Load):
            return False
        index = expr.window.index
        moving = [ix for ix in index if ix.axis != self.axis and _moves_with_results(ix, self.variables)]
        return len(moving) < 2 and [ix.axis for ix in index].count(self.axis) == 1


def term_factors(
    expr: Expr, lines: Lines, certain: bool
) -> tuple[tuple[Operand, ...], tuple[Factor, ...]] | Reason:
    """Return the two operands of a term, and the factors that are the same for all terms; or why the term is
    no product of two operands.

    Parameters
    ----------
    expr : Expr
    lines : Lines
    certain : bool
        Whether the sum is known to have at least one term.
    """
    rest: list[Factor] = []
    groups: list[tuple[list[Place], list[Factor]]] = []
    for factor in _split(expr, lines):
        how, value = factor
        if not lines.with_terms(value) and (how == "multiply" or _is_some(value)):
            if not certain and _may_fail(value):
                return Reason("a factor may only be computed if there are terms")
            rest.append(factor)
            continue
        places = lines.places(value)
        if places is None or _may_fail(value):  # the loops may not run
            return Reason("a factor is not an element of a row or column")
        for known, factors in groups:
            if lines.alike(known, places):
                known += places
                factors.append(factor)
                break
        else:
            groups.append((places, [factor]))
    moving = [group for group in groups if group[0]]
    stored = [len(factors) == 1 and lines.is_stored(*factors[0]) for _, factors in moving]
    if len(moving) == 2 and len(groups) == 3:  # what is the same for all results goes with what is computed
        (same,) = (factors for places, factors in groups if not places)
        moving[stored.index(False) if False in stored else 1][1].extend(same)
        groups = moving
    with_terms = [any(lines.with_terms(value) for _, value in factors) for _, factors in groups]
    if len(groups) != 2 or not moving or not all(with_terms):
        return Reason("its terms are not products of elements of two arrays")
    if stored == [False]:
        return Reason("a matrix would be computed for a product with a vector")
    operands = [_operand(places, factors, lines) for places, factors in groups]
    if None in operands:
        return Reason("a factor only divides, or no array tells how large it is")
    return tuple(one for one in operands if one is not None), tuple(rest)


def _split(expr: Expr, lines: Lines) -> Iterator[Factor]:
    """Yield the factors of an expression; a part that is the same for all results is not split further."""
    if isinstance(expr, Apply) and expr.op in ("multiply", "divide") and lines.places(expr) != []:
        first, second = expr.args
        if expr.op == "multiply":
            yield from _split(first, lines)
            yield from _split(second, lines)
            return
        if lines.with_terms(first):
            yield from _split(first, lines)
            yield expr.op, second
            return
    yield "multiply", expr


def _is_some(expr: Expr) -> bool:
    """Whether an expression is a constant other than 0: a sum divided by 0 may differ from the sum of the
    terms divided by 0."""
    return isinstance(expr, Const) and bool(const_value(expr) != 0)


def _may_fail(expr: Expr) -> bool:
    """Whether an expression may raise an error or a flag, so that it must not be moved."""
    return any(
        isinstance(node, Gather) or (isinstance(node, Apply) and node.op == "checked")
        for node in windows.walk(expr)
    )


def _operand(places: list[Place], factors: list[Factor], lines: Lines) -> Operand | None:
    """Return the operand that is the product of ``factors``, which depend on one axis; None if the length of
    that axis is not known, or if all factors are divisors."""
    (first, value), *others = sorted(factors, key=lambda factor: factor[0] == "divide")
    if first == "divide":
        return None
    dtype = dtype_of(value)
    for how, factor in others:
        value = Apply(how, (value, factor), dtype)
    if not places:
        return Operand(value)
    sized = [(ix, extent) for ix, extent in places if extent is not None]
    for at, extent in sized:  # all arrays have all its places
        apart = [(shift(ix, at, lines.variables), other) for ix, other in sized]
        if all(
            dims.prove_le(0, by) is True and dims.prove_le(extent + by, other) is True for by, other in apart
        ):
            return Operand(value, at, extent)
    return Operand(value, *sized[0]) if sized else None
