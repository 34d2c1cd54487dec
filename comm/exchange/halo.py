"""Halo exchange: each rank gets copies of its neighbours' elements that are next to its own.

Corners come from diagonal neighbours, with one message per neighbour.  Going axis by axis needs fewer
messages (two per axis), but each axis would wait for the previous one, which prevents overlap with
computation.  Without corners there are no diagonal messages, and both ways are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from dcarray.comm.layout.axes import CyclicAxis, Run
from dcarray.comm.layout.layouts import Layout, Whole, Widths, widths_of
from dcarray.comm.transport.errors import LayoutError

from .exchange_plan import Box, Exchange, Transfer

__all__ = ["halo_exchange"]

Direction = tuple[int, ...]


def halo_exchange(
    layout: Layout,
    rank: int,
    widths: Widths | None = None,
    *,
    periodic: bool | Sequence[bool] = False,
    corners: bool = True,
    rim: float = math.inf,
) -> Exchange:
    """Return the plan of one rank to fill the halos of an array; it reads and writes the same array.

    One message goes to each neighbour, even if a rank is the neighbour on several sides (with two ranks along
    a periodic axis).  Halos beyond the ends of an axis that is not periodic are not written.

    Parameters
    ----------
    layout : Layout
        The layout of the array.
    rank : int
        The rank that the plan is for.
    widths : int or sequence, optional
        The widths of the halo to fill, as for `Layout`; by default all of it.
    periodic : bool or sequence of bool
        Whether all axes, or each, are periodic.
    corners : bool
        Whether to fill the halo's corners, too, whose elements diagonal neighbours have.
    rim : float, optional
        Send only elements within this distance of one of the array's ends; no axis is periodic then.

    Returns
    -------
    Exchange
        It reads and writes an array of shape ``layout.local_shape(rank)``.

    Raises
    ------
    LayoutError
        If `widths` exceed the layout's halo or, along a periodic axis, the array.
    """
    wanted = layout.halo if widths is None else widths_of(widths, layout.ndim)
    periodic_axes = (periodic,) * layout.ndim if isinstance(periodic, bool) else tuple(periodic)
    if len(periodic_axes) != layout.ndim:
        raise LayoutError(f"{len(periodic_axes)} axes are said to be periodic or not, of {layout.ndim}")
    for axis, (asked, there) in enumerate(zip(wanted, layout.halo, strict=True)):
        if asked[0] > there[0] or asked[1] > there[1]:
            raise LayoutError(f"a halo of {asked} is wanted on axis {axis}, and the layout has {there}")
        if periodic_axes[axis] and max(asked) > layout.shape[axis]:
            raise LayoutError(f"a periodic halo of {asked} is wider than axis {axis} of {layout.shape}")
    if rim < math.inf and any(periodic_axes):
        raise LayoutError("a periodic array has no ends")
    if any(isinstance(part, CyclicAxis) for part in layout.parts):
        rim = math.inf  # positions in memory do not tell the distance to the ends
    owned = [Run(s.start, s.stop - s.start) for s in layout.owned(rank)]
    ends = _array_ends(layout, rank, owned)
    sends: dict[int, list[Box]] = {}
    receives: dict[int, list[Box]] = {}
    local_copies: list[tuple[Box, Box]] = []
    for direction in _directions(wanted, corners):
        back: Direction = tuple(-d for d in direction)
        sent, filled = _box(owned, wanted, direction, True), _box(owned, wanted, back, False)
        receiver, sender = (_neighbour(layout, rank, d, periodic_axes) for d in (direction, back))
        if not all(run.size for run in sent):
            continue  # without elements here, and so at the neighbours along this direction
        if receiver == rank:
            local_copies.append((sent, filled))
            continue
        # Received boxes are listed by the direction of the message, as their sender lists them.
        if receiver is not None:
            sends.setdefault(receiver, []).extend(_near_ends(sent, ends, rim))
        if sender is not None:
            receives.setdefault(sender, []).extend(_near_ends(filled, ends, rim))
    return Exchange(rank, _transfers(sends), _transfers(receives), tuple(local_copies))


def _directions(widths: Sequence[tuple[int, int]], corners: bool) -> Iterator[Direction]:
    """Yield the directions of messages; one in direction -1 fills the halo after the neighbour's elements."""
    ways = [[0, *([-1] if after else []), *([1] if before else [])] for before, after in widths]
    for direction in product(*ways):
        moved = sum(map(abs, direction))
        if moved == 1 or (corners and moved):
            yield direction


def _neighbour(layout: Layout, rank: int, direction: Direction, periodic: Sequence[bool]) -> int | None:
    """Return the neighbour of a rank in a direction along the array's axes; None if there is none."""
    steps, periodic_axes = [0] * layout.grid.ndim, [False] * layout.grid.ndim
    for spec, step, goes_round in zip(layout.axes, direction, periodic, strict=True):
        if not isinstance(spec, Whole):
            steps[spec.grid_axis], periodic_axes[spec.grid_axis] = step, goes_round
        elif step and not goes_round:
            return None
    return layout.grid.neighbour(rank, steps, periodic_axes)


def _box(owned: Sequence[Run], widths: Sequence[tuple[int, int]], direction: Direction, inside: bool) -> Box:
    """Return the part of the halo in a direction; with `inside`, this rank's elements that are sent there."""
    box = []
    for run, (before, after), step in zip(owned, widths, direction, strict=True):
        stop = run.start + run.length
        if step < 0:
            run = Run(run.start, after) if inside else Run(run.start - before, before)
        elif step > 0:
            run = Run(stop - before, before) if inside else Run(stop, after)
        box.append(run)
    return tuple(box)


def _array_ends(layout: Layout, rank: int, owned: Sequence[Run]) -> list[tuple[int, int]]:
    """Return the begin and end of the array along each axis, in coordinates of this rank's memory."""
    first = [runs[0].start if runs else 0 for runs in layout.runs(rank)]
    begin = [run.start - low for run, low in zip(owned, first, strict=True)]
    return [(low, low + extent) for low, extent in zip(begin, layout.shape, strict=True)]


def _near_ends(box: Box, ends: Sequence[tuple[int, int]], rim: float) -> Iterator[Box]:
    """Yield the parts of a box within the distance `rim` of the array's ends, the same for sender and
    receiver."""
    if rim == math.inf:
        yield box
        return
    for axis, (run, (begin, end)) in enumerate(zip(box, ends, strict=True)):
        stop = run.start + run.length
        low = min(max(run.start, begin + int(rim)), stop)
        high = max(low, min(stop, end - int(rim)))
        for first, last in ((run.start, low), (high, stop)):
            if first < last:
                yield (*box[:axis], Run(first, last - first), *box[axis + 1 :])
        box = (*box[:axis], Run(low, high - low), *box[axis + 1 :])
        if low == high:
            return


def _transfers(boxes: dict[int, list[Box]]) -> tuple[Transfer, ...]:
    return tuple(Transfer(peer, tuple(its)) for peer, its in boxes.items() if its)
