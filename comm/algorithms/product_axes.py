"""Products of two arrays in ``einsum``'s notation: their axes, and their computation on one rank.

Axes are named by letters as in ``einsum``: ``"mk,kn->mn"`` is a matrix product, ``"bmk,bkn->bmn"`` a stack of
them, ``"mk,k->m"`` one with a vector, ``"k,k->"`` a scalar product, ``"m,n->mn"`` an outer one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dcarray.comm.transport.protocol import Array

__all__ = ["Product", "multiply", "parse", "sum_dtype"]


@dataclass(frozen=True)
class Product:
    """The axes of two factors and of their product, each axis a letter.

    Axes of both factors and the product are the batch; axes of the product and one factor are rows and
    columns; axes of both factors that the product lacks are inner, summed over.  An axis of one element may
    be in one array alone.
    """

    a: str
    b: str
    out: str
    extents: tuple[tuple[str, int], ...]

    @cached_property
    def extent(self) -> dict[str, int]:
        return dict(self.extents)

    @cached_property
    def batch(self) -> str:
        return "".join(x for x in self.out if x in self.a and x in self.b)

    @cached_property
    def rows(self) -> str:
        return "".join(x for x in self.out if x in self.a and x not in self.b)

    @cached_property
    def columns(self) -> str:
        return "".join(x for x in self.out if x in self.b and x not in self.a)

    @cached_property
    def inner(self) -> str:
        return "".join(x for x in self.a if x in self.b and x not in self.out)


def parse(subscripts: str, a: Sequence[int], b: Sequence[int], adds_axes: bool = False) -> Product:
    """Return the `Product` with the letters `subscripts` for factors of the shapes `a` and `b`.

    Parameters
    ----------
    subscripts : str
    a, b : sequence of int
    adds_axes : bool
        Whether the product may have axes, of one element, that no factor has.

    Raises
    ------
    ValueError
        If the letters do not fit the shapes or each other; the text says which.
    """
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    factors = left.split(",")
    if not arrow or len(factors) != 2:
        raise ValueError(f"{subscripts!r} is not of the form 'mk,kn->mn'")
    extent: dict[str, int] = {}
    for letters, shape in zip(factors, (a, b), strict=True):
        if len(letters) != len(shape) or len(set(letters)) != len(letters):
            raise ValueError(f"{letters!r} does not name the axes of an array of shape {tuple(shape)}")
        for letter, n in zip(letters, shape, strict=True):
            if extent.setdefault(letter, n) != n:
                raise ValueError(f"axis {letter!r} of {subscripts!r} has {extent[letter]} elements and {n}")
    if len(set(out)) != len(out) or not (adds_axes or set(out) <= extent.keys()):
        raise ValueError(f"{out!r} in {subscripts!r} names an axis twice, or one that no factor has")
    for letter, n in extent.items():
        if letter not in out and not all(letter in letters for letters in factors) and n != 1:
            raise ValueError(f"axis {letter!r} of {subscripts!r} is summed over and in one factor only")
    extent.update((letter, 1) for letter in out if letter not in extent)
    return Product(factors[0], factors[1], out, tuple(extent.items()))


def sum_dtype(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which `numpy.matmul` computes, and in which parts are summed.

    That is NumPy's result dtype, or float32 for float16, which NumPy also sums in float32.

    Raises
    ------
    TypeError
        When NumPy has no product for these dtypes.
    """
    *_, dtype = np.matmul.resolve_dtypes((a, b, None))
    return np.dtype(np.float32) if dtype.char == "e" else dtype


def multiply(product: Product, a: Array, b: Array, out: Array, add: bool) -> None:
    """Write the product of local blocks of two arrays to `out`, or with `add` add it there.

    It is computed by `numpy.matmul` in the dtype of `out`, which must share no memory with the factors.
    """
    left = _matrices(a, product.a, product.batch, product.rows, product.inner)
    right = _matrices(b, product.b, product.batch, product.inner, product.columns)
    names = product.batch + product.rows + product.columns
    out = out.squeeze(tuple(k for k, x in enumerate(product.out) if x not in names))
    out_axes = [x for x in product.out if x in names]
    transposed = out.transpose([out_axes.index(x) for x in names])
    shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2]) + (left.shape[-2], right.shape[-1])
    into = transposed.reshape(shape)
    if not add and _for_blas(into) and np.may_share_memory(into, out):
        np.matmul(left, right, out=into, dtype=out.dtype)
        return
    values = np.matmul(left, right, dtype=out.dtype).reshape(transposed.shape)
    if add:
        np.add(transposed, values, out=transposed)
    else:
        transposed[...] = values


def _matrices(x: Array, letters: str, batch: str, rows: str, columns: str) -> Array:
    """Return an array as a stack of matrices, in which `rows` and `columns` are merged to one axis each."""
    unit_axes = tuple(k for k, letter in enumerate(letters) if letter not in batch + rows + columns)
    x, letters = x.squeeze(unit_axes), "".join(y for k, y in enumerate(letters) if k not in unit_axes)
    x = x.transpose([letters.index(y) for y in batch + rows + columns])
    n, m = len(batch), len(batch) + len(rows)
    matrices = x.reshape(*x.shape[:n], math.prod(x.shape[n:m]), math.prod(x.shape[m:]))
    return matrices if _for_blas(matrices) else np.ascontiguousarray(matrices)


def _for_blas(x: Array) -> bool:
    """Whether the rows or columns of matrices are contiguous, as BLAS requires."""
    return x.itemsize in x.strides[-2:] or x.size < 2
