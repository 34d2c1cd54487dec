"""The plan and execution of a distributed product on one rank: messages of panels, products, and sums.

In each round a rank receives one panel of a factor directly from the ranks that own it, in one message from
each: as many bytes as with broadcasts along rows and columns of the grid.  Ranks begin with different panels,
so that all of them send and receive in each round.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dcarray.comm.exchange.exchange_plan import (
    Box,
    Exchange,
    PendingExchange,
    Transfer,
    box_view,
    start_exchanges,
)
from dcarray.comm.exchange.redistribute import redistribute
from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis, Run
from dcarray.comm.layout.derived_layouts import axis_interval, nothing_moves
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.protocol import Array, Communicator, Counts

from .product_axes import multiply, sum_dtype
from .product_layouts import Scheme, summand_layouts

__all__ = ["Contraction", "Fetch", "Round", "panels"]

# A panel is wide enough that its product is worth a call, and the number of panels is limited.
MIN_PANEL, MAX_PANELS = 64, 48

Empty = Callable[[tuple[int, ...], np.dtype[Any]], Array]


@dataclass(frozen=True)
class Fetch:
    """The messages of one rank in one round for one factor: those with its panel, and those for other ranks.

    Attributes
    ----------
    at : tuple of slice
        The part of this rank's memory that has its own elements of the panel.
    plan : Exchange
        The messages and local copies into an array of `shape`.
    shape : tuple of int
    sends : tuple of (tuple of slice, Exchange)
        The messages to other ranks in this round, each with the part of this rank's memory that is sent.
    """

    at: tuple[slice, ...]
    plan: Exchange
    shape: tuple[int, ...]
    sends: tuple[tuple[tuple[slice, ...], Exchange], ...]

    @cached_property
    def is_local(self) -> bool:
        """Whether the panel lies in this rank's memory as one window."""
        return (
            not self.plan.receives
            and len(self.plan.local_copies) == 1
            and all(run.repeats == 1 for box in self.plan.local_copies[0] for run in box)
            and tuple(run.size for run in self.plan.local_copies[0][1]) == self.shape
        )

    def items(self, memory: Array, buffer: Array | None) -> list[tuple[Exchange, Array, Array]]:
        """Return the panel's exchanges as arguments of `start_exchanges`; `buffer` receives the panel, if
        given."""
        exchanges = [(plan, memory[at], memory[at]) for at, plan in self.sends]
        return exchanges if buffer is None else [*exchanges, (self.plan, memory[self.at], buffer)]


@dataclass(frozen=True)
class Round:
    """The panels of both factors that a rank multiplies in one round."""

    a: Fetch
    b: Fetch

    def counts(self, itemsizes: Sequence[int]) -> Counts:
        """Return the numbers of messages and bytes of a round, in which one message to a peer has both
        factors."""
        counts = Counts()
        sends: set[int] = set()
        receives: set[int] = set()
        for fetch, itemsize in ((self.a, itemsizes[0]), (self.b, itemsizes[1])):
            for plan in (fetch.plan, *(plan for _, plan in fetch.sends)):
                one = plan.counts(itemsize)
                counts.bytes_sent += one.bytes_sent
                counts.bytes_received += one.bytes_received
                sends.update(t.peer for t in plan.sends)
                receives.update(t.peer for t in plan.receives)
        counts.messages_sent, counts.messages_received = len(sends), len(receives)
        return counts


