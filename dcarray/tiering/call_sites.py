"""Places in the user's code where NumPy does the work at once, since recording it has never paid.

To record and to run a region costs some microseconds.  Where what is recorded runs without company - a cheap
statement or two on some ten thousand elements, whose result is wanted at once - NumPy is done sooner.  That
is not known when a call is recorded, but it is when it runs.  If NumPy's time, as estimated here, is the
shorter, such a recording runs call by call in NumPy; and if it comes again, the places of all its calls are
learned.  From then on NumPy does at once what these places ask for, on arrays that are hardly larger and on
which nothing is pending.  Where a result made so turns out to be an operand of something that is recorded,
the place has its next calls recorded again: some places of a recording are learned before others.  That is
done a few times.  After that it is only where the rest of the recording runs as a region, which might have
been one with what the place made; and not any more where NumPy has then often been sooner all the same.
Nothing of this concerns what NumPy does in any case, and only sooner where the place is known.

There are also times in which NumPy does everything at once that a thread asks for, whatever its size, as
long as nothing is pending on its operands (`begin`): while a loop runs as it is written for which a plan is
still to be made, and which may end before the recordings of its turns have plans of their own.  Once these
have been asked for, such times are begun again and again (`resume`), and are over when a plan has come
(`over`) or after a while: a turn is recorded, and used if that was its plan.  Nothing is learned then.

Where several ranks run a program nothing is learned, for all have to record the same.

Which way a call goes depends on what has run before, never on clocks; sums, of which the last bits may depend
on who computes them, are NumPy's both before and after a place is learned.  There is none of this with
``eager_below=0``; without the C module, which keeps the table and asks it, no place is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from dcarray.core import config
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator, simulated
from dcarray.core.ufunc_loops import UFUNCS
from dcarray.ir.ops import BOUNDED
from dcarray.lowering.program.input_range_check import FEWEST

from . import op_costs
from .blas_sharing import read_once

__all__ = [
    "FACTOR", "Estimate", "Tally", "allowed", "begin", "cheaper", "end", "estimate", "learn", "outright",
    "over", "resume", "strike", "suspended", "tally", "waiting",
]  # fmt: skip

FACTOR = 8
"""What NumPy does anyway when nothing is pending is learned up to so many times `eager_below` elements."""
# Nanoseconds, measured on a Xeon with AVX-512: for a byte that a call on some 100,000 elements reads or
# writes, for one of a temporary array besides, for a call of NumPy; for recording a statement, one that gives
# a single value, and one more of the same call; and for running a region.
_BYTE, _TEMPORARY, _CALL = 0.0137, 0.04, 300.0
_RECORD, _VALUE, _MORE, _RUN = 3500.0, 60000.0, 20000.0, 16000.0
# What a kernel takes more where it keeps what it overwrites: in all, and times the bytes of that, which goes
# to memory that was not used before.
_KEEP, _COPY = 5500.0, 5.0
# Times these bytes, where what is given is looked at instead (`ir.magnitudes`): in a cache, and in memory.
_LOOK, _AFAR = 2.0, 1.0
_DEEP, _MEMORY = 1 << 24, 2.2  # bytes that caches hardly hold; how many times as long each of so many takes
_NEAR = 1 << 17  # bytes: smaller temporary arrays are in the near cache when the next one takes their memory
# Bytes of a region's arrays from which on they push Python out of the near cache, and how many times as long
# it then takes to record and run one; more than that where other programs use the cache, too.  Where it is no
# chain of ufuncs (`chains`), that much more Python runs that fewer bytes do.
_FAR, _PUSHED = 1 << 19, 2.0
_LIBRARY = 20000.0  # for recording and calling what a library does
_LARGE = 1 << 17  # elements: on what is larger our threads may share such calls
_MARGIN = 1.3  # by which one thread is to be faster than NumPy: an estimate is no more exact
# Of work, from which on two threads have it done in half the time: to wake one may take longer than less.
_WORTH_SHARING = 100000.0


class Tally:
    """What regions have done so far, for those who want to know what a call has had of them.

    Attributes
    ----------
    theirs : float
        Nanoseconds that NumPy would have taken for those that ran by a plan, about.
    rounded : int
        How many of them gave results of which the last bits depend on who computes them.
    unplanned : int
        How many ran call by call since their plan was not there.
    """

    __slots__ = ("rounded", "theirs", "unplanned")

    def __init__(self) -> None:
        self.theirs = 0.0
        self.rounded = self.unplanned = 0

    def add(self, guess: Estimate, fastmath: bool) -> None:
        """A region has run by its plan."""
        self.theirs += guess.theirs
        self.rounded += guess.rounded or fastmath


class Estimate(NamedTuple):
    """What a recording is thought to take.

    Attributes
    ----------
    most : int
        The most elements that one of its statements is about; 0 if it is not for NumPy.
    theirs : float
        Nanoseconds that NumPy takes, call by call.
    ours : float
        Nanoseconds that recording it and running it as a region take, times what NumPy's may be more.
    rounded : bool
        May the last bits of its results depend on who computes them?
    """

    most: int
    theirs: float = 0.0
    ours: float = 0.0
    rounded: bool = True


tally = Tally()


def cheaper(guess: Estimate) -> int:
    """Is a recording done sooner by NumPy, call by call?  0 if not, else `Estimate.most`."""
    return guess.most if guess.theirs <= guess.ours else 0


def estimate(
    log: Sequence[tuple[Any, ...]],
    live: Sequence[int],
    calls: int,
    threads: int,
    saved: Sequence[int] = (),
    steps: Sequence[Any] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Estimate:
    """What a recording takes, as NumPy does it and as a region.

    Parameters
    ----------
    log : sequence of tuple
        Its entries, as in `dcarray.ir.build`.
    live : sequence of int
        The slots of new arrays that somebody holds.
    calls : int
        How many calls of the user's recorded it.
    threads : int
        How many there are for kernels.
    saved : sequence of int, optional
        The slots of which a kernel keeps what it overwrites, should an exception be raised.
    steps : sequence of Step, optional
        What there is to do of it (`interpreter.live_steps`); by default each statement, by itself.
    values : mapping of str to array, optional
        Its numbers, by dtype; else nothing is known of exponents.

    Returns
    -------
    Estimate
    """
    declared = [entry for entry in log if entry[0] in ("old", "new")]
    statements = [entry for entry in log if entry[0] not in ("old", "new")]
    if any(entry[0] == "call" and _gains(entry, declared) for entry in statements):
        return Estimate(0)
    if len(statements) == 1 and statements[0][0] == "call":  # nothing to be fused with, whatever it costs
        return Estimate(max([math.prod(entry[2]) for entry in declared], default=0))
    items = [np.dtype(entry[1]).itemsize for entry in declared]
    moved = theirs = ours = 0.0
    recording, running = _MORE * max(len(statements) - calls, 0), _RUN
    most, rounded, called = 0, False, False
    wanted = range(len(statements)) if steps is None else {step.position for step in steps}
    joined = () if steps is None else {step.position for step in steps if step.joined}
    unmade = {statements[k][4] for k in joined}  # what is gathered and folded has no array
    for position, entry in enumerate(statements):
        if entry[0] == "call":  # the same library does it either way
            called = True
            slots = [*entry[2], *(arg[0] for arg in entry[3] if type(arg) is tuple)]
            size = max([math.prod(declared[slot][2]) for slot in slots], default=0)
            if size > _LARGE:
                return Estimate(0)
            most = max(most, size)
            recording += _LIBRARY
            continue
        size = math.prod(entry[3])
        most = max(most, size)
        fold = entry[0] == "fold"
        rounded = rounded or (fold and entry[2][-1] in "efdFD")
        out, arguments = (entry[6], entry[7:]) if fold else (entry[4], entry[6:])
        if fold and not declared[out][2]:
            recording += _VALUE
        else:
            running += _RECORD
        if position not in wanted:
            unmade.add(out)
            continue
        if entry[1] == "where" and type(arguments[-1]) is tuple and arguments[-1][0] == out:
            moved += 2 * size  # an assignment by a mask touches what that chooses
            continue
        touched = {arg[0] for arg in arguments if type(arg) is tuple}
        if not fold:
            touched.add(out)  # once, if it is an operand too
        touching = size * sum(items[slot] for slot in touched - unmade)
        moved += _distance(touching) * touching
        number = arguments[-1] if type(arguments[-1]) is int else None
        exponent = None
        if entry[1] == "power" and number is not None and entry[2][1] == "d" and values is not None:
            exponent = float(values["d"][number])
        numpys, kernels = op_costs.of(entry[1], entry[2], exponent)
        converted = sum(
            type(arg) is tuple and declared[arg[0]][1] != entry[2][k] for k, arg in enumerate(arguments)
        )
        theirs += size * converted * op_costs.CONVERSION
        ours += size * (kernels + converted * op_costs.CONVERTED)
        if entry[1] == "floor_divide" and entry[2][0] not in "efd" and number is not None:
            theirs += size * kernels
            recording += size * op_costs.DIVISION
        else:
            theirs += size * (op_costs.CHOICE if position in joined else numpys)
    kept = {k for k, entry in enumerate(declared) if entry[0] == "old"}.union(live)
    memory = {declared[k][-1] for k in kept}  # one array may be there in several shapes
    held = sum(items[k] * math.prod(declared[k][2]) for k in memory)
    if held > _FAR or not _chained(statements):
        running *= _PUSHED
    lost = sum(items[k] * math.prod(declared[k][2]) for k in saved)
    looked = lost >= FEWEST and all(entry[0] == "map" and entry[1] in BOUNDED for entry in statements)
    again = _COPY if not looked else _LOOK if lost < _DEEP else _AFAR
    fused = _BYTE * _distance(held) * (held + again * lost) + ours
    margin = _MARGIN
    if saved:
        recording += _KEEP
    if fused > _WORTH_SHARING and (rounded or threads > 1) and not called:
        # a sum is the same with any number of threads; those of a library keep cores busy after its work
        fused, margin = fused / 2, _MARGIN if saved else 1.0
    # between calls; what one call of NumPy's makes on its way, it writes over as it goes
    kept |= unmade
    passing = [items[k] * math.prod(e[2]) for k, e in enumerate(declared) if e[-1] == k and k not in kept]
    temporary = _TEMPORARY * sum(n for n in passing if n > _NEAR) if calls > 1 else 0.0
    theirs += _CALL * len(statements) + _BYTE * moved + temporary
    return Estimate(most, theirs, margin * (recording + running + fused), rounded or called)


def _chained(statements: Sequence[tuple[Any, ...]]) -> bool:
    """May a recording of these statements be a chain, if it comes again?"""
    for kind, name, _, shape, axes, *_ in statements:
        if kind == "map" and name not in UFUNCS:
            return False
        if kind == "fold" and len(axes) < len(shape):
            return False
    return True


def _distance(nbytes: float) -> float:
    """How many times as long one of so many bytes takes, which caches hold or not."""
    return 1.0 if nbytes < _DEEP else _MEMORY


def _gains(call: tuple[Any, ...], declared: Sequence[tuple[Any, ...]]) -> bool:
    """Is a plan's own code for a call faster than the library?"""
    a, b = [declared[arg[0]][2] if arg[2] is None else arg[2] for arg in call[3]]
    return read_once(a, b, declared[call[2][0]][1])


