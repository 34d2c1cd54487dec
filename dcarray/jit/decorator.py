"""``dc.accelerate``: functions and modules in which the global name ``np`` means dcarray.

NumPy dispatches to dcarray by itself wherever a wrapped array is among the arguments.  ``np.empty(shape)``
has none: an array that a library creates and then fills is a plain one, but in accelerated code a wrapped
one.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import partial, wraps
from time import perf_counter
from types import FunctionType, ModuleType, TracebackType
from typing import Any, TypeVar, overload

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.api.lazy_selection import Selected
from dcarray.core import config
from dcarray.core.counters import counters
from dcarray.core.device_backend import device_backend
from dcarray.core.handle import adopt
from dcarray.core.native import BUILT
from dcarray.core.store import compiles, owner
from dcarray.execution.executor import EXECUTOR
from dcarray.tiering import eager_period
from dcarray.tiering.blas_sharing import WIDE

from .imports import hook_imports
from .library_stand_ins import is_extension
from .patching import GENERATORS, module_names, substitute_for, wrap_generator
from .variants import Variants, work

_F = TypeVar("_F", bound=Callable[..., Any])


# ---- modules ------------------------------------------------------------------------------------------
class Accelerated:
    """Modules whose NumPy is dcarray, until `undo` is called or the ``with`` block ends."""

    def __init__(self, modules: tuple[ModuleType, ...]) -> None:
        hook_imports()
        self._names = tuple(module.__name__ for module in modules)
        self._held = [module_names(vars(module)) for module in modules]
        for scope in self._held:
            scope.enter()
            functions = [
                v for v in scope.names.values() if type(v) is FunctionType and v.__globals__ is scope.names
            ]
            if config.current().jit == "eager":
                scope.put(*functions)
            else:  # to read the sources of a large module takes a while
                EXECUTOR.background.submit_later(partial(scope.put, *functions))

    def undo(self) -> None:
        """Restore the modules' own NumPy; a second call does nothing."""
        while self._held:
            self._held.pop().leave()

    def __enter__(self) -> Accelerated:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "accelerated" if self._held else "no longer accelerated"
        return f"<{', '.join(self._names)}: {state}>"


def _module(target: ModuleType | str) -> ModuleType:
    found = sys.modules.get(target) if isinstance(target, str) else target
    if found is None:
        raise ValueError(f"module {target!r} is not imported")
    if not isinstance(found, ModuleType):
        raise TypeError(f"accelerate() takes a function, or modules or their names, not {target!r}")
    if is_extension(found.__name__):
        raise ValueError(
            f"module {found.__name__!r} is compiled code, which keeps NumPy: accelerate what calls it"
        )
    names = vars(found)
    held = module_names(names).users or any(
        substitute_for(name, value, names) is not value
        or (isinstance(value, type) and "__array__" in vars(value))
        for name, value in names.items()
    )
    if not held:
        raise ValueError(
            f"module {found.__name__!r} holds no NumPy and no compiled code among its global names"
        )
    return found


# ---- functions ---------------------------------------------------------------------------------------
_inside: ContextVar[bool] = ContextVar("dcarray_accelerated", default=False)


def wrap_arguments(
    args: tuple[Any, ...], wide: int, /
) -> tuple[tuple[Any, ...], tuple[tuple[Any, np.ndarray[Any, Any]], ...]] | None:
    """Return arguments with plain arrays wrapped, and the pairs of wrapped and plain ones; None if they need
    a `_Conversion`: they hold more than numbers and the like, and arrays of fewer than ``wide`` elements."""
    return None


def unwrap_result(box: list[Any], /) -> Any:
    """Return the item of a list, which holds its only reference; a wrapped array to whose handle and memory
    there is no other reference becomes a plain one, also in a tuple."""
    return box[0]


def holds_no_wrapped(value: Any, /) -> bool:
    """Whether a value is known to hold no wrapped array; False also where that takes a longer look."""
    return False


if BUILT:  # else `_Conversion` looks at everything
    from dcarray._native.extension import holds_no_wrapped, unwrap_result, wrap_arguments


