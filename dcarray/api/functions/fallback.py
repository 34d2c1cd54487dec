"""The fallback for NumPy functions: runs NumPy on the memory, wraps the results, and notes the call for the
report."""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Callable, Collection, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, placed_by_option, unwrap, wrap
from dcarray.api.buffers import text_of
from dcarray.core.backend import NOT_DISTRIBUTED, backend, try_call
from dcarray.core.config import current
from dcarray.core.counters import note, user_line
from dcarray.core.errors import StrictError
from dcarray.core.handle import register
from dcarray.core.processes import communicator
from dcarray.core.store import COMPILED, owner
from dcarray.recording.session import session

from .numpy_served import served_by_numpy

Function = Callable[..., Any]


def name_of(function: Function) -> str:
    """Return the qualified name of a function, such as ``numpy.linalg.svd``."""
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{getattr(function, '__name__', str(function))}"


class _Conversion:
    """The conversion of arguments to plain arrays and of results to wrapped ones, for one call."""

    __slots__ = ("bytes", "foreign", "given", "plain")

    def __init__(self) -> None:
        self.bytes = 0
        self.foreign: np.dtype[Any] | None = None  # a dtype among the arguments that does not compile
        self.given: dict[int, tuple[Any, ndarray]] = {}
        self.plain: list[Any] = []  # the owners of the memory of plain arrays among the arguments

    def to_plain(self, value: Any) -> Any:
        """Return a value with every wrapped array replaced by its memory."""
        kind = type(value)
        if kind in _LEAVES:
            return value
        if isinstance(value, ndarray):
            plain = unwrap(value)
            self.given[id(plain)] = (plain, value)
            self.bytes += plain.nbytes
            if plain.dtype.char not in COMPILED:
                self.foreign = plain.dtype
            return plain
        if kind is np.ndarray:
            self.plain.append(owner(value))
            return value
        if kind is tuple or kind is list:  # the same one where possible: NumPy may write to it
            inner = [self.to_plain(v) for v in value]
            return kind(inner) if any(a is not b for a, b in zip(inner, value, strict=True)) else value
        if kind is dict:
            return {k: self.to_plain(v) for k, v in value.items()}
        if _is_sequence(value):
            known = tuple(value) if isinstance(value, tuple) else list(value)
            converted = self.to_plain(known)
            return value if converted is known else converted
        return value

    def note_pairs(self, values: Iterable[Any], plain: Iterable[Any]) -> None:
        """Note which plain values NumPy got in place of the arguments."""
        for value, p in zip(values, plain, strict=True):
            if isinstance(value, ndarray):
                if value._small is None:
                    register(value._store)
                self.given[id(p)] = (p, value)
            elif type(value) is np.ndarray:
                self.plain.append(owner(value))
            elif type(value) is tuple or type(value) is list:
                self.note_pairs(value, p)

    def note_owners(self, values: Iterable[Any]) -> None:
        """Note the owners of the plain arrays among these values."""
        for value in values:
            if type(value) is np.ndarray:
                self.plain.append(owner(value))
            elif type(value) is tuple or type(value) is list:
                self.note_owners(value)

    def to_wrapped(self, value: Any) -> Any:
        """Return a value with every plain array wrapped; an array that was an argument is returned itself.

        A view of a plain argument stays plain, since its owner may write at any time.
        """
        kind = type(value)
        if kind is np.ndarray:
            known = self.given.get(id(value))
            if known is not None:
                return known[1]
            memory_owner = owner(value)
            if any(memory_owner is p for p in self.plain):
                return value
            for plain, x in self.given.values():
                if x._small is not None and owner(plain) is memory_owner:
                    return x._derive(value)  # small, like all handles on its memory
            self.bytes += value.nbytes
            return wrap(value) if self.given else placed_by_option(value)
        if kind is tuple or kind is list:
            inner = [self.to_wrapped(v) for v in value]
            return kind(inner) if any(a is not b for a, b in zip(inner, value, strict=True)) else value
        if kind is dict:
            return {k: self.to_wrapped(v) for k, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.to_wrapped(v) for v in value))
        return value


_new = object.__new__
_array = np.ndarray
SEQUENCES = (list, tuple, deque, UserList)
# Types of values that are no arrays, hold none, and share no memory with one.
_LEAVES = frozenset(
    {bool, int, float, complex, str, bytes, type, type(None), type(...), type(np._NoValue)}
    | {kind for kind in np.sctypeDict.values() if kind not in (np.object_, np.void)}
    | {kind for kind in vars(np.dtypes).values() if isinstance(kind, type)}
)
# Sequences of numbers, or of other things than arrays.
_NO_SEQUENCES = (dict, str, bytes, bytearray, range, memoryview)
_MOST_SMALL = 1 << 14  # elements; larger results may have to be large
NOT_SMALL: Any = object()
_leaves = _LEAVES.issuperset


def _is_sequence(value: Any) -> bool:
    """Whether NumPy treats a value as a sequence and looks for arrays in it."""
    if isinstance(value, SEQUENCES):
        return True
    kind: Any = type(value)
    if not _is_iterated(kind):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


@cache
def _is_iterated(kind: type) -> bool:
    """Whether objects of a class have items by number, and no protocol that says what array they are."""
    if issubclass(kind, (_NO_SEQUENCES, np.ndarray, np.generic, ndarray)):
        return False
    has = partial(hasattr, kind)
    return all(map(has, ("__len__", "__getitem__", "__iter__"))) and not any(
        map(has, ("keys", "__array__", "__array_interface__", "__array_function__", "__array_ufunc__"))
    )


def _hold_no_arrays(values: Collection[Any]) -> bool:
    """Whether these values are known to contain no arrays."""
    if _leaves(map(type, values)):
        return True
    for value in values:
        kind = type(value)
        sequence = kind is tuple or kind is list
        if kind not in _LEAVES and not (sequence and _leaves(map(type, value))):
            return False
    return True


