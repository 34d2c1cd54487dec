"""Calls of the kernels of `dcarray.lowering.gpu.indexing` and `streams` on arrays of a device."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dcarray.api.array import evaluate, ndarray, wrap
from dcarray.core.config import current
from dcarray.core.handle import Handle, as_class
from dcarray.core.store import compiles
from dcarray.ir.ops import COUNTED, KEPT
from dcarray.lowering.gpu import indexing, streams
from dcarray.lowering.gpu.indexing import THREADS
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.kernel.nodes import Kernel
from dcarray.lowering.targets import get
from dcarray.recording.session import recording_for

from .buffer import DeviceBuffer, array_in, resident, uploaded
from .taking import record

__all__ = ["Declined", "Kernels", "compiled", "is_large", "row"]

_INT = np.dtype(np.int64)
_LEAST_PER_THREAD = 64  # elements that a thread adds up at least, where there are so many
_MOST_THREADS = 4096
_MOST_SUMS = 1 << 22  # sums of all threads, of all bins


class Declined(Exception):
    """Raised if kernels do not serve the arguments of a function, so that NumPy has to run it on the host."""


def is_large(x: Any) -> bool:
    """Whether a value is an array that may lie in a buffer of a device: by its size and dtype."""
    return isinstance(x, Handle) and x._device is not None and x._small is None and bool(x._store.char)


class Kernels:
    """The kernels of a device, as methods on arrays of the device.

    Parameters
    ----------
    cls : type
        The class of arrays on the device, which results have.

    Raises
    ------
    Declined
        If the device has no kernels (``"auto"``), or the option ``jit`` is off.
    """

    def __init__(self, cls: Any) -> None:
        self.cls, self.device = cls, cls._device
        if not self.device.target or current().jit == "off":
            raise Declined

    # ---- arguments and results ----
    def held(self, x: Any) -> Any:
        """Return the buffer that has an array's elements in C order; a plain array is copied to a new one."""
        if not isinstance(x, Handle) or x._small is not None:
            return uploaded(self.device, np.ascontiguousarray(_plain(x))).buffer
        with recording_for(self.device):
            ordinary = as_class(ndarray, x)
            store = x._store
            whole = x._index is None and store is store.family and x._shape == store.shape
            ordinary = ordinary if whole else ordinary.copy()
            evaluate(ordinary)
        buffer = resident(self.device, ordinary._store)
        if buffer is None:
            raise Declined
        return buffer.buffer

    def fresh(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return a new array on the device, with undefined elements."""
        dtype = np.dtype(dtype)
        buffer = self.device.allocate(max(math.prod(shape) * dtype.itemsize, 1))
        return array_in(self.cls, DeviceBuffer(self.device, buffer, True), shape, dtype)

    def on_device(self, a: Any) -> Any:
        """Return an array whose elements lie in a buffer of the device, even if it is small."""
        return (
            a
            if is_large(a)
            else array_in(self.cls, DeviceBuffer(self.device, self.held(a), True), a.shape, a.dtype)
        )

    def small(self, a: Any) -> Any:
        """Return a plain array as an array of the class ``cls`` on the same host memory."""
        return as_class(self.cls, wrap(np.asarray(a)))

    def _run(self, kernel: Any, buffers: tuple[Any, ...], *ints: int) -> None:
        """Launch a kernel with a thread for each element; the first integer is the number of elements."""
        if ints[0]:
            blocks = -(-ints[0] // THREADS)
            given = tuple((buffer, 0) for buffer in buffers)
            compiled(self.device.target, kernel)(self.device, (blocks,), given, (*ints, blocks))

    # ---- kernels ----
    def positions(self, mask: Any) -> Any:
        """Return the indices, counted in C order, at which a mask is true."""
        return self.expanded(np.cumsum(row(mask), dtype=_INT))

    def expanded(self, counts: Any) -> Any:
        """Return each index as often as the running count ``counts`` grows there, like ``np.repeat``."""
        indices = self.fresh((int(counts[counts.size - 1]),), _INT)
        buffers = indices._store.remote.buffer, self.held(counts)
        self._run(indexing.selection(None), buffers, indices.size, counts.size)
        return indices

    def taken(self, x: Any, at: Any, axis: int, kind: str = COUNTED) -> Any:
        """Record and return ``np.take(x, at, axis)``; ``at`` must be in bounds (``kind``: see `record`)."""
        shape = (*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])
        if not math.prod(shape):
            return self.fresh(shape, x.dtype)
        return record(self.cls, x, [at], shape, KEPT * axis + kind + KEPT * (x.ndim - axis - 1))

    def put(self, x: Any, at: Any, values: Any, axis: int) -> None:
        """Write ``values``, or a single value, to ``x`` at the indices ``at`` of an axis.  Indices must be in
        bounds, and different unless there is a single value."""
        inner, count = math.prod(x.shape[axis + 1 :]), at.size
        size = math.prod(x.shape[:axis]) * count * inner
        written = x.copy()  # what is pending may read `x`
        buffers = self.held(written), self.held(values), self.held(at)
        kernel = indexing.scatter(x.dtype, at.dtype)
        self._run(kernel, buffers, size, inner, count, x.shape[axis], int(values.size > 1))
        x[...] = written

    def searched(self, table: Any, values: Any, right: bool) -> Any:
        """Return ``np.searchsorted(table, values)``, with ``side="right"`` if ``right``."""
        common = np.result_type(table.dtype, values.dtype)
        _ordered(common)
        places = self.fresh(values.shape, _INT)
        kernel = indexing.search(table.dtype, values.dtype, common, right)
        buffers = places._store.remote.buffer, self.held(table), self.held(values)
        self._run(kernel, buffers, values.size, table.size)
        return places

    def sorted(self, x: Any) -> tuple[Any, Any]:
        """Return the elements of a vector in order, NaN last, and the index at which each of them was; equal
        elements stay in their order."""
        _ordered(x.dtype)
        size = x.size
        sets = [tuple(self.fresh((size,), kind) for kind in (x.dtype, _INT)) for _ in range(2)]
        old, new = ([one._store.remote.buffer for one in pair] for pair in sets)
        self._run(indexing.ranks(x.dtype), (*new, self.held(x)), size)
        width, swapped = indexing.RUN, False
        while width < size:
            old, new, swapped = new, old, not swapped
            self._run(indexing.merge(x.dtype), (*new, *old), size, width)
            width *= 2
        keys, places = sets[0] if swapped else sets[1]
        return keys, places

    def counted(self, values: Any, bins: int, edges: Any = None, weights: Any = None) -> Any:
        """Return how many values lie in each bin (``edges`` as in `numpy.histogram`; without, a value is the
        number of its bin), or the sums of their weights.

        Each thread has sums of its own, which are added up afterwards.  The number of threads only depends on
        the sizes, so results do not depend on the order of threads.  For many bins, `grouped` is used.
        """
        size = values.size
        threads = min(max(1 << (size // _LEAST_PER_THREAD).bit_length(), THREADS), _MOST_THREADS)
        while bins * threads > _MOST_SUMS:
            threads //= 2
        if threads < min(_LEAST_PER_THREAD, size):
            if edges is not None:
                raise Declined
            total = self.fresh((bins,), _INT if weights is None else np.float64)
            total[...] = 0
            return self.grouped(total, values, weights)
        sums = self.fresh((bins, threads), _INT if weights is None else np.float64)
        sums[...] = 0
        others = [x for x in (edges, weights) if x is not None]
        buffers = self.held(sums), self.held(values), *map(self.held, others)
        kinds = [None if x is None else x.dtype for x in (edges, weights)]
        self._run(indexing.binned(values.dtype, *kinds), buffers, threads, size, bins)
        return sums.sum(axis=1)

    def slid(self, x: Any, weights: Any, before: int, size: int) -> Any:
        """Return ``size`` sums of products of a vector with shorter ``weights`` that slide along it;
        ``before`` is how many terms of the first sum lie before the vector."""
        sums = self.fresh((size,), x.dtype)
        buffers = sums._store.remote.buffer, self.held(x), self.held(weights)
        self._run(indexing.sliding(x.dtype), buffers, size, x.size, weights.size, before)
        return sums

    def streamed(self, state: Any, jumps: Any, count: int, digits: int) -> Any:
        """Return ``count`` 64-bit numbers of NumPy's generator; see
        `dcarray.lowering.gpu.streams.numbers`."""
        words = self.fresh((count,), np.uint64)
        buffers = words._store.remote.buffer, self.held(state), self.held(jumps)
        self._run(streams.numbers(), buffers, count, digits)
        return words

    def grouped(self, total: Any, values: Any, weights: Any = None) -> Any:
        """Return a copy of ``total`` in which, for each of ``values``, the element with this index has grown
        by 1, or by the value's weight; in the order of values, as in NumPy."""
        keys, places = self.sorted(values)
        totals = total.copy()
        buffers = [self.held(totals), self.held(keys), self.held(places)]
        if weights is not None:
            buffers.append(self.held(weights))
        kernel = indexing.grouped(total.dtype, keys.dtype, None if weights is None else weights.dtype)
        self._run(kernel, tuple(buffers), total.size, values.size)
        return totals


def row(x: Any) -> Any:
    """Return ``x.reshape(-1)``; if that needs a copy, the copy is made on the device."""
    return (x.copy() if isinstance(x, Handle) and x._small is None and x._index is not None else x).reshape(
        -1
    )


def _plain(x: Any) -> Any:
    return x._evaluated() if isinstance(x, Handle) else x


def _ordered(dtype: np.dtype[Any]) -> None:
    """Raise `Declined` for a dtype that kernels do not compare as NumPy's sorting does."""
    if dtype.kind not in "biuf" or dtype.char == "e" or not compiles(dtype):
        raise Declined


@lru_cache(256)
def compiled(target: str, kernel: Kernel) -> DeviceKernel:
    """Return a kernel as text in the dialect of the target with a name.

    Raises
    ------
    Unsupported
        If the target cannot print the kernel.
    ValueError
        If no built-in target has this name.
    """
    compiler = get(target).compiler
    loaded = compiler.load(kernel, compiler.compile(compiler.emit(kernel)))
    assert isinstance(loaded, DeviceKernel)
    return loaded
