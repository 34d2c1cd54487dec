"""Which library serves a library call, and what a call is without any.

``LIBRARIES`` lists for each operation who can do it, best first; ``expand`` says the same in plain
statements, for when there is nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import dims, products
from ..ir.guess import Guess
from ..ir.nodes import Array, Call, Compute, Dim, Region, Window
from . import openblas, tiles
from .calls import BLAS, CallStep, Number, View

if TYPE_CHECKING:
    from .llvm.routine import Routine
    from .target import Launch


@dataclass(frozen=True, slots=True)
class Library:
    """Somebody who can do an operation when ``serves(dtypes of writes and reads)``; ``calls.RUNS`` has how,
    under this name.

    ``routine(call, region)`` is code of its own for a call that may be worth it.
    """

    name: str
    serves: Callable[[Sequence[np.dtype[Any]]], bool]
    routine: Callable[[Call, Region], Routine | None] | None = None


def _tiled(call: Call, region: Region) -> Routine | None:
    """The code that makes a product in tiles, if it is large enough for that."""
    a, b = call.reads
    guess = Guess(region)
    if min(len(a.shape), len(b.shape)) < 2 or not openblas.usable():
        return None
    if guess.product((*a.shape, b.shape[-1])) < tiles.LEAST:
        return None
    from .llvm.gemm import gemm

    (dtype,) = {array.dtype for array in region.arrays if array.name == a.array}
    return gemm(dtype.char)


def _all_alike(dtypes: Sequence[np.dtype[Any]]) -> bool:
    return all(dtype == dtypes[0] and dtype.char in BLAS for dtype in dtypes)


LIBRARIES: dict[str, list[Library]] = {"blas.matmul": [Library("numpy", _all_alike, _tiled)]}
"""Who does what, best first."""


def find(call: Call, arrays: dict[str, Array]) -> Library | None:
    """The first library that serves a call."""
    dtypes = [arrays[window.array].dtype for window in (*call.writes, *call.reads)]
    return next((one for one in LIBRARIES.get(call.op, ()) if one.serves(dtypes)), None)


def expand(call: Call, region: Region) -> Compute | None:
    """A call as a statement, if it can be one: it must not write what it reads."""
    if call.op != "blas.matmul" or call.attrs:
        return None
    from .access import Memory

    memory = Memory(region)
    (out,), (a, b) = call.writes, call.reads
    dtypes = {memory.arrays[window.array].dtype for window in (out, a, b)}
    if len(dtypes) > 1 or not all(memory.disjoint(out, window) for window in (a, b)):
        return None
    (dtype,) = dtypes
    return None if dtype == np.float16 else products.as_sum(call, dtype)  # NumPy adds up halves in single


def step(call: Call, library: Library, position: int, launch: Launch | None = None) -> CallStep:
    """The step of a call in a region."""
    windows = (*call.writes, *call.reads)
    views = tuple([(view.shape, view.index) for view in map(view_of, windows)])
    names = tuple([window.array for window in windows])
    name, writes = library.name, len(call.writes)
    return CallStep(call.op, name, call.attrs, writes, views, position, names, call.loc, launch)


def view_of(window: Window) -> View:
    """A window as a view of its array."""
    index = [(_number(ix.offset), _number(ix.stride), ix.axis) for ix in window.index]
    return View(tuple(map(_number, window.shape)), tuple(index))


def _number(dim: Dim) -> Number:
    return dim if type(dim) is int else dims.show(dim)
