"""Python's built-in functions and those of `math`, and argument binding."""

from __future__ import annotations

import math

import numpy as np

from dcarray.ir.nodes import Apply, Load
from dcarray.ir.ops import C_LIBRARY, OPS, const

from ..entry.entry_values import DType
from .iterables import Iterables
from .reductions import Reductions
from .values import PYTHON, Data, ItemRange, Masked, RuntimeRange, Value, is_array, is_int, kind_of

_BOOL = np.dtype(np.bool_)
Args = tuple[Value, ...]
Named = dict[str, Value]


class PythonCalls:
    """``_py_len`` traces ``len``, ``_math_sqrt`` traces ``math.sqrt``."""

    def __init__(self, reductions: Reductions) -> None:
        self.reductions = reductions
        self.arrays = reductions.arrays
        self.iterables = Iterables(reductions.arrays)
        self.math = reductions.math
        self.memory = reductions.memory
        self.scope = reductions.scope

    # ---- arguments ------
    def _bind(self, names: list[str], args: Args, named: Named, **defaults: Value) -> list[Value]:
        """The arguments in the order of ``names``."""
        if len(args) > len(names) or not named.keys() <= set(names[len(args) :]):
            raise self.scope.fail("arguments that are not understood")
        given = {**defaults, **dict(zip(names, args, strict=False)), **named}
        if len(given) < len(names):
            raise self.scope.fail("an argument is missing")
        return [given[name] for name in names]

    def _none(self, *values: Value) -> None:
        if any(v is not None for v in values):
            raise self.scope.fail("an argument that is not understood")

    def _flag(self, value: Value) -> bool:
        if type(value) not in (bool, int):
            raise self.scope.fail("a flag is not known")
        return bool(value)

    def _dtype(self, value: Value) -> DType | None:
        return None if value is None else self.arrays.dtype(value)

    # ---- built-ins ----------------------------------------------------------------------------------
    def _py_range(self, args: Args, named: Named) -> Value:
        if named or not 1 <= len(args) <= 3:
            raise self.scope.fail("a range that is not known")
        ends = [self._whole(x) for x in args]
        start, stop = (0, ends[0]) if len(ends) == 1 else ends[:2]
        step = ends[2] if len(ends) == 3 else 1
        if type(step) is not int or not step:
            raise self.scope.fail("the step of a range is not known")
        return (
            ItemRange(start, stop, step)
            if is_int(start) and is_int(stop)
            else RuntimeRange(start, stop, step)
        )

    def _whole(self, x: Value) -> Value:
        """An integer as a Python int, stored if it is a run-time value."""
        if not (isinstance(x, Data) and x.scalar and x.dtype.kind in "iu"):
            if not is_int(x):
                raise self.scope.fail("a range that is not known")
            return x
        found = x if x.weak is int else self.math.as_counter(x)
        if not isinstance(found.expr, Load):
            self.memory.store(found)
        return found

    def _py_enumerate(self, args: Args, named: Named) -> Value:
        return self.iterables.enumerate(*self._bind(["iterable", "start"], args, named, start=0))

    def _py_zip(self, args: Args, named: Named) -> Value:
        if named:
            raise self.scope.fail("zip with arguments that are not understood")
        return self.iterables.zip(args)

    def _py_reversed(self, args: Args, named: Named) -> Value:
        (value,) = self._bind(["sequence"], args, named)
        return self.iterables.reversed(value)

    def _py_len(self, args: Args, named: Named) -> Value:
        (x,) = self._bind(["x"], args, named)
        if isinstance(x, tuple | list | str):
            return len(x)
        if is_array(x) and x.shape:
            return x.shape[0]
        if isinstance(x, Masked) and x.along == len(x.full.shape):
            return self.reductions.number(x.mask)
        raise self.scope.fail("len() of a value that is not understood")

    def _py_float(self, args: Args, named: Named) -> Value:
        return self.arrays.python(float, *self._bind(["x"], args, named))

    def _py_int(self, args: Args, named: Named) -> Value:
        return self.arrays.python(int, *self._bind(["x"], args, named))

    def _py_bool(self, args: Args, named: Named) -> Value:
        return self.arrays.python(bool, *self._bind(["x"], args, named))

    def _py_complex(self, args: Args, named: Named) -> Value:
        return self.arrays.python(complex, *self._bind(["x"], args, named))

    def _py_abs(self, args: Args, named: Named) -> Value:
        (x,) = self._bind(["x"], args, named)
        if type(x) in PYTHON:
            return abs(x)
        if isinstance(x, Data) and (is_array(x) or (x.dtype.kind == "f" and x.weak in (None, float))):
            made = self.math.elementwise("absolute", (x,))
            made.weak = x.weak
            return made
        raise self.scope.fail("abs() of a value that is not understood")

    def _py_max(self, args: Args, named: Named) -> Value:
        return self._extremum(">", args, named)

    def _py_min(self, args: Args, named: Named) -> Value:
        return self._extremum("<", args, named)

    def _extremum(self, op: str, args: Args, named: Named) -> Value:
        """``max`` or ``min`` of several values: the first extreme one."""
        if len(args) == 1 and isinstance(args[0], tuple | list):
            args = tuple(args[0])
        if named or not args:
            raise self.scope.fail("an extremum of values that are not understood")
        best = args[0]
        for x in args[1:]:
            better = self.math.truth(self.math.binary(op, x, best))
            if isinstance(better, Data):
                if (
                    is_array(x)
                    or is_array(best)
                    or kind_of(x) != kind_of(best)
                    or not isinstance(x, Data | float)
                ):
                    raise self.scope.fail("the type of an extremum depends on values")
                dtype = np.dtype(kind_of(x))
                pair = (self.math.expr(x, dtype), self.math.expr(best, dtype))
                weak = kind_of(x) if isinstance(kind_of(x), type) else None
                if weak not in (None, float):
                    raise self.scope.fail("an extremum of Python integers")
                best = self.memory.value(Apply("where", (better.expr, *pair), dtype), scalar=True, weak=weak)
            elif better:
                best = x
        return best

    # ---- math ---------------------------------------------------------------------------------------
    def _floats(self, args: Args, named: Named, count: int = 1) -> list[Value]:
        """The arguments of a function of `math`, as Python floats."""
        if named or len(args) != count:
            raise self.scope.fail("arguments that are not understood")
        return [self.arrays.python(float, x) for x in args]

    def _of_c(self, name: str, args: Args, named: Named) -> Value:
        """``math.name(*args)``."""
        given = self._floats(args, named, OPS[f"c_{name}"].nin)
        if any(isinstance(x, Data) for x in given):
            return self.math.of_c(name, given)
        try:
            return C_LIBRARY[f"c_{name}"](*given)
        except (ValueError, ArithmeticError) as error:
            raise self.scope.fail(str(error)) from error

    def _math_radians(self, args: Args, named: Named) -> Value:
        (x,) = self._floats(args, named)
        return self.math.binary("*", x, math.pi / 180.0)

    def _math_degrees(self, args: Args, named: Named) -> Value:
        (x,) = self._floats(args, named)
        return self.math.binary("*", x, 180.0 / math.pi)

    def _math_fabs(self, args: Args, named: Named) -> Value:
        return self._py_abs(tuple(self._floats(args, named)), {})

    def _math_floor(self, args: Args, named: Named) -> Value:
        return self._rounded("floor", args, named)

    def _math_ceil(self, args: Args, named: Named) -> Value:
        return self._rounded("ceil", args, named)

    def _rounded(self, name: str, args: Args, named: Named) -> Value:
        if len(args) == 1 and is_int(args[0]):
            return args[0]
        (x,) = self._floats(args, named)
        if isinstance(x, Data):
            x = self.memory.value(Apply(name, (x.expr,), x.dtype), scalar=True, weak=float)
            return self.math.as_counter(x)
        return self.arrays.python(int, float(getattr(np, name)(x)))

    def _math_sqrt(self, args: Args, named: Named) -> Value:
        (x,) = self._bind(["x"], args, named)
        value = self.arrays.python(float, x)
        if isinstance(value, Data):
            below = Apply("less", (value.expr, const(0.0, value.dtype)), _BOOL)
            root = Apply("sqrt", (value.expr,), value.dtype)
            made = Apply("checked", (Apply("logical_not", (below,), _BOOL), root), value.dtype)
            return self.memory.value(made, scalar=True, weak=float)
        if value < 0:
            raise self.scope.fail("the root of a negative number")
        return math.sqrt(value)
