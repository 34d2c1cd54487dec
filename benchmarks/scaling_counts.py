"""Communication of the papers' kernels on many ranks, planned without data, and its lower bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from dcarray import comm

from .papers import Program, Sizes

__all__ = ["Bound", "Planned", "bound", "layouts", "planned", "region", "summa", "work"]

_WORD = 8  # bytes of a float64
TURNS = 32  # time steps that are planned together; a recording has about so many


# ---- the programs as regions ---------------------------------------------------------------------
def _matrix(name: str, rows: str, columns: str) -> str:
    return f"{name}: f64[{{{rows}}}, {{{columns}}}]"


def _each(target: str, body: str, *extents: str) -> str:
    """Return the text of a statement over all indices within some extents."""
    loops = ", ".join(f"{axis}<{{{n}}}" for axis, n in zip("ijk", extents, strict=False))
    return f"{target} = {body} for {loops}"


def _times(name: str, factor: str, array: str, *extents: str) -> str:
    at = "[" + ",".join("ijk"[: len(extents)]) + "]"
    return _each(name + at, f"multiply({factor}, {array}{at})", *extents)


_STENCIL_1D = "{0}[i+1] = multiply(0.33333, add(add({1}[i], {1}[i+1]), {1}[i+2])) for i<{{N}}-2"
_STENCIL_2D = (
    "{0}[i+1,j+1] = multiply(0.2, add(add(add(add({1}[i+1,j+1], {1}[i+1,j]), {1}[i+1,j+2]), {1}[i+2,j+1]), "
    "{1}[i,j+1])) for i<{{N}}-2, j<{{N}}-2"
)

# For each program the declarations and statements that its recording has; a stencil's are one time step.
_TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "atax": (
        ["in " + _matrix("A", "M", "N"), "in x: f64[{N}]", "temp t: f64[{M}]", "out y: f64[{N}]"],
        ["call blas.matmul(A, x) -> t", "call blas.matmul(t, A) -> y"],
    ),
    "bicg": (
        ["in " + _matrix("A", "M", "N"), "in p: f64[{N}]", "in r: f64[{M}]", "out s: f64[{N}]",
         "out q: f64[{M}]"],
        ["call blas.matmul(r, A) -> s", "call blas.matmul(A, p) -> q"],
    ),
    "doitgen": (
        ["inout A: f64[{NR}, {NQ}, {NP}]", "in C4: f64[{NP}, {NP}]", "temp t: f64[{NR}, {NQ}, {NP}]"],
        ["call blas.matmul(A, C4) -> t", _each("A[i,j,k]", "t[i,j,k]", "NR", "NQ", "NP")],
    ),
    "gemm": (
        ["in " + _matrix("A", "NI", "NK"), "in " + _matrix("B", "NK", "NJ"),
         "inout " + _matrix("C", "NI", "NJ"), "temp " + _matrix("a", "NI", "NK"),
         "temp " + _matrix("t", "NI", "NJ")],
        [_times("a", "1.5", "A", "NI", "NK"), "call blas.matmul(a, B) -> t",
         _each("C[i,j]", "add(t[i,j], multiply(0.5, C[i,j]))", "NI", "NJ")],
    ),
    "gemver": (
        ["inout " + _matrix("A", "N", "N"), *(f"in {v}: f64[{{N}}]" for v in ("u1", "v1", "u2", "v2")),
         "inout w: f64[{N}]", "inout x: f64[{N}]", "in y: f64[{N}]", "in z: f64[{N}]",
         "temp b: f64[{N}]", "temp s: f64[{N}]", "temp " + _matrix("a", "N", "N"), "temp t: f64[{N}]"],
        [_each("A[i,j]", "add(A[i,j], add(multiply(u1[i], v1[j]), multiply(u2[i], v2[j])))", "N", "N"),
         _times("b", "0.5", "y", "N"), "call blas.matmul(b, A) -> s",
         _each("x[i]", "add(x[i], add(s[i], z[i]))", "N"),
         _times("a", "1.5", "A", "N", "N"), "call blas.matmul(a, x) -> t",
         _each("w[i]", "add(w[i], t[i])", "N")],
    ),
    "gesummv": (
        ["in " + _matrix("A", "N", "N"), "in " + _matrix("B", "N", "N"), "in x: f64[{N}]",
         "temp s: f64[{N}]", "temp t: f64[{N}]", "out y: f64[{N}]"],
        ["call blas.matmul(A, x) -> s", "call blas.matmul(B, x) -> t",
         _each("y[i]", "add(multiply(1.5, s[i]), multiply(0.5, t[i]))", "N")],
    ),
    "jacobi_1d": (
        ["inout A: f64[{N}]", "inout B: f64[{N}]"],
        [_STENCIL_1D.format("B", "A"), _STENCIL_1D.format("A", "B")],
    ),
    "jacobi_2d": (
        ["inout " + _matrix("A", "N", "N"), "inout " + _matrix("B", "N", "N")],
        [_STENCIL_2D.format("B", "A"), _STENCIL_2D.format("A", "B")],
    ),
    "k2mm": (
        ["in " + _matrix("A", "NI", "NK"), "in " + _matrix("B", "NK", "NJ"), "in " + _matrix("C", "NJ", "NM"),
         "inout " + _matrix("D", "NI", "NM"), "temp " + _matrix("a", "NI", "NK"),
         "temp " + _matrix("t", "NI", "NJ"), "temp " + _matrix("u", "NI", "NM")],
        [_times("a", "1.5", "A", "NI", "NK"), "call blas.matmul(a, B) -> t", "call blas.matmul(t, C) -> u",
         _each("D[i,j]", "add(u[i,j], multiply(0.5, D[i,j]))", "NI", "NM")],
    ),
    "k3mm": (
        ["in " + _matrix("A", "NI", "NK"), "in " + _matrix("B", "NK", "NJ"), "in " + _matrix("C", "NJ", "NM"),
         "in " + _matrix("D", "NM", "NL"), "temp " + _matrix("t", "NI", "NJ"),
         "temp " + _matrix("u", "NJ", "NL"), "out " + _matrix("G", "NI", "NL")],
        ["call blas.matmul(A, B) -> t", "call blas.matmul(C, D) -> u", "call blas.matmul(t, u) -> G"],
    ),
    "mvt": (
        ["in " + _matrix("A", "N", "N"), "inout x1: f64[{N}]", "inout x2: f64[{N}]", "in y1: f64[{N}]",
         "in y2: f64[{N}]", "temp s: f64[{N}]", "temp t: f64[{N}]"],
        ["call blas.matmul(A, y1) -> s", _each("x1[i]", "add(x1[i], s[i])", "N"),
         "call blas.matmul(y2, A) -> t", _each("x2[i]", "add(x2[i], t[i])", "N")],
    ),
}  # fmt: skip


def region(name: str, sizes: Sizes, turns: int = 1) -> str:
    """Return the text of the region that a program records; ``turns``: the time steps of a stencil.

    Parameters
    ----------
    name : str
        The name of one of the programs.
    sizes : dict of str to int
    """
    declared, body = _TEXTS[name]
    lines = [f"  {line.format(**sizes)}" for line in (*declared, *body * turns)]
    return "\n".join(["region() {", *lines, "}"])


# ---- plans -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Planned:
    """The messages and bytes that one rank sends and receives in one call of a program.

    Parameters
    ----------
    rank : int
        The rank, of those planned, that receives the most bytes.
    seconds : float
        The planning time of the rank that was planned first; later ones reuse cached results.
    counted : comm.Counted
        The counts; for a stencil, of `TURNS` time steps.
    times : int
        How many times these are run in one call.
    """

    rank: int
    seconds: float
    counted: comm.Counted
    times: float

    @property
    def received(self) -> int:
        """The bytes received in one call, with all-reduces counted by recursive halving and doubling."""
        counts = self.counted.counts
        folded = (
            2 * each.nbytes * (each.ranks - 1) / each.ranks
            for phase in self.counted.phases
            for each in phase.collectives
        )
        return round((counts.bytes_received + sum(folded)) * self.times)

    @property
    def messages(self) -> int:
        """The number of messages received and collective operations in one call."""
        counts = self.counted.counts
        return round((counts.messages_received + counts.collectives) * self.times)

    def phases(self, local: comm.Phase) -> list[comm.Phase]:
        """Return the phases of one call for the model, with ``local`` work each time."""
        return [replace(phase, times=self.times) for phase in (local, *self.counted.phases)]


def layouts(program: Program, sizes: Sizes, ranks: int) -> dict[str, comm.Layout]:
    """Return the arguments' layouts: blocks over the grid that the planner prefers, or whole if small."""
    spread = []
    for declared in _TEXTS[program.name][0]:
        role, name, shape = _DECLARED.match(declared).groups()  # type: ignore[union-attr]
        extents = (sizes[size] for size in re.findall(r"{(\w+)}", shape))
        if role not in ("temp", "out") and math.prod(extents) > program.above:
            spread.append(name)
    return comm.suited(region(program.name, sizes), spread, ranks)


