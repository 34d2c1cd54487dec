"""Op sequences: short repeated chains of operations on arrays, run without being recorded.

To record an operation and to run a region costs some ten microseconds each, most of it because kernels on
arrays of some megabytes push Python's own memory out of the near cache.  Where the same few operators on
whole arrays have run as one kernel several times, the C module knows them as an op sequence
(`op_sequences.h`): the call sites, the operands, the plan.  Operators at these sites, on arrays of that shape
and those dtypes on which nothing is pending, under the same options and error state, then leave no more than
a *deferred op sequence*, and whoever wants its last result, and nothing else of it, has the kernel run.

A deferred op sequence is pending on its memory as a recording is (`store.Pending`).  In all other cases it is
recorded after all, here, and that recording runs: where an intermediate result is still held, an operand is
written or the result is recorded with something else, and where a floating-point exception was raised.  After
some such times the op sequence is deoptimised.  Where several ranks run a program there are none.

Where NumPy was sooner than a kernel, operations that follow each other are op sequences, too
(`learn_block_sequences`), on arrays of any shape, or rows of them that lie one after the other, as in
``x[1:] - x[:-1]``.  NumPy's own loops then do the steps, a block of elements after the other; what is between
two of them stays in the near cache, and what is summed is never stored (`blocked_sequences.h`).  They do the
same for a recording whose plan was asked for, until it is there (`until_planned`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core.umath import _extobj_contextvar

from dcarray.core.counters import counters
from dcarray.core.fp_state import ODD, under
from dcarray.core.native import BUILT
from dcarray.core.processes import LOCK, communicator, simulated
from dcarray.core.store import Store
from dcarray.core.ufunc_loops import SUMS_BEGIN_WITH, UFUNCS
from dcarray.core.window import Index, identity
from dcarray.lowering.runtime.buffer_pool import POOLED
from dcarray.recording.log_format import reads
from dcarray.recording.operands import enter
from dcarray.tiering.state import OP_SEQUENCE, TierState

if TYPE_CHECKING:
    from dcarray.core.config import Options
    from dcarray.plans.templates import PlanEntry
    from dcarray.recording.log import Recording

__all__ = ["expire", "learn_block_sequences", "note_plan_run", "until_planned"]

MOST_STEPS, MOST_ARRAYS, MOST_NUMBERS, MOST_AXES = 8, 6, 6, 8
MAX_SITES = 64
FOLDS = frozenset({"add", "logical_and", "logical_or", "maximum", "minimum"})
_NUMBERS = "dfl"  # loops whose operands may be Python's numbers here

Operation = tuple[Any, ...]
"""The name of a ufunc, its result's dtype, and for each operand whether it is an array (``a``), a number
(``n``) or the result of an operation (``r``), and which of them."""


if BUILT:
    from dcarray._native import extension
    from dcarray._native.extension import expire_sequences as expire
    from dcarray._native.extension import learn_sequence, set_folds

    _functions_of: dict[int, tuple[Any, ...]] = {
        extension.SUM: (np.sum,), extension.MEAN: (np.mean,), extension.LARGEST_OF: (np.max, np.amax),
        extension.LEAST_OF: (np.min, np.amin), extension.ANY: (np.any,), extension.ALL: (np.all,),
        extension.COUNT: (np.count_nonzero,),
    }  # fmt: skip
    _kinds: dict[Any, int] = {}
    for _kind, _functions in _functions_of.items():
        for _function in _functions:
            _kinds[_function] = _kinds[_function.__name__] = _kind
    if not isinstance(np.count_nonzero(np.empty(0)), np.generic):  # but a number of Python's
        del _kinds[np.count_nonzero]
    set_folds(_kinds)
else:

    def expire() -> None:
        """End the op sequences that are for a time: what they waited for is there."""


def _are_rows(index: Index, lengths: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a window has rows of an array as they lie in C order, one after the other."""
    (_, stride, axis), *others = index
    plain = all(part == (0, 1, k) for k, part in enumerate(others, 1))
    return (stride, axis) == (1, 0) and plain and len(lengths) == len(shape) and lengths[1:] == shape[1:]


def _operations(
    maps: Sequence[Any], declared: Sequence[Any], shape: tuple[int, ...], rows: bool = False
) -> tuple[list[Operation], list[tuple[int, Index | None]], list[int], str] | None:
    """Return the operations of statements, the slots of the arrays that they read and their windows, where
    these may be ``rows``, their numbers, and these numbers' dtypes in their loops; None if they are no op
    sequence."""
    arrays, numbers, loops = list[tuple[int, Index | None]](), list[int](), ""
    made, found = dict[int, int](), list[Operation]()
    for entry in maps:
        if entry[0] != "map" or entry[1] not in UFUNCS or entry[3] != shape or entry[5] is not None:
            return None
        _, name, loop, _, slot, _, *arguments = entry
        if declared[slot][0] != "new" or declared[slot][-1] != slot:
            return None
        operands: list[Any] = []
        for argument, char in zip(arguments, loop, strict=False):
            if type(argument) is int:
                if argument in numbers or char not in _NUMBERS:
                    return None
                operands += ["n", len(numbers)]
                numbers.append(argument)
                loops += char
                continue
            source, index, spread = argument
            kind, char_there, lengths, *strides, head = declared[source]
            if spread is not None or char_there != char or head != source:
                return None
            if index is not None and (not rows or source in made or not _are_rows(index, lengths, shape)):
                return None
            if source not in made and (source, index) not in arrays:
                if (index is None and lengths != shape) or (kind == "old" and strides != [None]):
                    return None
                arrays.append((source, index))
            operands += ["r", made[source]] if source in made else ["a", arrays.index((source, index))]
        made[slot] = len(found)
        found.append((name, np.dtype(loop[-1]), *operands))
    return found, arrays, numbers, loops


