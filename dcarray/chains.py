"""Short recordings that come again and again, from their operators straight to their kernels.

To record an operation and to run a region costs some ten microseconds each, most of it because kernels on
arrays of some megabytes push what Python works with out of the near cache.  Where the same few operators on
whole arrays have run as one kernel several times, the C module knows them as a *chain* (`_chains.h`): the
places in the user's code, the operands, the plan.  Operators at these places, on arrays of that shape and
those dtypes on which nothing is pending, under the same options and error state, then leave no more than a
sketch, and whoever wants its last result, and nothing else of it, has the kernel run.

A sketch is pending on its memory as a recording is (`store.Pending`).  In all other cases it is recorded
after all, here, and that recording runs: where somebody still has an intermediate result, writes to an
operand or records something with the result, and where a floating-point exception was raised.  After some
such times the chain is not used any more.  Where several ranks run a program there are none.

Where what NumPy has done sooner than a kernel ends in a sum or the like of all elements, its operations are
a chain, too (`little`), on arrays of any shape.  NumPy's own loops then do its steps, a block of elements
after the other, and what is summed is never stored (`_blocks.h`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core.umath import _extobj_contextvar

from .fpstate import ODD
from .loops import UFUNCS
from .lowering.memory import POOLED
from .operands import enter
from .ranks import LOCK, several, simulated
from .report import counters
from .speedups import BUILT
from .store import Store

if TYPE_CHECKING:
    from .config import Options
    from .forms import Prepared
    from .recording import Recording

__all__ = ["little", "ran", "settle"]

TIMES = 3  # so often a plan has run before its recording is learned
MOST_STEPS, MOST_ARRAYS, MOST_NUMBERS, MOST_AXES = 4, 5, 4, 8
MOST_PLACES = 64
FOLDS = frozenset({"add", "logical_and", "logical_or", "maximum", "minimum"})
MOST_TRIED = 4096
_NUMBERS = "dfl"  # loops whose operands may be Python's numbers here

Operation = tuple[Any, ...]
"""The name of a ufunc, its result's dtype, and for each operand whether it is an array (``a``), a number
(``n``) or the result of an operation (``r``), and which of them."""


def settle() -> None:
    """Have everything run that this thread has pending in sketches."""


def ran(rec: Recording, prepared: Prepared, options: Options) -> None:
    """A plan of kernels alone has run: when it has often enough for the same place in the user's code, the
    operators of its recording are a chain from then on, if they can be."""


def little(rec: Recording, live: tuple[int, ...], options: Options, most: int) -> bool:
    """What NumPy has done sooner than a kernel comes again: are its operations a chain from now on?

    Parameters
    ----------
    rec : Recording
    live : tuple of int
        The slots of new arrays that somebody holds.
    options : Options
    most : int
        Elements of the arrays, at most.
    """
    return False


def _operations(log: Any, shape: tuple[int, ...]) -> tuple[list[Operation], list[int], str] | None:
    """The operations of a log, the slots of the arrays that they read, and the dtypes that its numbers have
    in their loops; None if they cannot be a chain."""
    declared = [entry for entry in log if entry[0] in ("old", "new")]
    if any(entry[-1] != slot for slot, entry in enumerate(declared)):
        return None
    arrays, loops, made, found = list[int](), "", dict[int, int](), list[Operation]()
    for entry in log:
        if entry[0] == "old":
            if entry[2] != shape or entry[3] is not None:
                return None
        elif entry[0] != "new":
            if entry[0] != "map" or entry[1] not in UFUNCS or entry[3] != shape or entry[5] is not None:
                return None
            _, name, loop, _, slot, _, *arguments = entry
            operands: list[Any] = []
            for argument, char in zip(arguments, loop, strict=False):
                if type(argument) is int:
                    if argument != len(loops) or char not in _NUMBERS:
                        return None
                    operands += ["n", argument]
                    loops += char
                    continue
                source, index, spread = argument
                if index is not None or spread is not None or declared[source][1] != char:
                    return None
                if source not in made and source not in arrays:
                    arrays.append(source)
                operands += ["r", made[source]] if source in made else ["a", arrays.index(source)]
            made[slot] = len(found)
            found.append((name, np.dtype(loop[-1]), *operands))
    return found, arrays, loops


def _recorder(rec: Recording, found: list[Operation]) -> Callable[..., None]:
    """A function that records what a sketch was to compute and has it run, from the stores that it reads, its
    numbers, and the stores of its results, as far as somebody has them."""
    keeper, state, statements = type(rec.session), rec.state, rec.statements()
    frames: list[Any] = [SimpleNamespace(f_code=code, f_lasti=place) for code, place, _ in rec.marks]

    def record(stores: list[Store], numbers: list[Any], results: list[Store | None]) -> None:
        made: list[Store] = []
        with LOCK:
            token = _extobj_contextvar.set(state)
            try:
                recording: Recording = keeper().rec
                for (_, dtype, *operands), entry, frame, result in zip(
                    found, statements, frames, results, strict=False
                ):
                    _, name, loop, *_ = entry
                    shape = stores[0].shape
                    arguments: list[Any] = []
                    for kind, which, char in zip(operands[::2], operands[1::2], loop, strict=False):
                        if kind == "n":
                            arguments.append(recording.scalar(numbers[which], char))
                            continue
                        store = made[which] if kind == "r" else stores[which]
                        arguments.append((enter(recording, store), None, None))
                        store.family.used = recording
                    made.append(Store(shape, dtype) if result is None else result)
                    slot = recording.fresh(made[-1])
                    recording.add(("map", name, loop, shape, slot, None, *arguments), frame)
            finally:
                _extobj_contextvar.reset(token)
            head = made[-1]
            made.clear()  # a temporary that nobody has is not stored
            recording.settle(head, writing=True)

    return record


if BUILT:  # else there are none
    from ._speedups import chain as _chain
    from ._speedups import folds as _folds
    from ._speedups import settle_sketches as settle

    def ran(rec: Recording, prepared: Prepared, options: Options) -> None:
        code, instruction, _ = rec.marks[-1]
        here, runs = (id(code), instruction), prepared.runs
        times = runs.get(here, 0)
        if times < TIMES:
            if len(runs) >= MOST_PLACES:
                runs.clear()
            runs[here] = times + 1
            if times + 1 == TIMES:
                _learn(rec, prepared, options)

    _sums = (np.sum, np.mean, (np.max, np.amax), (np.min, np.amin), np.any, np.all, np.count_nonzero)
    _kinds: dict[Any, int] = {}  # as in _blocks.h
    for _kind, _functions in enumerate(_sums, 1):
        for _function in _functions if isinstance(_functions, tuple) else (_functions,):
            _kinds[_function] = _kinds[_function.__name__] = _kind
    if not isinstance(np.count_nonzero(np.empty(0)), np.generic):  # but a number of Python's
        del _kinds[np.count_nonzero]
    _folds(_kinds)
    _zero = float(np.add.reduce(np.array([-0.0])))  # with which NumPy begins, or the negative one
    _tried: dict[tuple[int, int], weakref.ref[Any]] = {}  # code objects, by their identity and an instruction

    def little(rec: Recording, live: tuple[int, ...], options: Options, most: int) -> bool:
        maps, wanted = rec.statements(), set(live)
        log = rec.log
        if maps[-1][0] == "fold":
            last = maps.pop()
            _, name, _, domain, axes, keepdims, total, folded = last
            log = [entry for entry in log if entry is not last]
            if name not in FOLDS or len(axes) != len(domain) or keepdims or folded[1:] != (None, None):
                return False
            wanted = (wanted - {total}) | {folded[0]}
        elif len(maps) < 2:
            return False
        if not 0 < len(maps) <= MOST_STEPS or maps[-1][0] != "map" or wanted != {maps[-1][4]}:
            return False
        shape, state = maps[-1][3], rec.state
        if not 0 < len(shape) <= MOST_AXES:
            return False
        if several() is not None or simulated() is not None or rec.mask & ODD or options.debug:
            return False
        places = tuple([(code, instruction) for code, instruction, _ in rec.marks[: len(maps)]])
        code, instruction = places[0]
        begin = id(code), instruction
        if len(set(places)) < len(places) or any(one is not state for _, _, one in rec.marks):
            return False
        described = _operations(log, shape)
        tried = _tried.get(begin)
        if described is None or (tried is not None and tried() is code):
            return False
        found, arrays, loops = described
        declared = rec.declarations()
        if not arrays or len(arrays) > MOST_ARRAYS or len(loops) > MOST_NUMBERS or not _used(found):
            return False
        if len(_tried) >= MOST_TRIED:
            _tried.clear()
        _tried[begin] = weakref.ref(code)
        letters = "".join([declared[k][1] for k in arrays])
        what = places, tuple(found), letters, loops, (), most, rec.mask, options, state
        return _chain(_extobj_contextvar, *what, None, _recorder(rec, found), _zero)

    def _used(found: list[Operation]) -> bool:
        """Does each operation but the last have one after it that needs it?"""
        needed = {
            which
            for _, _, *operands in found
            for kind, which in zip(operands[::2], operands[1::2], strict=True)
            if kind == "r"
        }
        return needed == set(range(len(found) - 1))

    def _learn(rec: Recording, prepared: Prepared, options: Options) -> None:
        log, live, _ = prepared.key
        statements, plan, state = rec.statements(), prepared.plan, rec.state
        kind, *_ = last = statements[-1]
        if kind != "map" or len(statements) > MOST_STEPS or options.debug or not options.eager_below:
            return
        shape, slot = last[3], last[4]
        if live != (slot,) or several() is not None or simulated() is not None or rec.mask & ODD:
            return
        places = tuple([(code, instruction) for code, instruction, _ in rec.marks])
        if len(set(places)) < len(places) or any(one is not state for _, _, one in rec.marks):
            return
        described = _operations(log, shape)
        if described is None:
            return
        found, arrays, loops = described
        if prepared.form.memory != [*arrays, slot] or len(arrays) > MOST_ARRAYS or len(loops) > MOST_NUMBERS:
            return
        size = int(np.prod(shape))
        if len(shape) > MOST_AXES or size * found[-1][1].itemsize >= POOLED:
            return
        declared = rec.declarations()
        letters = "".join([declared[k][1] for k in arrays])
        symbols, threads, kernels = prepared.symbols, options.threads, plan.kernels
        moved, count, launch = prepared.bytes, len(statements), plan.run

        def run(addresses: list[int]) -> int:
            flags: int = launch((), addresses, symbols, threads)
            counters.flushes += 1
            counters.statements += count
            counters.plan_hits += 1
            counters.kernels += kernels
            counters.bytes += moved
            return flags

        what = places, tuple(found), letters, loops, shape, size, rec.mask, options, state
        _chain(_extobj_contextvar, *what, run, _recorder(rec, found))
