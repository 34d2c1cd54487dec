"""Recordings that use one distributed array in several geometries: reshapes, and views of other dtypes.

A distributed array has one geometry.  Views in other shapes or dtypes (`dcarray.core.strided_views`) are
copied into distributed arrays of their own before a recording runs, and written back afterwards.  That holds
as long as no statement reads elements in one geometry after they were written in another: there a recording
is split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from dcarray.comm.algorithms.views import read_view, write_view
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.protocol import Communicator
from dcarray.core.processes import communicating
from dcarray.core.shard import Shard, gather_store, local_block, set_shard
from dcarray.core.store import Store, memory
from dcarray.ir.log_entries import Declaration, Statement, is_declaration
from dcarray.recording.replay import Replay

if TYPE_CHECKING:
    from dcarray.recording.log import Recording

__all__ = ["copy_views", "split_at_reshape", "write_back_views"]

Pairs = list[tuple[Store, Store]]


class _Uses:
    """The slots by which statements read and write storage families that have several geometries.

    Attributes
    ----------
    used : set of int
        The slots that statements read or write.
    writer : dict of int to int
        The slot through which a family is written, by the slot of its head.
    clash : int or None
        The first statement that uses a family through another slot than it was written through before.
    """

    def __init__(self, declared: list[Declaration], statements: Iterable[Statement]) -> None:
        heads = [entry.head for entry in declared]
        shared_heads = {head for slot, head in enumerate(heads) if head != slot}
        self.used: set[int] = set()
        self.writer: dict[int, int] = {}
        self.clash: int | None = None
        for k, entry in enumerate(statements):
            read = [slot for slot, *_ in entry.arrays]
            written = entry.outs
            self.used.update(read, written)
            for slot in (*read, *written):
                if self.writer.get(heads[slot], slot) != slot and self.clash is None:
                    self.clash = k
            for slot in written:
                if heads[slot] in shared_heads and self.writer.setdefault(heads[slot], slot) != slot:
                    self.clash = k if self.clash is None else self.clash


# ---- splitting ---------------------------------------------------------------------------------------
def split_at_reshape(rec: Recording, large: int) -> tuple[Replay, Callable[[], None]] | None:
    """Cut a recording before the first use of a distributed array in another geometry than it was written in.

    Parameters
    ----------
    rec : Recording
        It loses its last statements.
    large : int
        The elements above which arrays are distributed.

    Returns
    -------
    (Replay, callable) or None
        The statements to be recorded again, and a function that restores the recording; None if it need not
        be cut.
    """
    declared = rec.declarations()
    if all(entry.head == slot for slot, entry in enumerate(declared)):
        return None
    statements = rec.statements()
    cut = _Uses(declared, statements).clash
    if not cut:  # one statement cannot be split
        return None
    heads = {entry.head for slot, entry in enumerate(declared) if entry.head != slot}
    if not any(type(s := rec.slots[k]) is Store and (s.remote is not None or s.size > large) for k in heads):
        return None
    before = rec.log, rec.slots, rec.news, rec.sites
    rest = Replay(rec, dict(enumerate(statements[cut:], cut)))
    end = [k for k, entry in enumerate(rec.log) if not is_declaration(entry)][cut - 1] + 1
    log = rec.log[:end]
    slots = list(rec.slots[: len(log) - cut])
    for k, entry in enumerate(slots):  # stores that only the rest still uses stay alive for it
        store = rest.held(k)
        if type(entry) is not Store and store is not None:
            slots[k] = ref(store)
    rec.log, rec.slots, rec.sites = log, slots, rec.sites[:cut]
    rec.news = [k for k in rec.news if k < len(slots)]

    def undo() -> None:
        rec.log, rec.slots, rec.news, rec.sites = before

    return rest, undo


# ---- copies ------------------------------------------------------------------------------------------
def copy_views(
    rec: Recording, comm: Communicator, layout_for: Callable[[tuple[int, ...]], Layout | None]
) -> Pairs:
    """Make a recording use distributed copies instead of views that no window describes.

    If the result might be wrong, nothing is changed.

    Parameters
    ----------
    rec : Recording
        Its log and slots are changed.
    comm : Communicator
        The ranks.
    layout_for : callable
        ``layout_for(shape)`` returns the layout of an array; None if it is not distributed.

    Returns
    -------
    list of (Store, Store)
        The views that are written, and their copies, for `write_back_views` after the run.
    """
    declared = rec.declarations()
    uses = _Uses(declared, rec.statements())
    views = [slot for slot, entry in enumerate(declared) if entry.head != slot]
    heads = {declared[slot].head for slot in views}
    members = {first: [k for k, entry in enumerate(declared) if entry.head == first] for first in heads}
    slots = [slot for first in heads for slot in members[first]]
    if uses.clash is not None or not all(
        not declared[slot].is_new and _has_known_elements(rec.slots[slot]) for slot in slots
    ):
        return []
    pairs: Pairs = []
    places = [k for k, entry in enumerate(rec.log) if is_declaration(entry)]
    for first in heads:
        head, writer = rec.slots[first], uses.writer.get(first)
        layout = None if head.remote is not None or writer in (None, first) else layout_for(head.shape)
        if layout is not None:
            with communicating():
                block = local_block(memory(head), layout, comm)
            set_shard(head, Shard(layout, block, comm))
        exclusive = writer is None or uses.used.isdisjoint(set(members[first]) - {writer})
        for slot in members[first]:
            rec.log[places[slot]] = declared[slot]._replace(head=slot).entry()
            if slot == first:
                continue
            view = rec.slots[slot]
            if head.remote is None and (exclusive or slot == writer):
                continue  # its memory is whole on this rank, and no other slot uses it
            copy = rec.slots[slot] = Store(view.shape, view.dtype)
            copy.rec, copy.slot = rec, slot
            if head.remote is None:
                copy.bind(memory(view).copy())
                continue
            if slot in uses.used:
                with communicating():
                    piece = _view_array(view, comm)
            else:  # declared for a call that was not recorded
                piece = _zeros_like(view, comm)
            block = piece.block if exclusive else piece.block.copy()
            set_shard(copy, Shard(piece.layout, block, comm))
            if slot == writer:
                pairs.append((view, copy))
    return pairs


def write_back_views(pairs: Pairs, urgent: bool) -> None:
    """Write copies back to the views; if ``urgent``, also to whole memory that the program can see."""
    for view, copy in pairs:
        head, new = view.family, copy.remote
        held = head.remote
        assert held is not None and new is not None
        with communicating():
            piece = _replace_view(view, DistArray(held.comm, new.layout, new.block))
        if held.exposed:
            held.block[...] = piece.block
        else:
            held.block = piece.block
        held.filled = None
        head.dirty = held
        if urgent and head.is_exposed():
            gather_store(head)


def _has_known_elements(store: Any) -> bool:
    """Whether the place of a store in its family is known."""
    while type(store) is Store and store is not store.family:
        if store.origin is None:
            return False
        store = store.origin.parent
    return type(store) is Store


def _zeros_like(store: Store, comm: Communicator) -> DistArray:
    layout = row_layout(store.shape, comm.size)
    return DistArray(comm, layout, np.zeros(layout.local_shape(comm.rank), store.dtype))


def _view_array(store: Store, comm: Communicator) -> DistArray:
    """Return a view of a distributed array as a distributed array of its own."""
    if store.origin is None:
        held = store.remote
        return DistArray(comm, held.layout, held.block)
    parent, shape, index = store.origin
    return read_view(_view_array(parent, comm), shape, index, store.dtype, store.shape)


def _replace_view(store: Store, piece: DistArray) -> DistArray:
    """Return the distributed array of the family's head, with these elements in place of a view's."""
    if store.origin is None:
        return piece
    parent, shape, index = store.origin
    return _replace_view(parent, write_view(_view_array(parent, piece.comm), shape, index, piece))
