"""Plans that travel: as bytes from a process that compiles to the one that runs them, or from the disk.

To make a plan takes SymPy, the passes, the schedules and LLVM's compiler.  To run one takes its driver's
text and what that calls by name: launches (object code), library calls, statements for the interpreter,
dtypes, the addresses of NumPy's loops.  A parcel holds these as plain values, so that none of the former has
to be imported where it is opened: neither here nor in what this module imports.  `packing` makes it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.lowering.runtime.driver_scope import function, imported

if TYPE_CHECKING:
    from .input_range_check import Look

__all__ = ["Parcel", "Unfit", "opened"]


class Unfit(Exception):
    """A plan that cannot travel, or a parcel that cannot be opened in this process."""


class Parcel:
    """A plan, opened.

    Attributes
    ----------
    run : callable
        As `Plan.run`.
    bytes : callable
        What the kernels read and write, as a function of the symbols' values.
    guard : callable or None
        Whether the plan serves these values of the symbols; None if it serves all.
    kernels, interpreted, steps : int
        How many kernels and interpreted statements there are, and steps in all.
    overwritten : tuple of str
        As in `Plan`.
    kept : tuple of pairs
        As in `Plan`, the places as functions of the symbols' values.
    look : dcarray.lowering.program.input_range_check.Look or None
        Whether inputs are so small that nothing can be raised.
    spared : tuple of str
    stops, single : bool
        As in `Plan`.
    told : object
        What who asked for the plan is told besides: plain values.
    """

    __slots__ = (
        "bytes", "guard", "interpreted", "kept", "kernels", "look", "overwritten", "run", "single", "spared",
        "steps", "stops", "told",
    )  # fmt: skip

    def __init__(self, run: Callable[..., int], facts: dict[str, Any], look: Look | None) -> None:
        self.run = run
        self.look = look
        self.kernels: int = facts["kernels"]
        self.interpreted: int = facts["interpreted"]
        self.steps: int = facts["steps"]
        self.overwritten: tuple[str, ...] = facts["overwritten"]
        self.spared: tuple[str, ...] = facts["spared"]
        self.stops: bool = facts["stops"]
        self.single: bool = facts["single"]
        self.told: Any = facts["told"]
        names = facts["symbols"]
        self.kept = tuple([(name, _expression(names, where)) for name, where in facts["kept"]])
        self.bytes = _expression(names, facts["bytes"])
        self.guard = _expression(names, facts["guard"]) if facts["guard"] else None


def opened(parcel: bytes) -> Parcel:
    """The plan of bytes that `dcarray.lowering.program.packing.packed` has made.

    Raises
    ------
    Unfit
        If this process lacks something that it needs.
    """
    text, told, look = pickle.loads(parcel)
    run = _run(*text)
    if look is None:
        return Parcel(run, told, None)
    from .input_range_check import Look

    return Parcel(run, told, Look(_run(*look[0]), *look[1]))


def _run(text: str, things: dict[str, Any]) -> Callable[..., int]:
    made: Callable[..., int] = function(text, {name: _made(*thing) for name, thing in things.items()})
    return made


def _expression(names: tuple[str, ...], text: str) -> Callable[..., Any]:
    # Only identifiers, integers and operators that ``dims.show`` wrote reach eval.
    made: Callable[..., Any] = eval(
        f"lambda {', '.join(names)}: {text}", {"min": min, "max": max, "slice": slice}
    )
    return made


def _made(kind: str, *parts: Any) -> Any:
    if kind == "dtype":
        return np.dtype(parts[0])
    if kind == "loop":
        from dcarray.lowering.runtime import numpy_loops

        address = numpy_loops.address(*parts)
        if address is None:
            raise Unfit(f"NumPy's loop of {parts[0]} is not found here")
        return address
    if kind == "launch":
        return imported(parts[0])(*parts[1:])
    from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

    if kind == "interp":
        return Interpreted(parts[0])
    try:
        step = CallStep(*parts[1])
    except (KeyError, ImportError, AttributeError) as error:
        raise Unfit(f"there is no library {parts[1][1]} here") from error
    step.launch = parts[0] and _made(*parts[0])
    return step
