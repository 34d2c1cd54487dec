"""Products of arrays, and norms; NumPy calls LAPACK for factorisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.core.backend import is_distributed
from dcarray.core.fp_state import silent
from dcarray.core.processes import communicator
from dcarray.core.strides import in_c_order
from dcarray.recording.products import matmul as product
from dcarray.recording.recorder import elementwise, reduce
from dcarray.tiering import policy
from dcarray.tiering.blas_sharing import LEAST_UNCACHED

from .common import add, eager_arrays, expand, is_wrapped, matmul, maximum, minimum, operand, reduce_array
from .contraction import contract, layout, parse, single
from .indexing import diagonal
from .registry import NumpyIsFaster, Unserved, implements, prefer_numpy

_NUMBERS = "biufc"
_BLAS = "fdFD"
_dot: Any = np.dot  # NumPy's warnings name it for all products that use it


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = operand(a), operand(b)
    if a.dtype.kind not in _NUMBERS or b.dtype.kind not in _NUMBERS:
        raise Unserved
    return a, b


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return the product over the last axis of ``a`` and the last but one axis of ``b``."""
    if out is not None and not is_wrapped(out):
        raise Unserved
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        if out is not None:
            raise Unserved
        return elementwise("multiply", (a, b), warned_as="dot")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        raise Unserved
    if out is not None:
        dtype = np.result_type(a.dtype, b.dtype)
        if a.ndim > 2 or b.ndim > 2 or out.dtype != dtype:
            raise Unserved
        if out.shape != a.shape[:-1] + b.shape[1:] or not in_c_order(out):
            raise Unserved
        return product(a, b, out, called=_dot)
    if a.ndim <= 2 and b.ndim <= 2:
        return product(a, b, called=_dot)
    n = a.shape[-1]
    if b.ndim == 1:
        return _dot(_rows(a, n), b).reshape(a.shape[:-1])
    columns = np.moveaxis(b, -2, 0)
    flat = _dot(_rows(a, n), columns.reshape(n, prod(columns.shape[1:])))
    return flat.reshape(a.shape[:-1] + columns.shape[1:])


def _rows(a: Any, n: int) -> Any:
    return a.reshape(prod(a.shape[:-1]), n)


@implements(np.vdot)
@silent
def vdot(a: Any, b: Any, /) -> Any:
    """Return the product of two vectors, the first conjugated."""
    a, b = _pair(a, b)
    a, b = a.reshape(-1), b.reshape(-1)
    if a.shape != b.shape:
        raise Unserved
    no_kernel = a.dtype.kind in "biu" and communicator() is None
    plain = eager_arrays(a, b) if a.dtype == b.dtype and (a.dtype.char in _BLAS or no_kernel) else None
    if plain is not None:
        return np.vdot(*plain)
    if no_kernel:
        raise Unserved
    return matmul(np.conjugate(a) if a.dtype.kind == "c" else a, b)


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Return the product over the last axes."""
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _dot(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise Unserved
    n = a.shape[-1]
    if a.ndim <= 2 and b.ndim <= 2:
        return _dot(a, b.transpose())
    flat = _dot(_rows(a, n), _rows(b, n).transpose())
    return flat.reshape(a.shape[:-1] + b.shape[:-1])


@implements(np.outer, views=True)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Return the products of all pairs of elements of two vectors."""
    a, b = operand(a).reshape(-1)[:, None], operand(b).reshape(-1)[None, :]
    if not policy.eager(a.size * b.size) and (out is None or is_wrapped(out)):
        return elementwise("multiply", (a, b), out=out)  # two small operands may have a large result
    return np.multiply(a, b, out)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the product over pairs of axes."""
    a, b = _pair(a, b)
    if type(axes) is int:
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise Unserved
        over_a, over_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = axes
        over_a = [first] if type(first) is int else list(first)
        over_b = [second] if type(second) is int else list(second)
    if len(over_a) != len(over_b):
        raise Unserved
    over_a = [normalize_axis_index(k, a.ndim) for k in over_a]
    over_b = [normalize_axis_index(k, b.ndim) for k in over_b]
    if len(set(over_a)) != len(over_a) or len(set(over_b)) != len(over_b):
        raise Unserved
    if any(a.shape[i] != b.shape[j] for i, j in zip(over_a, over_b, strict=True)):
        raise Unserved
    free_a = [k for k in range(a.ndim) if k not in over_a]
    free_b = [k for k in range(b.ndim) if k not in over_b]
    n = prod(tuple(a.shape[k] for k in over_a))
    shape_a = tuple(a.shape[k] for k in free_a)
    shape_b = tuple(b.shape[k] for k in free_b)
    turned = a.transpose(free_a + over_a), b.transpose(over_b + free_b)
    left, right = (x.copy() if is_distributed(x) else x for x in turned)
    left, right = left.reshape(prod(shape_a), n), right.reshape(n, prod(shape_b))
    # with no axis left NumPy gives a 0-d array
    return _dot(left, right).reshape(shape_a + shape_b)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product."""
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return np.multiply(a, b)
    n = max(a.ndim, b.ndim)
    shape_a = (1,) * (n - a.ndim) + a.shape
    shape_b = (1,) * (n - b.ndim) + b.shape
    left = expand(a.reshape(shape_a), *range(1, 2 * n, 2))
    right = expand(b.reshape(shape_b), *range(0, 2 * n, 2))
    return np.multiply(left, right).reshape(tuple(i * j for i, j in zip(shape_a, shape_b, strict=True)))


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Einstein's summation over one or two operands, written as text."""
    if out is not None or kwargs or not operands or not isinstance(operands[0], str):
        raise Unserved
    if optimize is not False and type(optimize) is not bool:
        raise Unserved
    return (_einsum if optimize else silent(_einsum))(operands[0], *operands[1:], optimize=optimize)


