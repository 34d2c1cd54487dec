"""Groups of statements that may run together, a block of elements at a time: which are legal, and worth it.

A block of one statement runs before other blocks of earlier statements.  The result is the same if each
element that one statement of the group writes, and another one reads or writes, is at the same place of both
their domains. Other statements begin a new group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.core.window import Index, identity
from dcarray.ir.log_entries import Declaration, Statement
from dcarray.ir.ops import OPS

from .steps import Step

MOST_STATEMENTS = 40
LEAST = 1 << 13  # elements of a statement
ROUNDED = 1 << 17  # elements from which on a sum is worth to have other last bits than NumPy's
ALONE = 1 << 17  # elements from which on a statement by itself gains by threads
FOLDS = frozenset({"add", "multiply", "maximum", "minimum", "fmax", "fmin"})
ERRORS = frozenset({"power", "float_power"})  # whose loops raise errors of Python's where they give integers
SUPPLIED = frozenset({"where", "cast"})  # whose loops the C module has

Access = tuple[int, Index | None]
"""A slot, and the window of it that a statement reads or writes."""


class Members:
    """The steps of a group that is being formed."""

    def __init__(
        self, declared: Sequence[Declaration], statements: Sequence[Statement], steps: Sequence[Step]
    ) -> None:
        self.declared, self.statements, self.every = declared, statements, steps
        self.steps: list[Step] = []
        self.domain: tuple[int, ...] = ()
        self.read: dict[int, set[tuple[Access, Any]]] = {}  # by family
        self.written: dict[int, set[tuple[Access, Any]]] = {}
        self.folded: set[int] = set()  # families

    def takes(self, number: int) -> bool:
        """Add a step and return True; False if its statement may not run block by block with the others."""
        step = self.every[number]
        entry = self.statements[step.position]
        fold = entry.kind == "fold"
        if len(self.steps) >= MOST_STATEMENTS or entry.kind == "call" or self._is_masked_reduction(number):
            return False
        if entry.shape != self.domain if self.steps else math.prod(entry.shape) < LEAST:
            return False
        if not (self._is_fold(entry) if fold else self._is_map(entry)):
            return False
        if entry.op == "cast" and type(entry.args[0]) is int and not self._is_used_soon(number):
            return False  # memory of zeros that nobody writes is none
        ins = [self.access(slot, index, shape or entry.shape) for slot, index, shape in entry.arrays]
        out = None if fold else self.access(entry.out, entry.index, entry.shape)
        if not self._are_in_step(ins, out, entry.out if fold else None):
            return False
        for access in ins:
            self.read.setdefault(self._head(access), set()).add(access)
        if out is None:
            self.folded.add(self.declared[entry.out].head)
        else:
            self.written.setdefault(self._head(out), set()).add(out)
        self.domain = entry.shape
        self.steps.append(step)
        return True

    def _head(self, access: Any) -> int:
        head: int = self.declared[access[0][0]].head
        return head

    def access(self, slot: int, index: Index | None, shape: tuple[int, ...]) -> tuple[Access, Any]:
        """Return a window, the same for all ways to say that it is all of an array."""
        own = self.declared[slot].shape
        return (slot, None if index == identity(len(own)) and shape == own else index), shape

    def _is_map(self, entry: Statement) -> bool:
        """Whether a statement is element-wise, and has a loop."""
        op, loop = entry.op, entry.loop
        if not entry.shape or "e" in loop or "g" in loop:
            return False
        if op in SUPPLIED:
            return True
        whole = loop[-1] in "bBhHiIlLqQ" and op in ERRORS
        return isinstance(OPS[op].reference, np.ufunc) and not whole

    def _is_masked_reduction(self, number: int) -> bool:
        """Whether a step and the next one are a reduction of few elements, which NumPy selects first."""
        every = self.every
        return every[number].joined and self.statements[every[number + 1].position].kind == "fold"

    def _is_used_soon(self, number: int) -> bool:
        """Whether one of the next statements over its elements uses an array that a step fills with a
        number."""
        filled = self.statements[self.every[number].position]
        head = self.declared[filled.out].head
        for step in self.every[number + 1 : number + 4]:
            if head in step.reads or head in step.writes:
                return bool(self.statements[step.position].shape == filled.shape)
        return False

    def _is_fold(self, entry: Statement) -> bool:
        """Whether a statement reduces all elements by an inner loop whose result has its operand's dtype."""
        op, loop, domain, made = entry.op, entry.loop, entry.shape, self.declared[entry.out]
        (arg,) = entry.args
        kinds = loop[0] == loop[-1] and loop[0] in "lLfdFDiI" and len(loop) == 4
        whole = type(arg) is tuple and (arg[2] or self.declared[arg[0]].shape) == domain
        if op in ("add", "multiply") and loop[0] in "fdFD" and math.prod(domain) < ROUNDED:
            return False
        return (
            op in FOLDS and len(entry.axes) == len(domain) > 0 and kinds and whole
            and made.char == loop[-1] and made.is_new
        )  # fmt: skip

    def _are_in_step(self, ins: Any, out: Any, folded: int | None) -> bool:
        """Whether a statement depends on those before it only element by element, and they on it."""
        for access in ins:
            head = self._head(access)
            if head in self.folded or not self._meet_at_once(access, self.written.get(head, ())):
                return False
            if out is not None and head == self._head(out) and not self._meet_at_once(access, (out,)):
                return False
        if folded is not None:
            head = self.declared[folded].head
            return head not in self.folded and head not in self.read and head not in self.written
        head = self._head(out)
        before = (*self.read.get(head, ()), *self.written.get(head, ()))
        return head not in self.folded and self._meet_at_once(out, before)

    def _meet_at_once(self, access: Any, others: Any) -> bool:
        """Whether the elements of a window are those of each other window, in order, or none of them."""
        return all(access == other or _are_disjoint(access, other) for other in others)

    def pays(self) -> bool:
        """Whether running the group is faster than running its statements one by one."""
        return len(self.steps) > 1 or (bool(self.steps) and math.prod(self.domain) >= ALONE)

    def parts(self) -> set[int]:
        """Return the families of memory that only statements of the group use."""
        born = {head for step in self.steps for head in step.born}
        dead = {head for step in self.steps for head in step.dying}
        whole = {
            head
            for head in born & dead
            if all(
                a == ((head, None), self.domain)
                for a in (*self.read.get(head, ()), *self.written.get(head, ()))
            )
            and self.declared[head].shape == self.domain
        }
        return whole - self.folded


def _are_disjoint(one: Any, two: Any) -> bool:
    """Whether two windows of one array have no element in common, as far as a single axis tells."""
    (slot, index), shape = one
    (other, second), length = two
    if slot != other or index is None or second is None:
        return False
    for (a, s, axis), (b, t, along) in zip(index, second, strict=True):
        ends = (
            a + s * (1 if axis is None else shape[axis]) - s,
            b + t * (1 if along is None else length[along]) - t,
        )
        if max(a, ends[0]) < min(b, ends[1]) or max(b, ends[1]) < min(a, ends[0]):
            return True
    return False
