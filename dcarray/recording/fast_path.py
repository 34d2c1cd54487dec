"""The inner loops of calls that have been recorded, by which C code records later calls like them.

`recorder` finds out the inner loop for a call and remembers it here, by the name of the operation and the
kinds of its operands.  `elementwise`, in C, then records the same call on other arrays in about a microsecond
(`_native/recording.h`).  It also serves operators and ufuncs.
"""

from __future__ import annotations

from typing import Any

from dcarray.core.fp_state import STATE as STATE
from dcarray.core.handle import Handle
from dcarray.core.native import BUILT
from dcarray.core.ufunc_loops import UFUNCS

from .log import ENTRIES as ENTRIES
from .log import HELD_ELEMENTS as HELD_ELEMENTS
from .operands import DTYPES, kind_of, shape_of
from .operands import IS_INTERNAL as IS_INTERNAL
from .operands import commit_by_python as commit_by_python
from .operands import enter_by_python as enter_by_python
from .operands import run_urgent as run_urgent
from .operands import target_of as target_of
from .operands import user_frame as user_frame
from .session import LOCAL as LOCAL
from .session import LOCK as LOCK
from .session import session as session
from .session import session_for as session_for

__all__ = ["NAMES", "SCALARS", "SIGNATURES", "elementwise", "remember"]

_MOST_SIGNATURES = 4096
_Signature = tuple[str, Any, tuple[int, ...]]
_KNOWN: dict[tuple[Any, ...], _Signature] = {}
for _c, _dtype in DTYPES.items():
    _KNOWN["cast", _c] = f"{_c}->{_c}", _dtype, ()
    _KNOWN["where", "?", _c, _c] = f"?{_c}{_c}->{_c}", _dtype, ()

SIGNATURES = dict(_KNOWN)
"""By name and kinds of operands, and by the shapes of two that are broadcast: the loop, its result's dtype,
and the shape that they are broadcast to."""
SCALARS: dict[type, Any] = {float: float, int: int} | {dtype.type: c for c, dtype in DTYPES.items()}
"""What `kind_of` says of scalars, by type."""
NAMES = {ufunc: ufunc.__name__ for ufunc in UFUNCS.values() if UFUNCS.get(ufunc.__name__) is ufunc}
"""The names of NumPy's ufuncs."""


def elementwise(name: str, inputs: tuple[Any, ...], out: Any = None) -> Any:
    """Record an operation of known loop on large arrays of one class and numbers.

    Parameters
    ----------
    name : str
        The operation.
    inputs : tuple
        Its operands: arrays of one shape, or two that are broadcast, as arrays of their shapes have been.
    out : Handle, optional
        The array of this shape that is written; else the result is a new array.

    Returns
    -------
    Handle or None
        The array with the result; None if only `recorder.elementwise` can record the call.
    """
    return None


def remember(name: str, inputs: tuple[Any, ...], loop: str, shape: tuple[int, ...]) -> None:
    """Remember the loop that `recorder.elementwise` found, if the kinds of the operands determine it."""
    if name[:8] == "logical_" and not all(isinstance(x, Handle) for x in inputs):
        return  # it depends on the value of a number
    if name == "power" and type(inputs[1]) not in (int, float):
        return  # another operation with an array than with a number of NumPy's
    if len(inputs) > 3 or not shape:
        return
    if len(SIGNATURES) > _MOST_SIGNATURES:
        SIGNATURES.clear()
        SIGNATURES.update(_KNOWN)
    key = name, *map(kind_of, inputs)
    SIGNATURES[key] = signature = loop, DTYPES[loop[-1]], shape
    if len(inputs) == 2 and all(isinstance(x, Handle) for x in inputs):
        first, second = map(shape_of, inputs)
        if first != second:
            SIGNATURES[(*key, first, second)] = signature


if BUILT:
    from dcarray._native.extension import record as elementwise
    from dcarray._native.extension import set_recorder

    set_recorder(globals())
