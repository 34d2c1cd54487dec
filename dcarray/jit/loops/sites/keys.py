"""The keys of a site's plans.  A key is what a plan depends on: options, the guards of values, and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.fp_bits import RAISING
from dcarray.core.processes import communicator
from dcarray.ir.records import replaced
from dcarray.lowering.runtime.parsing import parse
from dcarray.plans.slot import PlanSlot
from dcarray.tiering import admission

from ..entry.entry_values import ArrayType, Constant, DeviceGuard, EntryValue, ListType, LoopDescription
from ..entry.guards import ARRAYS, ObjectGuard, constants_in, entry_value, guard_of
from ..entry.public_names import makes_wrapped
from ..entry.tables import Table
from ..syntax.syntax_facts import stores
from .loop_requests import LoopRequest
from .site_source import SiteSource
from .sizes import Place, SizePattern, open_guards, places_of

__all__ = [
    "MISSING", "Entry", "guards_of", "is_wrapped", "reads_bound", "request_of", "watched_exceptions",
]  # fmt: skip

MISSING = object()
"""The value of a global name that is not bound."""


class Entry(PlanSlot[Any]):
    """The plan slot of one key of a site: its plan, once there is one, and how long its runs took.

    Attributes
    ----------
    kind : tuple
        The part of the key without sizes: options, watched floating-point exceptions, guards.
    pattern : SizePattern
        The part of the key with the sizes: which are numbers, and which are symbols.
    guards : tuple or None
        The guards of the values that its plan serves, without the sizes that depend on symbols
        (`dcarray.jit.loops.sites.sizes.open_guards`); None if a value has no guard without its sizes.
    sizes : tuple of (Place, int, int)
        For each size of a value whose sizes depend on symbols: its place, the number of its symbol (-1:
        none), and the number added to that.
    symbols : tuple of Place
        The places among the values from which the plan's symbols are read.
    device : object or None
        The device that the arrays are on; None for the processor.
    gain : dcarray.tiering.admission.Measured
    wraps : bool
        Whether new arrays among the results are wrapped, since a value is a wrapped array or makes such
        arrays.
    reach : int
        The product of the symbols up to which runs have been brief; 0 if none has.
    """

    __slots__ = (
        "_places", "_size", "device", "failures", "gain", "guards", "kind", "pattern", "reach", "request",
        "sizes", "symbols", "used", "wraps",
    )  # fmt: skip

    def __init__(
        self, kind: tuple[Any, ...], pattern: SizePattern, guards: Sequence[Any], request: LoopRequest,
        device: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kind, self.pattern, self.request, self.device = kind, pattern, request, device
        self._places = places = places_of(kind[2:])
        self.symbols = tuple([places[k] for k in pattern.firsts])
        parts = [*zip(places, pattern.parts, strict=True)]
        sized = {place.value for place, (symbol, _) in parts if symbol >= 0}
        self.sizes = tuple([(place, *part) for place, part in parts if place.value in sized])
        self.guards = open_guards(kind[2:], guards, sized)
        self.gain = admission.Measured()
        self.failures = self.used = self.reach = self._size = 0
        self.wraps = False

    def serves(self, values: Sequence[Any], start: Any) -> bool:
        """Whether the plan may run with the sizes of these values; also true while there is no plan."""
        if self.plan is None or not (self.symbols or type(start) is int):
            return True
        holds: bool = self.plan.holds(self.symbols_of(values, start))
        return holds

    def has_sizes_of(self, values: Sequence[Any]) -> bool:
        """Whether the sizes of values, which have the entry's guards, match its pattern."""
        return not self.symbols or self.pattern.fits([place.of(values) for place in self._places])

    def symbols_of(self, values: Sequence[Any], start: Any) -> tuple[int, ...]:
        """Return the values of the plan's symbols: sizes of ``values``, and then ``start`` (the number at
        which a loop is resumed) if it is not None."""
        sizes = tuple([place.of(values) for place in self.symbols])
        return sizes if start is None else (*sizes, start)

    def is_brief(self, values: Sequence[Any], start: Any) -> bool:
        """Whether a run with these values is known to be brief, from others that were."""
        self._size = size_of(self.symbols_of(values, start))
        return self._size <= self.reach

    def ended(self, seconds: float) -> None:
        """Note that the run for which `is_brief` was called last has taken so long."""
        if seconds < admission.BRIEF:
            self.reach = max(self.reach, admission.FARTHER * self._size)
        else:
            self.reach = min(self.reach, self._size - 1)

    def is_of_numbers(self) -> bool:
        """Whether none of its values is an array or a list."""
        return not any(isinstance(value, ArrayType | ListType) for _, value in self.request.loop.names)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.kind, self.pattern


def size_of(symbols: Sequence[int]) -> int:
    """Return the product of a plan's symbols, by which runs are compared."""
    return math.prod([max(abs(number), 1) for number in symbols])


