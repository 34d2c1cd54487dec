"""Running the plan of a loop: its memory, what it says of floating-point exceptions, and what the names of
the loop are bound to afterwards."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core import config, fp_state
from dcarray.core.counters import counters, note
from dcarray.core.fp_attribution import INVALID, MINDFUL, RAISING
from dcarray.core.handle import Handle, large, small
from dcarray.core.processes import communicator
from dcarray.core.store import FAMILIES, Store, owner
from dcarray.lowering.runtime.memory import MAPPED, address_of, allocate
from dcarray.recording.session import LOCK, Uninterrupted

from .entry_values import Result
from .guard_checks import Checks, checks_hold, checks_of, span
from .requests import LoopInterface
from .snapshots import Copy

if TYPE_CHECKING:
    from dcarray.lowering.program.parcel import Parcel

NDArray = np.ndarray[Any, Any]
_FEW = 1024  # elements of memory that is not worth keeping


class PlanMismatch(Exception):
    """A plan that does not fit the place that it was made for: why."""


class LoopPlan:
    """A plan and the place it serves.

    Parameters
    ----------
    parcel : Parcel
    names : sequence of str
        The names whose values a run is given.
    plain : bool
        Are any of the arrays among these plain ones?
    live : sequence of str
        The names that are bound afterwards.

    Raises
    ------
    PlanMismatch
    """

    def __init__(self, parcel: Parcel, names: Sequence[str], plain: bool, live: Sequence[str]) -> None:
        told: LoopInterface = parcel.told
        self._parcel = parcel
        self._bytes = int(parcel.bytes())
        self._arrays = parcel.kernels < parcel.steps  # does a run want them, besides their addresses?
        self._may_raise, self._checked = told.may_raise, told.checked
        place = {name: k for k, name in enumerate(names)}
        inputs = iter(told.inputs)
        self._parts: list[tuple[str, Any, Any, tuple[int, ...], tuple[int, ...], int]] = []
        for _, role, char, shape, strides in told.arrays:
            fetch = None if role == "out" else _fetch(next(inputs), place)
            self._parts.append((role, fetch, np.dtype(char), shape, strides, math.prod(shape)))
        at_of = {name: k for k, (name, *_) in enumerate(told.arrays)}
        # which arrays a run keeps what it overwrites of, and where; and of which that is to be done for it
        self._kept = [(at_of[name], where()) for name, where in parcel.kept]
        self._keeps = [at_of[name] for name in parcel.overwritten] if self._arrays else []
        # where that is not done as long as what is given is small enough
        self._spared = [at_of[name] for name in parcel.spared]
        # where that is not done as long as a run as it is written would go to its end
        self._rewritten = [at_of[name] for name in told.rewritten]
        self._writes = any(part[0] == "inout" for part in self._parts)
        self._checks: Checks | None = None
        found = dict(told.results)
        self._binds = [_binding(found.get(name), name, place, at_of, plain) for name in live]
        first: dict[str, int] = {}
        arrays = [(k, found[n].name) for k, n in enumerate(live) if n in found and found[n].kind == "array"]
        pairs = [(k, first.setdefault(name, k)) for k, name in arrays]
        self._same = [(k, other) for k, other in pairs if k != other]  # names of arrays that have another one

    def remember(self, values: Sequence[Any], guards: Sequence[Any]) -> None:
        """These values, of these guards, have been served: values like them may come again."""
        if self._checks is None:
            written = [fetch for role, fetch, *_ in self._parts if role == "inout"]
            self._checks = checks_of(values, guards, written) or ()

    def addresses(self, values: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Where arrays are among values that are known to be those that it serves; None if it has to be found
        out whether they are, and where.  To be asked under the lock that the run has, too."""
        return checks_hold(self._checks, values) if self._checks else None

    def run(
        self, values: Sequence[Any], options: config.Options, places: Sequence[int] | None = None
    ) -> tuple[Any, ...] | None:
        """What the names are bound to; None if the loop has to run as it is written, with all as it was.

        Raises
        ------
        MemoryError
            With all as it was: later there may be more.
        FloatingPointError, Warning
            As `numpy.errstate` asked when calls were recorded that are still pending on its arrays.
        """
        made: list[NDArray] = []
        with LOCK:
            if places is None:
                addresses = self._memory(values, made)
            else:
                addresses = self._at(values, made, places)
            if addresses is None or not self._go(made, addresses, options):
                return None
        counters.loops += 1
        counters.kernels += self._parcel.kernels
        counters.interpreted += self._parcel.interpreted
        counters.bytes += self._bytes
        below = options.eager_below
        bound = [bind(values, made, addresses, below) for bind in self._binds]
        for k, other in self._same:
            bound[k] = bound[other]
        return tuple(bound)

    def _at(self, values: Sequence[Any], made: list[NDArray], places: Sequence[int]) -> list[int] | None:
        """As `_memory`, where it is known where arrays are."""
        addresses = []
        for _, fetch, dtype, shape, _, size in self._parts:
            if fetch is None:
                if size > _FEW:
                    a, address = allocate(shape, dtype, size, MAPPED)
                else:
                    a = np.empty(shape, dtype)
                    address = address_of(a)
            elif type(fetch) is int and (address := places[fetch]):
                a = values[fetch]
                if type(a) is ndarray:
                    a = a._evaluated()
            else:
                found = _number(values[fetch] if type(fetch) is int else fetch(values), dtype)
                if found is None:
                    return None
                a = found
                address = address_of(a)
            made.append(a)
            addresses.append(address)
        return addresses

    def _memory(self, values: Sequence[Any], made: list[NDArray]) -> list[int] | None:
        """The arrays that the plan works on, and their addresses; None if some of them that are written share
        memory, or have not the geometry they were to have."""
        addresses: list[int] = []
        spans: list[tuple[int, int, bool]] = []
        for role, fetch, dtype, shape, strides, size in self._parts:
            if fetch is None:
                a, address = allocate(shape, dtype, size, MAPPED)
            else:
                value = values[fetch] if type(fetch) is int else fetch(values)
                if type(value) is ndarray:
                    a = _evaluated(value, role == "inout")
                elif type(value) is np.ndarray:
                    a = value
                    _settle_plain(a, role == "inout")
                else:
                    found = _number(value, dtype)
                    if found is None:
                        return None
                    a = found
                if a.shape != shape or a.dtype != dtype or not (a.strides == strides or _alike(a, strides)):
                    return None
                address = address_of(a)
                if self._writes and type(value) is not float:
                    spans.append((*_span(a, address), role == "inout"))
            made.append(a)
            addresses.append(address)
        return None if self._writes and _meet(spans) else addresses

    def _go(self, made: list[NDArray], addresses: list[int], options: config.Options) -> bool:
        """Run the plan; False if it came to nothing, and all is as it was before or will be written anew."""
        state = fp_state.captured()
        minded = fp_state.watched(state)
        if self._may_raise:
            minded |= RAISING
        elif self._checked and minded & RAISING:
            minded |= INVALID
        keeps = self._keeps
        if self._spared:
            look = self._parcel.look
            if look is not None and not minded & MINDFUL and look(addresses, (), options.threads):
                minded = 0
            else:
                keeps = [*keeps, *self._spared]
        if self._rewritten and fp_state.interrupts(state):
            keeps = [*keeps, *self._rewritten]
        if keeps or self._kept or (self._writes and not self._parcel.single):
            with Uninterrupted():
                return self._mending(made, addresses, options, minded, keeps)
        try:
            flags = self._parcel.run(made if self._arrays else (), addresses, (), options.threads, minded)
        except Exception:
            if options.debug:
                raise
            return False
        return not flags & minded

    def _mending(
        self,
        made: list[NDArray],
        addresses: list[int],
        options: config.Options,
        minded: int,
        keeps: Sequence[int],
    ) -> bool:
        """Run the plan, and have all as it was before if it comes to nothing."""
        given = len(made)
        copies = [(made[k], Copy(made[k])) for k in dict.fromkeys(keeps)]
        for k, _ in self._kept:
            saved, address = allocate(made[k].shape, made[k].dtype, made[k].size, MAPPED)
            made.append(saved)
            addresses.append(address)
        try:
            flags = self._parcel.run(made if self._arrays else (), addresses, (), options.threads, minded)
        except Exception:
            for a, copy in copies:
                copy.restore(a)
            if options.debug:
                raise
            return False
        if flags & minded:
            for (k, where), saved in zip(self._kept, made[given:], strict=True):
                made[k][where] = saved[where]
            for a, copy in copies:
                copy.restore(a)
            return False
        return True


