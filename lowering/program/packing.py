"""Plans as parcels: what `dcarray.lowering.program.parcel` opens, where somebody has made the plan."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir import dims
from dcarray.lowering.runtime import numpy_loops
from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

from .input_range_check import Look
from .parcel import Parcel, Unfit

if TYPE_CHECKING:
    from .executable import Plan

__all__ = ["facts", "local", "packed"]


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
        "single": plan.single,
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


def _text(plan: Plan) -> tuple[str, dict[str, Any]]:
    return plan.driver, {name: _reduced(thing) for name, thing in plan.things.items()}


def _reduced(thing: Any) -> tuple[Any, ...]:
    """A thing as plain values, by which `_made` makes it again."""
    if isinstance(thing, np.dtype):
        return "dtype", thing.str
    if isinstance(thing, numpy_loops.Address):
        return "loop", *thing.origin
    if isinstance(thing, CallStep):
        return "call", thing.launch and _reduced(thing.launch), thing.parts
    if isinstance(thing, Interpreted):
        return "interp", thing.text
    parts = getattr(thing, "parts", None)
    if parts is None:
        raise Unfit(f"{type(thing).__name__} is of use in one process only")
    return "launch", thing.loader, *parts
