"""Builds a region from a recorded log.

The log is the recorder's compact form of a program; `log_entries` describes it.  This module runs only when
no plan is known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from .dim_arithmetic import is_number
from .log_entries import Declaration, Entry, Statement, read
from .nodes import (
    Apply,
    Array,
    Call,
    Compute,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Region,
    Size,
    Stmt,
    Window,
)
from .ops import ALONG, FROM_END, KEPT, OPS, PLACES, SCANS, const

SCALAR = "c"  # the names of scalars begin with it, and a number follows


def is_scalar_argument(array: Array) -> bool:
    """Return whether an array of a region stands for a scalar of the log, which can be passed as a number."""
    return array.role == "in" and not array.shape and array.name[0] == SCALAR and array.name[1:].isdigit()


@lru_cache(maxsize=64)
def dtype_of(char: str) -> np.dtype[Any]:
    """Return the dtype with the type character ``char``, cached."""
    return np.dtype(char)


def build(log: Sequence[Entry], live: Collection[int], scalars: Sequence[str]) -> Region:
    """Return the region of a log.

    A statement's ``loc`` is the number of its entry, not counting declarations. ``live`` has the ``new``
    slots whose arrays are used after the region; the other new ones are temporaries. ``scalars`` has the
    dtype character of each scalar. The array of a slot is named ``a<slot>``, that of a scalar ``c<number>``.
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
        make = {"map": self._map, "fold": self._fold, "call": self._call}
        position = 0
        for entry in map(read, self.log):
            if isinstance(entry, Declaration):
                self._declare(entry)
            else:
                make[entry.kind](position, entry)
                position += 1
        return Region((), (*self.arrays, *self.scalars, *self.temps), tuple(self.body))

    def _declare(self, entry: Declaration) -> None:
        slot = len(self.arrays)
        base = None if entry.head == slot else f"a{entry.head}"
        role: Any = "in" if not entry.is_new else "out" if entry.head in self.live else "temp"
        self.arrays.append(
            Array(f"a{slot}", dtype_of(entry.char), entry.shape, role, entry.strides, base=base)
        )
        self.heads.append(entry.head)

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
    def _map(self, position: int, entry: Statement) -> None:
        kinds, result = entry.loop.split("->")
        out, domain, args = entry.out, entry.shape, entry.args
        target = self._window(out, entry.index, None, domain)
        reads = [self._read(arg, domain) for arg in args]
        body = apply_op(entry.op, kinds, result, reads)
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
        """Return whether a statement with the target ``target`` may write an element that another point of
        its domain still has to read; ``reads`` has the values of ``args``."""
        for arg, value in zip(args, reads, strict=True):
            if type(arg) is int or self.heads[arg[0]] != self.heads[out]:
                continue
            if not (isinstance(value, Load) and value.window == target):
                return True
        return False

    def _fold(self, position: int, entry: Statement) -> None:
        kinds, result = entry.loop.split("->")
        op, domain, axes, out = entry.op, entry.shape, entry.axes, entry.out
        body = cast(self._read(entry.args[0], domain), kinds[0])
        if op in SCANS:
            self._scan(position, SCANS[op], domain, axes[0], out, body)
            return
        parts: list[Index] = []
        for axis in range(len(domain)):
            if axis not in axes:
                parts.append(Index(0, 1, axis))
            elif entry.keepdims:
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
        """Return the operand of a minimum over ``axes`` that gives an argmin or argmax: the coordinate where
        ``body`` is the extremum, elsewhere the identity of the minimum."""
        dtype, fold = body.dtype, PLACES[op]
        kept = tuple(axis for axis in range(len(domain)) if axis not in axes)
        best = Array(f"t{len(self.temps)}", dtype, tuple(domain[axis] for axis in kept))
        self.temps.append(best)
        window = Window(best.name, domain, tuple(Index(0, 1, axis) for axis in kept))
        start = const(extreme(fold, dtype), dtype)
        self.body.append(Compute(window, body, fold, start, loc=position))
        is_best: Expr = Apply("equal", (body, Load(window, dtype)), dtype_of("?"))
        if dtype.kind == "f":  # then it is NaN wherever there is one
            is_best = Apply("logical_or", (is_best, Apply("isnan", (body,), dtype_of("?"))), dtype_of("?"))
        place = dtype_of("l")
        at: Expr = Iota(axes[0], place)
        for axis in axes[1:]:
            row = Apply("multiply", (at, Size(domain[axis], place)), place)
            at = Apply("add", (row, Iota(axis, place)), place)
        return Apply("where", (is_best, at, const(extreme("minimum", place), place)), place)

    def _call(self, position: int, entry: Statement) -> None:
        if entry.op == "take":
            self._take(position, entry)
            return
        reads = tuple(self._window(slot, index, shape, shape) for slot, index, shape in entry.args)
        writes = tuple(self._window(out, None, None, self.arrays[out].shape) for out in entry.outs)
        self.body.append(Call(entry.op, reads, writes, entry.attrs, loc=position))

    def _take(self, position: int, entry: Statement) -> None:
        """Add the statement ``out = x[key]`` with index arrays, whose axes replace the indexed axes of
        ``x``."""
        (slot, index, shape), *args = entry.args
        kinds, place = dict(entry.attrs)["key"], dtype_of("l")
        given = self._window(slot, index, shape, shape)
        target = self._window(entry.out, None, None, self.arrays[entry.out].shape)
        first = len(kinds) - len(kinds.lstrip(KEPT))
        after = len(kinds.rstrip(KEPT))
        stop = len(target.shape) - (len(kinds) - after)
        axes: list[Expr] = [Iota(axis, place) for axis in range(first)]
        places = iter(args)
        for kind, length in zip(kinds[first:after], shape[first:after], strict=True):
            if kind == ALONG:
                axes.append(Iota(len(axes), place))
                continue
            read = self._read(next(places), target.shape[:stop])
            assert isinstance(read, Load)
            at = cast(Load(replace(read.window, shape=target.shape), read.dtype), place.char)
            if kind == FROM_END:
                below = Apply("less", (at, const(0, place)), dtype_of("?"))
                at = Apply("where", (below, Apply("add", (at, Size(length, place)), place), at), place)
            axes.append(at)
        axes += [Iota(axis, place) for axis in range(stop, len(target.shape))]
        where = tuple([_position(part, axes, place) for part in given.index])
        body = Gather(Window(given.array, target.shape, ()), where, self.arrays[slot].dtype)
        self.body.append(Compute(target, body, loc=position))


