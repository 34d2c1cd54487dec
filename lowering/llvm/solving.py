"""Systems of linear equations by LAPACK's factors and BLAS's triangular solver, as LLVM text.

One phase factors every matrix of a stack: LAPACK wants columns, so each is turned into them first.  The other
solves for some columns of the right-hand sides at a time, by rows, as they lie in memory: for each piece the
rows are copied, exchanged as the factors say, and the two triangles are solved for.  So neither the sides nor
the solution are turned round, and both phases run on all threads.
"""

from __future__ import annotations

import numpy as np

from .routine import Routine, filled

__all__ = ["solver"]

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

; arguments: matrices, right-hand sides, solutions, factors, exchanges, results of the factoring, a one,
; getrf, trsm; then the rows, the columns of the sides, the pieces of these, and how far sides are apart
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %order = alloca i64
  %a = argument ptr 0
  %lus = argument ptr 3
  %swaps = argument ptr 4
  %infos = argument ptr 5
  %getrf = argument ptr 7
  %n = argument i64 9
  store i64 %n, ptr %order
  %size = mul i64 %n, %n
  br label %matrix
matrix:
  %k = phi i64 [ %lo, %entry ], [ %k1, %factor ]
  %more = icmp slt i64 %k, %hi
  br i1 %more, label %open, label %exit
open:
  %away = mul i64 %k, %size
  %from = getelementptr $E, ptr %a, i64 %away
  %lu = getelementptr $E, ptr %lus, i64 %away
  br label %band
band:
  %i0 = phi i64 [ 0, %open ], [ %i8, %banded ]
  %bands = icmp slt i64 %i0, %n
  br i1 %bands, label %column, label %factor
column:
  %j = phi i64 [ 0, %band ], [ %j1, %columned ]
  %i8 = add i64 %i0, 8
  %it = call i64 @llvm.smin.i64(i64 %i8, i64 %n)
  %columns = icmp slt i64 %j, %n
  br i1 %columns, label %element, label %banded
element:
  %i = phi i64 [ %i0, %column ], [ %i1, %element ]
  %row = mul i64 %i, %n
  %place = add i64 %row, %j
  %vp = getelementptr $E, ptr %from, i64 %place
  %v = load $E, ptr %vp, align $ALIGN
  %line = mul i64 %j, %n
  %turned = add i64 %line, %i
  %tp = getelementptr $E, ptr %lu, i64 %turned
  store $E %v, ptr %tp, align $ALIGN
  %i1 = add i64 %i, 1
  %elements = icmp slt i64 %i1, %it
  br i1 %elements, label %element, label %columned
columned:
  %j1 = add i64 %j, 1
  br label %column
banded:
  br label %band
factor:
  %first = mul i64 %k, %n
  %swap = getelementptr i64, ptr %swaps, i64 %first
  %info = getelementptr i64, ptr %infos, i64 %k
  call void %getrf(ptr %order, ptr %order, ptr %lu, ptr %order, ptr %swap, ptr %info)
  %k1 = add i64 %k, 1
  br label %matrix
exit:
  ret i32 0
}

