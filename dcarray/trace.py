"""The recorder: turns calls on large handles into entries of the log.

Everything that NumPy would refuse is refused here, at the call, by letting NumPy itself do the call on
empty stand-ins.  What cannot be recorded (small arrays, dtypes that do not compile, unusual arguments)
runs in NumPy at once.
"""

from __future__ import annotations

import math
import sys
from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from . import config, report, window
from .errors import StrictError
from .handle import Handle, NDArray, adopt, large, small
from .ir.ops import OPS
from .loops import ALIASES, UFUNCS, resolve, resolve_fold
from .lowering.memory import empty as pool_empty
from .session import HELD_BYTES, LOCK, Recording, session
from .store import COMPILED, FAMILIES, Store, compilable, owner, store_of

SNAPSHOT_BYTES = 1 << 20  # plain operands up to this size are copied, larger ones are read at once
_SCALARS = (bool, int, float, complex)


class _Eager(Exception):
    """Not for the recorder: NumPy is to do this call at once."""


class _Missing(_Eager):
    """As `_Eager`, because there is no lowering: the report says so, and strict mode refuses."""


# ---- results -----------------------------------------------------------------------------------------
def wrap_result(cls: type[Handle], value: Any) -> Any:
    """What NumPy gave back, as ours: arrays become handles, scalars stay."""
    return adopt(cls, value, config.current().eager_below) if isinstance(value, np.ndarray) else value


def settled(x: Any) -> Any:
    """The plain array of a handle; anything else as it is."""
    return x._settled() if isinstance(x, Handle) else x


def at_once(
    why: Exception, cls: type[Handle], function: Any, inputs: tuple[Any, ...], out: Any = None, **kwargs: Any
) -> Any:
    """The call in NumPy, now, on the memory of the operands; ``why`` is what kept it from the log."""
    if isinstance(why, _Missing):
        missing(function.__name__, inputs)
    if out is not None:
        kwargs["out"] = out._writable() if isinstance(out, Handle) else out
    result = function(*(settled(x) for x in inputs), **kwargs)
    return out if out is not None else wrap_result(cls, result)


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
            file, line = report.user_line()
            raise StrictError(function, file, line)
        report.note(function, sum(math.prod(x._shape) * x._store.dtype.itemsize for x in arrays))


def user_frame() -> FrameType:
    """The innermost frame that is neither ours nor NumPy's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        ours = _OURS.get(id(code))
        if ours is None:
            if len(_OURS) > 10_000:
                _OURS.clear()
            ours = _OURS[id(code)] = report.is_inside(code.co_filename)
        if not ours:
            return frame
        frame = frame.f_back
    return sys._getframe(2)


_OURS: dict[int, bool] = {}  # by the identity of the code object, since hashing one is slow


# ---- operands ----------------------------------------------------------------------------------------
def _operand(rec: Recording, x: Any, domain: tuple[int, ...] | None, char: str) -> Any:
    """The log's argument for an operand; with no domain, its shape is spelled out."""
    if isinstance(x, Handle):
        if x._small is None:
            store = x._store
            shape = x._shape
            slot = _enter(rec, store)
            store.family.used = rec
            return (slot, x._index, None if shape == domain else shape)
        x = x._small
    elif not isinstance(x, np.ndarray):
        return rec.scalar(x, char)
    elif FAMILIES.find(owner(x)) is not None:  # memory that we know by another name
        rec.urgent = True
        return _operand(rec, large(Handle, store_of(x), x.shape, None), domain, char)
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


def _enter(rec: Recording, store: Store) -> int:
    """The slot of a store.  Memory that another recording works on is brought up to date first; what has
    been handed out must not wait."""
    head = store.family
    if head.exports is not None and store.exported():
        rec.urgent = True
    if head.used is not rec or head.dirty is not rec:
        for other in (head.dirty, head.used):
            if other is not None and other is not rec and not other.done:
                other.session.flush(other)
    return store.slot if store.rec is rec else rec.declare(store)


def _target(rec: Recording, out: Handle) -> tuple[int, window.Index | None]:
    store = out._store
    slot = _enter(rec, store)
    store.family.dirty = store.family.used = rec
    return slot, out._index


def _shape_of(x: Any) -> tuple[int, ...]:
    if isinstance(x, Handle):
        return x._shape if x._small is None else x._small.shape
    return x.shape if isinstance(x, np.ndarray) else ()