_DECLARED = re.compile(r"(\w+) (\w+): f64(.*)")


def planned(program: Program, sizes: Sizes, ranks: int) -> Planned:
    """Plan a program for many ranks, without data.

    Of the first, last and a middle rank, the one that receives the most bytes is returned.  For a stencil,
    some time steps are counted after as many others, since they are recorded together.

    Parameters
    ----------
    program : Program
    sizes : dict of str to int
    ranks : int
    """
    turns = TURNS if "T" in sizes else 1
    text, where = region(program.name, sizes, turns), layouts(program, sizes, ranks)
    found: list[Planned] = []
    times = (sizes["T"] - 1) / turns if "T" in sizes else 1.0
    for rank in dict.fromkeys((_middle(ranks), 0, ranks - 1)):
        counted = comm.count(text, where, ranks, rank, again="T" in sizes)
        first = found[0].seconds if found else counted.planning
        found.append(Planned(rank, first, counted, times))
    return max(found, key=lambda one: one.received)


def _middle(ranks: int) -> int:
    """Return the rank in the middle of a two-dimensional grid of ``ranks`` ranks."""
    rows, columns = comm.choose_grid((ranks, ranks), ranks).shape
    return rows // 2 * columns + columns // 2


# ---- what has to be done and to travel -----------------------------------------------------------
def work(name: str, sizes: Sizes) -> tuple[float, float, float]:
    """Return a program's numbers of operations, of bytes moved (each array once a use), and of bytes held.

    For a stencil, operations and bytes moved are those of all time steps.
    """
    N, M, T = (sizes.get(size, 0) for size in "NMT")
    if name in ("jacobi_1d", "jacobi_2d"):
        points, operations = (N, 3) if name == "jacobi_1d" else (N * N, 5)
        return 2.0 * (T - 1) * operations * points, 2.0 * (T - 1) * 2 * _WORD * points, 2.0 * _WORD * points
    if name == "doitgen":
        elements = sizes["NR"] * sizes["NQ"] * sizes["NP"]
        return 2.0 * elements * sizes["NP"], 4.0 * _WORD * elements, math.inf
    if products := _products(name, sizes):
        moved = sum(m * k + k * n + 2 * m * n for m, n, k in products)
        return sum(2.0 * m * n * k for m, n, k in products), float(_WORD * moved), math.inf
    elements = M * N if name in ("atax", "bicg") else N * N
    extra = 2 if name == "gemver" else 0  # A is updated: read and written once more
    return 2.0 * (2 + extra) * elements, (2.0 + extra) * _WORD * elements, math.inf


