"""Reshapes of arrays in blocks, as arrays of their own in a recording: blocks have one geometry alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .forms import reads, writes
from .parts import Spread, spread
from .ranks import parted
from .store import Store

if TYPE_CHECKING:
    from .comm.protocol import Communicator
    from .recording import Recording

__all__ = ["apart", "together"]

Pairs = list[tuple[Store, Store]]


def apart(rec: Recording, comm: Communicator) -> Pairs:
    """Have a recording work on copies in blocks where it works on reshapes of arrays in blocks.

    That is right for arrays that are only read, and for those that are known by one shape only; unless all
    are such, nothing is changed.

    Parameters
    ----------
    rec : Recording
        It is changed.
    comm : Communicator
        The ranks.

    Returns
    -------
    list of (Store, Store)
        Arrays and the copies of them that are written; `together` is to be called for them after the run.
    """
    from .comm.piece import Piece

    declared, statements = rec.declarations(), rec.statements()
    written = {slot for entry in statements for slot in writes(entry)}
    used = written | {arg[0] for entry in statements for arg in reads(entry) if type(arg) is not int}
    reshapes = [slot for slot, entry in enumerate(declared) if entry[-1] != slot]
    for first in {declared[slot][-1] for slot in reshapes}:
        family = [slot for slot, entry in enumerate(declared) if entry[-1] == first]
        known = sum(slot in used for slot in family)
        if {declared[slot][:2] for slot in family} != {("old", declared[first][1])}:
            return []
        if not written.isdisjoint(family) and (known > 1 or rec.slots[first].spread is None):
            return []
    places = [k for k, entry in enumerate(rec.log) if entry[0] in ("old", "new")]
    copies: dict[tuple[int, tuple[int, ...]], Spread] = {}
    changed: Pairs = []
    for slot in reshapes:
        entry, store = rec.log[places[slot]], rec.slots[slot]
        first, head = entry[-1], rec.slots[entry[-1]]
        rec.log[places[slot]] = (*entry[:-1], slot)
        if head.spread is None or slot not in used:
            continue
        if (first, store.shape) not in copies:
            with parted():
                piece = Piece(comm, head.spread.layout, head.spread.block).reshaped(store.shape)
            copies[first, store.shape] = Spread(piece.layout, piece.block, comm)
        copy = rec.slots[slot] = Store(store.shape, store.dtype)
        copy.rec, copy.slot = rec, slot
        spread(copy, copies[first, store.shape])
        if slot in written:
            changed.append((head, copy))
    return changed


def together(pairs: Pairs) -> None:
    """What copies hold is what the arrays hold."""
    from .comm.piece import Piece

    for head, copy in pairs:
        held, new = head.spread, copy.spread
        assert held is not None and new is not None
        with parted():
            piece = Piece(held.comm, new.layout, new.block).reshaped(head.shape).moved(held.layout)
        if held.exposed:
            held.block[...] = piece.block
        else:
            held.block = piece.block
        held.filled = None
        head.dirty = held
