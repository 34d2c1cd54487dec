"""Depths of FIFOs: how many elements have to wait where two ways through a network meet again.

Every process is given a *delay*: it works on the point number ``t`` of the raster at time ``t +
delay``. Along an edge ``u -> v`` with lead ``l`` the element of point ``t`` is sent at time ``t +
delay[u]`` and received at time ``t - l + delay[v]``, which has to be later: ``slack = delay[v] -
delay[u] - l`` is at least 1, and at most the elements of ``slack`` ticks wait at a time.  With FIFOs of
that depth all processes can follow that timetable without end; and since the network is a Kahn network, whose
results do not depend on the order in which processes run, no other order can deadlock either.

Delays are chosen so that a spanning tree of the edges has slack 1 (the tight tree of Gansner's network
simplex).  Only an edge that closes a cycle needs a deeper FIFO, without which a process would have to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .boxes import Box, Point

#: Producer, consumer and lead.
Edge = tuple[int, int, int]


def slacks(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the slack of each edge of an acyclic network whose processes are numbered producers first."""
    delay = _earliest(count, edges)
    placed: set[int] = set()
    for root in range(count):
        if root not in placed:
            placed |= _tighten(root, edges, delay)
    return [delay[v] - delay[u] - lead for u, v, lead in edges]


def most_elements(box: Box, raster: Point, ticks: int) -> int:
    """Return the largest number of points of a box among ``ticks`` consecutive points of a raster.

    The ticks from the box's first point on have the most: rows and planes are complete there, and the gaps
    between them are as short as possible.
    """
    points = 0
    for axis, count in enumerate(box.shape):
        whole = min(ticks // prod(raster[axis + 1 :]), count)
        points += whole * prod(box.shape[axis + 1 :])
        if whole == count:
            break
        ticks -= whole * prod(raster[axis + 1 :])
    return points


def _earliest(count: int, edges: Sequence[Edge]) -> list[int]:
    delay = [0] * count
    for u, v, lead in sorted(edges, key=lambda edge: edge[0]):
        delay[v] = max(delay[v], delay[u] + lead + 1)
    return delay


def _tighten(root: int, edges: Sequence[Edge], delay: list[int]) -> set[int]:
    """Change ``delay`` so that the processes connected with ``root`` have a spanning tree of edges with slack
    1; return these processes."""
    tree = {root}
    while True:
        best: tuple[int, int, int] | None = None
        for u, v, lead in edges:
            if (u in tree) != (v in tree):
                spare = delay[v] - delay[u] - lead - 1
                if best is None or spare < best[0]:
                    best = (spare, u, v)
        if best is None:
            return tree
        spare, u, v = best
        # by the least spare slack of all edges that leave the tree: no other edge loses more than it has
        for one in tree if spare else ():
            delay[one] += spare if u in tree else -spare
        tree |= {u, v}
