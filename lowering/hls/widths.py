"""Whether streams may carry several elements at a time: is it right, and is it what memory can do."""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir.nodes import Gather
from dcarray.ir.windows import loads

from .drafts import Draft
from .folds import neutral

#: Bytes that a port to the board's memory has in a cycle: 512 bits.
PORT_BYTES = 64


def cannot_be_wide(group: Sequence[Draft], width: int) -> str | None:
    """Return why the streams between some processes cannot carry ``width`` elements at a time, all along the
    last axis; None if they can."""
    for draft in group:
        reason = _reason(draft, width)
        if reason is not None:
            return f"{draft.name}: {reason}"
    return None


def _reason(draft: Draft, width: int) -> str | None:
    ports = [*draft.inputs(), *([draft.out] if draft.out is not None else [])]
    for port in ports:
        if port.dtype.itemsize * width > PORT_BYTES:
            return f"{width} elements of {port.dtype.name} are more than {8 * PORT_BYTES} bits"
        if 0 in port.box.shape:
            return "there are no elements"
    # rows of what lies in memory are whole vectors, which therefore are aligned
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
    if last < 0:
        return "a single element"
    taken = {load for load, _ in draft.taps}
    for load in loads(stmt.body):
        if load in taken:
            continue
        axes = {ix.axis for ix in load.window.index}
        if isinstance(load, Gather) or last in axes:
            return f"elements of {load.window.array} come through one port"
    if draft.scattered:
        return f"elements of {stmt.target.array} are not stored one after the other"
    if stmt.combine is None:
        return None
    if last in {ix.axis for ix in stmt.target.index}:
        return "a fold that keeps the last axis adds to several results at a time"
    assert draft.out is not None
    if neutral(stmt.combine, draft.out.dtype) is None:
        return f"{stmt.combine} has no neutral element"
    return None
