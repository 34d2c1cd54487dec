"""The serialisation of plans to bytes, which `dcarray.lowering.program.loaded_plan` loads in other
processes."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir import dims
from dcarray.lowering.runtime import numpy_loops
from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

from .input_range_check import InputRangeCheck
from .loaded_plan import LoadedPlan, NotPortable

if TYPE_CHECKING:
    from .executable import Plan

__all__ = ["in_process", "serialised", "summary"]


def summary(plan: Plan, relations: list[Any], payload: Any = None) -> dict[str, Any]:
    """Return the attributes of a `LoadedPlan` apart from its driver, as plain values; ``relations`` are those
    between symbols for which the plan is valid."""
    terms = [dims.show(step.binding.bytes) for step in plan.kernels]
    return {
        **plan.stats, "steps": len(plan.steps), "overwritten": plan.overwritten, "kept": plan.kept,
        "spared": plan.spared, "stops": plan.stops, "single": plan.single, "payload": payload,
        "symbols": tuple([symbol.name for symbol in plan.region.symbols]),
        "bytes": " + ".join(terms) or "0",
        "guard": " and ".join([f"({dims.show(relation)})" for relation in relations]),
    }  # fmt: skip


def in_process(plan: Plan, relations: list[Any], payload: Any = None) -> LoadedPlan:
    """Return a plan of this process as a `LoadedPlan`, without serialisation."""
    check = plan.range_check
    range_check = None if check is None else InputRangeCheck(check.plan.run, *check[1:])
    return LoadedPlan(plan.run, summary(plan, relations, payload), range_check)


def serialised(plan: Plan, relations: list[Any], payload: Any = None) -> bytes:
    """Return a plan as bytes, a pickle that other processes can load.

    Raises
    ------
    NotPortable
        If an object that the plan calls exists only in this process.
    """
    check = None if plan.range_check is None else (_driver(plan.range_check.plan), plan.range_check[1:])
    return pickle.dumps((_driver(plan), summary(plan, relations, payload), check), protocol=5)


def _driver(plan: Plan) -> tuple[str, dict[str, Any]]:
    return plan.driver, {name: _portable(thing) for name, thing in plan.things.items()}


def _portable(thing: Any) -> tuple[Any, ...]:
    """Return an object that drivers call as plain values, from which `loaded_plan._restored` makes it."""
    if isinstance(thing, np.dtype):
        return "dtype", thing.str
    if isinstance(thing, numpy_loops.Address):
        return "loop", *thing.origin
    if isinstance(thing, CallStep):
        return "call", thing.launch and _portable(thing.launch), thing.parts
    if isinstance(thing, Interpreted):
        return "interp", thing.text
    parts = getattr(thing, "parts", None)
    if parts is None:
        raise NotPortable(f"{type(thing).__name__} is of use in one process only")
    return "launch", thing.loader, *parts