def _kind(x: Any) -> Any:
    """What `resolve` wants to know of an operand."""
    if isinstance(x, Handle):
        if x._small is not None:
            return x._small.dtype.char
        if not x._store.char:
            raise _Missing
        return x._store.char
    t = type(x)
    if t in _SCALARS:
        return t
    if type(x) is np.ndarray:
        return _plain_kind(x)
    if isinstance(x, np.ndarray):
        raise _Eager  # a subclass has its own ways
    if isinstance(x, np.generic) and x.dtype.char in COMPILED:
        return str(x.dtype.char)
    raise _Missing


def _plain_kind(a: NDArray) -> str:
    if not compilable(a):
        raise _Missing
    return str(a.dtype.char)


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    first = shapes[0]
    for s in shapes:
        if s != first and s != ():
            return np.broadcast_shapes(*shapes)
    return first


_COPIES = {c: f"{c}->{c}" for c in COMPILED}
_DTYPES = {c: np.dtype(c) for c in COMPILED}


def _commit(rec: Recording, entry: tuple[Any, ...]) -> None:
    """Log an entry, and run the recording when it must not wait or has grown large."""
    rec.add(entry, user_frame())
    if rec.urgent or len(rec.log) > 256 or rec.held > HELD_BYTES or len(rec.kinds) > 256:
        _bound(rec)


def _bound(rec: Recording) -> None:
    try:
        rec.session.after(rec)
    except MemoryError:
        rec.drop()  # the call failed: it must not happen later
        raise


# ---- the entries -------------------------------------------------------------------------------------
def elementwise(
    name: str,
    inputs: tuple[Any, ...],
    *,
    out: Any = None,
    dtype: Any = None,
    casting: str = "same_kind",
    where: Any = True,
) -> Any:
    """An element-wise operation.

    Parameters
    ----------
    name : str
        An operation of `dcarray.ir.ops` (a ufunc's name, or ``"where"``).
    inputs : tuple
        Handles, plain arrays and scalars; at least one handle among them or as ``out``.
    out : Handle or ndarray, optional
        Where the result goes.
    dtype, casting, where
        As in NumPy's ufuncs; anything unusual runs in NumPy at once.

    Returns
    -------
    Handle, ndarray or scalar
        ``out`` if given; a NumPy scalar for a 0-d result.
    """
    name = ALIASES.get(name, name)
    cls = _class(*inputs, out)
    with LOCK:
        try:
            if dtype is not None or where is not True:
                raise _Missing
            loop, shape = _meaning(name, inputs, out, casting)
            target = None if out is None else _as_target(cls, out)
            rec = session().rec
            args = [_operand(rec, x, shape, char) for x, char in zip(inputs, loop, strict=False)]
        except _NOT_RECORDED as error:
            why: Exception = error
        else:
            result, slot, index = _result(cls, rec, shape, loop[-1], target)
            _commit(rec, ("map", name, loop, shape, slot, index, *args))
            if out is not None:
                return out
            if len(inputs) == 2 and len(_SIZES) < 4096:
                _USUAL[name, _kind(inputs[0]), _kind(inputs[1])] = loop
                _SIZES[shape] = math.prod(shape)
            return result if shape else result._settled()[()]
    # NumPy does it, or says in its own words what is wrong.
    if name == "where":
        return at_once(why, cls, np.where, inputs)
    kwargs: dict[str, Any] = {} if casting == "same_kind" else {"casting": casting}
    if dtype is not None:
        kwargs["dtype"] = dtype
    if where is not True:
        kwargs["where"] = settled(where)
    return at_once(why, cls, UFUNCS[name], inputs, out, **kwargs)


_NOT_RECORDED = (_Eager, OverflowError, TypeError, ValueError, AttributeError)


def _meaning(name: str, inputs: tuple[Any, ...], out: Any, casting: str) -> tuple[str, tuple[int, ...]]:
    """Loop and domain of a call that can be recorded."""
    loop = resolve(name, tuple([_kind(x) for x in inputs]))
    if loop is None:
        raise _Missing
    shape = _broadcast([_shape_of(x) for x in inputs])
    if out is not None:
        inner, shape = shape, _shape_of(out)
        if inner != shape and np.broadcast_shapes(inner, shape) != shape:
            raise _Eager
        if not np.can_cast(loop[-1], out.dtype, casting):  # type: ignore[arg-type]
            raise _Eager
    _leave_small(shape, inputs, out)
    if name == "power" and loop[0] not in "efdFD":
        raise _Missing  # a negative exponent is an error, which depends on values
    return loop, shape


def _result(
    cls: type[Handle], rec: Recording, shape: tuple[int, ...], char: str, target: Handle | None
) -> tuple[Any, int, window.Index | None]:
    """The handle that an entry writes, with its slot and window."""
    if target is not None:
        return target, *_target(rec, target)
    store = Store(shape, _DTYPES[char])
    return large(cls, store, shape, None), rec.fresh(store), None


