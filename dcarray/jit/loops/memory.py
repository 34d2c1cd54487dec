"""The region that grows: its arrays and statements, and the values to be kept before memory changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dcarray.core.store import COMPILED
from dcarray.ir.nodes import Apply, Array, Branch, Call, Compute, Dim, Expr, Load, Stmt, Window
from dcarray.ir.ops import const
from dcarray.ir.parse import RESERVED
from dcarray.ir.windows import injective, loads, overlap, same, walk

from .entry_values import DType
from .scope import Scope
from .values import Data, Shape, cast, whole

_BOOL = np.dtype(np.bool_)


@dataclass
class Checkpoint:
    """What there was at a moment."""

    arrays: dict[str, Array]
    block: list[Stmt]
    fixed: set[str]
    frozen: set[str]
    values: dict[int, tuple[Data, Expr]]  # with where they were then


class Memory:
    """Arrays and statements of a region that is being traced."""

    def __init__(self, scope: Scope, file: str) -> None:
        self.scope = scope
        self.arrays: dict[str, Array] = {}
        self.fixed: set[str] = set()  # arrays that are not written any more
        self.frozen: set[str] = set()  # arrays that the program may not write
        self.unwritten: set[str] = set()  # arrays that stay as they are, which is checked in the end
        self.reordered: set[str] = set()  # arrays that NumPy may lay out in another order than C
        self.may_raise = False  # may it raise another exception than NumPy's floating-point ones?
        self.block: list[Stmt] = []
        self.sound: Window | None = None  # has every check so far held?  Where a loop may not end
        self.inputs: dict[str, str] = {}  # of the arrays that exist, what their values are
        self._entries: dict[tuple[str, DType], Data] = {}
        self._scalars: set[str] = set()
        self.file = file
        self._taken = RESERVED | {"min", "max"}
        self._variables: set[str] = set()
        self._moving: set[str] = set()
        self._values: WeakValueDictionary[int, Data] = WeakValueDictionary()
        self._count = 0

    @property
    def loc(self) -> str:
        return f"{self.file}:{self.scope.line}"

    # ---- arrays -------------------------------------------------------------------------------------
    def name(self, wanted: str) -> str:
        """A name that no array has, like ``wanted``."""
        name = wanted = wanted if wanted.isidentifier() else "k"
        number = 0
        while name in self.arrays or name in self._taken or name in self._variables:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def declare(self, array: Array) -> Window:
        self.arrays[array.name] = array
        return whole(array.name, array.shape)

    def new(self, shape: Shape, dtype: DType, name: str = "t", role: Any = "temp") -> Window:
        """Fresh memory.  It is as large as the shape can become."""
        if dtype.char not in COMPILED:
            raise self.scope.fail(f"{dtype} does not compile")
        room = tuple(n if type(n) is int else max(0, self.scope.limits(n)[1]) for n in shape)
        name = self.name(name)
        self.declare(Array(name, dtype, room, role))
        return whole(name, shape)

    def checkpoint(self) -> Checkpoint:
        """What there is now."""
        values = {key: (value, value.expr) for key, value in self._values.items()}
        return Checkpoint(dict(self.arrays), list(self.block), set(self.fixed), set(self.frozen), values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Have what there was, but for scalars of the beginning."""
        kept = [*self.inputs, *([self.sound.array] if self.sound is not None else [])]
        self.arrays = {**checkpoint.arrays, **{name: self.arrays[name] for name in kept}}
        self.block[:] = checkpoint.block
        self.fixed = checkpoint.fixed | self._scalars
        self.frozen = set(checkpoint.frozen)
        self._values = WeakValueDictionary()
        for key, (value, expr) in checkpoint.values.items():
            value.expr = expr  # what has been stored since is stored no more
            self._values[key] = value

    @contextmanager
    def variable(self, wanted: str) -> Iterator[str]:
        """The name of a loop variable while the loop is traced.  What passes make of a loop has its name with
        an underscore and more, so programs' names have none."""
        name, number = wanted.replace("_", "") or "k", 0
        wanted = name
        while name in self.arrays or name in self._moving or name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._variables.add(name)
        self._moving.add(name)
        try:
            yield name
        finally:
            self._moving.discard(name)

    @contextmanager
    def inner(self) -> Iterator[list[Stmt]]:
        """Inside, statements go to a block of their own."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    # ---- values -------------------------------------------------------------------------------------
    def value(self, expr: Expr, shape: Shape = (), **kind: Any) -> Data:
        """A value that keeps what it is now, whatever is written afterwards."""
        made = Data(expr, shape, **kind)
        self.may_raise |= made.weak not in (None, bool) and isinstance(expr, Apply)
        if loads(expr):
            self._count += 1
            self._values[self._count] = made
        return made

    def view(self, window: Window, dtype: DType, entry: str = "") -> Data:
        """The array that the window is."""
        return Data(Load(window, dtype), window.shape, window, entry=entry)

    def pending(self) -> list[Data]:
        """The values that another write may change."""
        values = list(self._values.values())
        return [v for v in values if any(n.window.array not in self.fixed for n in loads(v.expr))]

    def settle(self, *spent: Data) -> None:
        """Store all values that a later write may change, before statements that may run again or not.
        ``spent`` are values that nobody needs any more."""
        for key, value in list(self._values.items()):
            if any(value is one for one in spent):
                del self._values[key]
        for value in self.pending():
            self.keep(value)

    def keep(self, value: Data, name: str = "t") -> None:
        """Store a value in memory of its own, where no later write reaches it."""
        self.lends(value)
        window = self.new(value.shape, value.dtype, name)
        self.emit(Compute(window, value.expr, loc=self.loc))
        self.fixed.add(window.array)
        value.expr = Load(window, value.dtype)

    def lends(self, value: Data) -> None:
        """A value is stored: what it would be a view of must stay as it is."""
        if value.lent:
            self.unwritten |= {n.window.array for n in loads(value.expr)} - self.fixed

    def array(self, value: Data, name: str = "t") -> Data:
        """The value as an array in memory."""
        if value.window is not None:
            return value
        self.lends(value)
        return self.laid_out(self.copy(value, name), value)

    def copy(self, value: Data, name: str = "t", dtype: DType | None = None) -> Data:
        """A fresh array with these elements."""
        dtype = dtype or value.dtype
        window = self.new(value.shape, dtype, name)
        self.emit(Compute(window, cast(value.expr, dtype), loc=self.loc))
        return self.view(window, dtype)

    def laid_out(self, made: Data, *sources: Data) -> Data:
        """A fresh array that NumPy lays out like these."""
        if len(made.shape) > 1 and made.window is not None and not all(map(self._in_order, sources)):
            self.reordered.add(made.window.array)
        return made

    def contiguous(self, x: Data) -> bool | None:
        """Do the elements of an array in memory lie in C order, side by side?"""
        window = x.window
        assert window is not None
        array = self.arrays[window.array]
        if array.name in self.reordered:
            return None
        steps = array.strides or tuple(prod(array.shape[k + 1 :]) for k in range(len(array.shape)))
        strides: list[Dim] = [0] * len(window.shape)
        for ix, step in zip(window.index, steps, strict=True):
            if ix.axis is not None:
                strides[ix.axis] += ix.stride * step
        size: Dim = 1
        for n, step in zip(reversed(window.shape), reversed(strides), strict=True):
            if type(n) is not int or type(size) is not int:
                return None
            if n != 1 and n and step != size:
                return False
            size *= n
        return True

    def _in_order(self, x: Data) -> bool:
        """Are the elements of what is read known to lie in C order?"""
        for node in loads(x.expr):
            array = self.arrays[node.window.array]
            if array.name in self.reordered:
                return False
            steps = array.strides or tuple(prod(array.shape[k + 1 :]) for k in range(len(array.shape)))
            strides: dict[int, Dim] = {}
            for ix, step in zip(node.window.index, steps, strict=True):
                if ix.axis is not None and node.window.shape[ix.axis] != 1:
                    strides[ix.axis] = strides.get(ix.axis, 0) + abs(ix.stride * step)
            order = [strides[axis] for axis in sorted(strides)]
            if order != sorted(order, reverse=True):
                return False
        return True

    def entry(self, text: str, dtype: DType, weak: type | None) -> Data:
        """A scalar that is known when the loop begins."""
        found = self._entries.get((text, dtype))
        if found is None:
            name = self.name(text if text.isidentifier() else "c")
            self.declare(Array(name, dtype, (), "in"))
            self.inputs[name] = text
            self.fixed.add(name)
            self._scalars.add(name)
            found = Data(Load(Window(name, (), ()), dtype), scalar=True, weak=weak, text=text)
            self._entries[text, dtype] = found
        return found

    # ---- statements ---------------------------------------------------------------------------------
    def emit(self, stmt: Stmt) -> None:
        if self.sound is not None:
            self._doubt(stmt, self.sound)
        self.block.append(stmt)

    def doubt(self) -> None:
        """Note what the run checks: where that fails, Python might raise an error, and a loop that Python
        leaves so must not go on."""
        self.sound = self.new((), _BOOL, "sound")

    def _doubt(self, stmt: Stmt, sound: Window) -> None:
        """Note what is checked by a statement that stands next."""
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
                    made = Compute(target, node.args[0], "logical_and", loc=self.loc)
                else:
                    both = Apply("logical_and", (Load(sound, _BOOL), node.args[0]), _BOOL)
                    made = Compute(target, both, loc=self.loc)
                self.block.append(made)

    def write(self, target: Window, expr: Expr, *spent: Data) -> None:
        """``target[i] = expr(i)``, as NumPy does it: all of ``expr`` first.  ``spent`` are the values
        that it was made from."""
        # a value that no name has yet is done with; names are only bound to those that are stored
        done = [value for value in spent if not isinstance(value.expr, Load)]
        self.before(target, done)
        if self._overlaps(target, expr):
            window = self.new(target.shape, expr.dtype)
            self.emit(Compute(window, expr, loc=self.loc))
            expr = Load(window, expr.dtype)
        self.emit(Compute(target, expr, loc=self.loc))

    def fold(self, op: str, target: Window, body: Expr, start: Any) -> None:
        """``target`` becomes the fold of the body over the axes that it omits."""
        self.emit(Compute(target, body, op, const(start, body.dtype), loc=self.loc))

    def call(self, op: str, writes: tuple[Window, ...], reads: tuple[Window, ...]) -> None:
        self.emit(Call(op, reads, writes, loc=self.loc))

    def before(self, target: Window, spent: Sequence[Data] = ()) -> None:
        """Keep values that the write would change."""
        for value in self.pending():
            if not any(value is one for one in spent) and any(
                n.window.array == target.array
                and (not isinstance(n, Load) or overlap(n.window, target) is not False)
                for n in loads(value.expr)
            ):
                self.keep(value)

    def _overlaps(self, target: Window, expr: Expr) -> bool:
        """Could an element be written before another point of the domain reads it?"""
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
