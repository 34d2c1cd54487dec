"""The operations on integers and bools, with NumPy's results where C leaves them undefined."""

from __future__ import annotations

from collections.abc import Callable

from dcarray.ir.ops import FITS
from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, ty
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import DIVIDE, INVALID, OVERFLOW

_COMPARE = {
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "not_equal": "ne",
}  # fmt: skip
_PLAIN = {
    "add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor",
}  # fmt: skip
_IDENTITY = frozenset(["positive", "conjugate", "floor", "ceil", "trunc", "rint", "real"])
_TRUTH = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_BOOL = {
    "add": "or", "logical_or": "or", "bitwise_or": "or", "maximum": "or", "fmax": "or", "multiply": "and",
    "logical_and": "and", "bitwise_and": "and", "minimum": "and", "fmin": "and", "logical_xor": "xor",
    "bitwise_xor": "xor", "not_equal": "xor",
}  # fmt: skip


def boolean(b: Builder, name: str, args: tuple[str, ...]) -> str:
    """Emit an operation of a bool loop; return its result."""
    if name in _BOOL:
        return b.op(f"{_BOOL[name]} i1 {args[0]}, {args[1]}")
    if name in _COMPARE:
        return b.icmp({"equal": "eq"}.get(name, "u" + _COMPARE[name]), "i1", *args)
    if name in ("logical_not", "invert"):
        return b.inverse(args[0])
    if name in ("isnan", "isinf"):
        return "false"
    if name == "isfinite":
        return "true"
    if name == "absolute" or name in _IDENTITY:
        return args[0]
    raise Unsupported(f"{name} of bool")


def compare(b: Builder, name: str, args: tuple[str, ...], types: tuple[DType, ...]) -> str:
    """Emit a comparison, also of int64 with uint64; return its result."""
    how = _COMPARE[name]
    t = ty(types[0])
    mixed = types[0].kind != types[1].kind
    if how in ("eq", "ne"):
        same = b.icmp(how, t, *args)
        if not mixed:
            return same
        below = b.icmp("slt", t, args[0 if types[0].kind == "i" else 1], "0")
        return b.both(b.inverse(below), same) if how == "eq" else b.either(below, same)
    if not mixed:
        return b.icmp(("s" if types[0].kind == "i" else "u") + how, t, *args)
    unsigned = b.icmp("u" + how, t, *args)
    if types[0].kind == "i":
        below = b.icmp("slt", t, args[0], "0")
        return b.either(below, unsigned) if how in ("lt", "le") else b.both(b.inverse(below), unsigned)
    below = b.icmp("slt", t, args[1], "0")
    return b.either(below, unsigned) if how in ("gt", "ge") else b.both(b.inverse(below), unsigned)


def _quotient(b: Builder, t: str, signed: bool, a: str, d: str) -> str:
    """Emit C's ``a / d``; ``d`` must not be 0, and the quotient must fit."""
    s = "s" if signed else "u"
    if t == "i64":
        return b.op(f"{s}div i64 {a}, {d}")
    # A double holds every quotient's neighbourhood exactly, and its division is a vector instruction.
    x, y = (b.op(f"{s}itofp {t} {v} to double") for v in (a, d))
    wide = b.op(f"fptosi double {b.op(f'fdiv double {x}, {y}')} to i64")
    return b.op(f"trunc i64 {wide} to {t}")


def _divide(b: Builder, name: str, t: str, signed: bool, a: str, d: str) -> str:
    """Emit floor_divide, remainder or fmod, which for the divisor 0 are 0 and raise the flag "divide"."""
    none = b.icmp("eq", t, d, "0")
    b.soft(none, DIVIDE)
    minus = b.icmp("eq", t, d, "-1") if signed else "false"
    safe = b.op(f"select i1 {b.either(none, minus) if signed else none}, {t} 1, {t} {d}")
    q = _quotient(b, t, signed, a, safe)
    if name == "floor_divide" and not signed:
        return b.op(f"select i1 {none}, {t} 0, {t} {q}")
    rest = b.op(f"sub {t} {a}, {b.op(f'mul {t} {q}, {safe}')}")
    if not signed:
        return b.op(f"select i1 {none}, {t} 0, {t} {rest}")
    uneven = b.icmp("ne", t, rest, "0")
    apart = b.icmp("slt", t, b.op(f"xor {t} {rest}, {safe}"), "0")
    fix = b.both(uneven, apart)
    if name == "floor_divide":
        q = b.op(f"sub {t} {q}, {b.op(f'zext i1 {fix} to {t}')}")
        lowest = b.icmp("eq", t, a, str(-(1 << (int(t[1:]) - 1))))
        b.soft(b.both(minus, lowest), OVERFLOW)
        q = b.op(f"select i1 {minus}, {t} {b.op(f'sub {t} 0, {a}')}, {t} {q}")
        return b.op(f"select i1 {none}, {t} 0, {t} {q}")
    if name == "remainder":
        rest = b.op(f"add {t} {rest}, {b.op(f'select i1 {fix}, {t} {safe}, {t} 0')}")
    return b.op(f"select i1 {none}, {t} 0, {t} {rest}")