def quick(name: str, a: Any, b: Any) -> Any:
    """A binary operation of the most usual kind - two large arrays of one shape, or one and a Python
    scalar - the short way.  Gives None for any other; `elementwise` then does it."""
    ta, tb = type(a), type(b)
    if ta is float or ta is int:
        cls, shape, key = tb, b._shape, (name, ta, b._store.char)
    elif tb is float or tb is int:
        cls, shape, key = ta, a._shape, (name, a._store.char, tb)
    elif ta is tb and a._small is None and b._small is None and a._shape == b._shape:
        cls, shape, key = ta, a._shape, (name, a._store.char, b._store.char)
    else:
        return None
    loop = _USUAL.get(key)
    size = _SIZES.get(shape)
    if loop is None or size is None or size < config.current().eager_below or not shape:
        return None
    with LOCK:
        rec = session().rec
        args: list[Any] = []
        for x, char in ((a, loop[0]), (b, loop[1])):
            if type(x) is not cls:
                try:
                    args.append(rec.scalar(x, char))
                except OverflowError:
                    return None
                continue
            store = x._store
            head = store.family
            if store.rec is rec and head.exports is None:
                slot = store.slot
            else:
                slot = _enter(rec, store)
            head.used = rec
            args.append((slot, x._index, None))
        store = Store(shape, _DTYPES[loop[-1]])
        slot = rec.fresh(store)
        rec.add(("map", name, loop, shape, slot, None, *args), user_frame())
        if rec.urgent or len(rec.log) > 256 or rec.held > HELD_BYTES or len(rec.kinds) > 256:
            _bound(rec)
    result = large(cls, store, shape, None)
    return result


# What `elementwise` found out, for `quick`: loops by name and operands, sizes by shape.
_USUAL: dict[tuple[Any, ...], str] = {}
_SIZES: dict[tuple[int, ...], int] = {}


def _class(*operands: Any) -> type[Handle]:
    for x in operands:
        if isinstance(x, Handle):
            return type(x)
    raise TypeError("no array of ours among the operands")


def _leave_small(shape: tuple[int, ...], inputs: tuple[Any, ...], out: Any) -> None:
    """Leave little work on settled memory to NumPy, and empty work always."""
    size = 1
    for n in shape:
        size *= n
    if size == 0:
        raise _Eager
    if size < config.current().eager_below and all(
        x._clean() for x in (*inputs, out) if isinstance(x, Handle)
    ):
        raise _Eager


def _as_target(cls: type[Handle], out: Any) -> Handle:
    """The large handle to write into."""
    if isinstance(out, Handle):
        if out._small is not None or out._readonly:
            raise _Eager
        return out
    if type(out) is not np.ndarray or not compilable(out) or not out.flags.writeable:
        raise _Eager
    session().rec.urgent = True  # its owner may look at it as soon as the call returns
    x: Handle = large(cls, store_of(out), out.shape, None)
    return x