def _groups(statements: Sequence[Any], live: set[int]) -> list[list[int]]:
    """Return the statements that may be op sequences, by position: those that need results of each other that
    are not held are in one group."""
    makers: dict[int, int] = {}
    group = list(range(len(statements)))
    outside = set(live)
    for k, entry in enumerate(statements):
        if entry[0] != "map":
            outside.update(
                slot for argument in reads(entry) if type(argument) is tuple for slot in argument[:1]
            )
        else:
            makers[entry[4]] = k
    for k, entry in enumerate(statements):
        if entry[0] != "map":
            continue
        for argument in entry[6:]:
            maker = None if type(argument) is int else makers.get(argument[0])
            if maker is not None and maker != k and argument[0] not in outside:
                old, new = group[maker], group[k]
                group = [new if one == old else one for one in group]
    groups: dict[int, list[int]] = {}
    for k, one in enumerate(group):
        if statements[k][0] == "map":
            groups.setdefault(one, []).append(k)
    return list(groups.values())


def _make_recorder(rec: Recording, found: list[Operation], positions: Sequence[int]) -> Callable[..., None]:
    """Return a function that records a deferred op sequence and has it run, from its shape, the stores that
    it reads and which of their rows come first, its numbers, and the stores of its results, as far as they
    are held."""
    keeper, every = type(rec.session), rec.statements()
    state, statements = rec.sites[positions[0]][2], [every[k] for k in positions]
    marks = [rec.sites[k] for k in positions]
    asked: list[tuple[Any, str | None]] = [
        (SimpleNamespace(f_code=code, f_lasti=place), said) for code, place, _, said in marks
    ]

    def record(
        shape: tuple[int, ...],
        stores: list[Store],
        rows: list[int],
        numbers: list[Any],
        results: list[Store | None],
    ) -> None:
        made: list[Store] = []
        rest = identity(len(shape))[1:]
        with LOCK:
            with under(state):
                recording: Recording = keeper().rec
                for (_, dtype, *operands), entry, (frame, said), result in zip(
                    found, statements, asked, results, strict=False
                ):
                    _, name, loop, *_ = entry
                    arguments: list[Any] = []
                    for kind, which, char in zip(operands[::2], operands[1::2], loop, strict=False):
                        if kind == "n":
                            arguments.append(recording.scalar(numbers[which], char))
                            continue
                        store = made[which] if kind == "r" else stores[which]
                        index = None if store.shape == shape else ((rows[which], 1, 0), *rest)
                        arguments.append((enter(recording, store), index, None))
                        store.family.used = recording
                    made.append(Store(shape, dtype) if result is None else result)
                    slot = recording.declare_new(made[-1])
                    recording.add(("map", name, loop, shape, slot, None, *arguments), frame, said)
            head = made[-1]
            made.clear()  # a temporary that is not held is not stored
            recording.materialise(head, writing=True)

    return record


def note_plan_run(rec: Recording, plan_entry: PlanEntry, options: Options) -> None:
    """Note that a plan of kernels alone has run: when it has often enough for the same call site, the
    operators of its recording are an op sequence from then on, if they can be."""
    if not BUILT:
        return
    code, instruction = rec.sites[-1][:2]
    here, runs = (id(code), instruction), plan_entry.runs
    known = runs.get(here)
    if known is None:
        if len(runs) >= MAX_SITES:
            runs.clear()
        known = runs[here] = TierState(OP_SEQUENCE)
    if known.observe():
        _kernel_sequence(rec, plan_entry, options)


def learn_block_sequences(rec: Recording, live: tuple[int, ...], options: Options, most: int) -> list[int]:
    """Make op sequences of the operations that follow each other in a recording that NumPy has done sooner
    and that comes again.

    Parameters
    ----------
    rec : Recording
    live : tuple of int
        The slots of new arrays that are held.
    options : Options
    most : int
        Elements of the arrays, at most.

    Returns
    -------
    list of int
        The positions of the other statements.
    """
    rest = list(range(len(rec.sites)))
    for positions, fold in _candidates(rec, live, options):
        if _block_sequence(rec, positions, options, most):
            rest = [k for k in rest if k not in positions and k != fold]
    return rest


