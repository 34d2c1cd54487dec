"""The fast path into the log for common calls, with a cache of the inner loops of operations.

The recorder finds out the inner loop for a call and caches it here, by the name of the operation and the
kinds of its operands.  The same call on other arrays then costs about two microseconds.
"""

from __future__ import annotations

from math import prod
from sys import _getframe
from typing import Any

from dcarray.core.handle import Handle, large
from dcarray.core.store import COMPILED, Store
from dcarray.tiering.policy import eager, eager_call

from .log import Recording
from .operands import DTYPES, IS_INTERNAL, commit, enter, kind_of, run_urgent, shape_of, target_of, user_frame
from .session import LOCK, Session, session

_new = object.__new__
_MOST = 4096
# by name and kinds of operands, and by the shapes of two that are broadcast: the loop, its result's dtype,
# and the shape that they are broadcast to
SIGNATURES: dict[tuple[Any, ...], tuple[str, Any, tuple[int, ...]]] = {}
# what `kind_of` says of scalars, by type
_SCALARS: dict[type, Any] = {float: float, int: int} | {dtype.type: c for c, dtype in DTYPES.items()}
_COPIES = {c: f"{c}->{c}" for c in COMPILED}


def binary(name: str, a: Any, b: Any, where: Session | None = None) -> Any:
    """Record a binary operation of two large arrays, or of one and a Python scalar, in a device's session, or
    in this thread's; returns the result.

    Returns None for any other operands; the caller then tries `elementwise`.
    """
    ta, tb = type(a), type(b)
    if ta is tb:
        if a._small is not None or b._small is not None:
            return None
        shape, other = a._shape, b._shape
        one, two = a._store, b._store
        cls, left, right, permuted = ta, one.char, two.char, one.permuted or two.permuted
    elif tb is float or tb is int:
        one = a._store
        cls, shape, left, right, permuted = ta, a._shape, one.char, tb, one.permuted
    elif ta is float or ta is int:
        two = b._store
        cls, shape, left, right, permuted = tb, b._shape, ta, two.char, two.permuted
    else:
        return None
    spread = ta is tb and shape != other
    known = SIGNATURES.get((name, left, right, shape, other) if spread else (name, left, right))
    if known is None or permuted:
        return None
    loop, dtype, whole = known
    if spread:
        shape = whole
    size = prod(shape)
    if not size or not shape or (where is None and eager_call(size, (a, b), 1, loop)):
        return None
    with LOCK:
        rec = (where or session()).ready()
        try:
            x: Any = _array(rec, a) if ta is cls else rec.scalar(a, loop[0])
            y: Any = _array(rec, b) if tb is cls else rec.scalar(b, loop[1])
        except OverflowError:
            return None
        if spread:
            x = x if a._shape == shape else (*x[:2], a._shape)
            y = y if b._shape == shape else (*y[:2], b._shape)
        frame = _getframe(1)  # the user's, if there is only an operator in C between us
        if IS_INTERNAL.get(id(frame.f_code)) is not False:
            frame = user_frame(2)
        store = Store(shape, dtype, None, size)
        rec.add(("map", name, loop, shape, rec.declare_new(store), None, x, y), frame)
        if rec.urgent:
            run_urgent(rec)
    result = _new(cls)  # as `large` does; its call would be a twentieth of the whole
    result._small = result._index = result._ndarray = result._small_view = None
    result._store = store
    result._shape = shape
    result._readonly = False
    return result


def unary(name: str, a: Any, where: Session | None = None) -> Any:
    """Record an operation of one large array in the session ``where``, or in this thread's; returns the
    result, or None if only the recorder can record it."""
    store = a._store
    found = SIGNATURES.get((name, store.char))
    if found is None or store.permuted or not a._shape:
        return None
    return record_known(name, found[0], a._shape, (a,), waits=not a._idle(), where=where)


def elementwise(name: str, inputs: tuple[Any, ...], out: Any = None) -> Any:
    """Record an operation on large arrays of one shape and scalars.  Its result is written into ``out``, one
    of them or another array of this shape, or a new array.  Return it; None if only `recorder.elementwise`
    can record it."""
    first = out if out is not None else next((x for x in inputs if isinstance(x, Handle)), None)
    if not isinstance(first, Handle) or first._small is not None or (out is not None and out._readonly):
        return None
    shape = first._shape
    kinds: list[Any] = []
    for x in inputs:
        if isinstance(x, Handle):
            if x._small is not None or x._shape != shape or x._store.permuted:
                return None
            kinds.append(x._store.char)
        else:
            kind = _SCALARS.get(type(x))
            if kind is None:
                return None
            kinds.append(kind)
    found = SIGNATURES.get((name, *kinds))
    if found is None or (out is not None and found[0][-1] != out._store.char):
        return None
    loop, dtype, _ = found
    size = prod(shape)
    if not size or not shape or eager_call(size, (out, *inputs), 1, loop):
        return None
    try:
        return _logged(name, loop, shape, dtype, size, inputs, out, type(first))
    except OverflowError:
        return None


