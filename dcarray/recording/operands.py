"""Operands and results: how arrays and scalars enter a log, and how NumPy serves what does not."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from types import FrameType
from typing import Any

import numpy as np

from dcarray.core import config, counters, fp_state, window
from dcarray.core.backend import NOT_DISTRIBUTED, backend, try_call
from dcarray.core.errors import StrictError
from dcarray.core.handle import Handle, NDArray, adopt, large
from dcarray.core.processes import communicating, communicator
from dcarray.core.store import COMPILED, FAMILIES, Store, compilable, owner, store_of
from dcarray.tiering import call_sites, eager_period, policy

from .log import Recording

SNAPSHOT_BYTES = 1 << 20  # plain operands up to this size are copied, larger ones are read at once
SCALARS = (bool, int, float, complex)
DTYPES = {c: np.dtype(c) for c in COMPILED}


class Eager(Exception):
    """Not for the recorder: NumPy is to do this call at once."""


class Missing(Eager):
    """As `Eager`, because there is no lowering: the report says so, and strict mode refuses."""


# ---- results -----------------------------------------------------------------------------------------
def wrap_result(cls: type[Handle], value: Any) -> Any:
    """What NumPy gave back, as ours: arrays become handles; scalars and subclasses stay."""
    return adopt(cls, value, config.current().eager_below) if type(value) is np.ndarray else value


def evaluated(x: Any) -> Any:
    """The plain array of a handle; anything else as it is."""
    return x._evaluated() if isinstance(x, Handle) else x


def run_eagerly(
    lacking: bool,
    cls: type[Handle],
    function: Any,
    inputs: tuple[Any, ...],
    out: Any = None,
    forget: bool = False,
    always: bool = False,
    **kwargs: Any,
) -> Any:
    """The call in NumPy, now, on the memory of the operands, for want of a lowering or because it is little,
    ``always`` if it is so whatever their sizes; with ``forget`` nothing is learned of that.

    It is not told which exception kept the call from the log: to keep one is to keep its frames, and in them
    itself and the operands, until the garbage collector comes.
    """
    if out is None and communicator() is not None:
        found = _in_blocks(function, inputs, kwargs)
        if found is not NotImplemented:
            return found
    if lacking:
        missing(function.__name__, inputs)
    elif not forget:
        learn(inputs, always)
    if out is not None:
        kwargs["out"] = out._writable() if isinstance(out, Handle) else out
    result = function(*(evaluated(x) for x in inputs), **kwargs)
    return out if out is not None else wrap_result(cls, result)


def _in_blocks(function: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call over the ranks where operands lie in blocks; NotImplemented if that is not the way."""
    if function is np.matmul or function is np.dot:  # which are the same here but for their names
        return _product_in_blocks(function.__name__, inputs, kwargs)
    ufunc = getattr(function, "__self__", function)
    if not isinstance(ufunc, np.ufunc):
        return NotImplemented
    try:
        method = "__call__" if ufunc is function else function.__name__
        found = try_call(getattr(np.ufunc, method), (ufunc, *inputs), kwargs)
    except (TypeError, ValueError):  # which NumPy says in its words
        return NotImplemented
    return NotImplemented if found is NOT_DISTRIBUTED else found


