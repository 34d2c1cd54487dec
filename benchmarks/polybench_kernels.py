"""The fifteen PolyBench kernels of dense linear algebra that AutoMPHC's paper measures, in two styles.

Each is written from the kernel's definition: with NumPy statements, and with explicit loops over elements,
which work on arrays and on lists of lists.  The results are the arguments that a kernel changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["KERNELS", "Kernel"]

Rows = Any  # an array, or a list of lists


# ---- products ------------------------------------------------------------------------------------------
def gemm(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    C *= beta
    C += alpha * (A @ B)


def gemm_loops(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    for i in range(len(A)):
        for j in range(len(B[0])):
            C[i][j] *= beta
        for k in range(len(B)):
            for j in range(len(B[0])):
                C[i][j] += alpha * A[i][k] * B[k][j]


def two_mm(D: Rows, A: Rows, B: Rows, C: Rows, tmp: Rows, alpha: float, beta: float) -> None:
    tmp[:] = alpha * (A @ B)
    D[:] = beta * D + tmp @ C


def two_mm_loops(D: Rows, A: Rows, B: Rows, C: Rows, tmp: Rows, alpha: float, beta: float) -> None:
    for i in range(len(A)):
        for j in range(len(B[0])):
            tmp[i][j] = 0.0
            for k in range(len(B)):
                tmp[i][j] += alpha * A[i][k] * B[k][j]
    for i in range(len(A)):
        for j in range(len(C[0])):
            D[i][j] *= beta
            for k in range(len(C)):
                D[i][j] += tmp[i][k] * C[k][j]


def three_mm(G: Rows, A: Rows, B: Rows, C: Rows, D: Rows, E: Rows, F: Rows) -> None:
    E[:] = A @ B
    F[:] = C @ D
    G[:] = E @ F


def three_mm_loops(G: Rows, A: Rows, B: Rows, C: Rows, D: Rows, E: Rows, F: Rows) -> None:
    for i in range(len(A)):
        for j in range(len(B[0])):
            E[i][j] = 0.0
            for k in range(len(B)):
                E[i][j] += A[i][k] * B[k][j]
    for i in range(len(C)):
        for j in range(len(D[0])):
            F[i][j] = 0.0
            for k in range(len(D)):
                F[i][j] += C[i][k] * D[k][j]
    for i in range(len(E)):
        for j in range(len(F[0])):
            G[i][j] = 0.0
            for k in range(len(F)):
                G[i][j] += E[i][k] * F[k][j]


def doitgen(A: Rows, C4: Rows, total: Rows) -> None:
    for r in range(len(A)):
        for q in range(len(A[0])):
            total[:] = A[r, q] @ C4
            A[r, q] = total


def doitgen_loops(A: Rows, C4: Rows, total: Rows) -> None:
    for r in range(len(A)):
        for q in range(len(A[0])):
            for p in range(len(C4)):
                total[p] = 0.0
                for s in range(len(C4)):
                    total[p] += A[r][q][s] * C4[s][p]
            for p in range(len(C4)):
                A[r][q][p] = total[p]


# ---- symmetric and triangular matrices --------------------------------------------------------------------
def symm(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        below = B[:i].T @ A[i, :i]
        C[:i] += alpha * A[i, :i, None] * B[i]
        C[i] = beta * C[i] + alpha * B[i] * A[i, i] + alpha * below


def symm_loops(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        for j in range(len(C[0])):
            below = 0.0
            for k in range(i):
                C[k][j] += alpha * B[i][j] * A[i][k]
                below += B[k][j] * A[i][k]
            C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * below


def syrk(C: Rows, A: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def syrk_loops(C: Rows, A: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        for j in range(i + 1):
            C[i][j] *= beta
        for k in range(len(A[0])):
            for j in range(i + 1):
                C[i][j] += alpha * A[i][k] * A[j][k]


def syr2k(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]


def syr2k_loops(C: Rows, A: Rows, B: Rows, alpha: float, beta: float) -> None:
    for i in range(len(C)):
        for j in range(i + 1):
            C[i][j] *= beta
        for k in range(len(A[0])):
            for j in range(i + 1):
                C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k]


def trmm(B: Rows, A: Rows, alpha: float) -> None:
    for i in range(len(B)):
        for j in range(B.shape[1]):
            B[i, j] += A[i + 1 :, i] @ B[i + 1 :, j]
    B *= alpha


def trmm_loops(B: Rows, A: Rows, alpha: float) -> None:
    for i in range(len(B)):
        for j in range(len(B[0])):
            for k in range(i + 1, len(B)):
                B[i][j] += A[k][i] * B[k][j]
            B[i][j] = alpha * B[i][j]


# ---- vectors ---------------------------------------------------------------------------------------------
def atax(y: Rows, A: Rows, x: Rows) -> None:
    y[:] = (A @ x) @ A


def atax_loops(y: Rows, A: Rows, x: Rows) -> None:
    for j in range(len(y)):
        y[j] = 0.0
    for i in range(len(A)):
        total = 0.0
        for j in range(len(y)):
            total += A[i][j] * x[j]
        for j in range(len(y)):
            y[j] += A[i][j] * total


def bicg(s: Rows, q: Rows, A: Rows, p: Rows, r: Rows) -> None:
    s[:] = r @ A
    q[:] = A @ p


def bicg_loops(s: Rows, q: Rows, A: Rows, p: Rows, r: Rows) -> None:
    for j in range(len(s)):
        s[j] = 0.0
    for i in range(len(q)):
        q[i] = 0.0
        for j in range(len(s)):
            s[j] += r[i] * A[i][j]
            q[i] += A[i][j] * p[j]


def mvt(x1: Rows, x2: Rows, A: Rows, y1: Rows, y2: Rows) -> None:
    x1 += A @ y1
    x2 += y2 @ A


def mvt_loops(x1: Rows, x2: Rows, A: Rows, y1: Rows, y2: Rows) -> None:
    for i in range(len(x1)):
        for j in range(len(x1)):
            x1[i] += A[i][j] * y1[j]
    for i in range(len(x1)):
        for j in range(len(x1)):
            x2[i] += A[j][i] * y2[j]


def gesummv(y: Rows, A: Rows, B: Rows, x: Rows, alpha: float, beta: float) -> None:
    y[:] = alpha * (A @ x) + beta * (B @ x)


def gesummv_loops(y: Rows, A: Rows, B: Rows, x: Rows, alpha: float, beta: float) -> None:
    for i in range(len(y)):
        first = 0.0
        second = 0.0
        for j in range(len(x)):
            first += A[i][j] * x[j]
            second += B[i][j] * x[j]
        y[i] = alpha * first + beta * second


def gemver(
    A: Rows,
    x: Rows,
    w: Rows,
    u1: Rows,
    v1: Rows,
    u2: Rows,
    v2: Rows,
    y: Rows,
    z: Rows,
    alpha: float,
    beta: float,
) -> None:
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * (y @ A) + z
    w += alpha * (A @ x)


def gemver_loops(
    A: Rows,
    x: Rows,
    w: Rows,
    u1: Rows,
    v1: Rows,
    u2: Rows,
    v2: Rows,
    y: Rows,
    z: Rows,
    alpha: float,
    beta: float,
) -> None:
    for i in range(len(x)):
        for j in range(len(x)):
            A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(len(x)):
        for j in range(len(x)):
            x[i] += beta * A[j][i] * y[j]
    for i in range(len(x)):
        x[i] += z[i]
    for i in range(len(x)):
        for j in range(len(x)):
            w[i] += alpha * A[i][j] * x[j]


# ---- statistics --------------------------------------------------------------------------------------------
def covariance(data: Rows, cov: Rows) -> None:
    data -= data.mean(axis=0)
    for i in range(len(cov)):
        cov[i, i:] = data[:, i] @ data[:, i:] / (len(data) - 1.0)
        cov[i:, i] = cov[i, i:]


def covariance_loops(data: Rows, cov: Rows) -> None:
    rows = len(data)
    for j in range(len(cov)):
        total = 0.0
        for i in range(rows):
            total += data[i][j]
        total /= rows
        for i in range(rows):
            data[i][j] -= total
    for i in range(len(cov)):
        for j in range(i, len(cov)):
            cov[i][j] = 0.0
            for k in range(rows):
                cov[i][j] += data[k][i] * data[k][j]
            cov[i][j] /= rows - 1.0
            cov[j][i] = cov[i][j]


def correlation(data: Rows, corr: Rows, mean: Rows, deviation: Rows) -> None:
    mean[:] = data.mean(axis=0)
    data -= mean
    deviation[:] = np.sqrt((data * data).mean(axis=0))
    deviation[deviation <= 0.1] = 1.0
    data /= np.sqrt(float(len(data))) * deviation
    for i in range(len(corr) - 1):
        corr[i, i] = 1.0
        corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        corr[i + 1 :, i] = corr[i, i + 1 :]
    corr[-1, -1] = 1.0


def correlation_loops(data: Rows, corr: Rows, mean: Rows, deviation: Rows) -> None:
    rows = len(data)
    for j in range(len(corr)):
        mean[j] = 0.0
        for i in range(rows):
            mean[j] += data[i][j]
        mean[j] /= rows
        deviation[j] = 0.0
        for i in range(rows):
            deviation[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j])
        deviation[j] = (deviation[j] / rows) ** 0.5
        if deviation[j] <= 0.1:
            deviation[j] = 1.0
    for i in range(rows):
        for j in range(len(corr)):
            data[i][j] = (data[i][j] - mean[j]) / (rows**0.5 * deviation[j])
    for i in range(len(corr) - 1):
        corr[i][i] = 1.0
        for j in range(i + 1, len(corr)):
            corr[i][j] = 0.0
            for k in range(rows):
                corr[i][j] += data[k][i] * data[k][j]
            corr[j][i] = corr[i][j]
    corr[len(corr) - 1][len(corr) - 1] = 1.0


# ---- the table -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Kernel:
    """A kernel in both styles, with the arguments that it needs."""

    name: str
    statements: Callable[..., None]
    loops: Callable[..., None]
    shapes: str  # the shapes of the array arguments, separated by spaces; each letter is a size
    sizes: dict[str, int]
    numbers: tuple[float, ...] = ()  # the last arguments, which are numbers
    least: float = 0.95  # the least speed-up over NumPy's statements that it should have

    def arguments(self, scale: float, seed: int = 0) -> list[Any]:
        """Return arguments for a call: arrays of random numbers, then the numbers."""
        rng = np.random.default_rng(seed)
        sizes = {name: max(round(n * scale), 3) for name, n in self.sizes.items()}
        arrays = [rng.random([sizes[letter] for letter in shape]) for shape in self.shapes.split()]
        return [*arrays, *self.numbers]


_FACTORS = (1.5, 1.2)
KERNELS = (
    Kernel("2mm", two_mm, two_mm_loops, "il ij jk kl ik", dict(i=400, j=440, k=480, l=520), _FACTORS),
    Kernel("3mm", three_mm, three_mm_loops, "il ij jk kn nl ik kl", dict(i=400, j=440, k=480, l=500, n=520)),
    Kernel("atax", atax, atax_loops, "n mn n", dict(m=1800, n=2200)),
    Kernel("bicg", bicg, bicg_loops, "n m mn n m", dict(m=2200, n=1800)),
    Kernel("correlation", correlation, correlation_loops, "nm mm m m", dict(n=1400, m=1200), least=31),
    Kernel("covariance", covariance, covariance_loops, "nm mm", dict(n=1400, m=1200), least=31),
    Kernel("doitgen", doitgen, doitgen_loops, "rqp pp p", dict(r=60, q=60, p=128), least=8.7),
    Kernel("gemm", gemm, gemm_loops, "ij ik kj", dict(i=500, j=550, k=600), _FACTORS),
    Kernel("gemver", gemver, gemver_loops, "nn n n n n n n n n", dict(n=1500), _FACTORS),
    Kernel("gesummv", gesummv, gesummv_loops, "n nn nn n", dict(n=1300), _FACTORS),
    Kernel("mvt", mvt, mvt_loops, "n n nn n n", dict(n=2000)),
    Kernel("symm", symm, symm_loops, "mn mm mn", dict(m=400, n=440), _FACTORS, least=8.7),
    Kernel("syr2k", syr2k, syr2k_loops, "nn nm nm", dict(n=300, m=250), _FACTORS, least=8.7),
    Kernel("syrk", syrk, syrk_loops, "nn nm", dict(n=300, m=250), _FACTORS, least=8.7),
    Kernel("trmm", trmm, trmm_loops, "mn mm", dict(m=250, n=300), (1.5,), least=8.7),
)
"""The kernels, at about the size LARGE of PolyBench where NumPy takes seconds at most, with the figures
of the paper."""
