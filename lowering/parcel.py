"""Plans that travel: as bytes from a process that compiles to the one that runs them, or from the disk.

To make a plan takes SymPy, the passes, the schedules and LLVM's compiler.  To run one takes its driver's
text and what that calls by name: launches (object code), library calls, statements for the interpreter,
dtypes, the addresses of NumPy's loops.  A parcel holds these as plain values, so that none of the former has
to be imported where it is opened.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import dims
from . import numpy_loops
from .look import Look
from .scope import function
from .steps import CallStep, Interpreted, InterpStep

if TYPE_CHECKING:
    from .llvm.threads import Launch
    from .plan import Plan

__all__ = ["Parcel", "Unfit", "opened", "packed"]


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
    look : dcarray.lowering.look.Look or None
        Whether inputs are so small that nothing can be raised.
    spared : tuple of str
    stops : bool
        As in `Plan`.
    told : object
        What who asked for the plan is told besides: plain values.
    """

    __slots__ = (
        "bytes", "guard", "interpreted", "kept", "kernels", "look", "overwritten", "run", "spared", "steps",
        "stops", "told",
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
        self.told: Any = facts["told"]
        names = facts["symbols"]
        self.kept = tuple([(name, _expression(names, where)) for name, where in facts["kept"]])
        self.bytes = _expression(names, facts["bytes"])
        self.guard = _expression(names, facts["guard"]) if facts["guard"] else None


def facts(plan: Plan, relations: list[Any], told: Any = None) -> dict[str, Any]:
    """What is to be known of a plan besides how it runs; ``relations`` are what it relies on."""
    terms = [dims.show(step.binding.bytes) for step in plan.kernels]
    return {
        **plan.stats,
        "steps": len(plan.steps),
        "overwritten": plan.overwritten,
        "kept": plan.kept,
        "spared": plan.spared,
        "stops": plan.stops,
        "told": told,
        "symbols": tuple([symbol.name for symbol in plan.region.symbols]),
        "bytes": " + ".join(terms) or "0",
        "guard": " and ".join([f"({dims.show(relation)})" for relation in relations]),
    }


def local(plan: Plan, relations: list[Any], told: Any = None) -> Parcel:
    """A plan of this process, as if it had come in a parcel."""
    look = None if plan.look is None else Look(plan.look.plan.run, *plan.look[1:])
    return Parcel(plan.run, facts(plan, relations, told), look)


def packed(plan: Plan, relations: list[Any], told: Any = None) -> bytes:
    """A plan as bytes.

    Raises
    ------
    Unfit
        If something in it is of use in this process only.
    """
    look = None if plan.look is None else (_text(plan.look.plan), plan.look[1:])
    return pickle.dumps((_text(plan), facts(plan, relations, told), look), protocol=5)


def opened(parcel: bytes) -> Parcel:
    """The plan of `packed` bytes.

    Raises
    ------
    Unfit
        If this process lacks something that it needs.
    """
    text, told, look = pickle.loads(parcel)
    return Parcel(_run(*text), told, None if look is None else Look(_run(*look[0]), *look[1]))


def _text(plan: Plan) -> tuple[str, dict[str, Any]]:
    return plan.driver, {name: _reduced(thing) for name, thing in plan.things.items()}


def _run(text: str, things: dict[str, Any]) -> Callable[..., int]:
    made: Callable[..., int] = function(text, {name: _made(*thing) for name, thing in things.items()})
    return made


def _expression(names: tuple[str, ...], text: str) -> Callable[..., Any]:
    # Only identifiers, integers and operators that ``dims.show`` wrote reach eval.
    made: Callable[..., Any] = eval(
        f"lambda {', '.join(names)}: {text}", {"min": min, "max": max, "slice": slice}
    )
    return made


def _reduced(thing: Any) -> tuple[Any, ...]:
    """A thing as plain values, by which `_made` makes it again."""
    if isinstance(thing, np.dtype):
        return "dtype", thing.str
    if isinstance(thing, numpy_loops.Address):
        return "loop", *thing.origin
    if isinstance(thing, CallStep):
        return "call", thing.launch and _reduced(thing.launch), thing.parts
    if isinstance(thing, InterpStep):
        return "interp", thing.run.text
    parts = getattr(thing, "parts", None)
    if parts is None:
        raise Unfit(f"{type(thing).__name__} is of use in one process only")
    return "launch", *parts


def _made(kind: str, *parts: Any) -> Any:
    if kind == "dtype":
        return np.dtype(parts[0])
    if kind == "loop":
        address = numpy_loops.address(*parts)
        if address is None:
            raise Unfit(f"NumPy's loop of {parts[0]} is not found here")
        return address
    if kind == "call":
        try:
            step = CallStep(*parts[1])
            step.launch = parts[0] and _made(*parts[0])
            return step
        except (KeyError, ValueError) as error:
            raise Unfit(f"there is no library {parts[1][1]} here") from error
    if kind == "interp":
        return Interpreted(parts[0])
    return linked(*parts)


def linked(code: bytes, phases: int, arguments: int, mask: int) -> Launch:
    """Code that is linked once, however often it comes."""
    from .llvm.threads import Launch

    key = (code, phases, arguments, mask)
    found = _LINKED.get(key)
    if found is None:
        with _lock:
            found = _LINKED.get(key)
            if found is None:
                try:
                    found = _LINKED[key] = Launch.of(*key)
                except (RuntimeError, OSError, ImportError) as error:
                    raise Unfit(f"LLVM: {error}") from error
    return found


_LINKED: dict[tuple[bytes, int, int, int], Launch] = {}  # loaded code is never unloaded
_lock = threading.Lock()
