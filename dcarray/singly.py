"""What does not run as a whole runs call by call: each entry of a log in NumPy, with no region and no plan.

This is how a recording ends when there is no memory for all of it, or when something went wrong on the way
to its plan: what can be computed is computed, and what cannot stays pending, with all that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from . import window
from .again import Again, rewritten
from .forms import reads, writes
from .ir.ops import CALLS, OPS
from .lowering.memory import address_of, empty
from .operands import DTYPES
from .recording import Recording

NDArray = np.ndarray[Any, Any]
Around = Callable[[Any], AbstractContextManager[Any]]


class Singly:
    """One run of a recording, call by call.

    Parameters
    ----------
    rec : Recording
        What to run; it has not ended.
    memory : mapping of int to ndarray
        Memory of slots: what statements before ``start`` have computed, or what was allocated already.
    start : int
        The first statement that has not run.
    """

    def __init__(self, rec: Recording, memory: Mapping[int, NDArray] | None = None, start: int = 0) -> None:
        self._rec = rec
        self._declared = rec.declarations()
        self._statements = rec.statements()
        self._memory = dict(memory or {})
        self._start = start
        self._computed: set[int] = set()
        self.error: Exception | None = None  # why the first statement that is left could not run
        self.left: list[int] = []  # the positions of the statements that could not run

    def run(self, around: Around) -> int:
        """Run what can be run, each statement in ``around(position)``; gives the number of statements run."""
        last = self._last_uses()
        for k in range(self._start):
            self._bind(k)
        pending: set[int] = set()  # families that a statement which is left has still to write
        wanted: set[int] = set()  # and that it has still to read
        ran = 0
        for k in range(self._start, len(self._statements)):
            if k not in last:
                continue
            entry = self._statements[k]
            ins, outs = self._heads(entry)
            if pending.isdisjoint(ins | outs):
                try:
                    if not wanted.isdisjoint(outs):
                        self._set_aside(wanted & outs)
                        wanted -= outs
                    with around(k):
                        self._perform(entry)
                except Exception as error:
                    # its frames hold memory
                    self.error = self.error or error.with_traceback(None)
                else:
                    ran += 1
                    self._bind(k)
                    for head in last[k]:
                        if head not in wanted:
                            self._memory.pop(head, None)
                    continue
            self.left.append(k)
            pending |= outs
            wanted |= ins
        return ran

    def again(self) -> Again:
        """What is left, to be recorded again."""
        left = {k: self._statements[k] for k in self.left}
        computed = {k: a for k, a in self._memory.items() if k in self._computed}
        return Again(self._rec, left, computed)

    # ---- what there is to do -------------------------------------------------------------------------
    def _heads(self, entry: tuple[Any, ...]) -> tuple[set[int], set[int]]:
        """The families that a statement reads and writes."""
        ins = {self._declared[arg[0]][-1] for arg in reads(entry) if type(arg) is not int}
        return ins, {self._declared[slot][-1] for slot in writes(entry)}

    def _last_uses(self) -> dict[int, list[int]]:
        """The statements that somebody can see, each with the temporaries that no later one needs."""
        declared, rec = self._declared, self._rec
        kept = {
            entry[-1]
            for k, entry in enumerate(declared)
            if entry[0] == "old" or (entry[-1] == k and rec.store_at(k) is not None)
        }
        needed = set(kept)
        last: dict[int, list[int]] = {}
        for k in range(len(self._statements) - 1, -1, -1):
            ins, outs = self._heads(self._statements[k])
            if needed.isdisjoint(outs):
                continue
            last[k] = list((ins | outs) - needed - kept)
            needed |= ins | outs
        return last

    def _set_aside(self, heads: set[int]) -> None:
        """Copy what statements that are left have still to read of these families, which will be written."""
        copies: dict[int, int] = {}
        for k in self.left:
            entry = self._statements[k]
            for arg in reads(entry):
                if type(arg) is not int and arg[0] not in copies and self._declared[arg[0]][-1] in heads:
                    a = self._array(arg[0]).copy()
                    copies[arg[0]] = slot = len(self._declared)
                    self._declared.append(("new", a.dtype.char, a.shape, slot))
                    self._memory[slot] = a
                    self._computed.add(slot)
        for k in self.left:
            entry = self._statements[k]
            args = [a if type(a) is int else (copies.get(a[0], a[0]), *a[1:]) for a in reads(entry)]
            self._statements[k] = rewritten(entry, writes(entry), args)

    # ---- one statement ---------------------------------------------------------------------------------
    def _perform(self, entry: tuple[Any, ...]) -> None:
        """Run one statement; a failed allocation leaves its target as it was."""
        kind, op = entry[:2]
        if kind == "call":
            outs = [self._array(slot) for slot in entry[2]]
            args: list[Any] = [self._window(*arg) for arg in entry[3]]
            args = [x.copy() if any(np.may_share_memory(x, out) for out in outs) else x for x in args]
            CALLS[op].reference(tuple(outs), tuple(args), dict(entry[4]))
            return
        types, result = entry[2].split("->")
        shape = entry[3]
        values = [self._value(arg, shape, char) for arg, char in zip(reads(entry), types, strict=True)]
        if kind == "fold":
            _, _, _, _, axes, keepdims, slot, _ = entry
            out = self._array(slot)
            ufunc: Any = OPS[op].reference
            ufunc.reduce(np.broadcast_to(values[0], shape), axes, DTYPES[result], out, keepdims)
            return
        target = self._window(entry[4], entry[5], shape)
        if op == "cast" or not isinstance(OPS[op].reference, np.ufunc):
            made = values[0] if op == "cast" else OPS[op].reference(*values)
            np.copyto(target, _real(made, target.dtype), casting="unsafe")
        elif target.dtype.char == result:
            OPS[op].reference(*values, out=target)
        else:
            made = OPS[op].reference(*values)
            np.copyto(target, _real(made, target.dtype), casting="unsafe")

    def _value(self, arg: Any, domain: tuple[int, ...], char: str) -> Any:
        """An argument as the dtype that the loop takes."""
        if type(arg) is int:
            a = self._rec.views[self._rec.kinds[arg]][arg : arg + 1].reshape(())
        else:
            slot, index, shape = arg
            a = self._window(slot, index, domain if shape is None else shape)
        return a if a.dtype.char == char else _real(a, DTYPES[char]).astype(DTYPES[char])

    def _window(self, slot: int, index: window.Index | None, shape: Any) -> NDArray:
        a = self._array(slot)
        return a if index is None else window.view(a, a.shape if shape is None else shape, index)

    def _array(self, slot: int) -> NDArray:
        """The memory of a slot, which is made when it is first asked for."""
        entry = self._declared[slot]
        head = entry[-1]
        store = self._rec.store_at(slot)
        if store is not None and store.mem is not None:
            return store.mem
        if head != slot:
            part: NDArray = self._array(head).view(entry[1]).reshape(entry[2])
            return part
        found = self._memory.get(slot)
        if found is None:
            found = self._memory[slot] = empty(entry[2], DTYPES[entry[1]])
        return found

    def _bind(self, position: int) -> None:
        """Hand what a statement has computed to those who hold it."""
        for slot in writes(self._statements[position]):
            head = self._declared[slot][-1]
            self._computed.add(head)
            store = self._rec.store_at(head)
            if store is not None and store.mem is None and head in self._memory:
                store.bind_new(self._memory[head], address_of(self._memory[head]))


def _real(a: Any, dtype: np.dtype[Any]) -> Any:
    """What the conversion means, without NumPy's warning of discarded imaginary parts."""
    return a.real if a.dtype.kind == "c" and dtype.kind not in "cb" else a
