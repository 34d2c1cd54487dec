"""The cost model: the time of a recording, as NumPy runs it call by call and as a compiled region."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir import log_entries
from dcarray.ir.log_entries import Declaration, Statement
from dcarray.ir.ops import BOUNDED
from dcarray.lowering.program.input_range_check import MIN_COPIED_BESIDE

from . import op_costs
from .blas_sharing import is_skinny_product

__all__ = ["Estimate", "eager_elements", "estimate"]

# Nanoseconds, measured on a Xeon with AVX-512: for a byte that a call on some 100,000 elements reads or
# writes, for one of a temporary array besides, for a call of NumPy; for recording a statement, one that gives
# a single value, and one more of the same call; and for running a region.
_BYTE, _TEMPORARY, _CALL = 0.0137, 0.04, 300.0
_RECORD, _VALUE, _MORE, _RUN = 3500.0, 60000.0, 20000.0, 16000.0
# What a kernel takes more where it keeps what it overwrites: in all, and times the bytes of that, which goes
# to memory that was not used before.
_KEEP, _COPY = 5500.0, 5.0
# Times these bytes, where inputs are range-checked instead (`value_ranges`): in a cache, and in memory.
_LOOK, _AFAR = 2.0, 1.0
_DEEP, _MEMORY = 1 << 24, 2.2  # bytes that caches hardly hold; how many times as long each of so many takes
_NEAR = 1 << 17  # bytes: smaller temporary arrays are in the near cache when the next one takes their memory
# Bytes of a region's arrays from which on they push Python out of the near cache, and how many times as long
# it then takes to record and run one; more than that where other programs use the cache, too.
_FAR, _PUSHED = 1 << 19, 2.0
_LIBRARY = 20000.0  # for recording and calling what a library does
_LARGE = 1 << 17  # elements: on what is larger our threads may share such calls
_MARGIN = 1.3  # by which one thread is to be faster than NumPy: an estimate is no more exact
# Of work, from which on two threads have it done in half the time: to wake one may take longer than less.
_WORTH_SHARING = 100000.0


class Estimate(NamedTuple):
    """The estimated cost of a recording.

    Attributes
    ----------
    elements : int
        The number of elements of the largest statement; 0 if a region is estimated to be faster than NumPy.
    numpy : float
        Nanoseconds that NumPy takes, call by call.
    region : float
        Nanoseconds that recording it and running it as a region take, times the margin that NumPy is given.
    """

    elements: int
    numpy: float = 0.0
    region: float = 0.0


def eager_elements(cost: Estimate) -> int:
    """Return `Estimate.elements` of a recording that NumPy does sooner, call by call; else 0."""
    return cost.elements if cost.numpy <= cost.region else 0


def estimate(
    log: Sequence[tuple[Any, ...]],
    live: Sequence[int],
    calls: int,
    threads: int,
    saved: Sequence[int] = (),
    steps: Sequence[Any] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Estimate:
    """Estimate a recording's cost, as NumPy does it and as a region.

    Parameters
    ----------
    log : sequence of tuple
        Its entries, as in `dcarray.ir.log_entries`.
    live : sequence of int
        The slots of new arrays that are still held.
    calls : int
        The user's calls that recorded it.
    threads : int
        The threads for kernels.
    saved : sequence of int, optional
        The slots whose old elements a kernel keeps, should an exception be raised.
    steps : sequence of Step, optional
        The steps of the op-by-op interpreter; by default one for each statement.
    values : mapping of str to array, optional
        The log's scalars, by dtype, from which the exponents of powers are taken.

    Returns
    -------
    Estimate
    """
    declared, statements = log_entries.declarations(log), log_entries.statements(log)
    if any(entry.kind == "call" and _is_faster_in_plan(entry, declared) for entry in statements):
        return Estimate(0)
    if len(statements) == 1 and statements[0].kind == "call":  # nothing to be fused with, whatever it costs
        return Estimate(max([math.prod(entry.shape) for entry in declared], default=0))
    items = [np.dtype(entry.char).itemsize for entry in declared]
    moved = numpy = compiled = 0.0
    recording, running = _MORE * max(len(statements) - calls, 0), _RUN
    most, rounded, called = 0, False, False
    wanted = range(len(statements)) if steps is None else {step.position for step in steps}
    joined = () if steps is None else {step.position for step in steps if step.joined}
    unmade = {statements[k].out for k in joined}  # what is gathered and folded, or bounded, has no array
    pairs = () if steps is None else pairwise(steps)
    bounds = {
        then.position for step, then in pairs if step.joined and statements[then.position].kind == "map"
    }
    for position, entry in enumerate(statements):
        if entry.kind == "call":  # the same library does it either way
            called = True
            slots = [*entry.outs, *(slot for slot, _, _ in entry.arrays)]
            size = max([math.prod(declared[slot].shape) for slot in slots], default=0)
            if size > _LARGE:
                return Estimate(0)
            most = max(most, size)
            recording += _LIBRARY
            continue
        size = math.prod(entry.shape)
        most = max(most, size)
        fold = entry.kind == "fold"
        rounded = rounded or (fold and entry.loop[-1] in "efdFD")
        out, arguments = entry.out, entry.args
        if fold and not declared[out].shape:
            recording += _VALUE
        else:
            running += _RECORD
        if position not in wanted:
            unmade.add(out)
            continue
        if entry.op == "where" and type(arguments[-1]) is tuple and arguments[-1][0] == out:
            moved += 2 * size  # an assignment by a mask touches what that chooses
            continue
        touched = {slot for slot, _, _ in entry.arrays}
        if not fold:
            touched.add(out)  # once, if it is an operand too
        touching = size * sum(items[slot] for slot in touched - unmade)
        moved += _cache_factor(touching) * touching
        number = arguments[-1] if type(arguments[-1]) is int else None
        exponent = None
        if entry.op == "power" and number is not None and entry.loop[1] == "d" and values is not None:
            exponent = float(values["d"][number])
        numpys, kernels = op_costs.element_costs(entry.op, entry.loop, exponent)
        converted = sum(
            type(arg) is tuple and declared[arg[0]].char != entry.loop[k] for k, arg in enumerate(arguments)
        )
        numpy += size * converted * op_costs.CONVERSION
        compiled += size * (kernels + converted * op_costs.CONVERTED)
        if entry.op == "floor_divide" and entry.loop[0] not in "efd" and number is not None:
            numpy += size * kernels
            recording += size * op_costs.DIVISION
        else:
            chosen = position in joined and entry.op == "where"
            numpy += size * (op_costs.CHOICE if chosen else 0.0 if position in bounds else numpys)
    kept = {k for k, entry in enumerate(declared) if not entry.is_new}.union(live)
    memory = {declared[k].head for k in kept}  # one array may be there in several shapes
    held = sum(items[k] * math.prod(declared[k].shape) for k in memory)
    if held > _FAR or rounded:  # with sums others' arrays push Python out, too
        running *= _PUSHED
    lost = sum(items[k] * math.prod(declared[k].shape) for k in saved)
    looked = lost >= MIN_COPIED_BESIDE and all(
        entry.kind == "map" and entry.op in BOUNDED for entry in statements
    )
    again = _COPY if not looked else _LOOK if lost < _DEEP else _AFAR
    fused = _BYTE * _cache_factor(held) * (held + again * lost) + compiled
    margin = _MARGIN
    if saved:
        recording += _KEEP
    if fused > _WORTH_SHARING and (rounded or threads > 1) and not called:
        # a sum is the same with any number of threads; those of a library keep cores busy after its work
        fused, margin = fused / 2, _MARGIN if saved else 1.0
    # between calls; what one call of NumPy's makes on its way, it writes over as it goes
    kept |= unmade
    passing = [items[k] * math.prod(e.shape) for k, e in enumerate(declared) if e.head == k and k not in kept]
    temporary = _TEMPORARY * sum(n for n in passing if n > _NEAR) if calls > 1 else 0.0
    numpy += _CALL * len(statements) + _BYTE * moved + temporary
    return Estimate(most, numpy, margin * (recording + running + fused))


def _cache_factor(nbytes: float) -> float:
    """Return the factor by which a byte's time grows when so many bytes are used: in a cache it is small."""
    return 1.0 if nbytes < _DEEP else _MEMORY


def _is_faster_in_plan(call: Statement, declared: Sequence[Declaration]) -> bool:
    """Whether a plan's own code for a call is faster than the library."""
    if call.op != "blas.matmul":
        return False
    a, b = [declared[slot].shape if shape is None else shape for slot, _, shape in call.arrays]
    return is_skinny_product(a, b, declared[call.out].char)
