"""Operands and results of recorded calls, and calls that NumPy runs eagerly instead."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from types import FrameType
from typing import Any

import numpy as np

from dcarray.core import config, counters, fp_state, own_files, window
from dcarray.core.backend import NOT_DISTRIBUTED, backend, try_call
from dcarray.core.errors import StrictError
from dcarray.core.handle import Handle, adopt, large
from dcarray.core.native import BUILT
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import COMPILED, FAMILIES, Store, compilable, owner, store_of

from .log import Recording

SNAPSHOT_BYTES = 1 << 20  # plain operands up to this size are copied; larger ones make the recording run
SCALARS = (bool, int, float, complex)
DTYPES = {c: np.dtype(c) for c in COMPILED}


class RunEagerly(Exception):
    """Raised for a call that NumPy has to run at once, instead of recording it."""


class NoCompiledForm(RunEagerly):
    """Raised for a call that has no compiled form; the report notes it, and strict mode refuses it."""


# ---- results -----------------------------------------------------------------------------------------
def wrap_result(cls: type[Handle], value: Any) -> Any:
    """Return NumPy's result with plain arrays wrapped; scalars and subclasses of arrays stay."""
    return adopt(cls, value, config.current().eager_below) if type(value) is np.ndarray else value


def fits(out: Any, shape: tuple[int, ...], char: str) -> bool:
    """Whether the array ``out`` has the shape and dtype that a result will have."""
    if not isinstance(out, Handle) and type(out) is not np.ndarray:
        return False
    return out.dtype == np.dtype(char) and shape_of(out) == shape


def write_result(out: Any, result: Any) -> Any:
    """Write a result into an array, wrapped or plain; returns the array."""
    out[...] = result if isinstance(out, Handle) else plain_of(result)
    return out


def plain_of(x: Any) -> Any:
    """Return the plain array of a handle; any other object as it is."""
    return x._evaluated() if isinstance(x, Handle) else x


def run_eagerly(
    lacking: bool, cls: type[Handle], function: Any, inputs: tuple[Any, ...], out: Any = None, **kwargs: Any
) -> Any:
    """Run a call in NumPy on evaluated operands, because it is small or ``lacking`` a lowering.

    The exception that kept the call from the log is not passed: it would keep its frames, and in them
    the operands, alive until the garbage collector runs.
    """
    if out is None and communicator() is not None:
        blocks = _in_blocks(function, inputs, kwargs)
        if blocks is not NotImplemented:
            return blocks
    if lacking:
        note_fallback(function.__name__, inputs)
    if out is not None:
        kwargs["out"] = out._writable() if isinstance(out, Handle) else out
    result = function(*(plain_of(x) for x in inputs), **kwargs)
    return out if out is not None else wrap_result(cls, result)


