"""The table of all operations: for each its meaning (a reference in NumPy) and its properties for passes.

Element-wise operations are named after NumPy's ufuncs and mean exactly what the ufunc's loop for the
argument dtypes computes.  ``CALLS`` holds the library calls, whose reference acts on whole windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir.records import record

if TYPE_CHECKING:
    from .nodes import Const


@record(frozen=True, slots=True)
class Op:
    """An element-wise operation.

    ``reference`` takes NumPy arrays of the loop's input dtypes.  ``cost`` is in units of one addition
    (what duplicating it by fusion costs).  ``combine`` says that it is associative and commutative and
    may fold values; ``identity`` starts such a fold (None: the first value does).
    """

    name: str
    nin: int
    reference: Callable[..., Any]
    cost: float = 1.0
    combine: bool = False
    identity: Any = None


#: Functions of the C library, on which Python's own are built: other bits than NumPy's loops have.
C_LIBRARY: dict[str, Callable[..., float]] = {
    f"c_{function.__name__}": function
    for function in (
        math.acos, math.acosh, math.asin, math.asinh, math.atan, math.atan2, math.atanh, math.cbrt, math.cos,
        math.cosh, math.erf, math.erfc, math.exp, math.exp2, math.expm1, math.fmod, math.log, math.log10,
        math.log1p, math.log2, math.pow, math.sin, math.sinh, math.tan, math.tanh,
    )
} | {"c_hypot": lambda x, y: abs(complex(x, y))}  # fmt: skip


def _where(cond: Any, x: Any, y: Any) -> Any:
    return np.where(cond, x, y)


def _complex(real: Any, imag: Any) -> Any:
    """Return complex numbers, given their real and imaginary parts."""
    parts = np.stack(np.broadcast_arrays(real, imag), axis=-1)
    return parts.view(np.dtype(parts.dtype.char.upper()))[..., 0]


def _checked(fits: Any, value: Any) -> Any:
    """Return a value, and raise the flag of an invalid operation where ``fits`` is False."""
    np.sqrt(np.where(fits, 1.0, -1.0))
    return np.where(True, value, value)


#: Is what an operation gives for two integers the true number, or has it wrapped?
FITS = {"add_fits": "add", "subtract_fits": "subtract", "multiply_fits": "multiply"}


def _fits(name: str) -> Callable[..., Any]:
    """Return a function that says whether the integer operation ``name`` gives the exact result,
    element-wise."""

    def one(x: Any, y: Any) -> Any:
        ufunc = getattr(np, FITS[name])
        with np.errstate(all="ignore"):
            return ufunc(x, y) == ufunc(x.astype(object), y.astype(object))

    return one


# The exponents for which NumPy's loop may not call a library, if one exponent is for all of its elements.
_EXPONENTS = (-1.0, 0.0, 0.5, 1.0, 2.0)


def power(x: Any, y: Any) -> Any:
    """Return ``x ** y`` for arrays, each element with the bits that NumPy computes for a scalar exponent."""
    x, y = np.broadcast_arrays(x, y)
    if x.size and not any(y.strides):
        return np.power(x, y[(0,) * y.ndim])
    short = [y == value for value in _EXPONENTS]
    others = ~np.logical_or.reduce(short)
    powers = np.empty(x.shape, x.dtype)
    powers[others] = _array_power(x[others], y[others])
    for value, those in zip(_EXPONENTS, short, strict=True):
        powers[those] = np.power(x[those], y.dtype.type(value))
    return powers


def _array_power(x: Any, y: Any) -> Any:
    """Return ``x ** y`` with the bits that NumPy computes for an array of exponents."""
    x, y = np.broadcast_arrays(x, y)
    if x.size != 1:
        return np.power(x, np.array(y, order="C"))
    return np.power(np.repeat(x, 2), np.repeat(y, 2))[:1].reshape(x.shape)  # or it would be one for all


def _by_python(function: Callable[..., float]) -> Callable[..., Any]:
    """Return an element-wise version of a Python function, which gives NaN where ``function`` raises."""

    def one(*args: float) -> float:
        try:
            return function(*args)
        except (ArithmeticError, ValueError):
            return math.nan

    return np.vectorize(one, otypes=[np.float64])


def _table() -> dict[str, Op]:
    ops: dict[str, Op] = {}

    def put(names: str, cost: float = 1.0) -> None:
        for name in names.split():
            ufunc = getattr(np, name)
            ops[name] = Op(name, ufunc.nin, ufunc, cost)

    put("add subtract multiply negative positive absolute conjugate square sign signbit copysign fabs")
    put("maximum minimum fmax fmin less less_equal greater greater_equal equal not_equal")
    put("logical_and logical_or logical_xor logical_not isnan isinf isfinite")
    put("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count")
    put("floor ceil trunc rint deg2rad rad2deg spacing nextafter heaviside", 2.0)
    put("divide sqrt reciprocal", 4.0)
    put("floor_divide remainder fmod gcd lcm ldexp", 12.0)
    put("exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan", 12.0)
    put("sinh cosh tanh arcsinh arccosh arctanh hypot logaddexp logaddexp2", 16.0)
    put("power float_power arctan2", 25.0)
    # NumPy's power has other bits where the exponent is an array than where one exponent is for all.
    ops["array_power"] = Op("array_power", 2, _array_power, 25.0)
    ops["where"] = Op("where", 3, _where)
    ops["real"] = Op("real", 1, np.real)
    ops["imag"] = Op("imag", 1, np.imag)
    ops["complex"] = Op("complex", 2, _complex)
    ops["checked"] = Op("checked", 2, _checked)
    for name in FITS:
        ops[name] = Op(name, 2, _fits(name))
    # "cast" converts its argument to ``Apply.dtype`` as astype(casting="unsafe") does; the
    # interpreter knows the target dtype from the node, hence no reference here.
    ops["cast"] = Op("cast", 1, lambda x: x, 0.5)
    for name, function in C_LIBRARY.items():
        two = name in ("c_pow", "c_atan2", "c_fmod", "c_hypot")
        ops[name] = Op(name, 1 + two, _by_python(function), 25.0 if two else 12.0)
    folds = {
        "add": 0, "multiply": 1, "maximum": None, "minimum": None, "fmax": None, "fmin": None,
        "logical_and": True, "logical_or": False, "logical_xor": False,
        "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0,
    }  # fmt: skip
    for name, identity in folds.items():
        old = ops[name]
        ops[name] = Op(name, old.nin, old.reference, old.cost, True, identity)
    return ops


OPS: dict[str, Op] = _table()

# Operations of which a ufunc of another name has the loops, those over floating-point and complex numbers.
LOOPS_OF = {"array_power": "power"}

# The position of the first extremum, NaN being one: recorded like reductions, built from two (``build``).
PLACES = {"argmax": "maximum", "argmin": "minimum"}

# Scans, by the operation that they accumulate: recorded like reductions whose result keeps its axis.
SCANS = {f"accumulate.{name}": name for name, op in OPS.items() if op.combine}


@lru_cache(maxsize=4096)
def loop_dtype(op: str, args: tuple[np.dtype[Any], ...]) -> np.dtype[Any] | None:
    """Return the result's dtype of the loop for exactly these argument dtypes, None if there is no such loop.
    ("cast" has none: its result is what the node says.)  `dcarray.core.ufunc_loops.resolve` promotes operands
    before."""
    if op == "where":
        return args[1] if len(args) == 3 and args[0] == np.bool_ and args[1] == args[2] else None
    if op == "checked":
        return args[1] if len(args) == 2 and args[0] == np.bool_ else None
    if op in FITS:
        fit = len(args) == 2 and args[0] == args[1] and args[0].kind in "iu"
        return np.dtype(np.bool_) if fit else None
    if op == "complex":
        fit = len(args) == 2 and args[0] == args[1] and args[0].char in "fd"
        return np.dtype(args[0].char.upper()) if fit else None
    if op in ("real", "imag"):
        return np.empty(0, args[0]).real.dtype if len(args) == 1 and args[0].kind == "c" else None
    if op in C_LIBRARY:
        return args[0] if args == (np.dtype(np.float64),) * OPS[op].nin else None
    name = LOOPS_OF.get(op, op)
    if name != op and any(kind.kind not in "fc" for kind in args):
        return None
    ufunc = OPS[name].reference if name in OPS else None
    if not isinstance(ufunc, np.ufunc) or len(args) != ufunc.nin:
        return None
    try:  # longlong is as int64 for all but the ufuncs' own search, and for this cache
        *inputs, result = ufunc.resolve_dtypes((*[np.dtype(kind.str) for kind in args], None))
    except TypeError:
        return None
    return result if tuple(inputs) == args else None


def has_loop(op: str, args: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> bool:
    """Whether ``op`` has a loop for exactly these dtypes.  (``loop_dtype(...) == result`` would not do:
    None equals float64 in NumPy.)"""
    dtype = loop_dtype(op, args)
    return dtype is not None and dtype == result


@record(frozen=True, slots=True)
class CallOp:
    """A library call.  ``reference(writes, reads, attrs)`` fills the write views from the read views.

    The first output may have the same memory as operand number ``over`` (None: as no operand).  The first
    ``updates`` windows are both read and written.  ``fails``: whether the call may raise an error, such as
    one for want of memory.
    """

    name: str
    reference: Callable[[tuple[Any, ...], tuple[Any, ...], dict[str, Any]], None]
    over: int | None = None
    updates: int = 0
    fails: bool = True


def _matmul(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    np.matmul(reads[0], reads[1], out=writes[0])


def _take(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    kinds, places = attrs["key"], iter(reads[1:])
    if ALONG in kinds:
        writes[0][...] = np.take_along_axis(reads[0], reads[1], len(kinds) - len(kinds.lstrip(ALONG)))
    else:
        writes[0][...] = reads[0][tuple([slice(None) if kind == KEPT else next(places) for kind in kinds])]


def _draw(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    from .draws import reference  # few regions draw

    reference(writes, reads, attrs)


def _function(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    raise NotImplementedError("a function is its region's")  # the interpreter knows it


def _copy(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    if writes:
        writes[0][...] = reads[0]


KEPT, COUNTED, FROM_END, ALONG = ".", "+", "-", "="
"""The axes of an array whose elements are taken: kept, indexed from 0 on, indexed from either end, gone along
with the indices'."""

