"""The algebra of affine windows, and of the expressions that load through them, as pure functions.

Answers are three-valued: None means "not proved", and callers must then be conservative.  A window whose
``index`` is shorter than its array's rank (``effects`` makes such for gathers and loops) stands for unknown
elements of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np

from .dims import is_number, kept_pair, prove_eq, prove_le, prove_lt, simplify
from .memo import is_kept, kept
from .nodes import Apply, Array, Dim, Expr, Gather, Index, Iota, Load, Size, Window


# ---- geometry ---------------------------------------------------------------------------------------
def identity(array: Array) -> Window:
    """Return the window that is the whole array, axis by axis."""
    return Window(array.name, array.shape, tuple(Index(0, 1, k) for k in range(len(array.shape))))


@kept
def moving_axes(window: Window) -> tuple[int, ...]:
    """Return the domain axes along which a window moves, in the order of the array's axes."""
    return tuple([ix.axis for ix in window.index if ix.axis is not None and not is_number(ix.stride, 0)])


def compose(window: Window, amap: tuple[Index, ...], shape: tuple[Dim, ...]) -> Window:
    """Return the window over the new domain ``shape``; ``amap`` has each coordinate of the old domain as an
    affine function of the new coordinates."""
    return Window(window.array, shape, tuple(_compose_index(ix, amap) for ix in window.index))


def _compose_index(ix: Index, amap: tuple[Index, ...]) -> Index:
    if ix.axis is None:
        return ix
    to = amap[ix.axis]
    stride = simplify(ix.stride * to.stride)
    offset = simplify(ix.offset + ix.stride * to.offset)
    if to.axis is None or (type(stride) is int and stride == 0):
        return Index(offset)
    return Index(offset, stride, to.axis)


def written_at_least(target: Window) -> Window:
    """Return the window of the elements that a statement writes even if its reduced axes are empty."""
    used = {ix.axis for ix in target.index}
    return replace(target, shape=tuple(n if axis in used else 1 for axis, n in enumerate(target.shape)))


def empty(window: Window) -> bool | None:
    """Whether the domain has no points; None if that is not known."""
    return _has_no_points(window.shape)


def _touches_nothing(window: Window) -> bool | None:
    """Whether an axis that the index uses is empty, so that there are no elements; None if that is not known.
    Other axes do not count: a reduction over an empty axis writes its target."""
    return _has_no_points(tuple(window.shape[ix.axis] for ix in window.index if ix.axis is not None))


def _has_no_points(shape: tuple[Dim, ...]) -> bool | None:
    sizes = [prove_le(n, 0) for n in shape]
    if True in sizes:
        return True
    return None if None in sizes else False


def injective(window: Window) -> bool | None:
    """Whether different points of the domain give different elements; None if that is not known."""
    moved = {ix.axis for ix in window.index if prove_eq(ix.stride, 0) is False}
    loose = [k for k, n in enumerate(window.shape) if k not in moved and prove_le(n, 1) is not True]
    if not loose or (hole := empty(window)) is True:
        return True
    unsure = {ix.axis for ix in window.index} - moved
    if hole is False and any(k not in unsure and prove_le(window.shape[k], 1) is False for k in loose):
        return False
    return None


@kept_pair
def same(a: Window, b: Window) -> bool:
    """Whether two windows are proved to have one domain, and the same element at each point of it."""
    if a == b:
        return True
    if a.array != b.array or len(a.shape) != len(b.shape) or len(a.index) != len(b.index):
        return False
    return all(prove_eq(m, n) is True for m, n in zip(a.shape, b.shape, strict=True)) and all(
        _same_index(_settle(x, a), _settle(y, b)) for x, y in zip(a.index, b.index, strict=True)
    )


def _settle(ix: Index, window: Window) -> Index:
    """Return the index without its axis if the domain has one point along that; else the index itself."""
    if ix.axis is not None and prove_eq(window.shape[ix.axis], 1) is True:
        return Index(ix.offset)
    return ix


def _same_index(a: Index, b: Index) -> bool:
    return a == b or (
        a.axis == b.axis and prove_eq(a.stride, b.stride) is True and prove_eq(a.offset, b.offset) is True
    )


