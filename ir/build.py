"""Builds a region from a recorded log.

The log is the recorder's compact form: a tuple of plain tuples, which is hashed on every flush, while
this module runs only when no plan is known.  Its entries, where a *slot* is the number of a declaration
(``old`` or ``new``) in the order of the log:

``("old", char, shape, strides, head)``
    Memory that exists; ``head`` is the slot of the first array on the same memory.
``("new", char, shape, head)``
    An array to be computed; ``head`` is its own slot, or that of the array it is a reshape of.
``("map", op, loop, shape, out, index, *args)``
    An element-wise operation over the domain ``shape`` into the window ``index`` of slot ``out``.
    ``loop`` is written as in ``ufunc.types``: ``"dd->d"``.
``("fold", op, loop, shape, axes, keepdims, out, arg)``
    A reduction of ``arg`` over ``axes`` of the domain ``shape`` into all of slot ``out``; with an ``op`` of
    ``ops.PLACES`` over one axis, or over all of them, counted in C order; with one of ``ops.SCANS`` the
    result has the shape of the domain.
``("call", op, (out, ...), (arg, ...), attrs)``
    A library call that fills all of its outputs.

An argument is the number of a scalar, or ``(slot, index, shape)``, where ``index`` None is all of the
array and ``shape`` None is the domain (a call has none); shapes broadcast to the domain as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from .dim_arithmetic import is_number
from .nodes import Apply, Array, Call, Compute, Dim, Expr, Index, Iota, Load, Region, Size, Stmt, Window
from .ops import OPS, PLACES, SCANS, const

Entry = tuple[Any, ...]
SCALAR = "c"  # the names of scalars begin with it, and a number follows


def is_scalar_argument(array: Array) -> bool:
    """Whether an array of a region stands for a scalar of the log, which a run can be given as a value."""
    return array.role == "in" and not array.shape and array.name[0] == SCALAR and array.name[1:].isdigit()


@lru_cache(maxsize=64)
def dtype_of(char: str) -> np.dtype[Any]:
    """Return the dtype of a character, cached."""
    return np.dtype(char)


def build(log: Sequence[Entry], live: Collection[int], scalars: Sequence[str]) -> Region:
    """Return the region of a log.

    A statement's ``loc`` is the number of its entry, not counting declarations. ``live`` are the ``new``
    slots that are live after the region; the others are temporaries. ``scalars`` has the dtype character of
    each scalar. Arrays are named ``a<slot>`` and, for the scalars, ``c<number>``, in this order.
    """
    return _Builder(log, live, scalars).region()


class _Builder:
    def __init__(self, log: Sequence[Entry], live: Collection[int], scalars: Sequence[str]) -> None:
        self.log = log
        self.live = live
        self.arrays: list[Array] = []
        self.heads: list[int] = []
        self.scalars = [Array(f"{SCALAR}{k}", dtype_of(char), (), "in") for k, char in enumerate(scalars)]
        self.temps: list[Array] = []
        self.body: list[Stmt] = []

    def region(self) -> Region:
        position = 0
        for entry in self.log:
            getattr(self, "_" + entry[0])(position, *entry[1:])
            position += entry[0] not in ("old", "new")
        return Region((), (*self.arrays, *self.scalars, *self.temps), tuple(self.body))

    # ---- declarations ------------------------------------------------------------------------------
    def _declare(
        self, char: str, shape: tuple[Dim, ...], head: int, role: Any, strides: tuple[Dim, ...] | None
    ) -> None:
        slot = len(self.arrays)
        base = None if head == slot else f"a{head}"
        self.arrays.append(Array(f"a{slot}", dtype_of(char), shape, role, strides, base=base))
        self.heads.append(head)

    def _old(
        self, _: int, char: str, shape: tuple[Dim, ...], strides: tuple[Dim, ...] | None, head: int
    ) -> None:
        self._declare(char, shape, head, "in", strides)

    def _new(self, _: int, char: str, shape: tuple[Dim, ...], head: int) -> None:
        self._declare(char, shape, head, "out" if head in self.live else "temp", None)

    # ---- arguments ---------------------------------------------------------------------------------
    def _read(self, arg: Any, domain: tuple[Dim, ...]) -> Expr:
        if type(arg) is int:
            array = self.scalars[arg]
            return Load(Window(array.name, domain, ()), array.dtype)
        slot, index, shape = arg
        return Load(self._window(slot, index, shape, domain), self.arrays[slot].dtype)

    def _window(self, slot: int, index: Any, shape: Any, domain: tuple[Dim, ...]) -> Window:
        array = self.arrays[slot]
        own = domain if shape is None else shape
        shift = len(domain) - len(own)

        def place(axis: int | None) -> int | None:
            if axis is None or (is_number(own[axis], 1) and not is_number(domain[axis + shift], 1)):
                return None
            return axis + shift

        triples = [(0, 1, k) for k in range(len(array.shape))] if index is None else index
        parts = []
        for offset, stride, axis in triples:
            new = place(axis)
            parts.append(Index(offset, 0 if new is None else stride, new))
        return Window(array.name, domain, tuple(parts))

    def _mark_written(self, slot: int) -> None:
        head = self.heads[slot]
        for k, other in enumerate(self.heads):
            if other == head and self.arrays[k].role == "in":
                self.arrays[k] = replace(self.arrays[k], role="inout")

    # ---- statements --------------------------------------------------------------------------------
    def _map(self, position: int, op: str, loop: str, domain: Any, out: int, index: Any, *args: Any) -> None:
        kinds, result = loop.split("->")
        target = self._window(out, index, None, domain)
        reads = [self._read(arg, domain) for arg in args]
        body = apply_op(op, kinds, result, reads)
        if self.arrays[out].dtype != body.dtype:
            body = Apply("cast", (body,), self.arrays[out].dtype)
        self._mark_written(out)
        if self._overlaps(out, target, args, reads):
            target_array = self.arrays[out]
            temp = Array(f"t{len(self.temps)}", target_array.dtype, domain)
            self.temps.append(temp)
            whole = Window(temp.name, domain, tuple(Index(0, 1, k) for k in range(len(domain))))
            self.body.append(Compute(whole, body, loc=position))
            body = Load(whole, temp.dtype)
        self.body.append(Compute(target, body, loc=position))

    def _overlaps(self, out: int, target: Window, args: tuple[Any, ...], reads: list[Expr]) -> bool:
        """Whether an element may be written before another point of the domain reads it."""
        for arg, read in zip(args, reads, strict=True):
            if type(arg) is int or self.heads[arg[0]] != self.heads[out]:
                continue
            if not (isinstance(read, Load) and read.window == target):
                return True
        return False

    def _fold(
        self, position: int, op: str, loop: str, domain: Any, axes: Any, keepdims: bool, out: int, arg: Any
    ) -> None:
        kinds, result = loop.split("->")
        body = cast(self._read(arg, domain), kinds[0])
        if op in SCANS:
            self._scan(position, SCANS[op], domain, axes[0], out, body)
            return
        parts: list[Index] = []
        for axis in range(len(domain)):
            if axis not in axes:
                parts.append(Index(0, 1, axis))
            elif keepdims:
                parts.append(Index(0, 0, None))
        target = Window(f"a{out}", domain, tuple(parts))
        if op in PLACES:
            body = self._place(position, op, domain, axes, body)
            op = "minimum"
        dtype = dtype_of(result)
        self.body.append(Compute(target, body, op, const(_start(op, dtype), dtype), loc=position))

    def _scan(self, position: int, op: str, domain: Any, axis: int, out: int, body: Expr) -> None:
        target = Window(f"a{out}", domain, tuple(Index(0, 1, k) for k in range(len(domain))))
        dtype = body.dtype
        start = -0.0 if op == "add" and dtype.kind == "f" else _start(op, dtype)  # 0.0 would change -0.0
        self.body.append(Compute(target, body, op, const(start, dtype), loc=position, scan=axis))

    def _place(self, position: int, op: str, domain: Any, axes: Any, body: Expr) -> Expr:
        """Return the coordinate of the extremum over ``axes``; at other points the identity of a minimum."""
        dtype, fold = body.dtype, PLACES[op]
        kept = tuple(axis for axis in range(len(domain)) if axis not in axes)
        best = Array(f"t{len(self.temps)}", dtype, tuple(domain[axis] for axis in kept))
        self.temps.append(best)
        window = Window(best.name, domain, tuple(Index(0, 1, axis) for axis in kept))
        start = const(extreme(fold, dtype), dtype)
        self.body.append(Compute(window, body, fold, start, loc=position))
        found: Expr = Apply("equal", (body, Load(window, dtype)), dtype_of("?"))
        if dtype.kind == "f":  # then it is NaN wherever there is one
            found = Apply("logical_or", (found, Apply("isnan", (body,), dtype_of("?"))), dtype_of("?"))
        place = dtype_of("l")
        at: Expr = Iota(axes[0], place)
        for axis in axes[1:]:
            row = Apply("multiply", (at, Size(domain[axis], place)), place)
            at = Apply("add", (row, Iota(axis, place)), place)
        return Apply("where", (found, at, const(extreme("minimum", place), place)), place)

    def _call(self, position: int, op: str, outs: Any, args: Any, attrs: Any) -> None:
        reads = tuple(self._window(slot, index, shape, shape) for slot, index, shape in args)
        writes = tuple(self._window(out, None, None, self.arrays[out].shape) for out in outs)
        self.body.append(Call(op, reads, writes, attrs, loc=position))


def _start(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the initial value of a reduction over the dtype."""
    identity = OPS[op].identity
    return extreme(op, dtype) if identity is None else np.asarray(identity).astype(dtype)


def extreme(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity of a maximum or minimum over a non-empty axis: the least or greatest value."""
    low = op in ("maximum", "fmax")
    if dtype.kind == "f":
        if op in ("fmax", "fmin"):
            return np.nan
        return -np.inf if low else np.inf
    if dtype.kind == "b":
        return not low
    info = np.iinfo(dtype)
    return info.min if low else info.max


def cast(x: Expr, char: str) -> Expr:
    """Return an expression converted to a dtype."""
    dtype = dtype_of(char)
    return x if x.dtype == dtype else Apply("cast", (x,), dtype)


def apply_op(op: str, kinds: str, result: str, reads: Sequence[Expr]) -> Expr:
    """Return an operation on expressions, converted to the argument dtypes ``kinds`` of its loop."""
    args = tuple(cast(x, char) for x, char in zip(reads, kinds, strict=True))
    if op == "cast":
        return cast(args[0], result)
    return Apply(op, args, dtype_of(result))