CALLS: dict[str, CallOp] = {
    # writes[0] = reads[0] @ reads[1]; shapes, stacks and broadcasting as in numpy.matmul
    "blas.matmul": CallOp("blas.matmul", _matmul, over=0),
    # writes[0] = reads[0][key], where the key has reads[1:], in order, for neighbouring axes: those that
    # `key`, a letter for each axis, does not say are kept; or as in numpy.take_along_axis, for all axes.
    # Their elements are in bounds.  A recording has it; in its region it is a statement with a ``Gather``.
    "take": CallOp("take", _take, fails=False),
    # writes[2] is the next number of a generator, by the `function` of `draws.DRAWS`, whose arguments are
    # `given`, and reads[3:] for those that are None there; reads[2] is the address of the generator's
    # interface.  The first windows are the memory of its state, and an array that all draws have: they are
    # in order, though generators may share their state.
    "random.draw": CallOp("random.draw", _draw, updates=2, fails=False),
    # The function of the region that `name` says.  Its arrays with the role "inout" come first in both reads
    # and writes, then those with the role "in" in the reads, and those with the role "out" in the writes.
    "function.call": CallOp("function.call", _function, updates=1, fails=False),
    # Communication, which moves values between ranks and changes none: of arrays in one place it is a copy.
    # reads[0] is written to writes[0], which has another layout
    "comm.redistribute": CallOp("comm.redistribute", _copy),
    # the halo of reads[0] is filled, `widths` wide along each axis, with `corners` or without
    "comm.halo": CallOp("comm.halo", _copy),
    # Each rank computes the next statement so many elements beyond its block.
    "comm.beyond": CallOp("comm.beyond", _copy),
    # reads[0] is written to writes[0], which lies likewise, halo and all but for a `hole` that need not be
    "comm.frame": CallOp("comm.frame", _copy),
    # the ranks' partial results in reads[0] are reduced into writes[0]
    "comm.reduce": CallOp("comm.reduce", _copy),
}


def may_fail(op: str) -> bool:
    """Whether a library call may raise an error, which ends the run."""
    return op not in CALLS or CALLS[op].fails


def const(value: Any, dtype: Any) -> Const:
    """Return the constant ``value`` as ``dtype``; raise OverflowError if a Python integer does not fit."""
    from .nodes import Const  # with the first region: to define the nodes takes a tenth of an import

    dtype = np.dtype(dtype)
    return Const(np.asarray(value, dtype=dtype).tobytes(), dtype)


def const_value(node: Const) -> Any:
    """Return the NumPy scalar of a constant."""
    return np.frombuffer(node.bits, dtype=node.dtype)[0]
