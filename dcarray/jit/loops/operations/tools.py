"""What the classes that trace calls of functions share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from inspect import signature
from types import MethodType
from typing import Any

import numpy as np

from ..entry.entry_values import DType
from .arithmetic import Operations
from .arrays import Arrays
from .iterables import Iterables
from .reductions import Reductions
from .values import PYTHON, Data, NumberList, Shape, Value, is_array, is_int, is_number, kind_of, shape_of

Args = tuple[Value, ...]
Named = dict[str, Value]
_signature = lru_cache(maxsize=256)(signature)
_MOST_ITEMS = 64  # of a sequence, each of which is a statement


class Tools(Operations):
    """Base of the classes that trace calls: operations on traced values, and arrays of sequences."""

    def __init__(self, tools: Reductions | Tools) -> None:
        super().__init__(tools.math)
        self.reductions: Reductions = tools if isinstance(tools, Reductions) else tools.reductions
        self.arrays: Arrays = tools.arrays
        self.iterables: Iterables = tools.iterables if isinstance(tools, Tools) else Iterables(tools.arrays)

    # ---- arguments ----------------------------------------------------------------------------------
    def invoke(self, function: Callable[..., Value], args: Args, named: Named) -> Value:
        """Call a method that traces a function, with the arguments of the program's call."""
        self.check_arguments(function, args, named)
        return function(*args, **named)

    def check_arguments(self, function: Any, args: Args, named: Named) -> None:
        """Raise `Untraceable` if a function does not take these arguments, as far as its signature is known:
        before NumPy 2.4, functions in C have none."""
        while isinstance(function, partial):  # another object in each call, which no cache should hold
            function, args, named = function.func, (*function.args, *args), {**function.keywords, **named}
        if isinstance(function, MethodType):
            function, args = function.__func__, (function.__self__, *args)
        try:
            _signature(function).bind(*args, **named)
        except ValueError:
            pass
        except TypeError as error:
            raise self.scope.fail(f"arguments that are not understood: {error}") from error

    def _none(self, *values: Value) -> None:
        if any(v is not None for v in values):
            raise self.scope.fail("an argument that is not understood")

    def _flag(self, value: Value) -> bool:
        if type(value) not in (bool, int):
            raise self.scope.fail("a flag is not known")
        return bool(value)

    def _dtype(self, value: Value) -> DType | None:
        return None if value is None else self.arrays.dtype(value)

    # ---- sequences ----------------------------------------------------------------------------------
    def array(self, given: Value, dtype: DType | None = None) -> Data:
        """Return a new array of a sequence, of another array, or of a number."""
        if isinstance(given, NumberList):
            given = self.iterables.lists.as_array(given)
        if isinstance(given, tuple | list):
            return self.array_of_sequence(given, dtype)
        if not is_array(given):
            return self._of_number(given, dtype)
        return self.memory.note_order(self.memory.copy(self._cast(given, dtype)), given)

    def _cast(self, x: Data, dtype: DType | None) -> Data:
        """Return an array of a dtype: the array itself if it has that, or if there is none."""
        return x if dtype is None or dtype == x.dtype else self.arrays.astype(x, dtype)

    def _array_of(self, a: Value) -> Value:
        """Return the array of a sequence; any other value as it is."""
        return self.array(a) if isinstance(a, NumberList | tuple | list) else a

    def _sequence(self, a: Value) -> Data:
        """Return an array as it is, and a sequence as an array."""
        a = self._array_of(a)
        if not is_array(a):
            raise self.scope.fail("a value that is neither an array nor a sequence")
        return a  # type: ignore[no-any-return]

    def _of_number(self, x: Value, kind: DType | None) -> Data:
        """Return an array without axes that holds a number."""
        self._need_number(x)
        array = self.arrays.empty((), kind or self._dtype_of(x))
        self.arrays.assign(array, x, strict=True)
        return array

    def _need_number(self, x: Value) -> None:
        if not is_number(x) or not (isinstance(x, Data) or is_int(x) or type(x) in PYTHON):
            raise self.scope.fail("an array is made of something that is not a number")

    def array_of_sequence(self, items: Value, kind: DType | None) -> Data:
        """Return the array of a sequence of numbers, of arrays, or of such sequences."""
        shape, leaves = self._leaves(items)
        if not leaves or len(leaves) > _MOST_ITEMS:
            raise self.scope.fail("an array is made of nothing, or of many items")
        if kind is None:
            kind = reduce(np.promote_types, [self._dtype_of(x) for x in leaves.values()])
        array = self.arrays.empty(shape, kind)
        for place, x in leaves.items():
            self.arrays.assign(self.arrays.element(array, (*place, Ellipsis)), x, strict=True)
        return array

    def _leaves(self, items: Value) -> tuple[Shape, dict[tuple[int, ...], Value]]:
        """Return the shape of the array that a nested sequence makes, and its items by their indices."""
        if isinstance(items, NumberList):
            items = self.iterables.lists.as_array(items)
        if not isinstance(items, tuple | list):
            self._need_number(items)
            if is_array(items) and not items.shape:
                raise self.scope.fail("an array is made of arrays without axes")
            return shape_of(items), {(): items}
        leaves: dict[tuple[int, ...], Value] = {}
        shapes = []
        for k, item in enumerate(items):
            shape, inner = self._leaves(item)
            shapes.append(shape)
            leaves.update({(k, *place): x for place, x in inner.items()})
        if any(not self.scope.need_same_shape(shape, shapes[0]) for shape in shapes[1:]):
            raise self.scope.fail("an array is made of items that are not known to have one shape")
        return (len(items), *(shapes[0] if shapes else ())), leaves

    def _dtype_of(self, x: Value) -> DType:
        """Return the dtype that a number has as an array."""
        return x.dtype if isinstance(x, Data) and not x.weak else np.result_type(kind_of(x)(0))
