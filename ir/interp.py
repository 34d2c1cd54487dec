"""The interpreter of regions: it runs them with plain NumPy, statement by statement, on whole windows.

It defines the meaning of a region for the tests of passes and targets, and runs regions that are not
compiled. So it costs no more than the same NumPy calls written by hand: views are slices, the last operation
of a statement writes straight into its target, dead operands are overwritten, and temporaries are freed after
their last use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir.analysis.effects import families, touched_arrays

from .dims import evaluate
from .expression_steps import Kind, Step, program
from .functions import arrays_with, is_own
from .nodes import (
    Branch,
    Call,
    Compute,
    Dim,
    Expr,
    Index,
    Iota,
    Loop,
    Nest,
    Region,
    Rows,
    Size,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from .numpy_views import Geometry, NDArray, geometry, view
from .ops import CALLS, OPS
from .windows import compose, identity, remap

Around = Callable[[Any], AbstractContextManager[Any]]
Empty = Callable[[tuple[int, ...], np.dtype[Any]], NDArray]


def run(
    region: Region,
    memory: Mapping[str, NDArray],
    symbols: Mapping[str, int] | None = None,
    around: Around | None = None,
    empty: Empty | None = None,
    env: dict[str, NDArray] | None = None,
) -> dict[str, NDArray]:
    """Run ``region`` once.

    Parameters
    ----------
    region : Region
    memory : mapping of str to ndarray
        The arrays that exist (``in`` and ``inout``) and, if the caller has them, ``out`` arrays; of the
        declared shape and dtype, with any strides.
    symbols : mapping of str to int, optional
        The values of the region's symbols.
    around : callable, optional
        ``around(stmt.loc)`` is a context manager that is entered around each statement.
    empty : callable, optional
        ``empty(shape, dtype)`` makes the C-contiguous memory of temporaries and of ``out`` arrays that are
        not given, instead of NumPy.
    env : dict, optional
        Holds the memory of every array while it is in use: after a run that failed, what it had computed.

    Returns
    -------
    dict of str to ndarray
        Every ``out`` and ``inout`` array.
    """
    known = _recent.get(id(region))
    if known is None or known.region is not region:
        known = Interpreter(region)
        _recent[id(region)] = known
        if len(_recent) > 32:
            _recent.popitem(last=False)
    return known.run(memory, symbols, around, empty, env)


class Interpreter:
    """A region prepared for many runs.  Safe to share by threads."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.arrays = {array.name: array for array in region.arrays}
        self.whole = {array.name: identity(array) for array in region.arrays}
        self.based = {array.base for array in region.arrays} - {None}
        self.dying = _last_uses(region)
        # By the expression or, since a window's hash is slow, the identity of the window.  The region
        # keeps its windows alive, so identities stay unique.
        self.programs: dict[Expr, tuple[Step, ...]] = {}
        self.geometries: dict[int, Geometry] = {}
        self.functions: dict[str, Interpreter] = {}

    def run(
        self,
        memory: Mapping[str, NDArray],
        symbols: Mapping[str, int] | None = None,
        around: Around | None = None,
        empty: Empty | None = None,
        env: dict[str, NDArray] | None = None,
    ) -> dict[str, NDArray]:
        """Run the region once; the parameters and the result are those of the function `run`."""
        return _Machine(self, symbols or {}, around, empty, env).run(memory)


_recent: OrderedDict[int, Interpreter] = OrderedDict()


