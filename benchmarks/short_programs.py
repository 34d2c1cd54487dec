"""Programs of 20 to 200 ms a call for `benchmarks.first_calls`, in the style of ordinary NumPy users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["SHORT"]

Array = np.ndarray[Any, Any]
Random = np.random.Generator
SHORT: dict[str, tuple[Callable[..., Any], Callable[[Random], tuple[Any, ...]]]] = {}
"""By name: a function, and what makes its arguments."""


def _with(arguments: Callable[[Random], tuple[Any, ...]]) -> Callable[[Callable[..., Any]], Any]:
    """Register a function with its arguments."""

    def enter(function: Callable[..., Any]) -> Any:
        SHORT[function.__name__.replace("_", " ")] = function, arguments
        return function

    return enter


# ---- pictures ----------------------------------------------------------------------------------------
@_with(lambda rng: (rng.random((1200, 1200)), np.array([1, 6, 15, 20, 15, 6, 1]) / 64))
def gaussian_blur(picture: Array, weights: Array) -> Any:
    padded = np.pad(picture, 3, mode="reflect")
    rows = np.zeros((picture.shape[0] + 6, picture.shape[1]))
    for k, w in enumerate(weights):
        rows += w * padded[:, k : k + picture.shape[1]]
    out = np.zeros_like(picture)
    for k, w in enumerate(weights):
        out += w * rows[k : k + picture.shape[0]]
    return out


@_with(lambda rng: (rng.integers(0, 256, (1200, 1200, 3), dtype=np.uint8),))
def sharpened(picture: Array) -> Any:
    x = picture.astype(np.float32)
    soft = x.copy()
    soft[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + 4 * x[1:-1, 1:-1]) / 8
    return np.clip(x + 1.5 * (x - soft), 0, 255).astype(np.uint8)


@_with(lambda rng: (rng.integers(0, 256, (1000, 1000, 3), dtype=np.uint8),))
def sepia(picture: Array) -> Any:
    matrix = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    return np.minimum(picture @ matrix.T, 255).astype(np.uint8)


@_with(lambda rng: (rng.random((1500, 1500)), 9))
def box_filter(picture: Array, r: int) -> Any:
    sums = np.zeros((picture.shape[0] + 1, picture.shape[1] + 1))
    sums[1:, 1:] = picture.cumsum(0).cumsum(1)
    return (sums[r:, r:] - sums[:-r, r:] - sums[r:, :-r] + sums[:-r, :-r]) / r**2


@_with(lambda rng: (rng.random((700, 700)), 1000, 1100))
def resized(picture: Array, h: int, w: int) -> Any:
    y, x = np.linspace(0, picture.shape[0] - 1, h), np.linspace(0, picture.shape[1] - 1, w)
    i, j = np.minimum(y.astype(int), picture.shape[0] - 2), np.minimum(x.astype(int), picture.shape[1] - 2)
    dy, dx = (y - i)[:, None], (x - j)[None, :]
    a, b = picture[np.ix_(i, j)], picture[np.ix_(i, j + 1)]
    c, d = picture[np.ix_(i + 1, j)], picture[np.ix_(i + 1, j + 1)]
    return a * (1 - dy) * (1 - dx) + b * (1 - dy) * dx + c * dy * (1 - dx) + d * dy * dx


@_with(lambda rng: (rng.random((1500, 1500)) < 0.2, 4))
def opened(mask: Array, turns: int) -> Any:
    for grow in (False, True):
        for _ in range(turns):
            p = np.pad(mask, 1)
            near = [p[1:-1, 1:-1], p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]
            mask = np.logical_or.reduce(near) if grow else np.logical_and.reduce(near)
    return mask, mask.sum()


@_with(lambda rng: (rng.integers(0, 256, (2000, 2000), dtype=np.uint8),))
def otsu(picture: Array) -> Any:
    counts = np.bincount(picture.ravel(), minlength=256)
    share = counts / counts.sum()
    below, level = share.cumsum(), (share * np.arange(256)).cumsum()
    with np.errstate(all="ignore"):
        between = (level[-1] * below - level) ** 2 / (below * (1 - below))
    cut = np.nanargmax(between)
    x = picture.astype(float)
    return picture > cut, ((x - x.mean()) / x.std()).clip(-2, 2)


@_with(lambda rng: (rng.random((160, 200)), 40))
def low_rank(picture: Array, k: int) -> Any:
    u, s, v = np.linalg.svd(picture, full_matrices=False)
    return np.clip((u[:, :k] * s[:k]) @ v[:k], 0, 1), (s[:k] ** 2).sum() / (s**2).sum()


@_with(lambda rng: (500, 400))
def spheres(w: int, h: int) -> Any:
    x, y = np.meshgrid(np.linspace(-1.6, 1.6, w), np.linspace(1, -1, h))
    ray = np.stack([x, y, np.full_like(x, 1.5)], -1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    nearest, light = np.full((h, w), np.inf), np.zeros((h, w))
    for cx, cy, cz, r in [(0, 0, 4, 1), (1.2, 0.4, 5, 0.8), (-1, -0.5, 3, 0.4), (0, -101, 4, 100)]:
        centre = np.array([cx, cy, cz])
        b = ray @ centre
        under = b**2 - (centre @ centre - r * r)
        t = b - np.sqrt(np.maximum(under, 0))
        hit = (under > 0) & (t > 0) & (t < nearest)
        normal = (t[..., None] * ray - centre) / r
        light = np.where(hit, np.maximum(normal @ np.array([0.5, 0.7, -0.5]), 0.05), light)
        nearest = np.where(hit, t, nearest)
    return light


@_with(lambda rng: (500, 40))
def mandelbrot(n: int, turns: int) -> Any:
    c = np.linspace(-2, 0.6, n)[None, :] + 1j * np.linspace(-1.2, 1.2, n)[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, dtype=np.int32)
    for _ in range(turns):
        inside = z.real**2 + z.imag**2 < 4
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps


# ---- chance ------------------------------------------------------------------------------------------
@_with(lambda rng: (20_000, 60))
def asian_option(paths: int, days: int) -> Any:
    rng = np.random.default_rng(5)
    steps = 0.0001 + 0.012 * rng.standard_normal((paths, days))
    prices = 100 * np.exp(np.cumsum(steps, axis=1))
    gain = np.maximum(prices.mean(axis=1) - 100, 0)
    return gain.mean(), gain.std() / np.sqrt(paths), (prices.min(axis=1) < 90).mean()


@_with(lambda rng: (2_000_000,))
def pi_by_chance(n: int) -> Any:
    rng = np.random.default_rng(6)
    x, y = rng.random(n), rng.random(n)
    return 4 * np.count_nonzero(x * x + y * y < 1) / n


@_with(lambda rng: (rng.gamma(2.0, 3.0, 4000), 800))
def bootstrap(sample: Array, times: int) -> Any:
    rng = np.random.default_rng(7)
    means = sample[rng.integers(0, len(sample), (times, len(sample)))].mean(1)
    return means.std(), np.percentile(means, [2.5, 97.5])


@_with(lambda rng: (np.zeros(60_000), 40))
def metropolis(x: Array, steps: int) -> Any:
    rng = np.random.default_rng(8)
    taken = 0.0
    for _ in range(steps):
        to = x + rng.uniform(-1, 1, len(x))
        accept = rng.random(len(x)) < np.exp(0.5 * (x**2 - to**2))
        x = np.where(accept, to, x)
        taken += accept.mean()
    return x.mean(), x.var(), taken / steps


# ---- data --------------------------------------------------------------------------------------------
@_with(lambda rng: (rng.normal(size=(60_000, 3)), 6, 3))
def clusters(x: Array, k: int, turns: int) -> Any:
    centres = x[:k].copy()
    for _ in range(turns):
        distance = np.linalg.norm(x[:, None] - centres, axis=2)
        label = distance.argmin(axis=1)
        centres = np.array([x[label == j].mean(axis=0) for j in range(k)])
    return centres, distance.min(axis=1).sum()


@_with(lambda rng: (rng.normal(size=(40_000, 25)), rng.random(40_000) < 0.4, 25))
def classifier(x: Array, y: Array, steps: int) -> Any:
    w, b = np.zeros(x.shape[1]), 0.0
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x @ w + b)))
        error = p - y
        w = w - 0.5 * (x.T @ error / len(y) + 0.001 * w)
        b = b - 0.5 * error.mean()
    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    return w, b, loss


@_with(lambda rng: (rng.random((400, 300)), rng.random((400, 15)), rng.random((15, 300)), 30))
def factors(v: Array, w: Array, h: Array, turns: int) -> Any:
    for _ in range(turns):
        h = h * (w.T @ v) / (w.T @ w @ h + 1e-9)
        w = w * (v @ h.T) / (w @ h @ h.T + 1e-9)
    return w, h, np.linalg.norm(v - w @ h)


def _gaps(rng: Random) -> tuple[Any, ...]:
    table = rng.normal(10, 3, (200_000, 8))
    table[rng.random(table.shape) < 0.03] = np.nan
    return (table,)


@_with(_gaps)
def cleaned(table: Array) -> Any:
    missing = np.isnan(table)
    filled = np.where(missing, np.nanmean(table, axis=0), table)
    z = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    good = (np.abs(z) < 3).all(axis=1)
    return filled[good].mean(axis=0), missing.sum(axis=0), good.sum()


@_with(lambda rng: (rng.integers(0, 5000, 1_500_000), rng.gamma(2, 10, 1_500_000)))
def by_customer(who: Array, spent: Array) -> Any:
    total = np.bincount(who, weights=spent, minlength=5000)
    count = np.bincount(who, minlength=5000)
    mean = total / np.maximum(count, 1)
    spread = np.sqrt(
        np.bincount(who, weights=(spent - mean[who]) ** 2, minlength=5000) / np.maximum(count, 1)
    )
    best = np.argsort(total)[::-1][:100]
    return mean, spread, best, total[best].sum() / total.sum()


@_with(lambda rng: (np.cumsum(rng.normal(0, 1, 600_000)) + 2000, 50))
def bands(price: Array, n: int) -> Any:
    sums, squares = np.cumsum(price), np.cumsum(price**2)
    mean = (sums[n:] - sums[:-n]) / n
    deviation = np.sqrt(np.maximum((squares[n:] - squares[:-n]) / n - mean**2, 0))
    p = price[n:]
    signal = np.where(p > mean + 2 * deviation, -1, np.where(p < mean - 2 * deviation, 1, 0))
    profit = np.cumsum(signal[:-1] * np.diff(p))
    return profit[-1], (np.maximum.accumulate(profit) - profit).max(), np.abs(np.diff(signal)).sum()


@_with(lambda rng: (rng.normal(size=700_000),))
def winsorized(x: Array) -> Any:
    low, high = np.percentile(x, [5, 95])
    y = np.clip(x, low, high)
    counts, _ = np.histogram(y, bins=100)
    p = counts[counts > 0] / len(y)
    return y.mean(), y.std(), -(p * np.log(p)).sum(), np.sort(y)[:: len(y) // 10]


@_with(
    lambda rng: (*np.radians(rng.uniform(-60, 60, (2, 300_000))), np.radians(rng.uniform(-60, 60, (4, 2))))
)
def nearest_city(lat: Array, lon: Array, cities: Array) -> Any:
    far = []
    for a, b in cities:
        h = np.sin((lat - a) / 2) ** 2 + np.cos(lat) * np.cos(a) * np.sin((lon - b) / 2) ** 2
        far.append(6371 * 2 * np.arcsin(np.sqrt(h)))
    distance = np.stack(far)
    return distance.min(axis=0).mean(), np.bincount(distance.argmin(axis=0))


@_with(lambda rng: (rng.normal(size=(700, 5)), rng.normal(size=(700, 5)), 1.5))
def kernel_regression(x: Array, y: Array, width: float) -> Any:
    d = np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))
    k = np.exp(-(d**2) / (2 * width**2))
    return (k @ y[:, 0]) / k.sum(axis=1), d.max()


# ---- physics and signals -----------------------------------------------------------------------------
@_with(lambda rng: (rng.random((600, 600)), 25))
def heat(u: Array, steps: int) -> Any:
    u = u.copy()
    u[0], u[-1] = 1.0, 0.0
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u, u.mean()


@_with(lambda rng: (rng.random((1600, 1600)) < 0.35, 8))
def game_of_life(world: Array, turns: int) -> Any:
    for _ in range(turns):
        p = np.pad(world.astype(np.int8), 1, mode="wrap")
        n = (
            p[:-2, :-2] + p[:-2, 1:-1] + p[:-2, 2:] + p[1:-1, :-2]
            + p[1:-1, 2:] + p[2:, :-2] + p[2:, 1:-1] + p[2:, 2:]
        )  # fmt: skip
        world = (n == 3) | (world & (n == 2))
    return world


@_with(lambda rng: (rng.normal(size=(450, 3)), rng.random(450) + 0.1, 3))
def planets(x: Array, m: Array, steps: int) -> Any:
    v = np.zeros_like(x)
    for _ in range(steps):
        r = x[np.newaxis] - x[:, np.newaxis]
        d3 = (np.sum(r**2, axis=-1) + 1e-2) ** -1.5
        a = np.einsum("ijk,ij,j->ik", r, d3, m)
        v += 0.01 * a
        x = x + 0.01 * v
    return x, 0.5 * (m * (v**2).sum(-1)).sum()


@_with(lambda rng: (rng.random((700, 700)), 0.1))
def low_pass(picture: Array, cut: float) -> Any:
    f = np.fft.fftshift(np.fft.fft2(picture))
    y, x = np.indices(picture.shape)
    r = np.hypot(y - picture.shape[0] / 2, x - picture.shape[1] / 2)
    return np.fft.ifft2(np.fft.ifftshift(f * np.exp(-((r / (cut * len(picture))) ** 2)))).real


@_with(lambda rng: (rng.normal(size=1_000_000), 512, 128))
def spectrogram(x: Array, size: int, hop: int) -> Any:
    frames = np.lib.stride_tricks.sliding_window_view(x, size)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    level = 10 * np.log10(power + 1e-12)
    return np.maximum(level, level.max() - 80), power.sum(axis=1).argmax()


@_with(lambda rng: (44_100, 3.0))
def chord(rate: int, seconds: float) -> Any:
    t = np.arange(int(rate * seconds)) / rate
    sound = np.zeros_like(t)
    for note in (220.0, 277.2, 329.6, 440.0):
        for k in range(1, 5):
            sound += np.sin(2 * np.pi * note * k * t) / k**2
    sound *= np.minimum(t / 0.05, 1) * np.exp(-1.2 * t)
    return (32767 * sound / np.abs(sound).max()).astype(np.int16)


@_with(lambda rng: (rng.normal(size=(60, 30_000)),))
def tracks(seen: Array) -> Any:
    x, v = np.zeros(seen.shape[1]), np.zeros(seen.shape[1])
    p00, p01, p11 = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    smooth = np.empty_like(seen)
    for k, z in enumerate(seen):
        x = x + v
        p00, p01, p11 = p00 + 2 * p01 + p11 + 0.01, p01 + p11, p11 + 0.01
        gain0, gain1 = p00 / (p00 + 1), p01 / (p00 + 1)
        error = z - x
        x, v = x + gain0 * error, v + gain1 * error
        p00, p01, p11 = (1 - gain0) * p00, (1 - gain0) * p01, p11 - gain1 * p01
        smooth[k] = x
    return smooth


@_with(lambda rng: (rng.random((1200, 1200)), 20))
def page_rank(links: Array, turns: int) -> Any:
    m = links * (links > 0.9)
    m = m / np.maximum(m.sum(axis=0), 1e-9)
    rank = np.full(len(m), 1 / len(m))
    for _ in range(turns):
        rank = 0.85 * (m @ rank) + 0.15 / len(m)
    return rank, np.argsort(-rank)[:10]


@_with(lambda rng: (rng.integers(1, 60, 300), rng.random(300), 120_000))
def knapsack(weight: Array, value: Array, most: int) -> Any:
    best = np.zeros(most + 1)
    for w, v in zip(weight * 40, value, strict=True):
        best[w:] = np.maximum(best[w:], best[:-w] + v)
    return best[-1]


@_with(lambda rng: (np.sort(rng.random(300)), rng.random(300), rng.random(400_000)))
def calibrated(x: Array, y: Array, asked: Array) -> Any:
    a = np.interp(asked, x, y)
    place = np.searchsorted(x, asked)
    counts = np.bincount(place, minlength=len(x) + 1)
    fit = np.polyval(np.polyfit(x, y, 5), asked)
    return np.sqrt(np.mean((a - fit) ** 2)), counts.max()
