"""Recordings that know the same blocks by several geometries.

Blocks have one geometry alone.  Views in other shapes, or of other dtypes (`dcarray.core.strided_views`),
are copied before a recording runs, and what it writes of them is brought back afterwards.  That is right as
long as the elements are not looked at by one geometry after they were written by another: there recordings
are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from dcarray.core.processes import communicating
from dcarray.core.shard import Shard, gather_store, local_block, set_shard
from dcarray.core.store import Store, memory
from dcarray.recording.log_format import reads, writes
from dcarray.recording.replay import Replay

if TYPE_CHECKING:
    from dcarray.comm.exchange.dist_array import DistArray
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.transport.protocol import Communicator
    from dcarray.recording.log import Recording

__all__ = ["apart", "divided", "together"]

Pairs = list[tuple[Store, Store]]


class _Uses:
    """How statements use the arrays of families that are known by several geometries.

    Attributes
    ----------
    writer : dict of int to int
        By the slot of a head the slot that is written.
    clash : int or None
        The first statement that uses a family otherwise than it was written before.
    """

    def __init__(self, declared: list[tuple[Any, ...]], statements: Iterable[tuple[Any, ...]]) -> None:
        heads = [entry[-1] for entry in declared]
        several = {head for slot, head in enumerate(heads) if head != slot}
        self.used: set[int] = set()
        self.writer: dict[int, int] = {}
        self.clash: int | None = None
        for k, entry in enumerate(statements):
            read = [arg[0] for arg in reads(entry) if type(arg) is not int]
            written = writes(entry)
            self.used.update(read, written)
            for slot in (*read, *written):
                if self.writer.get(heads[slot], slot) != slot and self.clash is None:
                    self.clash = k
            for slot in written:
                if heads[slot] in several and self.writer.setdefault(heads[slot], slot) != slot:
                    self.clash = k if self.clash is None else self.clash


# ---- dividing ----------------------------------------------------------------------------------------
def divided(rec: Recording, large: int) -> tuple[Replay, Callable[[], None]] | None:
    """Take out of a recording what looks at elements in blocks otherwise than it has written them.

    Parameters
    ----------
    rec : Recording
        It is changed.
    large : int
        Arrays of more elements than these are to lie in blocks.

    Returns
    -------
    (Replay, callable) or None
        What is to be recorded again, and what puts it back; None if there is no such thing.
    """
    declared = rec.declarations()
    if all(entry[-1] == slot for slot, entry in enumerate(declared)):
        return None
    statements = rec.statements()
    cut = _Uses(declared, statements).clash
    if not cut:  # of one statement it cannot be had
        return None
    heads = {entry[-1] for slot, entry in enumerate(declared) if entry[-1] != slot}
    if not any(type(s := rec.slots[k]) is Store and (s.shard is not None or s.size > large) for k in heads):
        return None
    before = rec.log, rec.slots, rec.news, rec.sites
    rest = Replay(rec, dict(enumerate(statements[cut:], cut)))
    end = [k for k, entry in enumerate(rec.log) if entry[0] not in ("old", "new")][cut - 1] + 1
    log = rec.log[:end]
    slots = list(rec.slots[: len(log) - cut])
    for k, entry in enumerate(slots):  # what only the rest uses any more is to be kept for it
        store = rest.held(k)
        if type(entry) is not Store and store is not None:
            slots[k] = ref(store)
    rec.log, rec.slots, rec.sites = log, slots, rec.sites[:cut]
    rec.news = [k for k in rec.news if k < len(slots)]

    def undo() -> None:
        rec.log, rec.slots, rec.news, rec.sites = before

    return rest, undo


# ---- copies ------------------------------------------------------------------------------------------
def apart(rec: Recording, comm: Communicator, laid: Callable[[tuple[int, ...]], Layout | None]) -> Pairs:
    """Have a recording work on copies in blocks where it works on views that no window says.

    Where that is not known to be right, nothing is changed.

    Parameters
    ----------
    rec : Recording
        It is changed.
    comm : Communicator
        The ranks.
    laid : callable
        How an array of a shape is to lie, if it lies in blocks.

    Returns
    -------
    list of (Store, Store)
        Views and the copies of them that are written; `together` is to be called for them after the run.
    """
    declared = rec.declarations()
    uses = _Uses(declared, rec.statements())
    views = [slot for slot, entry in enumerate(declared) if entry[-1] != slot]
    heads = {declared[slot][-1] for slot in views}
    members = {first: [k for k, entry in enumerate(declared) if entry[-1] == first] for first in heads}
    if uses.clash is not None or any(
        declared[k][0] != "old" or not _told(rec.slots[k]) for first in heads for k in members[first]
    ):
        return []
    pairs: Pairs = []
    places = [k for k, entry in enumerate(rec.log) if entry[0] in ("old", "new")]
    for first in heads:
        head, writer = rec.slots[first], uses.writer.get(first)
        layout = None if head.shard is not None or writer in (None, first) else laid(head.shape)
        if layout is not None:
            with communicating():
                block = local_block(memory(head), layout, comm)
            set_shard(head, Shard(layout, block, comm))
        alone = writer is None or uses.used.isdisjoint(set(members[first]) - {writer})
        for slot in members[first]:
            rec.log[places[slot]] = (*rec.log[places[slot]][:-1], slot)
            if slot == first:
                continue
            view = rec.slots[slot]
            if head.shard is None and (alone or slot == writer):
                continue  # its memory is whole, and nobody else's here
            copy = rec.slots[slot] = Store(view.shape, view.dtype)
            copy.rec, copy.slot = rec, slot
            if head.shard is None:
                copy.bind(memory(view).copy())
                continue
            if slot in uses.used:
                with communicating():
                    piece = _piece(view, comm)
            else:  # it was declared for a call that was not recorded
                piece = _blank(view, comm)
            block = piece.block if alone else piece.block.copy()
            set_shard(copy, Shard(piece.layout, block, comm))
            if slot == writer:
                pairs.append((view, copy))
    return pairs


def together(pairs: Pairs, urgent: bool) -> None:
    """What copies hold is what the views hold; if that is urgent, in memory that somebody looks at too."""
    from dcarray.comm.exchange.dist_array import DistArray

    for view, copy in pairs:
        head, new = view.family, copy.shard
        held = head.shard
        assert held is not None and new is not None
        with communicating():
            piece = _whole_of(view, DistArray(held.comm, new.layout, new.block))
        if held.exposed:
            held.block[...] = piece.block
        else:
            held.block = piece.block
        held.filled = None
        head.dirty = held
        if urgent and head.known():
            gather_store(head)


def _told(store: Any) -> bool:
    """Does a store say which elements of its family it has?"""
    while type(store) is Store and store is not store.family:
        if store.origin is None:
            return False
        store = store.origin.parent
    return type(store) is Store


def _blank(store: Store, comm: Communicator) -> DistArray:
    from dcarray.comm.exchange.dist_array import DistArray
    from dcarray.comm.layout.derived_layouts import row_layout

    layout = row_layout(store.shape, comm.size)
    return DistArray(comm, layout, np.zeros(layout.local_shape(comm.rank), store.dtype))


def _piece(store: Store, comm: Communicator) -> DistArray:
    """This rank's part of a view of blocks, as of an array of its own."""
    from dcarray.comm.algorithms.views import read_view
    from dcarray.comm.exchange.dist_array import DistArray

    if store.origin is None:
        held = store.shard
        return DistArray(comm, held.layout, held.block)
    parent, shape, index = store.origin
    return read_view(_piece(parent, comm), shape, index, store.dtype, store.shape)


def _whole_of(store: Store, piece: DistArray) -> DistArray:
    """The part of the family's head, when a view has these elements."""
    from dcarray.comm.algorithms.views import write_view

    if store.origin is None:
        return piece
    parent, shape, index = store.origin
    return _whole_of(parent, write_view(_piece(parent, piece.comm), shape, index, piece))
