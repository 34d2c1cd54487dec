"""The interpreter of tables of dense linear algebra steps (LU solves) on the thread pool, as LLVM text.

A phase runs items in parallel, and an item its steps in order: copies and exchanges of rows, and
calls of LAPACK and BLAS.  The steps and the addresses of their matrices are in a table
(`dcarray.lowering.runtime.elimination`), which depends on the sizes.
"""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.runtime.elimination import FIELDS, PHASES, Step

from .routine import Routine, fill_template, scalar, words_of
from .triangles import triangle

__all__ = ["solver"]

_ARGUMENTS = 7

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

define internal void @copy(ptr %a, ptr %b, i64 %rows, i64 %columns, i64 %ad, i64 %aa, i64 %bd, i64 %ba) {
entry:
  %bytes = mul i64 %columns, $SIZE
  %apart = or i64 %aa, %ba
  %lines = icmp eq i64 %apart, 1
  br i1 %lines, label %row, label %band
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %line ]
  %rowed = icmp slt i64 %r, %rows
  br i1 %rowed, label %line, label %exit
line:
  %ar = mul i64 %r, %ad
  %br = mul i64 %r, %bd
  call void @llvm.memcpy.p0.p0.i64(ptr %a[$E %ar], ptr %b[$E %br], i64 %bytes, i1 false)
  %r1 = add i64 %r, 1
  br label %row
band:
  %i0 = phi i64 [ 0, %entry ], [ %i8, %banded ]
  %bands = icmp slt i64 %i0, %rows
  br i1 %bands, label %column, label %exit
column:
  %j = phi i64 [ 0, %band ], [ %j1, %columned ]
  %i8 = add i64 %i0, 8
  %it = call i64 @llvm.smin.i64(i64 %i8, i64 %rows)
  %more = icmp slt i64 %j, %columns
  br i1 %more, label %element, label %banded
element:
  %i = phi i64 [ %i0, %column ], [ %i1, %element ]
  %bi = mul i64 %i, %bd
  %bj = mul i64 %j, %ba
  %bo = add i64 %bi, %bj
  %v = load $E, ptr %b[$E %bo], align $ALIGN
  %ai = mul i64 %i, %ad
  %aj = mul i64 %j, %aa
  %ao = add i64 %ai, %aj
  store $E %v, ptr %a[$E %ao], align $ALIGN
  %i1 = add i64 %i, 1
  %elements = icmp slt i64 %i1, %it
  br i1 %elements, label %element, label %columned
columned:
  %j1 = add i64 %j, 1
  br label %column
banded:
  br label %band
exit:
  ret void
}

; the outer loop is over rows where these lie in memory, and over columns else
define internal void @exchange(ptr %a, ptr %b, i64 %rows, i64 %columns, i64 %down, i64 %along) {
entry:
  %lines = icmp eq i64 %along, 1
  %times = select i1 %lines, i64 1, i64 %columns
  %width = select i1 %lines, i64 %columns, i64 1
  br label %time
time:
  %t = phi i64 [ 0, %entry ], [ %t1, %row ]
  %again = icmp slt i64 %t, %times
  br i1 %again, label %start, label %exit
start:
  %to = mul i64 %t, %along
  %from = getelementptr $E, ptr %a, i64 %to
  %t1 = add i64 %t, 1
  br label %row
row:
  %r = phi i64 [ 0, %start ], [ %r1, %which ], [ %r1, %element ]
  %rest = icmp slt i64 %r, %rows
  br i1 %rest, label %which, label %time
which:
  %s1 = load i64, ptr %b[i64 %r]
  %s = sub i64 %s1, 1
  %r1 = add i64 %r, 1
  %same = icmp eq i64 %s, %r
  %ra = mul i64 %r, %down
  %above = getelementptr $E, ptr %from, i64 %ra
  %rb = mul i64 %s, %down
  %below = getelementptr $E, ptr %from, i64 %rb
  br i1 %same, label %row, label %element
element:
  %q = phi i64 [ 0, %which ], [ %q1, %element ]
  %ap = getelementptr $E, ptr %above, i64 %q
  %bp = getelementptr $E, ptr %below, i64 %q
  %av = load $E, ptr %ap, align $ALIGN
  %bv = load $E, ptr %bp, align $ALIGN
  store $E %bv, ptr %ap, align $ALIGN
  store $E %av, ptr %bp, align $ALIGN
  %q1 = add i64 %q, 1
  %wide = icmp slt i64 %q1, %width
  br i1 %wide, label %element, label %row
exit:
  ret void
}

