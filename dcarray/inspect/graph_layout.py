"""A layered drawing of a small data-flow graph: layers, order within a layer, coordinates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP_X, GAP_Y, DUMMY = 26.0, 46.0, 10.0
Edge = tuple[str, str]


@dataclass(frozen=True)
class Placed:
    """A drawing's layout: centres of the nodes, routes of the edges, and the extent of the drawing."""

    centre: dict[str, tuple[float, float]]
    route: dict[Edge, list[tuple[float, float]]]
    width: float
    height: float


def _ranks(names: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Return layers by the longest path from a source; sources move down to just above their first use."""
    after: dict[str, list[str]] = defaultdict(list)
    before: dict[str, int] = dict.fromkeys(names, 0)
    for a, b in edges:
        after[a].append(b)
        before[b] += 1
    sources = [n for n in names if before[n] == 0]
    rank = dict.fromkeys(names, 0)
    ready, left = list(sources), dict(before)
    for node in ready:  # grows during the loop
        for b in after[node]:
            rank[b] = max(rank[b], rank[node] + 1)
            left[b] -= 1
            if left[b] == 0:
                ready.append(b)
    for node in sources:
        if after[node]:
            rank[node] = min(rank[b] for b in after[node]) - 1
    return rank


def place(sizes: Mapping[str, tuple[float, float]], edges: Sequence[Edge]) -> Placed:
    """Lay out the graph from top to bottom.

    Parameters
    ----------
    sizes : mapping of str to (float, float)
        Width and height of every node.
    edges : sequence of (str, str)
        Pairs of nodes, from and to; the graph has no cycles.

    Returns
    -------
    Placed
    """
    if not sizes:
        return Placed({}, {}, 0.0, 0.0)
    rank = _ranks(list(sizes), edges)
    width = {name: size[0] for name, size in sizes.items()}
    chains: dict[Edge, list[str]] = {}
    up: dict[str, list[str]] = defaultdict(list)
    down: dict[str, list[str]] = defaultdict(list)
    for number, (a, b) in enumerate(edges):  # a long edge passes each layer through a thin dummy node
        chain = [a]
        for level in range(rank[a] + 1, rank[b]):
            name = f"\0{number}.{level}"
            rank[name], width[name] = level, DUMMY
            chain.append(name)
        chain.append(b)
        chains[a, b] = chain
        for one, two in pairwise(chain):
            down[one].append(two)
            up[two].append(one)
    rows: list[list[str]] = [[] for _ in range(max(rank.values()) + 1)]
    for name, level in rank.items():
        rows[level].append(name)
    _order(rows, up, down)
    x = _abscissae(rows, width, up, down)
    heights = [max((sizes[n][1] for n in row if n in sizes), default=0.0) for row in rows]
    tops = [sum(heights[:k]) + GAP_Y * k for k in range(len(rows))]
    y = {n: tops[k] + heights[k] / 2 for k, row in enumerate(rows) for n in row}
    left = min(x[n] - width[n] / 2 for n in x)
    centre = {n: (x[n] - left, y[n]) for n in x}
    extent = max(x[n] + width[n] / 2 for n in x) - left
    route = {edge: [centre[n] for n in chain] for edge, chain in chains.items()}
    return Placed({n: centre[n] for n in sizes}, route, extent, tops[-1] + heights[-1])


def _order(rows: list[list[str]], up: Mapping[str, list[str]], down: Mapping[str, list[str]]) -> None:
    """Reduce crossings: sort each layer by the mean position of its neighbours, up and down alternately."""
    for sweep in range(12):
        beside = up if sweep % 2 == 0 else down
        for row in rows if sweep % 2 == 0 else reversed(rows):
            position = {name: k for other in rows for k, name in enumerate(other)}
            mean = {
                n: sum(position[m] for m in beside[n]) / len(beside[n])
                if beside.get(n)
                else float(position[n])
                for n in row
            }
            row.sort(key=lambda n, mean=mean: mean[n])  # type: ignore[misc]


def _abscissae(
    rows: list[list[str]],
    width: Mapping[str, float],
    up: Mapping[str, list[str]],
    down: Mapping[str, list[str]],
) -> dict[str, float]:
    """Return horizontal positions: each node is pulled towards its neighbours, keeping order and distance."""
    x: dict[str, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            x[name] = at + width[name] / 2
            at += width[name] + GAP_X
        for name in row:
            x[name] -= (at - GAP_X) / 2
    for sweep in range(16):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            beside = up if sweep % 2 == 0 else down
            wanted = [sum(x[m] for m in beside[n]) / len(beside[n]) if beside.get(n) else x[n] for n in row]
            for name, value in zip(row, _apart(wanted, [width[n] for n in row]), strict=True):
                x[name] = value
    return x


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The positions nearest to the wanted ones that keep order and distance (pooling of neighbours)."""
    shift = [0.0]
    for k in range(1, len(widths)):
        shift.append(shift[-1] + (widths[k - 1] + widths[k]) / 2 + GAP_X)
    blocks: list[list[float]] = []  # mean of (wanted - shift), count
    for value, offset in zip(wanted, shift, strict=True):
        blocks.append([value - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, count = blocks.pop()
            total = blocks[-1][1] + count
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + mean * count) / total, total]
    flat = [mean for mean, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(flat, shift, strict=True)]