def _in_blocks(function: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the distributed form of a function on distributed operands; NotImplemented if there is none."""
    if function is np.matmul or function is np.dot:  # the same but for their names in warnings
        return _product_in_blocks(function.__name__, inputs, kwargs)
    ufunc = getattr(function, "__self__", function)
    if not isinstance(ufunc, np.ufunc):
        return NotImplemented
    method = "__call__" if ufunc is function else function.__name__
    result = try_call(getattr(np.ufunc, method), (ufunc, *inputs), kwargs)
    return NotImplemented if result is NOT_DISTRIBUTED else result


def _product_in_blocks(name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a product of distributed operands; NotImplemented if that has no distributed form.

    Ranks may raise different floating-point exceptions: afterwards all ranks warn of, or raise, those of any.
    """
    state = fp_state.current_state()
    usual = fp_state.modes(state) is not None  # else each rank calls, or prints, its own
    with fp_state.collect_flags() if usual else nullcontext(fp_state.CollectedFlags()) as seen:
        product = try_call(np.ufunc.__call__, (np.matmul, *inputs), kwargs)
    if product is NOT_DISTRIBUTED:
        return NotImplemented
    comm = communicator()
    if comm is not None and usual and fp_state.watched_flags(state):
        with communicating():
            flags = backend().combine_flags(comm, seen.flags)
        fp_state.emit(fp_state.notes_of(None, state, flags), lambda _: name, lambda _: counters.user_line())
    return product


def note_fallback(function: str, inputs: tuple[Any, ...]) -> None:
    """Note in the report that NumPy runs a call on large arrays since there is no compiled form for it.

    Raises
    ------
    StrictError
        In strict mode.
    """
    arrays = [x for x in inputs if isinstance(x, Handle) and x._small is None]
    if arrays:
        if config.current().strict:
            raise StrictError(function, counters.user_line())
        counters.note(function, sum(math.prod(x._shape) * x._store.dtype.itemsize for x in arrays))


def user_frame(depth: int = 2) -> FrameType:
    """Return the innermost frame of user code, outside this package and NumPy, from ``depth`` calls up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        internal = IS_INTERNAL.get(id(code))
        if internal is None:
            if len(IS_INTERNAL) > 10_000:
                IS_INTERNAL.clear()
            internal = IS_INTERNAL[id(code)] = own_files.is_inside(code.co_filename)
        if not internal:
            return frame
        frame = frame.f_back
    return sys._getframe(depth)


IS_INTERNAL: dict[int, bool] = {}  # by the identity of the code object, since hashing one is slow


def is_lossy_truth(x: Any) -> bool:
    """Whether converting a nonzero Python number to some dtype may give 0, or not be possible: it is tiny, or
    an int of more than 64 bits.  Then ``x`` as a truth value is not what the converted number is."""
    if type(x) is int:
        return not -(2**63) <= x < 2**63
    return type(x) in (float, complex) and 0.0 < abs(x) < 1e-7


# ---- operands ----------------------------------------------------------------------------------------
def operand(rec: Recording, x: Any, domain: tuple[int, ...] | None, char: str) -> Any:
    """Add an operand to a recording; return its argument in the log, with its shape if not the ``domain``."""
    if isinstance(x, Handle):
        if x._small is None:
            store = x._store
            shape = x._shape
            slot = enter(rec, store)
            store.family.used = rec
            return (slot, x._index, None if shape == domain else shape)
        x = x._small
    elif not isinstance(x, np.ndarray):
        return rec.scalar(x, char)
    elif FAMILIES.find(owner(x)) is not None:  # memory of a store
        rec.urgent = True
        return operand(rec, large(Handle, store_of(x), x.shape, None), domain, char)
    if x.ndim == 0 and x.dtype.char == char:
        return rec.scalar(x[()], char)
    # Plain memory, which its owner may change before the region runs.
    if x.nbytes <= SNAPSHOT_BYTES:
        x = np.array(x, order="C")
    else:
        rec.urgent = True
    store = Store(x.shape, x.dtype)
    store.bind(x)
    return (rec.declare(store), None, None if x.shape == domain else x.shape)


def enter(rec: Recording, store: Store) -> int:
    """Add a store to a recording; returns its slot.

    Other work pending on its memory runs first.  If the program holds a plain view of the memory, the
    recording becomes urgent.
    """
    head = store._head or store
    if head.exports is not None and store.is_exported():
        rec.urgent = True
    for other in (head.dirty, head.used):
        if other is None or other is rec or other.done:
            continue
        if other is not head.remote or other.device is not rec.device:
            other.materialise(head, writing=True)
    return store.slot if store.rec is rec else rec.declare(store)


def target_of(rec: Recording, out: Handle) -> tuple[int, window.Index | None]:
    """Return the slot and window of the array that the next entry writes; enter its operands before."""
    store = out._store
    head = store._head or store
    if head.is_unused() and _all_of(store, out):
        slot = rec.begin_whole(store)
    else:
        slot = enter(rec, store)
        rec.writes = True
    head.dirty = head.used = rec
    return slot, out._index


def _all_of(store: Store, x: Handle) -> bool:
    """Whether a wrapped array is a view of its whole store, and has each element once."""
    index = x._index
    if index is None:
        return True
    plain = all(offset == 0 and stride in (0, 1) for offset, stride, _ in index)
    return plain and math.prod(x._shape) == store.size


def shape_of(x: Any) -> tuple[int, ...]:
    if isinstance(x, Handle):
        return x._shape if x._small is None else x._small.shape
    return x.shape if isinstance(x, np.ndarray) else ()


def kind_of(x: Any) -> Any:
    """Return the kind of an operand for `resolve`: a dtype character, or the type of a Python scalar."""
    if isinstance(x, Handle):
        if x._small is not None:
            return x._small.dtype.char
        if not x._store.char:
            raise NoCompiledForm
        return x._store.char
    t = type(x)
    if t in SCALARS:
        return t
    if t is np.ndarray and compilable(x):
        return str(x.dtype.char)
    if isinstance(x, np.ndarray) and t is not np.ndarray:
        raise RunEagerly  # a subclass has its own semantics
    if isinstance(x, np.generic) and x.dtype.char in COMPILED:
        return str(x.dtype.char)
    raise NoCompiledForm


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    first = shapes[0]
    for s in shapes:
        if s != first and s != ():
            return np.broadcast_shapes(*shapes)
    return first


def commit(rec: Recording, entry: tuple[Any, ...], warned_as: str | None = None) -> None:
    """Log an entry, and run the recording if it is urgent; ``warned_as``: as in `Recording.sites`."""
    rec.add(entry, user_frame(), warned_as)
    if rec.urgent:
        run_urgent(rec)


enter_by_python, commit_by_python = enter, commit
if BUILT:  # the same in C, for usual cases (`_native/log_entries.h`)
    from dcarray._native.extension import commit, enter


def run_urgent(rec: Recording) -> None:
    """Run a recording that has to run as soon as its last entry is complete.

    Raises
    ------
    MemoryError
        If the last call cannot be computed for want of memory.
    """
    site = rec.sites[-1]
    rec.session.flush(rec)
    left = rec.session.rec
    if rec.done and left.sites and left.sites[-1] is site:
        left.drop()  # the call failed: it must not happen later
        left.check()