def _fetch(text: str, place: dict[str, int]) -> int | Callable[[Sequence[Any]], Any]:
    """Where the value of an input is, or how it follows from what Python computes with numbers."""
    if text in place:
        return place[text]
    names = [node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
    if not all(name in place for name in names):
        raise PlanMismatch(f"{text} is not known when the loop begins")
    inner = ", ".join(dict.fromkeys(names))
    function = eval(f"lambda {inner}: {text}", {"__builtins__": {}})  # what the tracer wrote
    at = [place[name] for name in dict.fromkeys(names)]

    def fetch(values: Sequence[Any]) -> Any:
        try:
            with np.errstate(all="raise"):
                return function(*[values[k] for k in at])
        except Exception:  # which the loop has to say, if it comes to that
            return None

    return fetch


def _number(value: Any, dtype: np.dtype[Any]) -> NDArray | None:
    """A number that a run is given; None if it is none of this dtype."""
    if value is None or (type(value) is complex and dtype.kind != "c"):  # a root of -1, say
        return None
    return np.array(value, dtype)


def _evaluated(x: Handle, writing: bool) -> NDArray:
    """The memory of an array; of one in blocks, gathered from them."""
    if x._small is None and communicator() is not None:
        x._run()
        head = x._store.family
        if head.shard is not None:
            note("a compiled loop (gathered)", head.size * head.dtype.itemsize)
    return x._writable() if writing else x._evaluated()


def _settle_plain(a: NDArray, writing: bool) -> None:
    """Run what is pending on the memory of a plain array."""
    head = FAMILIES.find(owner(a))
    if head is not None:
        for rec in (head.dirty, head.used) if writing else (head.dirty,):
            if rec is not None and not rec.done:
                rec.materialise(head, writing=writing)


def _alike(a: NDArray, strides: tuple[int, ...]) -> bool:
    """Are the strides these, where they matter?"""
    return a.size == 0 or all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, strides, strict=True))