def until_planned(rec: Recording, live: tuple[int, ...], options: Options, seconds: float) -> bool:
    """Let NumPy's loops do a recording's operations as one op sequence until a plan that was asked for is
    there, or for so long; whether they can."""
    for positions, fold in _candidates(rec, live, options):
        if len(positions) + (fold is not None) == len(rec.sites):
            entry = rec.statements()[positions[-1]]
            size = math.prod(entry[3])
            if size * np.dtype(entry[2][-1]).itemsize < POOLED:
                return _block_sequence(rec, positions, options, size, seconds)
    return False


def _candidates(
    rec: Recording, live: tuple[int, ...], options: Options
) -> Iterator[tuple[list[int], int | None]]:
    """The statements that may be op sequences, by position, and the fold of the result of each."""
    if not BUILT or communicator() is not None or simulated() is not None:
        return
    if rec.watched & ODD or options.debug:
        return
    statements = rec.statements()
    totals = {
        entry[7][0]: k for k, entry in enumerate(statements) if entry[0] == "fold" and _folds_all(entry)
    }
    for positions in _groups(statements, set(live)):
        maps = [statements[k] for k in positions]
        fold = totals.get(maps[-1][4])
        inner = {entry[4] for entry in maps[:-1]}
        if 2 - (fold is not None) <= len(maps) <= MOST_STEPS and inner.isdisjoint([*live, *totals]):
            yield positions, fold


def _folds_all(entry: Any) -> bool:
    """Whether a statement folds all elements of a whole array."""
    _, name, _, domain, axes, keepdims, _, folded = entry
    return name in FOLDS and len(axes) == len(domain) and not keepdims and folded[1:] == (None, None)


def _block_sequence(
    rec: Recording, positions: list[int], options: Options, most: int, seconds: float = 0.0
) -> bool:
    """Make an op sequence of these statements, for good or for so many seconds; whether they are one."""
    statements, marks = rec.statements(), [rec.sites[k] for k in positions]
    maps = [statements[k] for k in positions]
    error_state = marks[0][2]
    shape = maps[-1][3]
    places = tuple([mark[:2] for mark in marks])
    if not 0 < len(shape) <= MOST_AXES or len(set(places)) < len(places):
        return False
    declared = rec.declarations()
    described = _operations(maps, declared, shape, rows=True)
    if described is None:
        return False
    found, arrays, _, loops = described
    if not arrays or len(arrays) > MOST_ARRAYS or len(loops) > MOST_NUMBERS or not _used(found):
        return False
    if any(mark[2] is not error_state for mark in marks):
        return False
    letters = "".join([declared[k][1] for k, _ in arrays])
    what = places, tuple(found), letters, loops, (), most, rec.watched, options, error_state
    return learn_sequence(
        _extobj_contextvar, *what, None, _make_recorder(rec, found, positions), SUMS_BEGIN_WITH, seconds
    )


def _used(found: list[Operation]) -> bool:
    """Whether each operation but the last has one after it that needs it."""
    needed = {
        which
        for _, _, *operands in found
        for kind, which in zip(operands[::2], operands[1::2], strict=True)
        if kind == "r"
    }
    return needed == set(range(len(found) - 1))


def _kernel_sequence(rec: Recording, plan_entry: PlanEntry, options: Options) -> None:
    live = plan_entry.key[1]
    statements, plan, error_state = rec.statements(), plan_entry.plan, rec.state
    kind, *_ = last = statements[-1]
    if kind != "map" or len(statements) > MOST_STEPS or options.debug or not options.eager_below:
        return
    shape, slot = last[3], last[4]
    if live != (slot,) or communicator() is not None or simulated() is not None or rec.watched & ODD:
        return
    places = tuple([mark[:2] for mark in rec.sites])
    if len(set(places)) < len(places) or any(mark[2] is not error_state for mark in rec.sites):
        return
    declared = rec.declarations()
    described = _operations(statements, declared, shape)
    if described is None or any(entry[-1] != k for k, entry in enumerate(declared)):
        return
    found, arrays, numbers, loops = described
    if numbers != list(range(len(rec.kinds))) or len(found) > MOST_STEPS:
        return
    slots = [k for k, _ in arrays]
    if plan_entry.template.memory != [*slots, slot] or len(arrays) > MOST_ARRAYS or len(loops) > MOST_NUMBERS:
        return
    size = math.prod(shape)
    if len(shape) > MOST_AXES or size * found[-1][1].itemsize >= POOLED:
        return
    letters = "".join([declared[k][1] for k in slots])
    symbols, threads, kernels = plan_entry.symbols, options.threads, plan.kernels
    moved, count, launch = plan_entry.bytes, len(statements), plan.run

    def run(addresses: list[int]) -> int:
        flags: int = launch((), addresses, symbols, threads)
        counters.flushes += 1
        counters.statements += count
        counters.plan_hits += 1
        counters.kernels += kernels
        counters.bytes += moved
        return flags

    what = places, tuple(found), letters, loops, shape, size, rec.watched, options, error_state
    learn_sequence(_extobj_contextvar, *what, run, _make_recorder(rec, found, range(count)))
