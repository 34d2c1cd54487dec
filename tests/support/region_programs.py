"""Regions of programs on ranks, each beside NumPy.

``mpiexec -n P python -m region_programs`` runs them under MPI; the tests run them on simulated ranks.
"""

import copy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from program_runs import arguments_of, module
from symbolic_sources import FAMOUS, random_program

import dcarray as dc
from dcarray import comm

MORE = """
def converging(A: np.float64[N, M], limit: float):
    steps = 0
    change = 1.0
    while change > limit:
        before = A.copy()
        A[1:-1] = 0.5 * before[1:-1] + 0.25 * (before[:-2] + before[2:])
        change = float(np.max(np.abs(A - before)))
        steps += 1
    return steps, change

def choosing(A: np.float64[N, M], B: np.float64[N, M], T: int):
    for t in range(T):
        if A.sum() > B.sum():
            A[1:, :] = 0.5 * B[:-1, :] + t
        else:
            B[:] = A + t * 0.25
    return A - B

def moving(A: np.float64[N, M], B: np.float64[N, M]):
    for i in range(1, N):
        A[i] = 0.5 * A[i - 1] + B[i]

def histories(A: np.float64[4, N, M]):
    for t in range(3):
        left, right = A[t, 1:-1, :-2], A[t, 1:-1, 2:]
        A[t + 1, 1:-1, 1:-1] = 0.25 * (A[t, :-2, 1:-1] + A[t, 2:, 1:-1] + left + right) + t
    return A[3].sum()

def products(A: np.float64[N, M], B: np.float64[M, N], x: np.float64[M]):
    C = A @ B
    y = C.T @ (A @ x)
    return C, y, float(y.sum())

def normed(A: np.float64[N, M]):
    mean = A.mean(axis=0)
    A -= mean
    A /= np.sqrt((A * A).mean(axis=0)) + 1e-3
    return A, mean

def trailing(A: np.float64[N, N]):
    for i in range(N - 1):
        A[i + 1 :, i] /= A[i, i]
        A[i + 1 :, i + 1 :] -= np.outer(A[i + 1 :, i], A[i, i + 1 :])

def backwards(A: np.float64[N, M], B: np.float64[N, M], T: int):
    C = np.zeros((N, M))
    for t in range(T, 0, -1):
        for s in range(2):
            A[1:-1] = B[1:-1] + t * 0.5 - s
        B[:, ::-1] = A * 0.25 + t
        if t > T:
            C[:] = A
    return A, C

def unused(A: np.float64[N, M], B: np.float64[N, M]):
    return B + 1.0
"""
KINDS = {
    "plain": lambda x: x,
    "wrapped": dc.asarray,
    "blocks": lambda x: dc.distribute(x) if x.ndim else x,
    "halos": lambda x: dc.distribute(x, halo=1) if x.ndim and min(x.shape) > 9 else x,
}
NAMES = (
    "converging", "choosing", "moving", "histories", "products", "normed", "unused", "trailing",
    "backwards", "jacobi", "lu", "covariance", "durbin", "two_products", "strided", "accumulated", "whole",
)  # fmt: skip
SIZES = [{"N": 12, "M": 17, "T": 3}, {"N": 23, "M": 11, "T": 2}]


def check(
    function: Any, ranks: int | None, kind: str, sizes: dict[str, int], seed: int = 0, above: int = 0
) -> None:
    """Compare a program on simulated ranks, or with None on those of MPI, with NumPy."""
    program = dc.program(function)
    values = arguments_of(function, sizes, seed)
    expected_values = copy.deepcopy(values)
    around = {**function.__globals__, **{n: dc_n for n, dc_n in sizes.items() if n in "NM"}}
    expected = type(function)(function.__code__, around)(*expected_values)

    def rank() -> Any:
        with dc.options(distribute_above=above):
            given = [KINDS[kind](v.copy()) if isinstance(v, np.ndarray) else v for v in values]
            found = program(*given)
            flat = found if isinstance(found, tuple) else (found,)
            kinds = [type(x) for x in flat]
            return [np.asarray(x) for x in (*given, *flat)], kinds

    several = expected if isinstance(expected, tuple) else (expected,)
    for found, kinds in comm.run(ranks, rank) if ranks else [rank()]:
        for one, other in zip(found, (*expected_values, *several), strict=True):
            np.testing.assert_allclose(one.astype(float), np.asarray(other, float), rtol=1e-11, atol=1e-11)
        for one, other in zip(kinds, several, strict=True):
            if isinstance(other, np.ndarray) and kind == "plain":
                assert one is np.ndarray
            elif not isinstance(other, np.ndarray):
                assert one is type(other)


def main(seeds: int) -> None:
    """Compare all programs, and random ones, on the ranks of MPI."""
    warnings.simplefilter("ignore", comm.PerformanceWarning)  # sizes change from one program to the next
    with tempfile.TemporaryDirectory() as folder:
        for k, name in enumerate(NAMES):
            made = module(Path(folder), FAMOUS + MORE, f"mpi_{name}")
            for sizes in SIZES:
                check(getattr(made, name), None, [*KINDS][k % 4], sizes)
        for seed in range(seeds):
            made = module(Path(folder), random_program(seed), f"mpi_random_{seed}")
            for sizes in SIZES:
                check(made.f, None, [*KINDS][seed % 4], sizes, seed)
    print("ended", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