def _shift(b: Builder, name: str, t: str, signed: bool, a: str, count: str) -> str:
    inside = b.icmp("ult", t, count, t[1:])
    safe = b.op(f"select i1 {inside}, {t} {count}, {t} 0")
    if name == "left_shift":
        return b.op(f"select i1 {inside}, {t} {b.op(f'shl {t} {a}, {safe}')}, {t} 0")
    if not signed:
        return b.op(f"select i1 {inside}, {t} {b.op(f'lshr {t} {a}, {safe}')}, {t} 0")
    most = b.op(f"select i1 {inside}, {t} {count}, {t} {int(t[1:]) - 1}")
    return b.op(f"ashr {t} {a}, {most}")


def _reciprocal(b: Builder, t: str, dtype: DType, x: str) -> str:
    """Emit C's conversion of ``1.0 / x`` to the integer dtype of ``x``."""
    none = b.icmp("eq", t, x, "0")
    b.soft(none, DIVIDE | INVALID)
    unit = b.icmp("eq", t, x, "1")
    result = b.op(f"select i1 {unit}, {t} 1, {t} 0")
    if dtype.kind == "i":
        result = b.op(f"select i1 {b.icmp('eq', t, x, '-1')}, {t} -1, {t} {result}")
        if dtype.itemsize >= 4:
            result = b.op(f"select i1 {none}, {t} {-(1 << (8 * dtype.itemsize - 1))}, {t} {result}")
    return result


_OVERFLOW = {"add": "add", "subtract": "sub", "multiply": "mul"}


def with_overflow_flag(b: Builder, name: str, args: tuple[str, ...], dtype: DType) -> tuple[str, str]:
    """Emit ``add``, ``subtract`` or ``multiply`` as one instruction; return result and overflow flag."""
    t = ty(dtype)
    function = f"llvm.{'s' if dtype.kind == 'i' else 'u'}{_OVERFLOW[name]}.with.overflow.{t}"
    pair = f"{{{t}, i1}}"
    b.declare(function, f"declare {pair} @{function}({t}, {t})")
    results = b.op(f"call {pair} @{function}({t} {args[0]}, {t} {args[1]})")
    return b.op(f"extractvalue {pair} {results}, 0"), b.op(f"extractvalue {pair} {results}, 1")


def _fits(b: Builder, name: str, args: tuple[str, ...], dtype: DType) -> str:
    """Emit the test whether the result of an operation is exact, in a form that vectorises if possible."""
    t, (x, y) = ty(dtype), args
    if name == "multiply":
        if t == "i64":
            return b.inverse(with_overflow_flag(b, name, args, dtype)[1])
        how, wide = "sext" if dtype.kind == "i" else "zext", f"i{2 * int(t[1:])}"
        product = b.op(f"mul {wide} {b.op(f'{how} {t} {x} to {wide}')}, {b.op(f'{how} {t} {y} to {wide}')}")
        back = b.op(f"{how} {t} {b.op(f'trunc {wide} {product} to {t}')} to {wide}")
        return b.icmp("eq", wide, product, back)
    if dtype.kind == "u":
        if name == "subtract":
            return b.icmp("uge", t, x, y)
        return b.icmp("uge", t, b.op(f"add {t} {x}, {y}"), x)
    result = b.op(f"{_PLAIN[name]} {t} {x}, {y}")
    # the sign of a sum that has wrapped is that of no operand
    apart = [b.op(f"xor {t} {result}, {x}"), b.op(f"xor {t} {result if name == 'add' else x}, {y}")]
    return b.icmp("sge", t, b.op(f"and {t} {apart[0]}, {apart[1]}"), "0")


