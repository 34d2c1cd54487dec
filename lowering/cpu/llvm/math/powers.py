"""Powers of doubles with integer and half-integer exponents, with the bits of the GNU C library.

The library's error is little more than half a unit in the last place.  The vector function multiplies the
base and its root, as sums of two numbers with a relative error of 2**-95.  Where that
decides how to round, with room for the library's error, the library rounds alike.  The few other elements,
other exponents, and bases that are not positive or far from 1, are left to the library one by one.  For the
exponents -1, 0, 0.5 and 2 NumPy does not call the library either.  An exponent that is not known at compile
time is tested once per row of elements; for others than these, NumPy's loop is called.
"""

from __future__ import annotations

from string import Template
from typing import TypeGuard

import numpy as np

from dcarray.lowering.cpu.llvm.text.builder import Builder, bits_of, real
from dcarray.lowering.kernel.nodes import Lit
from dcarray.lowering.runtime import libm

from . import libm_fallback

__all__ = ["is_one_instruction", "is_served", "is_square", "loop", "power", "square"]

_MAX_BASE_LOG2 = 40  # bases are up to 2**40 and its inverse
# By how much more than half a unit in the last place the library's results are wrong, without FMA: by 0.011,
# and by 1.5 * 2**-15 for each unit of the result's logarithm (e_pow.c of its sysdeps/ieee754/dbl-64).
_ROOM, _SLOPE = 0.0112, 1.5 * 2**-15 * _MAX_BASE_LOG2 * 0.6932

_SEVERAL = Template("""define internal {$v, $m} @$name($v %x, double %y0) {
entry:
  %twice = fadd double %y0, %y0
  %k = fptosi double %twice to i64
  switch i64 %k, label %power [ i64 -2, label %turned  i64 1, label %rooted  i64 4, label %squared ]
turned:
  %turn = fdiv $v $one, %x
  br label %plain
rooted:
  %sqrt = call $v @llvm.sqrt.$s($v %x)
  br label %plain
squared:
  %square = fmul $v %x, %x
  br label %plain
plain:
  %simple = phi $v [ %turn, %turned ], [ %sqrt, %rooted ], [ %square, %squared ]
  br label %done
power:
  %xbits = bitcast $v %x to $i
  %above = icmp uge $i %xbits, splat (i64 $least)
  %below = icmp ult $i %xbits, splat (i64 $most)
  %usual = and $m %above, %below
  %base = select $m %usual, $v %x, $v $one
  %odd = and i64 %k, 1
  %root = icmp ne i64 %odd, 0
  br i1 %root, label %half, label %begin
half:
  %s = call $v @llvm.sqrt.$s($v %base)
  %minus = fneg $v %s
  %gone = call $v @llvm.fma.$s($v %minus, $v %s, $v %base)
  %over = fdiv $v $one, %s
  %over2 = fmul $v %over, %over
  %twofold = fmul $v %gone, $half
  %lack = fmul $v %twofold, %over
  br label %begin
begin:
  %h0 = phi $v [ $one, %power ], [ %s, %half ]
  %l0 = phi $v [ zeroinitializer, %power ], [ %lack, %half ]
  %q0 = phi $v [ $one, %power ], [ %over, %half ]
  %less2 = phi $v [ $one, %power ], [ %over2, %half ]
  %positive = icmp sgt i64 %k, 0
  %opposite = sub i64 0, %k
  %halves = select i1 %positive, i64 %k, i64 %opposite
  %times = lshr i64 %halves, 1
  br label %next
next:
  %t = phi i64 [ 0, %begin ], [ %t1, %several ]
  %h = phi $v [ %h0, %begin ], [ %p, %several ]
  %l = phi $v [ %l0, %begin ], [ %l1, %several ]
  %qn = phi $v [ %q0, %begin ], [ %q1, %several ]
  %more = icmp ult i64 %t, %times
  br i1 %more, label %several, label %made
several:
  %p = fmul $v %h, %base
  %np = fneg $v %p
  %e = call $v @llvm.fma.$s($v %h, $v %base, $v %np)
  %l1 = call $v @llvm.fma.$s($v %l, $v %base, $v %e)
  %q1 = fmul $v %qn, %less2
  %t1 = add i64 %t, 1
  br label %next
made:
  br i1 %positive, label %ready, label %inverse
inverse:
  br i1 %root, label %turned.root, label %turned.whole
turned.whole:
  %qw = fdiv $v $one, %h
  br label %turned.any
turned.root:
  br label %turned.any
turned.any:
  %q = phi $v [ %qn, %turned.root ], [ %qw, %turned.whole ]
  %nq = fneg $v %q
  %r0 = call $v @llvm.fma.$s($v %nq, $v %h, $v $one)
  %r1 = call $v @llvm.fma.$s($v %nq, $v %l, $v %r0)
  %ql = fmul $v %q, %r1
  br label %ready
ready:
  %high = phi $v [ %h, %made ], [ %q, %turned.any ]
  %low = phi $v [ %l, %made ], [ %ql, %turned.any ]
  %value = fadd $v %high, %low
  %bits = bitcast $v %value to $i
  %exponent = and $i %bits, splat (i64 $exponents)
  %scale = bitcast $i %exponent to $v
  %size = call double @llvm.fabs.f64(double %y0)
  %more.room = fmul double %size, $slope
  %least.room = fadd double %more.room, $room
  %one.room = insertelement $v poison, double %least.room, i32 0
  %each.room = shufflevector $v %one.room, $v poison, <$n x i32> zeroinitializer
  %room = fmul $v %scale, %each.room
  %farther = fadd $v %low, %room
  %nearer = fsub $v %low, %room
  %up = fadd $v %high, %farther
  %down = fadd $v %high, %nearer
  %unsure = fcmp une $v %up, %down
  %unusual = xor $m %usual, splat (i1 true)
  %unknown = or $m %unsure, %unusual
  br label %done
done:
  %z = phi $v [ %simple, %plain ], [ %value, %ready ]
  %hard = phi $m [ zeroinitializer, %plain ], [ %unknown, %ready ]
  %first = insertvalue {$v, $m} poison, $v %z, 0
  %both = insertvalue {$v, $m} %first, $m %hard, 1
  ret {$v, $m} %both
}""")

