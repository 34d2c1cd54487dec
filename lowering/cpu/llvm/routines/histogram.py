"""Histograms over bins of one width, as LLVM text: two phases that give NumPy's result to the bit.

NumPy counts blocks of 65536 elements one after the other and adds the counts up.  So does this: the first
phase counts each block in a row of its own, the second adds the rows in order, which with weights is the
order of NumPy's additions.  An element's bin is estimated by multiplication and corrected by comparison with
edges, which are computed as ``numpy.linspace`` does: edge ``k`` is ``k * step + first``, each operation
rounded, except for the last edge.  So finding a bin reads no memory.  The caller must check that the edges
are these, and not so close that rounding matters.
"""

from __future__ import annotations

from .routine import Routine, fill_template

__all__ = ["BLOCK", "histogram"]

BLOCK = 65536
_PIECE = 512  # elements whose bins are computed before they are counted

_TEXT = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)

; arguments: values, weights, edges, rows, result; then the numbers of values, bins and blocks
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %found = alloca [$PIECE x i32], align 64
  arguments ptr x, ptr w, ptr edges, ptr rows, _, i64 n, i64 bins
  %first = load double, ptr %edges
  %last = load double, ptr %edges[double %bins]
  %width = fsub double %last, %first
  %scale = sitofp i64 %bins to double
  %step = fdiv double %width, %scale
  %rate = fdiv double %scale, %width
  %outside = trunc i64 %bins to i32
  %top = sub i32 %outside, 1
  %pitch = add i64 %bins, 1
  %bytes = mul i64 %pitch, 8
  br label %block
block:
  %b = phi i64 [ %lo, %entry ], [ %b1, %done ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %open, label %exit
open:
  %away = mul i64 %b, %pitch
  %row = getelementptr i64, ptr %rows, i64 %away
  call void @llvm.memset.p0.i64(ptr %row, i8 0, i64 %bytes, i1 false)
  %start = mul i64 %b, $BLOCK
  %end = add i64 %start, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  br label %piece
piece:
  %c = phi i64 [ %start, %open ], [ %c1, %counted ]
  %left = icmp slt i64 %c, %stop
  br i1 %left, label %bounds, label %done
bounds:
  %c1 = add i64 %c, $PIECE
  %to = call i64 @llvm.smin.i64(i64 %c1, i64 %stop)
  %size = sub i64 %to, %c
  %xs = getelementptr double, ptr %x, i64 %c
  br label %find
find:
  %j = phi i64 [ 0, %bounds ], [ %j1, %find ]
  %v = load double, ptr %xs[double %j]
  %above = fcmp oge double %v, %first
  %below = fcmp ole double %v, %last
  %inside = and i1 %above, %below
  %u = select i1 %inside, double %v, double %first
  %off = fsub double %u, %first
  %f = fmul double %off, %rate
  %i = fptosi double %f to i32
  %i0 = call i32 @llvm.smin.i32(i32 %i, i32 %top)
  %g0 = sitofp i32 %i0 to double
  %m0 = fmul double %g0, %step
  %e0 = fadd double %m0, %first
  %less = fcmp olt double %u, %e0
  %down = sext i1 %less to i32
  %i1 = add i32 %i0, %down
  %i1n = add i32 %i1, 1
  %g1 = sitofp i32 %i1n to double
  %m1 = fmul double %g1, %step
  %e1 = fadd double %m1, %first
  %reached = fcmp oge double %u, %e1
  %middle = icmp ne i32 %i1, %top
  %next = and i1 %reached, %middle
  %up = zext i1 %next to i32
  %i2 = add i32 %i1, %up
  %bin = select i1 %inside, i32 %i2, i32 %outside
  store i32 %bin, ptr %found[i32 %j]
  %j1 = add i64 %j, 1
  %jend = icmp eq i64 %j1, %size
  br i1 %jend, label %ready, label %find
ready:
  %ws = getelementptr double, ptr %w, i64 %c
  br label %count
count:
  %k = phi i64 [ 0, %ready ], [ %k1, %count ]
  %short = load i32, ptr %found[i32 %k]
  %slot = zext i32 %short to i64
  %at = getelementptr i64, ptr %row, i64 %slot
  %old = load $T, ptr %at
  $VALUE
  %new = $ADD $T %old, $ONE
  store $T %new, ptr %at
  %k1 = add i64 %k, 1
  %kend = icmp eq i64 %k1, %size
  br i1 %kend, label %counted, label %count
counted:
  br label %piece
done:
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}

define i32 @phase1(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments _, _, _, ptr rows, ptr result, _, i64 bins, i64 blocks
  %pitch = add i64 %bins, 1
  br label %clear
clear:
  %z = phi i64 [ %lo, %entry ], [ %z1, %zero ]
  %zmore = icmp slt i64 %z, %hi
  br i1 %zmore, label %zero, label %block
zero:
  store $T $ZERO, ptr %result[$T %z]
  %z1 = add i64 %z, 1
  br label %clear
block:
  %b = phi i64 [ 0, %clear ], [ %b1, %next ]
  %more = icmp slt i64 %b, %blocks
  br i1 %more, label %open, label %exit
open:
  %away = mul i64 %b, %pitch
  %row = getelementptr i64, ptr %rows, i64 %away
  br label %bin
bin:
  %k = phi i64 [ %lo, %open ], [ %k1, %add ]
  %kmore = icmp slt i64 %k, %hi
  br i1 %kmore, label %add, label %next
add:
  %value = load $T, ptr %row[$T %k]
  %to = getelementptr $T, ptr %result, i64 %k
  %old = load $T, ptr %to
  %new = $ADD $T %old, %value
  store $T %new, ptr %to
  %k1 = add i64 %k, 1
  br label %bin
next:
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}
"""


def histogram(weighted: bool) -> Routine:
    """Return the routine that counts the elements in each bin, or with ``weighted`` adds up their weights."""
    weight = "%onep = getelementptr double, ptr %ws, i64 %k\n  %one = load double, ptr %onep"
    words = (
        {"T": "double", "ADD": "fadd", "ONE": "%one", "ZERO": "0.0", "VALUE": weight}
        if weighted
        else {"T": "i64", "ADD": "add", "ONE": "1", "ZERO": "0", "VALUE": ""}
    )
    text = fill_template(_TEXT, BLOCK=BLOCK, PIECE=_PIECE, **words)
    return Routine(f"histogram of {'weights' if weighted else 'counts'}", text, 2, 8)
