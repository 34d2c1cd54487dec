"""Copy on write for arrays whose present memory must not be overwritten.

A run that may have to be repeated needs its original input.  Instead of a copy of each array before the run,
the first statement that writes such an array writes to a new one, and the elements that the statement does
not write are copied (``comm.frame``): for a stencil, those at the ends of the array.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from dcarray.comm.planning.analysis.halo_state import Box, bounds, is_dense_box
from dcarray.comm.planning.placement.draft import PlacedRegion
from dcarray.comm.transport.errors import PlanError
from dcarray.ir.analysis.effects import families, writes
from dcarray.ir.nodes import Call, Compute, Stmt
from dcarray.ir.renaming import numbered, rename
from dcarray.ir.windows import identity

__all__ = ["copy_on_write"]


def copy_on_write(placed: PlacedRegion, names: Collection[str]) -> PlacedRegion:
    """Return a region that computes the same but does not overwrite some arrays; new arrays hold the results.

    Parameters
    ----------
    placed : PlacedRegion
    names : collection of str
        The arrays to keep, which must exist before the region.

    Returns
    -------
    PlacedRegion

    Raises
    ------
    PlanError
        When the region uses the memory of one of the arrays under several shapes.
    """
    for name in names:
        placed = _redirect(placed, name)
    return placed


def _redirect(placed: PlacedRegion, name: str) -> PlacedRegion:
    region, body = placed.region, placed.region.body
    first = next((k for k, stmt in enumerate(body) if _writes(stmt, name)), None)
    if first is None:
        return placed
    root = families(region)
    if sum(root[array.name] == root[name] for array in region.arrays) > 1:
        raise PlanError(f"{name} is used under several shapes")
    old = next(array for array in region.arrays if array.name == name)
    copy = replace(old, name=numbered(name, root), role="out", strides=None)
    hole, writer = _written_box(body[first]), body[first]
    if hole is None:  # copy all of it
        writer = rename(writer, name, copy.name)
    else:
        assert isinstance(writer, Compute)
        writer = replace(writer, target=replace(writer.target, array=copy.name))
    frame = Call("comm.frame", (identity(old),), (identity(copy),), (("hole", hole),))
    place = _frame_position(body[:first], name)
    about = (
        [rename(body[first - 1], name, copy.name)] if place < first and _is_beyond(body[first - 1]) else []
    )
    between = body[place : first - len(about)]
    after = (rename(stmt, name, copy.name) for stmt in body[first + 1 :])
    arrays = (*(replace(a, role="in") if a is old else a for a in region.arrays), copy)
    changed = replace(region, arrays=arrays, body=(*body[:place], frame, *between, *about, writer, *after))
    there = {n: copy.name if now == name else now for n, now in placed.after.items()}
    forms = dict(placed.forms)
    if name in forms:
        forms[copy.name] = forms.pop(name)
    return replace(placed, region=changed, after=there, forms=forms)


def _writes(stmt: Stmt, name: str) -> bool:
    return any(window.array == name for window in writes(stmt))


def _is_beyond(stmt: Stmt) -> bool:
    return isinstance(stmt, Call) and stmt.op == "comm.beyond"


def _frame_position(body: Sequence[Stmt], name: str) -> int:
    """Return the position in `body` at which an array that these statements do not write is copied.

    Early, so that the copy does not separate statements of one kernel, but after the last exchange of the
    array's halo and the exchanges that share its messages.
    """
    last = max((k + 1 for k, stmt in enumerate(body) if _exchanges(stmt, name)), default=0)
    while last < len(body) and isinstance(body[last], Call) and not _is_beyond(body[last]):
        last += 1
    return last


def _exchanges(stmt: Stmt, name: str) -> bool:
    return isinstance(stmt, Call) and stmt.op == "comm.halo" and stmt.reads[0].array == name


def _written_box(stmt: Stmt) -> Box | None:
    """Return the box of elements that a statement overwrites without reading; None if they form no box."""
    if not isinstance(stmt, Compute) or (stmt.combine is not None and stmt.init is None):
        return None
    return bounds(stmt.target) if stmt.scan is None and is_dense_box(stmt.target) else None