def outer(name: str, a: Any, b: Any) -> Any:
    """Record ``ufunc.outer`` of two large arrays whose loop is cached; returns the result, or None."""
    if type(a) is not type(b) or a._small is not None or b._small is not None:
        return None
    one, two = a._store, b._store
    first, second = a._shape, b._shape
    found = SIGNATURES.get((name, one.char, two.char))
    size = prod(first) * prod(second)
    shape = first + second
    if found is None or not shape or eager(size) or one.permuted or two.permuted:
        return None
    loop, dtype, _ = found
    spread = first + (1,) * len(second)  # as NumPy broadcasts
    with LOCK:
        rec = session().ready()
        x, y = _array(rec, a), _array(rec, b)
        store = Store(shape, dtype, None, size)
        index = a._window() if x[1] is None else x[1]
        left = (x[0], index, None if spread == shape else spread)
        right = (y[0], y[1], None if second == shape else second)
        commit(rec, ("map", name, loop, shape, rec.declare_new(store), None, left, right))
    return large(type(a), store, shape, None)


def _array(rec: Recording, x: Any) -> Any:
    """Return the argument in the log that stands for an array of the domain's shape."""
    store = x._store
    head = store._head or store
    if store.rec is not rec or head.exports is not None:
        enter(rec, store)
    head.used = rec
    return (store.slot, x._index, None)


def remember(name: str, inputs: tuple[Any, ...], loop: str, shape: tuple[int, ...]) -> None:
    """Cache the loop that `recorder.elementwise` found, if the kinds of the operands determine it."""
    if name[:8] == "logical_" and not all(isinstance(x, Handle) for x in inputs):
        return  # it depends on the value of a number
    if name == "power" and type(inputs[1]) not in (int, float):
        return  # another operation with an array than with a number of NumPy's
    if len(inputs) > 3 or not shape:
        return
    if len(SIGNATURES) > _MOST:
        SIGNATURES.clear()
    key = name, *map(kind_of, inputs)
    SIGNATURES[key] = found = loop, DTYPES[loop[-1]], shape
    if len(inputs) == 2 and all(isinstance(x, Handle) for x in inputs):
        first, second = map(shape_of, inputs)
        if first != second:
            SIGNATURES[(*key, first, second)] = found


def assign(target: Any, value: Any) -> bool:
    """Record ``target[...] = value`` between large arrays of one shape and dtype; False for any other."""
    if type(value) is not type(target) or target._small is not None or value._small is not None:
        return False
    shape = target._shape
    if value._shape != shape or target._readonly:
        return False
    source = value._store
    store = target._store
    if source is store and value._window() == target._window():
        return True  # as after ``x[key] += y``
    char = store.char
    size = prod(shape)
    if source.char != char or not char or not size:
        return False
    if eager_call(size, (target, value), 1, char):
        return False
    with LOCK:
        rec = session().ready()
        given = _array(rec, value)
        slot, index = target_of(rec, target)
        commit(rec, ("map", "cast", _COPIES[char], shape, slot, index, given))
    return True


def record_known(
    name: str,
    loop: str,
    shape: tuple[int, ...],
    inputs: tuple[Any, ...],
    target: Any = None,
    waits: bool = False,
    where: Session | None = None,
) -> Any:
    """Record an operation of known loop and domain on large arrays of the domain's shape and NumPy scalars.

    The result is written into the array ``target``, or a new one, and is returned; None if an operand is of
    another kind, or if the arrays are small, unless an operand ``waits`` (is pending).
    """
    size = prod(shape)
    if not size or (not waits and eager(size)):
        return None
    cls: Any = None
    for x in inputs:
        if isinstance(x, Handle):
            if x._small is not None or x._shape != shape or x._store.permuted:
                return None
            cls = cls or type(x)
    return _logged(name, loop, shape, DTYPES[loop[-1]], size, inputs, target, cls, where)


def _logged(
    name: str,
    loop: str,
    shape: tuple[int, ...],
    dtype: Any,
    size: int,
    inputs: tuple[Any, ...],
    target: Any,
    cls: Any,
    where: Session | None = None,
) -> Any:
    """Record an operation of known loop and domain; returns the array with its result."""
    with LOCK:
        rec = (where or session()).ready()
        args = [
            _array(rec, x) if isinstance(x, Handle) else rec.scalar(x, char)
            for x, char in zip(inputs, loop, strict=False)
        ]
        if target is None:
            store = Store(shape, dtype, None, size)
            target = large(cls, store, shape, None)
            slot = rec.declare_new(store)
        else:
            slot, _ = target_of(rec, target)
        commit(rec, ("map", name, loop, shape, slot, target._index, *args))
    return target
