"""Runs of plans: allocation, execution and the attribution of floating-point exceptions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core import config, fp_attribution, fp_bits, fp_state
from dcarray.core.counters import counters
from dcarray.core.fp_bits import MINDFUL
from dcarray.core.store import Store
from dcarray.ir.log_entries import Statement
from dcarray.ir.ops import SCANS
from dcarray.lowering.runtime.array_memory import address_of, allocate
from dcarray.plans import templates
from dcarray.recording.operands import DTYPES

from .interpreter import OpByOp
from .steps import Step, live_steps

if TYPE_CHECKING:
    from dcarray.recording.log import Recording

_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide"})


def run_kernels(
    rec: Recording, plan_entry: templates.PlanEntry, plan: templates.ExecutablePlan, threads: int
) -> list[Any]:
    """Run a plan that consists of kernels only, which need nothing but addresses."""
    slots = rec.slots
    addresses: list[int] = []
    fresh: list[tuple[Store, Any, int]] = []
    for k in plan_entry.template.memory:
        store = slots[k]
        if type(store) is Store:
            addresses.append(store.address)
        else:
            store = store() or rec.substitute(k)
            mem, address = allocate(store.shape, store.dtype)
            addresses.append(address)
            fresh.append((store, mem, address))
    if rec.kinds:
        addresses += rec.scalar_addresses()
    plan_entry.template.doubts.runs += 1
    flags = plan.run((), addresses, plan_entry.symbols, threads)
    counters.kernels += plan.kernels
    counters.bytes += plan_entry.bytes
    notes: list[Any] = []
    if flags & rec.watched:
        mems = iter([mem for _, mem, _ in fresh])
        arrays = {
            k: s.mem if type(s := slots[k]) is Store else next(mems) for k in plan_entry.template.memory
        }
        notes = _attribute_flags(rec, plan_entry, plan, arrays, {}, flags & rec.watched)
    for store, mem, address in fresh:
        store.bind_new(mem, address)
    return notes


def allocate_arrays(
    rec: Recording, template: templates.LogTemplate
) -> tuple[dict[int, Any], list[int], list[tuple[Any, ...]]]:
    """Return the arrays of a run by slot, their addresses, and the new ones with their stores."""
    slots = rec.slots
    arrays: dict[int, Any] = {}
    addresses: list[int] = []
    fresh: list[tuple[Any, ...]] = []
    for k in template.memory:
        store = slots[k]
        if (head := template.reshapes.get(k)) is not None:
            store = rec.substitute(k)
            mem = arrays[head].view(store.dtype).reshape(store.shape)
            address = addresses[template.memory.index(head)]
        elif type(store) is not Store:
            store = store() or rec.substitute(k)
            mem, address = allocate(store.shape, store.dtype)
            fresh.append((store, mem, address))
        else:
            mem, address = store.mem, store.address
        arrays[k] = mem
        addresses.append(address)
    return arrays, addresses, fresh


def run_steps(
    rec: Recording,
    plan_entry: templates.PlanEntry,
    plan: templates.ExecutablePlan,
    arrays: dict[int, Any],
    addresses: list[int],
    options: config.Options,
) -> list[Any] | None:
    """Run a plan of any steps; None if it stopped, with memory unchanged, and has to run op by op."""
    given = addresses + rec.scalar_addresses()
    saved = {}
    for k, _ in plan.kept:
        saved[k], address = allocate(arrays[k].shape, arrays[k].dtype)
        given.append(address)
    every: Any = ()
    if plan.needs_arrays:
        every = [*arrays.values(), *rec.scalar_arrays().values(), *saved.values()]
    template = plan_entry.template
    mask, aside = rec.watched, plan.aside
    if template.doubts.raised & mask:
        mask &= ~_silent(rec, template.doubts.raised & mask)
        aside = aside if mask & template.doubt else ()
    check = plan.range_check
    if check is not None and not mask & MINDFUL and check(given, plan_entry.symbols, options.threads):
        mask, aside = 0, ()
    kept = _copies({k: arrays[k] for k in dict.fromkeys((*plan.keeps, *aside))})
    doubt = template.doubt & mask if plan.stops else 0
    template.doubts.runs += 1
    try:
        flags = plan.run(every, given, plan_entry.symbols, options.threads, doubt)
    except Exception:
        for k in plan.keeps:
            arrays[k][...] = kept[k]
        raise
    if flags & doubt:
        template.doubts.add(flags & doubt)
        return None
    counters.kernels += plan.kernels
    counters.interpreted += plan.interpreted
    counters.bytes += plan_entry.bytes
    if not flags & mask:
        return []
    return _attribute_flags(rec, plan_entry, plan, arrays | {k: kept[k] for k in aside}, saved, flags & mask)


def _copies(arrays: dict[int, Any]) -> dict[int, Any]:
    """Return copies of arrays by slot; several shapes of one memory share one copy."""
    copies: dict[int, Any] = {}
    known: dict[tuple[int, int], Any] = {}
    for k, a in arrays.items():
        if not a.flags.c_contiguous:
            copies[k] = a.copy()
            continue
        memory = address_of(a), a.nbytes
        if memory not in known:
            known[memory] = np.empty((a.nbytes,), DTYPES["B"])
            known[memory].view(a.dtype).reshape(a.shape)[...] = a
        copies[k] = known[memory].view(a.dtype).reshape(a.shape)
    return copies


def _attribute_flags(
    rec: Recording,
    plan_entry: templates.PlanEntry,
    plan: templates.ExecutablePlan,
    arrays: dict[int, Any],
    saved: dict[int, Any],
    flags: int,
) -> list[Any]:
    """Return the notes of floating-point exceptions that are not ignored, with their statements.

    ``arrays`` and ``saved`` have the overwritten elements as they were, the latter where the plan says.
    """
    template = plan_entry.template
    if not flags & template.doubt:
        return [
            note
            for culprit in sorted({one for one in template.culprits if one >= 0})
            for note in fp_state.notes_of(
                culprit,
                rec.sites[culprit][2],
                flags & sum(1 << k for k, one in enumerate(template.culprits) if one == culprit),
            )
        ]
    if flags == _silent(rec, flags):
        template.doubts.raised |= flags
        return []
    template.doubts.add(flags)
    witness = fp_state.Witness(lambda loc: rec.sites[loc][2])
    try:
        again = arrays | _copies({k: a for k, a in arrays.items() if k not in template.inputs})
        for k, where in plan.kept:
            part = where(*plan_entry.symbols)
            again[k][part] = saved[k][part]
        run = OpByOp(rec, steps_of(rec, plan_entry), witness, again)
        run.run()
    except Exception:  # the results are there; only the culprit is unknown
        return _first_suspect(rec, flags)
    return _first_suspect(rec, flags) if run.left else witness.notes


def _silent(rec: Recording, flags: int) -> int:
    """Return the exceptions among ``flags`` that would show no warning, whichever statement raised them: the
    warning was given before, or is filtered out."""
    if rec.watched & fp_state.ODD:
        return 0
    for k, entry in enumerate(rec.statements()):
        site = rec.sites[k]
        for _, mode, text in fp_state.notes_of(k, site[2], _able(rec, entry) & flags):
            said = fp_state.message(text, name_in_warnings(entry, site))
            if mode == "raise" or not fp_state.is_silent(said, *line_of(site)):
                flags &= ~fp_state.bit_of(text)
    return flags


def _able(rec: Recording, entry: Statement) -> int:
    """Return the floating-point exceptions that NumPy can raise in a statement.  Arithmetic of results of
    other statements with a finite number other than zero is never invalid."""
    able = fp_attribution.raises(entry)[0]
    if entry.kind == "map" and entry.op in _ARITHMETIC and set(entry.loop) <= set("fd->"):
        numbers = [float(rec.views[rec.kinds[k]][k]) for k in entry.scalars]
        are_new = all([slot in rec.news for slot, _, _ in entry.arrays])
        if are_new and any([number and math.isfinite(number) for number in numbers]):
            able &= ~fp_bits.INVALID
    return able


def name_in_warnings(entry: Statement, site: Any) -> str:
    """Return NumPy's name of a statement in warnings."""
    if site[3] or entry.kind != "fold":
        return site[3] or entry.op.removeprefix("blas.")
    return "accumulate" if entry.op in SCANS else "reduce"


def steps_of(rec: Recording, plan_entry: templates.PlanEntry | None) -> tuple[Step, ...]:
    """Return the steps of a recording for the op-by-op interpreter, the same for all logs of one template."""
    if plan_entry is None:
        live = [k for k in rec.news if rec.store_at(k) is not None]
        return live_steps(rec.declarations(), rec.statements(), live)
    template = plan_entry.template
    if template.steps is None:
        template.steps = live_steps(rec.declarations(), rec.statements(), plan_entry.key[1])
    known: tuple[Step, ...] = template.steps
    return known


def _first_suspect(rec: Recording, flags: int) -> list[Any]:
    """Return the notes on the first statement that can raise floating-point exceptions."""
    for k, entry in enumerate(rec.statements()):
        state = rec.sites[k][2]
        if any(fp_attribution.raises(entry)) and fp_state.modes(state) is not None:
            notes = fp_state.notes_of(k, state, flags)
            if notes:
                return notes
    return []


def line_of(site: Any) -> tuple[str, int]:
    """Return the file and line of a call site."""
    code, instruction = site[:2]
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno
