"""Overlap of communication and computation: statements that need no message run while messages travel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dcarray.comm.planning.analysis.halo_state import Box, bounds, boxes_around
from dcarray.comm.planning.analysis.normalise import kept_axes
from dcarray.comm.planning.rank_program.steps import Begin, Exchanges, Finish, Frame, Local, Program, Step
from dcarray.ir.analysis.effects import reads, writes
from dcarray.ir.nodes import Array, Compute, Gather, Index, Region, Stmt, Window
from dcarray.ir.renaming import remap_points
from dcarray.ir.windows import loads

from .performance_model import Link

__all__ = ["overlap_communication"]

# Seconds of each further kernel into which a statement is split.
KERNEL_TIME = 10e-6


@dataclass(frozen=True)
class _Split:
    """A step's statements before and after the wait for messages.

    The first `kernels` of `late` compute the points at the border of a statement split in two.
    """

    early: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    kernels: int


def overlap_communication(program: Program, link: Link | None) -> Program:
    """Return a program that waits for each exchange as late as possible, where that saves time.

    Parameters
    ----------
    program : Program
    link : Link or None
        The cost of messages; None: overlap wherever possible.

    Returns
    -------
    Program
        The same program if nothing overlaps.  Ranks may decide differently, as messages stay the same.
    """
    steps: list[Step] = []
    todo = list(program.steps)
    while todo:
        step = todo.pop(0)
        if not isinstance(step, Exchanges):
            steps.append(step)
            continue
        before = len(steps)
        while before and _may_begin_before(steps[before - 1], step):
            before -= 1
        frames = []
        for one in todo:
            if not isinstance(one, Frame):
                break
            frames.append(one)
        local = todo[len(frames)] if len(frames) < len(todo) else None
        parts = _split(step, local, program) if isinstance(local, Local) else None
        if parts is not None and not (
            _is_worthwhile(step, parts, link) and _independent_of_frames(parts.early, frames)
        ):
            parts = None
        if parts is None and before == len(steps):
            steps.append(step)
            continue
        steps.insert(before, Begin(step))
        if parts is not None:
            assert isinstance(local, Local)
            steps.append(_local_step(local, parts.early, parts.late))
            todo[len(frames) : len(frames) + 1] = (
                [_local_step(local, parts.late, parts.early)] if parts.late else []
            )
        steps.append(Finish(step))
    return program if len(steps) == len(program.steps) else replace(program, steps=tuple(steps))


def _may_begin_before(step: Step, exchange: Exchanges) -> bool:
    """Whether an exchange may begin before a step that precedes it."""
    return isinstance(step, Local) and not (
        {*step.reads, *step.writes} & {*exchange.writes} or {*step.writes} & {*exchange.reads}
    )


def _independent_of_frames(early: Sequence[Stmt], frames: Sequence[Frame]) -> bool:
    """Whether statements neither read nor write an element that `frames` copy."""
    return not any(
        window.array == frame.target and any(_boxes_intersect(box, bounds(window)) for box in frame.boxes)
        for frame in frames
        for stmt in early
        for window in _windows(stmt)
    )


def _boxes_intersect(one: Box, other: Box) -> bool:
    """Whether two boxes share an element; a box without axes intersects every box."""
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=False))


def _is_worthwhile(step: Exchanges, parts: _Split, link: Link | None) -> bool:
    if not parts.early:
        return False
    if link is not None:
        both = parts.early, parts.late[parts.kernels :]
        early, rest = ({window.array for stmt in body for window in _windows(stmt)} for body in both)
        if early & rest:
            return False  # one pass over shared arrays may serve both
    counts = step.counts()
    messages = max(counts.messages_sent, counts.messages_received)
    nbytes = max(counts.bytes_sent, counts.bytes_received)
    return bool(messages) and (
        link is None or link.time(nbytes, messages) > KERNEL_TIME * (1 + parts.kernels)
    )


def _split(step: Exchanges, local: Local, program: Program) -> _Split | None:
    """Return the leading statements that need not wait for an exchange, and the rest; None if all wait."""
    sent, filled = set(step.reads), set(step.writes)
    early: list[Stmt] = []
    body = local.region.body
    for k, stmt in enumerate(body):
        written = {w.array for w in writes(stmt)}
        if written & (sent | filled):
            return _Split(tuple(early), body[k:], 0)
        if not {w.array for w in reads(stmt)} & filled:
            early.append(stmt)
            continue
        inner = _independent_box(stmt, step, program)
        if inner is None or not isinstance(stmt, Compute):
            return _Split(tuple(early), body[k:], 0)
        rims = [_restrict(stmt, box) for box in boxes_around(stmt.target.shape, inner)]
        return _Split((*early, _restrict(stmt, inner)), (*rims, *body[k + 1 :]), len(rims))
    return _Split(tuple(early), (), 0)


def _independent_box(stmt: Stmt, step: Exchanges, program: Program) -> Box | None:
    """Return the box of a statement's points that need no exchanged element; None if it is too small."""
    if not isinstance(stmt, Compute) or stmt.combine is not None or stmt.init is not None:
        return None
    halos = {item.source for item in step.items if item.source == item.target}
    filled = set(step.writes)
    shape: tuple[int, ...] = stmt.target.shape
    if len(kept_axes(stmt)) < len(shape):
        return None
    box: list[tuple[int, int]] = [(0, n) for n in shape]
    for load in loads(stmt.body):
        name = load.window.array
        if name == stmt.target.array and load.window != stmt.target:
            return None  # a piece would see elements that another has written
        if name not in filled:
            continue
        layout = program.memory[name].layout
        if isinstance(load, Gather) or name not in halos or layout is None:
            return None
        for ix, own, (before, after) in zip(
            load.window.index, layout.owned(program.rank), layout.halo, strict=True
        ):
            if not before and not after:
                continue
            if ix.axis is None:
                if not own.start <= ix.offset < own.stop:
                    return None
                continue
            low, high = _points_in_interval(ix, own.start, own.stop)
            box[ix.axis] = max(box[ix.axis][0], low), min(box[ix.axis][1], high)
    inside = math.prod(max(0, high - low) for low, high in box)
    return tuple(box) if 2 * inside >= math.prod(shape) > inside else None


