"""Library matrix products written out as ordinary statements: reductions of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.nodes import Apply, Call, Compute, Dim, Expr, Index, Load, Window
from dcarray.ir.ops import const


def as_sum(call: Call, dtype: np.dtype[Any], summed_first: bool = False) -> Compute:
    """Return the reduction that computes the same as a ``blas.matmul`` call.

    The call's operands and result must all have ``dtype``, and the result must not overlap an operand. The
    domain has the axes of the result and the summed axis, which is the last one, or the first if
    ``summed_first``.
    """
    (out,), (a, b) = call.writes, call.reads
    add, multiply, zero = (
        ("logical_or", "logical_and", False) if dtype.kind == "b" else ("add", "multiply", 0)
    )
    rank = len(out.shape)
    shape = (*out.shape, a.shape[-1])
    row = rank - 2 if len(b.shape) > 1 else rank - 1
    batch = rank - (len(a.shape) > 1) - (len(b.shape) > 1)
    if summed_first:
        shape = (a.shape[-1], *out.shape)

    def at(place: int) -> Index:
        return Index(0, 1, (place + 1) % (rank + 1) if summed_first else place)

    left = _axes(a.shape[:-2], out.shape[:batch], at) + ((at(row),) if len(a.shape) > 1 else ())
    right = (*_axes(b.shape[:-2], out.shape[:batch], at), at(rank))
    right += (at(rank - 1),) if len(b.shape) > 1 else ()
    target = windows.compose(out, tuple(map(at, range(rank))), shape)
    first = Load(windows.compose(a, (*left, at(rank)), shape), dtype)
    second = Load(windows.compose(b, right, shape), dtype)
    return Compute(target, Apply(multiply, (first, second), dtype), add, const(zero, dtype), call.loc)


def as_terms(call: Call, dtype: np.dtype[Any], depth: int) -> Compute:
    """Return the element-wise statement that computes the same as a ``blas.matmul`` with the inner dimension
    ``depth``: a sum written out with ``depth`` products. `as_sum` has the restrictions."""
    folded = as_sum(call, dtype)
    shape = call.writes[0].shape
    inner = len(shape)
    product, add = folded.body, folded.combine
    assert isinstance(product, Apply) and add is not None

    def term(place: int) -> Apply:
        return Apply(product.op, tuple(at(load, place) for load in product.args), dtype)

    def at(load: Expr, place: int) -> Load:
        assert isinstance(load, Load)
        parts = [
            ix if ix.axis != inner else Index(dims.simplify(ix.offset + ix.stride * place))
            for ix in load.window.index
        ]
        return Load(Window(load.window.array, shape, tuple(parts)), dtype)

    body = term(0)
    for place in range(1, depth):
        body = Apply(add, (body, term(place)), dtype)
    target = Window(folded.target.array, shape, folded.target.index)
    return Compute(target, body, loc=call.loc)


def _axes(stack: tuple[Dim, ...], batch: tuple[Dim, ...], at: Callable[[int], Index]) -> tuple[Index, ...]:
    """Return the indices of the leading axes ``stack`` of an operand that is broadcast to the axes ``batch``;
    ``at(k)`` is the index that goes along axis ``k`` of the batch."""
    skipped = len(batch) - len(stack)
    return tuple(
        at(skipped + k) if dims.prove_eq(extent, batch[skipped + k]) is True else Index(0)
        for k, extent in enumerate(stack)
    )