#: For every axis of an array where a part of it begins and ends.
Box = tuple[tuple[Dim, Dim], ...]


# ---- the sets of elements ---------------------------------------------------------------------------
# Along one array axis a window touches the progression {offset + stride * t : 0 <= t < count}.
_Run = tuple[Dim, Dim, Dim]  # (offset, stride, count)


def _run(ix: Index, window: Window) -> _Run:
    return (ix.offset, 1, 1) if ix.axis is None else (ix.offset, ix.stride, window.shape[ix.axis])


def _is_box(window: Window) -> bool:
    """Whether no domain axis moves along two array axes: then the elements are the product of ranges."""
    axes = [ix.axis for ix in window.index if ix.axis is not None and window.shape[ix.axis] != 1]
    return len(set(axes)) == len(axes)


def _ends(run: _Run) -> tuple[Dim, Dim] | None:
    """Return the smallest and largest element of a non-empty run (offset, stride, count); None if the sign of
    the stride is not known."""
    offset, stride, count = run
    last = simplify(offset + stride * (count - 1))
    forward = prove_le(0, stride)
    if forward is None:
        return None
    return (offset, last) if forward else (last, offset)


@kept_pair
def overlap(a: Window, b: Window) -> bool | None:
    """Whether two windows of one array share an element; None if that is not known.  (An axis that no index
    uses counts as not empty: see ``_touches_nothing``.)"""
    if a.array != b.array:
        return False
    nothing = [_touches_nothing(a), _touches_nothing(b)]
    if True in nothing:
        return False
    if len(a.index) != len(b.index):
        return None
    meets = [_meet(_run(x, a), _run(y, b)) for x, y in zip(a.index, b.index, strict=True)]
    if False in meets:
        return False
    if None in meets or None in nothing or not (_is_box(a) and _is_box(b)):
        return True if a == b and nothing == [False, False] else None
    return True


def _meet(a: _Run, b: _Run) -> bool | None:
    """Whether two non-empty runs share an element."""
    ends_a, ends_b = _ends(a), _ends(b)
    if ends_a is None or ends_b is None:
        return True if prove_eq(a[0], b[0]) is True else None
    (low_a, high_a), (low_b, high_b) = ends_a, ends_b
    if prove_lt(high_a, low_b) is True or prove_lt(high_b, low_a) is True:
        return False
    step_a, step_b = a[1], b[1]
    apart = simplify(low_b - low_a)
    if type(step_a) is not int or type(step_b) is not int:
        return True if type(apart) is int and apart == 0 else None
    step_a, step_b = abs(step_a), abs(step_b)
    if type(apart) is int:
        divisor = gcd(step_a, step_b)
        if divisor > 1 and apart % divisor:
            return False
        if apart == 0:
            return True
        ints = [high_a, high_b, low_a, low_b]
        if all(type(n) is int for n in ints):
            return _meet_ints(low_a, high_a, step_a, low_b, high_b, step_b)
    if step_a == step_b == 1 and prove_le(low_a, high_b) is True and prove_le(low_b, high_a) is True:
        return True
    return None


