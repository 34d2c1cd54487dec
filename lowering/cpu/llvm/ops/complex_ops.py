"""The operations on complex values, in NumPy's own order of arithmetic.

NumPy multiplies complex numbers with fused multiply-adds where its vector loops have them
(``Machine.fused_complex``), and divides by Smith's method without.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

import numpy as np

from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, Value, part, real, ty
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import DIVIDE, INVALID

_C_NAMES = {
    "sqrt": "csqrt", "exp": "cexp", "log": "clog", "sin": "csin", "cos": "ccos", "tan": "ctan",
    "sinh": "csinh", "cosh": "ccosh", "tanh": "ctanh", "arcsin": "casin", "arccos": "cacos",
    "arctan": "catan", "arcsinh": "casinh", "arccosh": "cacosh", "arctanh": "catanh",
}  # fmt: skip
Pair = tuple[str, str]


def multiply(b: Builder, t: str, x: Pair, y: Pair) -> Pair:
    """Return the product of two complex values."""
    if not b.machine.fused_complex:
        down = b.fsub(t, b.fmul(t, x[0], y[0]), b.fmul(t, x[1], y[1]))
        up = b.fadd(t, b.fmul(t, x[0], y[1]), b.fmul(t, x[1], y[0]))
        return down, up
    minus = b.fneg(t, b.fmul(t, x[1], y[1]))
    return b.fma(t, x[0], y[0], minus), b.fma(t, x[0], y[1], b.fmul(t, x[1], y[0]))


def _note_nan(b: Builder, t: str, x: Pair) -> None:
    """Emit the floating-point flag that NumPy's comparison of the parts raises for a NaN."""
    b.soft(b.op(f"fcmp uno {t} {x[0]}, {x[1]}"), INVALID)


def _wider(b: Builder, t: str, x: Pair) -> tuple[str, Pair]:
    """Emit the test whether the real part's magnitude is at least the imaginary part's; return the test and
    both magnitudes."""
    size = (b.fabs(t, x[0]), b.fabs(t, x[1]))
    return b.fcmp("oge", t, *size), size


def _divide(b: Builder, t: str, x: Pair, y: Pair) -> Pair:
    _note_nan(b, t, y)
    tall, size = _wider(b, t, y)
    large = b.select(tall, t, y[0], y[1])
    small = b.select(tall, t, y[1], y[0])
    # Where the divisor is 0, NumPy divides by its absolute value: the same as multiplying by infinity.
    zero = b.both(*(b.op(f"fcmp oeq {t} {s}, {real(0.0, t)}") for s in size))
    b.soft(zero, DIVIDE | INVALID)
    ratio = b.fdiv(t, small, b.select(zero, t, b.one(t), large))
    whole = b.fadd(t, large, b.fmul(t, small, ratio))
    scale = b.fdiv(t, real(1.0, t), b.select(zero, t, b.one(t), whole))
    scale = b.select(zero, t, real(np.inf, t), scale)
    first = b.select(tall, t, x[0], x[1])
    second = b.select(tall, t, x[1], x[0])
    re = b.fadd(t, first, b.fmul(t, second, ratio))
    # tall: imag - real * ratio, else: imag * ratio - real
    product = b.fmul(t, first, ratio)
    im = b.fsub(t, b.select(tall, t, second, product), b.select(tall, t, product, second))
    re, im = b.select(zero, t, x[0], re), b.select(zero, t, x[1], im)
    return b.fmul(t, re, scale), b.fmul(t, im, scale)


def _reciprocal(b: Builder, t: str, x: Pair) -> Pair:
    _note_nan(b, t, x)
    size = (b.fabs(t, x[0]), b.fabs(t, x[1]))
    tall = b.fcmp("ole", t, size[1], size[0])
    large = b.select(tall, t, x[0], x[1])
    small = b.select(tall, t, x[1], x[0])
    ratio = b.fdiv(t, small, large)
    whole = b.fadd(t, large, b.fmul(t, small, ratio))
    one = real(1.0, t)
    re = b.fdiv(t, b.select(tall, t, one, ratio), whole)
    im = b.fdiv(t, b.select(tall, t, b.fneg(t, ratio), real(-1.0, t)), whole)
    return re, im


def _absolute(b: Builder, t: str, x: Pair) -> str:
    """Return the absolute value by the formula of NumPy's vector loop: the larger part times ``sqrt(1 +
    ratio**2)``."""
    if not b.machine.fused_complex:
        raise Unsupported("absolute of complex values on this processor")
    re, im = b.fabs(t, x[0]), b.fabs(t, x[1])
    infinite = b.either(*(b.op(f"fcmp oeq {t} {v}, {real(np.inf, t)}") for v in (re, im)))
    unknown = b.op(f"fcmp uno {t} {re}, {im}")
    above = b.fcmp("ogt", t, re, im)
    high, low = b.select(above, t, re, im), b.select(above, t, im, re)
    plain = b.both(b.inverse(infinite), b.op(f"fcmp one {t} {high}, {real(0.0, t)}"))
    ratio = b.fdiv(t, b.select(plain, t, low, real(0.0, t)), b.select(plain, t, high, b.one(t)))
    length = b.fmul(t, b.intrinsic("sqrt", t, b.fma(t, ratio, ratio, real(1.0, t))), high)
    length = b.select(unknown, t, real(np.nan, t), length)
    return b.select(infinite, t, real(np.inf, t), length)


