"""More short programs for `benchmarks.programs`: filters, text, calendars, searches, dynamic programming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["further"]

Array = np.ndarray[Any, Any]


def kalman(seen: Array) -> Any:
    f = np.array([[1.0, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]])
    h, q, r = np.eye(2, 4), 0.01 * np.eye(4), 0.5 * np.eye(2)
    x, p, found = np.zeros(4), np.eye(4), np.empty((len(seen), 4))
    for k, z in enumerate(seen):
        x, p = f @ x, f @ p @ f.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + gain @ (z - h @ x)
        p = (np.eye(4) - gain @ h) @ p
        found[k] = x
    return found, np.trace(p)


def words(text: Array) -> Any:
    low = np.where((text >= 65) & (text <= 90), text + 32, text)
    letter = (low >= 97) & (low <= 122)
    ends = np.diff(letter.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(ends == 1), np.flatnonzero(ends == -1)
    sizes = last - first
    pairs = np.bincount(low[:-1].astype(int) * 256 + low[1:], minlength=65536).reshape(256, 256)
    return np.bincount(sizes), sizes.mean(), pairs[97:123, 97:123].sum(1)


def classified(points: Array, labels: Array, asked: Array, k: int) -> Any:
    distance = (points**2).sum(1) - 2 * asked @ points.T + (asked**2).sum(1)[:, None]
    nearest = np.argsort(distance, axis=1)[:, :k]
    votes = np.zeros((len(asked), labels.max() + 1), int)
    np.add.at(votes, (np.arange(len(asked))[:, None], labels[nearest]), 1)
    return votes.argmax(1), votes.max(1) / k


def months(times: Array, values: Array) -> Any:
    month = times.astype("datetime64[M]")
    found, first = np.unique(month, return_index=True)
    days = (found + 1).astype("datetime64[D]") - found.astype("datetime64[D]")
    gaps = np.diff(times) / np.timedelta64(1, "h")
    hour = (times - times.astype("datetime64[D]")) // np.timedelta64(1, "h")
    daily = np.add.reduceat(values, first) / days.astype(int)
    return found, daily, gaps.max(), gaps.mean(), np.bincount(hour.astype(int), values, 24)


def seam(picture: Array) -> Any:
    dx, dy = np.gradient(picture)
    cost = np.abs(dx) + np.abs(dy)
    back = np.zeros(cost.shape, int)
    for i in range(1, len(cost)):
        before = np.pad(cost[i - 1], 1, constant_values=np.inf)
        three = np.stack([before[:-2], before[1:-1], before[2:]])
        back[i] = three.argmin(0) - 1
        cost[i] += three.min(0)
    path = [int(cost[-1].argmin())]
    for i in range(len(cost) - 1, 0, -1):
        path.append(path[-1] + int(back[i, path[-1]]))
    kept = np.ones(picture.shape, bool)
    kept[np.arange(len(cost)), path[::-1]] = False
    return picture[kept].reshape(len(cost), -1), cost[-1].min()


def annealed(cities: Array, turns: int) -> Any:
    rng = np.random.default_rng(2)
    distance = np.sqrt(((cities[:, None] - cities) ** 2).sum(-1))
    tour = rng.permutation(len(cities))
    length = distance[tour, np.roll(tour, -1)].sum()
    for t in range(turns):
        i, j = np.sort(rng.integers(0, len(tour), 2))
        new = tour.copy()
        new[i : j + 1] = new[i : j + 1][::-1]
        other = distance[new, np.roll(new, -1)].sum()
        if other < length or rng.random() < np.exp((length - other) / (0.1 * (1 - t / turns))):
            tour, length = new, other
    return tour, length


_TEXT = b"The quick brown Fox jumps over a lazy dog; it was NOT amused, and said so. "


def further(scale: float) -> tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]:
    """Return functions with arguments, which have ``scale`` times the usual numbers of elements."""
    rng = np.random.default_rng(1)

    def n(count: int) -> int:
        return max(int(count * scale), 20)

    def side(count: int) -> int:
        return max(int(count * scale**0.5), 8)

    text = np.resize(np.frombuffer(_TEXT, np.uint8), n(100_000))
    times = np.datetime64("2021-03-05") + np.sort(rng.integers(0, 700 * 86400, n(30_000))).astype("m8[s]")
    return (
        (kalman, (rng.random((n(200), 2)),)), (words, (text,)),
        (classified, (rng.random((n(400), 6)), rng.integers(0, 5, n(400)), rng.random((n(200), 6)), 7)),
        (months, (times, rng.random(len(times)))), (seam, (rng.random((side(200), side(300))),)),
        (annealed, (rng.random((50, 2)), n(500))),
    )  # fmt: skip
