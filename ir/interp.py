"""The meaning of a region in plain NumPy: statement by statement, whole windows at a time.

This is the oracle for passes and targets, and what runs a region that is not compiled.  So it takes
care to cost no more than the same NumPy calls written by hand: views are slices, the last operation of
a statement writes straight into its target, operands that nobody needs any more are overwritten, and
temporaries go away after their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .dims import evaluate
from .effects import families, touched
from .nodes import (
    Apply,
    Branch,
    Call,
    Compute,
    Const,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    While,
    Window,
)
from .ops import CALLS, OPS, const_value, has_loop
from .windows import compose, identity, remap, walk

Around = Callable[[Any], AbstractContextManager[Any]]
NDArray = np.ndarray[Any, np.dtype[Any]]


def run(
    region: Region,
    memory: Mapping[str, NDArray],
    symbols: Mapping[str, int] | None = None,
    around: Around | None = None,
) -> dict[str, NDArray]:
    """Run ``region`` once; see ``Interpreter.run``."""
    return Interpreter(region).run(memory, symbols, around)


class Interpreter:
    """Runs one region any number of times, from one thread at a time."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self._arrays = {array.name: array for array in region.arrays}
        self._whole = {array.name: identity(array) for array in region.arrays}
        self._based = {array.base for array in region.arrays} - {None}
        self._dying = _last_uses(region)
        self._nodes: dict[Expr, tuple[list[Expr], dict[Expr, int]]] = {}
        self._values: dict[str, int] = {}
        self._env: dict[str, NDArray] = {}
        self._around: Around | None = None

    def run(
        self,
        memory: Mapping[str, NDArray],
        symbols: Mapping[str, int] | None = None,
        around: Around | None = None,
    ) -> dict[str, NDArray]:
        """Run the region.

        Parameters
        ----------
        memory : mapping of str to ndarray
            The arrays that exist (``in`` and ``inout``) and, if the caller has them, ``out`` arrays; of
            the declared shape and dtype, with any strides.
        symbols : mapping of str to int, optional
        around : callable, optional
            ``around(stmt.loc)`` is a context manager that is entered around each statement.

        Returns
        -------
        dict of str to ndarray
            Every ``out`` and ``inout`` array.
        """
        self._values = dict(symbols or {})
        self._env = {}
        self._around = around
        try:
            for name, array in memory.items():
                self._admit(name, array)
            for stmt, dying in zip(self.region.body, self._dying, strict=True):
                self._run(stmt)
                for name in dying:
                    self._env.pop(name, None)
            return {a.name: self._array(a.name) for a in self.region.arrays if a.role in ("out", "inout")}
        finally:
            self._env = {}

    # ---- memory -------------------------------------------------------------------------------------
    def _dims(self, dims: tuple[Dim, ...]) -> tuple[int, ...]:
        return tuple([d if type(d) is int else evaluate(d, self._values) for d in dims])

    def _dim(self, dim: Dim) -> int:
        return dim if type(dim) is int else evaluate(dim, self._values)

    def _admit(self, name: str, given: NDArray) -> None:
        array = self._arrays[name]
        shape = self._dims(array.shape)
        if given.shape != shape or given.dtype != array.dtype:
            raise ValueError(f"{name} is {array.dtype}{shape}, but {given.dtype}{given.shape} was given")
        self._env[name] = given

    def _array(self, name: str) -> NDArray:
        """The memory of an array, which is made when it is first asked for."""
        found = self._env.get(name)
        if found is None:
            array = self._arrays[name]
            shape = self._dims(array.shape)
            if array.base is not None:
                base = self._array(array.base)
                if not base.flags.c_contiguous:
                    raise ValueError(f"{name} has to be given, since {array.base} is not contiguous")
                found = base.reshape(-1).view(array.dtype).reshape(shape)
            elif array.role in ("in", "inout"):
                raise ValueError(f"{name} was not given")
            else:
                found = np.empty(shape, array.dtype)
            self._env[name] = found
        return found

    def _view(self, window: Window, full: bool = False) -> NDArray:
        """The elements of a window with one axis per domain axis.  An axis that the index does not use
        has one element, or, if ``full``, repeats it."""
        array = self._array(window.array)
        shape = self._dims(window.shape)
        if 0 in shape:
            return np.empty(shape, array.dtype)
        key: list[Any] = []
        axes: list[int] = []
        for size, ix in zip(array.shape, window.index, strict=True):
            first = self._dim(ix.offset)
            if ix.axis is None:
                last = first
                key.append(first)
            else:
                stride = self._dim(ix.stride)
                last = first + stride * (shape[ix.axis] - 1)
                stop = last + 1 if stride > 0 else (last - 1 if last > 0 else None)
                key.append(slice(first, stop, stride))
                axes.append(ix.axis)
            if not (0 <= first < size and 0 <= last < size):
                raise IndexError(f"{window} reaches {first}..{last} of an axis of {size} elements")
        view = array[(*key, ...)]
        if axes != list(range(len(shape))):
            view = _arrange(view, axes, len(shape))
        return np.broadcast_to(view, shape) if full and view.shape != shape else view

    # ---- statements ---------------------------------------------------------------------------------
    def _run(self, stmt: Stmt) -> None:
        match stmt:
            case Compute() | Call():
                if self._around is None:
                    self._leaf(stmt)
                else:
                    with self._around(stmt.loc):
                        self._leaf(stmt)
            case Nest(body):
                for inner in body:
                    self._run(inner)
            case Loop(var, bounds, body):
                outer = self._values.get(var)
                for value in range(*self._dims(bounds)):
                    self._values[var] = value
                    self._body(body)
                self._values.pop(var, None)
                if outer is not None:
                    self._values[var] = outer
            case While(cond, body):
                while self._truth(cond, stmt.loc):
                    self._body(body)
            case Branch(cond, then, orelse):
                self._body(then if self._truth(cond, stmt.loc) else orelse)

    def _body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self._run(stmt)

    def _truth(self, cond: Expr, loc: Any) -> bool:
        if self._around is None:
            return bool(self._value(cond, ())[0])
        with self._around(loc):
            return bool(self._value(cond, ())[0])

    def _leaf(self, stmt: Compute | Call) -> None:
        if isinstance(stmt, Call):
            self._call(stmt)
        elif stmt.combine is not None:
            self._fold(stmt, stmt.combine)
        else:
            self._assign(stmt)

    def _assign(self, stmt: Compute) -> None:
        target, body = stmt.target, stmt.body
        shape = self._dims(target.shape)
        name = target.array
        if name not in self._env and name not in self._based and target == self._whole[name]:
            array = self._arrays[name]
            if array.base is None:
                value, owned = self._value(body, shape)
                if owned and value.shape == shape and (array.role == "temp" or value.flags.c_contiguous):
                    self._env[name] = value
                else:
                    self._array(name)[...] = value
                return
        self._value(body, shape, self._view(target))

    def _fold(self, stmt: Compute, combine: str) -> None:
        target = stmt.target
        shape = self._dims(target.shape)
        kept = {ix.axis for ix in target.index}
        axes = tuple(axis for axis in range(len(shape)) if axis not in kept)
        if any(shape[axis] == 0 for axis in axes):
            self._fold_nothing(stmt, axes)
            return
        ufunc: Any = OPS[combine].reference
        value, _ = self._value(stmt.body, shape)
        if np.shape(value) != shape:
            value = np.broadcast_to(value, shape)
        start = None if stmt.init is None else self._value(stmt.init, shape)[0]
        out = self._view(target)
        if axes and start is not None and np.ndim(start) == 0:
            # the fold itself begins with the start value, as in NumPy's own reductions
            out[...] = ufunc.reduce(value, axes, value.dtype, None, True, start)
            return
        if axes:
            value = ufunc.reduce(value, axes, value.dtype, None, True)
        ufunc(out if start is None else start, value, out=out)

    def _fold_nothing(self, stmt: Compute, axes: tuple[int, ...]) -> None:
        """A fold over no values: the target holds the start value, or what it held."""
        if stmt.init is None:
            return
        one = tuple(1 if k in axes else n for k, n in enumerate(stmt.target.shape))
        onto = tuple(Index(0) if k in axes else Index(0, 1, k) for k in range(len(one)))
        start = remap(stmt.init, onto, one)
        self._value(start, self._dims(one), self._view(compose(stmt.target, onto, one)))

    def _call(self, stmt: Call) -> None:
        into = tuple(self._view(w) for w in stmt.writes)
        args = [self._view(w, full=True) for w in stmt.reads]
        for k, arg in enumerate(args):
            if any(np.may_share_memory(arg, out) for out in into):
                args[k] = arg.copy()
        CALLS[stmt.op].reference(into, tuple(args), dict(stmt.attrs))

    # ---- expressions --------------------------------------------------------------------------------
    def _value(self, root: Expr, shape: tuple[int, ...], out: NDArray | None = None) -> tuple[Any, bool]:
        """The value of ``root``, broadcastable to ``shape``, and whether it is fresh memory; it is
        stored in ``out`` if that is given, which may overlap with what is read."""
        known = self._nodes.get(root)
        if known is None:
            nodes = walk(root)
            uses = dict.fromkeys(nodes, 0)
            for node in nodes:
                for arg in node.args if isinstance(node, Apply) else ():
                    uses[arg] += 1
                for arg in node.index if isinstance(node, Gather) else ():
                    uses[arg] += 1
            uses[root] += 1
            known = self._nodes[root] = (nodes, uses)
        nodes, uses = known[0], dict(known[1])
        values: dict[Expr, Any] = {}
        fresh: set[Expr] = set()
        for node in nodes:
            last = node is root and out is not None
            if isinstance(node, Apply):
                args = [values[a] for a in node.args]
                spare = out if last else None
                for a in node.args:
                    uses[a] -= 1
                    if uses[a] == 0:
                        value = values.pop(a)
                        if (
                            spare is None
                            and a in fresh
                            and value.dtype == node.dtype
                            and value.shape == shape
                        ):
                            spare = value
                values[node] = _apply(node, args, spare)
                if node.op in ("real", "imag"):
                    fresh.difference_update(node.args)  # this one is a view of them
                else:
                    fresh.add(node)
                if last and values[node] is out:
                    return out, False
            elif isinstance(node, Load):
                values[node] = self._view(node.window)
            elif isinstance(node, Gather):
                array = self._array(node.window.array)
                values[node] = array[tuple(values[a] for a in node.index)]
                fresh.add(node)
            else:
                values[node] = self._leaf_value(node, shape)
            if type(values[node]) is not np.ndarray:
                fresh.discard(node)
        value = values[root]
        if out is not None:
            out[...] = value
        return value, root in fresh

    def _leaf_value(self, node: Expr, shape: tuple[int, ...]) -> Any:
        match node:
            case Const():
                return const_value(node)
            case Size(dim, dtype):
                return np.asarray(self._dim(dim)).astype(dtype)[()]
            case Iota(axis, dtype):
                line = np.arange(shape[axis]).astype(dtype)
                return line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        raise TypeError(f"not an expression: {node!r}")


