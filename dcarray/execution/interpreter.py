"""The op-by-op interpreter: runs each statement of a log in NumPy, without a region or a plan.

A recording runs so as long as it has no plan, at the cost of the same calls written by hand; also when there
is not enough memory for all of it, or when its plan has failed: statements that cannot be computed stay
pending, with all that depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dcarray.core import floor, unpatched, window
from dcarray.core.fp_state import Witness
from dcarray.core.store import Store
from dcarray.ir.log_entries import Declaration, Statement
from dcarray.ir.ops import CALLS, OPS, PLACES, SCANS
from dcarray.lowering.runtime.array_memory import MAPPED, address_of, allocate
from dcarray.recording.log import Recording
from dcarray.recording.operands import DTYPES
from dcarray.recording.replay import Replay
from dcarray.tiering.blas_sharing import is_skinny_product

from .steps import Step

NDArray = np.ndarray[Any, Any]


class OpByOp:
    """One op-by-op run of a recording.

    Parameters
    ----------
    rec : Recording
        The recording, which has not ended.
    steps : tuple of Step
        The steps of its log, from `steps.live_steps`.
    witness : Witness
        Notes the floating-point exceptions of the calls.
    memory : mapping of int to ndarray, optional
        Memory by slots to run on instead of that of the recording's stores, which stay as they are.
    """

    def __init__(
        self,
        rec: Recording,
        steps: tuple[Step, ...],
        witness: Witness,
        memory: Mapping[int, NDArray] | None = None,
    ) -> None:
        self._rec = rec
        self._steps = steps
        self._separate = memory is not None
        self._witness = witness
        self._declared = rec.declarations()
        self._statements = rec.statements()
        self._memory = dict(memory or {})
        self._arrays: dict[int, NDArray] = {}  # the arrays used so far, by slot
        self._parts: dict[int, list[int]] = {}  # the slots among these that are reshapes, by family
        self._copied: set[int] = set()  # the slots of copies
        self.error: Exception | None = None  # of the first statement that could not run
        self.elsewhere = 0.0  # seconds in libraries, of which a plan saves nothing
        self.left: list[int] = []  # the positions of the statements that could not run

    def run(self) -> int:
        """Run all statements that can run; returns their number."""
        pending: set[int] = set()  # families that statements which could not run have still to write
        wanted: set[int] = set()  # and those that they have still to read
        at, perform, statements = self._witness.at, self._perform, self._statements
        with self._witness.watching():
            for k, ins, outs, dying, born in self._steps:
                if not self.left or pending.isdisjoint(ins | outs):
                    try:
                        if wanted and not wanted.isdisjoint(outs):
                            self._copy_pending_reads(wanted & outs)
                            wanted -= outs
                        at(k)
                        perform(statements[k], () if self.left else dying)
                    except Exception as error:
                        # its frames hold memory
                        self.error = self.error or error.with_traceback(None)
                    else:
                        self._hand_over([head for head in dying if head not in wanted], born)
                        continue
                self.left.append(k)
                pending |= outs
                wanted |= ins
        return len(self._steps) - len(self.left)

    def _hand_over(self, dying: Sequence[int], born: Sequence[int]) -> None:
        """Bind the memory of new families to their stores, and free that of dead ones."""
        for head in born:
            self._bind(head)
        for head in dying:
            self._free(head)

    def replay(self) -> Replay:
        """Return the statements that could not run, to be recorded again."""
        left = {k: self._statements[k] for k in self.left}
        done = self._copied.union(*[step.writes for step in self._steps if step.position not in left])
        return Replay(self._rec, left, {k: a for k, a in self._memory.items() if k in done})

    def _copy_pending_reads(self, heads: set[int]) -> None:
        """Copy arrays about to be written that statements which could not run have yet to read."""
        copies: dict[int, int] = {}
        for k in self.left:
            entry = self._statements[k]
            for read, _, _ in entry.arrays:
                if read not in copies and self._declared[read].head in heads:
                    a = self._array(read).copy()
                    copies[read] = slot = len(self._declared)
                    self._declared.append(Declaration("new", a.dtype.char, a.shape, None, slot))
                    self._memory[slot] = a
                    self._copied.add(slot)
        for k in self.left:
            entry = self._statements[k]
            args = [a if type(a) is int else (copies.get(a[0], a[0]), *a[1:]) for a in entry.args]
            self._statements[k] = entry._replace(args=tuple(args))

    def _free(self, head: int) -> None:
        """Free the memory of a dead family."""
        self._memory.pop(head, None)
        for slot in (head, *self._parts.pop(head, ())):
            self._arrays.pop(slot, None)

    # ---- one statement ---------------------------------------------------------------------------------
    def _perform(self, entry: Statement, dying: tuple[int, ...]) -> None:
        """Run one statement; a failed allocation leaves its target unchanged.  The families in ``dying`` are
        dead afterwards."""
        op, shape = entry.op, entry.shape
        if entry.kind == "call":
            outs = [self._array(slot) for slot in entry.outs]
            args: list[Any] = [self._window(*arg) for arg in entry.args]
            args = [x.copy() if any(np.may_share_memory(x, out) for out in outs) else x for x in args]
            start = unpatched.perf_counter()
            CALLS[op].reference(tuple(outs), tuple(args), dict(entry.attrs))
            # a plan saves time in matrix-vector products, and in products of a matrix with few rows
            if (
                op == "blas.matmul"
                and all(x.ndim == 2 for x in args)
                and not is_skinny_product(args[0].shape, args[1].shape, args[0].dtype.char)
            ):
                self.elsewhere += unpatched.perf_counter() - start
            return
        types, result = _split_loop(entry.loop)
        slot = entry.out
        if entry.kind == "fold":
            axes, keepdims, (arg,), out = entry.axes, entry.keepdims, entry.args, self._array(slot)
            ufunc: Any = None if op in PLACES else OPS[SCANS.get(op, op)].reference
            value = self._value(arg, shape, types[0], op not in PLACES and types[0] == result)
            if value.shape != shape:
                value = np.broadcast_to(value, shape)
            if op in SCANS:
                ufunc.accumulate(value, axes[0], DTYPES[result], out)
            elif op in PLACES:
                getattr(np, op)(value, axes[0] if len(axes) == 1 else None, out, keepdims=keepdims)
            elif op == "add" and value.dtype.char == "?" and len(axes) == len(shape) and result == "l":
                out[...] = np.count_nonzero(value)  # NumPy's sum takes 20 times as long
            else:
                ufunc.reduce(value, axes, DTYPES[result], out, keepdims)
            return
        index, function = entry.index, OPS[op].reference
        if op == "where":
            function = floor.choice or function
        plain = op != "cast" and isinstance(function, np.ufunc)
        values = [self._value(arg, shape, char, plain) for arg, char in zip(entry.args, types, strict=True)]
        if self._is_unallocated(slot):
            if (
                op == "cast"
                and type(entry.args[0]) is int
                and self._fill_zeros(slot, index, shape, values[0])
            ):
                return
            if plain and dying and index is None and result == self._declared[slot].char:
                self._take_over(slot, shape, result, entry.args, dying)
        target = self._window(slot, index, shape)
        if plain and target.dtype.char == result:
            same = all(value.dtype.char == char for value, char in zip(values, types, strict=True))
            function(*values, out=target, **({} if same else {"signature": entry.loop}))
            return
        elements = values[0] if op == "cast" else function(*values)
        np.copyto(target, _real(elements, target.dtype), casting="unsafe")

    def _is_unallocated(self, slot: int) -> bool:
        """Whether a slot is a new array without memory as yet."""
        store = self._store(slot)
        return (
            slot not in self._memory
            and self._declared[slot].head == slot
            and (store is None or store.mem is None)
        )

    def _fill_zeros(self, slot: int, index: window.Index | None, shape: Any, value: Any) -> bool:
        """Make a new array of zeros, if it is to be filled with zeros as a whole."""
        char, own = self._declared[slot].char, self._declared[slot].shape
        if any(value.tobytes()) or shape != own or (index is not None and index != window.identity(len(own))):
            return False
        self._memory[slot] = np.zeros(own, DTYPES[char])
        return True

    def _take_over(self, slot: int, shape: Any, char: str, args: Any, dying: tuple[int, ...]) -> None:
        """Give a new array the memory of an operand that dies here, as NumPy does with temporaries."""
        for arg in args:
            if type(arg) is int or arg[0] not in dying or arg[1] is not None:
                continue
            memory = self._memory.get(arg[0])
            if memory is not None and memory.shape == shape and memory.dtype.char == char:
                self._memory[slot] = memory
                return

    def _value(self, arg: Any, domain: tuple[int, ...], char: str, parts: bool = False) -> Any:
        """Return an argument in the dtype of the loop; with ``parts`` a large one may have any dtype that the
        ufunc converts safely, buffer by buffer."""
        if type(arg) is int:
            a = self._rec.views[self._rec.kinds[arg]][arg : arg + 1].reshape(())
        else:
            slot, index, shape = arg
            a = self._window(slot, index, domain if shape is None else shape)
        if a.dtype.char == char or (parts and a.nbytes >= MAPPED and np.can_cast(a.dtype, DTYPES[char])):
            return a
        return _real(a, DTYPES[char]).astype(DTYPES[char])

    def _window(self, slot: int, index: window.Index | None, shape: Any) -> NDArray:
        a = self._array(slot)
        return a if index is None else window.view(a, a.shape if shape is None else shape, index)

    def _array(self, slot: int) -> NDArray:
        """Return the memory of a slot, allocated on first use."""
        known = self._arrays.get(slot)
        if known is not None:
            return known
        entry = self._declared[slot]
        head = entry.head
        store = self._store(slot)
        if store is not None and store.mem is not None:
            memory = store.mem
        elif slot in self._memory:
            memory = self._memory[slot]
        elif head != slot:
            memory = self._array(head).view(entry.char).reshape(entry.shape)
            self._parts.setdefault(head, []).append(slot)
        else:
            memory = self._memory[slot] = allocate(entry.shape, DTYPES[entry.char])[0]
        self._arrays[slot] = memory
        return memory

    def _store(self, slot: int) -> Store | None:
        """Return the store of a slot, if it is alive and the run works on the stores."""
        return None if self._separate else self._rec.store_at(slot)

    def _bind(self, head: int) -> None:
        """Bind the memory of a new family to its store, if that is alive."""
        store = self._store(head)
        if store is not None and store.mem is None and head in self._memory:
            store.bind_new(self._memory[head], address_of(self._memory[head]))


@lru_cache(1024)
def _split_loop(text: str) -> tuple[str, str]:
    """Return the dtype characters of a loop's arguments and of its result."""
    types, result = text.split("->")
    return types, result


def _real(a: Any, dtype: np.dtype[Any]) -> Any:
    """Return the array to convert, without NumPy's warning of discarded imaginary parts."""
    return a.real if a.dtype.kind == "c" and dtype.kind not in "cb" else a
