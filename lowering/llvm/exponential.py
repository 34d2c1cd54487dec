"""exp of doubles with NumPy's bits, several at once, where NumPy's are those of the GNU C library.

As in `circular`: the library's results are wrong by little more than half a unit in the last place, ours come
as a sum of two numbers that is good to a few thousandths of one, and the few elements for which that does not
tell how the library rounds are left to it.  So are those whose results may be no usual numbers.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from string import Template

from . import libm
from .builder import Builder, real
from .circular import Writer, pair

__all__ = ["loop", "serves"]

_LN2 = Fraction(693147180559945309417232121458176568075500134360255254120680009, 10**63)
_MOST, _LEAST = 700.0, 2.0**-60  # beyond, results may be no usual numbers; below, they are 1
_STEPS = 128  # in which the table goes from 1 to 2
# How sure a value has to be, in units of its last place.  The library's are wrong by up to 0.511 of them
# (exp_data.c of its sysdeps/ieee754/dbl-64), ours by 0.007.
_ROOM = 2.0**-52 * 0.019

# A loop like NumPy's, over contiguous rows, in pieces: what is hard is noted without a branch, and left to
# the library when the rest of a piece is done.
_PIECE = 512
_ROWS = Template("""define internal void @$name(ptr %args, ptr %counts, ptr %steps, ptr %data) {
entry:
  %olds = alloca [$piece x double], align 64
  %list = alloca [$room x i64], align 64
  %xs = load ptr, ptr %args
  %last = getelementptr ptr, ptr %args, i64 1
  %zs = load ptr, ptr %last
  %from = ptrtoint ptr %xs to i64
  %to = ptrtoint ptr %zs to i64
  %off = sub i64 %to, %from
  %off1 = add i64 %off, $bytes
  %inside = icmp ult i64 %off1, $both
  %count = load i64, ptr %counts
  br label %piece
piece:
  %at = phi i64 [ 0, %entry ], [ %at1, %done ]
  %left = sub i64 %count, %at
  %small = icmp slt i64 %left, $piece
  %here = select i1 %small, i64 %left, i64 $piece
  %most = sub i64 %here, $n
  %xh = getelementptr double, ptr %xs, i64 %at
  %zh = getelementptr double, ptr %zs, i64 %at
  br i1 %inside, label %copy, label %begin
copy:
  %bytes = mul i64 %here, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %olds, ptr %xh, i64 %bytes, i1 false)
  br label %begin
begin:
  %old = phi ptr [ %xh, %piece ], [ %olds, %copy ]
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i1, %several ]
  %found = phi i64 [ 0, %begin ], [ %found.$n, %several ]
  %more = icmp sle i64 %i, %most
  br i1 %more, label %several, label %few
several:
  %xp = getelementptr double, ptr %xh, i64 %i
  %x = load $v, ptr %xp, align 8
$body
  %zp = getelementptr double, ptr %zh, i64 %i
  store $v $value, ptr %zp, align 8
  %found.0 = add i64 %found, 0
  %mask = bitcast <$n x i1> $hard to i$n
  %set = zext i$n %mask to i64
$notes
  %i1 = add i64 %i, $n
  br label %next
few:
  %k = phi i64 [ %i, %next ], [ %k1, %note ]
  %f = phi i64 [ %found, %next ], [ %f1, %note ]
  %rest = icmp slt i64 %k, %here
  br i1 %rest, label %note, label %hard
note:
  %lq = getelementptr i64, ptr %list, i64 %f
  store i64 %k, ptr %lq
  %k1 = add i64 %k, 1
  %f1 = add i64 %f, 1
  br label %few
hard:
  %t = phi i64 [ 0, %few ], [ %t1, %one ]
  %again = icmp slt i64 %t, %f
  br i1 %again, label %one, label %done
one:
  %tp = getelementptr i64, ptr %list, i64 %t
  %j = load i64, ptr %tp
  %xj = getelementptr double, ptr %old, i64 %j
  %x0 = load double, ptr %xj
  %z0 = call double @exp(double %x0)
  %zj = getelementptr double, ptr %zh, i64 %j
  store double %z0, ptr %zj
  %t1 = add i64 %t, 1
  br label %hard
done:
  %at1 = add i64 %at, $piece
  %over = icmp slt i64 %at1, %count
  br i1 %over, label %piece, label %end
end:
  ret void
}""")
_NOTE = """  %lp.{k} = getelementptr i64, ptr %list, i64 %found.{k}
  %ik.{k} = add i64 %i, {k}
  store i64 %ik.{k}, ptr %lp.{k}
  %shift.{k} = lshr i64 %set, {k}
  %bit.{k} = and i64 %shift.{k}, 1
  %found.{next} = add i64 %found.{k}, %bit.{k}"""


def serves() -> bool:
    """Is NumPy's exp of doubles that of a C library that is known to be so good?"""
    import numpy as np

    return libm.serves({"exp": np.exp}, np.linspace(-19.7, 19.7, 1499))


def _ln2() -> tuple[float, float]:
    """ln 2 in parts, of which products of the first with an exponent are exact."""
    first = Fraction(int(_LN2 * 2**32), 2**32)
    return float(first), float(_LN2 - first)


@cache
def _tables() -> dict[str, list[float]]:
    """Powers of two in two parts."""
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
    """The value, and where it is not known."""
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
    room = w.const(_ROOM)  # of a sum from 0.99 to 1.998
    unsure = w.compare("une", w.add(high, w.add(rest, room)), w.add(high, w.sub(rest, room)))
    n = _bits(w, f"sub $i {number}, {j}")
    n = _bits(w, f"shl $i {n}, splat (i64 {52 - _STEPS.bit_length() + 1})")
    scaled = _bits(w, f"add $i {_bits(w, f'bitcast $v {w.add(high, rest)} to $i')}, {n}")
    return _bits(w, f"bitcast $i {scaled} to $v"), w.either(unsure, w.other(usual))


def loop(b: Builder) -> str:
    """The address of a loop for rows of contiguous doubles."""
    w, name = Writer(b.machine.vector_bits // 64), "dc_exp_rows"
    value, hard = _exp(w)
    notes = "\n".join(_NOTE.format(k=k, next=k + 1) for k in range(w.lanes))
    shape = {
        "v": w.v,
        "n": w.lanes,
        "piece": _PIECE,
        "room": _PIECE + w.lanes,
        "bytes": 8 * _PIECE,
        "both": 16 * _PIECE,
    }
    made = {"body": "\n".join(w.lines), "value": value, "hard": hard, "notes": notes}
    b.declare(name, _ROWS.substitute(name=name, **shape, **made))
    for needed, declaration in w.needs.items():
        b.declare(needed, declaration)
    for table, values in _tables().items():
        constants = ", ".join(f"double {real(x, 'double')}" for x in values)
        b.declare(table, f"@{table} = internal constant [{len(values)} x double] [{constants}], align 64")
    memcpy = "llvm.memcpy.p0.p0.i64"
    b.declare(memcpy, f"declare void @{memcpy}(ptr, ptr, i64, i1)")
    b.declare("exp", "declare double @exp(double) #pure")
    return b.op(f"ptrtoint ptr @{name} to i64")