@dataclass(frozen=True)
class Contraction:
    """The plan of one rank for a distributed product, which is computed without data and communication.

    Parameters
    ----------
    scheme : Scheme
    rank : int
    """

    scheme: Scheme
    rank: int

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds, with panels in the order in which this rank multiplies them."""
        scheme = self.scheme
        letter, cuts = panels(scheme)
        a = self._plan_fetches(scheme.product.a, scheme.a, scheme.need_a, letter, cuts)
        b = self._plan_fetches(scheme.product.b, scheme.b, scheme.need_b, letter, cuts)
        return tuple(Round(*both) for both in zip(a, b, strict=True))

    def _plan_fetches(
        self, letters: str, source: Layout, target: Layout, letter: str, cuts: Sequence[tuple[int, int]]
    ) -> list[Fetch]:
        axis = letters.find(letter) if letter else -1
        number = len(cuts)
        if number == 1 or axis < 0:
            at, plan = (slice(None),) * source.ndim, redistribute(source, target, self.rank)
            panels_ = [(at, plan, target.local_shape(self.rank))] * number
        elif isinstance(source.parts[axis], BlockAxis):
            panels_ = _plan_panels(source, target, axis, cuts, self.rank)
        else:
            panels_ = [_plan_panel(source, target, axis, low, high, self.rank) for low, high in cuts]
        by_round: list[list[tuple[tuple[slice, ...], Exchange]]] = [[] for _ in cuts]
        firsts: dict[int, int] = {}
        for k, (at, plan, _) in enumerate(panels_):
            transfers_by_round: dict[int, list[Transfer]] = {}
            for transfer in plan.sends:
                first = firsts.get(transfer.peer)
                if first is None:
                    first = firsts[transfer.peer] = self._first_panel(transfer.peer, number)
                transfers_by_round.setdefault((k - first) % number, []).append(transfer)
            for turn, transfers in transfers_by_round.items():
                by_round[turn].append((at, Exchange(self.rank, tuple(transfers), ())))
        fetches, begin = [], self._first_panel(self.rank, number)
        for turn, sends in enumerate(by_round):
            at, plan, shape = panels_[(begin + turn) % number]
            fetches.append(
                Fetch(at, Exchange(self.rank, (), plan.receives, plan.local_copies), shape, tuple(sends))
            )
        return fetches

    def _first_panel(self, rank: int, number: int) -> int:
        """Return the number of the panel with which a rank begins; ranks that compute the same elements
        agree."""
        grid, out = (
            self.scheme.arrangement.grid,
            self.scheme.arrangement.grid_axes_of(self.scheme.product.out),
        )
        coords = grid.coords(rank)
        return sum(coords[g] * number // grid.shape[g] for g in out) % number

    @cached_property
    def sum_exchange(self) -> Exchange | None:
        """The exchange that brings parts of sums to the ranks that add them up; None if nothing is to be
        added, or if an allreduce adds it."""
        return (
            None if self.scheme.sum_layout is None else redistribute(*summand_layouts(self.scheme), self.rank)
        )

    @property
    def must_move(self) -> bool:
        """Whether the result is not yet in its final layout after the sum."""
        return (self.scheme.sum_layout or self.scheme.out_parts) != self.scheme.out

    @cached_property
    def final_exchange(self) -> Exchange:
        """The exchange of the result to its final layout."""
        return redistribute(self.scheme.sum_layout or self.scheme.out_parts, self.scheme.out, self.rank)

    @cached_property
    def group(self) -> tuple[int, ...]:
        """The ranks that hold parts of the sums of the same elements as this rank."""
        grid = self.scheme.arrangement.grid
        return grid.sub(self.rank, [g in self.scheme.sum_axes for g in range(grid.ndim)])[1]

    def counts_of_parts(self, itemsizes: Sequence[int]) -> Counts:
        """Return the numbers of messages and bytes of `parts`, given the item sizes of the factors."""
        counts = Counts()
        for one in self.rounds:
            counts = counts + one.counts(itemsizes)
        return counts

    def counts(self, itemsizes: tuple[int, int, int, int]) -> Counts:
        """Return the numbers of messages and bytes of this rank.

        An allreduce is counted as the communicator does: one call with the bytes of its operand.

        Parameters
        ----------
        itemsizes : tuple of int
            The item sizes of both factors, of the sums and of the result.
        """
        counts = self.counts_of_parts(itemsizes)
        if self.sum_exchange is not None:
            counts = counts + self.sum_exchange.counts(itemsizes[2])
        elif self.scheme.sum_axes:
            counts.collective(self.scheme.out_parts.elements(self.rank) * itemsizes[2])
        return counts + self.final_exchange.counts(itemsizes[3]) if self.must_move else counts

    def run(self, comm: Communicator, a: Array, b: Array, out: Array, empty: Empty = np.empty) -> None:
        """Compute this rank's part of the result.

        Parameters
        ----------
        comm : Communicator
            All ranks; each of them makes this call.
        a, b : ndarray
            The memory of this rank for the factors, without halo.
        out : ndarray
            This rank's memory of the result, without halo.  It may share memory with the factors.
        empty : callable, optional
            ``empty(shape, dtype)`` allocates an array.
        """
        dtype = sum_dtype(a.dtype, b.dtype)
        is_final = not self.scheme.sum_axes and not self.must_move and out.dtype == dtype
        writes_out = is_final and not (np.may_share_memory(a, out) or np.may_share_memory(b, out))
        total = out if writes_out else empty(self.scheme.out_parts.local_shape(self.rank), dtype)
        self.parts(comm, a, b, total, empty)
        if self.sum_exchange is not None:
            parts, gathered_layout = summand_layouts(self.scheme)
            all_parts = empty(gathered_layout.local_shape(self.rank), dtype)
            self.sum_exchange.run(comm, total.reshape(parts.local_shape(self.rank)), all_parts)
            total = np.add.reduce(all_parts, axis=tuple(range(len(self.scheme.sum_axes))), dtype=dtype)
        elif self.scheme.sum_axes:
            comm.sub(self.group).allreduce(total, total, "sum")
        if self.must_move:
            self.final_exchange.run(comm, np.asarray(total, out.dtype), out)
        elif total is not out:
            out[...] = total

    def parts(self, comm: Communicator, a: Array, b: Array, out: Array, empty: Empty = np.empty) -> None:
        """Compute this rank's parts of the sums into `out`, which has the layout ``scheme.out_parts``.

        The parameters are those of `run`, but `out` must not share memory with the factors.
        """
        letter, cuts = panels(self.scheme)
        along = self.scheme.product.out.find(letter) if letter else -1
        begin = self._first_panel(self.rank, len(cuts))
        under_way = self._start_round(comm, 0, a, b, empty)
        for turn in range(len(self.rounds)):
            pending, left, right = under_way
            if turn + 1 < len(self.rounds):
                under_way = self._start_round(comm, turn + 1, a, b, empty)
            pending.finish()
            if along < 0:
                multiply(self.scheme.product, left, right, out, turn > 0)
            else:
                part = slice(*cuts[(begin + turn) % len(cuts)])
                at = (*(slice(None),) * along, part)
                multiply(self.scheme.product, left, right, out[at], False)

    def _start_round(
        self, comm: Communicator, turn: int, a: Array, b: Array, empty: Empty
    ) -> tuple[PendingExchange, Array, Array]:
        items, factors = [], []
        for fetch, memory in ((self.rounds[turn].a, a), (self.rounds[turn].b, b)):
            if fetch.is_local:
                items += fetch.items(memory, None)
                factors.append(box_view(memory[fetch.at], fetch.plan.local_copies[0][0]))
            else:
                factors.append(empty(fetch.shape, memory.dtype))
                items += fetch.items(memory, factors[-1])
        return start_exchanges(comm, items), factors[0], factors[1]


# A panel of a factor: the slices of this rank's memory with its own part, the messages, whose boxes are
# relative to that part and to an array of the panel's shape, and that shape.
_Panel = tuple[tuple[slice, ...], Exchange, tuple[int, ...]]


def _plan_panel(source: Layout, target: Layout, axis: int, low: int, high: int, rank: int) -> _Panel:
    """Return the panel of a factor with the indices ``[low, high)`` of an axis: the slices of this rank's own
    elements, the exchange, and the panel's local shape."""
    of, here = axis_interval(source, axis, low, high, rank)
    to, _ = axis_interval(target, axis, low, high, rank)
    at = (*(slice(None),) * axis, here, *(slice(None),) * (source.ndim - axis - 1))
    return at, redistribute(of, to, rank), to.local_shape(rank)


