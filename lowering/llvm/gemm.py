"""Products of matrices in tiles, each by one call of BLAS on the thread that takes it, as LLVM text.

OpenBLAS's own threads make one product in step with each other, and spin for the next one when it is made:
where others want the cores, each waits for the slowest, and kernels that come next have half of a core.
Tiles need nothing of one another, and the threads that make them are ours.
"""

from __future__ import annotations

from ..flags import ALL
from .routine import Routine, filled, scalar, words_of

__all__ = ["ARGUMENTS", "gemm"]

ARGUMENTS = 22

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

; arguments: the factors, the product, and BLAS's function; the extents, how far rows are apart (or columns,
; see the orders that follow), the orders, rows and columns of a tile, tiles in a row of them, how far rows of
; the first factor and columns of the second are apart; a one and a zero; and, where a product is made in the
; place of its first factor, where a tile is until all that it is made of has been read: a flag for each
; place, the places, and the bytes of one (or 0)
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %a = argument ptr 0
  %b = argument ptr 1
  %c = argument ptr 2
  %gemm = argument ptr 3
  %m = argument i64 4
  %n = argument i64 5
  %k = argument i64 6
  %lda = argument i64 7
  %ldb = argument i64 8
  %ldc = argument i64 9
  %ta64 = argument i64 10
  %tb64 = argument i64 11
  %rows = argument i64 12
  %columns = argument i64 13
  %across = argument i64 14
  %down = argument i64 15
  %along = argument i64 16
  %one = argument ptr 17
  %taken = argument ptr 18
  %places = argument i64 19
  %scratch = argument ptr 20
  %room = argument i64 21
  %ta = trunc i64 %ta64 to i32
  %tb = trunc i64 %tb64 to i32
  %zero = getelementptr $E, ptr %one, i64 1
  $SCALARS
  %aside = icmp sgt i64 %room, 0
  br i1 %aside, label %place, label %start
place:
  %p = phi i64 [ 0, %entry ], [ %p2, %place ]
  %flag = getelementptr i64, ptr %taken, i64 %p
  %was = atomicrmw xchg ptr %flag, i64 1 seq_cst
  %free = icmp eq i64 %was, 0
  %p1 = add i64 %p, 1
  %p2 = urem i64 %p1, %places
  br i1 %free, label %start, label %place
start:
  %mine = phi i64 [ 0, %entry ], [ %p, %place ]
  %away = mul i64 %mine, %room
  %own = getelementptr i8, ptr %scratch, i64 %away
  br label %tile
tile:
  %t = phi i64 [ %lo, %start ], [ %t1, %next ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %open, label %close
open:
  %tr = udiv i64 %t, %across
  %tc = urem i64 %t, %across
  %r0 = mul i64 %tr, %rows
  %c0 = mul i64 %tc, %columns
  %rl = sub i64 %m, %r0
  %h = call i64 @llvm.smin.i64(i64 %rows, i64 %rl)
  %cl = sub i64 %n, %c0
  %w = call i64 @llvm.smin.i64(i64 %columns, i64 %cl)
  %ao = mul i64 %r0, %down
  %ap = getelementptr $E, ptr %a, i64 %ao
  %bo = mul i64 %c0, %along
  %bp = getelementptr $E, ptr %b, i64 %bo
  %cr = mul i64 %r0, %ldc
  %co = add i64 %cr, %c0
  %cp = getelementptr $E, ptr %c, i64 %co
  %to = select i1 %aside, ptr %own, ptr %cp
  %ldt = select i1 %aside, i64 %w, i64 %ldc
  call void %gemm(i32 101, i32 %ta, i32 %tb, i64 %h, i64 %w, i64 %k, $ONE, ptr %ap, i64 %lda,
                  ptr %bp, i64 %ldb, $ZERO, ptr %to, i64 %ldt)
  br i1 %aside, label %back, label %next
back:
  %bytes = mul i64 %w, $SIZE
  br label %row
row:
  %i = phi i64 [ 0, %back ], [ %i1, %row ]
  %fo = mul i64 %i, %w
  %from = getelementptr $E, ptr %own, i64 %fo
  %io = mul i64 %i, %ldc
  %into = getelementptr $E, ptr %cp, i64 %io
  call void @llvm.memcpy.p0.p0.i64(ptr %into, ptr %from, i64 %bytes, i1 false)
  %i1 = add i64 %i, 1
  %rest = icmp slt i64 %i1, %h
  br i1 %rest, label %row, label %next
next:
  %t1 = add i64 %t, 1
  br label %tile
close:
  br i1 %aside, label %release, label %exit
release:
  %mineflag = getelementptr i64, ptr %taken, i64 %mine
  store atomic i64 0, ptr %mineflag seq_cst, align 8
  br label %exit
exit:
  ret i32 0
}
"""


def gemm(char: str) -> Routine:
    """The routine for elements of a dtype: ``f``, ``d``, ``F`` or ``D``."""
    one, zero = scalar(char, "one"), scalar(char, "zero")
    words = {"SCALARS": f"{one[1]}\n  {zero[1]}", "ONE": one[0], "ZERO": zero[0], **words_of(char)}
    return Routine(f"products of matrices of {char}", filled(_TEXT, **words), 1, ARGUMENTS, ALL)
