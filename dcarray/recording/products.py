"""Matrix products, recorded as library calls: `numpy.matmul`, and `numpy.dot` of at most two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.tiering.blas_sharing import SMALL_PRODUCTS, is_large_matvec, is_skinny_product

from .operands import NoCompiledForm, RunEagerly, commit, kind_of, operand, run_eagerly, shape_of
from .recorder import NOT_RECORDED, class_of, refuse_small, result_of
from .session import LOCK, recording

_BLAS = ("f", "d", "F", "D")


def matmul(a: Any, b: Any, out: Any = None, called: Any = np.matmul) -> Any:
    """Record the product of two operands; ``called`` is `numpy.matmul`, or `numpy.dot` of at most two axes
    each, which is the same but for its name in warnings."""
    cls = class_of(a, b, out)
    sa: tuple[int, ...] = ()
    sb: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    with LOCK, recording() as rec:
        try:
            sa, sb = shape_of(a), shape_of(b)
            if not sa or not sb:
                raise RunEagerly
            shape = _matmul_shape(sa, sb)
            if not (is_large_matvec(sa, sb) or is_skinny_product(sa, sb, a.dtype.char)):
                refuse_small(shape, (a, b), None)  # a BLAS call with a small result: recording wins nothing
            kinds = (kind_of(a), kind_of(b))
            if out is not None or kinds[0] not in _BLAS or kinds[0] != kinds[1] or 0 in shape:
                raise NoCompiledForm
            args = tuple(operand(rec, x, None, kinds[0]) for x in (a, b))
        except NOT_RECORDED as error:
            lacking = isinstance(error, NoCompiledForm)
        else:
            result, slot, _ = result_of(cls, rec, shape, kinds[0])
            commit(rec, ("call", "blas.matmul", (slot,), args, ()), called.__name__)
            return result if shape else result._evaluated()[()]
    with SMALL_PRODUCTS.context(sa, sb):
        return run_eagerly(lacking, cls, called, (a, b), out)


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ValueError("the inner dimensions differ")
    stack = np.broadcast_shapes(a[:-2], b[:-2]) if len(a) > 2 or len(b) > 2 else ()
    return (*stack, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))