def _plan_panels(
    source: Layout, target: Layout, axis: int, cuts: Sequence[tuple[int, int]], rank: int
) -> list[_Panel]:
    """Return the panels along an axis that is in blocks in the source and whole in the target.

    These are the messages that bring the whole axis, cut at the ends of panels.  Each rank's part of the axis
    is one interval, so that sender and receiver cut the boxes of a message in the same way.
    """
    whole, part, own = redistribute(source, target, rank), source.parts[axis], source.part_indices(rank)[axis]
    assert isinstance(part, BlockAxis)
    begin, end = part.low(own), part.high(own)
    lows = [low for low, _ in cuts]
    receives: list[list[Transfer]] = [[] for _ in cuts]
    for transfer in whole.receives:
        run = transfer.boxes[0][axis]
        stop = run.start + run.length
        for k in range(bisect_right(lows, run.start) - 1, bisect_left(lows, stop)):
            low = max(lows[k], run.start)
            there = Run(low - lows[k], min(cuts[k][1], stop) - low)
            receives[k].append(_transfer_of_run(transfer, axis, there))
    shape, fetches = target.local_shape(rank), []
    before, after = (slice(None),) * axis, (slice(None),) * (source.ndim - axis - 1)
    for k, (low, high) in enumerate(cuts):
        size = max(min(high, end) - max(low, begin), 0)
        skip = max(low - begin, 0) if size else 0
        sends: tuple[Transfer, ...] = ()
        local_copies: tuple[tuple[Box, Box], ...] = ()
        if size:
            mine, there = Run(0, size), Run(max(begin - low, 0), size)
            sends = tuple([_transfer_of_run(transfer, axis, mine) for transfer in whole.sends])
            local_copies = tuple(
                [(_with_run(here, axis, mine), _with_run(to, axis, there)) for here, to in whole.local_copies]
            )
        plan = Exchange(rank, sends, tuple(receives[k]), local_copies)
        its = (*shape[:axis], high - low, *shape[axis + 1 :])
        fetches.append(((*before, slice(skip, skip + size), *after), plan, its))
    return fetches