define i32 @phase1(ptr %args, i64 %lo, i64 %hi) {
entry:
  %b = argument ptr 1
  %x = argument ptr 2
  %lus = argument ptr 3
  %swaps = argument ptr 4
  %infos = argument ptr 5
  %one = argument ptr 6
  %trsm = argument ptr 8
  %n = argument i64 9
  %m = argument i64 10
  %pieces = argument i64 11
  %apart = argument i64 12
  %size = mul i64 %n, %n
  %sides = mul i64 %n, %m
  br label %piece
piece:
  %t = phi i64 [ %lo, %entry ], [ %t1, %next ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %open, label %exit
open:
  %k = udiv i64 %t, %pieces
  %p = urem i64 %t, %pieces
  %p1 = add i64 %p, 1
  %c0m = mul i64 %p, %m
  %c0 = udiv i64 %c0m, %pieces
  %c1m = mul i64 %p1, %m
  %c1 = udiv i64 %c1m, %pieces
  %w = sub i64 %c1, %c0
  %infop = getelementptr i64, ptr %infos, i64 %k
  %info = load i64, ptr %infop
  %right = icmp eq i64 %info, 0
  %some = icmp sgt i64 %w, 0
  %go = and i1 %right, %some
  br i1 %go, label %start, label %next
start:
  %ba = mul i64 %k, %apart
  %bc = add i64 %ba, %c0
  %from = getelementptr $E, ptr %b, i64 %bc
  %xa = mul i64 %k, %sides
  %xc = add i64 %xa, %c0
  %to = getelementptr $E, ptr %x, i64 %xc
  %la = mul i64 %k, %size
  %lu = getelementptr $E, ptr %lus, i64 %la
  %sa = mul i64 %k, %n
  %swap = getelementptr i64, ptr %swaps, i64 %sa
  %bytes = mul i64 %w, $SIZE
  br label %copy
copy:
  %i = phi i64 [ 0, %start ], [ %i1, %copy ]
  %ro = mul i64 %i, %m
  %rf = getelementptr $E, ptr %from, i64 %ro
  %rt = getelementptr $E, ptr %to, i64 %ro
  call void @llvm.memcpy.p0.p0.i64(ptr %rt, ptr %rf, i64 %bytes, i1 false)
  %i1 = add i64 %i, 1
  %copied = icmp eq i64 %i1, %n
  br i1 %copied, label %exchange, label %copy
exchange:
  %r = phi i64 [ 0, %copy ], [ %r1, %exchanged ]
  %rest = icmp slt i64 %r, %n
  br i1 %rest, label %which, label %solve
which:
  %sp = getelementptr i64, ptr %swap, i64 %r
  %s1 = load i64, ptr %sp
  %s = sub i64 %s1, 1
  %r1 = add i64 %r, 1
  %same = icmp eq i64 %s, %r
  br i1 %same, label %exchanged, label %rows
rows:
  %ra = mul i64 %r, %m
  %above = getelementptr $E, ptr %to, i64 %ra
  %rb = mul i64 %s, %m
  %below = getelementptr $E, ptr %to, i64 %rb
  br label %swapping
swapping:
  %q = phi i64 [ 0, %rows ], [ %q1, %swapping ]
  %ap = getelementptr $E, ptr %above, i64 %q
  %bp = getelementptr $E, ptr %below, i64 %q
  %av = load $E, ptr %ap, align $ALIGN
  %bv = load $E, ptr %bp, align $ALIGN
  store $E %bv, ptr %ap, align $ALIGN
  store $E %av, ptr %bp, align $ALIGN
  %q1 = add i64 %q, 1
  %swapped = icmp eq i64 %q1, %w
  br i1 %swapped, label %exchanged, label %swapping
exchanged:
  br label %exchange
solve:
  $ONE
  call void %trsm($LEFT, i32 121, $TURNED, i32 132, i64 %n, i64 %w, $SCALE, ptr %lu, i64 %n, ptr %to, i64 %m)
  call void %trsm($LEFT, i32 122, $TURNED, i32 131, i64 %n, i64 %w, $SCALE, ptr %lu, i64 %n, ptr %to, i64 %m)
  br label %next
next:
  %t1 = add i64 %t, 1
  br label %piece
exit:
  ret i32 0
}
"""


def solver(char: str) -> Routine:
    """The routine for elements of a dtype: ``f``, ``d``, ``F`` or ``D``."""
    real = {"f": "float", "d": "double"}.get(char)
    words = {
        "E": {"f": "i32", "d": "i64", "F": "i64", "D": "<2 x i64>"}[char],
        "SIZE": np.dtype(char).itemsize,
        "ALIGN": min(np.dtype(char).itemsize, 8),
        "ONE": f"%scale = load {real}, ptr %one" if real else "",
        "LEFT": "i32 101, i32 141",  # by rows, the triangle to the left
        "TURNED": "i32 112",  # it lies by columns
        "SCALE": f"{real} %scale" if real else "ptr %one",
    }
    return Routine(f"systems of equations of {char}", filled(_TEXT, **words), 2, 13)
