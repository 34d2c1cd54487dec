"""Matching of windows of one array: the affine map from the domain of one window to the domain of another."""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import without_reduced_axes
from dcarray.ir.nodes import Dim, Index, Window


def _quotient(value: Dim, divisor: Dim) -> Dim | None:
    """Return ``value / divisor`` if that is provably an integer."""
    if isinstance(divisor, int):
        if divisor == 1:
            return value
        if divisor == -1:
            return dims.simplify(-value)
        if isinstance(value, int) and divisor:
            return value // divisor if value % divisor == 0 else None
    if dims.is_number(value, 0):
        return 0
    if dims.prove_eq(value, divisor) is True:
        return 1
    return None


@dims.kept_pair
def domain_map(outer: Window, inner: Window) -> tuple[Index, ...] | None:
    """Return the affine map from ``inner``'s domain to ``outer``'s under which both windows give the same
    element of their array.

    The map may lead outside of ``outer``'s domain (`containing_map` checks that). None if there is no unique
    map, or if that cannot be proved.
    """
    indices: list[Index | None] = [None] * len(outer.shape)
    single = {axis for axis, extent in enumerate(inner.shape) if dims.is_number(extent, 1)}
    for have, want in zip(outer.index, inner.index, strict=True):
        fixed = want.axis is None or want.axis in single or dims.is_number(want.stride, 0)
        if have.axis is None or dims.is_number(have.stride, 0):
            if not fixed or dims.prove_eq(have.offset, want.offset) is not True:
                return None
            continue
        offset = _quotient(dims.simplify(want.offset - have.offset), have.stride)
        stride = 0 if fixed else _quotient(want.stride, have.stride)
        if offset is None or stride is None:
            return None
        index = Index(offset) if fixed else Index(offset, stride, want.axis)
        before = indices[have.axis]
        if before is not None and before != index:
            return None
        indices[have.axis] = index
    for axis, extent in enumerate(outer.shape):
        if indices[axis] is None:
            if not (isinstance(extent, int) and extent == 1):
                return None
            indices[axis] = Index(0)
    return tuple(index for index in indices if index is not None)


def maps_into(amap: Sequence[Index], domain: Sequence[Dim], bounds: Sequence[Dim]) -> bool:
    """Whether the affine map ``amap`` is proved to lead from all points of ``domain`` into ``bounds``."""
    if any(dims.is_number(extent, 0) for extent in domain):
        return True
    for index, bound in zip(amap, bounds, strict=True):
        first = last = index.offset
        if index.axis is not None:
            reach = dims.simplify(index.stride * (domain[index.axis] - 1))
            sign = dims.prove_nonneg(index.stride)
            if sign is True:
                last = dims.simplify(first + reach)
            elif dims.prove_nonneg(-index.stride) is True:
                first = dims.simplify(first + reach)
            else:
                return False
        if dims.prove_nonneg(first) is not True or dims.prove_lt(last, bound) is not True:
            return False
    return True


@dims.kept_pair
def containing_map(outer: Window, inner: Window) -> tuple[Index, ...] | None:
    """Return the `domain_map` of two windows if ``outer`` provably contains every element of ``inner``."""
    if outer.array != inner.array or len(outer.index) != len(inner.index):
        return None
    amap = domain_map(outer, inner)
    if amap is None or not maps_into(amap, inner.shape, outer.shape):
        return None
    return amap


def writes_all(target: Window, inner: Window) -> bool:
    """Whether a statement that writes ``target``, perhaps a reduction, provably writes all of ``inner``."""
    return containing_map(without_reduced_axes(target), inner) is not None


@dims.kept_pair
def meets(a: Window, b: Window) -> bool | None:
    """Whether two windows of one array share an element."""
    return False if provably_apart(a, b) else windows.overlap(a, b)


def provably_apart(a: Window, b: Window) -> bool:
    """Whether two windows of one array are disjoint by constants alone: a quick test."""
    for x, y in zip(a.index, b.index, strict=False):
        first, second = _span(x, a), _span(y, b)
        if first is None or second is None:
            continue
        if first[1] < second[0] or second[1] < first[0]:
            return True
    return False


def _span(ix: Index, window: Window) -> tuple[int, int] | None:
    """Return the smallest and largest position along an array axis, if they are constants."""
    first = ix.offset
    if type(first) is not int:
        return None
    if ix.axis is None:
        return first, first
    count = window.shape[ix.axis]
    if type(count) is not int or type(ix.stride) is not int or count < 1:
        return None
    last = first + ix.stride * (count - 1)
    return (first, last) if first <= last else (last, first)


def unused_axes(window: Window) -> tuple[int, ...]:
    """Return the domain axes longer than one along which the window stays on the same element."""
    used = windows.moving_axes(window)
    return tuple(
        axis
        for axis, extent in enumerate(window.shape)
        if axis not in used and not (isinstance(extent, int) and extent == 1)
    )
