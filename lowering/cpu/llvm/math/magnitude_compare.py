"""Comparisons of complex numbers' absolute values by their squares, where these decide.

``absolute(z) < h`` is decided by ``re*re + im*im`` and the square of ``h`` as long as the two are further
apart than all rounding errors.  The compared length is then 0 or infinite; elsewhere, and where squares might
overflow, it is computed as NumPy does, for a whole vector at a time, with divisors that are neither 0 nor
infinite.  No flag gets lost: of numbers that are not large, a quotient of the parts underflows only where the
square of the smaller one does.
"""

from __future__ import annotations

from string import Template

import numpy as np

from dcarray.lowering.cpu.llvm.text.builder import Builder, Value, bits_of, real
from dcarray.lowering.kernel.nodes import Expr, Op

from . import vecmath

__all__ = ["comparable_magnitude", "magnitude_argument"]

_ORDERS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})


# What is compared with counts as one of these ends where it is outside of them; parts from `_FAR` on are not
# squared; and squares that differ by less than the part `_ROOM` of theirs decide nothing, which is some
# thousand times what both sides are rounded by.
_LEAST, _MOST, _FAR, _ROOM = 2.0**-100, 2.0**100, 2.0**200, 2.0**-40

_NATIVE = Template("""define $v @$name($v %re, $v %im, $v %low, $v %high) #lane {
  %a = call $v @llvm.fabs.$s($v %re)
  %b = call $v @llvm.fabs.$s($v %im)
  %ai = bitcast $v %a to $i
  %bi = bitcast $v %b to $i
  %most = call $i @llvm.umax.v${n}i64($i %ai, $i %bi)
  %near = icmp ult $i %most, splat (i64 $far)
  %a0 = select $m %near, $v %a, $v zeroinitializer
  %b0 = select $m %near, $v %b, $v zeroinitializer
  %aa = fmul $v %a0, %a0
  %bb = fmul $v %b0, %b0
  %square = fadd $v %aa, %bb
  %below = fcmp olt $v %square, %low
  %above = fcmp ogt $v %square, %high
  %apart = or $m %below, %above
  %sure = and $m %apart, %near
  %fast = select $m %below, $v zeroinitializer, $v $inf
  %set = bitcast $m %sure to i$n
  %all = icmp eq i$n %set, -1
  br i1 %all, label %done, label %exact, !prof !{!"branch_weights", i32 10000, i32 1}
exact:
  %first = icmp ugt $i %ai, %bi
  %large = select $m %first, $v %a, $v %b
  %small = select $m %first, $v %b, $v %a
  %ainf = fcmp oeq $v %a, $inf
  %binf = fcmp oeq $v %b, $inf
  %infinite = or $m %ainf, %binf
  %unknown = fcmp uno $v %a, %b
  %special = or $m %infinite, %unknown
  %over = select $m %special, $v zeroinitializer, $v %small
  %capped = call $i @llvm.umin.v${n}i64($i %most, $i splat (i64 $max))
  %some = call $i @llvm.umax.v${n}i64($i %capped, $i splat (i64 1))
  %under = bitcast $i %some to $v
  %ratio = fdiv $v %over, %under
  %sum = call $v @llvm.fma.$s($v %ratio, $v %ratio, $v $one)
  %root = call $v @llvm.sqrt.$s($v %sum)
  %length = fmul $v %root, %large
  %known = select $m %unknown, $v $nan, $v %length
  %value = select $m %infinite, $v $inf, $v %known
  %mixed = select $m %sure, $v %fast, $v %value
  br label %done
done:
  %r = phi $v [ %fast, %0 ], [ %mixed, %exact ]
  ret $v %r
}""")


def magnitude_argument(name: str, args: tuple[Expr, ...], b: Builder) -> int | None:
    """Return the position of a comparison's argument that is the absolute value of a complex number; None if
    there is none, or if the operation is no comparison."""
    if name not in _ORDERS or not b.machine.scaled_magnitude:
        return None
    for k, arg in enumerate(args):
        if isinstance(arg, Op) and arg.name == "absolute" and arg.args[0].dtype == np.complex128:
            return k
    return None


def comparable_magnitude(b: Builder, z: Value, limit: str) -> str:
    """Return a value that compares with ``limit`` as the absolute value of ``z`` does."""
    # by their bits, as signed integers: a NaN is on one of the sides, where no order holds
    bits = b.bits("double", limit)
    tiny, huge = b.icmp("slt", "i64", bits, bits_of(_LEAST)), b.icmp("sgt", "i64", bits, bits_of(_MOST))
    capped = b.select(huge, "double", real(_MOST, "double"), limit)
    h = b.select(tiny, "double", real(_LEAST, "double"), capped)
    square = b.fmul("double", h, h)
    low, high = (b.fmul("double", square, real(1.0 + room, "double")) for room in (-_ROOM, _ROOM))
    low = b.select(tiny, "double", real(-1.0, "double"), low)
    high = b.select(huge, "double", real(np.inf, "double"), high)
    return vecmath.call_on_vectors(b, "compared", _define, (z[0], z[1], low, high))


def _define(b: Builder, name: str, lanes: int) -> None:
    v, s, i = f"<{lanes} x double>", f"v{lanes}f64", f"<{lanes} x i64>"
    b.declare_vectors(lanes, "double", fabs=1, fma=3, sqrt=1)
    b.declare_vectors(lanes, "i64", umax=2, umin=2)
    inf, nan, one = (f"splat (double {real(value, 'double')})" for value in (np.inf, np.nan, 1.0))
    text = _NATIVE.substitute(
        name=name, v=v, s=s, n=lanes, i=i, m=f"<{lanes} x i1>", far=bits_of(_FAR),
        max=bits_of(np.finfo(float).max), inf=inf, nan=nan, one=one,
    )  # fmt: skip
    b.declare(name, text)
