"""Loop order: the choice of a nest's loops from the axes of its domain.

Axes of extent 1 are dropped; the axis along which most accesses are contiguous is the innermost loop; the
others are sorted by decreasing stride; and neighbours along which every access is contiguous are collapsed to
one loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from dcarray.ir import dims
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Dim
from dcarray.ir.records import record

from .access import Access, equal, total


@record(frozen=True, slots=True)
class Loops:
    """The loops of a nest, outermost first: each is one or more neighbouring axes of the domain."""

    axes: tuple[tuple[int, ...], ...]
    extents: tuple[Dim, ...]
    folded: frozenset[int]  # positions of the loops that are reduced


def choose(
    shape: Sequence[Dim],
    accesses: Sequence[tuple[Access, bool]],
    folded: Collection[int],
    fixed: Collection[int],
    hints: SizeHints,
    first: int = 0,
    sums: Sequence[Access] = (),
) -> Loops:
    """Return the loops of a domain with the shape ``shape``.

    ``accesses`` has each access with whether it is a write. The axes in ``folded`` are reduced; those in
    ``fixed``, whose coordinate is used as a value, are not collapsed. The ``first`` leading axes are the
    first loop. If one of ``sums``, what sums of floats read, moves along all axes, the innermost loop is
    NumPy's. If the innermost loop is reduced, all kept loops are outside of all reduced ones; otherwise
    the reduced loops are between the outer kept loops and the innermost one.
    """
    head = (_head(shape, first),) if first else ()
    axes = [axis for axis in range(first, len(shape)) if not equal(shape[axis], 1)]
    if head and not axes:
        return Loops(head, (total(shape[:first]),), frozenset({0} if folded else ()))
    if not axes:  # a slice of one element has the kernel of longer ones
        moving = (
            a for a in range(len(shape)) if all(not equal(x.coefs[a], 0) for x, write in accesses if write)
        )
        axes = list(moving)[-1:]
    if not axes:
        return Loops((), (), frozenset())
    sizes = [hints(extent) for extent in shape]
    weights = [(tuple(abs(hints(c)) for c in access.coefs), 3 if write else 2) for access, write in accesses]

    def cost(axis: int) -> float:
        """Return an estimate of the cache lines per step along an axis, including the loop's overhead."""
        moved = sum(min(coefs[axis], 8) * weight for coefs, weight in weights)
        return moved + 16 / max(sizes[axis], 1)

    # Of equals the last is taken: C order.
    inner, reaches = min(reversed(axes), key=cost), [x.coefs for x in sums]
    if any(all(hints(coefs[axis]) for axis in axes) for coefs in reaches):
        inner = _as_numpy(axes, [tuple(abs(hints(c)) for c in coefs) for coefs in reaches])[0]

    def reach(axis: int) -> int:
        return -sum(coefs[axis] for coefs, _ in weights)

    rest = sorted((axis for axis in axes if axis != inner), key=reach)
    kept, reduced = list[list[int]](), list[list[int]]()
    for axis in [*rest, inner]:
        groups = reduced if axis in folded else kept
        if groups and _can_collapse(groups[-1][-1], axis, shape, accesses, fixed):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    order = [*kept, *reduced] if inner in folded else [*kept[:-1], *reduced, kept[-1]]
    loops = (*head, *map(tuple, order))
    extents = tuple(total(shape[axis] for axis in group) for group in loops)
    positions = frozenset(k for k, group in enumerate(loops) if group[0] in folded)
    return Loops(loops, extents, positions)


def _as_numpy(axes: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """Return the axes in NumPy's order of iteration, innermost first: by the strides of operands, or
    in C order where these contradict each other."""
    order: list[int] = []
    for axis in reversed(axes):
        place = len(order)
        for before in reversed(range(len(order))):
            pairs = [(s[axis], s[order[before]]) for s in strides if s[axis] and s[order[before]]]
            if pairs and any(other <= own for own, other in pairs):
                break
            place = before if pairs else place
        order.insert(place, axis)
    return order


def _head(shape: Sequence[Dim], first: int) -> tuple[int, ...]:
    """Return the axes of the first loop: those before ``first`` that are not of extent 1, or one of them."""
    return tuple(axis for axis in range(first) if not equal(shape[axis], 1)) or (first - 1,)


def can_join(
    shape: Sequence[Dim], accesses: Sequence[tuple[Access, bool]], fixed: Collection[int], first: int
) -> bool:
    """Whether the ``first`` leading axes may be collapsed to one loop."""
    return all(_can_collapse(a, b, shape, accesses, fixed) for a, b in pairwise(_head(shape, first)))


def _can_collapse(
    outer: int,
    inner: int,
    shape: Sequence[Dim],
    accesses: Sequence[tuple[Access, bool]],
    fixed: Collection[int],
) -> bool:
    """Whether two neighbouring axes may be collapsed to one loop."""
    if outer in fixed or inner in fixed:
        return False
    for access, _ in accesses:
        a, b = access.coefs[outer], access.coefs[inner]
        if type(a) is int and type(b) is int and (a == 0) != (b == 0):
            return False
        if not equal(a, dims.simplify(b * shape[inner])):
            return False
    return True
