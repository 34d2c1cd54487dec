"""The program of one rank for a region: a sequence of steps over local arrays, which can count and run.

`dcarray.comm.planning.planner.plan` makes programs, without data and without the other ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from functools import reduce as fold
from typing import Any, Protocol

import numpy as np

from dcarray.comm.exchange.exchange_plan import Exchange, PendingExchange, box_view
from dcarray.comm.exchange.persistent import PersistentExchanges
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import Box, ValidHalos
from dcarray.comm.transport.errors import CommError
from dcarray.comm.transport.protocol import OPERATORS, Array, Communicator, Counts
from dcarray.ir.nodes import Region
from dcarray.ir.ops import OPS

from .elsewhere import Arriving, finish, with_axes

__all__ = [
    "ArrayExchange", "Begin", "Exchanges", "Execution", "Finish", "Frame", "Local", "Memory",
    "Note", "Program", "Reduce", "Step",
]  # fmt: skip


@dataclass(frozen=True)
class Note:
    """A reason for a decision of the planner: a line of ``dc.explain``."""

    text: str
    loc: Any = None
    whole: bool = False  # whether a statement without a distributed form is computed from whole arrays


@dataclass(frozen=True)
class Memory:
    """The description of a local array of one rank: its name, type, shape and layout.

    Parameters
    ----------
    name : str
        The name by which steps refer to it.
    dtype : numpy.dtype
    shape : tuple of int
        The shape of this rank's memory, halos included.
    layout : Layout or None
        The layout of the distributed array; None: every rank has the whole array.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    layout: Layout | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def no_context(loc: Any) -> AbstractContextManager[object]:
    """Return an empty context manager, entered around statements by default."""
    return nullcontext()


@dataclass
class Execution:
    """The state of a program that runs on one rank.

    Parameters
    ----------
    comm : Communicator
    memory : dict of str to (ndarray or Elsewhere)
        All local arrays that exist, by name.
    local : callable
        Runs a region on local arrays, in place.
    empty : callable
        Allocates an array of a shape and dtype.
    around : callable
        Returns the context manager for a statement outside of regions, given its location.
    pending : dict of int to (PendingExchange, list)
        The exchanges under way, with what will have arrived, by the identity of their steps.
    """

    comm: Communicator
    memory: dict[str, Any]
    local: Callable[[Region, Mapping[str, Array]], None]
    empty: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty
    around: Callable[[Any], AbstractContextManager[object]] = no_context
    pending: dict[int, tuple[PendingExchange, Arriving]] = field(default_factory=dict)

    def array(self, name: str, writing: bool = False) -> Array:
        """Return a local array on the host, for reading, or to be written to as well."""
        held = self.memory[name]
        return held if isinstance(held, np.ndarray) else held.on_host(writing)

    def drain(self) -> None:
        """Wait for all exchanges that have begun, after an error.

        Otherwise MPI could write to freed memory, or a later exchange could receive the old messages.
        """
        while self.pending:
            _, (one, _) = self.pending.popitem()
            with suppress(CommError):  # it would add nothing to the failure
                one.comm.waitall(one.requests)


class Step(Protocol):
    """A step of a rank's program.  All ranks have the same kinds of steps in the same order."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the local arrays that the step reads."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of the local arrays that the step writes."""

    def counts(self) -> Counts:
        """Return the numbers of messages and bytes of this rank in the step."""

    def run(self, at: Execution) -> None:
        """Run the step."""


@dataclass(frozen=True)
class ArrayExchange:
    """The exchange of one array: the local source and target, and a function that lists the messages.

    A view, if given, lists the array's axes in the order of the plan's axes, with None for an axis that the
    array does not have.
    """

    listing: Callable[[], Exchange]
    source: str
    target: str
    itemsize: int
    source_view: tuple[int | None, ...] | None = None
    target_view: tuple[int | None, ...] | None = None

    @cached_property
    def plan(self) -> Exchange:
        """This rank's messages, which are listed when they are first needed.

        Listing takes long with many peers, and planning does not need it.
        """
        return self.listing()


@dataclass(frozen=True)
class Exchanges:
    """The step that exchanges several arrays together: one message for each pair of ranks and direction."""

    items: tuple[ArrayExchange, ...]
    persistent: PersistentExchanges = field(default_factory=PersistentExchanges, compare=False, repr=False)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(item.source for item in self.items)

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(item.target for item in self.items)

    def counts(self) -> Counts:
        counts = Counts()
        for one in (item.plan.counts(item.itemsize) for item in self.items):
            counts.bytes_sent += one.bytes_sent
            counts.bytes_received += one.bytes_received
        counts.messages_sent = len({t.peer for item in self.items for t in item.plan.sends})
        counts.messages_received = len({t.peer for item in self.items for t in item.plan.receives})
        return counts

    def run(self, at: Execution) -> None:
        finish(*self.start(at))

    def start(self, at: Execution) -> tuple[PendingExchange, Arriving]:
        """Begin the exchanges; returns them, and what arrives in arrays that are elsewhere."""
        arrays: list[tuple[Exchange, Array, Array]] = []
        arriving: Arriving = []
        for one in self.items:
            source, target = at.memory[one.source], at.memory[one.target]
            sent, received = (
                with_axes(end if isinstance(end, np.ndarray) else end.memory(), axes)
                for end, axes in ((source, one.source_view), (target, one.target_view))
            )
            if not isinstance(source, np.ndarray):
                source.bring([box_view(sent, box) for box in one.plan.boxes_read()])
            if not isinstance(target, np.ndarray):
                windows = [box_view(received, box) for box in one.plan.boxes_written()]
                arriving.append(partial(target.take, windows))
            arrays.append((one.plan, sent, received))
        return self.persistent.start(at.comm, arrays), arriving


