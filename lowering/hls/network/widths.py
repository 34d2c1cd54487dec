"""Tests of how many elements streams may carry at a time, by correctness and by the width of memory ports."""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir.nodes import Gather
from dcarray.ir.windows import loads

from .drafts import Draft
from .folds import neutral

#: Bytes that a port to the board's memory has in a cycle: 512 bits.
PORT_BYTES = 64


def widest(group: Sequence[Draft]) -> int:
    """Return the number of elements, of the group's largest dtype, that a memory port transfers."""
    ports = [port for draft in group for port in (*draft.inputs(), *([draft.out] if draft.out else []))]
    return PORT_BYTES // max((port.dtype.itemsize for port in ports), default=PORT_BYTES)


def cannot_be_wide(group: Sequence[Draft], width: int) -> str | None:
    """Return why the streams between the processes of a group cannot carry ``width`` elements along the last
    axis at a time; None if they can."""
    for draft in group:
        reason = _reason(draft, width)
        if reason is not None:
            return f"{draft.name}: {reason}"
    return None


def _reason(draft: Draft, width: int) -> str | None:
    ports = [*draft.inputs(), *([draft.out] if draft.out is not None else [])]
    if any(0 in port.box.shape for port in ports):
        return "there are no elements"
    # rows of arrays in memory are whole vectors, which therefore are aligned
    in_memory = draft.out if draft.kind == "read" else draft.feeds[0] if draft.kind == "write" else None
    if in_memory is not None:
        assert draft.buffer is not None
        row = in_memory.box.shape[-1] if in_memory.box.shape else 1
        if row % width:
            return f"rows of {draft.buffer.array} have {row} elements, which is no multiple of {width}"
    return _of_statement(draft)


def _of_statement(draft: Draft) -> str | None:
    stmt = draft.stmt
    if stmt is None:
        return None
    last = len(stmt.target.shape) - 1
    taken = {load for load, _ in draft.taps}
    for load in loads(stmt.body):
        if load in taken or load.window.array in draft.tables:
            continue
        axes = {ix.axis for ix in load.window.index}
        if isinstance(load, Gather) or last in axes:
            return f"elements of {load.window.array} come through one port"
    if draft.scattered:
        return f"elements of {stmt.target.array} are not stored one after the other"
    if stmt.combine is None:
        return None
    if last in {ix.axis for ix in stmt.target.index}:
        return None  # accumulators are vectors
    assert draft.out is not None
    if neutral(stmt.combine, draft.out.dtype) is None:
        return f"{stmt.combine} has no neutral element"
    return None
