"""Blocked statements: element-wise statements of a recording without a plan, a block of elements at a time.

NumPy's own inner loops do them, all statements of a group on one block of some thousand elements before the
next block, and several threads share the blocks.  Intermediate results that only the group needs stay in the
nearest cache and are never stored.  This needs no compiler, so it serves a program from its first call on,
until there are plans.  The runs are in C (`blocked_statements.h`), and `statement_groups` says which
statements may form a group; here are the programs of groups, and their operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dcarray.core.native import BUILT
from dcarray.core.ufunc_loops import SUMS_BEGIN_WITH
from dcarray.ir.log_entries import Declaration, Statement
from dcarray.ir.ops import OPS
from dcarray.recording.operands import DTYPES

from .statement_groups import Members

if TYPE_CHECKING:
    from .interpreter import OpByOp
    from .steps import Step

if BUILT:
    from dcarray._native.extension import make_block_program, run_block_program

__all__ = ["Group", "groups"]

MOST_ARRAYS = 40
MOST_PARTS = 24
SHARED = 1 << 16  # elements, in all statements, from which on a second thread pays
MOST_THREADS = 64


class Operand(NamedTuple):
    """An array that a group uses, as an argument or target in the log describes it."""

    given: Any  # the number of a scalar, or (slot, index, shape)
    char: str  # the dtype that the program expects
    written: bool


class Group(NamedTuple):
    """Statements of a log that run together.

    Attributes
    ----------
    length : int
        The number of live steps in the group.
    domain : tuple of int
        The shape over which all statements of the group go.
    program : object
        The group's program for the C module.
    operands : tuple of Operand
        The arrays that the group uses; those that it writes come last.
    culprits : tuple of int
        For each of the program's steps, the position of its statement in the log.
    threads : int
        The number of threads that may share the work.
    """

    length: int
    domain: tuple[int, ...]
    program: Any
    operands: tuple[Operand, ...]
    culprits: tuple[int, ...]
    threads: int

    def run(self, run: OpByOp, threads: int) -> bool:
        """Run the statements of the group for the interpreter's ``run``, and note the floating-point
        exceptions of each; return False if nothing was done."""
        arrays = tuple([run.operand(operand.given, operand.char, self.domain) for operand in self.operands])
        raised = run_block_program(self.program, self.domain, arrays, min(threads, self.threads))
        if raised is None:
            return False
        if any(raised):
            bits = dict.fromkeys(self.culprits, 0)
            for culprit, some in zip(self.culprits, raised, strict=True):
                bits[culprit] |= some
            for culprit, some in bits.items():
                run.note(culprit, some)
        return True


def groups(
    declared: Sequence[Declaration], statements: Sequence[Statement], steps: Sequence[Step]
) -> dict[int, Group]:
    """Return the groups of a log's live steps, by the number of their first step."""
    found: dict[int, Group] = {}
    k = 0
    while BUILT and k < len(steps):
        members = Members(declared, statements, steps)
        for number in range(k, len(steps)):
            if not members.takes(number):
                break
        group = _group(members) if members.pays() else None
        if group is not None:
            found[k] = group
        k += max(1, len(members.steps))
    return found


def _group(members: Members) -> Group | None:
    """Return the group of these statements; None if one has no inner loop of NumPy's, or they use too many
    arrays."""
    program = _Program(members)
    return program.finished() if all(map(program.add, members.steps)) else None


