"""The run of a site's plan: its arguments, restoring memory if it fails, and its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.counters import counters
from dcarray.core.faults import is_fault
from dcarray.core.fp_bits import INVALID, MINDFUL, RAISING
from dcarray.core.interrupts import Undisturbed, may_stop
from dcarray.core.processes import LOCK
from dcarray.core.store import FAMILIES, owner
from dcarray.core.unpatched import perf_counter
from dcarray.lowering.runtime.array_memory import address_of, allocate
from dcarray.lowering.runtime.stopping import Stopped

from ..entry import generators
from ..entry.guard_checks import Checks, checks_hold, checks_of, span
from ..entry.guards import ARRAYS, knows_wrapped
from ..entry.lists import ListElements
from .loop_requests import LoopInterface
from .outcome import Outcome
from .plan_values import binding, number
from .sized_plan import SizedPlan, Sizes

if TYPE_CHECKING:
    from dcarray.lowering.program.loaded_plan import LoadedPlan

NDArray = np.ndarray[Any, Any]
_LARGEST_FIRST_COPY = 1 << 22  # bytes of arrays that the first run of a plan copies, and later ones need not
_COPIED = 4e-9  # seconds for each overwritten byte from which on to copy it is a twentieth of a run
_MOST_COPIED = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16  # bytes, only for signals
_LARGEST_KEPT_WINDOW = 1024  # elements up to which windows that are saved keep their memory from run to run


class LoopPlan(SizedPlan):
    """A serialised plan, bound to the names of its site.

    Parameters
    ----------
    loaded : LoadedPlan
    names : sequence of str
        The names of the values that a run gets.
    live : sequence of str
        The names that the loop binds and that are read afterwards.
    interface : LoopInterface, optional
        The plan's arguments and results; by default what is stored with the plan.
    symbols : tuple of int, optional
        The values of the region's symbols.
    wraps : bool, optional
        Whether new arrays among the results are wrapped.
    owned : bool, optional
        Whether new plain arrays own their memory, as NumPy's results do; else it comes from a pool for reuse.
    is_loop : bool, optional
        Whether its runs count as those of a loop.

    Raises
    ------
    PlanMismatch
    """

    def __init__(
        self, loaded: LoadedPlan, names: Sequence[str], live: Sequence[str],
        interface: LoopInterface | None = None, symbols: tuple[int, ...] = (), wraps: bool = True,
        owned: bool = False, is_loop: bool = True,
    ) -> None:  # fmt: skip
        interface = interface or loaded.payload
        assert interface is not None
        super().__init__(loaded, names, interface, symbols)
        self._owned, self._is_loop = owned and not wraps, is_loop
        self._arrays = loaded.kernels < loaded.steps  # whether a run needs array objects besides addresses
        self.may_raise, self.checked = interface.may_raise, interface.checked
        place, at_of = self.place, self.at_of
        drawn = [text for text in interface.inputs if generators.is_input(text)]
        self._generators = {text.partition(":")[0]: generators.generator_of(text, place) for text in drawn}
        # undo copies: of windows of arrays, made by the plan, and of arrays, made here
        self._places_undone = [(at_of[name], where) for name, where in loaded.kept]
        if not interface.symbols:
            self._sizes = self._sizes_for(symbols)
        self._undone = [at_of[name] for name in loaded.overwritten] if self._arrays else []
        # arrays without undo copies if the input range check passes
        self._undone_unless_small = [at_of[name] for name in loaded.spared]
        # arrays without undo copies unless a floating-point error would interrupt the loop
        self._rewritten = [at_of[name] for name in interface.rewritten]
        self._overwritten = [k for k, part in enumerate(self._sizes.parameters) if part[0] == "inout"]
        self.checks: Checks | None = None
        self._has_run, self._pace = False, _COPIED  # seconds for each byte of those
        self._plain: list[int] | None = None  # where the arguments are among the values, if all are plain
        by_name = dict(interface.results)
        self.results = [(name, by_name.get(name)) for name in live]
        self._results = [binding(by_name.get(name), name, place, at_of, wraps) for name in live]
        first: dict[str, int] = {}
        arrays = [(k, one.name) for k, (_, one) in enumerate(self.results) if one and one.kind == "array"]
        pairs = [(k, first.setdefault(name, k)) for k, name in arrays]
        self._aliases = [(k, other) for k, other in pairs if k != other]  # names of one array

    def _sizes_for(self, symbols: tuple[int, ...]) -> Sizes:
        sizes = super()._sizes_for(symbols)
        sizes.windows = [(k, where(*symbols)) for k, where in self._places_undone]
        return sizes

    @property
    def driver(self) -> Callable[..., int]:
        """The compiled function that runs the plan; it takes addresses."""
        return self._loaded.run

    @property
    def parameters(self) -> list[tuple[Any, np.dtype[Any], tuple[int, ...], int]]:
        """The plan's parameters: for each the position or function that gets its value (None for new memory),
        its dtype, shape and number of elements."""
        return [(fetch, dtype, shape, size) for _, fetch, dtype, shape, _, size in self._sizes.parameters]

    @property
    def is_simple(self) -> bool:
        """Whether a run needs nothing but addresses, and perhaps copies of arrays that it overwrites, no
        others may end it, and no room on the stack is looked for."""
        return self._owned and not (self._arrays or self._generators or self.polls or self.frames)

    @property
    def bindings(self) -> list[Any]:
        """The functions that make the values of the live names."""
        return self._results

    @property
    def kept(self) -> list[int]:
        """The parameters of which the plan makes undo copies, in more memory that it gets in this order."""
        return [k for k, _ in self._places_undone]

    @property
    def overwritten(self) -> list[int]:
        """The parameters that a run that fails may leave changed."""
        return self._overwritten

    def count(self, runs: int) -> None:
        """Add a number of runs of the plan to the counters."""
        counters.loops += runs * self._is_loop
        counters.runs += runs * (not self._is_loop)
        counters.kernels += runs * self._loaded.kernels
        counters.interpreted += runs * self._loaded.interpreted
        counters.bytes += runs * self._sizes.bytes

    def remember(self, values: Sequence[Any], guards: Sequence[Any]) -> None:
        """Make the checks by which `addresses` recognises values like these, with which the plan has run."""
        if self.checks is None:
            parameters = self._sizes.parameters
            written = [fetch for role, fetch, *_ in parameters if role == "inout"]
            self.checks = checks_of(values, guards, written) or ()
            fetches = [fetch for _, fetch, *_ in parameters if type(fetch) is int]
            if len(fetches) == len(parameters) and all(type(values[k]) is np.ndarray for k in fetches):
                self._plain = fetches

    def addresses(self, values: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Return the addresses of the arrays among values that pass the checks made by `remember`, else None.
        The caller must hold `LOCK` until the run."""
        return checks_hold(self.checks, values) if self.checks else None

    def run(
        self, values: Sequence[Any], options: config.Options, places: Sequence[int] | None = None,
        sizes: Sizes | None = None, outcome: Outcome | None = None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """Run the loop.  Return the values of the names ``live`` after it; None if the loop has to run in
        Python, with all memory restored.

        ``places`` are the addresses from `addresses`, if the caller has them, and has held `LOCK` since;
        ``sizes`` those of `sizes`, if the plan has symbols; ``outcome`` takes the values of the names.

        Raises
        ------
        MemoryError
            If memory is too small; all arrays are unchanged.
        FloatingPointError, Warning
            If a call that is still pending on the loop's arrays raises or warns, as the `numpy.errstate` of
            that call says.
        """
        sizes = sizes or self._sizes
        outcome = outcome or Outcome()
        run = partial(self._run, values, options, places, sizes, outcome)
        if not self._generators:
            return run(None)
        objects = [find(values) for find in self._generators.values()]
        given: tuple[Any, ...] | None = generators.drawing(objects, run)
        return given

    def _run(
        self, values: Sequence[Any], options: config.Options, places: Sequence[int] | None, sizes: Sizes,
        outcome: Outcome, drawn: Callable[[], None] | None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """Do what `run` does; ``drawn`` copies the states of generators back."""
        arrays: list[NDArray] = []
        with LOCK:
            if places is None:
                addresses = self._arguments(values, arrays, sizes)
            else:
                addresses = self._arguments_at(values, arrays, places, sizes)
            restore = None if addresses is None else self._execute(arrays, addresses, options, sizes, outcome)
            if addresses is None or restore is None:
                outcome.is_final = False
                return None
            try:
                below = options.eager_below
                bound = [bind(values, arrays, addresses, below) for bind in self._results]
                for k, other in self._aliases:
                    bound[k] = bound[other]
                outcome.take(results := tuple(bound))
                for role, fetch, *_ in sizes.parameters if places is None else ():  # else there are no lists
                    if role == "inout" and type(fetch) is int and type(values[fetch]) is ListElements:
                        outcome.undo.append(values[fetch].undoing())
                        values[fetch].write_back()
                if drawn is not None:
                    drawn()
            except BaseException:
                outcome.drop()
                restore()
                raise
        self._has_run = True
        self.count(1)
        return results

    def _arguments_at(
        self, values: Sequence[Any], arrays: list[NDArray], places: Sequence[int], sizes: Sizes
    ) -> list[int] | None:
        """Return the result of `_arguments`, given the addresses of the arrays that the loop gets."""
        if self._plain is not None:
            arrays += [values[k] for k in self._plain]
            return [places[k] for k in self._plain]
        addresses = []
        for _, fetch, dtype, shape, *_ in sizes.parameters:
            if fetch is None:
                a, address = allocate(shape, dtype)
            elif type(fetch) is int and (address := places[fetch]):
                a = values[fetch]
                if type(a) is not np.ndarray:
                    a = a._evaluated()
            else:
                scalar = number(values[fetch] if type(fetch) is int else fetch(values), dtype)
                if scalar is None:
                    return None
                a = scalar
                address = address_of(a)
            arrays.append(a)
            addresses.append(address)
        return addresses

    def _arguments(self, values: Sequence[Any], arrays: list[NDArray], sizes: Sizes) -> list[int] | None:
        """Return the addresses of the plan's arrays, and append the arrays to ``arrays``; None if a written
        array shares memory with another one, or an array's shape or strides are not as planned."""
        addresses: list[int] = []
        spans: list[tuple[int, int, bool]] = []
        for role, fetch, dtype, shape, strides, _ in sizes.parameters:
            if fetch is None:
                a, address = allocate(shape, dtype)
            else:
                value = values[fetch] if type(fetch) is int else fetch(values)
                if type(value) is np.ndarray:
                    a = value
                    _evaluate_plain(a, role == "inout")
                elif type(value) is ListElements:
                    if value.array.dtype != dtype and not value.mix():  # it gets ints and floats
                        return None
                    if role == "inout":
                        value.keep()
                    a = value.array
                elif type(value) in ARRAYS:
                    from . import wrapped_memory

                    a = wrapped_memory.evaluated(value, role == "inout")
                else:
                    scalar = number(value, dtype)
                    if scalar is None:
                        return None
                    a = scalar
                if (
                    a.shape != shape
                    or a.dtype != dtype
                    or not (a.strides == strides or _same_strides(a, strides))
                ):
                    return None
                address = address_of(a)
                if self._overwritten and type(value) is not float:
                    span_of = (*_span(a, address), role == "inout")
                    if not (generators.is_state(fetch) and span_of in spans):  # draws are in order anyway
                        spans.append(span_of)
            arrays.append(a)
            addresses.append(address)
        return None if self._overwritten and _written_range_overlaps(spans) else addresses

    def _execute(
        self, arrays: list[NDArray], addresses: list[int], options: config.Options, sizes: Sizes,
        outcome: Outcome,
    ) -> Callable[[], None] | None:  # fmt: skip
        """Run the plan and return a function that restores memory; None if it failed.  Then memory is
        restored, unless the loop, which Python runs next, overwrites it anyway."""
        state = fp_state.current_state()
        counted_flags = fp_state.watched_flags(state)
        if self.may_raise:
            counted_flags |= RAISING
        elif self.checked and counted_flags & RAISING:
            counted_flags |= INVALID
        undone, begun = self._undone, perf_counter()
        size = sum(arrays[k].nbytes for k in self._overwritten)
        # a signal may stop it, if copies of its arrays take a small part of the time
        worth = size < _MOST_COPIED and (self._pace >= _COPIED or not size or self.polls)
        if stops := worth and not outcome.is_brief and may_stop(False):
            undone = self._overwritten
        elif self.polls:
            return None
        if self._undone_unless_small:
            check = self._loaded.range_check
            if check and not counted_flags & MINDFUL and check(addresses, sizes.symbols, options.threads):
                counted_flags = 0
                size = sum(arrays[k].nbytes for k in self._undone_unless_small)
                outcome.is_final = not stops and (self._has_run or size > _LARGEST_FIRST_COPY)
            if not outcome.is_final:  # to bind the results of a first run may fail
                undone = [*undone, *self._undone_unless_small]
        if self._rewritten and fp_state.may_raise(state):
            undone = [*undone, *self._rewritten]
        try:
            with Undisturbed():
                may_stop(stops)
                restore = self._execute_undoable(arrays, addresses, options, counted_flags, undone, sizes)
        except Stopped:
            outcome.was_stopped = True
            return None
        finally:
            may_stop(False)
        if size and not outcome.is_brief:
            self._pace = (perf_counter() - begun) / size
        return restore

    def _execute_undoable(
        self, arrays: list[NDArray], addresses: list[int], options: config.Options, counted_flags: int,
        undone: Sequence[int], sizes: Sizes,
    ) -> Callable[[], None] | None:  # fmt: skip
        """Do what `_execute` does, with undo copies of the arrays ``undone``."""
        given = len(arrays)
        copies = [(arrays[k], _copied(arrays[k])) for k in dict.fromkeys(undone)] if undone else ()
        kept, sizes.kept = sizes.kept, None  # a signal handler may run the plan, too
        if kept is None:
            kept = [allocate(arrays[k].shape, arrays[k].dtype) for k, _ in sizes.windows]
        for saved, address in kept:
            arrays.append(saved)
            addresses.append(address)

        def restore() -> None:
            with Undisturbed():
                for (k, where), saved in zip(sizes.windows, arrays[given:], strict=True):
                    arrays[k][where] = saved[where]
                for a, copy in copies:
                    a[...] = copy

        try:
            flags = self._loaded.run(
                arrays if self._arrays else (), addresses, sizes.symbols, options.threads, counted_flags
            )
        except Exception as error:
            for a, copy in copies:
                a[...] = copy
            if options.debug or isinstance(error, Stopped) or not is_fault(error):
                raise
            return None
        if flags & counted_flags:
            restore()
            return None
        if all(arrays[k].size <= _LARGEST_KEPT_WINDOW for k, _ in sizes.windows):
            sizes.kept = kept
        return restore


def _copied(a: NDArray) -> NDArray:
    """Return a copy of an array, in memory that is kept for reuse."""
    copy, _ = allocate(a.shape, a.dtype)
    copy[...] = a
    return copy


def _evaluate_plain(a: NDArray, writing: bool) -> None:
    """Run the recording that is pending on the memory of a plain array, if there is one."""
    if not knows_wrapped():
        return
    head = FAMILIES.find(owner(a))
    if head is not None:
        for rec in (head.dirty, head.used) if writing else (head.dirty,):
            if rec is not None and not rec.done:
                rec.materialise(head, writing=writing)


def _same_strides(a: NDArray, strides: tuple[int, ...]) -> bool:
    """Whether an array has these strides on axes longer than 1."""
    return a.size == 0 or all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, strides, strict=True))


def _span(a: NDArray, address: int) -> tuple[int, int]:
    """Return the first address that an array occupies, and the one after its last."""
    if a.flags.c_contiguous:
        return address, address + a.nbytes
    low, high = span(a.shape, a.strides, a.itemsize)
    return address + low, address + high


def _written_range_overlaps(spans: list[tuple[int, int, bool]]) -> bool:
    """Whether a range of addresses that is written overlaps another range."""
    spans.sort()
    # of the ranges before that overlap each other: their end, and whether one is written
    end, written = 0, False
    for start, stop, writes in spans:
        if start < end and (writes or written):
            return True
        written = writes or (written and start < end)
        end = max(end, stop)
    return False