_GCD = """define internal $t @dc_gcd_$t($t %a, $t %b) #lane {
entry:
  br label %loop
loop:
  %x = phi $t [ %a, %entry ], [ %y, %step ]
  %y = phi $t [ %b, %entry ], [ %r, %step ]
  %end = icmp eq $t %y, 0
  br i1 %end, label %done, label %step
step:
  %r = urem $t %x, %y
  br label %loop
done:
  ret $t %x
}"""
_POWER = """define internal $t @dc_power_$t($t %a, $t %n) #lane {
entry:
  br label %loop
loop:
  %base = phi $t [ %a, %entry ], [ %square, %step ]
  %left = phi $t [ %n, %entry ], [ %half, %step ]
  %acc = phi $t [ 1, %entry ], [ %next, %step ]
  %end = icmp eq $t %left, 0
  br i1 %end, label %done, label %step
step:
  %bit = trunc $t %left to i1
  %factor = select i1 %bit, $t %base, $t 1
  %next = mul $t %acc, %factor
  %square = mul $t %base, %base
  %half = lshr $t %left, 1
  br label %loop
done:
  ret $t %acc
}"""


def _helper(b: Builder, name: str, text: str, t: str, x: str, y: str) -> str:
    b.declare(f"{name}_{t}", text.replace("$t", t))
    return b.call(t, f"{name}_{t}", (t, x), (t, y), attributes=" #pure")


def _gcd(b: Builder, t: str, signed: bool, x: str, y: str, least_multiple: bool) -> str:
    if signed:
        x, y = (b.intrinsic("abs", t, v, extra=(("i1", "false"),)) for v in (x, y))
    divisor = _helper(b, "dc_gcd", _GCD, t, x, y)
    if not least_multiple:
        return divisor
    none = b.icmp("eq", t, divisor, "0")
    safe = b.op(f"select i1 {none}, {t} 1, {t} {divisor}")
    product = b.op(f"mul {t} {b.op(f'udiv {t} {x}, {safe}')}, {y}")
    return b.op(f"select i1 {none}, {t} 0, {t} {product}")


def _sign(b: Builder, t: str, signed: bool, x: str) -> str:
    up = b.op(f"zext i1 {b.icmp('ne', t, x, '0')} to {t}")
    return b.op(f"select i1 {b.icmp('slt', t, x, '0')}, {t} -1, {t} {up}") if signed else up


def integer(b: Builder, name: str, args: tuple[str, ...], types: tuple[DType, ...]) -> str:
    """Emit an operation of an integer loop; return its result."""
    dtype, t = types[0], ty(types[0])
    signed = dtype.kind == "i"
    if name in _PLAIN:
        return b.op(f"{_PLAIN[name]} {t} {args[0]}, {args[1]}")
    if name in _COMPARE:
        return compare(b, name, args, types)
    if name in FITS:
        return _fits(b, FITS[name], args, dtype)
    if name in _IDENTITY:
        return args[0]
    if name in _TRUTH:
        return b.op(f"{_TRUTH[name]} i1 {', '.join(b.icmp('ne', t, a, '0') for a in args)}")
    special: dict[str, Callable[[], str]] = {
        "logical_not": lambda: b.icmp("eq", t, args[0], "0"),
        "isnan": lambda: "false",
        "isinf": lambda: "false",
        "isfinite": lambda: "true",
        "imag": lambda: "0",
        "negative": lambda: b.op(f"sub {t} 0, {args[0]}"),
        "invert": lambda: b.op(f"xor {t} {args[0]}, -1"),
        "square": lambda: b.op(f"mul {t} {args[0]}, {args[0]}"),
        "sign": lambda: _sign(b, t, signed, args[0]),
        "absolute": lambda: b.intrinsic("abs", t, args[0], extra=(("i1", "false"),)) if signed else args[0],
        "gcd": lambda: _gcd(b, t, signed, args[0], args[1], False),
        "lcm": lambda: _gcd(b, t, signed, args[0], args[1], True),
        "power": lambda: _helper(b, "dc_power", _POWER, t, args[0], args[1]),
        "reciprocal": lambda: _reciprocal(b, t, dtype, args[0]),
    }
    if name in special:
        return special[name]()
    if name in ("maximum", "fmax", "minimum", "fmin"):
        return b.intrinsic(("s" if signed else "u") + name.removeprefix("f")[:3], t, *args)
    if name in ("floor_divide", "remainder", "fmod"):
        return _divide(b, name, t, signed, args[0], args[1])
    if name in ("left_shift", "right_shift"):
        return _shift(b, name, t, signed, args[0], args[1])
    if name == "bitwise_count":
        magnitude = b.intrinsic("abs", t, args[0], extra=(("i1", "false"),)) if signed else args[0]
        count = b.intrinsic("ctpop", t, magnitude)
        return count if t == "i8" else b.op(f"trunc {t} {count} to i8")
    raise Unsupported(f"{name} of {dtype.name}")