def _transfer_of_run(transfer: Transfer, axis: int, run: Run) -> Transfer:
    """Return a message restricted to the indices `run` of an axis."""
    return Transfer(transfer.peer, tuple([_with_run(box, axis, run) for box in transfer.boxes]))


def _with_run(box: Box, axis: int, run: Run) -> Box:
    return (*box[:axis], run, *box[axis + 1 :])


def panels(scheme: Scheme) -> tuple[str, list[tuple[int, int]]]:
    """Return the letter of the axis along which factors are sent in panels, and the panels' index intervals.

    All ranks get the same.  Panels end where a factor that is sent is cut between ranks, so that most have
    one owner.  There is one panel if no factor is sent, or if the summed axes are distributed themselves.  If
    one factor is sent and is not cut along the summed axes, panels are along an axis of the result, so that
    nothing is added up.
    """
    of, extent, cut = scheme.product, scheme.product.extent, scheme.arrangement.cut
    factors = ((of.a, scheme.a, scheme.need_a), (of.b, scheme.b, scheme.need_b))
    sent = [(letters, have) for letters, have, need in factors if not nothing_moves(have, need)]
    free = [x for x in of.inner if x not in cut]
    if len(sent) == 1:
        ((letters, have),) = sent
        distributed = [x for x, part in zip(letters, have.parts, strict=True) if part.parts > 1]
        if distributed and all(x in of.rows + of.columns and x not in cut for x in distributed):
            free = distributed
    if not free:
        return "", [(0, 0)]
    letter = max(free, key=extent.__getitem__)
    axes: list[Axis] = [have.parts[letters.index(letter)] for letters, have in sent]
    n, period = extent[letter], 1
    ends = {0, n}
    for axis in axes:
        if isinstance(axis, BlockAxis):
            ends.update(axis.low(k) for k in range(axis.parts))
    for letters, have, _ in factors:
        part = have.parts[letters.index(letter)] if letter in letters else None
        if isinstance(part, CyclicAxis):
            period = math.lcm(period, part.period)
    if period > 1 and axes:
        ends.update(k * n // 4 for k in range(4))
    least, cut_points = max(MIN_PANEL, -(-n // MAX_PANELS)), [0]
    for end in sorted(end // period * period for end in ends if end < n):
        if end - cut_points[-1] >= least and n - end >= least:
            cut_points.append(end)
    return letter, list(zip(cut_points, [*cut_points[1:], n], strict=True))
