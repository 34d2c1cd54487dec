"""Random numbers of NumPy's and Python's generators in traced code: what functions and methods draw.

A draw is a call of the region that reads and writes the generator's state, so it stays where the program has
it, in order with the other draws.  Arrays are loops over their elements, as NumPy fills them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial, reduce
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.draw_calls import call_of
from dcarray.ir.draws import DRAWS
from dcarray.ir.nodes import Apply, Array, Compute, Const, Expr, Index, Load, Loop, Stmt, While, Window
from dcarray.ir.ops import const, const_value

from ..entry.entry_values import DType
from ..entry.generators import GLOBAL, PYTHON, WORDS, Generator, part_text
from .arithmetic import Operations
from .reductions import Reductions
from .values import Data, RandomGenerator, Shape, Value, is_array, is_number, whole_window

_F8, _I4, _I8, _U8 = np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)
_U4, _BOOL = np.dtype(np.uint32), np.dtype(np.bool_)
_LARGEST_BOUND = 1 << 62  # bounds of random integers
LARGEST_COUNT = 1 << 52  # of other random integers, which are counts
WORD = 32  # bits of a number that a Mersenne Twister draws
_ONES = (1 << WORD) - 1

Write = Callable[[Window], None]
"""What emits the statements that write one number to an element."""


class Draws(Operations):
    """Draws of random numbers.

    Attributes
    ----------
    allowed : bool
        Whether the code may draw random numbers: it runs on the processor, where the generators are.
    call : callable
        The function that traces calls of other functions.
    """

    def __init__(self, reductions: Reductions, call: Callable[[Value, Any, Any], Value]) -> None:
        super().__init__(reductions.math)
        self.arrays, self.reductions, self.call = reductions.arrays, reductions, call
        self.allowed = False
        self._parts: dict[tuple[str, str], Window] = {}

    def of_numpy(self) -> RandomGenerator:
        """Return the generator of NumPy's functions."""
        return RandomGenerator(GLOBAL, Generator("MT19937", "RandomState"))

    def of_python(self) -> RandomGenerator:
        """Return the generator of the functions of `random`."""
        return RandomGenerator(PYTHON, Generator("MT19937", "Random"))

    def part(self, generator: RandomGenerator, part: str) -> Window:
        """Return the memory of one part of a generator, such as its state; `generators.Parts` lists them."""
        window = self._parts.get((generator.name, part))
        if window is None:
            if not self.allowed:
                raise self.scope.fail("random numbers are not drawn here")
            dtypes: dict[str, DType] = {"state": _U4, "has_gauss": _I4, "gauss": _F8}
            shapes = {"address": (), "binomial": (), "state": (WORDS[generator.kind.bits],)}
            shape = shapes.get(part, (1,))
            name = self.memory.name(part)
            self.memory.declare(Array(name, dtypes.get(part, _U8), shape, "in"))
            self.memory.inputs[name] = part_text(generator.name, part, generator.kind)
            window = self._parts[generator.name, part] = whole_window(name, shape)
        return window

    # ---- one number ---------------------------------------------------------------------------------
    def native(
        self, generator: RandomGenerator, name: str, args: Sequence[Load | Const], target: Window
    ) -> None:
        """Draw a number by a NumPy function of the table `DRAWS`, and store it in ``target``."""
        state, address = self.part(generator, "state"), self.part(generator, "address")
        order, loc = self.memory.order_of_draws(), self.memory.loc
        self.memory.emit(call_of(state, order, address, name, args, target, loc))

    def stored(self, expr: Expr) -> Load | Const:
        """Return an argument as a constant, or as memory into which it is computed now."""
        if isinstance(expr, Const) and np.isfinite(const_value(expr)):
            return expr
        if isinstance(expr, Load) and not expr.window.shape:
            return expr
        window = self.memory.new((), expr.dtype, "argument")
        self.memory.emit(Compute(window, expr, loc=self.memory.loc))
        return Load(window, expr.dtype)

    def numbers(self, size: Value, dtype: DType, write: Write, weak: type | None = None) -> Data:
        """Return one number, or an array of numbers if ``size`` is not None."""
        if size is None:
            window = self.memory.new((), dtype, "drawn")
            write(window)
            self.memory.immutable.add(window.array)
            return self.memory.value(Load(window, dtype), scalar=True, weak=weak)
        shape = self.arrays.shape(size)
        array = self.arrays.empty(shape, dtype)
        assert array.window is not None
        self._each(array.window.array, shape, (), write)
        return array

    def _each(self, array: str, shape: Shape, index: tuple[Index, ...], write: Write) -> None:
        """Emit writes of an array's elements in order; ``index`` holds the indices of its first axes."""
        if len(index) == len(shape):
            write(Window(array, (), index))
            return
        count = shape[len(index)]
        with ExitStack() as stack:
            var = stack.enter_context(self.memory.variable("turn"))
            stack.enter_context(self.scope.loop(var, 0, dims.simplify(count - 1)))
            block: list[Stmt] = stack.enter_context(self.memory.nested_block())
            self._each(array, shape, (*index, Index(dims.symbol(var, None))), write)
        self.memory.emit(Loop(var, (0, count, 1), tuple(block), loc=self.memory.loc))

    # ---- arguments ----------------------------------------------------------------------------------
    def real(self, value: Value) -> Expr:
        """Return an argument, a number, as a double; arrays are refused."""
        if not is_number(value) or is_array(value):
            raise self.scope.fail("an argument of a random number that is not a scalar")
        if isinstance(value, Data) and value.dtype.kind not in "fiub":
            raise self.scope.fail("an argument of a random number that is not real")
        return self.math.expr(value, _F8)

    def checked(self, value: Expr, harmless: float, *holds: Expr) -> Expr:
        """Return an argument of a draw with run-time checks.  Where one does not hold, NumPy raises an
        error.  The compiled draw gets a harmless argument there, so that it ends, and gives a number within
        its bounds."""
        self.memory.may_raise = True
        fits = reduce(lambda a, b: Apply("logical_and", (a, b), _BOOL), holds)
        kept = Apply("where", (fits, value, const(harmless, value.dtype)), value.dtype)
        return Apply("checked", (fits, kept), value.dtype)

    def at_least_0(self, value: Value) -> Expr:
        """Return an argument with a check that it is not negative (nor -0.0)."""
        expr = self.real(value)
        if type(value) in (int, float, bool) and value >= 0 and not np.signbit(value):
            return expr
        return self.checked(expr, 1.0, Apply("logical_not", (Apply("signbit", (expr,), _BOOL),), _BOOL))

    def above_0(self, value: Value) -> Expr:
        """Return an argument with a check that it is positive."""
        expr = self.real(value)
        if type(value) in (int, float) and value > 0:
            return expr
        return self.checked(expr, 1.0, Apply("greater", (expr, const(0.0, _F8)), _BOOL))

    def chance(self, value: Value, least: float) -> Expr:
        """Return an argument with a check that it is between ``least`` and 1."""
        expr = self.real(value)
        ends = [("greater_equal", least), ("less_equal", 1.0)]
        return self.checked(expr, 1.0, *[Apply(op, (expr, const(end, _F8)), _BOOL) for op, end in ends])

    def range_of(self, low: Expr, high: Expr, may_be_negative: bool) -> Expr:
        """Return the length of an interval with a check that it is finite, and, unless allowed, not
        negative."""
        if isinstance(low, Const) and isinstance(high, Const):
            known = float(const_value(high)) - float(const_value(low))
            if np.isfinite(known) and known >= 0.0:
                return const(known, _F8)
        length = Apply("subtract", (high, low), _F8)
        holds = [Apply("isfinite", (length,), _BOOL)]
        if not may_be_negative:
            holds.append(Apply("logical_not", (Apply("signbit", (length,), _BOOL),), _BOOL))
        return self.checked(length, 1.0, *holds)

    # ---- integers -----------------------------------------------------------------------------------
    def integers(
        self, generator: RandomGenerator, low: Value, high: Value, size: Value, weak: type | None,
        endpoint: bool,
    ) -> Data:  # fmt: skip
        """Trace a draw of 64-bit integers between ``low`` and ``high``."""
        low, high = (0, low) if high is None else (low, high)
        low, high = self.end(low), self.end(high)
        pythons = generator.kind.owner == "Random"
        (least, lowest), (highest, most) = self.math.limits(low), self.math.limits(high)
        known = least == lowest and highest == most
        most, highest = most - (not endpoint), highest - (not endpoint)
        if most < least or least < -_LARGEST_BOUND or max(most, lowest) > _LARGEST_BOUND:
            raise self.scope.fail("the range of random integers may be empty or very large")
        start, last = self.math.expr(low, _I8), self.math.expr(high, _I8)
        span: Expr = Apply("subtract", (last, start), _I8)
        if not endpoint:
            span = Apply("subtract", (span, const(1, _I8)), _I8)
        fits = [Apply("greater_equal", (span, const(0, _I8)), _BOOL)] * (lowest > highest)
        if pythons and most - least >= _ONES:
            fits.append(Apply("less", (span, const(_ONES, _I8)), _BOOL))
        if fits:
            start, span = [self.checked(x, n, *fits) for x, n in ((start, least), (span, 0))]
        start, span = [Apply("cast", (x,), _U8) for x in (start, span)]
        if least == lowest:
            start = const(least % (1 << 64), _U8)
        if known:
            span = const(most - least, _U8)
        args = [self.stored(start), self.stored(span)]
        if pythons:
            write: Write = partial(self._below, generator, args[0], args[1])
        else:
            masked = generator.kind.owner == "RandomState"
            args.append(self.stored(_mask(args[1])) if masked else const(0, _U8))
            args.append(const(int(masked), _U8))
            write = partial(self.native, generator, "random_bounded_uint64", args)
        numbers = self.numbers(size, _I8, write, weak if size is None else None)
        if numbers.weak is int:
            numbers.limits = least, most
        return numbers

    def word(self, generator: RandomGenerator, shift: Expr, target: Window) -> None:
        """Write a word of a Mersenne Twister, shifted to the right."""
        ones = const(_ONES, _U8)
        self.native(generator, "random_bounded_uint64", [const(0, _U8), ones, ones, const(1, _U8)], target)
        value = Apply("right_shift", (Load(target, _I8), shift), _I8)
        self.memory.emit(Compute(target, value, loc=self.memory.loc))

    def _below(self, generator: RandomGenerator, start: Expr, span: Expr, target: Window) -> None:
        """Write a random integer as Python draws it: upper bits of words, until they are at most ``span``."""
        memory, loc = self.memory, self.memory.loc
        if isinstance(span, Const):
            shift: Expr = const(WORD - (int(const_value(span)) + 1).bit_length(), _I8)
        else:
            bits = _mask(Apply("add", (span, const(1, _U8)), _U8))
            count = Apply("cast", (Apply("bitwise_count", (bits,), np.dtype(np.uint8)),), _I8)
            shift = self.stored(Apply("subtract", (const(WORD, _I8), count), _I8))
        number, going = memory.new((), _I8, "number"), memory.new((), _BOOL, "going")
        last = Apply("cast", (span,), _I8)
        memory.emit(Compute(going, const(True, _BOOL), loc=loc))
        with memory.nested_block() as block:
            self.word(generator, shift, number)
            above = Apply("greater", (Load(number, _I8), last), _BOOL)
            memory.emit(Compute(going, above, loc=loc))
        memory.emit(While(Load(going, _BOOL), tuple(block), loc=loc))
        value = Apply("add", (Apply("cast", (start,), _I8), Load(number, _I8)), _I8)
        memory.emit(Compute(target, value, loc=loc))

    def end(self, value: Value) -> Value:
        """Return a bound of random integers as a Python int."""
        if not is_number(value) or is_array(value) or type(value) in (float, complex, bool):
            raise self.scope.fail("bounds of random integers that are not integers")
        if not isinstance(value, Data) or value.weak is int:
            return value
        if value.dtype.kind not in "iu" or value.weak is not None:
            raise self.scope.fail("bounds of random integers that are not integers")
        return self.math.as_counter(value)

    def of_function(self, generator: RandomGenerator, name: str, args: list[Expr], size: Value) -> Data:
        """Trace one number or ``size`` numbers drawn by a function of the table `DRAWS`."""
        dtype = DRAWS[name].result
        write = partial(self.native, generator, name, [self.stored(arg) for arg in args])
        numbers = self.numbers(size, dtype, write, (float if dtype == _F8 else int) if size is None else None)
        if numbers.weak is int:
            numbers.limits = 0, LARGEST_COUNT
        return numbers


def _mask(span: Expr) -> Expr:
    """Return the least number of the form 2**k - 1 that is not below ``span``."""
    if isinstance(span, Const):
        return const((1 << int(const_value(span)).bit_length()) - 1, _U8)
    for shift in (1, 2, 4, 8, 16, 32):
        span = Apply("bitwise_or", (span, Apply("right_shift", (span, const(shift, _U8)), _U8)), _U8)
    return span