# NaN and what is large are not looked at further.
_SERVED = Template("""define internal i64 @$name(double %y, i64 %loop) {
  %bits = bitcast double %y to i64
  %size = and i64 %bits, $sizes
  %near = icmp ult i64 %size, $far
  %safe = select i1 %near, double %y, double 0.0
  %twice = fadd double %safe, %safe
  %k = fptosi double %twice to i64
  %again = sitofp i64 %k to double
  %whole = fcmp oeq double %again, %twice
  %some = icmp ne i64 %k, 0
  %served = and i1 %whole, %some
  %code = select i1 %served, i64 $ours, i64 %loop
  ret i64 %code
}""")


# The library's square is the product, rounded, if what rounding takes from it is not almost half a unit in
# the last place; for almost all other numbers, too, but nobody knows for which.
_SQUARE = """define internal double @dc_square(double %x) #pure {
entry:
  %size = call double @llvm.fabs.f64(double %x)
  %above = fcmp ult double %size, $least
  %below = fcmp ugt double %size, $most
  %far = or i1 %above, %below
  %z = fmul double %x, %x
  br i1 %far, label %ask, label %near
near:
  %minus = fneg double %z
  %gone = call double @llvm.fma.f64(double %x, double %x, double %minus)
  %lost = call double @llvm.fabs.f64(double %gone)
  %bits = bitcast double %z to i64
  %power = and i64 %bits, $exponent
  %unit = bitcast i64 %power to double
  %room = fmul double %unit, $half
  %sure = fcmp olt double %lost, %room
  br i1 %sure, label %done, label %ask
ask:
  %asked = call double @pow(double %x, double $two) #pure nobuiltin
  br label %done
done:
  %found = phi double [ %z, %near ], [ %asked, %ask ]
  ret double %found
}"""


def is_square(b: Builder, exponent: object) -> bool:
    """Whether a C library's power with this exponent is a square that `square` computes."""
    return (
        b.machine.exact_powers
        and isinstance(exponent, Lit)
        and exponent.dtype == np.float64
        and _value(exponent) == 2.0
    )


