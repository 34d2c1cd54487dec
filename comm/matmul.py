"""Products of distributed arrays for programs in which each rank holds its own block."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.algorithms.products import einsum, matmul
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.agreement import check_equal
from dcarray.comm.transport.user_arrays import new_like, writable_memory

from .cart import Ranks, ranks_of

__all__ = ["Einsum", "Matmul"]


def Matmul(
    a: Any,
    of_a: Layout,
    b: Any,
    of_b: Layout,
    layout: Layout | None = None,
    *,
    out: Any = None,
    comm: Ranks = None,
) -> tuple[Any, Layout]:
    """Return ``a @ b`` of distributed vectors, matrices or stacks of matrices, with `numpy.matmul`'s rules.

    The algorithm that sends the fewest bytes is chosen: panels of both matrices are broadcast (SUMMA), or
    panels of one matrix, with partial results added up; a product with a vector sends only vectors; stacks
    that are distributed along the stack axis send nothing.

    Parameters
    ----------
    a, b : array_like
        This rank's memory of the factors, plain or wrapped.
    of_a, of_b : Layout
        The layouts of the factors, over grids of all ranks.
    layout : Layout, optional
        The layout of the result; by default the one for which the fewest bytes are sent.
    out : ndarray, optional
        An array for this rank's part, with `layout`.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray, Layout
        This rank's part of the result, in `out` or a new array like `a`, with NumPy's dtype; and the
        layout of the result.

    Raises
    ------
    ValueError
        When shapes do not fit, `out` has another shape or dtype, or `out` is given without `layout`.
    LayoutError
        When an array's shape is not that of its layout, or layouts do not fit the product.
    GridError
        When a layout's grid does not have as many ranks as `comm`.
    MismatchError
        When ranks disagree on layouts or dtypes.
    """
    first, second = _operands("@", a, of_a, b, of_b, layout, comm)
    return _store_result(matmul(first, second, layout), a, layout, out)


def Einsum(
    subscripts: str,
    a: Any,
    of_a: Layout,
    b: Any,
    of_b: Layout,
    layout: Layout | None = None,
    *,
    out: Any = None,
    comm: Ranks = None,
) -> tuple[Any, Layout]:
    """Return a product of two distributed arrays, summed over some axes, with `numpy.einsum`'s notation.

    `subscripts` is of the form ``"mk,kn->mn"``, with each letter at most once in each array.  Other
    parameters are those of `Matmul`.
    """
    first, second = _operands(subscripts, a, of_a, b, of_b, layout, comm)
    return _store_result(einsum(subscripts, first, second, layout), a, layout, out)


def _operands(
    what: str, a: Any, of_a: Layout, b: Any, of_b: Layout, layout: Layout | None, comm: Ranks
) -> tuple[DistArray, DistArray]:
    group, operands = ranks_of(comm), []
    here = [np.asarray(a), np.asarray(b)]
    compared = (what, of_a, of_b, layout, here[0].dtype.str, here[1].dtype.str)
    check_equal(group, compared, "layouts or dtypes of a product")
    for block, its in zip(here, (of_a, of_b), strict=True):
        its.grid.check(group.size)
        its.check(group.rank, block.shape)
        operands.append(DistArray(group, its, block))
    if layout is not None:
        layout.grid.check(group.size)
    return operands[0], operands[1]


def _store_result(result: DistArray, kind: Any, layout: Layout | None, out: Any) -> tuple[Any, Layout]:
    if out is None:
        out = new_like(kind, result.block.shape, result.dtype)
        writable_memory(out)[...] = result.block
        return out, result.layout
    into = writable_memory(out)
    if layout is None or into.shape != result.block.shape or into.dtype != result.dtype:
        its = "a layout" if layout is None else f"{result.dtype}{result.block.shape}"
        raise ValueError(f"out is {into.dtype}{into.shape}, the result needs {its}")
    into[layout.owned(result.comm.rank)] = result.local
    return out, layout
