"""Products of distributed arrays for programs that hold their blocks."""

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
    """Return ``a @ b`` of distributed vectors, matrices or stacks of matrices, as `numpy.matmul`.

    The communication is chosen by its bytes: panels of both matrices (SUMMA), or of one while parts of the
    result are added up; of a product with a vector only vectors are sent; of a stack that is cut along the
    stack nothing.

    Parameters
    ----------
    a, b : array_like
        This rank's memory of the factors, plain or wrapped.
    of_a, of_b : Layout
        The layouts of the factors, over grids of all ranks.
    layout : Layout, optional
        The layout of the result; by default the one with the least to send.
    out : ndarray, optional
        An array for this rank's part, with `layout`.
    comm : Communicator or Cart, optional
        The ranks, by default all; all of them call this.

    Returns
    -------
    ndarray, Layout
        This rank's part, `out` or a new array like `a`, of the dtype that NumPy's product has; and the
        layout of the result.

    Raises
    ------
    ValueError
        When shapes do not fit, or `out` has another shape or dtype, or no layout.
    LayoutError
        When an array does not have its layout, or layouts do not fit the product.
    GridError
        When a grid does not have all ranks.
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
    """Return a product of two distributed arrays, summed over some axes, as `numpy.einsum`.

    `subscripts` is of the form ``"mk,kn->mn"``, with each letter at most once in each array.  Other
    parameters are those of `Matmul`.
    """
    first, second = _operands(subscripts, a, of_a, b, of_b, layout, comm)
    return _store_result(einsum(subscripts, first, second, layout), a, layout, out)


def _operands(
    what: str, a: Any, of_a: Layout, b: Any, of_b: Layout, layout: Layout | None, comm: Ranks
) -> tuple[DistArray, DistArray]:
    group, found = ranks_of(comm), []
    here = [np.asarray(a), np.asarray(b)]
    compared = (what, of_a, of_b, layout, here[0].dtype.str, here[1].dtype.str)
    check_equal(group, compared, "layouts or dtypes of a product")
    for block, its in zip(here, (of_a, of_b), strict=True):
        its.grid.check(group.size)
        its.check(group.rank, block.shape)
        found.append(DistArray(group, its, block))
    if layout is not None:
        layout.grid.check(group.size)
    return found[0], found[1]


def _store_result(found: DistArray, kind: Any, layout: Layout | None, out: Any) -> tuple[Any, Layout]:
    if out is None:
        out = new_like(kind, found.block.shape, found.dtype)
        writable_memory(out)[...] = found.block
        return out, found.layout
    into = writable_memory(out)
    if layout is None or into.shape != found.block.shape or into.dtype != found.dtype:
        its = "a layout" if layout is None else f"{found.dtype}{found.block.shape}"
        raise ValueError(f"out is {into.dtype}{into.shape}, the result needs {its}")
    into[layout.owned(found.comm.rank)] = found.local
    return out, layout
