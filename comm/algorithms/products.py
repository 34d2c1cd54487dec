"""Products of distributed arrays: ``einsum`` of two operands and ``matmul``."""

from __future__ import annotations

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout

from .contraction_plan import Contraction
from .product_axes import Product, parse, sum_dtype
from .product_layouts import Scheme, choose

__all__ = ["einsum", "matmul"]


def einsum(subscripts: str, a: DistArray, b: DistArray, layout: Layout | None = None) -> DistArray:
    """Return the product of two arrays, summed over some axes, like ``numpy.einsum`` of two operands.

    Parameters
    ----------
    subscripts : str
        Of the form ``"mk,kn->mn"``; each letter at most once in each array.
    a, b : DistArray
        Arrays over the same ranks.
    layout : Layout, optional
        The layout of the result; by default the one with the least to send.

    Returns
    -------
    DistArray
        The result, of the dtype that `numpy.matmul` gives.

    Raises
    ------
    ValueError
        When letters do not fit the shapes.
    LayoutError
        If the result has another shape than `layout`, or if the numbers of ranks differ.
    TypeError
        When the dtypes have no product.
    """
    return _product(parse(subscripts, a.shape, b.shape), a, b, layout)


def matmul(a: DistArray, b: DistArray, layout: Layout | None = None) -> DistArray:
    """Return ``a @ b`` like `numpy.matmul`: of vectors, matrices, stacks of matrices.

    Parameters and errors are those of `einsum`.
    """
    if not a.ndim or not b.ndim:
        raise ValueError("matmul of an array without axes")
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    names = [chr(ord("A") + k) for k in range(len(stack))]
    unit_letters = iter("zyxwvutsrq")

    def of(shape: tuple[int, ...], last: str) -> str:
        own = shape[: len(shape) - len(last)]
        skip = len(stack) - len(own)
        pairs = enumerate(own)
        return (
            "".join(names[skip + k] if n == stack[skip + k] else next(unit_letters) for k, n in pairs) + last
        )

    rows, columns = "m" * (a.ndim > 1), "n" * (b.ndim > 1)
    if a.shape[-1] != b.shape[-2:][0]:
        raise ValueError(f"arrays of shapes {a.shape} and {b.shape} cannot be multiplied")
    text = f"{of(a.shape, rows + 'k')},{of(b.shape, 'k' + columns)}->{''.join(names)}{rows}{columns}"
    return _product(parse(text, a.shape, b.shape), a, b, layout)


def _product(of: Product, a: DistArray, b: DistArray, layout: Layout | None) -> DistArray:
    sum_type = sum_dtype(a.dtype, b.dtype)
    scheme: Scheme = choose(
        of, a.layout, b.layout, layout, (a.dtype.itemsize, b.dtype.itemsize, sum_type.itemsize)
    )
    target = layout or scheme.out
    *_, dtype = np.matmul.resolve_dtypes((a.dtype, b.dtype, None))
    result = DistArray(a.comm, target, np.zeros(target.local_shape(a.comm.rank), dtype))
    Contraction(scheme, a.comm.rank).run(a.comm, a.local, b.local, result.local)
    return result
