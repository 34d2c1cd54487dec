"""The kernels of `benchmarks.papers` for the peers Heat and Dask, written as their manuals recommend.

Heat's arrays support NumPy's operators and slices, so the programs are used unchanged, except for one product
that Heat supports for matrices only.  Dask's arrays cannot be written: programs return what they change, and
stencils are mapped over overlapping chunks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .papers import PROGRAMS, Arrays, Program

__all__ = ["dask_run", "heat_run"]


# ---- Heat --------------------------------------------------------------------------------------------
def _doitgen_in_heat(A: Any, C4: Any) -> None:
    rows, columns, last = A.shape
    A[:] = (A.reshape((rows * columns, last)) @ C4).reshape((rows, columns, last))


def heat_run(program: Program, arguments: Arrays) -> tuple[Any, ...]:
    """Call a program on Heat's arrays, and return the computed results."""
    if program.name != "doitgen":
        return program.run(arguments)
    _doitgen_in_heat(**arguments)
    return (arguments["A"],)


# ---- Dask --------------------------------------------------------------------------------------------
def _doitgen(A: Any, C4: Any) -> tuple[Any, ...]:
    return (A @ C4,)


def _gemm(alpha: float, beta: float, C: Any, A: Any, B: Any) -> tuple[Any, ...]:
    return (alpha * A @ B + beta * C,)


def _gemver(
    alpha: float, beta: float, A: Any, u1: Any, v1: Any, u2: Any, v2: Any, w: Any, x: Any, y: Any, z: Any
) -> tuple[Any, ...]:
    outer = importlib.import_module("dask.array").outer
    A = A + outer(u1, v1) + outer(u2, v2)
    x = x + (beta * y @ A + z)
    return A, w + alpha * A @ x, x


def _overlapping(step: Callable[[Any], Any]) -> Callable[..., tuple[Any, ...]]:
    def work(T: int, A: Any, B: Any) -> tuple[Any, ...]:
        for _ in range(1, T):
            B = A.map_overlap(step, depth=1, boundary="none", dtype=float)
            A = B.map_overlap(step, depth=1, boundary="none", dtype=float)
        return A, B

    return work


def _step_1d(x: Any) -> Any:
    y = x.copy()
    y[1:-1] = 0.33333 * (x[:-2] + x[1:-1] + x[2:])
    return y


def _step_2d(x: Any) -> Any:
    y = x.copy()
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])
    return y


def _k2mm(alpha: float, beta: float, A: Any, B: Any, C: Any, D: Any) -> tuple[Any, ...]:
    return (alpha * A @ B @ C + beta * D,)


def _mvt(x1: Any, x2: Any, y1: Any, y2: Any, A: Any) -> tuple[Any, ...]:
    return x1 + A @ y1, x2 + y2 @ A


_IN_DASK: dict[str, Callable[..., tuple[Any, ...]]] = {
    "doitgen": _doitgen,
    "gemm": _gemm,
    "gemver": _gemver,
    "jacobi_1d": _overlapping(_step_1d),
    "jacobi_2d": _overlapping(_step_2d),
    "k2mm": _k2mm,
    "mvt": _mvt,
}


def dask_run(program: Program, arguments: Arrays) -> tuple[Any, ...]:
    """Call a program on Dask's arrays, and return the results, which are not computed yet.

    Stencils go back and forth between two arrays, which are equal initially, so the elements at the ends,
    which are never written, can be those of either.
    """
    work = _IN_DASK.get(program.name)
    return program.run(arguments) if work is None else work(**arguments)


assert set(_IN_DASK) >= {program.name for program in PROGRAMS if program.writes}
