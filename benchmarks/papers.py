"""The eleven kernels whose scaling the data-centric Python paper shows, as NumPy programs.

Sizes and how they grow with the number of processes are Table 2 of Ziogas et al., "Productivity, portability,
performance: data-centric Python" (SC21); the computations are those of PolyBench (Pouchet).  The programs
have no annotations for distributing arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROGRAMS", "Program"]

Sizes = dict[str, int]
Arrays = dict[str, Any]
Make = Callable[[Mapping[str, int]], Iterator[tuple[str, Any]]]


@dataclass(frozen=True)
class Program:
    """A kernel with its sizes and arguments.

    Parameters
    ----------
    name : str
    sizes : mapping of str to int
        The sizes for one process with which the paper runs its own system and Legate.
    smaller : mapping of str to int
        The sizes for one process with which the paper runs Dask.
    grow : mapping of str to float
        The power of the number of processes with which a size grows; other sizes are constant.
    make : callable
        Returns an iterator over arguments (whole arrays) for some sizes, which are created one by one.
    work : callable
        The program: called with arguments, it returns results or writes them into arguments.
    writes : tuple of str
        The arguments that are written.
    above : int
        Arguments with more elements are distributed (the option ``distribute_above``).
    """

    name: str
    sizes: Mapping[str, int]
    smaller: Mapping[str, int]
    grow: Mapping[str, float]
    make: Make
    work: Callable[..., Any]
    writes: tuple[str, ...] = ()
    above: int = 0

    def at(self, ranks: int, base: Mapping[str, int] | None = None) -> Sizes:
        """Return the sizes for a number of processes."""
        first = self.sizes if base is None else base
        return {name: round(n * ranks ** self.grow.get(name, 0.0)) for name, n in first.items()}

    def run(self, arguments: Arrays) -> tuple[Any, ...]:
        """Call the program; return the results: returned ones, then written arguments."""
        given = self.work(**arguments)
        returned = () if given is None else given if isinstance(given, tuple) else (given,)
        return (*returned, *(arguments[name] for name in self.writes))


# ---- the programs ------------------------------------------------------------------------------------
def atax(A: Any, x: Any) -> Any:
    """Return the transpose of a matrix times the matrix times a vector."""
    return (A @ x) @ A


def bicg(A: Any, p: Any, r: Any) -> Any:
    """Return the two products of the biconjugate gradient method."""
    return r @ A, A @ p


def doitgen(A: Any, C4: Any) -> None:
    """Compute a matrix product along the last axis."""
    A[:] = A @ C4


def gemm(alpha: float, beta: float, C: Any, A: Any, B: Any) -> None:
    """Compute a matrix product."""
    C[:] = alpha * A @ B + beta * C


def gemver(
    alpha: float, beta: float, A: Any, u1: Any, v1: Any, u2: Any, v2: Any, w: Any, x: Any, y: Any, z: Any
) -> None:
    """Compute two rank-one updates and two products with vectors."""
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def gesummv(alpha: float, beta: float, A: Any, B: Any, x: Any) -> Any:
    """Return the sum of the products of two matrices with one vector."""
    return alpha * (A @ x) + beta * (B @ x)


def jacobi_1d(T: int, A: Any, B: Any) -> None:
    """Compute time steps of a three-point stencil, from one array to the other and back."""
    for _ in range(1, T):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_2d(T: int, A: Any, B: Any) -> None:
    """Compute time steps of a five-point stencil, from one array to the other and back."""
    for _ in range(1, T):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def k2mm(alpha: float, beta: float, A: Any, B: Any, C: Any, D: Any) -> None:
    """Compute two matrix products."""
    D[:] = alpha * A @ B @ C + beta * D


def k3mm(A: Any, B: Any, C: Any, D: Any) -> Any:
    """Return the result of three matrix products."""
    return (A @ B) @ (C @ D)


def mvt(x1: Any, x2: Any, y1: Any, y2: Any, A: Any) -> None:
    """Compute the products of a matrix and of its transpose with a vector each."""
    x1 += A @ y1
    x2 += y2 @ A


# ---- their arguments ---------------------------------------------------------------------------------
def _filled(*shape: int) -> Any:
    """Return an array of numbers between 0 and 1 that depend on every index."""
    whole = np.zeros(shape)
    for axis, n in enumerate(shape):
        along = np.modf(np.arange(1, n + 1) * (0.6180339887498949 / (axis + 1)))[0] / len(shape)
        whole += along.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return whole


def _names(*numbers: str, **shapes: tuple[str, ...]) -> Make:
    """Return a constructor of numbers and arrays; matrices are scaled so that products do not grow."""
    values = {"alpha": 1.5, "beta": 0.5}

    def make(sizes: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
        for name in numbers:
            yield name, values.get(name, sizes.get(name))
        for name, shape in shapes.items():
            extents = [sizes[size] for size in shape]
            array = _filled(*extents)
            if len(extents) == 2:
                array /= extents[0]
            yield name, array

    return make


_HALF = {"M": 0.5, "N": 0.5}
_THIRD = dict.fromkeys(("NI", "NJ", "NK", "NL", "NM"), 1 / 3)


def _halves(sizes: Mapping[str, int]) -> Sizes:
    return {name: n // 2 for name, n in sizes.items()}


def _program(work: Callable[..., Any], sizes: Sizes, grow: Mapping[str, float], *rest: Any) -> Program:
    smaller, make, *writes = rest
    # The default of the option keeps doitgen's matrix on every rank; jacobi_1d's vectors are smaller, and
    # with the vectors of the others on every rank whole ones would travel instead of parts.
    above = 1 << 19 if work is doitgen else 0
    return Program(work.__name__, sizes, smaller, grow, make, work, tuple(writes), above)


_ATAX, _BICG = {"M": 20000, "N": 25000}, {"M": 25000, "N": 20000}
_GEMM = {"NI": 8000, "NJ": 9200, "NK": 5200}
_K2MM = {"NI": 6400, "NJ": 7200, "NK": 4400, "NM": 4800}
_K3MM = {"NI": 6400, "NJ": 7200, "NK": 4000, "NL": 4400, "NM": 4800}
_DOITGEN = {"NR": 128, "NQ": 512, "NP": 512}
_J1D, _J2D = {"T": 1000, "N": 24000}, {"T": 1000, "N": 1300}
_VECTORS = dict.fromkeys(("u1", "v1", "u2", "v2", "w", "x", "y", "z"), ("N",))
_FACTORS = ("alpha", "beta")

PROGRAMS = (
    _program(atax, _ATAX, _HALF, _halves(_ATAX), _names(A=("M", "N"), x=("N",))),
    _program(bicg, _BICG, _HALF, _halves(_BICG), _names(A=("M", "N"), p=("N",), r=("M",))),
    _program(
        doitgen, _DOITGEN, {"NR": 1.0}, _DOITGEN, _names(A=("NR", "NQ", "NP"), C4=("NP", "NP")), "A"
    ),
    _program(
        gemm, _GEMM, _THIRD, _halves(_GEMM),
        _names(*_FACTORS, C=("NI", "NJ"), A=("NI", "NK"), B=("NK", "NJ")), "C",
    ),
    _program(
        gemver, {"N": 10000}, _HALF, {"N": 5000}, _names(*_FACTORS, A=("N", "N"), **_VECTORS), "A", "w", "x"
    ),
    _program(
        gesummv, {"N": 22400}, _HALF, {"N": 11400}, _names(*_FACTORS, A=("N", "N"), B=("N", "N"), x=("N",))
    ),
    _program(jacobi_1d, _J1D, {"N": 1.0}, _J1D, _names("T", A=("N",), B=("N",)), "A", "B"),
    _program(jacobi_2d, _J2D, {"N": 0.5}, _J2D, _names("T", A=("N", "N"), B=("N", "N")), "A", "B"),
    _program(
        k2mm, _K2MM, _THIRD, _halves(_K2MM),
        _names(*_FACTORS, A=("NI", "NK"), B=("NK", "NJ"), C=("NJ", "NM"), D=("NI", "NM")), "D",
    ),
    _program(
        k3mm, _K3MM, _THIRD, _halves(_K3MM),
        _names(A=("NI", "NK"), B=("NK", "NJ"), C=("NJ", "NM"), D=("NM", "NL")),
    ),
    _program(
        mvt, {"N": 22000}, _HALF, {"N": 11000},
        _names(x1=("N",), x2=("N",), y1=("N",), y2=("N",), A=("N", "N")), "x1", "x2",
    ),
)  # fmt: skip
