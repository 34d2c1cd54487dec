"""The elements that a mask chooses, as LLVM text: one phase counts those of each block, one moves them.

Eight elements are moved at a time: those of them that are chosen come first in a register, which is stored
whole, and the place for the next ones moves on by their number.  No branch depends on single elements, but
eight of which none is chosen are passed over at once.  The last chosen ones of a block are moved one by one,
so that nothing is stored in the part of the next block.
"""

from __future__ import annotations

from . import engine
from .routine import Routine, filled

__all__ = ["compress"]

_TEXT = """
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.ctpop.i64(i64)
declare i8 @llvm.ctpop.i8(i8)

; arguments: mask, values, counts or ends, result; then the numbers of elements, and of those in a block
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %mask = argument ptr 0
  %counts = argument ptr 2
  %n = argument i64 4
  %length = argument i64 5
  br label %block
block:
  %b = phi i64 [ %lo, %entry ], [ %b1, %done ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %open, label %exit
open:
  %start = mul i64 %b, %length
  %end = add i64 %start, %length
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  br label %next
next:
  %i = phi i64 [ %start, %open ], [ %i64, %many ], [ %i1, %one ]
  %sum = phi i64 [ 0, %open ], [ %sum64, %many ], [ %sum1, %one ]
  %i64 = add i64 %i, 64
  %whole = icmp sle i64 %i64, %stop
  %mp = getelementptr i8, ptr %mask, i64 %i
  br i1 %whole, label %many, label %rest
many:
  %ms = load <64 x i8>, ptr %mp, align 1
  %ons = icmp ne <64 x i8> %ms, zeroinitializer
  %bits = bitcast <64 x i1> %ons to i64
  %count = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum64 = add i64 %sum, %count
  br label %next
rest:
  %left = icmp slt i64 %i, %stop
  br i1 %left, label %one, label %done
one:
  %m = load i8, ptr %mp
  %on = icmp ne i8 %m, 0
  %unit = zext i1 %on to i64
  %sum1 = add i64 %sum, %unit
  %i1 = add i64 %i, 1
  br label %next
done:
  %at = getelementptr i64, ptr %counts, i64 %b
  store i64 %sum, ptr %at
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
  %length = argument i64 5
  br label %block
block:
  %b = phi i64 [ %lo, %entry ], [ %b1, %done ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %open, label %exit
open:
  %start = mul i64 %b, %length
  %end = add i64 %start, %length
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
  %vp = getelementptr [$SIZE x i8], ptr %x, i64 %i
  %op = getelementptr [$SIZE x i8], ptr %result, i64 %k
  br i1 %whole, label %some, label %single
some:
  %eightp = load i64, ptr %mp, align 1
  %none = icmp eq i64 %eightp, 0
  br i1 %none, label %step, label %which
which:
  br i1 %room, label %eight, label %single
eight:
  %ms = bitcast i64 %eightp to <8 x i8>
  %ons = icmp ne <8 x i8> %ms, zeroinitializer
  %bits = bitcast <8 x i1> %ons to i8
  %count8 = call i8 @llvm.ctpop.i8(i8 %bits)
  %count = zext i8 %count8 to i64
$EIGHT
  %k8 = add i64 %k, %count
  br label %step
single:
  %m = load i8, ptr %mp
  %on = icmp ne i8 %m, 0
  %v = load $T, ptr %vp, align $ALIGN
  store $T %v, ptr %op, align $ALIGN
  %unit = zext i1 %on to i64
  %k1 = add i64 %k, %unit
  %i1 = add i64 %i, 1
  br label %step
done:
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}
"""

_COMPRESS = "declare <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P>, <8 x i1>, <8 x $P>)\n"

_WHOLE = """  %v8 = load <8 x $P>, ptr %vp, align $ALIGN
  %c8 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %v8, <8 x i1> %ons, <8 x $P> poison)
  store <8 x $P> %c8, ptr %op, align $ALIGN"""

_NARROW = """  %v8 = load <8 x $T>, ptr %vp, align $ALIGN
  %w8 = zext <8 x $T> %v8 to <8 x $P>
  %c8 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %w8, <8 x i1> %ons, <8 x $P> poison)
  %n8 = trunc <8 x $P> %c8 to <8 x $T>
  store <8 x $T> %n8, ptr %op, align $ALIGN"""

