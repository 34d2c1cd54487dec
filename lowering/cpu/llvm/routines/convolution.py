"""One-dimensional convolution and correlation, as LLVM text.

``_REGISTERS`` bytes of results are accumulated together, term by term in order, so that consecutive loads are
adjacent.  More than ``_TERMS`` terms are several such sums, which are then added.  So sums of
few terms have NumPy's bits, and those of many have smaller errors than a single running sum.
"""

from __future__ import annotations

from .routine import Routine, fill_template

__all__ = ["BLOCK", "products"]

BLOCK = 4096  # results of one parallel chunk
_PIECE = 1024  # results that stay in the first cache while all terms are added to them
_TERMS = 16
_REGISTERS = 256  # bytes of results that are accumulated in registers

_SUM = """
define internal void @$NAME(ptr %x, ptr %w, ptr noalias %y, i64 %terms, i1 %first) alwaysinline {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %sum = phi $V [ zeroinitializer, %entry ], [ %sum1, %next ]
  %a = load $V, ptr %x[$T %k], align $ALIGN
  %b = load $T, ptr %w[$T %k]
  %b1 = insertelement $V poison, $T %b, i64 0
  %bs = shufflevector $V %b1, $V poison, $I zeroinitializer
  %product = fmul $V %a, %bs
  %sum1 = fadd $V %sum, %product
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %terms
  br i1 %more, label %next, label %done
done:
  br i1 %first, label %leave, label %add
add:
  %before = load $V, ptr %y, align $ALIGN
  %both = fadd $V %before, %sum1
  br label %leave
leave:
  %all = phi $V [ %sum1, %done ], [ %both, %add ]
  store $V %all, ptr %y, align $ALIGN
  ret void
}
"""

_PRODUCTS = """
declare i64 @llvm.smin.i64(i64, i64)

; arguments: the line, the shorter one, the result; then the numbers of results and of terms of each
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr x, ptr w, ptr y, i64 n, i64 terms
  %start = mul i64 %lo, $BLOCK
  %end = mul i64 %hi, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  br label %piece
piece:
  %p = phi i64 [ %start, %entry ], [ %p1, %over ]
  %left = icmp slt i64 %p, %stop
  br i1 %left, label %bounds, label %exit
bounds:
  %p1 = add i64 %p, $PIECE
  %to = call i64 @llvm.smin.i64(i64 %p1, i64 %stop)
  br label %some
some:
  %c = phi i64 [ 0, %bounds ], [ %c1, %after ]
  %c1 = add i64 %c, $TERMS
  %cend = call i64 @llvm.smin.i64(i64 %c1, i64 %terms)
  %count = sub i64 %cend, %c
  %first = icmp eq i64 %c, 0
  %wc = getelementptr $T, ptr %w, i64 %c
  %xc = getelementptr $T, ptr %x, i64 %c
  br label %together
together:
  %i = phi i64 [ %p, %some ], [ %i1, %whole ]
  %i1 = add i64 %i, $LANES
  %fits = icmp sle i64 %i1, %to
  br i1 %fits, label %whole, label %rest
whole:
  call void @several(ptr %xc[$T %i], ptr %wc, ptr %y[$T %i], i64 %count, i1 %first)
  br label %together
rest:
  %j = phi i64 [ %i, %together ], [ %j1, %single ]
  %any = icmp slt i64 %j, %to
  br i1 %any, label %single, label %after
single:
  call void @one(ptr %xc[$T %j], ptr %wc, ptr %y[$T %j], i64 %count, i1 %first)
  %j1 = add i64 %j, 1
  br label %rest
after:
  %again = icmp slt i64 %c1, %terms
  br i1 %again, label %some, label %over
over:
  br label %piece
exit:
  ret i32 0
}
"""

_TYPES = {"d": ("double", 8), "f": ("float", 4)}


def _sum(name: str, kind: str, lanes: int, align: int) -> str:
    words = {"NAME": name, "V": f"<{lanes} x {kind}>", "I": f"<{lanes} x i32>", "T": kind, "ALIGN": align}
    return fill_template(_SUM, **words)


def products(char: str) -> Routine:
    """Return the routine for lines of a dtype, ``d`` or ``f``."""
    kind, size = _TYPES[char]
    lanes = _REGISTERS // size
    words = {"BLOCK": BLOCK, "PIECE": _PIECE, "TERMS": _TERMS, "LANES": lanes, "T": kind}
    text = _sum("several", kind, lanes, size) + _sum("one", kind, 1, size) + fill_template(_PRODUCTS, **words)
    return Routine(f"sliding products {char}", text, 1, 5)