def _points_in_interval(ix: Index, start: int, stop: int) -> tuple[int, int]:
    """Return the interval of points whose array indices along an axis lie in ``start <= i < stop``."""
    if ix.stride > 0:
        return -((ix.offset - start) // ix.stride), -((ix.offset - stop) // ix.stride)
    step = -ix.stride
    return -((stop - 1 - ix.offset) // step), (ix.offset - start) // step + 1


def _restrict(stmt: Compute, box: Box) -> Compute:
    """Return a statement restricted to a box of its points."""
    amap = tuple(Index(low, 1, axis) for axis, (low, _) in enumerate(box))
    return remap_points(stmt, amap, tuple(high - low for low, high in box))


def _local_step(local: Local, body: tuple[Stmt, ...], other: tuple[Stmt, ...]) -> Local:
    """Return a step of the statements `body` of a local step, where arrays that `other` use are not
    temporary."""
    named, elsewhere = ({w.array for stmt in some for w in _windows(stmt)} for some in (body, other))
    written = {w.array for stmt in body for w in writes(stmt)}
    bases = {a.base for a in local.region.arrays}
    arrays: list[Array] = []
    for array in local.region.arrays:
        if array.name not in named and array.name not in bases:
            continue
        role = array.role
        if role != "temp" or array.name in elsewhere:
            role = "inout" if array.name in written or (role == "inout" and array.name in bases) else "in"
        arrays.append(replace(array, role=role))
    return Local(Region((), tuple(arrays), body))


def _windows(stmt: Stmt) -> tuple[Window, ...]:
    return (*reads(stmt), *writes(stmt))
