"""Short programs of ordinary NumPy code on arrays of medium size, where acceleration gains little.

They were not chosen to favour dcarray: image filters, statistics, small simulations, linear algebra, as
people write them.  `benchmarks.ordinary` times them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .further import further

__all__ = ["Program", "programs"]

Array = np.ndarray[Any, Any]
Program = tuple[str, Callable[..., Any], tuple[Any, ...]]
"""What it is called, a function, and its arguments."""


# ---- simulations -------------------------------------------------------------------------------------
def gray_scott(u: Array, v: Array, steps: int) -> Any:
    for _ in range(steps):
        lu = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        lv = np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4 * v
        reaction = u * v * v
        u = u + (0.16 * lu - reaction + 0.035 * (1 - u))
        v = v + (0.08 * lv + reaction - 0.1 * v)
    return u, v


def wave(u: Array, before: Array, steps: int) -> Any:
    for _ in range(steps):
        after = 2 * u - before
        inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        after[1:-1, 1:-1] += 0.1 * inner
        before, u = u, after
    return u


def life(world: Array, turns: int) -> Any:
    for _ in range(turns):
        near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        n = sum(np.roll(np.roll(world, i, 0), j, 1) for i, j in near)
        world = ((n == 3) | ((n == 2) & (world == 1))).astype(np.uint8)
    return world


def advection(c: Array, steps: int) -> Any:
    for _ in range(steps):
        c = c - 0.3 * (c - np.roll(c, 1, 0)) - 0.2 * (c - np.roll(c, 1, 1))
    return c


def boltzmann(f: Array, steps: int) -> Any:
    ways = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]
    weights = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
    for _ in range(steps):
        flow = [np.roll(part, way, (0, 1)) for part, way in zip(f, ways, strict=True)]
        density = sum(flow)
        x, y = (sum(part * way[k] for part, way in zip(flow, ways, strict=True)) / density for k in (0, 1))
        along = [3 * (x * i + y * j) for i, j in ways]
        still = 1 - 1.5 * (x * x + y * y)
        even = [w * density * (still + a + 0.5 * a * a) for w, a in zip(weights, along, strict=True)]
        f = np.stack([part + (e - part) / 0.6 for part, e in zip(flow, even, strict=True)])
    return f


def ising(spins: Array, turns: int) -> Any:
    rng = np.random.default_rng(1)
    i, j = np.indices(spins.shape)
    for _ in range(turns):
        for colour in (0, 1):
            near = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            accepted = rng.random(spins.shape) < np.exp(-0.88 * spins * near)
            spins = np.where(accepted & ((i + j) % 2 == colour), -spins, spins)
    return spins


def bodies(points: Array, steps: int) -> Any:
    speeds = np.zeros_like(points)
    for _ in range(steps):
        apart = points[None] - points[:, None]
        distance = (apart**2).sum(-1) + 0.01
        speeds = speeds + 0.01 * (apart / distance[..., None] ** 1.5).sum(1)
        points = points + 0.01 * speeds
    return points


def lorenz(steps: int) -> Any:
    def slope(s: Any) -> Any:
        return np.array([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    state, found = np.ones(3), np.empty((steps, 3))
    for k in range(steps):
        a = slope(state)
        b = slope(state + 0.005 * a)
        state = state + 0.01 * slope(state + 0.01 * b)
        found[k] = state
    return found


def korteweg_de_vries(u: Array, steps: int) -> Any:
    k = np.fft.fftfreq(len(u)) * len(u)
    for _ in range(steps):
        spectrum = np.fft.fft(u)
        first = np.fft.ifft(1j * k * spectrum).real
        third = np.fft.ifft(-1j * k**3 * spectrum).real
        u = u - 1e-10 * (6 * u * first + third)
    return u


def walks(count: int, steps: int) -> Any:
    rng = np.random.default_rng(1)
    places = np.where(rng.random((count, steps)) < 0.5, 1, -1).cumsum(1)
    return places.max(1).mean(), (places == 0).sum(1).mean()


# ---- statistics --------------------------------------------------------------------------------------
def k_means(x: Array, k: int, turns: int) -> Any:
    centres = x[:k].copy()
    for _ in range(turns):
        nearest = ((x[:, None, :] - centres[None]) ** 2).sum(-1).argmin(1)
        for j in range(k):
            centres[j] = x[nearest == j].mean(0)
    return centres, np.bincount(nearest, minlength=k)


def neighbours(x: Array, y: Array, k: int) -> Any:
    distance = ((x[:, None, :] - y[None, :, :]) ** 2).sum(2)
    nearest = np.argpartition(distance, k, axis=1)[:, :k]
    return np.take_along_axis(distance, nearest, 1).mean(1)


def logistic(x: Array, y: Array, steps: int) -> Any:
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x @ w)))
        w -= 0.1 * (x.T @ (p - y)) / len(y)
    return w


def components(x: Array, k: int) -> Any:
    z = (x - x.mean(0)) / x.std(0)
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    return values, np.abs(z @ vectors[:, ::-1][:, :k]).mean(0)


def layers(x: Array, a: Array, b: Array, c: Array) -> Any:
    hidden = np.tanh(np.maximum(x @ a, 0) @ b)
    out = hidden @ c
    e = np.exp(out - out.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def correlations(x: Array) -> Any:
    return np.corrcoef(x, rowvar=False), np.cov(x.T)


def moving(x: Array, width: int) -> Any:
    sums = np.cumsum(np.insert(x, 0, 0.0))
    windows = np.lib.stride_tricks.sliding_window_view(x, width)
    return (sums[width:] - sums[:-width]) / width, windows.std(1), windows.max(1)


def outliers(x: Array) -> Any:
    middle = np.median(x)
    z = np.abs(x - middle) / (1.4826 * np.median(np.abs(x - middle)))
    y = x.copy()
    y[z > 3] = middle
    return y.mean(), np.clip(x, *np.percentile(x, [1, 99])).std()


def groups(keys: Array, values: Array) -> Any:
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return np.add.reduceat(values[order], first) / np.diff(np.r_[first, len(keys)])


def returns(prices: Array) -> Any:
    change = prices[1:] / prices[:-1] - 1
    total = np.cumprod(1 + change, 0)
    return (1 - total / np.maximum.accumulate(total, 0)).max(0), change.mean(0) / change.std(0)


def options(s: Array, strike: float, t: Array) -> Any:
    d1 = (np.log(s / strike) + 0.05 * t) / (0.2 * np.sqrt(t))
    d2 = d1 - 0.2 * np.sqrt(t)
    n1, n2 = (1 / (1 + np.exp(-1.5976 * d - 0.070565992 * d**3)) for d in (d1, d2))
    return s * n1 - strike * np.exp(-0.03 * t) * n2


# ---- pictures and signals ----------------------------------------------------------------------------
def equalized(picture: Array) -> Any:
    counts, _ = np.histogram(picture.ravel(), 256, (0, 256))
    sums = counts.cumsum()
    return ((sums - sums.min()) * 255 / (sums.max() - sums.min()))[picture].astype(np.uint8)


def edges(picture: Array) -> Any:
    p = np.pad(picture.astype(float), 1, mode="edge")
    x = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    y = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    size = np.hypot(x, y)
    return (size * 255 / size.max()).astype(np.uint8)


def turned(picture: Array, angle: float) -> Any:
    h, w = picture.shape
    y, x = np.mgrid[0:h, 0:w]
    ys = np.clip(np.cos(angle) * y - np.sin(angle) * x, 0, h - 2)
    xs = np.clip(np.sin(angle) * y + np.cos(angle) * x, 0, w - 2)
    y0, x0 = ys.astype(int), xs.astype(int)
    a, b = ys - y0, xs - x0
    above = picture[y0, x0] * (1 - b) + picture[y0, x0 + 1] * b
    below = picture[y0 + 1, x0] * (1 - b) + picture[y0 + 1, x0 + 1] * b
    return above * (1 - a) + below * a


def medians(picture: Array) -> Any:
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return np.median(np.stack([np.roll(picture, shift, (0, 1)) for shift in shifts]), 0)


def hues(picture: Array) -> Any:
    r, g, b = picture[..., 0], picture[..., 1], picture[..., 2]
    most, least = picture.max(-1), picture.min(-1)
    d = most - least + 1e-12
    hue = np.select([most == r, most == g], [(g - b) / d % 6, (b - r) / d + 2], (r - g) / d + 4) / 6
    return np.stack([hue, d / (most + 1e-12), most], -1)


def quantized(x: Array) -> Any:
    scale = np.abs(x).max() / 127
    q = np.round(x / scale).astype(np.int8)
    return q, (q.astype(np.float32) * scale - x).std()


def delay(a: Array, b: Array) -> Any:
    spectrum = np.fft.rfft(a, 2 * len(a)) * np.conj(np.fft.rfft(b, 2 * len(b)))
    return np.fft.irfft(spectrum)[: len(a)].argmax()


def julia(z: Array, turns: int) -> Any:
    steps = np.zeros(z.shape, int)
    for k in range(turns):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + (-0.4 + 0.6j)
        steps[inside] = k
    return steps


# ---- algorithms --------------------------------------------------------------------------------------
def primes(n: int) -> Any:
    found = np.ones(n, bool)
    found[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if found[k]:
            found[k * k :: k] = False
    return np.flatnonzero(found)


def pages(values: Array, rows: Array, columns: Array, x: Array) -> Any:
    for _ in range(5):
        y = np.bincount(rows, values * x[columns], len(x))
        x = y / np.linalg.norm(y)
    return x


def thomas(a: Array, b: Array, c: Array, d: Array) -> Any:
    n = len(b)
    p, q, x = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
    p[0], q[0] = c[0] / b[0], d[0] / b[0]
    for k in range(1, n):
        m = b[k] - a[k] * p[k - 1]
        p[k], q[k] = c[k] / m, (d[k] - a[k] * q[k - 1]) / m
    x[-1] = q[-1]
    for k in range(n - 2, -1, -1):
        x[k] = q[k] - p[k] * x[k + 1]
    return x


def warped(a: Array, b: Array) -> Any:
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            least = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = abs(a[i - 1] - b[j - 1]) + least
    return cost[n, m]


def paths(distance: Array) -> Any:
    for k in range(len(distance)):
        distance = np.minimum(distance, distance[:, k : k + 1] + distance[k])
    return distance


def systems(a: Array, b: Array) -> Any:
    return np.linalg.matrix_power(a, 7), a @ b.T - b.T @ a, np.linalg.solve(a + 9 * np.eye(len(a)), b[0])


# ---- tables and dates -----------------------------------------------------------------------------
class Running:
    """Running statistics of the columns of a table whose rows arrive one by one."""

    def __init__(self, n: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(n), np.zeros(n)
        self.least, self.most = np.full(n, np.inf), np.full(n, -np.inf)

    def add(self, x: Array) -> None:
        self.count += 1
        d = x - self.mean
        self.mean += d / self.count
        self.squares += d * (x - self.mean)
        self.least = np.minimum(self.least, x)
        np.maximum(self.most, x, out=self.most)

    def result(self) -> dict[str, Any]:
        deviation = np.sqrt(self.squares / self.count)
        return {"mean": self.mean, "deviation": deviation, "range": self.most - self.least}


def running(x: Array) -> Any:
    known = Running(x.shape[1])
    for row in x:
        known.add(row)
    return tuple(known.result().values())


def daily(times: Array, values: Array) -> Any:
    days = times.astype("datetime64[D]")
    found, first, counts = np.unique(days, return_index=True, return_counts=True)
    weekend = (found.astype(int) + 3) % 7 >= 5
    means = np.where(weekend, 0.0, np.add.reduceat(values, first) / counts)
    return found, means, values[np.isin(days, found[weekend])].sum()


def drought(rain: Array, need: float) -> Any:
    store, shape = np.zeros(rain.shape[1]), rain.shape[1]
    dry, longest = np.zeros(shape, int), np.zeros(shape, int)
    for day in rain:
        store += day
        store -= need
        empty = store < 0
        store[empty] = 0
        dry[empty] += 1
        dry[~empty] = 0
        np.maximum(longest, dry, out=longest)
    return store, longest


def quadrants(x: Array, least: int) -> Any:
    if x.shape[0] <= least or x.std() < 0.28:
        return np.full(x.shape, x.mean())
    h, w = x.shape[0] // 2, x.shape[1] // 2
    parts = [[x[:h, :w], x[:h, w:]], [x[h:, :w], x[h:, w:]]]
    return np.block([[quadrants(part, least) for part in row] for row in parts])


def edits(a: Array, b: Array) -> Any:
    cost = np.arange(len(b) + 1)
    k = np.arange(len(b))
    for i in range(len(a)):
        least = np.minimum(cost[:-1] + (b != a[i]), cost[1:] + 1)
        before = np.minimum.accumulate(np.r_[i + 1, least - k - 1])[1:] + k + 1
        cost = np.r_[i + 1, np.minimum(before, least)]
    return cost[-1]


def programs(scale: float) -> Iterator[Program]:
    """Yield the programs, with arrays of ``scale`` times the usual numbers of elements."""
    rng = np.random.default_rng(0)

    def n(count: int) -> int:
        return max(int(count * scale), 20)

    def side(count: int) -> int:
        return max(int(count * scale**0.5), 8)

    def square(count: int) -> Array:
        return rng.random((side(count), side(count)))

    times = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 90 * 86400, n(50_000))).astype("m8[s]")
    z = 3 * (square(300) - 0.5) + 3j * (square(300) - 0.5)
    given: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
        (gray_scott, (square(256), square(256), 10)), (gray_scott, (square(1000), square(1000), 3)),
        (wave, (square(400), square(400), 10)), (advection, (square(500), 10)),
        (boltzmann, (rng.random((9, side(200), side(200))) + 1, 3)),
        (life, ((square(300) < 0.3).astype(np.uint8), 10)),
        (ising, (np.where(square(256) < 0.5, -1, 1), 5)), (bodies, (rng.random((n(200), 3)), 5)),
        (lorenz, (n(300),)), (korteweg_de_vries, (rng.random(n(4096)), 10)), (walks, (n(1000), 300)),
        (k_means, (rng.random((n(20_000), 4)), 5, 5)),
        (neighbours, (rng.random((n(300), 8)), rng.random((n(500), 8)), 5)),
        (logistic, (x := rng.random((n(5000), 20)), (rng.random(len(x)) < 0.5) * 1.0, 20)),
        (components, (rng.random((n(5000), 30)), 3)),
        (layers, (rng.random((n(500), 100)), *map(rng.random, ((100, 64), (64, 64), (64, 10))))),
        (correlations, (rng.random((n(2000), 50)),)), (moving, (rng.random(n(20_000)), 15)),
        (outliers, (rng.standard_normal(n(100_000)),)),
        (groups, (rng.integers(0, 1000, n(50_000)), rng.random(n(50_000)))),
        (returns, (rng.random((n(1000), 50)) + 10,)),
        (options, (rng.random(n(100_000)) * 50 + 50, 100.0, rng.random(n(100_000)) + 0.1)),
        (equalized, ((square(500) * 256).astype(np.uint8),)),
        (edges, ((square(500) * 256).astype(np.uint8),)), (turned, (square(400), 0.3)),
        (medians, (square(150),)), (hues, (rng.random((side(250), side(250), 3)),)),
        (quantized, (rng.standard_normal(n(100_000)).astype(np.float32),)),
        (delay, (rng.random(n(30_000)), rng.random(n(30_000)))), (julia, (z, 30)), (primes, (n(200_000),)),
        (pages, (rng.random(n(50_000)), *rng.integers(0, n(5000), (2, n(50_000))), rng.random(n(5000)))),
        (thomas, tuple(rng.random((4, 100, n(500))) + np.array([0, 3, 0, 0])[:, None, None])),
        (warped, (rng.random(side(80)), rng.random(side(80)))), (paths, (square(150),)),
        (systems, (square(150), square(150))), (running, (rng.random((60, n(30_000))),)),
        (daily, (times, rng.random(len(times)))), (drought, (rng.random((100, n(20_000))), 0.55)),
        (quadrants, (square(256), 16)), (edits, tuple(rng.integers(0, 4, (2, n(250))))),
    )  # fmt: skip
    for function, arguments in (*given, *further(scale)):
        yield function.__name__.replace("_", " "), function, arguments