def _order(b: Builder, t: str, how: str, x: Pair, y: Pair) -> str:
    """Emit the comparison of two complex values by the real parts, then by the imaginary parts."""
    known = b.op(f"fcmp ord {t} {x[1]}, {y[1]}")
    first = b.both(b.fcmp({"lt": "olt", "le": "olt", "gt": "ogt", "ge": "ogt"}[how], t, x[0], y[0]), known)
    tied = b.op(f"fcmp oeq {t} {x[0]}, {y[0]}")
    return b.either(first, b.both(tied, b.fcmp(f"o{how}", t, x[1], y[1])))


def _extreme(b: Builder, name: str, t: str, x: Pair, y: Pair) -> Pair:
    first = _order(b, t, "ge" if name in ("maximum", "fmax") else "le", x, y)
    special = x if name in ("maximum", "minimum") else y
    first = b.either(first, b.op(f"fcmp uno {t} {special[0]}, {special[1]}"))
    return b.select(first, t, x[0], y[0]), b.select(first, t, x[1], y[1])


def _library(b: Builder, name: str, t: str, x: Pair) -> Pair:
    """Emit the call of a complex function of the C library in the System V calling convention; return the
    result."""
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() == "Windows":
        raise Unsupported(f"{name} of complex values on this system")
    symbol = _C_NAMES[name]
    if t == "double":
        kind = "{ double, double }"
        result = b.call(kind, symbol, (t, x[0]), (t, x[1]), attributes=" #pure")
        return b.op(f"extractvalue {kind} {result}, 0"), b.op(f"extractvalue {kind} {result}, 1")
    kind = "<2 x float>"
    packed = b.op(f"insertelement {kind} poison, float {x[0]}, i32 0")
    packed = b.op(f"insertelement {kind} {packed}, float {x[1]}, i32 1")
    result = b.call(kind, symbol + "f", (kind, packed), attributes=" #pure")
    return b.op(f"extractelement {kind} {result}, i32 0"), b.op(f"extractelement {kind} {result}, i32 1")


def _truth(b: Builder, t: str, x: Pair) -> str:
    return b.either(*(b.truth(t, v) for v in x))


def _each(b: Builder, t: str, x: Pair, test: Callable[[str], str], join: str) -> str:
    return b.op(f"{join} i1 {test(x[0])}, {test(x[1])}")


def complex_op(b: Builder, name: str, args: tuple[Pair, ...], types: tuple[DType, ...]) -> Value:
    """Emit an operation of a complex64 or complex128 loop; return its result."""
    t = ty(part(types[0]))
    x = args[0]
    y = args[1] if len(args) > 1 else ("", "")
    if name in ("add", "subtract"):
        how = "fadd" if name == "add" else "fsub"
        return b.op(f"{how} {t} {x[0]}, {y[0]}"), b.op(f"{how} {t} {x[1]}, {y[1]}")
    if name in ("less", "less_equal", "greater", "greater_equal"):
        _note_nan(b, t, x)
        _note_nan(b, t, y)
        return _order(b, t, name[0] + ("e" if name.endswith("equal") else "t"), x, y)
    if name in ("equal", "not_equal"):
        how, join = ("oeq", "and") if name == "equal" else ("une", "or")
        parts = ", ".join(b.op(f"fcmp {how} {t} {p}, {q}") for p, q in zip(x, y, strict=True))
        return b.op(f"{join} i1 {parts}")
    if name in ("logical_and", "logical_or", "logical_xor"):
        return b.op(f"{name.removeprefix('logical_')} i1 {', '.join(_truth(b, t, a) for a in args)}")
    if name in ("maximum", "minimum", "fmax", "fmin"):
        return _extreme(b, name, t, x, y)
    if name in _C_NAMES:
        return _library(b, name, t, x)
    infinity = real(np.inf, t)

    def size(v: str) -> str:
        return b.fabs(t, v)

    special: dict[str, Callable[[], Value]] = {
        "multiply": lambda: multiply(b, t, x, y), "divide": lambda: _divide(b, t, x, y),
        "square": lambda: multiply(b, t, x, x), "reciprocal": lambda: _reciprocal(b, t, x),
        "absolute": lambda: _absolute(b, t, x), "negative": lambda: (b.fneg(t, x[0]), b.fneg(t, x[1])),
        "positive": lambda: x, "conjugate": lambda: (x[0], b.fneg(t, x[1])),
        "rint": lambda: (b.intrinsic("rint", t, x[0]), b.intrinsic("rint", t, x[1])), "real": lambda: x[0],
        "imag": lambda: x[1], "logical_not": lambda: b.inverse(_truth(b, t, x)),
        "isnan": lambda: b.op(f"fcmp uno {t} {x[0]}, {x[1]}"),
        "isinf": lambda: _each(b, t, x, lambda v: b.op(f"fcmp oeq {t} {size(v)}, {infinity}"), "or"),
        "isfinite": lambda: _each(b, t, x, lambda v: b.op(f"fcmp one {t} {size(v)}, {infinity}"), "and"),
    }  # fmt: skip
    if name in special:
        return special[name]()
    raise Unsupported(f"{name} of {types[0].name}")
