"""The operations on real floating-point values: each as NumPy's loop computes it, in its order and with
its rounding.  float16 is computed in float32 and rounded, as NumPy does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dcarray.lowering.cpu.llvm.math import vecmath
from dcarray.lowering.cpu.llvm.text.builder import BITS, Builder, DType, real, ty
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import INVALID, OVERFLOW, UNDERFLOW

from .casts import narrow, widen

_PLAIN = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_COMPARE = {
    "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge", "equal": "oeq",
    "not_equal": "une",
}  # fmt: skip
_TRUTH = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_ROUND = frozenset(["floor", "ceil", "trunc", "rint", "sqrt", "fabs"])


def _extreme(b: Builder, name: str, t: str, x: str, y: str, half: bool) -> str:
    """Return the extremum of two values: maximum and minimum keep a NaN, fmax and fmin the other value.  Of
    equal values the second is taken, as vector instructions do; for float16 the first."""
    greater = name in ("maximum", "fmax")
    how = ("oge" if greater else "ole") if half else ("ogt" if greater else "olt")
    first = b.fcmp(how, t, x, y)
    if name in ("maximum", "minimum"):
        return b.select(b.either(first, b.isnan(t, x)), t, x, y)
    return b.select(b.either(first, b.isnan(t, y)), t, x, y)


def _copysign(b: Builder, t: str, x: str, y: str) -> str:
    return b.intrinsic("copysign", t, x, y)


def _modulo(b: Builder, t: str, x: str, y: str) -> tuple[str, str, str]:
    """Emit the remainder with the divisor's sign; return it, C's remainder, and whether the two differ."""
    zero = real(0.0, t)
    rest = vecmath.call(b, "fmod", t, x, y)
    uneven = b.op(f"fcmp une {t} {rest}, {zero}")
    apart = b.differ(b.negative_bit(t, rest), b.negative_bit(t, y))
    # A NaN remainder stays NaN whatever is added to it.
    fix = b.both(uneven, apart)
    moved = b.fadd(t, rest, y)
    result = b.select(uneven, t, b.select(fix, t, moved, rest), _copysign(b, t, zero, y))
    by_zero = b.op(f"fcmp oeq {t} {y}, {zero}")
    return b.select(by_zero, t, rest, result), rest, fix


def _floor_divide(b: Builder, t: str, x: str, y: str) -> str:
    zero, one = real(0.0, t), real(1.0, t)
    plain = b.fdiv(t, x, y)
    _, rest, fix = _modulo(b, t, x, y)
    quotient = b.fdiv(t, b.fsub(t, x, rest), y)
    quotient = b.select(fix, t, b.fsub(t, quotient, one), quotient)
    low = b.intrinsic("floor", t, quotient)
    far = b.fcmp("ogt", t, b.fsub(t, quotient, low), real(0.5, t))
    rounded = b.select(far, t, b.fadd(t, low, one), low)
    some = b.op(f"fcmp une {t} {quotient}, {zero}")
    result = b.select(some, t, rounded, _copysign(b, t, zero, plain))
    return b.select(b.op(f"fcmp oeq {t} {y}, {zero}"), t, plain, result)


def _sign(b: Builder, t: str, x: str) -> str:
    zero = real(0.0, t)
    kept = b.either(b.isnan(t, x), b.op(f"fcmp oeq {t} {x}, {zero}"))
    # Adding 0.0 makes +0 of -0, and leaves a NaN.
    return b.select(kept, t, b.fadd(t, x, zero), _copysign(b, t, real(1.0, t), x))


def _heaviside(b: Builder, t: str, x: str, middle: str) -> str:
    zero = real(0.0, t)
    step = b.select(b.negative_bit(t, x), t, zero, real(1.0, t))
    step = b.select(b.op(f"fcmp oeq {t} {x}, {zero}"), t, middle, step)
    return b.select(b.isnan(t, x), t, x, step)


def _spacing(b: Builder, t: str, x: str) -> str:
    """Emit the distance of ``x`` to the next number away from zero (`numpy.spacing`)."""
    i = f"i{BITS[t]}"
    following = b.op(f"bitcast {i} {b.op(f'add {i} {b.bits(t, x)}, 1')} to {t}")
    size = b.fsub(t, following, x)
    smallest = b.op(f"bitcast {i} 1 to {t}")
    size = b.select(b.op(f"fcmp oeq {t} {x}, {real(0.0, t)}"), t, smallest, size)
    infinite = b.op(f"fcmp oeq {t} {b.fabs(t, x)}, {real(np.inf, t)}")
    last = b.op(f"fcmp oeq {t} {b.fabs(t, x)}, {real(float(np.finfo(f'f{BITS[t] // 8}').max), t)}")
    b.soft(last, OVERFLOW)
    b.soft(
        b.op(f"fcmp olt {t} {b.fabs(t, x)}, {real(float(np.finfo(f'f{BITS[t] // 8}').tiny), t)}"), UNDERFLOW
    )
    size = b.select(infinite, t, real(np.nan, t), size)
    return b.select(b.isnan(t, x), t, x, size)


def _logaddexp(b: Builder, t: str, x: str, y: str, two: bool) -> str:
    scalar = np.float32 if t == "float" else np.float64
    gap = b.fsub(t, x, y)
    size = b.fabs(t, gap)
    down = b.fneg(t, size)
    tail = vecmath.call(b, "log1p", t, vecmath.call(b, "exp2" if two else "exp", t, down))
    if two:
        tail = b.fmul(t, real(float(scalar(np.log2(np.e))), t), tail)
    larger = b.select(b.negative_bit(t, gap), t, y, x)
    result = b.fadd(t, larger, tail)
    # Equal values, infinities among them, have no useful difference.
    same = b.op(f"fcmp oeq {t} {x}, {y}")
    b.soft(b.op(f"fcmp uno {t} {x}, {y}"), INVALID)
    offset = real(1.0 if two else float(scalar(np.log(2.0))), t)
    return b.select(same, t, b.fadd(t, x, offset), b.select(b.isnan(t, gap), t, gap, result))


def _hypot(b: Builder, t: str, x: str, y: str) -> str:
    """Emit hypot(x, y) with squares that cannot overflow or vanish: of float32 in double; of float64 scaled
    by powers of two, with the rounding errors of sum and root added back: as accurate as the C library."""
    x, y = b.fabs(t, x), b.fabs(t, y)
    infinite = b.op(f"fcmp oeq {t} {x}, {real(np.inf, t)}")
    infinite = b.either(infinite, b.op(f"fcmp oeq {t} {y}, {real(np.inf, t)}"))
    d = "double"
    if t == "float":
        u, v = b.op(f"fpext float {x} to double"), b.op(f"fpext float {y} to double")
        length = b.intrinsic("sqrt", d, b.fadd(d, b.fmul(d, u, u), b.fmul(d, v, v)))
        length = b.op(f"fptrunc double {length} to float")
        return b.select(infinite, t, real(np.inf, t), length)
    one = real(1.0, d)
    x, y = b.select(infinite, d, one, x), b.select(infinite, d, one, y)
    longer = b.icmp("ugt", "i64", b.bits(d, x), b.bits(d, y))
    high, low = b.select(longer, d, x, y), b.select(longer, d, y, x)
    large = b.icmp("uge", "i64", b.bits(d, high), str((1023 + 500) << 52))
    small = b.icmp("ult", "i64", b.bits(d, high), str((1023 - 400) << 52))
    scale = b.select(large, d, real(2.0**-600, d), b.select(small, d, real(2.0**600, d), one))
    back = b.select(large, d, real(2.0**600, d), b.select(small, d, real(2.0**-600, d), one))
    u, v = b.fmul(d, high, scale), b.fmul(d, low, scale)
    uu, vv = b.fmul(d, u, u), b.fmul(d, v, v)
    lost = b.fadd(d, b.fma(d, u, u, b.fneg(d, uu)), b.fma(d, v, v, b.fneg(d, vv)))
    total = b.fadd(d, uu, vv)
    lost = b.fadd(d, lost, b.fadd(d, b.fsub(d, uu, total), vv))
    length = b.intrinsic("sqrt", d, total)
    lost = b.fadd(d, lost, b.fma(d, b.fneg(d, length), length, total))
    nothing = b.op(f"fcmp oeq {d} {length}, {real(0.0, d)}")
    twice = b.select(nothing, d, b.one(d), b.fadd(d, length, length))
    length = b.fmul(d, b.fadd(d, length, b.fdiv(d, lost, twice)), back)
    return b.select(infinite, t, real(np.inf, t), length)


def _ldexp(b: Builder, t: str, x: str, power: str, dtype: DType) -> str:
    if dtype.itemsize == 8:
        high = b.intrinsic("smin", "i64", power, str(2**31 - 1))
        power = b.op(f"trunc i64 {b.intrinsic('smax', 'i64', high, str(-(2**31)))} to i32")
    return b.call(t, "ldexpf" if t == "float" else "ldexp", (t, x), ("i32", power))


def _by_degrees(b: Builder, t: str, x: str, name: str) -> str:
    scalar = np.float32 if t == "float" else np.float64
    pi, half_turn = scalar(np.pi), scalar(180.0)
    factor = pi / half_turn if name == "deg2rad" else half_turn / pi
    return b.fmul(t, x, real(float(factor), t))


def _wide(b: Builder, name: str, t: str, args: tuple[str, ...], types: tuple[DType, ...], half: bool) -> str:
    """Emit an operation on float or double values; return its result."""
    x = args[0]
    y = args[1] if len(args) > 1 else ""
    if name in _PLAIN:
        return b.op(f"{_PLAIN[name]} {t} {x}, {y}")
    if name in _COMPARE:
        return b.fcmp(_COMPARE[name], t, x, y)
    if name in _ROUND:
        return b.intrinsic(name, t, x)
    if name in _TRUTH:
        truths = ", ".join(b.truth(t, a) for a in args)
        return b.op(f"{_TRUTH[name]} i1 {truths}")
    if name in ("maximum", "minimum", "fmax", "fmin"):
        return _extreme(b, name, t, x, y, half)
    if name in ("power", "array_power", "float_power"):
        return vecmath.power(b, t, x, y)
    if name == "log10":
        return vecmath.log10(b, t, x)
    if name in vecmath.FUNCTIONS:
        return vecmath.call(b, name, t, *args)
    special: dict[str, Callable[[], str]] = {
        "positive": lambda: x, "conjugate": lambda: x, "real": lambda: x, "imag": lambda: real(0.0, t),
        "negative": lambda: b.fneg(t, x), "absolute": lambda: b.fabs(t, x),
        "square": lambda: b.fmul(t, x, x), "reciprocal": lambda: b.fdiv(t, real(1.0, t), x),
        "copysign": lambda: _copysign(b, t, x, y), "sign": lambda: _sign(b, t, x),
        "signbit": lambda: b.negative_bit(t, x), "logical_not": lambda: b.inverse(b.truth(t, x)),
        "isnan": lambda: b.op(f"fcmp uno {t} {x}, {b.zero(t)}"),
        "isinf": lambda: b.op(f"fcmp oeq {t} {b.fabs(t, x)}, {real(np.inf, t)}"),
        "isfinite": lambda: b.op(f"fcmp one {t} {b.fabs(t, x)}, {real(np.inf, t)}"),
        "hypot": lambda: _hypot(b, t, x, y), "remainder": lambda: _modulo(b, t, x, y)[0],
        "floor_divide": lambda: _floor_divide(b, t, x, y), "heaviside": lambda: _heaviside(b, t, x, y),
        "deg2rad": lambda: _by_degrees(b, t, x, name), "rad2deg": lambda: _by_degrees(b, t, x, name),
        "logaddexp": lambda: _logaddexp(b, t, x, y, False),
        "logaddexp2": lambda: _logaddexp(b, t, x, y, True), "ldexp": lambda: _ldexp(b, t, x, y, types[1]),
    }  # fmt: skip
    if name in special:
        return special[name]()
    if not half and name == "nextafter":
        return b.call(t, "nextafterf" if t == "float" else "nextafter", (t, x), (t, y))
    if not half and name == "spacing":
        return _spacing(b, t, x)
    raise Unsupported(f"{name} of {types[0].name}")


def floating(b: Builder, name: str, args: tuple[str, ...], types: tuple[DType, ...], out: DType) -> str:
    """Emit an operation of a float16, float32 or float64 loop; return its result."""
    t = ty(types[0])
    if t != "half":
        return _wide(b, name, t, args, types, False)
    wide = tuple(widen(b, a) if d.kind == "f" else a for a, d in zip(args, types, strict=True))
    result = _wide(b, name, "float", wide, types, True)
    return result if out.kind == "b" else narrow(b, result)