def square(b: Builder, x: str) -> str:
    """Return ``pow(x, 2.0)`` of a double, with the bits of the C library."""
    room = 2.0 * (_ROOM + _SLOPE)
    text = Template(_SQUARE).substitute(
        least=real(2.0**-_MAX_BASE_LOG2, "double"),
        most=real(2.0**_MAX_BASE_LOG2, "double"),
        exponent=0x7FF << 52,
        half=real(2.0**-53 * (1.0 - room), "double"),
        two=real(2.0, "double"),
    )
    b.declare("llvm.fabs.f64", "declare double @llvm.fabs.f64(double)")
    b.declare("llvm.fma.f64", "declare double @llvm.fma.f64(double, double, double)")
    b.declare("pow", "declare double @pow(double, double) #pure")
    b.declare("dc_square", text)
    return b.call("double", "dc_square", ("double", x))


def is_one_instruction(exponent: object) -> TypeGuard[Lit]:
    """Whether ``exponent`` is a constant for which a power is a single instruction: -1, 0.5 or 2."""
    return isinstance(exponent, Lit) and exponent.dtype == np.float64 and _value(exponent) in (-1.0, 0.5, 2.0)


def is_served(exponent: object) -> TypeGuard[Lit]:
    """Whether a constant is an exponent that this module computes with NumPy's bits."""
    if not isinstance(exponent, Lit) or exponent.dtype != np.float64:
        return False
    return libm.is_half_integer(_value(exponent))


def _value(exponent: Lit) -> float:
    return float(np.frombuffer(exponent.bits, np.float64)[0])


def power(b: Builder, x: str, exponent: Lit) -> str:
    """Emit ``x ** exponent`` as one instruction and return it; `is_one_instruction` must hold."""
    match _value(exponent):
        case 2.0:
            return b.op(f"fmul double {x}, {x}")
        case 0.5:
            return b.intrinsic("sqrt", "double", x)
    return b.op(f"fdiv double {real(1.0, 'double')}, {x}")


def loop(b: Builder, exponent: str, constant: Lit | None, code: str) -> str:
    """Return the address of the loop for powers of a row of doubles: this module's, or ``code``, that of
    NumPy's. ``exponent`` is the exponent's address, ``constant`` its value if that is known."""
    if constant is not None:
        if not is_served(constant):
            return code
        # LLVM makes a function without choices and loops of it.
        y = _value(constant)
        rows = f"dc_power_{'m' if y < 0 else ''}{int(2 * abs(y))}_halves"
        return libm_fallback.declare(b, rows, _several(b), "pow", real(y, "double"))
    rows, name = "dc_power_rows", "dc_power_loop"
    ours = libm_fallback.declare(b, rows, _several(b), "pow", "")
    far = bits_of(libm.MAX_EXPONENT)
    b.declare(name, _SERVED.substitute(name=name, ours=ours, sizes=(1 << 63) - 1, far=far))
    return b.op(f"call i64 @{name}(double {b.op(f'load double, ptr {exponent}')}, i64 {code})")


def _several(b: Builder) -> str:
    """Define the function of a vector of bases and an integer or half-integer exponent; return its name."""
    lanes, name = libm_fallback.lanes(b), "dc_power_several"
    v, s = f"<{lanes} x double>", f"v{lanes}f64"
    b.declare("llvm.fabs.f64", "declare double @llvm.fabs.f64(double)")
    b.declare_vectors(lanes, "double", fma=3, sqrt=1)
    one, half = (f"splat (double {real(value, 'double')})" for value in (1.0, 0.5))
    unit = 2.0**-52
    text = _SEVERAL.substitute(
        name=name, v=v, s=s, n=lanes, i=f"<{lanes} x i64>", m=f"<{lanes} x i1>", exponents=0x7FF << 52,
        least=bits_of(2.0**-_MAX_BASE_LOG2), most=bits_of(2.0**_MAX_BASE_LOG2),
        room=real(unit * _ROOM, "double"), slope=real(unit * _SLOPE, "double"), one=one, half=half,
    )  # fmt: skip
    b.declare(name, text)
    return name
