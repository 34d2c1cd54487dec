"""Def-use information of the statements of one body, and which of these may be moved.

The statements of a body form a `Block`.  A loop or branch in it counts as touching any element of its
arrays; for the block of an inner body, an array is local only if nothing outside touches it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Literal, TypeGuard

from dcarray.ir import dims
from dcarray.ir.analysis.effects import Reason, anywhere, touched_arrays
from dcarray.ir.memo import kept
from dcarray.ir.nodes import Array, Branch, Call, Compute, Gather, Group, Loop, Region, Stmt, While, Window
from dcarray.ir.records import record
from dcarray.ir.statements import bodies, with_bodies

from .base import Log, Pass
from .exprs import loads_of
from .match import containing_map, meets, writes_all

#: How an element is read: through a plain load, at a data-dependent place, as the start of a fold, by a
#: library call, or somewhere in a loop or a branch.
Kind = Literal["load", "gather", "fold", "call", "inside"]

#: The most accesses of live arrays that are followed: a bound on planning time.
_LOOK_AHEAD = 16


@record(frozen=True, slots=True)
class Use:
    """A window that the statement at a position reads."""

    pos: int
    window: Window
    kind: Kind


class Facts:
    """Facts about a region's arrays: which of them share memory, which are results, and which bodies use
    them."""

    __slots__ = ("arrays", "blocks", "kept", "region", "roots", "shared", "variables")

    def __init__(self, region: Region) -> None:
        self.region = region
        self.arrays: dict[str, Array] = {array.name: array for array in region.arrays}
        self.roots: dict[str, str] = {name: self._root(name) for name in self.arrays}
        self.kept: set[str] = set()
        members: dict[str, int] = {}
        for name, root in self.roots.items():
            members[root] = members.get(root, 0) + 1
            if self.arrays[name].role != "temp":
                self.kept.add(root)
        self.shared = {root for root, count in members.items() if count > 1}
        # the numbers of the bodies in which the leaf statements that touch a family stand
        self.blocks: dict[str, set[int]] = {}
        self.variables: set[str] = set()
        if any(bodies(stmt) for stmt in region.body):
            self._locate(region.body, count())

    def _root(self, name: str) -> str:
        while (base := self.arrays[name].base) is not None:
            name = base
        return name

    def _locate(self, body: tuple[Stmt, ...], numbers: Iterator[int]) -> None:
        here = next(numbers)
        for stmt in body:
            if isinstance(stmt, Loop):
                self.variables.add(stmt.var)
            for part in bodies(stmt):
                self._locate(part, numbers)
            touched: Iterable[str] = ()
            if isinstance(stmt, (While, Branch)):
                touched = [node.window.array for node in loads_of(stmt.cond)]
            elif not isinstance(stmt, Loop):
                touched = touched_arrays(stmt)
            for name in touched:
                self.blocks.setdefault(self.roots[name], set()).add(here)

    def overlap(self, a: Window, b: Window) -> bool | None:
        """Whether two windows, of one array or two, share memory; None if that is not known."""
        if a.array == b.array:
            return meets(a, b)
        return None if self.roots[a.array] == self.roots[b.array] else False


@kept
def reads_of(stmt: Stmt) -> tuple[tuple[Window, Kind], ...]:
    """Return the windows that a statement reads, each with the kind of access."""
    if isinstance(stmt, Compute):
        accesses: list[tuple[Window, Kind]] = []
        for node in loads_of(stmt.body):
            accesses.append(
                (anywhere(node.window.array), "gather") if isinstance(node, Gather) else (node.window, "load")
            )
        if stmt.combine is not None:
            if stmt.init is None:
                accesses.append((stmt.target, "fold"))
            else:
                accesses += [(anywhere(node.window.array), "fold") for node in loads_of(stmt.init)]
        return tuple(accesses)
    if isinstance(stmt, Call):
        return tuple([(window, "call") for window in stmt.reads])
    if isinstance(stmt, Group):
        # writes in the nest itself may come after the read
        own = {window.array for window in writes_of(stmt)}
        uses = [use for part in stmt.body for use in reads_of(part)]
        return tuple([(w, "inside" if w.array in own else kind) for w, kind in uses])
    inner = [use for body in bodies(stmt) for part in body for use in reads_of(part)]
    cond = loads_of(stmt.cond) if isinstance(stmt, While | Branch) else ()
    names = dict.fromkeys([window.array for window, _ in inner] + [node.window.array for node in cond])
    return tuple([(anywhere(name), "inside") for name in names])


@kept
def writes_of(stmt: Stmt) -> tuple[Window, ...]:
    """Return the windows that a statement writes."""
    if isinstance(stmt, Compute):
        return (stmt.target,)
    if isinstance(stmt, Call):
        return stmt.writes
    if isinstance(stmt, Group):
        return tuple(window for part in stmt.body for window in writes_of(part))
    names = dict.fromkeys(w.array for body in bodies(stmt) for part in body for w in writes_of(part))
    return tuple(anywhere(name) for name in names)


class Block:
    """The statements of one body, with an index from each memory to the positions that access it.

    Positions are stable while statements are replaced or removed.
    """

    __slots__ = ("_touched", "facts", "key", "nested", "reads", "stmts", "writes", "written")

    def __init__(self, body: tuple[Stmt, ...], facts: Facts, key: int = 0) -> None:
        self.key = key
        self.facts = facts
        self.nested = key > 0
        self.stmts: list[Stmt | None] = list(body)
        self.reads: list[tuple[tuple[Window, Kind], ...]] = []
        self.writes: list[tuple[Window, ...]] = []
        self._touched: dict[str, list[int]] = {}
        self.written: set[str] = set()  # the families that some statement writes, or wrote once
        for pos, stmt in enumerate(body):
            self.reads.append(reads_of(stmt))
            self.writes.append(writes_of(stmt))
            self.written.update(facts.roots[window.array] for window in self.writes[pos])
            for root in self._roots_at(pos):
                self._touched.setdefault(root, []).append(pos)

    def _roots_at(self, pos: int) -> set[str]:
        roots, stmt = self.facts.roots, self.stmts[pos]
        return set() if stmt is None else {roots[name] for name in touched_arrays(stmt)}

    def replace(self, pos: int, stmt: Stmt | None) -> None:
        """Replace the statement at a position; with None, remove it."""
        before = self._roots_at(pos)
        self.stmts[pos] = stmt
        self.reads[pos] = reads_of(stmt) if stmt is not None else ()
        self.writes[pos] = writes_of(stmt) if stmt is not None else ()
        after = self._roots_at(pos)
        for root in before:
            if root not in after:
                self._touched[root].remove(pos)
        for root in after:
            if root not in before:
                insort(self._touched.setdefault(root, []), pos)

    def body(self) -> tuple[Stmt, ...]:
        """Return the statements that remain."""
        return tuple(stmt for stmt in self.stmts if stmt is not None)

    def touching(self, array: str, after: int) -> list[int]:
        """Return the positions of later statements that access the memory of ``array``, in order."""
        positions = self._touched.get(self.facts.roots[array], [])
        return positions[bisect_right(positions, after) :]

    def before(self, array: str, pos: int) -> list[int]:
        """Return the positions of earlier statements that access the memory of ``array``, in order."""
        positions = self._touched.get(self.facts.roots[array], [])
        return positions[: bisect_left(positions, pos)]

    def only_at(self, array: str, pos: int) -> bool:
        """Whether nothing but the statement at ``pos`` touches the memory of ``array``."""
        root = self.facts.roots[array]
        local = not self.nested or self.facts.blocks.get(root) == {self.key}
        return local and self._touched.get(root) == [pos]

    # ---- what becomes of a written window -------------------------------------------------------------
    def uses(self, pos: int, target: Window) -> tuple[list[Use], Reason | None]:
        """Return the reads of the values that the statement at ``pos`` writes to ``target``, and a reason if
        there may be further reads, so that the values must be stored; else None."""
        facts, roots = self.facts, self.facts.roots
        root = roots[target.array]
        lives = root in facts.kept
        shadows: list[Window] = []
        uses: list[Use] = []
        for seen, q in enumerate(self.touching(target.array, pos)):
            if lives and seen >= _LOOK_AHEAD:
                break
            for window, kind in self.reads[q]:
                if roots[window.array] != root or self._never_meet(target, window):
                    continue
                uses.append(Use(q, window, kind))
                reason = self._partial_read(target, window, kind, shadows)
                if reason is not None:
                    return uses, reason
            for window in self.writes[q]:
                if roots[window.array] != root or facts.overlap(target, window) is False:
                    continue
                if self._always_writes(q) and writes_all(window, target):
                    return uses, None
                shadows.append(window)
        return uses, self._reason_to_store(pos, target)

    def _partial_read(
        self, target: Window, window: Window, kind: Kind, shadows: list[Window]
    ) -> Reason | None:
        """Return why a read of ``window`` may include elements that ``target`` does not write; else None."""
        if kind == "inside":
            return Reason(f"{target.array} is read in another body or nest", (window,))
        if window.array != target.array:
            return Reason(f"{target.array} is read as {window.array}", (target, window))
        if kind != "gather" and containing_map(target, window) is None:
            return Reason(
                f"{target.array} is read where this statement may not have written it", (target, window)
            )
        if any(self.facts.overlap(other, window) is not False for other in shadows):
            return Reason(f"{target.array} is partly overwritten before it is read", (window,))
        return None

    def _always_writes(self, pos: int) -> bool:
        """Whether the statement writes its windows whenever the block runs."""
        return isinstance(self.stmts[pos], Compute | Call | Group)

    def _never_meet(self, a: Window, b: Window) -> bool:
        """Whether the windows share no memory in any two iterations."""
        if self.facts.overlap(a, b) is not False:
            return False
        return (
            not self.nested
            or a.array != b.array
            or (self._is_loop_invariant(a) and self._is_loop_invariant(b))
        )

    def _is_loop_invariant(self, window: Window) -> bool:
        """Whether the window is the same in all iterations of a loop."""
        parts = (*window.shape, *(part for ix in window.index for part in (ix.offset, ix.stride)))
        return not any(dims.free_symbols(part) & self.facts.variables for part in parts)

    def _reason_to_store(self, pos: int, target: Window) -> Reason | None:
        """Return why the values must be stored even if no later statement of the block reads them."""
        root = self.facts.roots[target.array]
        if root in self.facts.kept:
            return Reason(f"{target.array} is a result that must be stored", (target,))
        if self.nested:
            if self.facts.blocks.get(root, set()) != {self.key}:
                return Reason(f"{target.array} is also used outside of this loop or branch", (target,))
            for q in self._touched[root]:
                if q > pos:
                    break
                if any(not self._never_meet(target, window) for window, _ in self.reads[q]):
                    return Reason(f"{target.array} may be read by the next iteration", (target,))
        return None

    # ---- moving ---------------------------------------------------------------------------------------
    def writer_between(self, start: int, stop: int, window: Window) -> Window | None:
        """Return a write, at a position strictly between, that may change what ``window`` reads."""
        for q in self.touching(window.array, start):
            if q >= stop:
                break
            for written in self.writes[q]:
                if self.facts.overlap(window, written) is not False:
                    return written
        return None

    def toucher_between(self, start: int, stop: int, window: Window) -> Window | None:
        """Return a read or write, at a position strictly between, of elements that ``window`` writes."""
        for q in self.touching(window.array, start):
            if q >= stop:
                break
            for other in (*self.writes[q], *(read for read, _ in self.reads[q])):
                if self.facts.overlap(window, other) is not False:
                    return other
        return None


def each_block(
    region: Region, fn: Callable[[Block], bool], when: Callable[[Stmt], bool] | None = None
) -> Region:
    """Apply ``fn`` to every body, the inner ones first; ``fn`` returns whether it changed the block.

    With ``when``, only to bodies with a statement for which it holds."""
    if when is not None and not _any(region.body, when):
        return region
    body = _descend(region.body, Facts(region), fn, count())
    return region if body is region.body else replace(region, body=body)


def block_pass(
    name: str, sweep: Callable[[Block, Log], bool], when: Callable[[Stmt], bool] | None = None
) -> Pass:
    """Return the pass that applies ``sweep`` to every body; see `each_block`."""
    return Pass(name, lambda region, log: each_block(region, lambda block: sweep(block, log), when))


def call_pass(name: str, op: str, change: Callable[[Block, int, Call, Log], bool]) -> Pass:
    """Return a pass that applies ``change`` to every library call of the operation ``op``.

    ``change`` gets the block, the position of the call in it, the call, and the log; it returns whether it
    has changed the block.
    """

    def is_call(stmt: Stmt | None) -> TypeGuard[Call]:
        return isinstance(stmt, Call) and stmt.op == op

    def sweep(block: Block, log: Log) -> bool:
        changed = False
        for pos, stmt in enumerate(block.stmts):
            if is_call(stmt):
                changed |= change(block, pos, stmt, log)
        return changed

    return block_pass(name, sweep, is_call)


def _any(body: tuple[Stmt, ...], when: Callable[[Stmt], bool]) -> bool:
    return any(when(stmt) or any(_any(part, when) for part in bodies(stmt)) for stmt in body)


def _descend(
    body: tuple[Stmt, ...], facts: Facts, fn: Callable[[Block], bool], numbers: Iterator[int]
) -> tuple[Stmt, ...]:
    key = next(numbers)
    inner = [with_bodies(s, [_descend(part, facts, fn, numbers) for part in bodies(s)]) for s in body]
    changed = any(new is not old for new, old in zip(inner, body, strict=True))
    block = Block(tuple(inner), facts, key)
    return block.body() if fn(block) or changed else body
