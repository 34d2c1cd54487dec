"""Which library serves a library call, and what a call is without any.

``LIBRARIES`` lists for each operation who can do it, best first; ``expand`` says the same in plain
statements, for when there is nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import dims, products
from ..ir.guess import Guess
from ..ir.nodes import Array, Call, Compute, Dim, Region, Window
from . import openblas, tiles
from .memory import empty

if TYPE_CHECKING:
    from .llvm.routine import Routine
    from .target import Launch

NDArray = np.ndarray[Any, Any]
Number = int | str


@dataclass(frozen=True, slots=True)
class Library:
    """Somebody who can do an operation: ``run(writes, reads, attrs, own)`` on array views, when
    ``serves(dtypes of writes and reads)``; it gives floating-point flags that NumPy does not tell of.

    ``routine(call, region)`` is code of its own for a call that may be worth it: ``run`` is given that, and
    how many threads there are, as ``own``.
    """

    name: str
    serves: Callable[[Sequence[np.dtype[Any]]], bool]
    run: Callable[[Sequence[NDArray], Sequence[NDArray], dict[str, Any], Own | None], int]
    routine: Callable[[Call, Region], Routine | None] | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """A library's own code, and the threads for it."""

    launch: Launch
    threads: int


def _fits_blas(array: NDArray) -> bool:
    """Whether the last two axes are a matrix as BLAS takes it, by rows or by columns."""
    if array.ndim < 2:
        return array.ndim == 0 or array.strides[0] % array.itemsize == 0
    return tiles.lies(array) is not None


def _matmul(
    writes: Sequence[NDArray], reads: Sequence[NDArray], attrs: dict[str, Any], own: Own | None = None
) -> int:
    (out,), (a, b) = writes, reads
    plain = out.flags.c_contiguous and a.flags.c_contiguous and b.flags.c_contiguous
    one = a.ndim > 2 and b.ndim > 1 and set(b.shape[:-2]) <= {1} and a.shape[:-1] == out.shape[:-1]
    if plain and one and out.dtype.char in _BLAS:
        # a stack of matrices with one matrix: the rows of all are those of one product
        out, a, b = (x.reshape(-1, x.shape[-1]) for x in (out, a, b))
    if not plain and out.dtype.kind in "fc" and out.itemsize > 2:
        # NumPy's loop for odd strides does not use BLAS: one copy is much cheaper than it.
        a, b = (x if _fits_blas(x) else np.ascontiguousarray(x) for x in (a, b))
        if out.ndim >= 2 and a.ndim >= 2 and b.ndim >= 2:
            turned = out.swapaxes(-1, -2)
            if turned.strides[-1] == out.itemsize and out.strides[-1] != out.itemsize:
                out, a, b = turned, b.swapaxes(-1, -2), a.swapaxes(-1, -2)
    if own is not None and out.ndim == a.ndim == b.ndim == 2:
        raised = tiles.multiply(out, a, b, own.launch, own.threads)
        if raised is not None:
            return raised
    if np.may_share_memory(out, a):
        made = empty(out.shape, out.dtype)
        np.matmul(a, b, out=made)
        out[...] = made
    else:
        np.matmul(a, b, out=out)
    return 0


def _tiled(call: Call, region: Region) -> Routine | None:
    """The code that makes a product in tiles, if it is large enough for that."""
    a, b = call.reads
    guess = Guess(region)
    if min(len(a.shape), len(b.shape)) < 2 or not openblas.usable():
        return None
    if guess.product((*a.shape, b.shape[-1])) < tiles.LEAST:
        return None
    from .llvm.gemm import gemm

    (dtype,) = {array.dtype for array in region.arrays if array.name == a.array}
    return gemm(dtype.char)


_BLAS = "fdFD"


def _all_alike(dtypes: Sequence[np.dtype[Any]]) -> bool:
    return all(dtype == dtypes[0] and dtype.char in _BLAS for dtype in dtypes)


