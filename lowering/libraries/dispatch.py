"""The choice of a target's library for a library call, and the step of a plan that runs the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Call, Compute, Dim, Load, Region, Window
from dcarray.ir.records import record
from dcarray.lowering.runtime.library_calls import BLAS, CallStep, Number, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dcarray.lowering.kernel.compiler import Compiler, LoadedKernel


@record(frozen=True, slots=True)
class Library:
    """A library that can run a library call if ``serves(call, region)``.

    ``name`` is the key of its functions in `library_calls.IMPLEMENTATIONS`, or an import path
    ``module:function``. ``routine(call, region, cores)`` is a compiler of code for the call, or None if that
    does not pay; ``how`` describes that code in words.
    """

    name: str
    serves: Callable[[Call, Region], bool]
    routine: Callable[[Call, Region, int], Compiler | None] | None = None
    how: str = ""


def dtypes_of(call: Call, region: Region) -> list[np.dtype[Any]]:
    """Return the dtypes of the arrays that a call writes and reads."""
    arrays = {array.name: array.dtype for array in region.arrays}
    return [arrays[window.array] for window in (*call.writes, *call.reads)]


def all_alike(call: Call, region: Region) -> bool:
    """Whether all arrays of a call have the same dtype, and it is one of BLAS's."""
    dtypes = dtypes_of(call, region)
    return all(dtype == dtypes[0] and dtype.char in BLAS for dtype in dtypes)


NUMPY = Library("numpy", all_alike)
"""Products of matrices by NumPy's BLAS."""


def find(call: Call, region: Region, libraries: Mapping[str, Sequence[Library]]) -> Library | None:
    """Return the first library that can run a call; None if none can."""
    return next((one for one in libraries.get(call.op, ()) if one.serves(call, region)), None)


def describe_call(call: Call, region: Region, cores: int, libraries: Mapping[str, Sequence[Library]]) -> str:
    """Return a text that says by what a library call is run."""
    library = find(call, region, libraries)
    if library is None:
        return f"{call.op}: no library serves it"
    own = library.routine is not None and library.routine(call, region, cores) is not None
    by = "NumPy" if ":" not in library.name else library.name
    return f"{call.op}, {library.how if own else f'by {by}'}"


def step(call: Call, library: Library, launch: LoadedKernel | None = None) -> CallStep:
    """Return the step of a plan that runs a library call; ``launch`` is its compiled code, if any."""
    windows = (*call.writes, *call.reads)
    views = tuple([(view.shape, view.index) for view in map(view_of, windows)])
    return CallStep(call.op, library.name, call.attrs, len(call.writes), views, launch)


def is_copy(stmt: Compute) -> bool:
    """Whether a statement only copies elements (it may cast them)."""
    return isinstance(stmt.body, Load) and stmt.combine is None


def copy_step(stmt: Compute) -> CallStep:
    """Return the step of a plan in which NumPy runs a statement that only copies elements."""
    assert isinstance(stmt.body, Load)
    views = tuple([(view.shape, view.index) for view in map(view_of, (stmt.target, stmt.body.window))])
    return CallStep("copy", "numpy", (), 1, views)


def view_of(window: Window) -> View:
    """Return a window as a view of its array."""
    index = [(_number(ix.offset), _number(ix.stride), ix.axis) for ix in window.index]
    return View(tuple(map(_number, window.shape)), tuple(index))


def _number(dim: Dim) -> Number:
    return dim if type(dim) is int else dims.show(dim)