def _product_in_blocks(name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a product.  Each rank's part may raise other floating-point exceptions: when it is done,
    all ranks warn of, or raise, what any has found."""
    state = fp_state.captured()
    usual = fp_state.modes(state) is not None  # else each rank calls, or prints, what it finds
    try:
        with fp_state.collected() if usual else nullcontext(fp_state.Collected()) as seen:
            found = try_call(np.ufunc.__call__, (np.matmul, *inputs), kwargs)
    except (TypeError, ValueError):
        return NotImplemented
    if found is NOT_DISTRIBUTED:
        return NotImplemented
    comm = communicator()
    if comm is not None and usual and fp_state.watched(state):
        with communicating():
            flags = backend().combine_flags(comm, seen.flags)
        fp_state.tell(fp_state.blame(None, state, flags), lambda _: name, lambda _: counters.user_line())
    return found


def learn(inputs: Iterable[Any], always: bool = False) -> None:
    """Note that what the user asks for here is done by NumPy at once: it will be again, on operands of which
    none is pending or larger, if they are not too large, or if NumPy does it ``always``
    (`dcarray.tiering.call_sites`)."""
    if eager_period.active():  # which says nothing of the place
        return
    values = list(inputs)
    large = [x for x in values if isinstance(x, Handle) and x._small is None]
    plain = [x.size for x in values if type(x) is np.ndarray]
    size = max([*(math.prod(x._shape) for x in large), *plain], default=0)
    few = always or policy.eager(size, policy.PASS)
    if size > 0 and few and all([x._idle() for x in large]):
        frame = user_frame()
        call_sites.promote([(frame.f_code, frame.f_lasti, None)], size, always=True)


def missing(function: str, inputs: tuple[Any, ...]) -> None:
    """Note that a call on large or uncompiled arrays goes through NumPy for want of a lowering.

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
    """The innermost frame that is neither ours nor NumPy's, from ``depth`` calls up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        ours = OURS.get(id(code))
        if ours is None:
            if len(OURS) > 10_000:
                OURS.clear()
            ours = OURS[id(code)] = counters.is_inside(code.co_filename)
        if not ours:
            return frame
        frame = frame.f_back
    return sys._getframe(depth)


OURS: dict[int, bool] = {}  # by the identity of the code object, since hashing one is slow


def slight(x: Any) -> bool:
    """Is this one of Python's numbers that may be true and be zero in a dtype of fewer bits, or that NumPy
    takes for no C long?"""
    if type(x) is int:
        return not -(2**63) <= x < 2**63
    return type(x) in (float, complex) and 0.0 < abs(x) < 1e-7


# ---- operands ----------------------------------------------------------------------------------------
def operand(rec: Recording, x: Any, domain: tuple[int, ...] | None, char: str) -> Any:
    """The log's argument for an operand; with no domain, its shape is spelled out."""
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
    elif FAMILIES.find(owner(x)) is not None:  # memory that we know by another name
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
    """The slot of a store.  Memory that another recording works on is brought up to date first; what has
    been handed out must not wait."""
    head = store._head or store
    if head.exports is not None and store.exported():
        rec.urgent = True
    for other in (head.dirty, head.used):
        if other is not None and other is not rec and not other.done and other is not head.shard:
            other.materialise(head, writing=True)
    return store.slot if store.rec is rec else rec.declare(store)


def target_of(rec: Recording, out: Handle) -> tuple[int, window.Index | None]:
    """The slot and window of an array that the next entry writes.  Its operands must have been entered."""
    store = out._store
    head = store._head or store
    if head.blank() and _all_of(store, out):
        slot = rec.begun(store)
    else:
        slot = enter(rec, store)
        rec.writes = True
    head.dirty = head.used = rec
    return slot, out._index


def _all_of(store: Store, x: Handle) -> bool:
    """Has an array that may be written all elements of its store?"""
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
    """What `resolve` wants to know of an operand."""
    if isinstance(x, Handle):
        if x._small is not None:
            return x._small.dtype.char
        if not x._store.char:
            raise Missing
        return x._store.char
    t = type(x)
    if t in SCALARS:
        return t
    if type(x) is np.ndarray:
        return _plain_kind(x)
    if isinstance(x, np.ndarray):
        raise Eager  # a subclass has its own ways
    if isinstance(x, np.generic) and x.dtype.char in COMPILED:
        return str(x.dtype.char)
    raise Missing


def _plain_kind(a: NDArray) -> str:
    if not compilable(a):
        raise Missing
    return str(a.dtype.char)


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    first = shapes[0]
    for s in shapes:
        if s != first and s != ():
            return np.broadcast_shapes(*shapes)
    return first


def commit(rec: Recording, entry: tuple[Any, ...], warned_as: str | None = None) -> None:
    """Log an entry, and run the recording when it must not wait; ``warned_as``: as in `Recording.sites`."""
    rec.add(entry, user_frame(), warned_as)
    if rec.urgent:
        at_last(rec)


def at_last(rec: Recording) -> None:
    """Run a recording that must not wait.

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
