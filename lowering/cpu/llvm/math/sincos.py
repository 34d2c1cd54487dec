"""Vector loops for sin and cos of doubles with the bits of the GNU C library, where NumPy has these bits.

The library's error is little more than half a unit in the last place.  The vector functions give a sum of two
numbers, good to about a hundredth of a unit: pi/2 is subtracted in three parts, and the large terms of the
series are summed with their rounding errors.  Where that does not decide how to round, with room for both
errors, the library is called (see `libm_fallback`), as it is for large, tiny or NaN arguments.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from math import factorial

from dcarray.lowering.cpu.llvm.text.builder import Builder

from . import libm_fallback

_HALF_PI = Fraction(314159265358979323846264338327950288419716939937510582097494459, 2 * 10**62)
_MAX_ARGUMENT = 2.0**20
# How sure a value has to be, as a part of itself: 0.018 to 0.036 units in the last place.  From half of that
# on, no difference from the library was found in 24 million values.
_MARGIN = 2.0**-52 * 0.018
_TERMS = 9  # of the sine's series; the cosine's has one more


def _parts() -> tuple[float, float, float]:
    """Return pi/2 as a sum of three doubles; the first two times integers below 2**20 are exact."""
    first = Fraction(int(_HALF_PI * 2**32), 2**32)
    second = Fraction(int((_HALF_PI - first) * 2**65), 2**65)
    return float(first), float(second), float(_HALF_PI - first - second)


def pair(value: Fraction) -> tuple[float, float]:
    """Return a number as the sum of two doubles, the second the rounding error of the first."""
    high = float(value)
    return high, float(value - Fraction(high))


class Writer:
    """An emitter of instructions on vectors of doubles; its methods return the names of results."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.lines = lanes, list[str]()
        self.v, self.m = f"<{lanes} x double>", f"<{lanes} x i1>"
        self.needs: dict[str, str] = {}

    def op(self, text: str) -> str:
        self.lines.append(f"  %w{len(self.lines)} = {text}")
        return f"%w{len(self.lines) - 1}"

    def define(self, b: Builder, name: str, value: str, hard: str) -> str:
        """Define the function ``name`` of the vector ``%x``, of the instructions so far, which returns
        ``value`` and ``hard``, the mask of undecided lanes; return its name."""
        kind = f"{{{self.v}, {self.m}}}"
        returned = self.op(f"insertvalue {kind} poison, {self.v} {value}, 0")
        returned = self.op(f"insertvalue {kind} {returned}, {self.m} {hard}, 1")
        lines = "\n".join([*self.lines, f"  ret {kind} {returned}"])
        b.declare(name, f"define internal {kind} @{name}({self.v} %x) {{\n{lines}\n}}")
        for needed, declaration in self.needs.items():
            b.declare(needed, declaration)
        return name

    def const(self, value: float) -> str:
        return f"splat (double 0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X})"

    def call(self, name: str, *args: str) -> str:
        full = f"llvm.{name}.v{self.lanes}f64"
        self.needs[full] = f"declare {self.v} @{full}({', '.join([self.v] * len(args))})"
        return self.op(f"call {self.v} @{full}({', '.join(f'{self.v} {a}' for a in args)})")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("fma", a, b, c)

    def mul(self, a: str, b: str) -> str:
        return self.op(f"fmul {self.v} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        return self.op(f"fadd {self.v} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.op(f"fsub {self.v} {a}, {b}")

    def neg(self, a: str) -> str:
        return self.op(f"fneg {self.v} {a}")

    def below(self, a: str, limit: float) -> str:
        """Emit ``a < limit``, for non-negative ``a``, by comparing bits, so that a NaN raises no flag."""
        kind = f"<{self.lanes} x i64>"
        bits = self.op(f"bitcast {self.v} {a} to {kind}")
        (number,) = struct.unpack("<q", struct.pack("<d", limit))
        return self.op(f"icmp ult {kind} {bits}, splat (i64 {number})")

    def both(self, a: str, b: str) -> str:
        return self.op(f"and {self.m} {a}, {b}")

    def other(self, a: str) -> str:
        return self.op(f"xor {self.m} {a}, splat (i1 true)")

    def select(self, cond: str, a: str, b: str) -> str:
        return self.op(f"select {self.m} {cond}, {self.v} {a}, {self.v} {b}")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.op(f"fcmp {how} {self.v} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.op(f"or {self.m} {a}, {b}")

    def product(self, a: str, b: str) -> tuple[str, str]:
        """Emit the product of two vectors; return it and its rounding error."""
        p = self.mul(a, b)
        return p, self.fma(a, b, self.neg(p))

    def looked_up(self, table: str, index: str) -> str:
        """Emit loads of a table's entries at a vector of integers; return the vector of entries."""
        values = "poison"
        for k in range(self.lanes):
            at = self.op(f"extractelement <{self.lanes} x i64> {index}, i32 {k}")
            value = self.op(f"load double, ptr {self.op(f'getelementptr double, ptr @{table}, i64 {at}')}")
            values = self.op(f"insertelement {self.v} {values}, double {value}, i32 {k}")
        return values

    def series(self, z: str, coefficients: list[float]) -> str:
        """Emit a polynomial in ``z``, whose even and odd terms are independent chains of operations."""
        z2 = self.mul(z, z)
        even, odd = coefficients[::2], coefficients[1::2]

        def horner(terms: list[float]) -> str:
            total = self.const(terms[-1])
            for term in reversed(terms[:-1]):
                total = self.fma(total, z2, self.const(term))
            return total

        return self.fma(horner(odd), z, horner(even))


def _sine(w: Writer, r: str, low: str, z: str, zl: str) -> tuple[str, str]:
    """Emit sin(r + low); return it as the sum of two doubles."""
    sixth, rest = pair(Fraction(1, 6))
    cube, cl = w.product(r, z)
    cl = w.fma(r, zl, cl)
    p, pl = w.product(cube, w.const(sixth))
    pl = w.fma(cube, w.const(rest), pl)
    pl = w.fma(cl, w.const(sixth), pl)
    tail = w.series(z, [(-1) ** n / factorial(2 * n + 1) for n in range(2, _TERMS)])
    high = w.sub(r, p)
    error = w.sub(w.sub(r, high), p)
    more = w.mul(low, w.fma(w.const(-0.5), z, w.const(1.0)))
    more = w.fma(w.mul(cube, z), tail, w.sub(more, pl))
    return high, w.add(error, more)


def _cosine(w: Writer, r: str, low: str, z: str, zl: str) -> tuple[str, str]:
    """Emit cos(r + low); return it as the sum of two doubles."""
    part, rest = pair(Fraction(1, 24))
    half = w.mul(z, w.const(0.5))
    high = w.sub(w.const(1.0), half)
    error = w.sub(w.sub(w.const(1.0), high), half)
    q, ql = w.product(z, z)
    ql = w.fma(w.mul(z, w.const(2.0)), zl, ql)
    p, pl = w.product(q, w.const(part))
    pl = w.fma(q, w.const(rest), pl)
    pl = w.fma(ql, w.const(part), pl)
    tail = w.series(z, [(-1) ** n / factorial(2 * n) for n in range(3, _TERMS + 1)])
    more = w.fma(w.mul(q, z), tail, pl)
    bent = w.fma(w.mul(r, z), w.const(-1 / 6), r)
    more = w.sub(more, w.fma(bent, low, w.mul(zl, w.const(0.5))))
    top = w.add(high, p)
    return top, w.add(w.sub(p, w.sub(top, high)), w.add(error, more))


def loop(b: Builder, function: str) -> str:
    """Return the address of a loop of "sin" or "cos" for rows of contiguous doubles."""
    w, several = Writer(libm_fallback.lanes(b)), f"dc_{function}_several"
    return libm_fallback.declare(
        b, f"dc_{function}_rows", w.define(b, several, *_several(w, function)), function
    )


def _several(w: Writer, function: str) -> tuple[str, str]:
    """Emit sin or cos of the vector ``%x``; return the values and the mask of undecided lanes."""
    zero, one = w.const(0.0), w.const(1.0)
    size = w.call("fabs", "%x")
    small, usual = w.below(size, 2.0**-27), w.below(size, _MAX_ARGUMENT)
    normal = w.either(w.other(w.below(size, 2.0**-1022)), w.compare("oeq", size, zero))
    plain = w.both(usual, w.other(small))
    x = w.select(plain, "%x", w.const(0.5))
    # x = k * pi/2 + r + low
    first, second, third = _parts()
    k = w.call("rint", w.mul(x, w.const(float(1 / _HALF_PI))))
    a, c = w.fma(k, w.const(-first), x), w.mul(k, w.const(second))
    r = w.sub(a, c)
    moved = w.sub(r, a)
    low = w.sub(w.sub(a, w.sub(r, moved)), w.add(c, moved))
    low = w.fma(k, w.const(-third), low)
    near = w.add(r, low)
    low = w.sub(low, w.sub(near, r))
    z, zl = w.product(near, near)
    # Of the quotient only the last two bits matter.
    quadrant = w.sub(k, w.mul(w.const(4.0), w.call("floor", w.mul(k, w.const(0.25)))))
    if function == "cos":
        quadrant = w.select(w.compare("oeq", quadrant, w.const(3.0)), zero, w.add(quadrant, one))
    odd = w.either(w.compare("oeq", quadrant, one), w.compare("oeq", quadrant, w.const(3.0)))
    sine, cosine = _sine(w, near, low, z, zl), _cosine(w, near, low, z, zl)
    high, rest = (w.select(odd, q, p) for p, q in zip(sine, cosine, strict=True))
    room = w.mul(w.call("fabs", high), w.const(_MARGIN))
    up, down = w.add(high, w.add(rest, room)), w.add(high, w.sub(rest, room))
    unsure = w.either(w.compare("une", up, down), w.below(w.call("fabs", near), 2.0**-28))
    value = w.add(high, rest)
    value = w.select(w.compare("oge", quadrant, w.const(2.0)), w.neg(value), value)
    value = w.select(small, "%x" if function == "sin" else one, value)
    hard = w.either(w.both(unsure, plain), w.other(w.both(usual, normal)))
    return value, hard
