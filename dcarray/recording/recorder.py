"""The recorder: turns calls on large handles into entries of the log.

Calls that cannot be recorded (on small arrays, of dtypes that do not compile, with unusual arguments) run at
once in NumPy.  So do invalid calls, for which NumPy raises its own errors.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dcarray.core import config, window
from dcarray.core.backend import backend
from dcarray.core.devices import common_device
from dcarray.core.handle import Handle, adopt, large
from dcarray.core.processes import communicator
from dcarray.core.shard import empty_sharded
from dcarray.core.store import Store, compilable, compiles, store_of
from dcarray.core.strides import axes_of, order_of, order_of_copy
from dcarray.core.ufunc_loops import ALIASES, UFUNCS, resolve, resolve_fold
from dcarray.ir.ops import LOOPS_OF, OPS
from dcarray.tiering import policy

from . import fast_path
from .log import Recording
from .operands import (
    DTYPES,
    SCALARS,
    NoCompiledForm,
    RunEagerly,
    broadcast,
    commit,
    is_lossy_truth,
    kind_of,
    note_fallback,
    operand,
    plain_of,
    run_eagerly,
    shape_of,
    target_of,
)
from .power import power_operation
from .session import LOCK, recording, session


# ---- the entries -------------------------------------------------------------------------------------
def elementwise(
    name: str,
    inputs: tuple[Any, ...],
    *,
    out: Any = None,
    dtype: Any = None,
    casting: str = "same_kind",
    warned_as: str | None = None,
) -> Any:
    """Record an element-wise operation.

    Parameters
    ----------
    name : str
        An operation of `dcarray.ir.ops` (a ufunc's name, or ``"where"``).
    inputs : tuple
        Handles, plain arrays and scalars; at least one handle among them or as ``out``.
    out : Handle or ndarray, optional
        Where the result goes.
    dtype, casting
        As in NumPy's ufuncs; unusual values run eagerly in NumPy.
    warned_as : str, optional
        The name in NumPy's warnings, if another function was called.

    Returns
    -------
    Handle, ndarray or scalar
        ``out`` if given; a NumPy scalar for a 0-d result.
    """
    name = ALIASES.get(name, name)
    usual = dtype is None and casting == "same_kind" and warned_as is None
    if usual and (recorded := fast_path.elementwise(name, inputs, out)) is not None:
        return recorded
    cls = class_of(*inputs, out)
    with LOCK, recording() as rec:
        try:
            if dtype is not None or casting not in ("same_kind", "unsafe"):  # others may refuse operands
                raise NoCompiledForm
            loop, shape, whole = _loop_and_domain(name, inputs, out, casting)
            target = None if out is None else _as_target(cls, out)
            op = name if name != "power" else power_operation(inputs[1], loop, shape)
            args = [operand(rec, x, shape, char) for x, char in zip(inputs, loop, strict=False)]
        except NOT_RECORDED as error:
            lacking = isinstance(error, NoCompiledForm)
        else:
            order = order_of(inputs, shape) if target is None else None
            result, slot, index = result_of(cls, rec, shape, loop[-1], target, order)
            commit(rec, ("map", op, loop, shape, slot, index, *args), warned_as or LOOPS_OF.get(op))
            if whole:
                fast_path.remember(name, inputs, loop, shape)
            return out if out is not None else result if shape else result._evaluated()[()]
    # NumPy does it, or raises its own error.
    if name == "where":
        return run_eagerly(lacking, cls, np.where, inputs)
    kwargs: dict[str, Any] = {} if casting == "same_kind" else {"casting": casting}
    if dtype is not None:
        kwargs["dtype"] = dtype
    return run_eagerly(lacking, cls, UFUNCS[name], inputs, out, **kwargs)


DECIDED_EARLY = frozenset({"logical_or", "logical_and", "maximum", "minimum"})
# Errors after which NumPy does the call, or raises its own.  A RuntimeError: more axes than NumPy broadcasts.
NOT_RECORDED = (RunEagerly, AttributeError, OverflowError, RuntimeError, TypeError, ValueError)


def _loop_and_domain(
    name: str, inputs: tuple[Any, ...], out: Any, casting: str
) -> tuple[str, tuple[int, ...], bool]:
    """Return the inner loop and the domain of a call that can be recorded, and whether the inputs alone
    broadcast to the domain."""
    loop = resolve(name, tuple([kind_of(x) for x in inputs]))
    if loop is None:
        raise NoCompiledForm
    shape = inner = broadcast([shape_of(x) for x in inputs])
    if out is not None:
        shape = shape_of(out)
        wider = inner != shape and np.broadcast_shapes(inner, shape) != shape
        if wider or not np.can_cast(loop[-1], out.dtype, casting):  # type: ignore[arg-type]
            raise RunEagerly
        if loop[-1] in "FD" and out.dtype.kind != "c":
            raise NoCompiledForm  # NumPy warns of the discarded imaginary part
    refuse_small(shape, inputs, out, policy.PASS if loop[-1] == "?" != loop[0] else 1)
    if name[:8] == "logical_" and any(map(is_lossy_truth, inputs)):
        raise NoCompiledForm
    return loop, shape, inner == shape


def result_of(
    cls: type[Handle],
    rec: Recording,
    shape: tuple[int, ...],
    char: str,
    target: Handle | None = None,
    order: tuple[int, ...] | None = None,
) -> tuple[Any, int, window.Index | None]:
    """Return the handle that the next entry writes, ``target`` or a new one, with its slot and window."""
    if target is not None:
        return target, *target_of(rec, target)
    if order is None:
        store = Store(shape, DTYPES[char])
        return large(cls, store, shape, None), rec.declare_new(store), None
    store = Store(tuple([shape[k] for k in order]), DTYPES[char])
    store.permuted = True
    index = tuple([(0, 1, k) for k in order])
    return large(cls, store, shape, index), rec.declare_new(store), index


def class_of(*operands: Any) -> type[Handle]:
    """Return the class of the arrays among operands, which are all on its device."""
    cls: type[Handle] | None = None
    for x in operands:
        if isinstance(x, Handle):
            shape_of(x)  # gathers selections, which ends the recording, before the next one is used
            if cls is None:
                cls = type(x)
            elif type(x) is not cls and x._device is not cls._device:
                common_device(None, operands)
    if cls is None:
        raise TypeError("no dcarray array among the operands")
    return cls


def refuse_small(shape: tuple[int, ...], inputs: tuple[Any, ...], out: Any, factor: int = 1) -> None:
    """Raise `RunEagerly` if there are few elements and no operand is pending, and for empty arrays always."""
    size = 1
    for n in shape:
        size *= n
    if size == 0:
        raise RunEagerly
    if policy.eager_call(size, (*inputs, out), factor):
        raise RunEagerly


def _as_target(cls: type[Handle], out: Any) -> Handle:
    """Return ``out`` as a large handle into which a recorded call can write."""
    if isinstance(out, Handle):
        if out._small is not None or out._readonly:
            raise RunEagerly
        if not out._store.char:
            raise NoCompiledForm
        return out
    if type(out) is not np.ndarray or not compilable(out) or not out.flags.writeable:
        raise RunEagerly
    rec = session().rec
    rec.urgent = True  # its owner may read it as soon as the call returns
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
    warned_as: str | None = None,
) -> Any:
    """Record ``ufunc.reduce`` over any axes.

    Parameters
    ----------
    name : str
        A ufunc of `dcarray.ir.ops` that folds.
    x : Handle
    axis : int, tuple of int or None
        None is all axes.
    dtype, keepdims, out, initial, where
        As in `numpy.ufunc.reduce`.
    warned_as : str, optional
        As for `elementwise`.

    Returns
    -------
    Handle or scalar
    """
    shape = shape_of(x)
    cls = type(x)
    kept = keepdims is not False and bool(operator.index(keepdims))
    with LOCK, recording() as rec:
        try:
            if x._small is not None:
                raise RunEagerly
            axes = axes_of(axis, len(shape))
            every = len(axes) == len(shape)
            # NumPy stops at the first truth that decides, and reads at the speed of memory until then
            decided = every and x._store.char == "?" and name in DECIDED_EARLY
            refuse_small(shape, (x,), None, policy.AT_MEMORY_SPEED if decided else policy.PASS)
            if initial is not np._NoValue or where is not True or out is not None or not axes:
                raise NoCompiledForm
            loop = resolve_fold(name, kind_of(x), dtype)
            if loop is None or loop[-1] in "eFD" or not OPS[name].combine:
                raise NoCompiledForm
            order = None if every else order_of((x,), shape)
            if order is not None:
                folded = tuple([order.index(k) for k in axes])
                result = reduce(
                    name, x.transpose(order), folded, dtype=dtype, keepdims=keepdims, warned_as=warned_as
                )
                return restore_axes(result, order, axes, keepdims)
            arg = operand(rec, x, shape, loop[0])
        except NOT_RECORDED as error:
            lacking = isinstance(error, NoCompiledForm)
        else:
            return record_fold(rec, x, arg, name, loop, axes, kept, warned_as)
    kwargs: dict[str, Any] = {} if initial is np._NoValue else {"initial": initial}
    if where is not True:
        kwargs["where"] = plain_of(where)
    fold = UFUNCS[name].reduce
    return run_eagerly(lacking, cls, fold, (x,), out, axis=axis, dtype=dtype, keepdims=keepdims, **kwargs)


def record_fold(
    rec: Recording,
    x: Any,
    arg: Any,
    name: str,
    loop: str,
    axes: tuple[int, ...],
    keepdims: bool,
    warned_as: str | None = None,
) -> Any:
    """Record a reduction of ``x``, which is ``arg`` in the log; return the result, perhaps a scalar."""
    kept = tuple([1 if k in axes else n for k, n in enumerate(x._shape) if keepdims or k not in axes])
    result, slot, _ = result_of(type(x), rec, kept, loop[-1])
    commit(rec, ("fold", name, loop, x._shape, axes, keepdims, slot, arg), warned_as)
    if kept:
        return result
    if not rec.done:
        rec.session.flush_sparing(rec, x._store)
    return result._evaluated()[()]


def restore_axes(result: Any, order: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return a reduction over ``axes`` of an array with axes permuted to ``order``, in the array's order."""
    kept = [k for k in order if keepdims or k not in axes]
    return result.transpose([kept.index(k) for k in sorted(kept)])


def cast(x: Any, dtype: Any, *, copy: bool = True, order: str = "K") -> Any:
    """Record ``x.astype(dtype, order)``, casting unsafely; the order is K, C or, for a copy, F."""
    dtype = np.dtype(dtype)
    shape = shape_of(x)
    cls = type(x)
    if not copy and x.dtype == dtype:
        return x
    with LOCK, recording() as rec:
        try:
            refuse_small(shape, (x,), None)
            if not compiles(dtype) or (x.dtype.kind == "c" != dtype.kind):
                raise NoCompiledForm
            kind = kind_of(x)
            arg = operand(rec, x, shape, kind)
        except RunEagerly as error:
            lacking = isinstance(error, NoCompiledForm)
        else:
            columns = tuple(range(len(shape)))[::-1] if order == "F" and len(shape) > 1 else None
            axes = order_of_copy(x) if order == "K" else columns
            result, slot, index = result_of(cls, rec, shape, dtype.char, None, axes)
            commit(rec, ("map", "cast", f"{kind}->{dtype.char}", shape, slot, index, arg))
            return result
    return run_eagerly(lacking, cls, np.ndarray.astype, (x, dtype, order))


def assign(target: Any, value: Any) -> None:
    """Record ``target[...] = value``, where ``target`` is a view already."""
    if isinstance(value, Handle) and _are_same(target, value):
        return  # as after ``x[key] += y``
    if fast_path.elementwise("cast", (value,), target) is not None:
        return
    shape, _ = shape_of(target), shape_of(value)
    with LOCK, recording() as rec:
        try:
            char, kind = _assignment(target, value, shape)
            arg = operand(rec, value, shape, kind)
        except NOT_RECORDED as error:
            if isinstance(error, NoCompiledForm):
                note_fallback("setitem", (target, value))
        else:
            slot, index = target_of(rec, target)
            commit(rec, ("map", "cast", f"{kind}->{char}", shape, slot, index, arg))
            return
    a = plain_of(value)
    target._writable()[...] = a


def _are_same(x: Handle, y: Handle) -> bool:
    """Whether two arrays are the same elements, and may be written."""
    if x._small is not None or y._small is not None or x._store is not y._store or x._readonly:
        return False
    return x._shape == y._shape and x._window() == y._window()


def _assignment(target: Handle, value: Any, shape: tuple[int, ...]) -> tuple[str, str]:
    """Return the dtype characters of target and value of an assignment that can be recorded."""
    if target._small is not None or target._readonly:
        raise RunEagerly
    if not isinstance(value, (Handle, np.ndarray, np.generic, *SCALARS)):
        raise RunEagerly
    if isinstance(value, np.generic) and value.dtype != target.dtype:
        raise RunEagerly  # NumPy converts scalars by value
    refuse_small(shape, (value, target), None)
    char = target._store.char
    if not char:
        raise NoCompiledForm
    kind = kind_of(value)
    if isinstance(kind, type):
        kind = char
    if np.dtype(kind).kind == "c" != target.dtype.kind:
        raise NoCompiledForm
    given = shape_of(value)
    if given != shape and np.broadcast_shapes(given, shape) != shape:
        raise RunEagerly  # an error, or leading axes of length 1, which NumPy drops here
    return char, kind


def assign_where(target: Any, condition: Any, value: Any) -> bool:
    """Record ``target[...] = where(condition, value, target)``; False if it cannot be recorded.

    The condition is boolean; the value is of the target's dtype, or of one that is cast to it safely.
    """
    shape = target._shape
    class_of(target, condition, value)
    with LOCK, recording() as rec:
        try:
            if target._readonly or not target._store.char:
                raise RunEagerly
            refuse_small(shape, (condition, value, target), None)
            char = target._store.char
            args = [operand(rec, x, shape, kind_of(x)) for x in (condition, value, target)]
        except NOT_RECORDED:
            return False
        slot, index = target_of(rec, target)
        commit(rec, ("map", "where", f"?{char}{char}->{char}", shape, slot, index, *args))
    return True


def empty(cls: type[Handle], shape: Any, dtype: Any = np.float64) -> Any:
    """Return an array of uninitialised memory."""
    dtype = np.dtype(dtype)
    below = config.current().eager_below
    a = np.empty(shape, dtype)
    if a.size < below or not compiles(dtype):
        return adopt(cls, a, below)
    ranks = communicator()
    if ranks is not None and a.shape and a.size > config.current().distribute_above:
        layout = backend().default_layout(a.shape, config.current(), ranks)
        return large(cls, empty_sharded(a.shape, dtype, layout, ranks), a.shape, None)
    store = Store(a.shape, dtype)
    if ranks is not None:
        store.bind(a)
    return large(cls, store, a.shape, None)