def _position(part: Index, axes: Sequence[Expr], dtype: np.dtype[Any]) -> Expr:
    """Return the array coordinate ``offset + stride * axes[axis]`` of an index, as an expression of
    ``dtype``."""
    offset = Size(part.offset, dtype)
    if part.axis is None:
        return offset
    at = axes[part.axis]
    if not is_number(part.stride, 1):
        at = Apply("multiply", (at, Size(part.stride, dtype)), dtype)
    return at if is_number(part.offset, 0) else Apply("add", (at, offset), dtype)


def _start(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the initial value of a reduction over the dtype."""
    identity = OPS[op].identity
    return extreme(op, dtype) if identity is None else np.asarray(identity).astype(dtype)


def extreme(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity of the maximum or minimum ``op``: the least or greatest value of the dtype, NaN for
    ``fmax`` and ``fmin`` of floats."""
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
    """Return an expression converted to the dtype with the type character ``char``."""
    dtype = dtype_of(char)
    return x if x.dtype == dtype else Apply("cast", (x,), dtype)


def apply_op(op: str, kinds: str, result: str, reads: Sequence[Expr]) -> Expr:
    """Return the operation ``op`` on ``reads``, which are first converted to the dtypes of the type
    characters ``kinds``; ``result`` is the character of its result's dtype."""
    args = tuple(cast(x, char) for x, char in zip(reads, kinds, strict=True))
    if op == "cast":
        return cast(args[0], result)
    return Apply(op, args, dtype_of(result))
