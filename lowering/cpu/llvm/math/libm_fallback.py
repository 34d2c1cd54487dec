"""Vector loops over contiguous rows of doubles, with the C library as fallback for undecided elements.

The library's error is little more than half a unit in the last place.  A vector function gives a sum of two
numbers with an error of a few thousandths of a unit; the few elements for which that does not decide how the
library rounds are left to the library, as are those whose results may not be normal numbers.  A branch on
them would cost more than the library does, since it is unpredictable.  So they are recorded, and the library
is called when the rest of a chunk is done.
"""

from __future__ import annotations

from string import Template

from dcarray.lowering.cpu.llvm.text.builder import Builder

__all__ = ["declare", "lanes"]

_PIECE = 512

_ROWS = Template("""define internal void @$name(ptr %args, ptr %counts, ptr %steps, ptr %data) {
entry:
  %olds = alloca [$piece x double], align 64
  %notes = alloca [$room x i8], align 64
  %xs = load ptr, ptr %args
  %last = getelementptr ptr, ptr %args, i64 $second
  %zs = load ptr, ptr %last
$begin
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
  %k = phi i64 [ 0, %begin ], [ %k1, %several ]
  %more = icmp sle i64 %i, %most
  br i1 %more, label %several, label %rest
several:
  %xp = getelementptr double, ptr %xh, i64 %i
  %x = load $v, ptr %xp, align 8
  %made = call {$v, <$n x i1>} @$several($v %x$more) alwaysinline
  %z = extractvalue {$v, <$n x i1>} %made, 0
  %hard = extractvalue {$v, <$n x i1>} %made, 1
  %zp = getelementptr double, ptr %zh, i64 %i
  store $v %z, ptr %zp, align 8
  %set = bitcast <$n x i1> %hard to i$n
  %note = $widen i$n %set to i8
  %np = getelementptr i8, ptr %notes, i64 %k
  store i8 %note, ptr %np
  %i1 = add i64 %i, $n
  %k1 = add i64 %k, 1
  br label %next
rest:
  %least = sub i64 %here, %i
  %some = icmp sgt i64 %least, 0
  br i1 %some, label %fewer, label %noted
fewer:
  %xf = getelementptr double, ptr %xh, i64 %i
  %zf = getelementptr double, ptr %zh, i64 %i
  %one.least = insertelement <$n x i64> poison, i64 %least, i32 0
  %all.least = shufflevector <$n x i64> %one.least, <$n x i64> poison, <$n x i32> zeroinitializer
  %these = icmp slt <$n x i64> <$numbers>, %all.least
  %fx = call $v @llvm.masked.load.$s.p0(ptr %xf, i32 8, <$n x i1> %these, $v splat (double 1.0))
  %fmade = call {$v, <$n x i1>} @$several($v %fx$more) noinline
  %fz = extractvalue {$v, <$n x i1>} %fmade, 0
  %fall = extractvalue {$v, <$n x i1>} %fmade, 1
  call void @llvm.masked.store.$s.p0($v %fz, ptr %zf, i32 8, <$n x i1> %these)
  %fhard = and <$n x i1> %fall, %these
  %fset = bitcast <$n x i1> %fhard to i$n
  %fbyte = $widen i$n %fset to i8
  %fp = getelementptr i8, ptr %notes, i64 %k
  store i8 %fbyte, ptr %fp
  %kf = add i64 %k, 1
  br label %noted
noted:
  %vectors = phi i64 [ %k, %rest ], [ %kf, %fewer ]
  %end.note = getelementptr i8, ptr %notes, i64 %vectors
  store i64 0, ptr %end.note, align 1
  br label %words
words:
  %w = phi i64 [ 0, %noted ], [ %w1, %worded ]
  %again = icmp slt i64 %w, %vectors
  br i1 %again, label %word, label %done
word:
  %wp = getelementptr i8, ptr %notes, i64 %w
  %all = load i64, ptr %wp, align 8
  br label %bits
bits:
  %those.left = phi i64 [ %all, %word ], [ %those.less, %one ]
  %any = icmp ne i64 %those.left, 0
  br i1 %any, label %one, label %worded
one:
  %bit = call i64 @llvm.cttz.i64(i64 %those.left, i1 true)
  %byte = lshr i64 %bit, 3
  %lane = and i64 %bit, 7
  %vector = add i64 %w, %byte
  %base = mul i64 %vector, $n
  %j = add i64 %base, %lane
  %xj = getelementptr double, ptr %old, i64 %j
  %x0 = load double, ptr %xj
  %z0 = call double @$library(double %x0$also)
  %zj = getelementptr double, ptr %zh, i64 %j
  store double %z0, ptr %zj
  %those.one = sub i64 %those.left, 1
  %those.less = and i64 %those.left, %those.one
  br label %bits
worded:
  %w1 = add i64 %w, 8
  br label %words
done:
  %at1 = add i64 %at, $piece
  %over = icmp slt i64 %at1, %count
  br i1 %over, label %piece, label %end
end:
  ret void
}""")


def lanes(b: Builder) -> int:
    """Return the number of doubles in a vector register."""
    return b.machine.vector_bits // 64


def declare(b: Builder, name: str, several: str, library: str, exponent: str | None = None) -> str:
    """Define the loop ``name`` over rows of doubles, and return its address.

    ``several`` is the vector function, which returns the values and a mask of the undecided lanes; for these
    the C library's function ``library`` is called. ``exponent`` is the second argument of both functions, the
    same for all elements: a number, or empty if it is the loop's second argument; None if there is none.
    """
    n = lanes(b)
    v, m, s = f"<{n} x double>", f"<{n} x i1>", f"v{n}f64"
    begin, more = "", ""
    if exponent is not None:
        more = f", double {exponent or '%y'}"
        begin = "" if exponent else _SECOND
    b.declare(
        name,
        _ROWS.substitute(
            name=name,
            several=several,
            library=library,
            second=1 if exponent is None else 2,
            begin=begin,
            more=more,
            also=more,
            v=v,
            s=s,
            n=n,
            widen="bitcast" if n == 8 else "zext",  # LLVM knows no extension to the same width
            numbers=", ".join(f"i64 {k}" for k in range(n)),
            piece=_PIECE,
            room=_PIECE // n + 8,
            bytes=8 * _PIECE,
            both=16 * _PIECE,
        ),
    )
    memcpy = "llvm.memcpy.p0.p0.i64"
    b.declare(memcpy, f"declare void @{memcpy}(ptr, ptr, i64, i1)")
    b.declare("llvm.masked.load", f"declare {v} @llvm.masked.load.{s}.p0(ptr, i32, {m}, {v})")
    b.declare("llvm.masked.store", f"declare void @llvm.masked.store.{s}.p0({v}, ptr, i32, {m})")
    b.declare("llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)")
    b.declare(
        library, f"declare double @{library}({'double' if exponent is None else 'double, double'}) #pure"
    )
    return f"ptrtoint (ptr @{name} to i64)"


_SECOND = """  %second = getelementptr ptr, ptr %args, i64 1
  %ys = load ptr, ptr %second
  %y = load double, ptr %ys"""
