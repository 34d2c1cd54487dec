"""The cases of `benchmarks.speed` written for Numba; imported only if Numba is installed."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


def _chain(x: Any, y: Any) -> Any:
    out = np.empty_like(x)
    for i in numba.prange(x.size):
        t = np.exp(-x[i])
        u = np.sqrt(x[i] * x[i] + y[i])
        out[i] = (t * u if x[i] > y[i] else u - t) * 0.5
    return out


def _jacobi(a: Any, b: Any) -> Any:
    for i in numba.prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
    return b


def _steps(a: Any, b: Any) -> Any:
    for _ in range(8):
        for i in numba.prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in numba.prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    return a


def _squares(x: Any, y: Any) -> Any:
    total = 0.0
    for i in numba.prange(x.size):
        total += (x[i] - y[i]) ** 2
    return total


def _exp(x: Any, y: Any) -> Any:
    return np.exp(x)


def _log(x: Any, y: Any) -> Any:
    return np.log(x)


def _sin(x: Any, y: Any) -> Any:
    return np.sin(x)


def _tanh(x: Any, y: Any) -> Any:
    return np.tanh(x)


def _power(x: Any, y: Any) -> Any:
    return np.power(x, y)


def _solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def _product(a: Any, b: Any) -> Any:
    return a @ b


COMPILED: dict[str, Any] = {
    work.__name__[1:]: numba.njit(parallel=True)(work)
    for work in (_chain, _jacobi, _steps, _squares, _exp, _log, _sin, _tanh, _power)
}
for _work in (_solve, _product):  # calls of LAPACK and BLAS, with nothing to share out
    COMPILED[_work.__name__[1:]] = numba.njit(_work)