def _apply(node: Apply, args: list[Any], spare: NDArray | None) -> Any:
    """The result of an operation, stored in ``spare`` if it can be."""
    op, dtype = node.op, node.dtype
    if op == "cast":
        (x,) = args
        if x.dtype.kind == "c" and dtype.kind not in "cb":
            x = x.real  # what the conversion means, without NumPy's warning
        if spare is None or x is spare:
            return x.astype(dtype)
        np.copyto(spare, x, casting="unsafe")
        return spare
    if not has_loop(op, tuple([x.dtype for x in args]), dtype):
        raise TypeError(f"{op} has no loop {', '.join(str(x.dtype) for x in args)} -> {dtype}")
    reference = OPS[op].reference
    if spare is None or not isinstance(reference, np.ufunc):
        return reference(*args)
    if op == "negative" and not spare.flags.c_contiguous:
        # NumPy 2.4 with AVX-512 gives wrong values when both strides are large: negative(x[::8], out=y[::8])
        return reference(*args)
    return reference(*args, out=spare)


def _arrange(view: NDArray, axes: list[int], rank: int) -> NDArray:
    """A view whose axes are the given domain axes, with all ``rank`` domain axes in order."""
    shape, strides = [1] * rank, [0] * rank
    for axis, size, stride in zip(axes, view.shape, view.strides, strict=True):
        shape[axis] = size
        strides[axis] += stride  # an axis that moves along two array axes is a diagonal
    if len(set(axes)) < len(axes):
        return np.lib.stride_tricks.as_strided(view, shape, strides, writeable=view.flags.writeable)
    ordered = view.transpose(sorted(range(len(axes)), key=axes.__getitem__))
    return ordered[tuple(slice(None) if axis in axes else None for axis in range(rank))]


def _last_uses(region: Region) -> list[list[str]]:
    """For every statement the temporaries that no later one needs."""
    root = families(region)
    kept = {root[a.name] for a in region.arrays if a.role != "temp"}
    last: dict[str, int] = {}
    for position, stmt in enumerate(region.body):
        for name in touched(stmt):
            last[root[name]] = position
    dying: list[list[str]] = [[] for _ in region.body]
    for array in region.arrays:
        home = root[array.name]
        if home in last and home not in kept:
            dying[last[home]].append(array.name)
    return dying