def hold_no_arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments are known to contain no arrays, and need no conversion."""
    return _hold_no_arrays(args) and (not kwargs or _hold_no_arrays(kwargs.values()))


def _small_arguments(values: Any) -> list[Any] | None:
    """Return the arguments for NumPy if every wrapped array among them is small, else None."""
    plain: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is ndarray:
            value = value._small
            if value is None:
                return None
        elif kind not in _LEAVES and kind is not _array and _is_sequence(value):
            inner = _small_arguments(value)
            if inner is None:
                return None
            value = _rebuilt(value, kind, inner)
        plain.append(value)
    return plain


def _rebuilt(value: Any, kind: type, inner: list[Any]) -> Any:
    """Return a sequence of this class with other elements; the same object if no element differs."""
    if kind is tuple:
        return tuple(inner)
    return value if kind is not list and all(a is b for a, b in zip(inner, value, strict=True)) else inner


def call_small(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the call in NumPy and return its result if all wrapped arrays are small; else `NOT_SMALL`."""
    plain = _small_arguments(args)
    if plain is None:
        return NOT_SMALL
    if kwargs:
        named = _small_arguments(kwargs.values())
        if named is None:
            return NOT_SMALL
        result = function(*plain, **dict(zip(kwargs, named, strict=True)))
        args, plain = (*args, *kwargs.values()), plain + named
    else:
        result = function(*plain)
    if type(result) is not _array:
        if isinstance(result, (tuple, list)):
            for p, value in zip(plain, args, strict=True):
                if p is result:
                    return value
            conversion = _Conversion()
            conversion.given = {id(p): (p, v) for p, v in zip(plain, args, strict=True) if type(v) is ndarray}
            conversion.plain = [owner(v) for v in args if type(v) is _array]
            return conversion.to_wrapped(result)
        return result
    base = result.base
    fresh: Any = result if base is None else base
    foreign = False
    for p, value in zip(plain, args, strict=True):
        if p is result:
            return value
        if base is not None and type(p) is _array and (p is base or p.base is base):
            foreign = foreign or type(value) is not ndarray
            fresh = p
    if foreign:
        return result  # its owner may write to the memory at any time
    if type(fresh) is not _array or fresh.size >= _MOST_SMALL or result.dtype.char not in COMPILED:
        return wrap(result)
    x = _new(ndarray)
    x._small = result
    return x


def _run(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], quiet: bool, tried: bool) -> Any:
    conversion = _Conversion()
    plain = [conversion.to_plain(a) for a in args]
    named = {k: conversion.to_plain(v) for k, v in kwargs.items()} if kwargs else kwargs
    if quiet and conversion.foreign is None:
        session().release_held()
        return conversion.to_wrapped(function(*plain, **named))
    where = user_line(3)
    name = name_of(function)
    if conversion.foreign is not None:
        name += f" of {text_of(conversion.foreign)}"
    served = served_by_numpy(function)
    if current().strict and not served:
        if tried:
            function(*plain, **named)  # NumPy raises the error of a bad call
        raise StrictError(name, where)
    session().release_held()
    result = conversion.to_wrapped(function(*plain, **named))
    note(name, conversion.bytes, "numpy" if served else "fallback", where)
    return result


def call_numpy(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``function`` in NumPy in a case where that is intended, such as for small arrays.

    The report notes the call only if a dtype does not compile.

    Parameters
    ----------
    function : callable
        A function of NumPy.
    args, kwargs
        Its arguments; wrapped arrays may stand in sequences and dictionaries, at any depth.

    Returns
    -------
    object
        The result with plain arrays wrapped; views of an argument's memory stay views of it.
    """
    if hold_no_arrays(args, kwargs):
        return wrap_results(function(*args, **kwargs))
    return _run(function, args, kwargs, True, False)


def call(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], tried: bool = False) -> Any:
    """Run ``function`` in NumPy and leave a line in the report.

    Parameters
    ----------
    function : callable
        A function of NumPy.
    args, kwargs
        Its arguments; wrapped arrays may stand in sequences and dictionaries, at any depth.
    tried : bool
        Whether an implementation has refused this call, which may be a bad one.

    Returns
    -------
    object
        As `call_numpy`.

    Raises
    ------
    StrictError
        If the option ``strict`` is on and the call has no compiled form.
    """
    if communicator() is not None:
        result = try_call(function, args, kwargs)
        if result is NOT_DISTRIBUTED:
            result = backend().call_numpy_source(function, args, kwargs)
        if result is not NOT_DISTRIBUTED:
            return result
    if served_by_numpy(function):
        result = call_small(function, args, kwargs)
        if result is not NOT_SMALL:
            return result
    return _run(function, args, kwargs, False, tried)


def wrap_results(value: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Return a result of NumPy with plain arrays wrapped, in tuples, lists and dictionaries too; those that
    share the memory of a plain argument stay plain."""
    kind = type(value)
    if kind is ndarray or kind in _LEAVES or isinstance(value, np.generic):
        return value
    if kind is np.ndarray and value.base is None and not kwargs and not any(value is a for a in args):
        return placed_by_option(value)
    conversion = _Conversion()
    conversion.note_owners(args)
    if kwargs:
        conversion.note_owners(kwargs.values())
    return conversion.to_wrapped(value)


def wrap_results_of(value: Any, args: tuple[Any, ...], plain: tuple[Any, ...]) -> Any:
    """Return a result with plain arrays wrapped (see `wrap_results`); ``plain`` are the arrays that NumPy got
    in place of ``args``."""
    conversion = _Conversion()
    conversion.note_pairs(args, plain)
    return conversion.to_wrapped(value)
