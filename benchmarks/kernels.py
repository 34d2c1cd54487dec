"""Benchmark kernels in idiomatic NumPy, with their memory traffic and number of compiled kernels.

Tests run all of ``KERNELS``, compare results and count compiled kernels; ``python -m benchmarks kernels``
(`roofline`) times them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator


@dataclass(frozen=True)
class Kernel:
    """A benchmark: ``work`` is the user's code, ``make(n, rng)`` returns arrays of ``n`` elements in total.

    ``count`` is the number of kernels that one call launches when it is compiled.  ``updates`` is the number
    of the argument that is written and returned, or None; ``fills``: its old values are not read.
    """

    work: Callable[..., Any]
    make: Callable[[int, Rng], tuple[Any, ...]]
    count: int
    updates: int | None = None
    fills: bool = False

    @property
    def name(self) -> str:
        return self.work.__name__

    def traffic(self, arrays: tuple[Any, ...], result: Any) -> int:
        """Return the least memory traffic in bytes: the arguments that are read, and the result."""
        read = [a for k, a in enumerate(arrays) if not (self.fills and k == self.updates)]
        return int(sum(a.nbytes for a in read) + np.asarray(result).nbytes)


# ---- what they work on ------------------------------------------------------------------------------
def _vectors(count: int, low: float = 0.1, high: float = 3.0) -> Callable[[int, Rng], tuple[Any, ...]]:
    return lambda n, rng: tuple(rng.uniform(low, high, n // count) for _ in range(count))


def _matrix(columns: int, dtype: Any = np.float64) -> Callable[[int, Rng], tuple[Any, ...]]:
    return lambda n, rng: (rng.random((max(n // columns, 2), columns)).astype(dtype),)


def _squares(count: int) -> Callable[[int, Rng], tuple[Any, ...]]:
    return lambda n, rng: tuple(rng.random((max(int((n / count) ** 0.5), 6),) * 2) for _ in range(count))


def _cubes(n: int, rng: Rng) -> tuple[Any, ...]:
    return tuple(rng.random((max(int((n / 2) ** (1 / 3)), 5),) * 3) for _ in range(2))


def _complexes(n: int, rng: Rng) -> tuple[Any, ...]:
    return tuple(rng.random(n // 2) + 1j * rng.random(n // 2) for _ in range(2))


def _picture(n: int, rng: Rng) -> tuple[Any, ...]:
    return (rng.integers(0, 256, (max(n // 300, 2), 100, 3), dtype=np.uint8),)


def _whole(n: int, rng: Rng) -> tuple[Any, ...]:
    return (rng.integers(0, 1 << 30, n, dtype=np.int64),)


def _points(n: int, rng: Rng) -> tuple[Any, ...]:
    side = max(int(n**0.5), 2)
    return rng.random((side, 3)), rng.random((side, 3))


# ---- element by element -----------------------------------------------------------------------------
def triad(a: Any, b: Any) -> Any:
    return a + 3.0 * b


def in_place(a: Any, b: Any) -> Any:
    a *= 0.5
    a += b
    return a


def chain(x: Any, y: Any) -> Any:
    t = np.exp(-x)
    u = np.sqrt(x * x + y)
    return np.where(x > y, t * u, u - t) * 0.5


def horner(x: Any) -> Any:
    total = np.full_like(x, 0.125)
    for k in range(1, 9):
        total = total * x + 1.0 / k
    return total


def option_price(spot: Any, strike: Any) -> Any:
    """Return the prices of European call options, with a logistic approximation of the normal
    distribution."""
    d = (np.log(spot / strike) + 0.03) / 0.2
    e = d - 0.2
    return spot / (1.0 + np.exp(-1.702 * d)) - strike * 0.99 / (1.0 + np.exp(-1.702 * e))


def clamp_negative(x: Any) -> Any:
    x[x > 1.5] = 1.5
    return x


def escape_step(z: Any, c: Any) -> Any:
    return z * z + c


def congruence(x: Any) -> Any:
    return ((x * 31 + 7) % 1000003) >> 3


def luminance(picture: Any) -> Any:
    p = picture / 255.0
    return 0.2126 * p[..., 0] + 0.7152 * p[..., 1] + 0.0722 * p[..., 2]


# ---- windows ----------------------------------------------------------------------------------------
def jacobi_2d(a: Any, b: Any) -> Any:
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return b


def heat_3d(a: Any, b: Any) -> Any:
    c = a[1:-1, 1:-1, 1:-1]
    b[1:-1, 1:-1, 1:-1] = (
        0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * c + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * c + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * c + a[1:-1, 1:-1, :-2])
        + c
    )
    return b


def limited_flux(a: Any) -> Any:
    """Return a diffusion step whose flux is zero where it would point uphill."""
    lap = 4.0 * a[1:-1, 1:-1] - a[2:, 1:-1] - a[:-2, 1:-1] - a[1:-1, 2:] - a[1:-1, :-2]
    flux = lap[:, 1:] - lap[:, :-1]
    flux = np.where(flux * (a[1:-1, 2:-1] - a[1:-1, 1:-2]) > 0, 0.0, flux)
    return a[1:-1, 2:-2] - 0.1 * (flux[:, 1:] - flux[:, :-1])


def blur(a: Any) -> Any:
    """Return a blur by five points along one axis, then along the other."""
    rows = (a[:, :-4] + 4 * a[:, 1:-3] + 6 * a[:, 2:-2] + 4 * a[:, 3:-1] + a[:, 4:]) / 16
    return (rows[:-4] + 4 * rows[1:-3] + 6 * rows[2:-2] + 4 * rows[3:-1] + rows[4:]) / 16


def symmetric_part(a: Any) -> Any:
    return 0.5 * (a + a.T)


# ---- folds ------------------------------------------------------------------------------------------
def sum_of_squares(x: Any, y: Any) -> Any:
    return np.sum((x - y) ** 2)


def normalised_rows(a: Any) -> Any:
    return a / np.sqrt(np.sum(a * a, axis=1, keepdims=True))


def softmax(a: Any) -> Any:
    e = np.exp(a - np.max(a, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def standard_scores(a: Any) -> Any:
    return (a - np.mean(a, axis=0)) / np.std(a, axis=0)


def distances(p: Any, q: Any) -> Any:
    return np.sqrt(np.sum((p[:, None, :] - q[None, :, :]) ** 2, axis=-1))


KERNELS: tuple[Kernel, ...] = (
    Kernel(triad, _vectors(2), 1),
    Kernel(in_place, _vectors(2), 1, 0),
    Kernel(chain, _vectors(2), 1),
    Kernel(horner, _vectors(1), 1),
    Kernel(option_price, _vectors(2, 1.0), 1),
    Kernel(clamp_negative, _vectors(1), 1, 0),
    Kernel(escape_step, _complexes, 1),
    Kernel(congruence, _whole, 1),
    Kernel(luminance, _picture, 1),
    Kernel(jacobi_2d, _squares(2), 1, 1, True),
    Kernel(heat_3d, _cubes, 1, 1, True),
    Kernel(limited_flux, _squares(1), 1),
    Kernel(blur, _squares(1), 2),
    Kernel(symmetric_part, _squares(1), 1),
    Kernel(sum_of_squares, _vectors(2), 1),
    Kernel(normalised_rows, _matrix(128), 1),
    Kernel(softmax, _matrix(128), 1),
    Kernel(standard_scores, _matrix(64), 6),
    Kernel(distances, _points, 1),
)