; arguments: the steps, the number of the first step of each item (and of one more), getrf, trsm, gemm, a one
; and a minus one, how many matrices there are; then the number of the first item of each phase.  Each item is
; done for one matrix after the other.
define internal i32 @items(ptr %args, i64 %lo, i64 %hi, i64 %before) {
entry:
  arguments ptr table, ptr starts, ptr getrf, ptr trsm, ptr gemm, ptr one, i64 count
  %minus = getelementptr $E, ptr %one, i64 1
  $SCALARS
  br label %item
item:
  %t = phi i64 [ %lo, %entry ], [ %t1, %step ]
  %t1 = add i64 %t, 1
  %left = icmp slt i64 %t, %hi
  br i1 %left, label %open, label %exit
open:
  %own = udiv i64 %t, %count
  %k = urem i64 %t, %count
  %number = add i64 %own, %before
  %beginp = getelementptr i64, ptr %starts, i64 %number
  %begin = load i64, ptr %beginp
  %stop = load i64, ptr %beginp[i64 1]
  br label %step
step:
  %s = phi i64 [ %begin, %open ], [ %s1, %next ]
  %more = icmp slt i64 %s, %stop
  br i1 %more, label %which, label %item
which:
  %at = mul i64 %s, $FIELDS
  %f0p = getelementptr i64, ptr %table, i64 %at
  %op = load i64, ptr %f0p
  $LOADS
  %i4 = trunc i64 %f4 to i32
  %i5 = trunc i64 %f5 to i32
  %s1 = add i64 %s, 1
  switch i64 %op, label %next [ $CASES ]
copy:
  call void @copy(ptr %p1, ptr %p2, i64 %f4, i64 %f5, i64 %f6, i64 %f7, i64 %f8, i64 %f9)
  br label %next
exchange:
  call void @exchange(ptr %p1, ptr %p2, i64 %f4, i64 %f5, i64 %f6, i64 %f7)
  br label %next
factor:
  call void %getrf(ptr %f4p, ptr %f5p, ptr %p1, ptr %f6p, ptr %p2, ptr %p3)
  br label %next
solve:
  call void %trsm(i32 102, i32 141, i32 122, i32 111, i32 132, i64 %f4, i64 %f5, $ONE, ptr %p1, i64 %f6, ptr %p2, i64 %f7)
  br label %next
subtract:
  call void %gemm(i32 %i4, i32 %i5, i32 111, i64 %f6, i64 %f7, i64 %f8, $MINUS, ptr %p1, i64 %f9, ptr %p2, i64 %f10, $ONE, ptr %p3, i64 %f11)
  br label %next
substitute:
  call void @triangle(i64 %f4, i64 %f5, i64 %f6, ptr %p1, i64 %f7, ptr %p2, i64 %f8)
  br label %next
next:
  br label %step
exit:
  ret i32 0
}
"""  # noqa: E501
_PHASE = """
define i32 @phase$NUMBER(ptr %args, i64 %lo, i64 %hi) {
  %before = load i64, ptr %args[i64 $PLACE]
  %done = call i32 @items(ptr %args, i64 %lo, i64 %hi, i64 %before)
  ret i32 %done
}
"""


def solver(char: str) -> Routine:
    """Return the routine for elements of a dtype: ``f``, ``d``, ``F`` or ``D``."""
    loads = []
    for k in range(1, FIELDS):
        loads += [f"%f{k}p = getelementptr i64, ptr %f0p, i64 {k}", f"%f{k} = load i64, ptr %f{k}p"]
    for k in range(1, 4):
        loads += [f"%m{k} = mul i64 %k, %f{FIELDS - 4 + k}", f"%a{k} = add i64 %f{k}, %m{k}"]
        loads.append(f"%p{k} = inttoptr i64 %a{k} to ptr")
    one, minus = scalar(char, "one"), scalar(char, "minus")
    words = {
        "SCALARS": f"{one[1]}\n  {minus[1]}",
        "FIELDS": FIELDS,
        "LOADS": "\n  ".join(loads),
        "CASES": " ".join(f"i64 {step.value}, label %{step.name.lower()}" for step in Step),
        "ONE": one[0],
        "MINUS": minus[0],
    }
    places = {k: str(_ARGUMENTS + k) for k in range(PHASES)}
    phases = [_PHASE.replace("$NUMBER", str(k)).replace("$PLACE", place) for k, place in places.items()]
    small, more = triangle(char, engine.machine().vector_bits)
    text = fill_template(small + _TEXT + "".join(phases), **words, **more, **words_of(char))
    return Routine(f"systems of equations of {char}", text, PHASES, _ARGUMENTS + PHASES)
