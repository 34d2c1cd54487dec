"""A script that depends on array types: isinstance, dispatch, match, subclasses, masked arrays, protocols."""

import functools
import numbers
from collections.abc import Iterable, Sized

import numpy as np


class Quantity(np.ndarray):
    """An array with a unit that operations propagate."""

    def __new__(cls, data, unit=""):
        made = np.asarray(data, dtype=float).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", "")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [np.asarray(x) if isinstance(x, Quantity) else x for x in inputs]
        if out is not None:
            options["out"] = tuple(np.asarray(x) if isinstance(x, Quantity) else x for x in out)
        result = getattr(ufunc, method)(*plain, **options)
        units = [getattr(x, "unit", "") for x in inputs]
        joined = "*".join(sorted(filter(None, units))) if ufunc is np.multiply else max(units, key=len)
        return Quantity(result, joined) if isinstance(result, np.ndarray) else result


class Logged:
    """A class that opts out of NumPy's ufuncs and implements arithmetic with arrays itself."""

    __array_priority__ = 1000

    def __init__(self):
        self.calls = []

    def __array_function__(self, function, types, args, kwargs):
        self.calls.append(function.__name__)
        return "handled"

    def __rmul__(self, other):
        return "rmul", type(other).__name__

    __array_ufunc__ = None


@functools.singledispatch
def describe(x):
    return "something"


@describe.register
def _(x: np.ndarray):
    return f"array {x.dtype} {x.shape}"


@describe.register(numbers.Real)
def _(x):
    return f"number {x:.5f}"


def kind(x):
    match x:
        case np.ndarray(ndim=0):
            return "scalar array"
        case np.ndarray(shape=(n,)):
            return f"vector of {n}"
        case np.floating() | float():
            return "float"
        case _:
            return type(x).__name__


length = Quantity(np.linspace(0, 3, 20_000), "m")
speed = Quantity(np.ones(20_000), "m/s")
plain = np.zeros(20_000)
for k in range(30):
    length = length + speed * 0.01
    plain += np.asarray(length) * 0.1
    plain[k] = length[k]
area = length * length
print(type(length).__name__, length.unit, area.unit, area.sum(), type(plain).__name__, plain.sum())
print(
    type(length[:3]).__name__,
    length[2:4].unit,
    type(length.sum()).__name__,
    isinstance(length.view(np.ndarray), Quantity),
)

x = np.arange(10_000.0)
for _ in range(5):
    x = x * 0.5 + 1
print(describe(x), describe(x.mean()), describe(x[0]), describe(float(x[1])), describe([1]))
print(kind(x), kind(x.sum()), kind(np.array(1.0)), kind(x[:5]), kind(x > 1), kind(x.tolist()[0]))
print(
    isinstance(x, Iterable),
    isinstance(x, Sized),
    isinstance(x[0], numbers.Real),
    type(x) is np.ndarray,
    issubclass(type(x), np.ndarray),
)

log = Logged()
print(x * log, np.concatenate([x, log]), np.sum(log), log.calls)
try:
    x + log
except TypeError as error:
    print(type(error).__name__)

masked = np.ma.masked_greater(x, 2.5)
for _ in range(10):
    masked = masked * 1.01
    masked[3] = np.ma.masked
print(type(masked).__name__, masked.count(), masked.sum(), masked.mean(), type(x * masked).__name__)
matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
for _ in range(4):
    matrix = matrix * matrix / 5
print(type(matrix).__name__, matrix.shape, matrix.sum(), type(np.ones((2, 2)) @ matrix).__name__)
rec = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])
rec.b *= 3
print(type(rec).__name__, rec.a.sum(), rec.b, rec[0].b, np.char.upper(np.array(["a", "b"])))
objects = np.array([x[:2], None, "text"], dtype=object)
for k in range(3):
    objects[1] = k
print(type(objects[0]).__name__, objects[1], objects[2] == "text", np.isscalar(x[0]), np.ndim(3))