def _meet_ints(low_a: int, high_a: int, step_a: int, low_b: int, high_b: int, step_b: int) -> bool:
    if low_a == high_a:
        return low_b <= low_a <= high_b and (low_a - low_b) % (step_b or 1) == 0
    if low_b == high_b:
        return low_a <= low_b <= high_a and (low_b - low_a) % (step_a or 1) == 0
    divisor = gcd(step_a, step_b)
    if (low_b - low_a) % divisor:
        return False
    period = step_b // divisor
    iterations = (
        ((low_b - low_a) // divisor * pow(step_a // divisor, -1, period)) % period if period > 1 else 0
    )
    first = low_a + iterations * step_a  # smallest element of run a's lattice, from low_a on, in b's lattice
    common = step_a * period
    floor = max(low_a, low_b)
    if first < floor:
        first += -(-(floor - first) // common) * common
    return first <= min(high_a, high_b)


def disjoint_rows(a: Window, b: Window, axes: int) -> bool:
    """Whether two windows of one array provably share no element at points of their domains that differ in
    one of the first ``axes`` coordinates."""

    def moves(a: Index, b: Index, axis: int) -> bool:
        return a.axis == b.axis == axis and prove_eq(a.stride, 0) is False and _same_index(a, b)

    pairs = list(zip(a.index, b.index, strict=False))
    return min(len(a.shape), len(b.shape)) >= axes and all(
        prove_eq(a.shape[axis], 1) is True or any(moves(i, j, axis) for i, j in pairs) for axis in range(axes)
    )


@kept_pair
def covers(outer: Window, inner: Window) -> bool | None:
    """Whether every element of ``inner`` is one of ``outer`` (of one array)."""
    nothing = _touches_nothing(inner)
    if nothing is True:
        return True
    if outer.array != inner.array:
        return False if nothing is False else None
    if same(outer, inner):
        return True
    if len(outer.index) != len(inner.index):
        return None
    answers = [_within(_run(x, outer), _run(y, inner)) for x, y in zip(outer.index, inner.index, strict=True)]
    if all(answer is True for answer in answers) and _is_box(outer) and _unused_not_empty(outer):
        return True
    return False if False in answers and nothing is False else None


def box(window: Window) -> Box | None:
    """Return the elements of a window as a box (first and end along each axis); None if they are no box."""
    ends: list[tuple[Dim, Dim]] = []
    axes = [ix.axis for ix in window.index if ix.axis is not None]
    if len(set(axes)) < len(axes):
        return None
    for ix in window.index:
        if ix.axis is None:
            ends.append((ix.offset, simplify(ix.offset + 1)))
        elif prove_eq(ix.stride, 1) is True:
            ends.append((ix.offset, simplify(ix.offset + window.shape[ix.axis])))
        else:
            return None
    return tuple(ends)


@kept_pair
def union(a: Window, b: Window) -> Window | None:
    """Return the window that is the union of two adjacent boxes; None if they are not proved adjacent."""
    one, two = box(a), box(b)
    if a.array != b.array or one is None or two is None or len(one) != len(two):
        return None
    apart = [
        k
        for k, (x, y) in enumerate(zip(one, two, strict=True))
        if any(prove_eq(p, q) is not True for p, q in zip(x, y, strict=True))
    ]
    if len(apart) != 1:
        return None
    (k,) = apart
    if prove_eq(one[k][1], two[k][0]) is not True:
        one, two = two, one
        if prove_eq(one[k][1], two[k][0]) is not True:
            return None
    ends = (*one[:k], (one[k][0], two[k][1]), *one[k + 1 :])
    shape = tuple(simplify(high - low) for low, high in ends)
    return Window(a.array, shape, tuple(Index(low, 1, axis) for axis, (low, _) in enumerate(ends)))


def _unused_not_empty(window: Window) -> bool:
    """Whether the axes that the index does not use have points; the used ones follow from the runs."""
    used = {ix.axis for ix in window.index}
    return all(k in used or prove_le(1, n) is True for k, n in enumerate(window.shape))


def _within(outer: _Run, inner: _Run) -> bool | None:
    """Whether a non-empty run lies in another."""
    ends_o, ends_i = _ends(outer), _ends(inner)
    if ends_o is None or ends_i is None:
        return None
    below, above = prove_le(ends_o[0], ends_i[0]), prove_le(ends_i[1], ends_o[1])
    if below is False or above is False:
        return False
    step_o, step_i = outer[1], inner[1]
    if prove_eq(outer[2], 1) is True or prove_eq(step_o, 1) is True or prove_eq(step_o, -1) is True:
        aligned: bool | None = True
    else:
        apart = simplify(ends_i[0] - ends_o[0])
        if type(step_o) is not int or type(apart) is not int:
            aligned = None
        elif apart % step_o:
            aligned = False
        elif prove_eq(inner[2], 1) is True:
            aligned = True
        elif type(step_i) is not int:
            aligned = None
        else:
            aligned = True if step_i % step_o == 0 else (False if prove_le(inner[2], 1) is False else None)
    if aligned is False:
        return False
    return True if below and above and aligned else None


# ---- expressions ------------------------------------------------------------------------------------
def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions that ``expr`` is made from."""
    if isinstance(expr, Apply):
        return expr.args
    return expr.index if isinstance(expr, Gather) else ()


def walk(*roots: Expr) -> Sequence[Expr]:
    """Return the nodes of expressions, each once, children before parents, in a fixed order."""
    if len(roots) != 1:
        return _walk(roots)
    (root,) = roots
    return (*_below(root), root) if children(root) else roots


@kept
def _below(expr: Expr) -> tuple[Expr, ...]:
    """Return the nodes of an expression without the root, so that the cached tuple does not keep that
    alive."""
    return _walk((expr,))[:-1]


def _walk(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    order: dict[Expr, None] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if node in order:
            continue
        if done or not (below := children(node)):
            order[node] = None
        elif is_kept(node, _below):
            order.update(dict.fromkeys(_below(node)))
            order[node] = None
        else:
            stack.append((node, True))
            stack.extend([(child, False) for child in reversed(below)])
    return tuple(order)


def rewrite(expr: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """Return an expression with ``fn`` applied to every node, bottom-up, each node once."""
    return _rewritten(expr, fn, True)


def _rewritten(expr: Expr, fn: Callable[[Any], Expr], everything: bool) -> Expr:
    """Return an expression with ``fn`` applied to every node, or to those alone that load."""
    new: dict[Expr, Expr] = {}
    for node in walk(expr):
        rebuilt, change = node, everything
        if isinstance(node, Apply):
            args = tuple([new[a] for a in node.args])
            rebuilt = node if args == node.args else Apply(node.op, args, node.dtype)
        elif isinstance(node, Load):
            change = True
        elif isinstance(node, Gather):
            index, change = tuple([new[a] for a in node.index]), True
            rebuilt = node if index == node.index else Gather(node.window, index, node.dtype)
        new[node] = fn(rebuilt) if change else rebuilt
    return new[expr]


def map_loads(expr: Expr, fn: Callable[[Load | Gather], Expr]) -> Expr:
    """Return an expression with every ``Load`` and ``Gather`` replaced by ``fn`` of it."""
    return _rewritten(expr, fn, False)


def loads(expr: Expr) -> tuple[Load | Gather, ...]:
    """Return every ``Load`` and ``Gather`` of ``expr`` once, in a fixed order."""
    below = _loads_below(expr) if children(expr) else ()
    return (*below, expr) if isinstance(expr, (Load, Gather)) else below


@kept
def _loads_below(expr: Expr) -> tuple[Load | Gather, ...]:
    return tuple([node for node in _below(expr) if isinstance(node, (Load, Gather))])


def remap(expr: Expr, amap: tuple[Index, ...], shape: tuple[Dim, ...]) -> Expr:
    """Return an expression after a change of domain: see ``compose`` for ``amap`` and ``shape``."""

    def fn(node: Expr) -> Expr:
        if isinstance(node, Apply):
            return node
        if isinstance(node, Load):
            return Load(compose(node.window, amap, shape), node.dtype)
        if isinstance(node, Gather):
            return Gather(replace(node.window, shape=shape), node.index, node.dtype)
        if isinstance(node, Iota):
            return coordinate(amap[node.axis], node.dtype)
        return node

    return rewrite(expr, fn)


def coordinate(ix: Index, dtype: np.dtype[np.generic]) -> Expr:
    """Return the coordinate that an index gives at the iteration point, as an expression of ``dtype``."""
    if ix.axis is None:
        return Size(ix.offset, dtype)
    plain = type(ix.offset) is int and ix.offset == 0
    if plain and type(ix.stride) is int and ix.stride == 1:
        return Iota(ix.axis, dtype)
    if dtype.kind not in "iu":  # only integers wrap consistently: convert the exact coordinate last
        return Apply("cast", (coordinate(ix, np.dtype(np.int64)),), dtype)
    value: Expr = Iota(ix.axis, dtype)
    if not (type(ix.stride) is int and ix.stride == 1):
        value = Apply("multiply", (Size(ix.stride, dtype), value), dtype)
    return value if plain else Apply("add", (value, Size(ix.offset, dtype)), dtype)
