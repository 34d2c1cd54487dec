"""The elements that a mask chooses, as LLVM text: one phase counts those of each block, one moves them.

An element is stored whether it is chosen or not, and the place for the next one moves on if it is: no branch
depends on single elements.  The loop over a block ends with its last chosen element, so that nothing is
stored in the part of the next one.  Eight elements of which none is chosen are passed over at once.
"""

from __future__ import annotations

from .routine import Routine, filled

__all__ = ["BLOCK", "compress"]

BLOCK = 16384

_TEXT = """
declare i64 @llvm.smin.i64(i64, i64)

; arguments: mask, values, counts or ends, result; then the number of elements
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %mask = argument ptr 0
  %counts = argument ptr 2
  %n = argument i64 4
  br label %block
block:
  %b = phi i64 [ %lo, %entry ], [ %b1, %done ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %open, label %exit
open:
  %start = mul i64 %b, $BLOCK
  %end = add i64 %start, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  br label %each
each:
  %i = phi i64 [ %start, %open ], [ %i1, %each ]
  %sum = phi i64 [ 0, %open ], [ %sum1, %each ]
  %mp = getelementptr i8, ptr %mask, i64 %i
  %m = load i8, ptr %mp
  %on = icmp ne i8 %m, 0
  %one = zext i1 %on to i64
  %sum1 = add i64 %sum, %one
  %i1 = add i64 %i, 1
  %last = icmp eq i64 %i1, %stop
  br i1 %last, label %done, label %each
done:
  %at = getelementptr i64, ptr %counts, i64 %b
  store i64 %sum1, ptr %at
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}

define i32 @phase1(ptr %args, i64 %lo, i64 %hi) {
entry:
  %mask = argument ptr 0
  %x = argument ptr 1
  %ends = argument ptr 2
  %result = argument ptr 3
  %n = argument i64 4
  br label %block
block:
  %b = phi i64 [ %lo, %entry ], [ %b1, %done ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %open, label %exit
open:
  %start = mul i64 %b, $BLOCK
  %end = add i64 %start, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  %from = getelementptr i64, ptr %ends, i64 %b
  %first = load i64, ptr %from
  %to = getelementptr i64, ptr %from, i64 1
  %last = load i64, ptr %to
  br label %step
step:
  %i = phi i64 [ %start, %open ], [ %i8, %some ], [ %i8, %eight ], [ %i1, %single ]
  %k = phi i64 [ %first, %open ], [ %k, %some ], [ %k8, %eight ], [ %k1, %single ]
  %left = icmp slt i64 %k, %last
  br i1 %left, label %look, label %done
look:
  %mp = getelementptr i8, ptr %mask, i64 %i
  %i8 = add i64 %i, 8
  %k8most = add i64 %k, 8
  %whole = icmp sle i64 %i8, %stop
  %room = icmp sle i64 %k8most, %last
  br i1 %whole, label %some, label %single
some:
  %eightp = load i64, ptr %mp, align 1
  %none = icmp eq i64 %eightp, 0
  br i1 %none, label %step, label %which
which:
  br i1 %room, label %eight, label %single
eight:
$EIGHT
  br label %step
single:
  %m = load i8, ptr %mp
  %on = icmp ne i8 %m, 0
  %vp = getelementptr $T, ptr %x, i64 %i
  %v = load $T, ptr %vp, align $SIZE
  %op = getelementptr $T, ptr %result, i64 %k
  store $T %v, ptr %op, align $SIZE
  %one = zext i1 %on to i64
  %k1 = add i64 %k, %one
  %i1 = add i64 %i, 1
  br label %step
done:
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}
"""

_ONE = """  %mp$N = getelementptr i8, ptr %mp, i64 $N
  %m$N = load i8, ptr %mp$N
  %on$N = icmp ne i8 %m$N, 0
  %i.$N = add i64 %i, $N
  %vp$N = getelementptr $T, ptr %x, i64 %i.$N
  %v$N = load $T, ptr %vp$N, align $SIZE
  %op$N = getelementptr $T, ptr %result, i64 $FROM
  store $T %v$N, ptr %op$N, align $SIZE
  %one$N = zext i1 %on$N to i64
  $NEXT = add i64 $FROM, %one$N"""


def compress(size: int) -> Routine:
    """The routine for elements of 1, 2, 4, 8 or 16 bytes."""
    eight = []
    for number in range(8):
        start = "%k" if number == 0 else f"%k.{number}"
        eight.append(filled(_ONE, NEXT="%k8" if number == 7 else f"%k.{number + 1}", N=number, FROM=start))
    kind = f"i{8 * size}" if size < 16 else "<2 x i64>"
    text = filled(_TEXT, EIGHT="\n".join(eight), BLOCK=BLOCK, T=kind, SIZE=min(size, 8))
    return Routine(f"compress {size}", text, 2, 5)
