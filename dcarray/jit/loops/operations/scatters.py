"""Writes through arrays of indices, ``x[i] = v``: one after the other, so that the last one counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Load, Loop

from .arithmetic import Operations
from .values import Data, Value, is_array, is_int, is_number

if TYPE_CHECKING:
    from .arrays import Arrays


class Scatters(Operations):
    """Writes at places that arrays of integers with one axis name."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays.math)
        self.arrays = arrays

    def is_scatter(self, key: Value) -> bool:
        """Whether a data-dependent key has an array of indices."""
        return any(isinstance(k, Data) and k.shape for k in (key if type(key) is tuple else (key,)))

    def write(
        self, x: Data, key: Value, value: Value, combined: Callable[[Value, Value], Value] | None = None
    ) -> None:
        """Trace ``x[key] = value``; with ``combined``, assign its result for the element and the value, as
        ``ufunc.at``."""
        keys = list(key) if type(key) is tuple else [key]
        keys += [slice(None)] * (len(x.shape) - len(keys))
        chosen = [n for n, k in enumerate(keys) if not isinstance(k, slice)]
        lists = [k for k in keys if isinstance(k, Data) and k.shape]
        if len(keys) > len(x.shape) or chosen != list(range(chosen[0], chosen[-1] + 1)):
            raise self.scope.fail("arrays of indices apart from one another")
        if any(len(k.shape) != 1 for k in lists) or not is_number(value):
            raise self.scope.fail("an array of indices with several axes is written through")
        if not np.can_cast(
            self.math.as_numpy(value).dtype if not is_int(value) else x.dtype, x.dtype, "same_kind"
        ):
            raise self.scope.fail("the value assigned to elements is of another kind")
        count = lists[0].shape[0]
        if type(count) is not int or any(k.shape[0] != count for k in lists):
            raise self.scope.fail("the length of an array of indices is not known")
        self.arrays.writeable(x)
        after = len(keys) - 1 - chosen[-1]
        stored = {n: self._apart(k, x) for n, k in enumerate(keys) if isinstance(k, Data)}
        value, moves = self._values(value, x, after, count)
        self.memory.materialise()
        with self.memory.variable("at") as var, self.scope.loop(var, *dims.loop_range(0, count, 1)):
            turn = dims.symbol(var, None)
            with self.memory.nested_block() as body:
                self._turn(x, keys, stored, value, turn if moves else 0, turn, after, combined)
        self.memory.forget(var)
        if count:
            self.memory.emit(Loop(var, (0, count, 1), tuple(body), loc=self.memory.loc))

    def _turn(
        self, x: Data, keys: list[Value], stored: dict[int, Data], value: Value, row: Dim, turn: Dim,
        after: int,
        combined: Callable[[Value, Value], Value] | None,
    ) -> None:  # fmt: skip
        """Trace the write for one of the indices; ``turn`` is its number."""
        here = list(keys)
        for n, k in stored.items():
            here[n] = self.arrays.getitem(k, turn) if k.shape else k
        if is_array(value) and len(value.shape) > after:
            value = self.arrays.element(value, (Ellipsis, row, *(slice(None),) * after))
        self._write_one(x, tuple(here), value, combined)

    def _write_one(
        self, x: Data, key: Value, value: Value, combined: Callable[[Value, Value], Value] | None
    ) -> None:
        settled = self.arrays.gathers.normalised_key(x, key)
        if combined is not None:
            value = combined(self.arrays.gathers.gather(x, settled), value)
            if not isinstance(value.expr, Load):
                self.memory.store(value)
        with self.arrays.gathers.write_at(x, settled) as inside:
            self.arrays.assign(self.arrays.element(x, inside), value)

    def _apart(self, k: Data, x: Data) -> Data:
        """Return a stored value that shares no element with the array ``x``: a copy if it might."""
        if not k.shape:
            if not isinstance(k.expr, Load):
                self.memory.store(k)
            return k
        assert x.window is not None
        if k.window is None or k.window.array == x.window.array:
            return self.memory.copy(k)
        return k

    def _values(self, value: Value, x: Data, after: int, count: int) -> tuple[Value, bool]:
        """Return the values in memory, and whether there is one for each index, not one for all."""
        if not is_array(value):
            if isinstance(value, Data) and not isinstance(value.expr, Load):
                self.memory.store(value)
            if not (isinstance(value, Data) or is_int(value) or type(value) in (bool, float, complex)):
                raise self.scope.fail("the value assigned to elements is not a number")
            return value, False
        if not value.shape:
            raise self.scope.fail("an array without axes is assigned at places")
        value = self._apart(value, x)
        moves = len(value.shape) > after and value.shape[-1 - after] != 1
        if moves and value.shape[-1 - after] != count:
            raise self.scope.fail("values do not fit the places where they are assigned")
        return value, moves
