"""Boolean mask selection (compress), as LLVM text: one phase counts each block's selected elements, one moves
them.

Eight elements are moved at a time: the selected ones are packed at the front of a register, which is stored
whole, and the output position advances by their number.  No branch depends on single elements, but
eight unselected elements are skipped at once.  The last selected elements of a block are moved one by one,
so that nothing is stored in the next block's output.
"""

from __future__ import annotations

from string import Template

from dcarray.lowering.cpu.llvm.object_code import engine

from .routine import Routine, fill_template

__all__ = ["compress"]

_TEXT = """
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.ctpop.i64(i64)
declare i8 @llvm.ctpop.i8(i8)

; arguments: mask, values, counts or ends, result; then the numbers of elements, and of those in a block
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr mask, _, ptr counts, _, i64 n, i64 length
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
  store i64 %sum, ptr %counts[i64 %b]
  %b1 = add i64 %b, 1
  br label %block
exit:
  ret i32 0
}

define i32 @phase1(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr mask, ptr x, ptr ends, ptr result, i64 n, i64 length
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
  %last = load i64, ptr %from[i64 1]
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
  %v1 = load <8 x $P>, ptr %vp[i8 64], align 8
  %c0 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %v0, <8 x i1> %on0, <8 x $P> poison)
  %c1 = call <8 x $P> @llvm.experimental.vector.compress.v8$P(<8 x $P> %v1, <8 x i1> %on1, <8 x $P> poison)
  store <8 x $P> %c0, ptr %op, align 8
  %lower = and i8 %bits, 15
  %half8 = call i8 @llvm.ctpop.i8(i8 %lower)
  %half = zext i8 %half8 to i64
  store <8 x $P> %c1, ptr %op[[16 x i8] %half], align 8"""


_PERMUTE = "declare <8 x i32> @llvm.x86.avx2.permd(<8 x i32>, <8 x i32>)\n"

# some of the eight: what a table says for them comes first in a register of eight words
_SOME = Template("""
  %down$j = lshr i8 %bits, $shift
  %on$j = and i8 %down$j, $all
  %row$j = zext i8 %on$j to i64
  %table$j = getelementptr <8 x i8>, ptr @places, i64 %row$j
  %bytes$j = load <8 x i8>, ptr %table$j, align 8
  %which$j = zext <8 x i8> %bytes$j to <8 x i32>
  %from$j = getelementptr i8, ptr %vp, i64 $at
  %v$j = load <8 x $part>, ptr %from$j, align $ALIGN
  %w$j = $widen <8 x $part> %v$j to <8 x i32>
  %c$j = call <8 x i32> @llvm.x86.avx2.permd(<8 x i32> %w$j, <8 x i32> %which$j)
  %n$j = $narrow <8 x i32> %c$j to <8 x $part>
  store <8 x $part> %n$j, ptr %to$j, align $ALIGN
  %some$j = call i8 @llvm.ctpop.i8(i8 %on$j)
  %past$j = zext i8 %some$j to i64
  %to$next = getelementptr [$SIZE x i8], ptr %to$j, i64 %past$j""")


def compress(size: int) -> Routine:
    """Return the routine for elements of 1, 2, 4, 8 or 16 bytes."""
    machine = engine.machine()
    permuted = machine.permutes_words and not machine.masks
    head, eight = _by_permutation(size) if permuted else _by_compress(size)
    kind = f"i{8 * size}" if size < 16 else "<2 x i64>"
    text = fill_template(_TEXT.replace("$EIGHT", eight), SIZE=size, ALIGN=min(size, 8), T=kind)
    return Routine(f"compress {size}{' by permutations' if permuted else ''}", head + text, 2, 6)


def _by_compress(size: int) -> tuple[str, str]:
    """Return declarations, and the instructions that move eight elements by AVX-512's compress."""
    part = "i64" if size >= 8 else "i32"
    eight = _PAIRS if size == 16 else _WHOLE if size >= 4 else _NARROW
    for word, start in (("$LOW", 0), ("$HIGH", 8)):
        eight = eight.replace(word, ", ".join(f"i32 {k // 2}" for k in range(start, start + 8)))
    return _COMPRESS.replace("$P", part), eight.replace("$P", part)


def _by_permutation(size: int) -> tuple[str, str]:
    """Return LLVM declarations, and the instructions that pack the selected elements of a vector together by
    AVX2's permutation of words.  A table in the declarations has the order of words for each mask."""
    lanes = min(32 // size, 8)
    rows = ", ".join(_row(bits, lanes) for bits in range(1 << lanes))
    head = f"@places = private constant [{1 << lanes} x <8 x i8>] [{rows}], align 64\n{_PERMUTE}"
    words = {"part": f"i{8 * min(size, 4)}", "all": (1 << lanes) - 1}
    words |= {"widen": "zext", "narrow": "trunc"} if size < 4 else {"widen": "bitcast", "narrow": "bitcast"}
    places = ({"j": j, "next": j + 1, "shift": j * lanes, "at": 32 * j} for j in range(8 // lanes))
    moves = [_SOME.safe_substitute(words, **place) for place in places]
    return head, "".join(["  %to0 = getelementptr i8, ptr %op, i64 0", *moves])


def _row(bits: int, lanes: int) -> str:
    """Return the indices of the words of the elements that a bit mask selects; the other indices are
    arbitrary."""
    each = 8 // lanes
    places = [each * k + word for k in range(lanes) if bits >> k & 1 for word in range(each)]
    return f"<8 x i8> <{', '.join(f'i8 {place}' for place in [*places, *[0] * (8 - len(places))])}>"