class _Program:
    """The steps of a group's program, with the places of their operands: arrays, and parts, which are
    blocks of values that are needed until their last use."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.inner = members.parts()
        self.steps: list[list[Any]] = []  # of places: ("array", operand) or ("value", number)
        self.culprits: list[int] = []
        self.values: dict[int, int] = {}  # by family
        self.chars: list[str] = []  # of the values
        self.operands: dict[Any, Operand] = {}

    def add(self, step: Step) -> bool:
        """Add the loops of a statement; False if it has none."""
        declared, entry = self.members.declared, self.members.statements[step.position]
        op, slot, index = entry.op, entry.out, entry.index
        types, result = entry.loop.split("->")
        places = [self._argument(arg, char) for arg, char in zip(entry.args, types, strict=True)]
        if entry.kind == "fold":
            target = self._array(Operand((slot, None, None), result, True))
            self._step(OPS[op].reference, types, True, [*places, target])
            self.culprits += [step.position] * (len(self.steps) - len(self.culprits))
            return True
        char = declared[slot].char
        if declared[slot].head in self.inner:
            target = ("value", self._value(char))
        else:
            (slot, index), shape = self.members.access(slot, index, entry.shape)
            target = self._array(Operand((slot, index, shape), char, True))
        if op == "cast":
            self._step("cast", types + char, False, [*places, target])
        else:
            same = char == result
            made = target if same else ("value", self._value(result))
            what: Any = "where" if op == "where" else OPS[op].reference
            self._step(what, types + result, False, [*places, made])
            if not same:
                self._step("cast", result + char, False, [made, target])
        if target[0] == "value":
            self.values[declared[slot].head] = target[1]
        self.culprits += [step.position] * (len(self.steps) - len(self.culprits))
        return True

    def _value(self, char: str) -> int:
        self.chars.append(char)
        return len(self.chars) - 1

    def _array(self, operand: Operand) -> Any:
        key = operand.given, operand.char
        known = self.operands.get(key)
        if known is None or operand.written:
            self.operands[key] = operand
        return "array", key

    def _argument(self, arg: Any, char: str) -> Any:
        """Return the place of an argument in the dtype of its loop."""
        declared = self.members.declared
        if type(arg) is int:
            return self._array(Operand(arg, char, False))
        slot, index, shape = arg
        value = self.values.get(declared[slot].head)
        own = declared[slot].char
        if value is not None:
            place: Any = ("value", value)
        else:
            whole, size = self.members.access(slot, index, shape or self.members.domain)
            place = self._array(Operand((*whole, size), own, False))
        if own == char:
            return place
        converted = ("value", self._value(char))
        self._step("cast", own + char, False, [place, converted])
        return converted

    def _step(self, what: Any, letters: str, fold: bool, places: list[Any]) -> None:
        self.steps.append([what, letters, fold, *places])

    def finished(self) -> Group | None:
        """Return the group."""
        members = self.members
        ordered = sorted(self.operands.values(), key=lambda operand: operand.written)
        numbers = {(operand.given, operand.char): k for k, operand in enumerate(ordered)}
        parts, chars = self._parts()
        if len(ordered) > MOST_ARRAYS or len(chars) > MOST_PARTS:
            return None
        steps = tuple(
            (*step[:3], *[numbers[key] if kind == "array" else ~parts[key] for kind, key in step[3:]])
            for step in self.steps
        )
        program = make_block_program(steps, "".join([o.char for o in ordered]), chars, SUMS_BEGIN_WITH)
        if program is None:
            return None
        size = math.prod(members.domain)
        threads = MOST_THREADS if size * len(steps) >= SHARED else 1
        culprits = tuple(self.culprits)
        return Group(len(members.steps), members.domain, program, tuple(ordered), culprits, threads)

    def _widths(self, step: list[Any]) -> set[int]:
        """Return the numbers of bytes of the elements of a step's operands and result."""
        return {DTYPES[char].itemsize for char in step[1]}

    def _parts(self) -> tuple[dict[int, int], str]:
        """Return for each intermediate value the number of its block of memory, which later values reuse, and
        the dtypes that give the blocks' widths."""
        last = {key: k for k, step in enumerate(self.steps) for kind, key in step[3:] if kind == "value"}
        parts: dict[int, int] = {}
        chars: list[str] = []
        busy: dict[int, int] = {}  # by part: the value that it has
        for k, step in enumerate(self.steps):
            for kind, key in step[3:]:
                if kind != "value" or key in parts:
                    continue
                width = DTYPES[self.chars[key]].itemsize
                free = [
                    p
                    for p, used in busy.items()
                    if last[used] < k or (last[used] == k and self._widths(step) == {width})
                ]
                if not free:
                    free.append(len(chars))
                    chars.append(self.chars[key])
                part = parts[key] = free[0]
                busy[part] = key
                chars[part] = max(chars[part], self.chars[key], key=lambda char: DTYPES[char].itemsize)
        return parts, "".join(chars)