@dataclass(frozen=True)
class _Boundary:
    """The step that begins or ends an exchange."""

    what: Exchanges

    @property
    def reads(self) -> tuple[str, ...]:
        return self.what.reads

    @property
    def writes(self) -> tuple[str, ...]:
        return self.what.writes


class Begin(_Boundary):
    """The step that begins an exchange; until its `Finish`, no array is written and no target is read."""

    def counts(self) -> Counts:
        return self.what.counts()

    def run(self, at: Execution) -> None:
        at.pending[id(self.what)] = self.what.start(at)


class Finish(_Boundary):
    """The step that waits for the end of an exchange."""

    def counts(self) -> Counts:
        return Counts()

    def run(self, at: Execution) -> None:
        finish(*at.pending.pop(id(self.what)))


@dataclass(frozen=True)
class Local:
    """The step that computes: a region of statements over this rank's local arrays.

    The region's ``in`` and ``inout`` arrays are local arrays; its ``temp`` arrays exist only in the step.
    """

    region: Region

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.region.arrays if a.role != "temp")

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.region.arrays if a.role in ("out", "inout"))

    def counts(self) -> Counts:
        return Counts()

    def run(self, at: Execution) -> None:
        at.local(self.region, {name: at.memory[name] for name in self.reads})


@dataclass(frozen=True)
class Frame:
    """The step that copies boxes of elements of a local array to another one of the same shape."""

    source: str
    target: str
    boxes: tuple[Box, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.target,)

    def counts(self) -> Counts:
        return Counts()

    def run(self, at: Execution) -> None:
        source, target = at.array(self.source), at.array(self.target, True)
        for box in self.boxes:
            here = tuple(slice(low, high) for low, high in box)
            target[here] = source[here]


@dataclass(frozen=True)
class Reduce:
    """The step that reduces arrays element by element over ranks along some grid axes (an all-reduce).

    Parameters
    ----------
    source, target : Memory
        The local arrays, with the same distribution; the source has no halo.
    op : str
        The name of a reduction in `dcarray.ir.ops.OPS`.
    grid : ProcessGrid
    keep : tuple of bool
        For each axis of the grid, whether the reduction goes along it.
    rank : int
    """

    source: Memory
    target: Memory
    op: str
    grid: ProcessGrid
    keep: tuple[bool, ...]
    rank: int

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.source.name,)

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.target.name,)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that take part in this reduction, this one included."""
        return self.grid.sub(self.rank, self.keep)[1]

    def counts(self) -> Counts:
        return Counts(collectives=1, collective_bytes=self.source.nbytes)

    def run(self, at: Execution) -> None:
        group = at.comm.sub(self.ranks)
        here, out = np.ascontiguousarray(at.array(self.source.name)), at.array(self.target.name, True)
        if self.target.layout is not None:  # which may have room for a halo
            out = out[self.target.layout.owned(self.rank)]
        if (name := _MPI_NAMES.get(self.op)) is not None:
            group.allreduce(here, out, name)
            return
        stack = np.empty((group.size, *here.shape), here.dtype)
        group.allgather(here, stack)
        ufunc: Any = OPS[self.op].reference
        out[...] = ufunc.reduce(stack, 0, here.dtype)


_MPI_NAMES = {ufunc.__name__: name for name, ufunc in OPERATORS.items()}


@dataclass(frozen=True)
class Program:
    """The program of one rank for a region.

    Parameters
    ----------
    rank, size : int
    steps : tuple of Step
        The steps in order of execution.
    memory : mapping of str to Memory
        All local arrays, by local name.  The executor passes those of `given` and allocates the others
        when they are first needed, uninitialised.
    given : mapping of str to str
        For each array of the region that exists before (``in`` and ``inout``), the local array that holds
        this rank's part, in the given layout.
    after : mapping of str to str
        For each array that exists afterwards (all but ``temp``), the local array that then holds this rank's
        part; its layout is ``memory[after[name]].layout``, None if it is whole on every rank.  This may also
        be new memory for arrays that were only read; then the old memory is not needed any more.
    valid : mapping of str to ValidHalos
        The halos that are up to date afterwards, for the arrays of `after`.
    notes : tuple of Note
        The reasons for the planner's decisions.
    region : Region
        The placed region over whole arrays, with its ``comm`` calls.
    """

    rank: int
    size: int
    steps: tuple[Step, ...]
    memory: Mapping[str, Memory]
    given: Mapping[str, str]
    after: Mapping[str, str]
    valid: Mapping[str, ValidHalos]
    notes: tuple[Note, ...]
    region: Region

    @property
    def counts(self) -> Counts:
        """The numbers of messages and bytes of this rank in all steps."""
        return fold(lambda a, b: a + b, (step.counts() for step in self.steps), Counts())

    @cached_property
    def schedule(self) -> tuple[tuple[Step, tuple[Memory, ...], tuple[str, ...]], ...]:
        """The steps, each with the arrays that are allocated before it and those that are freed after it."""
        touched = [tuple(dict.fromkeys((*step.reads, *step.writes))) for step in self.steps]
        there, kept = {*self.given.values()}, {*self.after.values()}
        last = {name: k for k, names in enumerate(touched) for name in names}
        schedule = []
        for k, (step, names) in enumerate(zip(self.steps, touched, strict=True)):
            fresh = tuple(self.memory[name] for name in names if name not in there)
            there.update(names)
            gone = tuple(name for name in names if last[name] == k and name not in kept)
            schedule.append((step, fresh, gone))
        return tuple(schedule)

    def layout(self, array: str) -> Layout | None:
        """Return the layout of an array of the region after the run; None: whole on every rank."""
        return self.memory[self.after[array]].layout
