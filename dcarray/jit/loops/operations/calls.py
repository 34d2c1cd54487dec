"""Calls of functions and methods with public names, and attributes, on traced values."""

from __future__ import annotations

from functools import partial, partialmethod
from typing import Any

import numpy as np

from dcarray.core.ufunc_loops import UFUNCS
from dcarray.ir.nodes import Apply, Dim
from dcarray.ir.ops import C_LIBRARY, OPS

from ..entry.entry_values import DType, PublicObject
from ..entry.tables import TABLE_METHODS
from . import complex_functions
from .arrays import size_of
from .creation import Creation
from .drawn_arrays import drawn
from .draws import Draws
from .elementwise import Elementwise
from .generator_draws import METHODS
from .joining import Joining
from .legacy_draws import METHODS as LEGACY
from .linear_algebra import LinearAlgebra
from .numpy_definitions import definition
from .public_objects import public_object
from .python_calls import PythonCalls
from .python_draws import METHODS as OF_PYTHON
from .python_draws import written_in_python
from .reductions import Reductions
from .scans import Scans
from .statistics import REDUCTIONS, Statistics
from .tables import Tables
from .tools import Args, Named, Tools
from .values import (
    INT_OR_FLOAT,
    PYTHON,
    Data,
    Either,
    Masked,
    Method,
    RandomGenerator,
    Stack,
    Value,
    is_array,
    is_int,
    is_number,
    kind_of,
)  # fmt: skip

_METHODS = frozenset(
    ["sum", "prod", "max", "min", "any", "all", "mean", "copy", "astype", "reshape", "transpose", "dot"]
    + ["fill", "var", "std", "diagonal", "trace", "clip", "squeeze", "swapaxes", "argmax", "argmin"]
    + ["cumprod", "cumsum", "flatten", "item", "ravel", "round"]
)
_DRAWN = {"Generator": METHODS, "RandomState": LEGACY, "Random": OF_PYTHON}
_UFUNC_METHODS = ("accumulate", "at", "outer", "reduce")


