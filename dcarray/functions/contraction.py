"""Einstein sums as transposes, sums and matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import diagonal_view
from .registry import Unserved

__all__ = ["contract", "parse", "single"]


def parse(text: str, ndims: list[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; ellipses are left to NumPy."""
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
    """A view of ``a`` in which every label stands for one axis."""
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


def _sum_out(a: Any, labels: str, keep: str) -> tuple[Any, str]:
    """Sum over the axes whose label is not in ``keep``."""
    gone = tuple(k for k, c in enumerate(labels) if c not in keep)
    if gone:
        total: Any = np.add.reduce
        a = total(a, gone, a.dtype)
    return a, "".join(c for c in labels if c in keep)


def _order(a: Any, labels: str, wanted: str) -> Any:
    return a if labels == wanted else a.transpose([labels.index(c) for c in wanted])


def single(a: Any, labels: str, result: str) -> Any:
    """The sum of one operand: a view of it, if nothing is summed."""
    a, labels = _distinct(a, labels)
    summed, left = _sum_out(a, labels, result)
    return _order(summed, left, result)


def _count(labels: str, sizes: dict[str, int]) -> int:
    count = 1
    for c in labels:
        count *= sizes[c]
    return count


def contract(a: Any, la: str, b: Any, lb: str, result: str, sizes: dict[str, int]) -> Any:
    """The sum of the products of two operands, as one (stacked) matrix product."""
    a, la = _distinct(a, la)
    b, lb = _distinct(b, lb)
    a, la = _sum_out(a, la, result + lb)
    b, lb = _sum_out(b, lb, result + la)
    stack = "".join(c for c in la if c in lb and c in result)
    over = "".join(c for c in la if c in lb and c not in result)
    rows = "".join(c for c in la if c not in lb)
    columns = "".join(c for c in lb if c not in la)
    if not over:
        every = stack + rows + columns
        left = _order(a, la, stack + rows)[(Ellipsis,) + (None,) * len(columns)]
        right = _order(b, lb, stack + columns)
        right = right[(slice(None),) * len(stack) + (None,) * len(rows) + (Ellipsis,)]
        return _order(np.multiply(left, right), every, result)
    head = tuple(sizes[c] for c in stack)
    m, n, p = _count(rows, sizes), _count(over, sizes), _count(columns, sizes)
    left = _order(a, la, stack + rows + over).reshape((*head, m, n))
    right = _order(b, lb, stack + over + columns).reshape((*head, n, p))
    shape = head + tuple(sizes[c] for c in rows + columns)
    product = np.matmul(left, right)
    if not shape:
        return product.reshape(1)[0]
    return _order(product.reshape(shape), stack + rows + columns, result)
