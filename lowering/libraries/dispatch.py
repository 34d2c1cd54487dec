"""Which library serves a library call, and what a call is without any.

``LIBRARIES`` lists for each operation who can do it, best first; ``expand`` says the same in plain
statements, for when there is nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Call, Dim, Region, Window
from dcarray.lowering.runtime import matmul_tiles, openblas, skinny_products
from dcarray.lowering.runtime.library_calls import BLAS, CallStep, Number, View

if TYPE_CHECKING:
    from dcarray.lowering.cpu.llvm.routines.routine import Routine
    from dcarray.lowering.target import Launch


@dataclass(frozen=True, slots=True)
class Library:
    """An implementation of an operation, usable when ``serves(call, region)``; its code has this name in
    ``library_calls.IMPLEMENTATIONS``.

    ``routine(call, region, cores)`` is code of its own for a call that may be worth it, and ``how`` says what
    that does.
    """

    name: str
    serves: Callable[[Call, Region], bool]
    routine: Callable[[Call, Region, int], Routine | None] | None = None
    how: str = ""


def _dtypes(call: Call, region: Region) -> list[np.dtype[Any]]:
    arrays = {array.name: array.dtype for array in region.arrays}
    return [arrays[window.array] for window in (*call.writes, *call.reads)]


def _all_alike(call: Call, region: Region) -> bool:
    dtypes = _dtypes(call, region)
    return all(dtype == dtypes[0] and dtype.char in BLAS for dtype in dtypes)


def _few_rows(call: Call, region: Region) -> bool:
    """Is the product one of a large matrix with few rows or columns?

    A plan relies on their being few, or not, since the code for the one does the other no sooner than NumPy;
    how large the matrix is, is guessed.
    """
    dtype, (a, b), hints = _dtypes(call, region)[0], call.reads, SizeHints(region)
    if (
        len(a.shape) < 2
        or len(b.shape) != 2
        or not _all_alike(call, region)
        or dtype.char not in skinny_products.DTYPES
    ):
        return False
    sides = math.prod(a.shape[:-1]), b.shape[1]
    if not skinny_products.is_large(hints(sides[0]), hints(sides[1]), hints(b.shape[0]), dtype.itemsize):
        return False
    return _all_alike(call, region) and any(_at_most(side, skinny_products.MOST, hints) for side in sides)


def _at_most(extent: Dim, most: int, hints: SizeHints) -> bool:
    known = dims.prove_le(extent, most)
    return hints(extent) <= most if known is None else known


def _read_once(call: Call, region: Region, cores: int) -> Routine:
    """The code that reads the large matrix of a product once."""
    from dcarray.lowering.cpu.llvm.routines.skinny_products import skinny as routine

    return routine(_dtypes(call, region)[0].char)


def _tiled(call: Call, region: Region, cores: int) -> Routine | None:
    """The code that makes a product in tiles, if it is large enough for that."""
    a, b = call.reads
    hints = SizeHints(region)
    if min(len(a.shape), len(b.shape)) < 2 or cores < 2 or not openblas.is_available():
        return None
    if hints.product((*a.shape, b.shape[-1])) < matmul_tiles.LEAST:
        return None
    from dcarray.lowering.cpu.llvm.routines.gemm import gemm

    return gemm(_dtypes(call, region)[0].char)


LIBRARIES: dict[str, list[Library]] = {
    "blas.matmul": [
        Library("skinny", _few_rows, _read_once, "the large matrix is read once, where it lies"),
        Library("numpy", _all_alike, _tiled, "by NumPy's BLAS, in tiles on our threads"),
    ]
}
"""Who does what, best first."""


def find(call: Call, region: Region) -> Library | None:
    """The first library that serves a call."""
    return next((one for one in LIBRARIES.get(call.op, ()) if one.serves(call, region)), None)


def described(call: Call, region: Region, cores: int) -> str:
    """How a call is served, for people."""
    library = find(call, region)
    if library is None:
        return f"{call.op}: no library serves it"
    own = library.routine is not None and library.routine(call, region, cores) is not None
    return f"{call.op}, {library.how if own else 'by NumPy'}"


def step(call: Call, library: Library, launch: Launch | None = None) -> CallStep:
    """How a call in a region is run."""
    windows = (*call.writes, *call.reads)
    views = tuple([(view.shape, view.index) for view in map(view_of, windows)])
    return CallStep(call.op, library.name, call.attrs, len(call.writes), views, launch)


def view_of(window: Window) -> View:
    """A window as a view of its array."""
    index = [(_number(ix.offset), _number(ix.stride), ix.axis) for ix in window.index]
    return View(tuple(map(_number, window.shape)), tuple(index))


def _number(dim: Dim) -> Number:
    return dim if type(dim) is int else dims.show(dim)
