"""Products of a large matrix with a skinny one (few rows or columns), as LLVM text.

Such a product should take as long as reading the large matrix.  BLAS libraries pack both factors
first, which for few rows costs more than the product (the "tall and skinny" matrices of
the literature: Chen et al., *TSM2*, ICS 2019).  Here each element of the large matrix is read from memory
once, in place, and multiplied with all rows of the skinny one, with accumulators in registers:

* *down* the large matrix if its columns are summed: a few rows at a time, tile of columns by tile of columns,
  with the sums of a tile stored in memory in between;
* *along* its rows if these are summed: a few rows at a time, chunk by chunk.

The sum of each chunk starts from zero and is added to the total, so that rounding errors grow as in BLAS.
The order of additions does not depend on the number of threads.
"""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.kernel.flags import ALL

from .routine import Routine, fill_template
from .skinny_tiles import ABREAST, Vectors, tiles

__all__ = ["ARGUMENTS", "skinny"]

ARGUMENTS = 14
_ALONG, _DEPTH = 2048, 512
"""Bytes of a row that are summed together, so that those of all rows of the skinny matrix stay in the first
cache; and elements of a column."""
_DOWN = 16
"""Rows that are read between a load and a store of the sums along columns: no more than streams that
processors ask ahead for."""

_TEXT = """
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

; arguments: the large matrix, the packed skinny one, the product, which is zero, and memory for sums; whether
; the sums are along rows of the large matrix; its extent along the sums, and across; how far its rows are
; apart; the skinny one's rows, those that it has been filled up to, and how far its rows are apart; how far
; elements of the product are apart along the skinny one's rows, and along the others; and how many of the
; others are an item
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr w, ptr x, ptr out, ptr part, i64 along, i64 k, i64 n, i64 ldw, i64 rows, i64 padded,
    i64 ldx, i64 down, i64 across, i64 width
  %rowwise = icmp ne i64 %along, 0
  %deep = select i1 %rowwise, i64 $CHUNK, i64 $DEPTH
  br label %item
item:
  %t = phi i64 [ %lo, %entry ], [ %t1, %done ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %open, label %exit
open:
  %t1 = add i64 %t, 1
  %c0 = mul i64 %t, %width
  %cn = add i64 %c0, %width
  %c1 = call i64 @llvm.smin.i64(i64 %cn, i64 %n)
  br label %chunk
chunk:
  %k0 = phi i64 [ 0, %open ], [ %kn, %summed ]
  %kn = add i64 %k0, %deep
  %k1 = call i64 @llvm.smin.i64(i64 %kn, i64 %k)
  br i1 %rowwise, label %lines, label %columns
lines:
  call void @lines(ptr %w, i64 %ldw, i64 %c0, i64 %c1, i64 %k0, i64 %k1, ptr %x, i64 %ldx, i64 %rows, i64 %padded,
                   ptr %out, i64 %down, i64 %across)
  br label %summed
columns:
  call void @columns(ptr %w, i64 %ldw, i64 %c0, i64 %c1, i64 %k0, i64 %k1, ptr %x, i64 %rows, i64 %padded,
                     ptr %part, ptr %out, i64 %down, i64 %across)
  br label %summed
summed:
  %again = icmp slt i64 %kn, %k
  br i1 %again, label %chunk, label %done
done:
  br label %item
exit:
  ret i32 0
}

; One chunk of the sums along columns %c0 to %c1, which are added to the product.  The last tile ends where
; the columns do, and reads others besides: those are not its own
define internal void @columns(ptr %w, i64 %ldw, i64 %c0, i64 %c1, i64 %k0, i64 %k1, ptr %x, i64 %rows, i64 %padded,
                              ptr %part, ptr %out, i64 %down, i64 %across) #9 {
entry:
  %size = mul i64 %padded, $TILE
  %end = sub i64 %c1, $TILE
  br label %strip
strip:
  %k = phi i64 [ %k0, %entry ], [ %kn, %striped ]
  %kn = add i64 %k, $DOWN
  %ke = call i64 @llvm.smin.i64(i64 %kn, i64 %k1)
  %count = sub i64 %ke, %k
  %fresh = icmp eq i64 %k, %k0
  %line = mul i64 %k, %ldw
  %wl = getelementptr $R, ptr %w, i64 %line
  %xo = mul i64 %k, %padded
  %xk = getelementptr $R, ptr %x, i64 %xo
  br label %tile
tile:
  %c = phi i64 [ %c0, %strip ], [ %cn, %tiled ]
  %j = call i64 @llvm.smin.i64(i64 %c, i64 %end)
  %wp = getelementptr $R, ptr %wl, i64 %j
  %po = mul i64 %c, %padded
  %pp = getelementptr $R, ptr %part, i64 %po
  br label %group
group:
  %r = phi i64 [ 0, %tile ], [ %r1, %eight ], [ %r2, %four ]
  %left = sub i64 %padded, %r
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %which, label %tiled
which:
  %xr = getelementptr $R, ptr %xk, i64 %r
  %ro = mul i64 %r, $TILE
  %pr = getelementptr $R, ptr %pp, i64 %ro
  %r1 = add i64 %r, $MOST
  %r2 = add i64 %r, 4
  %wide = icmp sge i64 %left, $MOST
  br i1 %wide, label %eight, label %four
eight:
  call void @down$MOST(ptr %wp, i64 %ldw, i64 %count, ptr %xr, i64 %padded, ptr %pr, i1 %fresh)
  br label %group
four:
  call void @down4(ptr %wp, i64 %ldw, i64 %count, ptr %xr, i64 %padded, ptr %pr, i1 %fresh)
  br label %group
tiled:
  %cn = add i64 %c, $TILE
  %tiles = icmp slt i64 %cn, %c1
  br i1 %tiles, label %tile, label %striped
striped:
  %strips = icmp slt i64 %kn, %k1
  br i1 %strips, label %strip, label %own
own:
  %q = phi i64 [ %c0, %striped ], [ %qn, %own ]
  %qn = add i64 %q, $TILE
  %qe = call i64 @llvm.smin.i64(i64 %qn, i64 %c1)
  %qj = call i64 @llvm.smin.i64(i64 %q, i64 %end)
  %so = mul i64 %q, %padded
  %sp = getelementptr $R, ptr %part, i64 %so
  %others = sub i64 %q, %qj
  %oo = mul i64 %q, %across
  %to = getelementptr $R, ptr %out, i64 %oo
  %owned = sub i64 %qe, %q
  call void @added(ptr %sp[$R %others], i64 $TILE, ptr %to, i64 %rows, i64 %owned, i64 %down, i64 %across)
  %owns = icmp slt i64 %qn, %c1
  br i1 %owns, label %own, label %exit
exit:
  ret void
}

; Add sums, of which so many rows are %pitch apart, to elements that are so far apart
define internal void @added(ptr %sums, i64 %pitch, ptr %to, i64 %m, i64 %n, i64 %down, i64 %across) {
entry:
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i1, %rowed ]
  %i1 = add i64 %i, 1
  %so = mul i64 %i, %pitch
  %sp = getelementptr $R, ptr %sums, i64 %so
  %io = mul i64 %i, %down
  %tp = getelementptr $R, ptr %to, i64 %io
  br label %element
element:
  %e = phi i64 [ 0, %row ], [ %e1, %element ]
  %e1 = add i64 %e, 1
  %sum = load $R, ptr %sp[$R %e], align $SIZE
  %eo = mul i64 %e, %across
  %at = getelementptr $R, ptr %tp, i64 %eo
  %was = load $R, ptr %at, align $SIZE
  %is = fadd $R %was, %sum
  store $R %is, ptr %at, align $SIZE
  %elements = icmp slt i64 %e1, %n
  br i1 %elements, label %element, label %rowed
rowed:
  %rows = icmp slt i64 %i1, %m
  br i1 %rows, label %row, label %exit
exit:
  ret void
}

; One chunk of the sums along rows %c0 to %c1
define internal void @lines(ptr %w, i64 %ldw, i64 %c0, i64 %c1, i64 %k0, i64 %k1, ptr %x, i64 %ldx, i64 %rows,
                            i64 %padded, ptr %out, i64 %down, i64 %across) #9 {
entry:
  %sums = alloca [$SUMS x $R], align 64
  %count = sub i64 %k1, %k0
  %wk = getelementptr $R, ptr %w, i64 %k0
  %xk = getelementptr $R, ptr %x, i64 %k0
  br label %line
line:
  %c = phi i64 [ %c0, %entry ], [ %cn, %lined ]
  %rest = sub i64 %c1, %c
  %several = icmp sge i64 %rest, $ABREAST
  %lines = select i1 %several, i64 $ABREAST, i64 1
  %cn = add i64 %c, %lines
  %wo = mul i64 %c, %ldw
  %wp = getelementptr $R, ptr %wk, i64 %wo
  %co = mul i64 %c, %across
  %oc = getelementptr $R, ptr %out, i64 %co
  br label %group
group:
  %r = phi i64 [ 0, %line ], [ %rn, %store ]
  %left = sub i64 %padded, %r
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %which, label %lined
which:
  %wide = icmp sge i64 %left, $MOST
  %height = select i1 %wide, i64 $MOST, i64 4
  %rn = add i64 %r, %height
  %xo = mul i64 %r, %ldx
  %xp = getelementptr $R, ptr %xk, i64 %xo
  br i1 %several, label %abreast, label %single
abreast:
  br i1 %wide, label %eights, label %fours
eights:
  call void @along$MOSTx$ABREAST(ptr %wp, i64 %ldw, i64 %count, ptr %xp, i64 %ldx, ptr %sums)
  br label %store
fours:
  call void @along4x$ABREAST(ptr %wp, i64 %ldw, i64 %count, ptr %xp, i64 %ldx, ptr %sums)
  br label %store
single:
  br i1 %wide, label %eight, label %four
eight:
  call void @along$MOSTx1(ptr %wp, i64 %ldw, i64 %count, ptr %xp, i64 %ldx, ptr %sums)
  br label %store
four:
  call void @along4x1(ptr %wp, i64 %ldw, i64 %count, ptr %xp, i64 %ldx, ptr %sums)
  br label %store
store:
  %re = call i64 @llvm.smin.i64(i64 %rn, i64 %rows)
  %own = sub i64 %re, %r
  %ro = mul i64 %r, %down
  call void @added(ptr %sums, i64 $MOST, ptr %oc[$R %ro], i64 %lines, i64 %own, i64 %across, i64 %down)
  br label %group
lined:
  %again = icmp slt i64 %cn, %c1
  br i1 %again, label %line, label %exit
exit:
  ret void
}
attributes #9 = { noinline alignstack=64 "prefer-vector-width"="$BITS" "min-legal-vector-width"="$BITS" }
"""  # noqa: E501


def skinny(char: str) -> Routine:
    """Return the routine for elements of a dtype: ``f`` or ``d``."""
    bits = engine.machine().vector_bits
    v = Vectors(bits // 64, "double", 8) if char == "d" else Vectors(bits // 32, "float", 4)
    most = 8 if bits == 512 else 4  # rows whose sums fit into the registers, 32 of them or 16
    words: dict[str, object] = {
        "R": v.real, "SIZE": v.size, "BITS": bits, "LANES": v.lanes, "MOST": most,
        "TILE": ABREAST * v.lanes, "CHUNK": _ALONG // v.size, "DEPTH": _DEPTH, "DOWN": _DOWN,
        "ABREAST": ABREAST, "SUMS": most * ABREAST, "COUNTED": ", ".join(f"i64 {i}" for i in range(v.lanes)),
    }  # fmt: skip
    text = fill_template("\n".join([*tiles(v, most), _TEXT]), **words)
    return Routine(f"products with skinny matrices of {char}", text, 1, ARGUMENTS, ALL)
