"""The run of a program's region on all ranks: its blocks of statements, planned as one each, and the loops
around them.

Results are stored only when all blocks have run: until then existing memory keeps its elements, so that
Python can run the program if a floating-point exception is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning import planner
from dcarray.comm.planning.analysis.halo_state import ValidHalos
from dcarray.comm.planning.rank_program import matching
from dcarray.comm.planning.rank_program.steps import Program
from dcarray.comm.transport.errors import GridError
from dcarray.comm.transport.protocol import Communicator
from dcarray.core import fp_state
from dcarray.core.config import Options
from dcarray.core.counters import note
from dcarray.core.errors import StrictError
from dcarray.core.handle import Handle, large, small
from dcarray.core.processes import communicating
from dcarray.core.shard import NDArray, local_block
from dcarray.core.store import Store, memory, owner
from dcarray.execution.executor import report_failure
from dcarray.ir import dims
from dcarray.ir.analysis.effects import definite_writes, reads, touched_arrays, writes
from dcarray.ir.nodes import Array, Region
from dcarray.ir.passes.cpu.pipeline import DISTRIBUTED
from dcarray.ir.text import dump
from dcarray.ir.windows import covers, identity

from .array_distribution import blocks_of
from .consistency import combine_flags, digest
from .device_blocks import block_of, device_of, execute, on_host, options_there, there
from .layout_choice import chosen_layouts, is_large
from .plan_cache import LayoutPlan
from .region_pieces import Block, Choice, Piece, pieces_of, region_at
from .spmd_executor import MOST_SERIAL, bind, compute, contiguous, job_options

__all__ = ["RegionOnRanks"]


class Held(NamedTuple):
    """An array during a run: ``block`` is this rank's memory of it.  ``layout`` is None where it is whole on
    every rank, ``filled`` says which halos are up to date, and ``own`` that the memory is the run's own."""

    block: Any  # an array, or a DeviceBlock
    layout: Layout | None
    filled: ValidHalos | None
    own: bool


class _Unplanned(Exception):
    """Some rank has no plan; raised on all of them."""


class RegionOnRanks:
    """A region written for undivided arrays, of known sizes, which all ranks run together on their blocks.

    Parameters
    ----------
    region : Region
    values : mapping of str to int
        The values of the region's symbols.
    name : str
        The name by which ranks compare what they run.
    where : (str, int)
        File and line of the program.
    """

    def __init__(self, region: Region, values: Mapping[str, int], name: str, where: tuple[str, int]) -> None:
        self._given, self._where = region_at(region, values), where
        self._description = "program", name, digest(dump(self._given))
        self._pieces: dict[
            tuple[frozenset[str], int], tuple[tuple[Piece, ...], dict[str, Array], dict[str, int]]
        ] = {}

    @cached_property
    def _region(self) -> Region:
        return DISTRIBUTED.run(self._given)

    def run(
        self, given: Mapping[str, Any], mask: int, options: Options, comm: Communicator,
        on_device: bool = False,
    ) -> Any:  # fmt: skip
        """Run the region; all ranks do.

        Parameters
        ----------
        given : mapping of str to (Handle or ndarray)
            Arrays, and numbers as arrays without axes, by their names in the region.
        mask : int
            The floating-point exceptions that it must not raise, as FPE bits.
        on_device : bool
            Whether the rank's device may compute the blocks, which knows of no such exceptions.

        Returns
        -------
        dict of str to (Handle or ndarray), or None
            New arrays, and numbers; None if it has raised such an exception, there is no plan, or arrays are
            parts of some in blocks, or share memory: nothing has been changed then.

        Raises
        ------
        MismatchError
            On all ranks, if they run different programs.
        StrictError
            With the option ``strict``, if arrays have to be gathered.
        """
        options = options_there(job_options(options), on_device)
        if device_of(options) is not None:
            mask = 0
        with communicating():
            comm.share(self._description, 0, lambda: self._where)
        memories = self._memories(given)
        if memories is None:
            return None
        plain = [(name, x) for name, x in memories.items() if isinstance(x, np.ndarray)]
        numbers = [(name, x) for name, x in plain if not x.shape and x.dtype.kind in "fc"]
        finite = tuple([name for name, x in numbers if np.isfinite(x)])
        run = _Run(self, memories, finite, options, comm)
        stores = {name: x for name, x in memories.items() if type(x) is Store}
        large = {a.name for a in self._region.arrays if is_large(a.shape, options)}
        blocks = frozenset(large | {name for name, x in stores.items() if x.remote is not None})
        pieces, run.arrays, run.uses = self._pieces_for(blocks, options.distribute_above)
        run.preserves = bool(mask) or len(pieces) != 1 or not isinstance(pieces[0], Block)
        for store in stores.values():
            if store.remote is not None:
                store.remote.filled = None  # in case the run fails
        try:
            run.all(pieces, {})
        except _Unplanned:
            return None
        if mask:
            with communicating():
                if combine_flags(comm, run.flags) & mask:
                    return None
        results: dict[str, Any] = {}
        for array in self._region.arrays:
            if array.name not in run.held and array.role == "out":  # no loop has got there
                run.held[array.name] = Held(np.zeros(array.shape, array.dtype), None, None, True)
            if array.role == "temp" or array.name not in run.held:
                continue
            mine = stores.get(array.name)
            if mine is not None:
                block, layout, filled, _ = run.held[array.name]
                bind(mine, block, layout, filled, array.role != "in", comm)
            elif array.role != "in":
                new = _new(array, run.held[array.name], options, comm)
                if array.name in given:
                    given[array.name]._writable()[...] = np.asarray(new)
                else:
                    results[array.name] = new
        return results

    def _memories(self, given: Mapping[str, Any]) -> dict[str, Store | NDArray] | None:
        """Return the store or plain memory of each array; None if one may not be used.  That is a part of
        another array, an array that shares memory with one that is written, or an array that may not be
        written.  Nothing is pending on the stores."""
        memories: dict[str, Store | NDArray] = {}
        owners: list[tuple[int, bool]] = []
        roles = {array.name: array.role for array in self._region.arrays}
        for name, x in given.items():
            written = roles.get(name) == "inout"
            if not isinstance(x, Handle):
                memories[name] = x
                continue
            head, window = blocks_of(x)
            if head is not None and window is not None:
                return None
            if head is None and x._small is None and x._store is x._store.family and x._index is None:
                head = x._store
            memories[name] = x._evaluated() if head is None or not head.char else head
            if written and not (x._small.flags.writeable if x._small is not None else not x._readonly):
                return None
            memory_of = x._small if x._small is not None else x._store.family
            owners.append((id(owner(memory_of) if x._small is not None else memory_of), written))
        first: dict[int, bool] = {}
        for which, written in owners:
            if which in first and (written or first[which]):
                return None
            first[which] = written or first.get(which, False)
        return memories

    def _pieces_for(
        self, blocks: frozenset[str], above: int
    ) -> tuple[tuple[Piece, ...], dict[str, Array], dict[str, int]]:
        """Return how the region is cut where some arrays lie in blocks: its pieces, all arrays by name, and
        in how many pieces each is used."""
        entry = self._pieces.get((blocks, above))
        if entry is None:
            pieces, new = pieces_of(self._region, blocks, above)
            uses: dict[str, int] = {}
            _count_uses(pieces, uses)
            arrays = {a.name: a for a in (*self._region.arrays, *new)}
            entry = self._pieces[blocks, above] = pieces, arrays, uses
        return entry

    def report_gathers(self, program: Program, options: Options) -> None:
        """Report statements that gather their arrays, or raise under ``strict``."""
        if any(one.whole for one in program.notes):
            if options.strict:
                raise StrictError("a statement of distributed arrays", self._where)
            note("a statement of a program (gathered)", 0, where=self._where)


