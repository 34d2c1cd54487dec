"""The region under construction: its arrays and statements, and the lazy values that read its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dcarray.core.store import COMPILED
from dcarray.core.strides import c_strides
from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Array, Branch, Call, Compute, Dim, Expr, Gather, Iota, Load, Stmt, Window
from dcarray.ir.ops import const
from dcarray.ir.parse import RESERVED
from dcarray.ir.renaming import expression_at, numbered
from dcarray.ir.windows import compose, injective, loads, overlap, same, walk

from ..entry.entry_values import DType
from .flag_checks import for_python
from .scope import Scope
from .values import Data, Shape, cast, whole_window

_BOOL = np.dtype(np.bool_)
_TAKEN = RESERVED | {"min", "max"}  # names that no array or variable of a region has


@dataclass
class Checkpoint:
    """A saved state of `Memory`."""

    arrays: dict[str, Array]
    block: list[Stmt]
    immutable: set[str]
    unwriteable: set[str]
    changed: set[str]
    joined: dict[str, frozenset[str]]
    values: dict[int, tuple[Data, Expr]]  # with their expressions then


class Memory:
    """Arrays and statements of the region of a loop that is being traced.

    A traced value is an expression over memory.  It is stored in an array of its own before a statement would
    change the memory that it reads."""

    def __init__(self, scope: Scope, file: str, flagless: bool = False) -> None:
        self.scope, self.flagless = scope, flagless  # flagless: the target has no floating-point flags
        self.arrays: dict[str, Array] = {}
        self.immutable: set[str] = set()  # arrays that no later statement writes
        self.unwriteable: set[str] = set()  # arrays that the program may not write
        self.changed: set[str] = set()  # arrays that the program has written in place
        self.joined: dict[str, frozenset[str]] = {}  # copies that stand for either of some arrays, unchanged
        self.assumed_unwritten: set[str] = set()  # arrays that no statement may write, checked at the end
        self.reordered: set[str] = set()  # arrays that NumPy may lay out in another order than C
        self.may_raise = self.polls = False  # see `TracedLoop`
        self.block: list[Stmt] = []
        self.whole = self.block  # outside of loops and conditions
        # a bool: all run-time checks so far hold; see `track_checks`
        self.checks_passed: Window | None = None
        self.draws: Window | None = None  # see `order_of_draws`
        self.inputs: dict[str, str] = {}  # by input array, the name or Python expression of its value
        self._entries: dict[tuple[str, DType], Data] = {}
        self._scalars: set[str] = set()
        self.file = file
        self._variables: set[str] = set(scope.sizes)
        self._moving: set[str] = set(scope.sizes)
        self._values: WeakValueDictionary[int, Data] = WeakValueDictionary()
        self._count = 0

    @property
    def loc(self) -> str:
        return f"{self.file}:{self.scope.line}"

    # ---- arrays -------------------------------------------------------------------------------------
    def name(self, wanted: str) -> str:
        """Return an unused array name, ``wanted`` if it is free."""
        wanted, taken = wanted if wanted.isidentifier() else "k", {*self.arrays, *_TAKEN, *self._variables}
        return numbered(wanted, taken) if wanted in taken else wanted

    def declare(self, array: Array) -> Window:
        self.arrays[array.name] = array
        return whole_window(array.name, array.shape)

    def new(self, shape: Shape, dtype: DType, name: str = "t", role: Any = "temp") -> Window:
        """Declare an array and return the window of ``shape`` in it.  If the shape depends on loop variables,
        the array is as large as the largest shape."""
        if dtype.char not in COMPILED:
            raise self.scope.fail(f"{dtype} does not compile")
        room = tuple(self.scope.room(n) for n in shape)
        name = self.name(name)
        self.declare(Array(name, dtype, room, role))
        return whole_window(name, shape)

    def checkpoint(self) -> Checkpoint:
        """Return the current state, for `restore`."""
        values = {key: (value, value.expr) for key, value in self._values.items()}
        return Checkpoint(
            dict(self.arrays), list(self.block), set(self.immutable), set(self.unwriteable),
            set(self.changed), dict(self.joined), values,
        )  # fmt: skip

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a saved state; scalar inputs that were declared after it stay declared."""
        kept = [*self.inputs, *[one.array for one in (self.checks_passed, self.draws) if one is not None]]
        self.arrays = {**checkpoint.arrays, **{name: self.arrays[name] for name in kept}}
        self.block[:] = checkpoint.block
        self.immutable = checkpoint.immutable | self._scalars
        self.unwriteable = set(checkpoint.unwriteable)
        self.changed, self.joined = set(checkpoint.changed), dict(checkpoint.joined)
        self._values = WeakValueDictionary()
        for key, (value, expr) in checkpoint.values.items():
            value.expr = expr  # it may have been stored since
            self._values[key] = value

    @contextmanager
    def variable(self, wanted: str) -> Iterator[str]:
        """A context in which a loop is traced, that yields the name of its loop variable.  The name has no
        underscores: passes use these in names of loops that they make."""
        wanted = wanted.replace("_", "")
        name, taken = wanted if wanted.isidentifier() else "k", {*self.arrays, *_TAKEN, *self._moving}
        name = numbered(name, taken) if name in taken else name
        self._variables.add(name)
        self._moving.add(name)
        try:
            yield name
        finally:
            self._moving.discard(name)

    @contextmanager
    def nested_block(self) -> Iterator[list[Stmt]]:
        """A context in which statements are added to a new block, which it yields."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    # ---- values -------------------------------------------------------------------------------------
    def value(self, expr: Expr, shape: Shape = (), **kind: Any) -> Data:
        """Return a value that later writes to memory do not change."""
        data = Data(expr, shape, **kind)
        if self.flagless and data.weak in (float, complex):
            data.expr = expr = for_python(expr)
        self.may_raise |= data.weak not in (None, bool) and isinstance(expr, Apply)
        if loads(expr):
            self._count += 1
            self._values[self._count] = data
        return data

    def view(self, window: Window, dtype: DType, entry_name: str = "") -> Data:
        """Return the array in the window's memory."""
        return Data(Load(window, dtype), window.shape, window, entry_name=entry_name)

    def pending(self) -> list[Data]:
        """Return the values that are not stored yet and that read memory which may be written."""
        values = list(self._values.values())
        return [v for v in values if any(n.window.array not in self.immutable for n in loads(v.expr))]

    def forget(self, var: str) -> None:
        """Forget the values that depend on the variable of an ended loop: no name is bound to them."""
        for key, value in list(self._values.items()):
            if expression_at(value.expr, {var: 0}) is not value.expr:
                del self._values[key]

    def materialise(self, *spent: Data) -> None:
        """Store all pending values, except ``spent``, which are not used any more.  This comes before
        statements that may run several times or not at all."""
        for key, value in list(self._values.items()):
            if any(value is one for one in spent):
                del self._values[key]
        for value in self.pending():
            self.store(value)

    def store(self, value: Data, name: str = "t") -> None:
        """Store a value in an array of its own, which no later statement writes."""
        self.pin_sources(value)
        window = self.new(value.shape, value.dtype, name)
        self.emit(Compute(window, value.expr, loc=self.loc))
        self.immutable.add(window.array)
        value.expr = Load(window, value.dtype)

    def pin_sources(self, value: Data) -> None:
        """Forbid further writes to the memory that a value reads, if NumPy has a view of it where compiled
        code has a copy."""
        if value.views_in_numpy:
            self.assumed_unwritten |= {n.window.array for n in loads(value.expr)} - self.immutable

    def array(self, value: Data, name: str = "t") -> Data:
        """Return the value as an array in memory."""
        if value.window is not None:
            return value
        self.pin_sources(value)
        if value.part_of is not None and not value.views_in_numpy:
            base, (amap, shape) = value.part_of
            whole = self.array(base, name)
            assert whole.window is not None
            return self.view(compose(whole.window, amap, shape), value.dtype)
        array = self.note_order(self.copy(value, name), value)
        array.readonly = value.views_in_numpy  # a write would have to reach the memory of that view
        return array

    def copy(self, value: Data, name: str = "t", dtype: DType | None = None) -> Data:
        """Return a new array with the elements of a value."""
        dtype = dtype or value.dtype
        window = self.new(value.shape, dtype, name)
        self.emit(Compute(window, cast(value.expr, dtype), loc=self.loc))
        return self.view(window, dtype)

    def reshaped(self, value: Data, shape: Shape) -> Data:
        """Return a new array of another shape with the elements of a value in C order."""
        copied = self.copy(value)
        assert copied.window is not None
        name = self.name("flat")
        self.declare(Array(name, value.dtype, shape, "temp", base=copied.window.array))
        return self.view(whole_window(name, shape), value.dtype)

    def perhaps_view(self, copy: Data, value: Data) -> Data:
        """Return a copy, which may be a view in NumPy; neither it nor its source may be written
        afterwards."""
        if value.window is not None:
            copy.readonly = True
            inside = self.block is not self.whole  # where an earlier statement may run later
            (self.assumed_unwritten if inside else self.unwriteable).add(value.window.array)
        return copy

    def join(self, copy: Window, *sources: Window) -> None:
        """Note that ``copy`` is a copy of one of several arrays, for which NumPy has only a second name.  So
        none of them may be written."""
        names = [name for w in sources for name in (w.array, *self.joined.get(w.array, ()))]
        self.joined[copy.array] = frozenset(names)
        self.unwriteable.add(copy.array)

    def with_joined(self, arrays: Iterable[str]) -> frozenset[str]:
        """Return the arrays, with the copies that stand for one of them (`join`)."""
        held = frozenset(arrays)
        return held | {name for name, sources in self.joined.items() if sources & held}

    def note_order(self, array: Data, *sources: Data) -> Data:
        """Return a new array, marked as perhaps not in C order if NumPy's result follows its sources."""
        if len(array.shape) > 1 and array.window is not None and not all(map(self._in_order, sources)):
            self.reordered.add(array.window.array)
        return array

    def contiguous(self, x: Data) -> bool | None:
        """Whether an array in memory is C-contiguous; None if that is not known."""
        window = x.window
        assert window is not None
        array = self.arrays[window.array]
        if array.name in self.reordered:
            return None
        return self.is_contiguous(window, array.shape, array.strides)

    def is_contiguous(
        self, window: Window, shape: Shape, steps: tuple[int, ...] | None = None
    ) -> bool | None:
        """Whether a window into an array, of a shape and in C order or with strides, is C-contiguous; None if
        that is not known."""
        strides: list[Dim] = [0] * len(window.shape)
        for ix, step in zip(window.index, steps or c_strides(shape), strict=True):
            if ix.axis is not None:
                strides[ix.axis] += ix.stride * step
        size: Dim = 1
        for n, step in zip(reversed(window.shape), reversed(strides), strict=True):
            if type(n) is type(step) is type(size) is int:
                if n != 1 and n and step != size:
                    return False
            elif self.scope.eq(step, size) is not True:
                return None
            size = dims.simplify(size * n)
        return True

    def _in_order(self, x: Data) -> bool:
        """Whether the axes of all memory that a value reads are known to be in C order."""
        for node in loads(x.expr):
            array = self.arrays[node.window.array]
            # NumPy lays elements at integer places out as they are found: in another order beside slices.
            if array.name in self.reordered or (isinstance(node, Gather) and not _takes_rows(node, array)):
                return False
            if isinstance(node, Gather):
                continue
            if array.strides is None and _goes_forward(node.window):
                continue
            steps = array.strides or c_strides(array.shape)
            strides: dict[int, Dim] = {}
            for ix, step in zip(node.window.index, steps, strict=True):
                if ix.axis is not None and node.window.shape[ix.axis] != 1:
                    strides[ix.axis] = strides.get(ix.axis, 0) + abs(ix.stride * step)
            order = [strides[axis] for axis in sorted(strides)]
            if not all(self._at_least(a, b) for a, b in pairwise(order)):
                return False
        return True

    def _at_least(self, a: Dim, b: Dim) -> bool:
        """Whether one stride is known to be at least as large as another one, if no size is 0."""
        if type(a) is int and type(b) is int:
            return a >= b
        more = {name: dims.symbol(name, low) + 1 for name, (low, _) in self.scope.sizes.items() if low == 0}
        return dims.prove_nonneg(dims.substitute(dims.simplify(a - b), more)) is True

    def entry_scalar(self, text: str, dtype: DType, weak: type | None) -> Data:
        """Return a scalar input: a name or a Python expression that is evaluated when the loop begins."""
        scalar = self._entries.get((text, dtype))
        if scalar is None:
            name = self.name(text if text.isidentifier() else "c")
            self.declare(Array(name, dtype, (), "in"))
            self.inputs[name] = text
            self.immutable.add(name)
            self._scalars.add(name)
            scalar = Data(Load(Window(name, (), ()), dtype), scalar=True, weak=weak, text=text)
            self._entries[text, dtype] = scalar
        return scalar

    def order_of_draws(self) -> Window:
        """Return the array without axes that all draws of random numbers read and write."""
        if self.draws is None:
            self.draws = self.new((), _BOOL, "draws")
        return self.draws

    # ---- statements ---------------------------------------------------------------------------------
    def emit(self, stmt: Stmt) -> None:
        self.scope.count_statement()
        if self.checks_passed is not None:
            self._track(stmt, self.checks_passed)
        self.block.append(stmt)

    def track_checks(self) -> None:
        """Combine all further run-time checks in one bool, by which loops end once a check has failed.
        Python may raise an error there, and the compiled loop might not end otherwise."""
        self.checks_passed = self.new((), _BOOL, "sound")

    def _track(self, stmt: Stmt, sound: Window) -> None:
        """Add the result of the next statement's checks to this bool."""
        if isinstance(stmt, Branch):
            expr, domain = stmt.cond, ()
        elif isinstance(stmt, Compute) and stmt.target.array != sound.array:
            expr, domain = stmt.body, stmt.target.shape
        else:
            return
        for node in walk(expr):
            if isinstance(node, Apply) and node.op == "checked":
                target = Window(sound.array, domain, ())
                if domain:
                    update = Compute(target, node.args[0], "logical_and", loc=self.loc)
                else:
                    both = Apply("logical_and", (Load(sound, _BOOL), node.args[0]), _BOOL)
                    update = Compute(target, both, loc=self.loc)
                self.block.append(update)

    def write(self, target: Window, expr: Expr, *spent: Data) -> None:
        """Emit ``target[i] = expr(i)``, where all of ``expr`` is evaluated before anything is written.
        ``spent`` are the values from which ``expr`` was made."""
        # a value without a name is not used any more; names are bound to stored values only
        done = [value for value in spent if not isinstance(value.expr, Load)]
        self.protect_values(target, done)
        if self._overlaps(target, expr):
            window = self.new(target.shape, expr.dtype)
            self.emit(Compute(window, expr, loc=self.loc))
            expr = Load(window, expr.dtype)
        self.emit(Compute(target, expr, loc=self.loc))

    def fold(self, op: str, target: Window, body: Expr, start: Any) -> None:
        """Emit the reduction of ``body`` by ``op`` over the axes that ``target`` does not have."""
        self.emit(Compute(target, body, op, const(start, body.dtype), loc=self.loc))

    def call(self, op: str, writes: tuple[Window, ...], reads: tuple[Window, ...]) -> None:
        self.emit(Call(op, reads, writes, loc=self.loc))

    def protect_values(self, target: Window, spent: Sequence[Data] = ()) -> None:
        """Store the pending values that a write to ``target`` would change."""
        for value in self.pending():
            if not any(value is one for one in spent) and any(
                n.window.array == target.array
                and (not isinstance(n, Load) or overlap(n.window, target) is not False)
                for n in loads(value.expr)
            ):
                self.store(value)

    def _overlaps(self, target: Window, expr: Expr) -> bool:
        """Whether a statement may write an element before it is read for another one of the result."""
        for node in loads(expr):
            if node.window.array != target.array:
                continue
            if isinstance(node, Load):
                if same(node.window, target) and injective(target) is True:
                    continue
                if overlap(node.window, target) is False:
                    continue
            return True
        return False


def _goes_forward(window: Window) -> bool:
    """Whether a window has its array's axes in order: no stride is less than that of the next axis."""
    axes = [ix.axis for ix in window.index if ix.axis is not None]
    return all(a < b for a, b in pairwise(axes))


def _takes_rows(node: Gather, array: Array) -> bool:
    """Whether a gather takes elements of a vector, or whole rows of an array in C order."""
    rank = len(array.shape)
    at, *others = node.index
    if rank == 1:  # elements lie as their places do
        return True
    return (
        array.strides is None
        and len(node.window.shape) == rank
        and all(isinstance(k, Iota) and k.axis == n + 1 for n, k in enumerate(others))
        and not any(isinstance(part, Iota) for part in walk(at))
        and all(ix.axis in (None, 0) for load in loads(at) for ix in load.window.index)
    )
