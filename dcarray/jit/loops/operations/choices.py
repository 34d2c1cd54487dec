"""Random choices in traced code: of the items of a vector, or of integers, also with probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Compute, Index, Load, Loop, Window
from dcarray.ir.ops import const

from ..entry.entry_values import PublicObject
from .draws import Draws
from .values import Data, RandomGenerator, Value, is_array, is_number

__all__ = ["choice"]

_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
_UNIFORM = "random_standard_uniform"
_CLOSE = 1e-9  # to 1, for a sum of probabilities; NumPy's own bound is larger


def choice(d: Draws, g: RandomGenerator, items: Value, size: Value, p: Value) -> Value:
    """Trace a random draw of ``size`` of the ``items``, with replacement and optional probabilities ``p``."""
    single = is_number(items) and not is_array(items)
    array = None if single else _called(d, "asarray", items)
    if array is not None and len(array.shape) != 1:
        raise d.scope.fail("a choice from something that is not a vector")
    count = items if array is None else array.shape[0]
    if p is None:
        weak = int if size is None or array is not None else None
        place: Value = d.integers(g, 0, count, size, weak, endpoint=False)
    else:
        place = _place(d, g, count, size, _called(d, "asarray", p))
    return place if array is None else d.arrays.getitem(d.memory.array(array), place)


def _called(d: Draws, name: str, *args: Value) -> Any:
    """Trace a call of the NumPy function ``name`` and return its result."""
    return d.call(PublicObject(f"numpy.{name}"), args, {})


def _place(d: Draws, g: RandomGenerator, count: Value, size: Value, p: Data) -> Data:
    """Trace a draw of an index with the probabilities ``p``: the number of running sums of ``p`` that a
    random number reaches or exceeds."""
    if size is not None or type(count) is not int or p.dtype != _F8 or p.shape != (count,) or not count:
        raise d.scope.fail("a choice with probabilities that is not understood")
    sums = _running_sums(d, d.memory.array(p), count)
    total = d.arrays.getitem(sums, count - 1)
    least = _called(d, "min", p)
    distance = Apply("absolute", (Apply("subtract", (total.expr, const(1.0, _F8)), _F8),), _F8)
    fits = [
        Apply("greater_equal", (least.expr, const(0.0, _F8)), _BOOL),
        Apply("less", (distance, const(_CLOSE, _F8)), _BOOL),
    ]
    number = d.of_function(g, _UNIFORM, [], None)
    checked = d.memory.value(d.checked(number.expr, 0.5, *fits), scalar=True, weak=float)
    not_above = d.math.ufunc("less_equal", (d.math.binary("/", sums, total), checked))
    place = d.reductions.count_true(not_above)
    place.limits = 0, count - 1
    return place


def _running_sums(d: Draws, p: Data, count: int) -> Data:
    """Return the running sums of a vector, added one after the other, which any kernel can contain."""
    memory, loc = d.memory, d.memory.loc
    sums, total = d.arrays.empty((count,), _F8), memory.new((), _F8, "total")
    assert sums.window is not None
    memory.emit(Compute(total, const(0.0, _F8), loc=loc))
    with memory.variable("turn") as var, memory.nested_block() as block:
        place = dims.symbol(var, None)
        with d.scope.loop(var, 0, count - 1):
            element = d.math.expr(d.arrays.getitem(p, place), _F8)
        memory.emit(Compute(total, Apply("add", (Load(total, _F8), element), _F8), loc=loc))
        memory.emit(Compute(Window(sums.window.array, (), (Index(place),)), Load(total, _F8), loc=loc))
    memory.emit(Loop(var, (0, count, 1), tuple(block), loc=loc))
    memory.forget(var)
    return sums