# of elements of two words each, two halves of four
_PAIRS = """  %on0 = shufflevector <8 x i1> %ons, <8 x i1> poison, <8 x i32> <$LOW>
  %on1 = shufflevector <8 x i1> %ons, <8 x i1> poison, <8 x i32> <$HIGH>
  %v0 = load <8 x $P>, ptr %vp, align 8
  %vp1 = getelementptr i8, ptr %vp, i64 64
  %v1 = load <8 x $P>, ptr %vp1, align 8
  %c0 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %v0, <8 x i1> %on0, <8 x $P> poison)
  %c1 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %v1, <8 x i1> %on1, <8 x $P> poison)
  store <8 x $P> %c0, ptr %op, align 8
  %lower = and i8 %bits, 15
  %half8 = call i8 @llvm.ctpop.i8(i8 %lower)
  %half = zext i8 %half8 to i64
  %op1 = getelementptr [16 x i8], ptr %op, i64 %half
  store <8 x $P> %c1, ptr %op1, align 8"""


_PERMUTE = "declare <8 x i32> @llvm.x86.avx2.permd(<8 x i32>, <8 x i32>)\n"


def compress(size: int) -> Routine:
    """The routine for elements of 1, 2, 4, 8 or 16 bytes."""
    machine = engine.machine()
    head, eight = _permuted(size) if machine.permutes and not machine.masks else _compressed(size)
    kind = f"i{8 * size}" if size < 16 else "<2 x i64>"
    text = filled(_TEXT.replace("$EIGHT", eight), SIZE=size, ALIGN=min(size, 8), T=kind)
    return Routine(f"compress {size}", head + text, 2, 6)


def _compressed(size: int) -> tuple[str, str]:
    """The declarations and the move of eight elements by an instruction for it, of AVX-512."""
    part = "i64" if size >= 8 else "i32"
    eight = _PAIRS if size == 16 else _WHOLE if size >= 4 else _NARROW
    for word, start in (("$LOW", 0), ("$HIGH", 8)):
        eight = eight.replace(word, ", ".join(f"i32 {k // 2}" for k in range(start, start + 8)))
    return _COMPRESS.replace("$P", part), eight.replace("$P", part)


def _permuted(size: int) -> tuple[str, str]:
    """The same by permutations of AVX2, of eight words of 32 bits each, which are looked up."""
    lanes = min(32 // size, 8)
    words = 8 // lanes  # of one element
    rows = []
    for bits in range(1 << lanes):
        chosen = [k for k in range(lanes) if bits >> k & 1]
        places = [words * k + w for k in chosen for w in range(words)]
        rows.append("<8 x i8> <" + ", ".join(f"i8 {k}" for k in [*places, *[0] * (8 - len(places))]) + ">")
    head = f"@places = private constant [{1 << lanes} x <8 x i8>] [{', '.join(rows)}], align 64\n{_PERMUTE}"
    kind, lines, to = f"<8 x i{8 * min(size, 4)}>", [], "%op"
    for j in range(8 // lanes):
        on = f"%on{j}"
        lines += [
            f"%down{j} = lshr i8 %bits, {j * lanes}",
            f"{on} = and i8 %down{j}, {(1 << lanes) - 1}",
            f"%row{j} = zext i8 {on} to i64",
            f"%places{j} = getelementptr <8 x i8>, ptr @places, i64 %row{j}",
            f"%narrow{j} = load <8 x i8>, ptr %places{j}, align 8",
            f"%which{j} = zext <8 x i8> %narrow{j} to <8 x i32>",
            f"%vp{j} = getelementptr i8, ptr %vp, i64 {j * 32}",
            f"%v{j} = load {kind}, ptr %vp{j}, align $ALIGN",
        ]
        v = f"%v{j}"
        if size < 4:
            lines.append(f"%wide{j} = zext {kind} {v} to <8 x i32>")
            v = f"%wide{j}"
        lines.append(
            f"%c{j} = call <8 x i32> @llvm.x86.avx2.permd(<8 x i32> {v}, <8 x i32> %which{j})",
        )
        c = f"%c{j}"
        if size < 4:
            lines.append(f"%thin{j} = trunc <8 x i32> {c} to {kind}")
            c = f"%thin{j}"
        lines.append(f"store {kind} {c}, ptr {to}, align $ALIGN")
        if j + 1 < 8 // lanes:
            lines += [
                f"%many{j} = call i8 @llvm.ctpop.i8(i8 {on})",
                f"%on64.{j} = zext i8 %many{j} to i64",
                f"%op{j} = getelementptr [$SIZE x i8], ptr {to}, i64 %on64.{j}",
            ]
            to = f"%op{j}"
    return head, "\n".join(f"  {line}" for line in lines)