class Calls(Tools):
    """Dispatch of calls by public name: ``_parts`` are objects with a method for each function."""

    def __init__(self, reductions: Reductions) -> None:
        super().__init__(reductions)
        self.draws = Draws(reductions, self.call)
        self._np_dot, self._np_inner, self._ufunc_outer = reductions.dot, reductions.inner, reductions.outer
        arrays, items = self.arrays, self.iterables
        self._np_reshape, self._np_transpose, self._np_flip = arrays.reshape, arrays.transpose, arrays.flip
        self._py_enumerate, self._py_reversed = items.enumerate, items.reversed
        self._py_bool, self._py_int, self._py_float = [partial(arrays.python, t) for t in (bool, int, float)]
        self.range_product = PythonCalls(self).range_product
        kinds = PythonCalls, Creation, Joining, Elementwise, Statistics, Scans, LinearAlgebra
        self.tables = Tables(items.lists)
        self._parts = self, *[kind(self) for kind in kinds]

    def _traced_by(self, name: str) -> Any:
        """Return the method with a name, such as ``_np_zeros``, or None."""
        return next((getattr(part, name) for part in self._parts if hasattr(part, name)), None)

    # ---- attributes ---------------------------------------------------------------------------------
    def attribute(self, value: Value, name: str) -> Value:
        """Trace ``value.name``."""
        if isinstance(value, PublicObject):
            return self._member(value, name)
        if isinstance(value, Data) and not value.weak:
            return self._attribute(value, name)
        if isinstance(value, Stack) and name in ("append", "pop"):
            return Method(value, name)
        if isinstance(value, dict) and name in TABLE_METHODS:
            return Method(value, name)
        if kind_of(value) in PYTHON and name in ("real", "imag"):
            return self.math.part(value, name)
        if kind_of(value) in PYTHON and name == "conjugate":
            return Method(value, name)
        if isinstance(value, RandomGenerator):
            return Method(value, name)
        if isinstance(value, Masked) and name in (*REDUCTIONS, "mean", "var", "std"):
            return Method(value, name)
        if isinstance(value, Masked) and name == "size":
            return self.reductions.count_true(value.mask)
        raise self.scope.fail(f"the attribute {name} of a value that is not understood")

    def _member(self, thing: PublicObject, name: str) -> Value:
        owner = public_object(thing.name)
        if isinstance(owner, np.ufunc) and owner.__name__ in UFUNCS and name in _UFUNC_METHODS:
            return Method(owner.__name__, name)
        full = f"{thing.name}.{name}"
        member = public_object(full)
        if member is None and thing.name == "numpy":  # which is dcarray where arrays are wrapped
            full = f"dcarray.{name}"
            member = public_object(full)
        if isinstance(member, float):  # numpy.pi
            return member
        if member is None and name != "newaxis":
            raise self.scope.fail(f"{full} is not known")
        return None if name == "newaxis" else PublicObject(full)

    def _attribute(self, x: Data, name: str) -> Value:
        if name == "shape":
            return x.shape
        if name == "dtype":
            return x.dtype
        if name == "ndim":
            return len(x.shape)
        if name == "size":
            return self._size(x.shape)
        if name == "T":
            return x if x.scalar else self.arrays.transpose(x)
        if name in ("real", "imag") and x.dtype.kind == "c":
            part = Apply(name, (x.expr,), np.empty(0, x.dtype).real.dtype)
            return self.memory.value(part, x.shape, scalar=x.scalar, views_in_numpy=x.window is not None)
        if name == "real":
            return x
        if name in _METHODS:
            return Method(x, name)
        raise self.scope.fail(f"the attribute {name} of an array")

    def _part(self, name: str, val: Value) -> Value:
        if not isinstance(val, Data) or val.weak:
            raise self.scope.fail("a part of something that is neither an array nor a NumPy scalar")
        return self._attribute(val, name)

    _np_real, _np_imag = partialmethod(_part, "real"), partialmethod(_part, "imag")

    def _size(self, shape: tuple[Dim, ...]) -> Dim:
        moving = [n for n in shape if type(n) is not int]
        if len(moving) > 1 and not all(map(self.scope.is_fixed, moving)):
            raise self.scope.fail("the size of an array is not an affine function of loop variables")
        return size_of(shape)

    # ---- calls --------------------------------------------------------------------------------------
    def inlined(self, function: Value, args: list[Value], named: Named) -> tuple[Value, list[Value]]:
        """Return the function that is traced in place of a called one, and its arguments.  For functions of
        `cmath`, and methods of Python's generators that are written in Python, it is their source; for
        functions of NumPy that `numpy_definitions` has, the definition there; else the called function
        itself."""
        if (defined := definition(function, args, named, self.draws.allowed)) is not None:
            return defined
        if isinstance(function, PublicObject) and function.name.startswith("cmath."):
            return complex_functions.written(function.name.removeprefix("cmath.")) or function, args
        if isinstance(function, PublicObject) and function.name.startswith("random."):
            function = Method(self.draws.of_python(), function.name.removeprefix("random."))
        if isinstance(function, Method) and isinstance(function.of, RandomGenerator):
            source = written_in_python(function.name) if function.of.kind.owner == "Random" else None
            if source is not None:
                return source, [function.of, *args]
        return function, args

    def call(self, function: Value, args: Args, named: Named) -> Value:
        """Trace ``function(*args, **named)`` for all but the program's own functions."""
        if isinstance(function, Method):
            return self._method(function, args, named)
        if isinstance(function, np.dtype):
            raise self.scope.fail("a dtype is called")
        if not isinstance(function, PublicObject):
            raise self.scope.fail("the called object is not understood")
        target = public_object(function.name)
        kinds: set[Either] = set()  # of which it gives the same
        if function.name.startswith("math.") or (
            len(args) == 1 and function.name.startswith(("builtins.float", "builtins.int"))
        ):
            kinds = {Either(float, "d"), INT_OR_FLOAT}
        elif len(args) == 1 and function.name.startswith("numpy."):
            kinds = {Either(float, "d")}
        args = tuple([a.numpy if kind_of(a) in kinds else a for a in args])
        if callable(target):
            self.check_arguments(target, args, named)
        if isinstance(target, np.ufunc):
            return self._ufunc(target.__name__, args, named)
        name = function.name.removeprefix("numpy.").removeprefix("builtins.")
        if function.name.startswith(("numpy.random.", "random.")):
            generator = self.draws.of_python() if name == function.name else self.draws.of_numpy()
            return self._draw(generator, name.removeprefix("random."), args, named)
        if isinstance(target, type) and issubclass(target, np.generic):
            return self.invoke(partial(self._scalar, np.dtype(target)), args, named)
        if function.name.startswith("builtins."):
            method = self._traced_by(f"_py_{name}")
        elif function.name.startswith("numpy."):
            method = self._traced_by(f"_np_{name.replace('.', '_')}")
        else:
            name = name.removeprefix("math.")
            method = self._traced_by(f"_math_{name}")
            if method is None and C_LIBRARY.get(f"c_{name}") is target:
                method = partial(self._of_c, name)
        if method is None:
            raise self.scope.fail(f"{function.name} is not understood")
        return self.invoke(method, args, named)

    def _method(self, method: Method, args: Args, named: Named) -> Value:
        x, name = method.of, method.name
        if isinstance(x, RandomGenerator):
            return self._draw(x, name, args, named)
        if kind_of(x) in PYTHON:
            return self.invoke(partial(self.math.part, x, name), args, named)
        if isinstance(x, dict):
            called = self.tables.get if name == "get" else partial(self.tables.view, name)
            return self.invoke(partial(called, x), args, named)
        if isinstance(x, str):  # a ufunc
            return self.invoke(partial(self._traced_by(f"_ufunc_{name}"), x), args, named)
        self.check_arguments(getattr(np.ndarray, name), (x, *args), named)
        if (name == "transpose" and args and is_int(args[0])) or (name == "reshape" and len(args) > 1):
            args = (args,)
        function = self._traced_by(f"_method_{name}") or self._traced_by(f"_np_{name}")
        return self.invoke(partial(function, x), args, named)

    def _draw(self, generator: RandomGenerator, name: str, args: Args, named: Named) -> Value:
        """Trace a method of a generator of random numbers."""
        methods = _DRAWN[generator.kind.owner]
        if name not in methods:
            raise self.scope.fail(f"random numbers of {name}() are not understood")
        if generator.kind.owner == "Random":
            return self.invoke(partial(methods[name], self.draws, generator), args, named)
        return drawn(self.draws, generator, name, methods[name], *args, **named)

    def _method_copy(self, x: Data) -> Value:
        return self.memory.copy(x) if is_array(x) else x

    def _method_astype(self, x: Data, dtype: Value, *, copy: Value = True) -> Value:
        dtype = self.arrays.dtype(dtype)
        return x if not self._flag(copy) and dtype == x.dtype else self.arrays.astype(x, dtype)

    def _method_item(self, x: Value) -> Value:
        if not isinstance(x, Data) or x.shape or x.weak or x.dtype.kind not in "fi":
            raise self.scope.fail("an item that is not understood")
        return self.arrays.python(
            float if x.dtype.kind == "f" else int, self.memory.value(x.expr, scalar=True)
        )

    def _method_clip(self, x: Data, min: Value = None, max: Value = None) -> Value:
        return self._traced_by("_np_clip")(x, min, max)

    def _method_fill(self, x: Data, value: Value) -> None:
        self.arrays.assign(x, value, strict=True)

    def _ufunc(self, name: str, args: Args, named: Named) -> Value:
        if name == "matmul":
            return self.invoke(self.reductions.matmul, args, named)
        if name not in UFUNCS:
            raise self.scope.fail(f"{name} does not compile")
        out = named.pop("out", None)
        if len(args) == UFUNCS[name].nin + 1:
            out = args[-1]
            args = args[:-1]
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if named or len(args) != UFUNCS[name].nin:
            raise self.scope.fail(f"arguments of {name} that are not understood")
        if out is None:
            return self.math.ufunc(name, args)
        value = self.math.elementwise(name, args)
        if not is_array(out) or out.shape != self.math.broadcast([value.shape, out.shape]):
            raise self.scope.fail("a result does not fit where it goes")
        if not np.can_cast(value.dtype, out.dtype, "same_kind"):
            raise self.scope.fail("a result does not fit the dtype of where it goes")
        self.arrays.assign(out, value, spent=True)
        return out

    def _of_c(self, name: str, *args: Value) -> Value:
        """Trace a function of `math` that is one of C's library, such as ``math.erf(x)``."""
        if len(args) != OPS[f"c_{name}"].nin:
            raise self.scope.fail("arguments that are not understood")
        given = [self.arrays.python(float, x) for x in args]
        if any(isinstance(x, Data) for x in given):
            return self.math.of_c(name, given)
        try:
            return C_LIBRARY[f"c_{name}"](*given)
        except (ValueError, ArithmeticError) as error:
            raise self.scope.fail(str(error)) from error

    def _scalar(self, dtype: DType, value: Value = 0.0, /) -> Value:
        """Trace the conversion of a number to a NumPy scalar, such as ``numpy.float64(value)``."""
        if not is_number(value) or is_array(value) or dtype.kind not in "fiubc":
            raise self.scope.fail("a scalar's constructor")
        if isinstance(value, Data):
            # Python's ints become floats first, NumPy's do not: only in 53 bits both are rounded alike.
            kinds = "fbi" if dtype == np.float64 else {"f": "fb", "c": "fbic"}.get(dtype.kind, "")
            if value.dtype.kind not in kinds or (dtype == np.complex64 and value.dtype.kind == "i"):
                raise self.scope.fail("a scalar's constructor")
            return self.arrays.astype(self.math.as_numpy(value), dtype)
        if type(value) is complex and dtype.kind != "c":
            raise self.scope.fail("a scalar's constructor")
        if type(value) is float and dtype.kind in "iu":
            value = self.arrays.python(int, value)
        return self.memory.value(self.math.expr(value, dtype), scalar=True)
