"""Tiled matrix products on the thread pool, each tile by one single-threaded call of BLAS, as LLVM text.

OpenBLAS's own threads synchronise within a product, and spin for the next one when it is done:
on a shared machine each waits for the slowest, and kernels that follow have half of a core.
Tiles are independent, and the pool's threads do not spin for long.
"""

from __future__ import annotations

from dcarray.lowering.kernel.flags import ALL

from .routine import Routine, fill_template, scalar, words_of

__all__ = ["ARGUMENTS", "gemm"]

ARGUMENTS = 24
_STRIP = 32
"""Columns that are mirrored together, to rows that are written concurrently."""

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; arguments: the factors, the product, and BLAS's function; the extents, how far rows are apart (or columns,
; see the orders that follow), the orders, rows and columns of a tile, tiles in a row of them, how far rows of
; the first factor and columns of the second are apart; a one and a zero; and, where a product is made in the
; place of its first factor, where a tile is until all that it is made of has been read: a flag for each
; place, the places, and the bytes of one (or 0).  Of a product of a matrix with its own transpose there are
; the tiles on and above the diagonal alone, whose rows and columns of tiles are given; BLAS's other
; function makes those on it, and all are mirrored
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr a, ptr b, ptr c, ptr gemm, i64 m, i64 n, i64 k, i64 lda, i64 ldb, i64 ldc, i64 ta64,
    i64 tb64, i64 rows, i64 columns, i64 across, i64 down, i64 along, ptr one, ptr taken, i64 places,
    ptr scratch, i64 room, ptr syrk, ptr pairs
  %square = icmp ne ptr %pairs, null
  %ta = trunc i64 %ta64 to i32
  %tb = trunc i64 %tb64 to i32
  %zero = getelementptr $E, ptr %one, i64 1
  $SCALARS
  %aside = icmp sgt i64 %room, 0
  br i1 %aside, label %place, label %start
place:
  %p = phi i64 [ 0, %entry ], [ %p2, %place ]
  %was = atomicrmw xchg ptr %taken[i64 %p], i64 1 seq_cst
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
  br i1 %square, label %paired, label %counted
paired:
  %t2 = mul i64 %t, 2
  %pair = getelementptr i64, ptr %pairs, i64 %t2
  %tr.p = load i64, ptr %pair
  %tc.p = load i64, ptr %pair[i64 1]
  br label %found
counted:
  %tr.c = udiv i64 %t, %across
  %tc.c = urem i64 %t, %across
  br label %found
found:
  %tr = phi i64 [ %tr.p, %paired ], [ %tr.c, %counted ]
  %tc = phi i64 [ %tc.p, %paired ], [ %tc.c, %counted ]
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
  %alike = icmp eq i64 %tr, %tc
  %diagonal = and i1 %square, %alike
  br i1 %diagonal, label %half, label %full
half:
  call void %syrk(i32 101, i32 121, i32 %ta, i64 %h, i64 %k, $ONE, ptr %ap, i64 %lda,
                  $ZERO, ptr %cp, i64 %ldc)
  br label %mirror
full:
  call void %gemm(i32 101, i32 %ta, i32 %tb, i64 %h, i64 %w, i64 %k, $ONE, ptr %ap, i64 %lda,
                  ptr %bp, i64 %ldb, $ZERO, ptr %to, i64 %ldt)
  br i1 %square, label %mirror, label %made
mirror:
  %xo = mul i64 %c0, %ldc
  %xr = add i64 %xo, %r0
  %xp = getelementptr $E, ptr %c, i64 %xr
  br label %strip
strip:
  %j0 = phi i64 [ 0, %mirror ], [ %j0n, %stripped ]
  %j0n = add i64 %j0, $STRIP
  %j1 = call i64 @llvm.smin.i64(i64 %j0n, i64 %w)
  br label %line
line:
  %y = phi i64 [ 0, %strip ], [ %yn, %lined ]
  %yn = add i64 %y, 1
  %above = select i1 %diagonal, i64 %yn, i64 0
  %jf = call i64 @llvm.smax.i64(i64 %j0, i64 %above)
  %yo = mul i64 %y, %ldc
  %yp = getelementptr $E, ptr %cp, i64 %yo
  %zp = getelementptr $E, ptr %xp, i64 %y
  br label %element
element:
  %j = phi i64 [ %jf, %line ], [ %jn, %moved ]
  %some = icmp slt i64 %j, %j1
  br i1 %some, label %moved, label %lined
moved:
  %value = load $E, ptr %yp[$E %j], align $ALIGN
  %jo = mul i64 %j, %ldc
  store $E %value, ptr %zp[$E %jo], align $ALIGN
  %jn = add i64 %j, 1
  br label %element
lined:
  %lines = icmp slt i64 %yn, %h
  br i1 %lines, label %line, label %stripped
stripped:
  %strips = icmp slt i64 %j0n, %w
  br i1 %strips, label %strip, label %next
made:
  br i1 %aside, label %back, label %next
back:
  %bytes = mul i64 %w, $SIZE
  br label %row
row:
  %i = phi i64 [ 0, %back ], [ %i1, %row ]
  %fo = mul i64 %i, %w
  %io = mul i64 %i, %ldc
  call void @llvm.memcpy.p0.p0.i64(ptr %cp[$E %io], ptr %own[$E %fo], i64 %bytes, i1 false)
  %i1 = add i64 %i, 1
  %rest = icmp slt i64 %i1, %h
  br i1 %rest, label %row, label %next
next:
  %t1 = add i64 %t, 1
  br label %tile
close:
  br i1 %aside, label %release, label %exit
release:
  store atomic i64 0, ptr %taken[i64 %mine] seq_cst, align 8
  br label %exit
exit:
  ret i32 0
}
"""


def gemm(char: str) -> Routine:
    """Return the routine for elements of a dtype: ``f``, ``d``, ``F`` or ``D``."""
    one, zero = scalar(char, "one"), scalar(char, "zero")
    words = {
        "STRIP": _STRIP,
        "SCALARS": f"{one[1]}\n  {zero[1]}",
        "ONE": one[0],
        "ZERO": zero[0],
        **words_of(char),
    }
    return Routine(f"products of matrices of {char}", fill_template(_TEXT, **words), 1, ARGUMENTS, ALL)