def _products(name: str, sizes: Sizes) -> list[tuple[int, int, int]]:
    """Return the rows, columns and inner extent of each of a program's matrix products."""
    ni, nj, nk, nl, nm = (sizes.get(size, 0) for size in ("NI", "NJ", "NK", "NL", "NM"))
    return {
        "gemm": [(ni, nj, nk)],
        "k2mm": [(ni, nj, nk), (ni, nm, nj)],
        "k3mm": [(ni, nj, nk), (nj, nl, nm), (ni, nl, nj)],
    }.get(name, [])


def summa(name: str, sizes: Sizes, ranks: int) -> float:
    """Return the bytes that a rank receives in a program's matrix products if each is computed by SUMMA.

    Van de Geijn and Watts, 1997: on r rows of c ranks each rank receives its rows of one factor and its
    columns of the other, except for its own part.  The grid with the fewest bytes is used.
    """

    def least(m: int, n: int, k: int) -> float:
        grids = [(r, ranks // r) for r in range(1, ranks + 1) if ranks % r == 0]
        return min(m / r * k * (1 - 1 / c) + k * n / c * (1 - 1 / r) for r, c in grids)

    return _WORD * sum(least(*product) for product in _products(name, sizes))


@dataclass(frozen=True)
class Bound:
    """A lower bound of the bytes that some rank must receive in one call, and its formula."""

    nbytes: float
    formula: str


def bound(name: str, sizes: Sizes, ranks: int) -> Bound:
    """Return the lower bound of communication for a program whose arrays are distributed in equal parts.

    A rank with mn = MN/P elements of a matrix takes n elements of a vector into a product with it and adds to
    m sums of others, m + n at least 2 sqrt(MN/P), of which it has its own part (M + N)/P.  A product of
    matrices takes SUMMA's bytes, or by Irony, Toledo and Tiskin (2004) not fewer than mnk/(P sqrt(8 S)) - S
    words with a memory of S words; the table has the former.  A stencil's block takes its rim.
    """
    if ranks == 1 or name == "doitgen":
        return Bound(0.0, "0")
    N, M, T = (sizes.get(size, 0) for size in "NMT")
    if name == "jacobi_1d":
        return Bound(2.0 * (T - 1) * 2 * _WORD, "2 (T-1) 2")
    if name == "jacobi_2d":
        rows, columns = comm.choose_grid((N, N), ranks).shape
        rim = min(rows - 1, 2) * N / columns + min(columns - 1, 2) * N / rows
        return Bound(2.0 * (T - 1) * rim * _WORD, "2 (T-1) 4 N/sqrt(P)")
    if _products(name, sizes):
        return Bound(summa(name, sizes, ranks), "sum of (m k + k n)/sqrt(P) - (m k + k n)/P")
    M = M or N
    pairs = {"atax": 2, "bicg": 2, "mvt": 2, "gesummv": 1, "gemver": 4}[name]
    words = pairs * (2 * math.sqrt(M * N / ranks) - (M + N) / ranks)
    return Bound(max(words, 0.0) * _WORD, f"{pairs} (2 sqrt(MN/P) - (M+N)/P)".replace("1 (", "("))