LIBRARIES: dict[str, list[Library]] = {"blas.matmul": [Library("numpy", _all_alike, _matmul, _tiled)]}
"""Who does what, best first."""


def find(call: Call, arrays: dict[str, Array]) -> Library | None:
    """The first library that serves a call."""
    dtypes = [arrays[window.array].dtype for window in (*call.writes, *call.reads)]
    return next((one for one in LIBRARIES.get(call.op, ()) if one.serves(dtypes)), None)


def expand(call: Call, region: Region) -> Compute | None:
    """A call as a statement, if it can be one: it must not write what it reads."""
    if call.op != "blas.matmul" or call.attrs:
        return None
    from .access import Memory

    memory = Memory(region)
    (out,), (a, b) = call.writes, call.reads
    dtypes = {memory.arrays[window.array].dtype for window in (out, a, b)}
    if len(dtypes) > 1 or not all(memory.disjoint(out, window) for window in (a, b)):
        return None
    (dtype,) = dtypes
    return None if dtype == np.float16 else products.as_sum(call, dtype)  # NumPy adds up halves in single


class View:
    """A window as a view of its array: worked out once where it can be.

    Parameters
    ----------
    shape : tuple of int or str
        The shape of the domain; a text is an expression of the values of symbols and loop variables.
    index : tuple of (int or str, int or str, int or None)
        Offset, stride and axis for each axis of the array.
    """

    def __init__(
        self, shape: tuple[Number, ...], index: tuple[tuple[Number, Number, int | None], ...]
    ) -> None:
        self.shape, self.index = shape, index
        every = [n for offset, stride, _ in index for n in (offset, stride)] + list(shape)
        self._ready = self._prepare({}) if all(type(n) is int for n in every) else None

    @classmethod
    def of(cls, window: Window) -> View:
        """The view of a window."""
        index = [(_number(ix.offset), _number(ix.stride), ix.axis) for ix in window.index]
        return cls(tuple(map(_number, window.shape)), tuple(index))

    def __call__(self, array: NDArray, values: dict[str, int]) -> NDArray:
        """The view, with one axis for every axis of the domain."""
        key, order, expand, shape = self._ready or self._prepare(values)
        view: NDArray = array[key]
        if len(order or ()) > len(set(order or ())):  # a diagonal: the strides along one axis add up
            strides = [0] * len(shape)
            for axis, step in zip(order, view.strides, strict=True):
                strides[axis] += step
            return np.lib.stride_tricks.as_strided(view, shape, strides)
        if order is not None:
            view = view.transpose(order)
        if expand is not None:
            view = view[expand]
            if view.shape != shape:
                view = np.broadcast_to(view, shape)
        return view

    def _prepare(self, values: dict[str, int]) -> tuple[Any, ...]:
        shape = tuple(_value(n, values) for n in self.shape)
        key: list[Any] = []
        axes: list[int] = []
        for offset, step, axis in self.index:
            start, stride = _value(offset, values), _value(step, values)
            if axis is None or stride == 0:
                key.append(start)
                continue
            stop = start + stride * shape[axis]
            key.append(slice(start, None if stop < 0 else stop, stride) if shape[axis] else slice(0, 0))
            axes.append(axis)
        if len(set(axes)) < len(axes):
            return (*key, ...), tuple(axes), None, shape
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        full = len(axes) == len(shape)
        expand = None if full else tuple(slice(None) if k in axes else None for k in range(len(shape)))
        return (*key, ...), None if order == tuple(range(len(axes))) else order, expand, shape


def _number(dim: Dim) -> Number:
    return dim if type(dim) is int else dims.show(dim)


def _value(number: Number, values: dict[str, int]) -> int:
    # Only identifiers, integers and operators that ``dims.show`` wrote reach eval.
    return number if type(number) is int else int(eval(_code(str(number)), {"min": min, "max": max}, values))


@lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    return compile(text, "<dcarray number>", "eval")
