"""The keys of a site: kinds of values, with a plan each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.fp_bits import RAISING
from dcarray.core.processes import communicator
from dcarray.plans.slot import PlanSlot
from dcarray.tiering import admission

from ..entry.entry_values import EntryValue, IntegerSymbol, LoopDescription
from ..entry.globals import makes_wrapped
from ..entry.guards import ARRAYS, DeviceGuard, entry_value, guard_of
from .requests import LoopRequest
from .site import SiteSource

__all__ = [
    "MISSING", "SYMBOLIC", "Entry", "guards_of", "is_wrapped", "other_ints", "request_of",
    "watched_exceptions",
]  # fmt: skip

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
    wraps : bool
        Whether new arrays among its results are wrapped: some of the values are, or make such arrays.
    """

    __slots__ = ("device", "failures", "gain", "key", "request", "symbols", "used", "wraps")

    def __init__(
        self, key: tuple[Any, ...], request: LoopRequest, symbols: tuple[int, ...], device: Any
    ) -> None:
        super().__init__()
        self.key, self.request, self.symbols, self.device = key, request, symbols, device
        self.gain = admission.Measured()
        self.failures = self.used = 0
        self.wraps = False


def watched_exceptions() -> int:
    """Return the floating-point exceptions that are not ignored, of those that plans depend on."""
    return fp_state.watched_flags(fp_state.current_state()) & RAISING


def guards_of(names: Sequence[str], values: Sequence[Any], symbolic: Collection[str]) -> list[Any] | str:
    """Return the guards of values, and which of them are the same array if any are; if a value has none, the
    reason.  Ints with symbolic names are symbols."""
    guards: list[Any] = []
    arrays = []
    for name, value in zip(names, values, strict=True):
        guard = SYMBOLIC if type(value) is int and name in symbolic else guard_of(value)
        if guard is None:
            return why_unknown(name, value)
        guards.append(guard)
        if type(value) in ARRAYS or isinstance(guard, DeviceGuard):
            arrays.append(id(value))
    if len(set(arrays)) < len(arrays):
        guards.append(tuple([arrays.index(a) for a in arrays]))
    return guards


def other_ints(key: tuple[Any, ...], other: tuple[Any, ...]) -> list[int]:
    """Return the places where two keys differ, if they differ in nothing but ints; else none."""
    if len(other) != len(key):
        return []
    places = [k for k, (a, b) in enumerate(zip(key, other, strict=True)) if a is not b and a != b]
    return places if all(k >= 2 and type(key[k]) is type(other[k]) is int for k in places) else []


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


def request_of(
    source: SiteSource, every: tuple[str, ...], live: tuple[str, ...], values: tuple[Any, ...],
    guards: list[Any], watched: int, resumed: bool, options: config.Options,
) -> LoopRequest:  # fmt: skip
    """Return the request for a plan of the statements.

    ``every`` are the names of the values, of which ``guards`` are the guards, and ``live`` those that are
    bound and read afterwards.
    """
    first: dict[int, str] = {}
    names: list[tuple[str, EntryValue]] = []
    for name, value, guard in zip(every, values, guards, strict=False):
        if guard is SYMBOLIC:
            names.append((name, IntegerSymbol()))
            continue
        is_array = type(value) in ARRAYS or isinstance(guard, DeviceGuard)
        same = first.setdefault(id(value), name) if is_array else name
        names.append((name, entry_value(value, guard, None if same == name else same)))
    loop = LoopDescription(
        source.source if source.attributes is None else source.attributes.source,
        source.file,
        source.line,
        tuple(names),
        frozenset(live),
        watched,
        resumed,
    )
    max_elements = None if communicator() is None else max(1, options.distribute_above)
    return LoopRequest(
        loop, options.fastmath, options.threads, options.cache_dir, options.target, max_elements
    )


def is_wrapped(value: Any) -> bool:
    """Whether a value is a wrapped array, or makes such arrays."""
    return (type(value) in ARRAYS and type(value) is not np.ndarray) or makes_wrapped(value)