def _span(a: NDArray, address: int) -> tuple[int, int]:
    """The first byte that an array may touch, and the one after the last."""
    if a.flags.c_contiguous:
        return address, address + a.nbytes
    low, high = span(a.shape, a.strides, a.itemsize)
    return address + low, address + high


def _meet(spans: list[tuple[int, int, bool]]) -> bool:
    """May what is written share memory with something else?"""
    spans.sort()
    end, written = 0, False  # of what begins before: how far it goes, and whether any of it is written
    for start, stop, writes in spans:
        if start < end and (writes or written):
            return True
        written = writes or (written and start < end)
        end = max(end, stop)
    return False


# ---- what names are bound to --------------------------------------------------------------------------
Binding = Callable[[Sequence[Any], list[NDArray], list[int], int], Any]


def _binding(
    result: Result | None, name: str, place: dict[str, int], at_of: dict[str, int], plain: bool
) -> Binding:
    """How the value of a name is had after a run."""
    if result is None:  # which the loop does not bind after all
        if name not in place:
            raise PlanMismatch(f"{name} is not bound")
        result = Result("alias", name)
    if result.kind == "value":
        value = result.value
        return lambda values, made, addresses, below: value
    if result.kind == "alias":
        k = place[result.name]
        return lambda values, made, addresses, below: values[k]
    k = at_of[result.name]
    if result.kind == "scalar":
        if result.weak:
            return lambda values, made, addresses, below: made[k].item()
        return lambda values, made, addresses, below: made[k][()]
    if plain:
        raise PlanMismatch("among its arrays are plain ones, so the result might be plain")
    return lambda values, made, addresses, below: _wrapped(made[k], addresses[k], below)


def _wrapped(a: NDArray, address: int, below: int) -> Any:
    """New memory as a wrapped array."""
    if a.size < below:
        return small(ndarray, a)
    store = Store(a.shape, a.dtype, None, a.size)
    store.bind_new(a, address)
    return large(ndarray, store, a.shape, None)