def _count_uses(pieces: tuple[Piece, ...], uses: dict[str, int]) -> None:
    for piece in pieces:
        if isinstance(piece, Block):
            for name in frozenset().union(*map(touched_arrays, piece.body)):
                uses[name] = uses.get(name, 0) + 1
            continue
        if piece.test is not None:
            _count_uses((piece.test,), uses)
            uses[piece.condition] = 2  # the run reads it, too
        _count_uses((*piece.then, *piece.orelse) if isinstance(piece, Choice) else piece.body, uses)


def _new(array: Array, held: Held, options: Options, comm: Communicator) -> Any:
    """Return a new array with the elements of a run's result; for a result without axes, its memory."""
    block, layout, filled, _ = held
    if layout is None:
        block = on_host(block, True)
    if not array.shape:
        return block
    if layout is None and block.size < options.eager_below:
        return small(ndarray, block)
    store = Store(array.shape, array.dtype)
    bind(store, block, layout, filled, True, comm)
    return large(ndarray, store, array.shape, None)


class _Run:
    """One run of a region."""

    arrays: dict[str, Array]
    uses: dict[str, int]
    preserves: bool  # whether memory that existed before has to keep its elements

    def __init__(
        self, of: RegionOnRanks, given: Mapping[str, Store | NDArray], finite: tuple[str, ...],
        options: Options, comm: Communicator,
    ) -> None:  # fmt: skip
        self._of, self._finite = of, finite
        self._options, self._comm = options, comm
        self.flags = 0
        self._device = device = device_of(options)
        self.held: dict[str, Held] = {}
        for name, x in given.items():
            if isinstance(x, np.ndarray):
                whole = contiguous(x)
                self.held[name] = Held(there(device, whole), None, None, whole is not x)
            elif (shard := x.remote) is not None:
                filled = None if shard.exposed else shard.filled
                self.held[name] = Held(block_of(shard, device), shard.layout, filled, False)
            else:
                mem = memory(x)
                whole = contiguous(mem)
                self.held[name] = Held(there(device, whole), None, None, whole is not mem)

    def all(self, pieces: tuple[Piece, ...], values: dict[str, int]) -> None:
        """Run pieces, with these values of the variables of loops around."""
        for piece in pieces:
            if isinstance(piece, Block):
                self._block(piece, values)
            elif isinstance(piece, Choice):
                self.all(
                    piece.then if self._holds(piece.test, piece.condition, values) else piece.orelse, values
                )
            elif piece.test is not None:
                while self._holds(piece.test, piece.condition, values):
                    self.all(piece.body, values)
            else:
                ends = [n if type(n) is int else int(_value(n, values)) for n in piece.bounds]
                for turn in range(*ends):
                    self.all(piece.body, {**values, piece.var: turn})

    def _holds(self, test: Block, name: str, values: dict[str, int]) -> bool:
        self._block(test, values)
        return bool(on_host(self.held[name].block))

    # ---- one block --------------------------------------------------------------------------------------
    def _block(self, block: Block, values: dict[str, int]) -> None:
        if block.moved:
            block = block.at(values)
        for array, dim in block.numbers:
            self.held[array.name] = Held(np.array(_value(dim, values), array.dtype), None, None, True)
        plan = self._plan(block)
        given: dict[str, Any] = {}
        fresh: set[str] = set()
        for name in plan.program.given:
            held, layout = self.held[name], plan.layouts.get(name)
            given[name] = held.block
            if held.layout is None and layout is not None:
                given[name] = there(self._device, local_block(on_host(held.block), layout, self._comm))
                fresh.add(name)
        self._of.report_gathers(plan.program, self._options)

        def local(region: Region, arrays: Mapping[str, Any]) -> None:
            self.flags |= compute(plan, self._options, region, arrays)

        with communicating(), fp_state.collect_flags() as seen:
            after = execute(plan.program, self._comm, given, local, self._options)
        self.flags |= seen.flags
        for name in plan.program.after:
            before = given.get(name)
            own = before is not after[name] or name in fresh or self.held[name].own
            program = plan.program
            self.held[name] = Held(after[name], program.layout(name), program.valid.get(name), own)

    def _plan(self, block: Block) -> LayoutPlan:
        """Return the plan of a block of statements for the present layouts of its arrays; make it once."""
        names = sorted(frozenset().union(*map(touched_arrays, block.body)))
        there = [(name, *self.held[name][1:]) for name in names if name in self.held]
        key = tuple(there), self._finite, self.preserves, self._options, self._comm.size, self._comm.rank
        plan: LayoutPlan | None = block.plans.get(key)
        if plan is None:
            plan = block.plans[key] = self._planned(partial(self._make, block, names))
            if self._options.debug:
                with communicating():
                    matching.check(plan.program, self._comm)
        return plan

    def _planned(self, make: Callable[[], LayoutPlan]) -> LayoutPlan:
        """Return a new plan, if all ranks have one."""
        plan, error = None, None
        try:
            plan = make()
        except Exception as caught:  # a bug, or no memory
            if self._options.debug or isinstance(caught, GridError):
                raise
            report_failure("a program is not shared out", caught, self._of._where)
            error = caught
        with communicating():
            failed = self._comm.share(("planned",), int(error is not None))
        if failed or plan is None:
            raise _Unplanned("a rank has no plan for a program") from error
        return plan

    def _make(self, block: Block, names: list[str]) -> LayoutPlan:
        """Return the plan of a block for the arrays as they are."""
        written = {window.array for stmt in block.body for window in writes(stmt)}
        arrays = []
        for name in names:
            array = self.arrays[name]
            if name in self.held:
                role = "inout" if name in written else "in"
            else:
                inner = array.role == "temp" and self.uses.get(name, 0) < 2 and _is_made_in(block, array)
                role = "temp" if inner else "out"
            arrays.append(array if array.role == role else replace(array, role=role))  # type: ignore[arg-type]
        exact = Region((), tuple(arrays), block.body)
        region = DISTRIBUTED.run(exact, debug=self._options.debug)
        known = {n: self.held[n].layout for n in names if n in self.held and self.held[n].layout is not None}
        layouts = chosen_layouts(exact, region, known, bool(known), self._options, self._comm)  # type: ignore[arg-type]
        read = [name for name in names if name in self.held]
        preserved = [
            a.name
            for a in region.arrays
            if self.preserves and a.role == "inout" and not self.held[a.name].own
            and (a.name in known or a.name not in layouts)
        ]  # fmt: skip
        program = planner.plan(
            region, layouts, self._comm.size, self._comm.rank,
            valid={n: held for n in read if (held := self.held[n].filled) is not None},
            finite=self._finite, serial_limit=MOST_SERIAL, preserved=preserved,
        )  # fmt: skip
        return LayoutPlan(program, layouts)


def _is_made_in(block: Block, array: Array) -> bool:
    """Whether the first statement of a block that uses an array writes all of it, and does not read it."""
    first = next(stmt for stmt in block.body if array.name in touched_arrays(stmt))
    if any(window.array == array.name for window in reads(first)):
        return False
    return any(
        window.array == array.name and covers(window, identity(array)) is True
        for window in definite_writes(first)
    )


def _value(dim: Any, values: Mapping[str, int]) -> Any:
    return dim if type(dim) is int else dims.substitute(dim, values)