def watched_exceptions() -> int:
    """Return the bits of the floating-point exceptions that `numpy.errstate` does not ignore, of those that a
    plan may depend on."""
    return fp_state.watched_flags(fp_state.current_state()) & RAISING


def guards_of(names: Sequence[str], values: Sequence[Any]) -> list[Any] | str:
    """Return the guard of each value, and at the end, if names share an array, which ones do.  If a value has
    no guard, return the reason, a text."""
    guards: list[Any] = []
    arrays = []
    for name, value in zip(names, values, strict=True):
        guard = guard_of(value)
        if guard is None:
            return why_unknown(name, value)
        guards.append(guard)
        if type(value) in ARRAYS or isinstance(guard, DeviceGuard):
            arrays.append(id(value))
    if len(set(arrays)) < len(arrays):
        guards.append(tuple([arrays.index(a) for a in arrays]))
    return guards


def why_unknown(name: str, value: Any) -> str:
    """Return the reason why a value has no guard, with its name, as a text for the report."""
    if value is MISSING:
        return f"{name} is not bound"
    if type(value) is list:
        return f"{name} is a list of other things than numbers, or shares rows with another list: list"
    device = getattr(value, "_device", None) if type(value) in ARRAYS else None
    if device is not None:
        return f"{name} is an array on {device.name}: {type(value).__name__}"
    kind = dict if type(value) is Table else type(value)
    return f"compiled code does not support the type of {name}: {kind.__name__}"


def request_of(
    source: SiteSource, values: tuple[Any, ...], guards: list[Any], kind: tuple[Any, ...],
    pattern: SizePattern, resumed: bool, options: config.Options,
) -> LoopRequest:  # fmt: skip
    """Return the `LoopRequest` to plan a site's statements for values with these guards."""
    every = (*source.needed, *source.others)
    places = places_of(kind[2:])
    texts = [_text(every, values, places[k]) for k in pattern.firsts]
    sizes = {place: pattern.described(k, texts) for k, place in enumerate(places)}
    first: dict[int, str] = {}
    names: list[tuple[str, EntryValue]] = []
    for k, (name, value, guard) in enumerate(zip(every, values, guards, strict=False)):
        is_array = type(value) in ARRAYS or isinstance(guard, DeviceGuard)
        same = first.setdefault(id(value), name) if is_array else name
        description = entry_value(value, guard, None if same == name else same)
        own = [sizes[place] for place in places if place.value == k]
        if any(type(n) is not int for n in own):
            description = _symbolic(description, own)
        names.append((name, description))
    ints = {k for k, value in enumerate(values) if type(value) in (int, tuple)}
    symbols = tuple([(text, pattern.least(k, places, ints)) for k, text in enumerate(texts)])
    loop = LoopDescription(
        source.source, source.file, source.line, tuple(names), frozenset(source.live), kind[1], resumed,
        symbols, by_identity=source.by_identity, asked=source.asked,
    )  # fmt: skip
    max_elements = None if communicator() is None else max(1, options.distribute_above)
    return LoopRequest(
        loop, options.fastmath, options.threads, options.cache_dir, options.target, max_elements,
        all_sizes=pattern.all_sizes, pays=not source.is_loop and options.jit != "eager",
    )  # fmt: skip


def _text(names: Sequence[str], values: Sequence[Any], place: Place) -> str:
    """Return the Python expression of a size, such as ``n`` or ``x.shape[0]``."""
    name = names[place.value]
    if place.axis < 0:
        return name
    return f"{name}{'' if type(values[place.value]) is tuple else '.shape'}[{place.axis}]"


def _symbolic(value: EntryValue, sizes: list[Any]) -> EntryValue:
    """Return the description of a value with these sizes, some of which are symbols, in place of its own."""
    if isinstance(value, ArrayType):
        return replaced(value, shape=tuple(sizes), strides=())
    if isinstance(value, ListType):
        return replaced(value, shape=tuple(sizes))
    assert isinstance(value, Constant)
    if type(value.value) is int:
        size: EntryValue = sizes[0]
        return size
    return Constant(tuple([Constant(n) if type(n) is int else n for n in sizes]))


def is_wrapped(value: Any) -> bool:
    """Whether a value is a wrapped array, or a function or class that makes such arrays."""
    return (type(value) in ARRAYS and type(value) is not np.ndarray) or makes_wrapped(value)


def reads_bound(source: SiteSource, values: Iterable[Any]) -> bool:
    """Whether a function among the values was described with the value of a global name that the site's own
    statements assign."""
    if not source.shared:
        return False
    guards = [guard_of(value) for value in values if type(value) is FunctionType]
    constants = [constants_in(guard.entry_value) for guard in guards if isinstance(guard, ObjectGuard)]
    bound = stores(parse(source.source)).intersection(source.shared)
    return not bound.isdisjoint(frozenset().union(*constants))
