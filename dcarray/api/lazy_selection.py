"""Selections by masks, ``x[mask]``, whose elements are gathered only when their number is needed.

A `Selected` array has a dtype, and its elements as an array of the shape of ``x``
(`dcarray.recording.masked_assignment`).  Element-wise operators and functions on selections by the same mask
give such arrays again, and reductions run over the selected elements.  Every other access finds a slot of the
handle empty: then the elements are compressed, and the selection becomes an ordinary array.  The same happens
when the recording runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from dcarray.core import config
from dcarray.core.backend import NOT_DISTRIBUTED, try_call
from dcarray.core.handle import Handle, adopt
from dcarray.core.processes import communicator
from dcarray.core.store import COMPILED
from dcarray.core.ufunc_loops import UFUNCS
from dcarray.recording import masked_assignment, recorder
from dcarray.recording.log import Recording
from dcarray.recording.masked_assignment import Choice
from dcarray.recording.masked_ufuncs import scalar_result
from dcarray.recording.session import LOCK, session

from . import indexing
from .array import ndarray

_UFUNCS = frozenset(UFUNCS.values())
_PYTHON = (bool, int, float, complex)


def _selections_of_one_mask(inputs: tuple[Any, ...]) -> list[Any] | None:
    """Return the selections behind the operands (None for a scalar); None if they do not share one mask."""
    choices = [x._choice if type(x) is Selected else None for x in inputs]
    first: Any = None
    for x, choice in zip(inputs, choices, strict=True):
        if choice is None:
            if type(x) not in _PYTHON and not (isinstance(x, np.generic) and x.dtype.char in COMPILED):
                return None
        elif first is None:
            first = choice
        elif choice.mask is not first.mask or choice.full.shape != first.full.shape:
            return None
    return choices


def _operands(
    function: Callable[..., Any], choices: list[Any], inputs: tuple[Any, ...]
) -> tuple[list[Any], Any] | None:
    """Return the operands in full shape, and the value of elements that are not selected.  An operand that
    might raise a floating-point exception there is set to one; None if that does not help."""
    fulls = [None if c is None else (c.full, c.mask) for c in choices]  # unchanged
    rest = [x if c is None else c.rest for c, x in zip(choices, inputs, strict=True)]
    value = scalar_result(function, rest)
    if value is not None:
        return [x if f is None else f[0] for f, x in zip(fulls, inputs, strict=True)], value
    rest = [
        r if f is None else masked_assignment.ONES[f[0].dtype.char] for f, r in zip(fulls, rest, strict=True)
    ]
    value = scalar_result(function, rest)
    if value is None:
        return None
    return [
        r if f is None else masked_assignment.select(f[1], f[0], r) for f, r in zip(fulls, rest, strict=True)
    ], value


def _new_selection(choice: Choice) -> Any:
    x = object.__new__(Selected)
    x._choice = choice
    session().rec.selections.append(ref(x))
    return x


def _gather(values: Any) -> None:
    """Gather all selections in nested sequences."""
    for value in values:
        if type(value) is Selected:
            value._gather()
        elif isinstance(value, (tuple, list)):
            _gather(value)
        elif isinstance(value, dict):
            _gather(value.values())


def _apply(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """Return an operation on selections, which are gathered where it does not support them."""
    with LOCK:
        choices = _selections_of_one_mask(inputs)
        operands = None if choices is None else _operands(function, choices, inputs)
        if choices is not None and operands is not None:
            # a run meanwhile gathers the selections, but keeps these arrays
            first = next(filter(None, choices))
            mask, site = first.mask, first.site
            fulls, rest = operands
            result = function(*fulls)
            if type(result) is ndarray and isinstance(rest, np.generic) and rest.dtype == result.dtype:
                return _new_selection(Choice(result, mask, rest, site))
    _gather(inputs)
    return function(*inputs)


def _compress(x: Any, mask: Any) -> Any:
    """Return the elements that a mask selects, as an array; distributed if the operand is."""
    if communicator() is not None:
        elements = try_call(operator.getitem, (x, mask), {})
        if elements is not NOT_DISTRIBUTED:
            return elements
    elements = indexing.on_device(x, mask)
    if elements is not None:
        return elements
    return adopt(ndarray, indexing.compress(x._evaluated(), mask._evaluated()), config.current().eager_below)


class Selected(ndarray):
    """A selection by a mask whose elements are not gathered yet."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in Handle.__slots__ and name != "_origin":
            self._gather()
            return getattr(self, name)
        return super().__getattr__(name)

    @property
    def _choice(self) -> Choice:
        choice: Choice = self._origin
        return choice

    @_choice.setter
    def _choice(self, choice: Choice) -> None:
        self._origin = choice

    def _gather(self) -> None:
        """Compress the elements, which makes this an ordinary array."""
        with LOCK:
            if type(self) is not Selected:  # another thread has gathered it
                return
            choice = self._choice
            masked_assignment.note_gathered(choice)
            x, mask = choice.full, choice.mask.values
            if choice.is_unchanged(session().rec):
                x, mask = choice.source  # type: ignore[misc]
            choice.full = choice.mask = None  # never stored
            self._become_plain(_compress(x, mask))

    def _become_plain(self, result: Any) -> None:
        del self._origin
        self.__class__ = ndarray  # type: ignore[assignment]
        self._become(result)

    def _finish_selection(self, rec: Recording) -> Callable[[], None]:
        """Return the callback for the end of the run of the recording in which the selection was made."""
        choice = self._choice
        if choice.full is None:  # another thread gathers it
            return lambda: None
        x, mask = choice.full, choice.mask.values
        if choice.is_unchanged(rec):
            x, mask = choice.source  # type: ignore[misc]
            choice.full = choice.mask = None

        def gather() -> None:
            if type(self) is not Selected:
                return
            if choice.full is None and (x._has_pending() or mask._has_pending()) and self._choose_again():
                return  # it did not run
            masked_assignment.note_gathered(choice)
            self._become_plain(_compress(x, mask))

        return gather

    def _choose_again(self) -> bool:
        """Record the selection once more, from array and mask as they are now."""
        x, mask = self._choice.source  # type: ignore[misc]
        choice = masked_assignment.choose(x, mask, self._choice)
        if choice is not None:
            self._choice = choice
            session().rec.selections.append(ref(self))
        return choice is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        with LOCK:
            return self._choice.full.dtype if type(self) is Selected else self.dtype

    @property
    def ndim(self) -> int:
        with LOCK:
            if type(self) is not Selected:
                return self.ndim
            choice = self._choice
            return int(choice.full.ndim - choice.mask.values.ndim + 1)

    # ---- protocols ---------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc in _UFUNCS:
            return _apply(ufunc, inputs)
        _gather((inputs, kwargs))
        return getattr(ufunc, method)(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = _FOLDS.get(func)
        if name is not None and len(args) == 1 and not kwargs:
            return getattr(self, name)()
        _gather((args, kwargs))
        return func(*args, **kwargs)

    def __reduce__(self) -> Any:
        self._gather()
        return self.__reduce__()

    # ---- folds -------------------------------------------------------------------------------------
    def _reduce(self, name: str) -> Any:
        """Return the reduction of all elements, or None if the recorder does not support it."""
        choice = self._choice
        dtype = choice.full.dtype
        kind = dtype.kind
        if self.ndim != 1 or kind not in "biuf" or dtype.char == "e":
            return None
        if name in ("max", "min"):
            if kind == "f":
                fill = -np.inf if name == "max" else np.inf
            elif kind == "b":
                fill = name == "min"
            else:
                info = np.iinfo(dtype)
                fill = info.min if name == "max" else info.max
            ufunc, wide = ("maximum" if name == "max" else "minimum"), None
        else:
            fill = -0.0 if kind == "f" else 0  # a sum keeps its sign
            ufunc, wide = "add", np.dtype("f8") if name == "mean" and kind != "f" else None
        with LOCK:
            masked_assignment.note_reduced(choice)
            same = choice.source if choice.is_unchanged(session().rec) else None
            full = choice.full if same is None else same[0]
            x = masked_assignment.select(choice.mask, full, dtype.type(fill))
            total = recorder.reduce(ufunc, x, None, dtype=wide, keepdims=True)
            count = recorder.reduce("add", choice.mask.values, None, dtype=np.dtype(np.intp), keepdims=True)
            del x, full, same
            n = _read(self, count)
            if not n:
                return None
            value = _read(self, total)  # may be an ordinary array by now
        return value.dtype.type(value / n) if name == "mean" else value


def _read(selection: Any, x: Any) -> Any:
    """Return the value of an array of one element; the elements of the selection need not be stored for
    it."""
    if x._has_pending() and (choice := selection._choice).is_unchanged(session().rec):
        choice.full = choice.mask = None
        try:
            x._evaluated()
        finally:
            if selection._choose_again():
                rec = session().rec
                length = len(rec.log)
                # the last reference
                mask = selection._choice.mask.values._store
                rec.guard = ref(mask, lambda _: rec.session.forget(rec, length))
            else:
                selection._become_plain(_compress(*choice.source))
    return x._evaluated().reshape(())[()]


def _reduction_method(name: str) -> Callable[..., Any]:
    def method(self: Selected, *args: Any, **kwargs: Any) -> Any:
        with LOCK:  # so that no other thread gathers it meanwhile
            result = None if args or kwargs or type(self) is not Selected else self._reduce(name)
        if result is not None:
            return result
        _gather((self,))
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"See `numpy.ndarray.{name}`."
    return method


_FOLDS = {np.sum: "sum", np.mean: "mean", np.max: "max", np.min: "min", np.amax: "max", np.amin: "min"}


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    return lambda self, *other: _apply(function, (*other, self) if reflected else (self, *other))


def _inplace(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Selected, other: Any) -> Any:
        with LOCK:
            choices = _selections_of_one_mask((self, other))
            operands = None if choices is None else _operands(function, choices, (self, other))
            if choices is not None and operands is not None:
                mask, site, (full, value), rest = choices[0].mask, choices[0].site, *operands
                # a run meanwhile gathers the elements before the write
                if rest.dtype == full.dtype:
                    result = function(full.copy(), value)
                    if type(self) is Selected:
                        self._choice = Choice(result, mask, rest, site)
                        return self
        _gather((self, other))
        return function(self, other)

    return method


def _select(x: ndarray, key: Any) -> Any:
    choice = masked_assignment.choose(x, key) if type(x) is ndarray else None
    return None if choice is None else _new_selection(choice)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _function = getattr(operator, f"__{_name}__")
    setattr(Selected, f"__{_name}__", _operator(_function))
    setattr(Selected, f"__r{_name}__", _operator(_function, reflected=True))
    setattr(Selected, f"__i{_name}__", _inplace(getattr(operator, f"__i{_name}__")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"):
    setattr(Selected, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in ("sum", "mean", "max", "min"):
    setattr(Selected, _name, _reduction_method(_name))
ndarray._select = _select  # type: ignore[method-assign, assignment]