def allowed() -> bool:
    """May NumPy work at once where that was learned?"""
    return config.current().eager_below > 0 and simulated() is None


def learn(marks: Sequence[tuple[Any, ...]], elements: int, sure: bool = False) -> None:
    """From now on NumPy does at once what these places ask for, on at most so many elements.

    Parameters
    ----------
    marks : sequence of (code, int, ...)
        The places, as in `Recording.sites`.
    elements : int
    sure : bool, optional
        NumPy does so anyway, only later: there is nothing to be had by recording it.
    """


def strike(place: tuple[Any, int], bar: bool = False) -> None:
    """What this place, a code object and an instruction, made at once is wanted by something recorded.

    Parameters
    ----------
    place : (code, int)
    bar : bool, optional
        And that is worth to be run as a region.
    """


def begin(seconds: float, loop: bool = False, new: bool = False) -> bool:
    """For so many seconds at most, NumPy does at once what this thread asks for.

    Parameters
    ----------
    seconds : float
    loop : bool, optional
        Whether `resume` may begin this again, until it has ended.
    new : bool, optional
        Whether the loop has not been met before.

    Returns
    -------
    bool
        False if a thread, this one or another, is in such a time already, or in a loop that has begun one, or
        there is none: then nothing has begun.
    """
    return False