class _Conversion:
    """Conversion between the plain and the wrapped arrays of one call: arguments in, results out."""

    __slots__ = ("by_plain", "generators", "had_wrapped", "pairs", "vector_lengths", "visited")

    def __init__(self, given: Collection[tuple[Any, Any]] = ()) -> None:
        # wrapped and plain array, also of those that were converted back
        self.pairs: dict[int, tuple[Any, Any]] = {id(pair[0]): pair for pair in given}
        self.by_plain: dict[int, Any] = {}  # by the plain array: one that is given twice stays one
        self.generators: dict[int, tuple[Any, Any]] = {}  # dcarray's and NumPy's random generators
        self.had_wrapped = False
        self.visited: set[int] = set()
        self.vector_lengths: frozenset[int] = frozenset()

    def find_matrices(self, values: Collection[Any]) -> None:
        """Find the matrices larger than the caches.  Vectors as long as their rows or columns are recorded
        even where they are small: adding a product to an eager one would run the product before the next is
        known, with which it could share the pass over the matrix.  Not where wrapped arrays may share the
        memory."""
        wide = [v.shape for v in values if type(v) is np.ndarray and v.ndim == 2 and v.size >= WIDE]
        if wide and not any(isinstance(v, (ndarray, tuple)) for v in values):
            self.vector_lengths = frozenset(n for shape in wide for n in shape)

    def to_wrapped(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            if (found := self.by_plain.get(id(value))) is not None:
                return found
            matches = self.vector_lengths and getattr(owner(value), "size", 0) in self.vector_lengths
            wrapped = adopt(ndarray, value, 1) if matches and compiles(value.dtype) else wrap(value)
            name = config.current().device
            if name != "cpu":
                wrapped = device_backend().place(name, wrapped)
            self.pairs[id(wrapped)] = wrapped, value
            self.by_plain[id(value)] = wrapped
            return wrapped
        if kind is tuple:
            return tuple([self.to_wrapped(v) for v in value])
        if kind is ndarray or kind is Selected or _is_on_device(value):
            self.had_wrapped = True
        elif kind.__name__ in GENERATORS and (wrapped := wrap_generator(value)) is not value:
            self.generators[id(wrapped)] = wrapped, value
            return wrapped
        return value

    def to_plain(self, value: Any) -> Any:
        """Return a result with plain arrays for wrapped ones; lists and dictionaries change in place."""
        kind = type(value)
        if kind is ndarray or kind is Selected or _is_on_device(value):
            known = self.pairs.get(id(value))
            if known is None:  # an array that occurs twice stays one
                plain = value._small if kind is ndarray else None  # as `unwrap_result` has it
                known = value, np.asarray(value) if type(plain) is not np.ndarray else plain
                self.pairs[id(value)] = known
            return known[1]
        if id(value) in self.generators:
            return self.generators[id(value)][1]
        if kind is list or kind is dict:
            if id(value) not in self.visited:
                self.visited.add(id(value))
                for k, v in enumerate(value) if kind is list else value.items():
                    plain = self.to_plain(v)
                    if plain is not v:
                        value[k] = plain
        elif isinstance(value, tuple):
            items = [self.to_plain(v) for v in value]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                return value._make(items) if hasattr(value, "_make") else tuple(items)
        return value


def _is_on_device(value: Any) -> bool:
    """Whether a value is an array on a device."""
    return isinstance(value, ndarray) and value._device is not None


def _copy_attributes(given: np.ndarray[Any, Any], now: np.ndarray[Any, Any]) -> None:
    """Give a plain argument the shape and the writeable flag that the function has left its wrapped array."""
    if now.shape != given.shape and now.size == given.size and np.may_share_memory(now, given):
        given.shape = now.shape
    if now.flags.writeable != given.flags.writeable:
        given.flags.writeable = now.flags.writeable


def _evaluate(value: Any) -> None:
    """Run what is pending on an array, or on the arrays in a tuple."""
    if type(value) is ndarray or _is_on_device(value):
        value._evaluated()
    elif type(value) is tuple:
        for one in value:
            if type(one) is ndarray or _is_on_device(one):
                one._evaluated()


def _function(function: Any) -> Any:
    inner = inspect.unwrap(function)
    if not isinstance(inner, FunctionType):
        raise TypeError(f"accelerate() takes a function, or modules or their names, not {function!r}")
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        raise TypeError(f"{inner.__qualname__}() does not run when it is called: accelerate what it calls")
    hook_imports()
    scope = module_names(inner.__globals__)
    variants = Variants(inner)

    @wraps(function)
    def accelerated(*args: Any, **kwargs: Any) -> Any:
        variant = None if scope.users or _inside.get() else variants.kind(args, kwargs)
        if variant is not None:
            is_timed = variant.remaining_calls <= 0
            if is_timed:
                plain, before, start = variant.is_trial(), work(), perf_counter()
            else:
                plain, variant.remaining_calls = variant.plain, variant.remaining_calls - 1
            if plain:
                counters.plain += 1
                value = function(*args, **kwargs)
                value = value if holds_no_wrapped(value) else _Conversion().to_plain(value)
                if is_timed:
                    variant.record_call(perf_counter() - start, before, plain=True)
                return value
            variant = variant if is_timed else None
        converted = None if kwargs else wrap_arguments(args, WIDE)
        if converted is not None:
            conversion, (args, given) = None, converted
            keep = not given and _inside.get()
        else:
            conversion = _Conversion()
            conversion.find_matrices((*args, *kwargs.values()))
            args = tuple([conversion.to_wrapped(a) for a in args])
            kwargs = {k: conversion.to_wrapped(v) for k, v in kwargs.items()}
            given = tuple(conversion.pairs.values())
            keep = conversion.had_wrapped or (not given and _inside.get())
        token = _inside.set(True)
        scope.enter(inner)
        try:
            box = [function(*args, **kwargs)]
        finally:
            scope.leave()
            _inside.reset(token)
            if not _inside.get():
                eager_period.end(loop=True)  # a loop may have been left by an exception
            for wrapped, argument in given:  # its owner may look at it, and change it, from now on
                now = wrapped._writable()
                if now is not argument:
                    _copy_attributes(argument, now)
        if keep:
            return box[0]
        if conversion is not None:
            for value in (*args, *kwargs.values()):
                if (type(value) is list or type(value) is dict) and not holds_no_wrapped(value):
                    conversion.to_plain(value)
        _evaluate(box[0])
        value = unwrap_result(box)
        if not holds_no_wrapped(value):
            value = (conversion or _Conversion(given)).to_plain(value)
        if variant is not None and not scope.users:
            variant.record_call(perf_counter() - start, before, may=variants.may_run_plain())
        return value

    return accelerated


@overload
def accelerate(target: _F, /) -> _F: ...


@overload
def accelerate(*targets: ModuleType | str) -> Accelerated: ...


def accelerate(*targets: Any) -> Any:
    """Make the NumPy of a function, or of whole modules, be dcarray.

    Parameters
    ----------
    *targets : function, or modules or their names
        Either one function, also as a decorator; or modules, which must be imported: their global names
        (``np``, ``from numpy import zeros``) mean dcarray from now on, or, in a ``with`` statement, for the
        block.

    Returns
    -------
    function or Accelerated
        Of a function one that does the same.  Of modules an object whose method `undo` restores them.

    Raises
    ------
    ValueError
        If a module is not imported, is compiled code, or has neither NumPy nor functions of compiled modules
        among its global names.
    TypeError
        If a target is neither a function nor a module, or is a generator or coroutine function.

    Notes
    -----
    Plain arrays among a function's arguments (and in tuples) are wrapped for the call, sharing their memory;
    what the call writes to them is in place when it returns.  A call without wrapped arguments returns plain,
    evaluated arrays, alone or in tuples, lists and dictionaries; one with wrapped arguments returns wrapped
    arrays, still lazy.  Arrays that the function stores elsewhere (attributes, globals) stay wrapped.

    Loops (``for`` over ranges and arrays, and ``while``) of the function, and of functions of its module that
    it calls by name, are compiled from their source where the compiler supports all of it; `report` lists the
    others with the reason.

    During the call the whole module sees dcarray, helper functions and other threads included.  Imports
    of NumPy inside functions give NumPy itself.  Where a class of the module has ``__array__``, NumPy gets
    plain arrays from it.

    Repeated calls that recording does not make faster run on plain arrays, as the function is written, with
    the same results to the bit; `report` counts them.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> @dc.accelerate
    ... def step(u):
    ...     v = np.empty_like(u)
    ...     v[1:-1] = (u[:-2] + u[2:]) / 2
    ...     v[[0, -1]] = 0
    ...     return v
    >>> step(np.ones(4))
    array([0., 1., 1., 0.])

    >>> import matplotlib.colors                           # doctest: +SKIP
    >>> with dc.accelerate(matplotlib.colors):              # doctest: +SKIP
    ...     shade = matplotlib.colors.LightSource().hillshade(dc.asarray(z))
    """
    if len(targets) == 1 and callable(targets[0]):
        return _function(targets[0])
    if not targets:
        raise TypeError("accelerate() takes a function, or modules or their names")
    return Accelerated(tuple([_module(target) for target in targets]))