def reduce(
    name: str,
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """``ufunc.reduce`` over any axes.

    Parameters
    ----------
    name : str
        A ufunc of `dcarray.ir.ops` that folds.
    x : Handle
    axis : int, tuple of int or None
        None is all axes.
    dtype, keepdims, out, initial, where
        As in `numpy.ufunc.reduce`.

    Returns
    -------
    Handle or scalar
    """
    cls = type(x)
    shape = _shape_of(x)
    with LOCK:
        try:
            if x._small is not None:
                raise _Eager
            axes = tuple(range(len(shape))) if axis is None else normalize_axis_tuple(axis, len(shape))
            _leave_small(shape, (x,), None)
            if initial is not np._NoValue or where is not True or out is not None or not axes:
                raise _Missing
            loop = resolve_fold(name, _kind(x), dtype)
            if loop is None or loop[-1] in "eFD" or not OPS[name].combine:
                raise _Missing
            rec = session().rec
            arg = _operand(rec, x, shape, loop[0])
        except _NOT_RECORDED as error:
            why: Exception = error
        else:
            kept = [1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes]
            result, slot, _ = _result(cls, rec, tuple(kept), loop[-1], None)
            _commit(rec, ("fold", name, loop, shape, axes, bool(keepdims), slot, arg))
            return result if kept else result._settled()[()]
    kwargs: dict[str, Any] = {} if initial is np._NoValue else {"initial": initial}
    if where is not True:
        kwargs["where"] = settled(where)
    fold = UFUNCS[name].reduce
    return at_once(why, cls, fold, (x,), out, axis=axis, dtype=dtype, keepdims=keepdims, **kwargs)


def cast(x: Any, dtype: Any, *, copy: bool = True) -> Any:
    """``x.astype(dtype)`` with unsafe casting."""
    dtype = np.dtype(dtype)
    cls = type(x)
    if not copy and x.dtype == dtype:
        return x
    shape = _shape_of(x)
    with LOCK:
        try:
            _leave_small(shape, (x,), None)
            if not (dtype.char in COMPILED and dtype.isnative) or (x.dtype.kind == "c" != dtype.kind):
                raise _Missing
            kind = _kind(x)
            rec = session().rec
            arg = _operand(rec, x, shape, kind)
        except _Eager as error:
            why: Exception = error
        else:
            result, slot, _ = _result(cls, rec, shape, dtype.char, None)
            _commit(rec, ("map", "cast", f"{kind}->{dtype.char}", shape, slot, None, arg))
            return result
    return at_once(why, cls, np.ndarray.astype, (x, dtype))


def assign(target: Any, value: Any) -> None:
    """``target[...] = value``, where ``target`` is a view already."""
    shape = _shape_of(target)
    size = _SIZES.get(shape)
    if size is not None and size >= config.current().eager_below and type(value) is type(target):
        char = target._store.char
        if value._small is None and value._shape == shape and value._store.char == char != "":
            if not target._readonly:
                with LOCK:
                    rec = session().rec
                    store = value._store
                    source = _enter(rec, store)
                    store.family.used = rec
                    slot, index = _target(rec, target)
                    loop = _COPIES[char]
                    _commit(rec, ("map", "cast", loop, shape, slot, index, (source, value._index, None)))
                return
    with LOCK:
        try:
            char, kind = _assignment(target, value, shape)
            rec = session().rec
            arg = _operand(rec, value, shape, kind)
        except _NOT_RECORDED as error:
            if isinstance(error, _Missing):
                missing("setitem", (target, value))
        else:
            slot, index = _target(rec, target)
            _commit(rec, ("map", "cast", f"{kind}->{char}", shape, slot, index, arg))
            return
    a = settled(value)
    target._writable()[...] = a


def _assignment(target: Handle, value: Any, shape: tuple[int, ...]) -> tuple[str, str]:
    """The dtype characters of target and value of an assignment that can be recorded."""
    if target._small is not None or target._readonly:
        raise _Eager
    if not isinstance(value, (Handle, np.ndarray, np.generic, *_SCALARS)):
        raise _Eager
    _leave_small(shape, (value, target), None)
    char = target._store.char
    if not char:
        raise _Missing
    kind = _kind(value)
    if isinstance(kind, type):
        kind = char
    if np.dtype(kind).kind == "c" != target.dtype.kind:
        raise _Missing
    given = _shape_of(value)
    if given != shape and np.broadcast_shapes(given, shape) != shape:
        raise _Eager  # an error, or leading axes of length 1, which NumPy drops here
    return char, kind


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """``numpy.matmul`` of two operands."""
    cls = _class(a, b, out)
    with LOCK:
        try:
            sa, sb = _shape_of(a), _shape_of(b)
            if not sa or not sb:
                raise _Eager
            shape = _matmul_shape(sa, sb)
            _leave_small((*shape, sa[-1]), (a, b), None)
            kinds = (_kind(a), _kind(b))
            if out is not None or kinds[0] not in _BLAS or kinds[0] != kinds[1] or 0 in shape:
                raise _Missing
            rec = session().rec
            args = tuple(_operand(rec, x, None, kinds[0]) for x in (a, b))
        except _NOT_RECORDED as error:
            why: Exception = error
        else:
            result, slot, _ = _result(cls, rec, shape, kinds[0], None)
            _commit(rec, ("call", "blas.matmul", (slot,), args, ()))
            return result if shape else result._settled()[()]
    return at_once(why, cls, np.matmul, (a, b), out)


_BLAS = ("f", "d", "F", "D")


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ValueError("the inner dimensions differ")
    stack = np.broadcast_shapes(a[:-2], b[:-2])
    return (*stack, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def empty(shape: Any, dtype: Any = np.float64) -> Any:
    """An array of uninitialised memory."""
    from .array import ndarray

    dtype = np.dtype(dtype)
    below = config.current().eager_below
    a = np.empty(shape, dtype)
    if a.size < below or dtype.char not in COMPILED or not dtype.isnative:
        return small(ndarray, a)
    store = Store(a.shape, dtype)
    store.bind(pool_empty(a.shape, dtype))
    return large(ndarray, store, a.shape, None)