def end(loop: bool = False) -> None:
    """NumPy does not do everything any longer that this thread asks for; with ``loop`` for good."""


def resume(seconds: float) -> bool:
    """Begin again if that is a time which a loop has begun, and which is over; has it begun?"""
    return False


def waiting() -> bool:
    """Is a loop running in which such times have begun, and that has not been met before?"""
    return False


def over() -> None:
    """Times that were resumed are over: something has come that they have waited for."""


def outright() -> bool:
    """Does NumPy do at once whatever this thread asks for?"""
    return False


@contextmanager
def suspended() -> Iterator[None]:
    """Everything is recorded inside the block, as if nothing had been learned."""
    yield


if BUILT:  # else nothing is ever learned
    from dcarray._native.extension import begin_outright, end_outright, expire_outright, outright
    from dcarray._native.extension import learn as _learn
    from dcarray._native.extension import strike as _strike
    from dcarray._native.extension import suspend as _suspend

    def learn(marks: Sequence[tuple[Any, ...]], elements: int, sure: bool = False) -> None:
        if communicator() is not None:
            return
        for code, instruction, *_ in marks:
            _learn(code, instruction, elements, sure)

    def strike(place: tuple[Any, int], bar: bool = False) -> None:
        _strike(*place, bar)

    # threads in loops that have begun so, and whether they have resumed it, and are new
    _loops: dict[int, list[bool]] = {}

    def begin(seconds: float, loop: bool = False, new: bool = False) -> bool:
        if loop and get_ident() in _loops:
            return False
        if (
            not allowed()
            or communicator() is not None
            or config.current().strict
            or not begin_outright(seconds)
        ):
            return False
        if loop:
            _loops[get_ident()] = [False, new]
        return True

    def end(loop: bool = False) -> None:
        end_outright()
        if loop:
            _loops.pop(get_ident(), None)

    def resume(seconds: float) -> bool:
        if get_ident() not in _loops or not begin(seconds):
            return False
        _loops[get_ident()][0] = True
        return True

    def waiting() -> bool:
        return any([new for _, new in list(_loops.values())])

    def over() -> None:
        if any([resumed for resumed, _ in list(_loops.values())]):
            expire_outright()

    @contextmanager
    def suspended() -> Iterator[None]:
        _suspend(1)
        try:
            yield
        finally:
            _suspend(-1)
