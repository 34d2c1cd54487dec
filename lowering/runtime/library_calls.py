"""The steps of a plan that are no kernel launches: library calls, and statements that the interpreter runs.

They are made of plain values, and this module imports nothing that makes plans, to save the running program's
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from .blas_layout import blas_layout
from .driver_scope import import_object
from .stopping import look

if TYPE_CHECKING:
    from dcarray.ir.interp import Interpreter
    from dcarray.ir.nodes import Region
    from dcarray.lowering.kernel.compiler import LoadedKernel

__all__ = ["IMPLEMENTATIONS", "CallStep", "Interpreted", "View"]

NDArray = np.ndarray[Any, Any]
Number = int | str


def _fits_blas(array: NDArray) -> bool:
    """Whether the last two axes of an array are a matrix in a layout that BLAS supports."""
    if array.ndim < 2:
        return array.ndim == 0 or array.strides[0] % array.itemsize == 0
    return blas_layout(array) is not None


def _matmul(
    multiply: Callable[..., int | None],
    writes: Sequence[NDArray],
    reads: Sequence[NDArray],
    attrs: dict[str, Any],
    own: tuple[LoadedKernel, int] | None = None,
) -> int:
    (out,), (a, b) = writes, reads
    plain = out.flags.c_contiguous and a.flags.c_contiguous and b.flags.c_contiguous
    one = a.ndim > 2 and b.ndim > 1 and set(b.shape[:-2]) <= {1} and a.shape[:-1] == out.shape[:-1]
    if plain and one and out.dtype.char in BLAS:
        # a stack of matrices with one matrix: the rows of all are those of one product
        out, a, b = (x.reshape(-1, x.shape[-1]) for x in (out, a, b))
    if not plain and out.dtype.kind in "fc" and out.itemsize > 2:
        # NumPy's loop for odd strides does not use BLAS: one copy is much cheaper than it.
        a, b = (x if _fits_blas(x) else np.ascontiguousarray(x) for x in (a, b))
        if out.ndim >= 2 and a.ndim >= 2 and b.ndim >= 2:
            transposed = out.swapaxes(-1, -2)
            if transposed.strides[-1] == out.itemsize and out.strides[-1] != out.itemsize:
                out, a, b = transposed, b.swapaxes(-1, -2), a.swapaxes(-1, -2)
    if own is not None and out.ndim == a.ndim == b.ndim == 2:
        raised = multiply(out, a, b, *own)
        if raised is not None:
            return raised
    if np.may_share_memory(out, a):
        product = np.empty(out.shape, out.dtype)
        np.matmul(a, b, out=product)
        out[...] = product
    else:
        np.matmul(a, b, out=out)
    return 0


BLAS = "fdFD"
"""The dtypes that it knows."""


def _by_tiles(*arguments: Any) -> int | None:
    from . import matmul_tiles  # loaded when the first product needs it

    return matmul_tiles.multiply(*arguments)


def _skinny(*arguments: Any) -> int | None:
    from . import skinny_products

    return skinny_products.multiply(*arguments)


def _copy(
    writes: Sequence[NDArray], reads: Sequence[NDArray], attrs: dict[str, Any], own: None = None
) -> int:
    writes[0][...] = reads[0]
    return 0


IMPLEMENTATIONS: dict[str, dict[str, Callable[..., int]]] = {
    "copy": {"numpy": _copy},
    "blas.matmul": {"numpy": partial(_matmul, _by_tiles), "skinny": partial(_matmul, _skinny)},
}
"""For each operation who can do it, by name: ``run(writes, reads, attrs, own)`` on array views gives the
floating-point flags that NumPy does not tell of.  ``own`` is the library's own code, and how many threads
there are."""


class View:
    """A window as a function from an ndarray to its view; the NumPy index for the last values of symbols is
    kept.

    ``shape`` is the domain's; ``index`` has offset, stride and axis for each axis of the array. Both may
    contain texts, which are expressions of symbols and loop variables.
    """

    def __init__(
        self, shape: tuple[Number, ...], index: tuple[tuple[Number, Number, int | None], ...]
    ) -> None:
        self.shape, self.index = shape, index
        every = [n for offset, stride, _ in index for n in (offset, stride)] + list(shape)
        texts = {n for n in every if type(n) is not int}
        self._names = tuple(
            {name: None for n in texts for name in _code(str(n)).co_names if name not in _FUNCTIONS}
        )
        self._last: tuple[tuple[int, ...], tuple[Any, ...]] | None = None

    def __call__(self, array: NDArray, values: dict[str, int]) -> NDArray:
        """Return this window of ``array`` as a view with one axis for each axis of the statement's domain.
        ``values`` are those of the symbols and loop variables, by name."""
        at, last = tuple([values[name] for name in self._names]), self._last
        if last is None or last[0] != at:
            last = self._last = at, self._prepare(values)
        key, order, expand, shape = last[1]
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


_FUNCTIONS = {"min": min, "max": max}


def _value(number: Number, values: dict[str, int]) -> int:
    # Only identifiers, integers and operators that ``dims.show`` wrote reach eval.
    return number if type(number) is int else int(eval(_code(str(number)), dict(_FUNCTIONS), values))


@lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    return compile(text, "<dcarray number>", "eval")


class _Flags:
    """A collector of NumPy's floating-point flags, with the same numbers as flags of kernels."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = 0

    def __call__(self, _: str, flag: int) -> None:
        self.raised |= flag


class CallStep:
    """The step that runs a library call.

    ``parts`` has plain values from which another process can make the step: the operation, the number of
    arrays that it writes, and the shape and index of each `View`.  ``launch`` is the loaded `Routine` of the
    library, if it has one.
    """

    def __init__(
        self,
        op: str,
        library: str,
        attrs: tuple[tuple[str, Any], ...],
        writes: int,
        views: tuple[Any, ...],
        launch: LoadedKernel | None = None,
    ) -> None:
        self.op, self.library = op, library
        self.parts = (op, library, attrs, writes, views)
        self._run = import_object(library) if ":" in library else IMPLEMENTATIONS[op][library]
        self._attrs, self._writes, self.launch = dict(attrs), writes, launch
        self.views = [View(*parts) for parts in views]

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run the call on the arrays, the written ones first; return the floating-point flags."""
        look()
        views = [view(array, values) for view, array in zip(self.views, arrays, strict=True)]
        flags, launch = _Flags(), self.launch
        own = None if launch is None else (launch, threads)
        with np.errstate(all="call", call=flags):
            raised = self._run(views[: self._writes], views[self._writes :], self._attrs, own)
        return flags.raised | raised


class Interpreted:
    """The step in which the interpreter runs one statement, given as a region or the text of one."""

    def __init__(self, region: Region | str) -> None:
        self._region = region
        self._idle: list[Interpreter] = []  # each serves one thread at a time

    @property
    def text(self) -> str:
        """Return the region as text."""
        from dcarray.ir.text import dump

        return self._region if isinstance(self._region, str) else dump(self._region)

    def __call__(self, arrays: Sequence[NDArray], values: dict[str, int], threads: int = 1) -> int:
        """Run the statement on the region's arrays; return the floating-point flags."""
        if isinstance(self._region, str):
            from dcarray.ir.parse import parse

            self._region = parse(self._region)
        try:
            runner = self._idle.pop()
        except IndexError:
            from dcarray.ir.interp import Interpreter

            runner = Interpreter(self._region)
        flags = _Flags()
        given = {array.name: a for array, a in zip(self._region.arrays, arrays, strict=True)}
        with np.errstate(all="call", call=flags):
            runner.run(given, values)
        self._idle.append(runner)
        return flags.raised
