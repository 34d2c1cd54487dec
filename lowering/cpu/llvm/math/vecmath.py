"""Calls of mathematical functions in glibc's vector library (libmvec), or else in the C library.

A call of the scalar function carries the names of its vector variants, and LLVM's vectoriser calls those.
Where a variant exists, the scalar function is one lane of it, so that an element's result does not
depend on where a vector loop begins and ends or how the work is divided among threads.  The library's results
are within 4 ulp.  Some functions that it lacks are written here as vector functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import Template

from dcarray.lowering.cpu.llvm.text.builder import BITS, Builder, real

# NumPy's name -> C's.
_C_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "power": "pow",
}  # fmt: skip
FUNCTIONS = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "power", "fmod"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"),
        *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    }
)

_BITS_OF_22_POINT_5 = 0x4036800000000000

# C's fmod is exact.  So is x - trunc(x/y)*y with one fused rounding while the quotient is small; where the
# division was rounded up, the remainder has the wrong sign and one divisor is added.  The lanes with a
# large, infinite or unknown quotient, or a divisor of 0, go to the library one by one.
_FMOD = Template("""define $v @$name($v %x, $v %y) #lane {
  %q = fdiv $v %x, %y
  %trunc = call $v @llvm.trunc.$s($v %q)
  %minus = fneg $v %trunc
  %r0 = call $v @llvm.fma.$s($v %minus, $v %y, $v %x)
  %a = bitcast $v %r0 to $i
  %b = bitcast $v %x to $i
  %c = xor $i %a, %b
  %apart = icmp slt $i %c, zeroinitializer
  %some = fcmp une $v %r0, zeroinitializer
  %wrong = and $m %apart, %some
  %divisor = call $v @llvm.copysign.$s($v %y, $v %x)
  %fixed = fadd $v %r0, %divisor
  %r1 = select $m %wrong, $v %fixed, $v %r0
  %signed = call $v @llvm.copysign.$s($v %r1, $v %x)
  %none = fcmp oeq $v %trunc, zeroinitializer
  %fast = select $m %none, $v %x, $v %signed
  %size = call $v @llvm.fabs.$s($v %q)
  %bits = bitcast $v %size to $i
  %lost = icmp uge $i %bits, $limit
  %nan = fcmp uno $v %x, %y
  %known = xor $m %nan, splat (i1 true)
  %lanes = and $m %lost, %known
  %set = bitcast $m %lanes to i$n
  %any = icmp ne i$n %set, 0
  br i1 %any, label %slow, label %done, !prof !{!"branch_weights", i32 1, i32 10000}
slow:
  %k = phi i32 [ 0, %0 ], [ %k1, %next ]
  %old = phi $v [ %fast, %0 ], [ %new, %next ]
  %hard = extractelement $m %lanes, i32 %k
  br i1 %hard, label %one, label %next
one:
  %xk = extractelement $v %x, i32 %k
  %yk = extractelement $v %y, i32 %k
  %rk = call $t @$c($t %xk, $t %yk)
  %put = insertelement $v %old, $t %rk, i32 %k
  br label %next
next:
  %new = phi $v [ %old, %slow ], [ %put, %one ]
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, $n
  br i1 %more, label %slow, label %done
done:
  %r = phi $v [ %fast, %0 ], [ %new, %next ]
  ret $v %r
}""")


def _fmod(b: Builder, name: str, t: str, lanes: int) -> None:
    """Define the function ``name``: fmod of vectors of ``lanes`` values of type ``t``."""
    v, s = f"<{lanes} x {t}>", f"v{lanes}f{BITS[t]}"
    c = "fmodf" if t == "float" else "fmod"
    b.declare(c, f"declare {t} @{c}({t}, {t}) #pure")
    b.declare_vectors(lanes, t, trunc=1, fma=3, copysign=2, fabs=1)
    # The bits of 2**50 or 2**22 in every lane: below it the truncated quotient is exact enough.
    limit = (1023 + 50) << 52 if t == "double" else (127 + 22) << 23
    text = _FMOD.substitute(
        name=name, v=v, t=t, s=s, c=c, n=lanes, i=f"<{lanes} x i{BITS[t]}>", m=f"<{lanes} x i1>",
        limit=f"splat (i{BITS[t]} {limit})",
    )  # fmt: skip
    b.declare(name, text)


def call(b: Builder, function: str, t: str, *args: str) -> str:
    """Emit the call of a function, given by NumPy's name, on values of type ``t``; return the result."""
    symbol = _C_NAMES.get(function, function) + ("f" if t == "float" else "")
    typed = tuple((t, a) for a in args)
    if not b.machine.vector_math:
        return b.call(t, symbol, *typed)
    # One variant does all: others of the library round differently, and which of them serves an element
    # depends on its place.  Half and twice its lanes are for loops that also have other types.
    letter, width = b.machine.vector_math
    lanes, count = width // BITS[t], len(args)
    native = f"_ZGV{letter}N{lanes}{'v' * count}_{symbol}"
    if function == "fmod":
        native = f"dc_{symbol}_native"
        _fmod(b, native, t, lanes)
    else:
        vector = f"<{lanes} x {t}>"
        b.declare(native, f"declare {vector} @{native}({', '.join([vector] * count)}) #pure")
    return _call(b, symbol, native, t, lanes, typed)


