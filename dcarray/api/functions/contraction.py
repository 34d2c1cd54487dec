"""Einstein sums as transposes, sums and matrix products."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from dcarray.core.fp_state import silent
from dcarray.core.strides import contiguous, strides_of

from .common import diagonal_view
from .registry import Unserved


def parse(text: str, ndims: list[int]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result; ellipses are not supported."""
    text = text.replace(" ", "")
    left, arrow, result = text.partition("->")
    labels = left.split(",")
    if (
        len(labels) != len(ndims)
        or "." in text
        or not all(c.isalpha() and c.isascii() for c in left.replace(",", ""))
    ):
        raise Unserved
    if any(len(t) != n for t, n in zip(labels, ndims, strict=True)):
        raise Unserved
    every = "".join(labels)
    if not arrow:
        result = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise Unserved
    return labels, result


def _distinct(a: Any, labels: str) -> tuple[Any, str]:
    """Return a view of ``a`` in which each label names one axis."""
    k = 0
    while k < len(labels):
        again = labels.find(labels[k], k + 1)
        if again < 0:
            k += 1
            continue
        label = labels[k]
        a = diagonal_view(a, 0, k, again, writeable=True)
        labels = labels[:k] + labels[k + 1 : again] + labels[again + 1 :] + label
        k = 0
    return a, labels


@silent
def _sum_out(a: Any, labels: str, keep: str) -> tuple[Any, str]:
    """Sum over the axes whose label is not in ``keep``."""
    gone = tuple(k for k, c in enumerate(labels) if c not in keep)
    if gone:
        total: Any = np.add.reduce
        a = total(a, gone, a.dtype)
    return a, "".join(c for c in labels if c in keep)


def _order(a: Any, labels: str, wanted: str) -> Any:
    return a if labels == wanted else a.transpose([labels.index(c) for c in wanted])


def _spread(a: Any, labels: str, every: str) -> Any:
    """Return a view with an axis for each of all labels, in their order."""
    turned = _order(a, labels, "".join(c for c in every if c in labels))
    return turned[tuple([slice(None) if c in labels else None for c in every])]


def layout(text: str, arrays: list[Any], optimize: bool, result: str) -> str:
    """Return the labels of NumPy's result, the outermost in memory first."""
    if len(result) < 2 or any(0 in a.shape for a in arrays):
        return result
    corners = []
    for a in arrays:
        steps = [abs(step) for step in strides_of(a)]
        places = sorted(range(a.ndim), key=lambda k: -steps[k])
        extents = tuple(min(n, 2) if step else -2 for n, step in zip(a.shape, steps, strict=True))
        corners.append((extents, tuple(places)))
    return "".join(result[k] for k in _layout(text, tuple(corners), optimize))


@lru_cache(maxsize=1024)
def _layout(text: str, corners: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], optimize: bool) -> Any:
    """Return the axes of NumPy's result in their order in memory, outermost first.  They are read from a
    small sum of products, whose operands have two elements along each axis.  ``corners`` has the extents of
    each operand (negative where all elements are one) and the order of its axes."""
    arrays = []
    for extents, places in corners:
        a = np.zeros([max(extents[k], 1) for k in places]).transpose(np.argsort(places))
        arrays.append(np.broadcast_to(a, [abs(n) for n in extents]))
    sample: Any = np.einsum(text, *arrays, optimize=optimize)
    return sorted(range(sample.ndim), key=lambda k: -sample.strides[k])


def _in_memory_order(a: Any, result: str, wanted: str) -> Any:
    """Return an array with the same elements and its axes in memory in the order ``wanted``."""
    turned = _order(a, result, wanted)
    if contiguous(turned.shape, strides_of(turned)):
        return a
    return _order(turned.copy(), wanted, result)


def single(a: Any, labels: str, result: str, wanted: str) -> Any:
    """Return the sum over axes of one operand; if no axis is summed, a view of it."""
    a, labels = _distinct(a, labels)
    summed, left = _sum_out(a, labels, result)
    total = _order(summed, left, result)
    return total if summed is a or len(result) < 2 else _in_memory_order(total, result, wanted)


def contract(
    a: Any, la: str, b: Any, lb: str, result: str, sizes: dict[str, int], wanted: str, fused: bool = False
) -> Any:
    """Return the sum of the products of two operands, computed as one (stacked) matrix product.  The axes of
    the result lie in memory in the order ``wanted``, if a product can give this order.  ``fused``: products
    of vectors, and stacks of those with matrices, are multiplied and added up."""
    a, la = _distinct(a, la)
    b, lb = _distinct(b, lb)
    a, la = _sum_out(a, la, result + lb)
    b, lb = _sum_out(b, lb, result + la)
    stack = "".join(c for c in wanted if c in la and c in lb)
    over = "".join(c for c in la if c in lb and c not in result)
    rows = "".join(c for c in wanted if c not in lb)
    columns = "".join(c for c in wanted if c not in la)
    if over and rows and columns and wanted == stack + columns + rows:
        a, la, rows, b, lb, columns = b, lb, columns, a, la, rows
    if not over or (fused and not (rows and columns) and (stack or not (rows or columns))):
        every = stack + rows + columns
        sums = np.multiply(*(_spread(x, labels, every + over) for x, labels in ((a, la), (b, lb))))
        sums = _order(*_sum_out(sums, every + over, every), result)
        return _in_memory_order(sums, result, wanted) if len(result) > 1 else sums
    head = tuple(sizes[c] for c in stack)
    m, n, p = (prod([sizes[c] for c in labels]) for labels in (rows, over, columns))
    left = _order(a, la, stack + rows + over).reshape((*head, m, n))
    right = _order(b, lb, stack + over + columns).reshape((*head, n, p))
    shape = head + tuple(sizes[c] for c in rows + columns)
    product = np.matmul(left, right)
    if not shape:
        return product.reshape(1)[0]
    sums = _order(product.reshape(shape), stack + rows + columns, result)
    return _in_memory_order(sums, result, wanted) if len(shape) > 1 else sums