class _Machine:
    """The state of one run of a region."""

    def __init__(
        self,
        prepared: Interpreter,
        symbols: Mapping[str, int],
        around: Around | None,
        empty: Empty | None,
        env: dict[str, NDArray] | None,
    ) -> None:
        self._prepared = prepared
        self._empty = empty
        self._values = dict(symbols)
        self._env: dict[str, NDArray] = {} if env is None else env
        self._around = around

    def run(self, memory: Mapping[str, NDArray]) -> dict[str, NDArray]:
        region = self._prepared.region
        for name, array in memory.items():
            self._admit(name, array)
        for stmt, dying in zip(region.body, self._prepared.dying, strict=True):
            self._run(stmt)
            for name in dying:
                self._env.pop(name, None)
        return {a.name: self._array(a.name) for a in region.arrays if a.role in ("out", "inout")}

    # ---- memory -------------------------------------------------------------------------------------
    def _dims(self, dims: tuple[Dim, ...]) -> tuple[int, ...]:
        return tuple([d if type(d) is int else evaluate(d, self._values) for d in dims])

    def _dim(self, dim: Dim) -> int:
        return dim if type(dim) is int else evaluate(dim, self._values)

    def _admit(self, name: str, given: NDArray) -> None:
        array = self._prepared.arrays[name]
        shape = self._dims(array.shape)
        if given.shape != shape or given.dtype != array.dtype:
            raise ValueError(f"{name} is {array.dtype}{shape}, but {given.dtype}{given.shape} was given")
        self._env[name] = given

    def _array(self, name: str) -> NDArray:
        """Return the memory of an array, allocated at its first use."""
        memory = self._env.get(name)
        if memory is None:
            array = self._prepared.arrays[name]
            shape = self._dims(array.shape)
            if array.base is not None:
                base = self._array(array.base)
                if not base.flags.c_contiguous:
                    raise ValueError(f"{name} has to be given, since {array.base} is not contiguous")
                memory = base.reshape(-1).view(array.dtype).reshape(shape)
            elif array.role in ("in", "inout"):
                raise ValueError(f"{name} was not given")
            else:
                memory = (self._empty or np.empty)(shape, array.dtype)
            self._env[name] = memory
        return memory

    def _view(self, window: Window, full: bool = False, keep: bool = True) -> NDArray:
        """Return the elements of a window with one axis per domain axis.  An axis that the index does not use
        has one element, or with ``full`` is repeated.  ``keep``: the window is one of the region's nodes."""
        how = self._prepared.geometries.get(id(window))
        array = self._array(window.array)
        if how is None:
            index = [(self._dim(ix.offset), self._dim(ix.stride), ix.axis) for ix in window.index]
            how = geometry(array.shape, self._dims(window.shape), index)
            if keep and not self._prepared.region.symbols and _is_int(window):
                self._prepared.geometries[id(window)] = how
        elements = view(array, how)
        return np.broadcast_to(elements, how.shape) if full and elements.shape != how.shape else elements

    # ---- statements ---------------------------------------------------------------------------------
    def _run(self, stmt: Stmt) -> None:
        match stmt:
            case Compute() | Call():
                if self._around is None:
                    self._leaf(stmt)
                else:
                    with self._around(stmt.loc):
                        self._leaf(stmt)
            case Nest(body) | Rows(body) | TimeTiles(body):
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
            (self._fold if stmt.scan is None else self._scan)(stmt, stmt.combine)
        else:
            self._assign(stmt)

    def _assign(self, stmt: Compute) -> None:
        target, body = stmt.target, stmt.body
        shape = self._dims(target.shape)
        name = target.array
        if (
            name not in self._env
            and name not in self._prepared.based
            and target == self._prepared.whole[name]
        ):
            array = self._prepared.arrays[name]
            if array.base is None and self._empty is not None:
                self._value(body, shape, self._array(name))
                return
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

    def _scan(self, stmt: Compute, combine: str) -> None:
        shape = self._dims(stmt.target.shape)
        ufunc: Any = OPS[combine].reference
        value = np.array(np.broadcast_to(self._value(stmt.body, shape)[0], shape))
        start, _ = self._value(stmt.init, shape)  # type: ignore[arg-type]
        first = (*[slice(None)] * (stmt.scan or 0), slice(0, 1))
        value[first] = ufunc(np.broadcast_to(start, shape)[first], value[first])
        self._view(stmt.target)[...] = ufunc.accumulate(value, stmt.scan, value.dtype)

    def _fold_nothing(self, stmt: Compute, axes: tuple[int, ...]) -> None:
        """Run a reduction over an empty axis: the target gets the initial value; without one it is
        unchanged."""
        if stmt.init is None:
            return
        one = tuple(1 if k in axes else n for k, n in enumerate(stmt.target.shape))
        onto = tuple(Index(0) if k in axes else Index(0, 1, k) for k in range(len(one)))
        start = remap(stmt.init, onto, one)
        out = self._view(compose(stmt.target, onto, one), keep=False)
        self._value(start, self._dims(one), out)

    def _call(self, stmt: Call) -> None:
        into = tuple(self._view(w) for w in stmt.writes)
        args = [self._view(w, full=True) for w in stmt.reads]
        for k, arg in enumerate(args):
            if any(np.may_share_memory(arg, out) for out in into):
                args[k] = arg.copy()
        if stmt.op == "function.call":
            self._function(dict(stmt.attrs)["name"], into, args)
            return
        CALLS[stmt.op].reference(into, tuple(args), dict(stmt.attrs))

    def _function(self, name: str, into: tuple[NDArray, ...], args: list[NDArray]) -> None:
        """Run a function of the region on copies of its inputs."""
        functions = self._prepared.region.functions
        prepared = self._prepared.functions.get(name)
        if prepared is None:
            prepared = Interpreter(replace(dict(functions)[name], functions=functions))
            self._prepared.functions[name] = prepared
            prepared.functions = self._prepared.functions
        taken, given = (arrays_with(prepared.region, "inout", role) for role in ("in", "out"))
        memory = {}
        for k, (array, arg) in enumerate(zip(taken, args, strict=True)):
            memory[array.name] = arg.copy() if is_own(array) else into[k] if array.role == "inout" else arg
        results = _Machine(prepared, self._values, self._around, None, None).run(memory)
        for target, array in zip(into, given, strict=True):
            if is_own(array):
                target[...] = results[array.name]

    # ---- expressions --------------------------------------------------------------------------------
    def _value(self, root: Expr, shape: tuple[int, ...], out: NDArray | None = None) -> tuple[Any, bool]:
        """Return the value of ``root``, broadcastable to ``shape``, and whether its memory is new.  With
        ``out``, which may overlap the operands, the value is stored there."""
        steps = self._prepared.programs.get(root)
        if steps is None:
            steps = self._prepared.programs[root] = program(root)
        values: list[Any] = []
        fresh: list[bool] = []
        end = len(steps) - 1
        for k, (kind, data, args, last, dtype) in enumerate(steps):
            value: Any
            new = False
            if kind is Kind.LOAD:
                value = self._view(data)
            elif kind is Kind.VALUE:
                value = data
            elif kind is Kind.LEAF:
                value = self._leaf_value(data, shape)
            else:
                given = [values[a] for a in args]
                new = True
                if kind is Kind.UFUNC:
                    spare = out if k == end else None
                    if spare is None:
                        for a in last:
                            if fresh[a] and values[a].dtype == dtype and values[a].shape == shape:
                                spare = values[a]
                    value = data(*given) if spare is None else data(*given, out=spare)
                elif kind is Kind.CAST:
                    value = _cast(given[0], dtype, out if k == end else None)
                elif kind is Kind.GATHER:
                    value = self._array(data)[tuple(given)]
                else:
                    value = data(*given)
                    if kind is Kind.PART:
                        new = fresh[args[0]] = False  # they share memory
                for a in last:
                    values[a] = None
                if value is out:
                    return out, False
            values.append(value)
            fresh.append(new and type(value) is np.ndarray)
        if out is not None:
            out[...] = values[-1]
        return values[-1], fresh[-1]

    def _leaf_value(self, node: Expr, shape: tuple[int, ...]) -> Any:
        match node:
            case Size(dim, dtype):
                return np.asarray(self._dim(dim)).astype(dtype)[()]
            case Iota(axis, dtype):
                line = np.arange(shape[axis]).astype(dtype)
                return line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        raise TypeError(f"not an expression: {node!r}")


def _cast(x: Any, dtype: np.dtype[Any], out: NDArray | None) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real  # what the conversion means, without NumPy's warning
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def _is_int(window: Window) -> bool:
    return all(type(n) is int for n in window.shape) and all(
        type(ix.offset) is int and type(ix.stride) is int for ix in window.index
    )


def _last_uses(region: Region) -> list[list[str]]:
    """Return for every statement the temporaries that no later statement uses."""
    root = families(region)
    kept = {root[a.name] for a in region.arrays if a.role != "temp"}
    last: dict[str, int] = {}
    for position, stmt in enumerate(region.body):
        for name in touched_arrays(stmt):
            last[root[name]] = position
    dying: list[list[str]] = [[] for _ in region.body]
    for array in region.arrays:
        home = root[array.name]
        if home in last and home not in kept:
            dying[last[home]].append(array.name)
    return dying
