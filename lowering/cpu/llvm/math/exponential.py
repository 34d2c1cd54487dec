"""A vector loop for exp of doubles with the bits of the GNU C library, where NumPy's exp has these bits.

It multiplies a power of two from a table by a short series; where that does not decide the rounding, it calls
the library (see `libm_fallback`).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

from dcarray.lowering.cpu.llvm.text.builder import Builder, real

from . import libm_fallback
from .sincos import Writer, pair

__all__ = ["loop"]

_LN2 = Fraction(693147180559945309417232121458176568075500134360255254120680009, 10**63)
_MOST, _LEAST = 700.0, 2.0**-60  # beyond, results may be no usual numbers; below, they are 1
_STEPS = 128  # in which the table goes from 1 to 2
# How sure a value has to be, in units of its last place.  The library's are wrong by up to 0.511 of them
# (exp_data.c of its sysdeps/ieee754/dbl-64), this module's by 0.007.
_MARGIN = 2.0**-52 * 0.019


def _ln2() -> tuple[float, float]:
    """Return ln 2 as a sum of two doubles; products of the first one with an exponent are exact."""
    first = Fraction(int(_LN2 * 2**32), 2**32)
    return float(first), float(_LN2 - first)


@cache
def _tables() -> dict[str, list[float]]:
    """Return the tables of the powers ``2**(j/128)``, each power as a sum of two doubles."""
    tables: dict[str, list[float]] = {"dc_exp_high": [], "dc_exp_low": []}
    with localcontext() as context:
        context.prec = 60
        for j in range(_STEPS):
            for name, value in zip(tables, pair(Fraction(Decimal(2) ** (Decimal(j) / _STEPS))), strict=True):
                tables[name].append(value)
    return tables


def _bits(w: Writer, text: str) -> str:
    return w.op(text.replace("$i", f"<{w.lanes} x i64>").replace("$v", w.v))


def _exp(w: Writer) -> tuple[str, str]:
    """Emit exp of the vector ``%x``; return the values and the mask of undecided lanes."""
    size = w.call("fabs", "%x")
    usual, tiny = w.below(size, _MOST), w.below(size, _LEAST)
    x = w.select(w.both(usual, w.other(tiny)), "%x", w.const(0.0))
    # x = (k + j/128) * ln 2 + r
    first, second = (part / _STEPS for part in _ln2())
    magic = 2.0**52 + 2.0**51  # the last bits of what is added to it are a whole number
    total = w.fma(x, w.const(float(_STEPS / _LN2)), w.const(magic))
    k = w.sub(total, w.const(magic))
    r = w.fma(k, w.const(-second), w.fma(k, w.const(-first), x))
    number = _bits(w, f"bitcast $v {total} to $i")
    j = _bits(w, f"and $i {number}, splat (i64 {_STEPS - 1})")
    high, tail = (w.looked_up(table, j) for table in _tables())
    square = w.mul(r, r)
    p = w.fma(r, w.fma(r, w.const(1 / 720), w.const(1 / 120)), w.const(1 / 24))
    p = w.fma(square, p, w.fma(r, w.const(1 / 6), w.const(0.5)))
    rest = w.fma(high, w.fma(square, p, r), tail)
    room = w.const(_MARGIN)  # of a sum from 0.99 to 1.998
    unsure = w.compare("une", w.add(high, w.add(rest, room)), w.add(high, w.sub(rest, room)))
    n = _bits(w, f"sub $i {number}, {j}")
    n = _bits(w, f"shl $i {n}, splat (i64 {52 - _STEPS.bit_length() + 1})")
    scaled = _bits(w, f"add $i {_bits(w, f'bitcast $v {w.add(high, rest)} to $i')}, {n}")
    return _bits(w, f"bitcast $i {scaled} to $v"), w.either(unsure, w.other(usual))


def loop(b: Builder) -> str:
    """Return the address of a loop for rows of contiguous doubles."""
    w, several = Writer(libm_fallback.lanes(b)), "dc_exp_several"
    for table, values in _tables().items():
        constants = ", ".join(f"double {real(x, 'double')}" for x in values)
        b.declare(table, f"@{table} = internal constant [{len(values)} x double] [{constants}], align 64")
    return libm_fallback.declare(b, "dc_exp_rows", w.define(b, several, *_exp(w)), "exp")
