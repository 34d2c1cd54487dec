"""Loaded plans: plans in the process that runs them, deserialised from a planning process or from disk.

Making a plan needs the passes, the schedules and a compiler.  Running one needs only its driver's text and
the objects that the text calls by name: kernels (object code), library calls, statements for the interpreter,
dtypes, addresses of NumPy's loops.  A serialised plan has these as plain values (`serialise`), so that
loading it imports nothing that makes plans, neither in this module nor in those that it imports.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.lowering.runtime.driver_scope import function, import_object

if TYPE_CHECKING:
    from .input_range_check import InputRangeCheck

__all__ = ["LoadedPlan", "NotPortable", "deserialised"]


class NotPortable(Exception):
    """Raised for a plan that cannot be serialised, or that cannot be loaded in this process."""


class LoadedPlan:
    """A plan that can run in this process.

    Attributes
    ----------
    run : callable
        The function `Plan.run`.
    bytes : callable
        ``bytes(*symbols)`` is the number of bytes that the kernels move for these values of the symbols.
    guard : callable or None
        ``guard(*symbols)`` says whether the plan is valid for these values of the symbols; None if it always
        is.
    kernels, interpreted, steps : int
        The numbers of kernels, of interpreted statements, and of all steps.
    overwritten : tuple of str
        As in `Plan`.
    kept : tuple of pairs
        Like `Plan.kept`, with functions from the symbols' values to the index of the copied elements.
    range_check : dcarray.lowering.program.input_range_check.InputRangeCheck or None
        The check that the inputs are so small that no exception can be raised; None without one.
    spared : tuple of str
    stops, single : bool
        As in `Plan`.
    payload : object
        Plain values of the caller that requested the plan.
    """

    __slots__ = (
        "bytes",
        "guard",
        "interpreted",
        "kept",
        "kernels",
        "overwritten",
        "payload",
        "range_check",
        "run",
        "single",
        "spared",
        "steps",
        "stops",
    )  # fmt: skip

    def __init__(
        self, run: Callable[..., int], summary: dict[str, Any], range_check: InputRangeCheck | None
    ) -> None:
        self.run = run
        self.range_check = range_check
        self.kernels: int = summary["kernels"]
        self.interpreted: int = summary["interpreted"]
        self.steps: int = summary["steps"]
        self.overwritten: tuple[str, ...] = summary["overwritten"]
        self.spared: tuple[str, ...] = summary["spared"]
        self.stops: bool = summary["stops"]
        self.single: bool = summary["single"]
        self.payload: Any = summary["payload"]
        names = summary["symbols"]
        self.kept = tuple([(name, _expression(names, where)) for name, where in summary["kept"]])
        self.bytes = _expression(names, summary["bytes"])
        self.guard = _expression(names, summary["guard"]) if summary["guard"] else None


def deserialised(plan: bytes) -> LoadedPlan:
    """Return the plan of bytes that `dcarray.lowering.program.serialise.serialised` has made.

    Raises
    ------
    NotPortable
        If this process lacks something that the plan needs.
    """
    driver, summary, check = pickle.loads(plan)
    run = _run(*driver)
    if check is None:
        return LoadedPlan(run, summary, None)
    from .input_range_check import InputRangeCheck

    return LoadedPlan(run, summary, InputRangeCheck(_run(*check[0]), *check[1]))


def _run(text: str, things: dict[str, Any]) -> Callable[..., int]:
    return function(text, {name: _restored(*thing) for name, thing in things.items()})


def _expression(names: tuple[str, ...], text: str) -> Callable[..., Any]:
    # Only identifiers, integers and operators that ``dims.show`` wrote reach eval.
    expression: Callable[..., Any] = eval(
        f"lambda {', '.join(names)}: {text}", {"min": min, "max": max, "slice": slice}
    )
    return expression


def _restored(kind: str, *parts: Any) -> Any:
    if kind == "dtype":
        return np.dtype(parts[0])
    if kind == "loop":
        from dcarray.lowering.runtime import numpy_loops

        address = numpy_loops.address(*parts)
        if address is None:
            raise NotPortable(f"NumPy's loop of {parts[0]} is not found here")
        return address
    if kind == "launch":
        try:
            return import_object(parts[0])(*parts[1:])
        except (OSError, ImportError) as error:
            raise NotPortable(str(error)) from error
    from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

    if kind == "interp":
        return Interpreted(parts[0])
    try:
        step = CallStep(*parts[1])
    except (KeyError, ImportError, AttributeError) as error:
        raise NotPortable(f"there is no library {parts[1][1]} here") from error
    step.launch = parts[0] and _restored(*parts[0])
    return step