def _einsum(text: str, *operands: Any, optimize: bool) -> Any:
    arrays = [operand(a) for a in operands]
    if len(arrays) not in (1, 2) or any(a.dtype.kind not in "iufc" for a in arrays):
        raise Unserved
    if communicator() is not None:  # NumPy multiplies the elements one by one, too
        common = np.result_type(*(a.dtype for a in arrays))
        arrays = [a.astype(common, copy=False) for a in arrays]
    if len({a.dtype for a in arrays}) != 1 or arrays[0].dtype == np.float16:
        raise Unserved
    labels, result = parse(text, [a.ndim for a in arrays])
    sizes: dict[str, int] = {}
    for axes, a in zip(labels, arrays, strict=True):
        for label, n in zip(axes, a.shape, strict=True):
            if sizes.setdefault(label, n) != n:
                raise Unserved  # axes of length 1 may broadcast
    if len(labels) == 1 and len(sizes) < len(labels[0]) and sizes.keys() - set(result):  # a sum of a diagonal
        prefer_numpy([x for x in arrays if x._small is None], prod(sizes.values()))
    if len(labels) == 2 and labels[0] == labels[1] and len(result) < len(labels[0]):  # a sum, in one pass
        prefer_numpy([x for x in arrays if x._small is None])
    if len(labels) == 2 and communicator() is None:
        _refuse_plain_product(arrays, labels, result, sizes)
    # distributed arrays stay distributed, in any memory order
    wanted = layout(text, arrays, optimize, result) if communicator() is None else result
    if len(arrays) == 1:
        return single(arrays[0], labels[0], result, wanted)
    if optimize and not result:
        raise Unserved  # here NumPy gives a 0-d array, not a scalar
    return contract(arrays[0], labels[0], arrays[1], labels[1], result, sizes, wanted)


def _refuse_plain_product(arrays: list[Any], labels: list[str], result: str, sizes: dict[str, int]) -> None:
    """Raise `NumpyIsFaster` for a sum of products that BLAS would not speed up.  These are products of
    integers, of vectors, or of a vector with a matrix, unless other statements may share the pass over the
    matrix.  NumPy's loop takes one pass, too."""
    first, second = map(set, labels)
    if not (first & second) - set(result):
        return
    common = first & second & set(result)
    sides = [first & set(result) - common, second & set(result) - common]
    few = not all(sides) and policy.eager(prod([sizes[c] for c in result]))
    if arrays[0].dtype.char not in _BLAS or (few and max(a.size for a in arrays) < LEAST_UNCACHED):
        raise NumpyIsFaster


# ---- numpy.linalg -----------------------------------------------------------------------------------
@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of vectors, or the Frobenius norm."""
    x = operand(x)
    if x.dtype.kind not in "iufc" or x.dtype == np.float16 or type(keepdims) is not bool or not x.size:
        raise Unserved
    if x.dtype.kind in "iu":
        x = x.astype(np.float64)
    if axis is None:
        if not (ord is None or (ord == 2 and x.ndim == 1)):
            if x.ndim != 1:
                raise Unserved
        else:
            axis = tuple(range(x.ndim))
    elif type(axis) is not int or ord == "fro":
        raise Unserved
    if ord is None or ord == 2:
        # one pass by BLAS with an immediate result: recording gains nothing
        plain = eager_arrays(x) if x.dtype.char in _BLAS and type(axis) is tuple else None
        if plain is not None and plain[0].flags.forc:
            return np.linalg.norm(plain[0], axis=None, keepdims=keepdims)
        warned_as = "dot" if type(axis) is tuple else None  # one product in NumPy, or a product and a sum
        parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
        squares = [elementwise("multiply", (part, part), warned_as=warned_as) for part in parts]
        total = squares[0] if len(squares) == 1 else squares[0] + squares[1]
        return np.sqrt(reduce("add", total, axis, keepdims=keepdims, warned_as=warned_as))
    if ord == np.inf:
        return reduce_array(maximum, np.abs(x), axis, keepdims=keepdims)
    if ord == -np.inf:
        return reduce_array(minimum, np.abs(x), axis, keepdims=keepdims)
    if ord == 1:
        return reduce_array(add, np.abs(x), axis, keepdims=keepdims)
    raise Unserved


# the array API's names
_vecdot: Any = np.vecdot
implements(np.linalg.matmul)(lambda x1, x2, /: matmul(x1, x2))
implements(np.linalg.tensordot)(lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes))
implements(np.linalg.diagonal)(lambda x, /, *, offset=0: diagonal(x, offset, -2, -1))
implements(np.linalg.vecdot)(lambda x1, x2, /, *, axis=-1: _vecdot(x1, x2, axis=axis))
