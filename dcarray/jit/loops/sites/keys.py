"""The keys of a site: kinds of values, with a plan each."""

from __future__ import annotations

from typing import Any

from dcarray.core import fp_state
from dcarray.core.fp_bits import RAISING
from dcarray.plans.slot import PlanSlot
from dcarray.tiering import admission

from .requests import LoopRequest

__all__ = ["MISSING", "SYMBOLIC", "Entry", "watched_exceptions", "why_unknown"]

MISSING = object()
"""The value of a global name that is not bound."""
SYMBOLIC = "int"
"""The guard of a Python int that is a symbol of the plan."""


class Entry(PlanSlot[Any]):
    """A key: its plan, and what runs with the key have taken.

    Attributes
    ----------
    key : tuple
        Options, watched floating-point exceptions, guards.
    symbols : tuple of int
        The positions of the values that are symbols of the plan.
    device : object or None
        That its arrays are on.
    gain : dcarray.tiering.admission.Measured
    """

    __slots__ = ("device", "failures", "gain", "key", "request", "symbols", "used")

    def __init__(
        self, key: tuple[Any, ...], request: LoopRequest, symbols: tuple[int, ...], device: Any
    ) -> None:
        super().__init__()
        self.key, self.request, self.symbols, self.device = key, request, symbols, device
        self.gain = admission.Measured()
        self.failures = self.used = 0


def watched_exceptions() -> int:
    """Return the floating-point exceptions that are not ignored, of those that plans depend on."""
    return fp_state.watched_flags(fp_state.current_state()) & RAISING


def why_unknown(name: str, value: Any) -> str:
    """Return why a value has no guard."""
    if value is MISSING:
        return f"{name} is not bound"
    if type(value) is list:
        return (
            f"{name} is no list of equally long lists of floats, or of ints, or has one of them twice: list"
        )
    device = getattr(value, "_device", None)
    known = "nothing that compiled code knows" if device is None else f"an array on {device.name}"
    return f"{name} is {known}: {type(value).__name__}"