def call_on_vectors(
    b: Builder, symbol: str, define: Callable[[Builder, str, int], None], args: tuple[str, ...]
) -> str:
    """Emit the call of a function of doubles; ``define`` defines its vector version, given a name and a
    number of lanes."""
    lanes, native = b.machine.vector_bits // 64, f"dc_{symbol}_native"
    define(b, native, lanes)
    return _call(b, symbol, native, "double", lanes, tuple(("double", a) for a in args))


def _call(
    b: Builder, symbol: str, native: str, t: str, lanes: int, typed: tuple[tuple[str, str], ...]
) -> str:
    """Emit the call of the vector function ``native`` of ``lanes`` lanes through variants for other numbers
    of lanes.  These are not internal, or LLVM would remove constant arguments from their signatures."""
    names = {lanes: native}
    for size in (1, lanes // 2, 2 * lanes):
        names[size] = f"dc_{symbol}_{size}"
        b.declare(names[size], _resize(names[size], native, t, lanes, len(typed), size))
    mapped = []
    for size, name in names.items():
        # Used, also the scalar one: calls that all pass the same constant must not lose the parameter.
        b.declare(f"used:{name}", "")
        if size > 1:
            mapped.append(f"_ZGV_LLVM_N{size}{'v' * len(typed)}_{names[1]}({name})")
    b.calls += 1
    variants = ",".join(mapped)
    return b.call(t, names[1], *typed, attributes=f' #pure "vector-function-abi-variant"="{variants}"')


def _resize(name: str, native: str, t: str, lanes: int, count: int, size: int) -> str:
    """Return the definition of ``name``, a function of ``size`` lanes (1: scalars) that calls ``native``, one
    of ``lanes`` lanes."""
    outer, inner = (f"<{size} x {t}>" if size > 1 else t), f"<{lanes} x {t}>"
    lines = [f"define {outer} @{name}({', '.join(f'{outer} %x{k}' for k in range(count))}) #lane {{"]

    def shuffle(result: str, kind: str, x: str, y: str, order: Iterable[int]) -> None:
        mask = ", ".join(f"i32 {k}" for k in order)
        lines.append(
            f"  {result} = shufflevector {kind} {x}, {kind} {y}, <{mask.count('i32')} x i32> <{mask}>"
        )

    halves = range(0, size, lanes)
    for half in halves:
        for k in range(count):
            if size == 1:
                lines.append(f"  %i{k} = insertelement {inner} poison, {t} %x{k}, i32 0")
                shuffle(f"%v0_{k}", inner, f"%i{k}", "poison", [0] * lanes)
            else:
                # The first lane fills up what is left over: it raises no flag that it does not raise anyway.
                order = [half + m if half + m < size else 0 for m in range(lanes)]
                shuffle(f"%v{half}_{k}", outer, f"%x{k}", "poison", order)
        arguments = ", ".join(f"{inner} %v{half}_{k}" for k in range(count))
        lines.append(f"  %r{half} = call {inner} @{native}({arguments})")
    if size == 1:
        lines.append(f"  %y = extractelement {inner} %r0, i32 0")
    else:
        shuffle("%y", inner, "%r0", f"%r{halves[-1]}" if len(halves) > 1 else "poison", range(size))
    return "\n".join([*lines, f"  ret {outer} %y", "}"])


def power(b: Builder, t: str, x: str, y: str) -> str:
    """Emit ``x ** y``. For float32 powers of 0 are computed here, because the library raises a false overflow
    for them."""
    if t == "double":
        return call(b, "power", t, x, y)
    zero, one = real(0.0, t), real(1.0, t)
    base = b.op(f"fcmp oeq {t} {x}, {zero}")
    plain = call(b, "power", t, b.select(base, t, one, x), y)
    negative = b.both(b.negative_bit(t, y), b.op(f"fcmp ord {t} {y}, {y}"))
    size = b.select(negative, t, real(float("inf"), t), zero)
    half = b.fmul(t, y, real(0.5, t))
    whole = b.op(f"fcmp oeq {t} {y}, {b.intrinsic('trunc', t, y)}")
    odd = b.both(whole, b.op(f"fcmp une {t} {half}, {b.intrinsic('trunc', t, half)}"))
    signed = b.intrinsic("copysign", t, size, b.select(odd, t, x, zero))
    never = b.op(f"fcmp oeq {t} {y}, {zero}")
    special = b.select(never, t, one, b.select(b.isnan(t, y), t, y, signed))
    b.soft(b.both(base, b.both(negative, b.inverse(never))), 1)
    return b.select(base, t, special, plain)


def log10(b: Builder, t: str, x: str) -> str:
    """Emit log10, corrected for powers of ten, where the vector library is not exact."""
    near = call(b, "log10", t, x)
    if t != "double" or not b.machine.vector_math:
        return near
    powers = ", ".join(f"double {real(10.0**k, t)}" for k in range(23))
    b.declare("dc_powers", f"@dc_powers = internal constant [23 x double] [{powers}]")
    whole = b.intrinsic("rint", t, near)
    # NaN and numbers outside the table are compared with its first entry, 1, and are not equal to it.
    size = b.intrinsic("fabs", t, near)
    inside = b.icmp("ule", "i64", b.bits(t, size), str(_BITS_OF_22_POINT_5))
    index = b.op(f"fptosi double {b.select(inside, t, b.intrinsic('fabs', t, whole), real(0.0, t))} to i64")
    power = b.op(f"load double, ptr {b.op(f'getelementptr inbounds double, ptr @dc_powers, i64 {index}')}")
    same = b.op(f"fcmp oeq double {power}, {x}")
    return b.select(same, t, whole, near)
