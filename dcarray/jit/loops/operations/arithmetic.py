"""Operators and element-wise operations on traced values, with NumPy's dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dcarray.core.ufunc_loops import ALIASES, UFUNCS, resolve, short_power
from dcarray.ir.build import apply_op
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Load
from dcarray.ir.ops import const
from dcarray.ir.windows import remap

from . import overflow
from .complex_numbers import ComplexNumbers, product
from .either_type import int_or_float, int_or_numpy, of_both
from .integers import Integers, plain_int
from .numbers import ERRORS
from .operators import BINARY, COMPARISONS, UNARY
from .sequences import compared_sequences, is_constant
from .texts import Character, compared
from .values import (
    INT_OR_FLOAT,
    PYTHON,
    Data,
    Masked,
    NumberList,
    PythonOrNumpy,
    RaggedList,
    Row,
    Shape,
    Stack,
    Value,
    is_array,
    is_int,
    is_number,
    kind_of,
    numpy_scalar,
    shape_of,
)

_I8, _U8 = np.dtype(np.int64), np.dtype(np.uint64)
_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)

_LOGICAL = {"&": "logical_and", "|": "logical_or", "^": "logical_xor"}
_OF_INTEGERS = {*_LOGICAL, "<<", ">>"}


class Arithmetic(Integers, ComplexNumbers):
    """Operators and ufuncs; values are stored in ``memory``."""

    # ---- element by element -------------------------------------------------------------------------
    def loop(self, name: str, inputs: Sequence[Value]) -> str:
        """Return the type signature of the inner loop that NumPy's ufunc chooses."""
        for x in inputs:
            if not is_number(x):
                raise self.scope.fail(f"{name} of something that is not a number")
        try:
            loop = resolve(name, tuple(map(kind_of, inputs)))
        except ERRORS as error:
            raise self.scope.fail(f"{name} has no loop for its operands") from error
        if loop is None:
            raise self.scope.fail(f"{name} does not compile for its operands")
        return loop

    def ufunc(self, name: str, inputs: Sequence[Value]) -> Data | Masked:
        """Return a ufunc on numbers, arrays and boolean selections."""
        if any(isinstance(x, Masked) for x in inputs):
            return self.masked_ufunc(name, inputs)
        return self.elementwise(name, inputs)

    def elementwise(self, name: str, inputs: Sequence[Value]) -> Data:
        """Return a ufunc (or "where") on numbers and arrays."""
        name = ALIASES.get(name, name)
        if name != "where" and all(type(x) in PYTHON for x in inputs):
            try:
                with np.errstate(all="raise"):
                    return numpy_scalar(UFUNCS[name](*inputs))
            except ERRORS as error:
                raise self.scope.fail(f"{name} of constants fails") from error
        if any(isinstance(x, Masked) for x in inputs):
            raise self.scope.fail(f"{name} of values that a mask selects")
        loop = self.loop(name, inputs)
        shape = self.broadcast([shape_of(x) for x in inputs])
        if name == "power":
            name = self._power(inputs, loop, shape)
        if name[:8] == "logical_" and any(type(x) is int and not -(2**63) <= x < 2**63 for x in inputs):
            raise self.scope.fail("NumPy refuses an integer of so many bits here")
        kinds, result = loop.split("->")
        args = [
            self.expand(self.expr(x, np.dtype(c)), shape_of(x), shape)
            for x, c in zip(inputs, kinds, strict=True)
        ]
        if name == "square" and result in "FD" and not is_array(inputs[0]):
            return self.memory.value(product(args[0], args[0]), scalar=True)
        return self.memory.value(apply_op(name, kinds, result, args), shape, scalar=not shape)

    def _power(self, inputs: Sequence[Value], loop: str, shape: Shape) -> str:
        """Return the operation of `dcarray.ir.ops` for ``numpy.power`` (see `dcarray.recording.power`)."""
        exponent = inputs[1]
        if loop[0] not in "efdFD":
            if type(exponent) is not int or exponent < 0:
                raise self.scope.fail("power of integers may raise: take a float, as in 2.0**n")
            return "power"
        if not shape_of(exponent):
            return "power"
        if loop[0] in "fd":
            arrays = [x for x in inputs if isinstance(x, Data) and is_array(x)]
            identical = all(x.dtype.char == loop[0] and x.shape == shape for x in arrays)
            frozen = any(x.window and x.window.array in self.memory.unwriteable for x in arrays)
            if not identical or frozen or any(x.readonly for x in arrays):  # these may have strides of 0
                raise self.scope.fail("NumPy may take one exponent for many elements, or not")
        return "array_power"

    def ones_if_unselected(self, x: Masked) -> Expr:
        """Return the full array of a selection, with 1 in place of unselected elements.

        The 1 is an input of the region, and so is a False that the mask is compared with: with constants the
        compiler selects between two results instead, and computes results of unselected elements."""
        one = self.expand(self.memory.entry_scalar("1", x.dtype, None).expr, (), x.full.shape)
        no = self.expand(self.memory.entry_scalar("False", _BOOL, None).expr, (), x.full.shape)
        return Apply("where", (Apply("logical_xor", (x.mask.expr, no), _BOOL), x.full.expr, one), x.dtype)

    def masked_ufunc(self, name: str, inputs: Sequence[Value]) -> Masked:
        """Return a ufunc on selections by the same mask, and on scalars."""
        first, *others = [x for x in inputs if isinstance(x, Masked)]
        identical = all(x.mask.expr is first.mask.expr and x.along == first.along for x in others)
        if any(is_array(x) for x in inputs) or not identical:
            raise self.scope.fail("what a mask chooses meets other arrays")
        given = [
            self.memory.value(self.ones_if_unselected(x), x.full.shape) if isinstance(x, Masked) else x
            for x in inputs
        ]
        return Masked(self.elementwise(name, given), first.mask, first.along)

    # ---- operators ----------------------------------------------------------------------------------
    def binary(self, op: str, a: Value, b: Value) -> Value:
        """Trace ``a op b``."""
        if isinstance(a, PythonOrNumpy) or isinstance(b, PythonOrNumpy):
            return self._same_for_both(op, a, b)
        if isinstance(a, Character) or isinstance(b, Character):
            return compared(self.memory, self.scope, op, a, b)
        name, function = BINARY[op]
        known = all(type(x) in PYTHON for x in (a, b))
        if known or not (is_number(a) and is_number(b)):
            return self._python(op, function, a, b)
        if is_int(plain_int(a)) and is_int(plain_int(b)):
            return self._known_integers(op, plain_int(a), plain_int(b))
        if not any(is_array(x) or isinstance(x, Masked) for x in (a, b)):
            scalar = self._scalars(op, a, b)
            return self._checked_operator(name, (a, b)) if scalar is None else scalar
        if op == "**" and (fast := _fast_power(a, b)):
            return self.ufunc(fast, (a,))
        return self.ufunc(name, (a, b))

    def _same_for_both(self, op: str, a: Value, b: Value) -> Value:
        """Trace an operation on a scalar that is of Python's or of NumPy's type at run time: the result has
        one type in both cases, or is again a scalar of either type."""
        first, second = (
            self.binary(op, *[getattr(x, side) if isinstance(x, PythonOrNumpy) else x for x in (a, b)])
            for side in ("python", "numpy")
        )
        kinds = kind_of(first), kind_of(second)
        if kinds == INT_OR_FLOAT and isinstance(second, Data):
            return self._int_or_float(op, first, second, a, b)
        if kinds in ((float, "d"), (bool, "?")) and isinstance(first, Data) and isinstance(second, Data):
            return PythonOrNumpy(first, second, self._is_other(a, b))
        is_numpy = self._is_other(a, b)
        if kinds in ((int, "d"), (int, "l")) and op in "+-" and isinstance(second, Data) and is_numpy:
            limits = self.limits(first)
            if max(map(abs, limits)) < 1 << 62:  # it does not wrap around
                return int_or_numpy(self.memory, second.expr, is_numpy.expr, limits)
        python = any(isinstance(x, PythonOrNumpy) and x.numpy.weak for x in (a, b))
        if kinds[0] != kinds[1] or (isinstance(kinds[1], type) and not python):
            raise self.scope.fail(f"{op} of a scalar whose type depends on whether a loop has run")
        return second

    def _is_other(self, *values: Value) -> Data | None:
        """Return whether one of some scalars of two types has the second one at run time; None if that is not
        known."""
        flags = [x.is_numpy for x in values if isinstance(x, PythonOrNumpy)]
        known = [flag for flag in flags if flag is not None]
        if len(known) < len(flags):
            return None
        return known[0] if len(known) == 1 else self.both("logical_or", *known)

    def _int_or_float(self, op: str, first: Value, second: Data, a: Value, b: Value) -> PythonOrNumpy:
        """Trace an operation on a number that is an int or a float at run time; both give the same value."""
        is_float = self._is_other(a, b)
        if is_float is None or op == "**":
            raise self.scope.fail(f"{op} of a scalar whose type depends on whether a loop has run")
        value = second.expr
        if op not in "+-" or b is None:  # no int is -0.0
            zero = Apply("add", (value, const(0.0, _F8)), _F8)
            value = Apply("where", (is_float.expr, value, zero), _F8)
        return int_or_float(self.memory, value, is_float.expr, self.limits(first))

    def _python(self, op: str, function: Callable[[Any, Any], Any], a: Value, b: Value) -> Value:
        known = (*PYTHON, str, tuple, list, type(None))
        same = op in ("==", "!=") and all(isinstance(x, np.dtype) or type(x) in known for x in (a, b))
        if not same and not (type(a) in known and type(b) in known):
            raise self.scope.fail(f"{op} of values that are not understood")
        if not (is_constant(a) and is_constant(b)):
            return compared_sequences(self, op, a, b)
        try:
            return function(a, b)
        except (*ERRORS, MemoryError) as error:
            raise self.scope.fail(f"{op} fails: {error}") from error

    def _known_integers(self, op: str, a: Dim, b: Dim) -> Value:
        if op in COMPARISONS:
            return self._compare(op, a, b)
        if op == "/":
            known = self.scope.eq(b, 0) is False or self.scope.need_le(1, b)
            return self.true_quotient(a, b if known else self.nonzero(b))
        if op in "//%" and (quotient := self.scope.quotient(a, b)) is not None:
            return quotient if op == "//" else self.scope.arithmetic("-", a, b * quotient)
        if op in "+-" or (op == "*" and (self.scope.is_fixed(a) or self.scope.is_fixed(b))):
            return self.scope.arithmetic(op, a, b)
        return self.integer(op, a, b)

    def _compare(self, op: str, a: Dim, b: Dim) -> Value:
        scope = self.scope
        if op in (">", ">="):
            return self._compare("<" + op[1:], b, a)
        if op in ("==", "!="):
            answer = scope.eq(a, b)
            answer = answer if op == "==" or answer is None else not answer
        else:
            answer = scope.lt(a, b) if op == "<" else scope.le(a, b)
        if answer is not None:
            return answer
        expr = Apply(BINARY[op][0], (self.expr(a, _I8), self.expr(b, _I8)), _BOOL)
        return self.memory.value(expr, scalar=True, weak=bool)

    def _scalars(self, op: str, a: Value, b: Value) -> Value:
        """Trace an operation on scalars; return None if the ufunc of the operation computes the same."""
        kinds = [kind_of(x) for x in (a, b)]
        if kinds == [complex, "d"]:  # Python takes a float64 for a float: the result is no NumPy scalar
            raise self.scope.fail(f"{op} of a Python complex number and a float64")
        weak = all(isinstance(k, type) for k in kinds)
        if (weak or op == "**") and op not in COMPARISONS and op not in _OF_INTEGERS:
            texts = [_text(x) for x in (a, b)]
            if all(texts):
                kind = max(kinds, key=PYTHON.index) if weak else None
                if op == "**" or kind in (float, complex):
                    dtype = np.dtype(kind) if weak else np.dtype(self.loop(BINARY[op][0], (a, b))[-1])
                    return self.memory.entry_scalar(f"({texts[0]} {op} {texts[1]})", dtype, kind)
        if op == "**" and set(kinds) <= {float, int, "d"} and not set(kinds) <= {int}:
            return self.of_c("pow", [a, b], float if weak else None)
        if not weak:
            divides = kind_of(b) in (float, "f", "d", "e") or (type(b) is int and b != 0)
            if op == "**" or (op in ("//", "%") and not divides):
                raise self.scope.fail(f"{op} of scalars")
            return None
        kind = max(kinds, key=PYTHON.index)
        if kind is complex:
            return self.complex_operator(op, a, b)
        if op in COMPARISONS:
            dtype = _F8 if kind is float else _I8
            expr = Apply(BINARY[op][0], (self.exact(a, dtype), self.exact(b, dtype)), _BOOL)
            return self.memory.value(expr, scalar=True, weak=bool)
        if kind is float and op in ("+", "-", "*", "/", "//", "%"):
            args = self.expr(a, _F8), self.expr(b, _F8)
            expr = Apply(BINARY[op][0], args, _F8)
            if op in ("/", "//", "%") and not self._nonzero(b):  # Python raises an error for any dividend
                fits = Apply("not_equal", (args[1], const(0.0, _F8)), _BOOL)
                expr = Apply("checked", (fits, expr), _F8)
            return self.memory.value(expr, scalar=True, weak=float)
        if kind is int:
            return self.true_quotient(a, self.nonzero(b)) if op == "/" else self.integer(op, a, b)
        if kind is bool and op in _LOGICAL:
            expr = Apply(_LOGICAL[op], (self.expr(a, _BOOL), self.expr(b, _BOOL)), _BOOL)
            return self.memory.value(expr, scalar=True, weak=bool)
        raise self.scope.fail(f"{op} of Python scalars")

    def of_c(self, name: str, args: Sequence[Value], weak: type | None = float) -> Data:
        """Trace a function of the C library on scalars.  For Python's numbers (``weak``) results for which
        Python raises an error are checked at run time."""
        given = tuple([self.expr(x, _F8) for x in args])
        expr: Expr = Apply(f"c_{name}", given, _F8)
        if weak:
            special = [Apply(test, (expr,), _BOOL) for test in ("isnan", "isinf")]
            for x in given:
                ordinary_operand = [
                    Apply("logical_not", (Apply("isnan", (x,), _BOOL),), _BOOL),
                    Apply("isfinite", (x,), _BOOL),
                ]
                special = [
                    Apply("logical_and", (b, ordinary), _BOOL)
                    for b, ordinary in zip(special, ordinary_operand, strict=True)
                ]
            fits = Apply("logical_not", (Apply("logical_or", tuple(special), _BOOL),), _BOOL)
            expr = Apply("checked", (fits, expr), _F8)
        return self.memory.value(expr, scalar=True, weak=weak)

    def _nonzero(self, b: Value) -> bool:
        if is_int(b):
            return self.scope.eq(b, 0) is False
        if type(b) in PYTHON and not b:
            raise self.scope.fail("a division by zero")
        return type(b) in PYTHON

    def unary(self, op: str, a: Value) -> Value:
        """Trace ``op a``."""
        name, function = UNARY[op]
        if isinstance(a, PythonOrNumpy) and op == "-" and a.numpy.weak:
            return self._int_or_float(op, self.unary(op, a.python), self.unary(op, a.numpy), a, None)
        if isinstance(a, PythonOrNumpy):
            return of_both(partial(self.unary, op), a, self.scope)
        if type(a) in PYTHON:
            return self._python(op, lambda x, _: function(x), a, None)
        if is_int(a) and op in "+-":
            return self.scope.arithmetic("*", a, 1 if op == "+" else -1)
        if isinstance(a, Data) and a.weak is int:
            if op == "+":
                return a
            return self.integer("-", 0 if op == "-" else -1, a)
        if is_int(a) and op == "~":
            return self.scope.arithmetic("-", -1, a)
        if isinstance(a, Data) and a.weak is complex and op in "+-" and not a.text:
            return a if op == "+" else self.negative_complex(a)
        if isinstance(a, Data) and a.weak in (float, complex) and op in "+-":
            if a.text:
                return self.memory.entry_scalar(f"({op}{a.text})", a.dtype, a.weak)
            return self.memory.value(Apply(name, (a.expr,), a.dtype), scalar=True, weak=float)
        if not (isinstance(a, Masked) or (isinstance(a, Data) and not a.weak)):
            raise self.scope.fail(f"{op} of a value that is not understood")
        return (
            self.ufunc(name, (a,))
            if isinstance(a, Masked) or is_array(a)
            else self._checked_operator(name, (a,))
        )

    def _checked_operator(self, name: str, inputs: tuple[Value, ...]) -> Data:
        """Trace an operator on NumPy scalars, with a check for integer overflow, since NumPy warns of it."""
        value = self.elementwise(name, inputs)
        if value.dtype.kind == "c" and name == "multiply":
            return self.memory.value(product(*[self.expr(x, value.dtype) for x in inputs]), scalar=True)
        if value.dtype.kind in "iu" and name in overflow.WATCHED:
            args = tuple([self.expr(x, value.dtype) for x in inputs])
            checked = overflow.with_overflow_check(name, value.expr, args, value.dtype)
            return self.memory.value(checked, scalar=True)
        return value

    # ---- truth --------------------------------------------------------------------------------------
    def truth(self, value: Value) -> bool | Data:
        """Trace ``bool(value)``."""
        if isinstance(value, PythonOrNumpy):
            value = value.numpy
        if isinstance(value, Row | Stack):
            value = self.length(value)
        if isinstance(value, NumberList | RaggedList):
            value = (value.array if isinstance(value, NumberList) else value.starts).shape[0]
        if isinstance(value, Data):
            if any(n != 1 for n in value.shape):
                raise self.scope.fail("the truth of an array: ask a.any() or a.all()")
            expr = remap(value.expr, (Index(0),) * len(value.shape), ()) if value.shape else value.expr
            if expr.dtype != _BOOL:
                expr = Apply("not_equal", (expr, const(0, expr.dtype)), _BOOL)
            return self.memory.value(expr, scalar=True, weak=bool)
        if is_int(value):
            answer = self._compare("!=", value, 0)
            return answer if isinstance(answer, Data) else bool(answer)
        if value is None or type(value) in (*PYTHON, str, tuple, list):
            return bool(value)
        raise self.scope.fail("the truth of a value that is not understood")

    def length(self, stack: Stack | Row) -> Data:
        """Return how many numbers a list that grows and shrinks has now."""
        if isinstance(stack, Row):
            return stack.length
        limits = 0, self.scope.limits(stack.items.array.shape[0])[1]
        return self.memory.value(Load(stack.count, _I8), scalar=True, weak=int, limits=limits)

    def negation(self, value: Value) -> bool | Data:
        """Trace ``not value``."""
        value = self.truth(value)
        if isinstance(value, bool):
            return not value
        return self.memory.value(Apply("logical_not", (value.expr,), _BOOL), scalar=True, weak=bool)

    def both(self, name: str, a: Data, b: Data) -> Data:
        """Trace ``logical_and`` or ``logical_or`` of two run-time bools."""
        return self.memory.value(Apply(name, (a.expr, b.expr), _BOOL), scalar=True, weak=bool)


class Operations:
    """Base of the classes of operations, which share the arithmetic and the region's memory."""

    def __init__(self, math: Arithmetic) -> None:
        self.math, self.memory, self.scope = math, math.memory, math.scope


def _text(value: Value) -> str:
    """Return the Python expression of a scalar that depends only on names bound at the loop's begin, or
    ""."""
    if isinstance(value, Data):
        return value.text
    finite = type(value) in (bool, int, float) and value == value and abs(value) < np.inf
    return f"({value!r})" if finite else ""


def _fast_power(x: Value, exponent: Value) -> str:
    """Return the ufunc that NumPy's ``**`` uses for some scalar exponents of arrays, such as ``square``:
    these are exact, ``power`` is not."""
    if not (is_array(x) or isinstance(x, Masked)) or type(exponent) not in (int, float):
        return ""
    return short_power(x.dtype.kind, exponent)
