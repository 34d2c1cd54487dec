"""Search in a sorted table, and linear interpolation between its points, as LLVM text.

The table is padded to ``PARTS`` parts of one length with the greatest value.  The part of an element is
found by comparing it with the last element of every part; binary search in the part follows.
All elements take the same steps, so that no branch depends on them, and ``_LANES`` elements are interleaved,
which hides the latency of loads.
"""

from __future__ import annotations

from .routine import Routine, fill_template

__all__ = ["BLOCK", "PARTS", "interpolation", "search"]

BLOCK = 4096  # elements of one parallel chunk
PARTS = 16
_LANES = 16
_PIECE = 512  # elements whose positions are found before they are interpolated


def _probes() -> str:
    """Return LLVM text that loads the table's elements before the probed positions, one by one.

    Gather instructions are no faster.  For a processor that has none, LLVM would make branches of them.
    """
    lines = []
    for k in range(_LANES):
        before = f"%v{k - 1}" if k else "poison"
        lines += [
            f"  %e{k} = extractelement <{_LANES} x i64> %base, i64 {k}",
            f"  %q{k} = getelementptr $T, ptr %middle, i64 %e{k}",
            f"  %l{k} = load $T, ptr %q{k}",
            f"  %v{k} = insertelement <{_LANES} x $T> {before}, $T %l{k}, i64 {k}",
        ]
    return "\n".join(lines)


def _part_counts() -> str:
    """Return LLVM text that counts the parts, except for the last, whose last element precedes an element."""
    lines = []
    for k in range(PARTS - 1):
        before = f"%c{k - 1}" if k else "zeroinitializer"
        lines += [
            f"  %pp{k} = getelementptr $T, ptr %pivots, i64 {k}",
            f"  %ps{k} = load $T, ptr %pp{k}",
            f"  %pi{k} = insertelement <{_LANES} x $T> poison, $T %ps{k}, i64 0",
            f"  %pv{k} = shufflevector <{_LANES} x $T> %pi{k}, <{_LANES} x $T> poison, $I zeroinitializer",
            f"  %pb{k} = $BEFORE <{_LANES} x $T> %pv{k}, %key",
            f"  %px{k} = sext <{_LANES} x i1> %pb{k} to $L",
            f"  %c{k} = sub $L {before}, %px{k}",
        ]
    return "\n".join(lines)


def _all(name: str, value: str) -> str:
    """Return LLVM text that puts the number ``value`` into all lanes of the vector ``name``."""
    return (
        f"%{name}.1 = insertelement $L poison, i64 {value}, i64 0\n"
        f"  %{name} = shufflevector $L %{name}.1, $L poison, $I zeroinitializer"
    )


_FIND = f"""
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare $L @llvm.smin.$V($L, $L)

define internal void @some(ptr %keys, ptr %out, $TABLE) alwaysinline {{
entry:
  %key = load <$LANES x $T>, ptr %keys, align 8
{_part_counts()}
  {_all("lengths", "%length")}
  %first = mul $L %c{PARTS - 2}, %lengths
  br label %step
step:
  %base = phi $L [ %first, %entry ], [ %base1, %halve ]
  %n = phi i64 [ %length, %entry ], [ %n1, %halve ]
  %more = icmp sgt i64 %n, 1
  br i1 %more, label %halve, label %done
halve:
  %half = lshr i64 %n, 1
  %n1 = sub i64 %n, %half
  %last = sub i64 %half, 1
  %middle = getelementptr $T, ptr %table, i64 %last
{_probes()}
  %less = $BEFORE <$LANES x $T> %v{_LANES - 1}, %key
  %mask = sext <$LANES x i1> %less to $L
  {_all("halves", "%half")}
  %by = and $L %mask, %halves
  %base1 = add $L %base, %by
  br label %step
done:
  {_all("most", "%m")}
  %place = call $L @llvm.smin.$V($L %base, $L %most)
  {_all("odds", "%odd")}
  %none = $ODD
  %found = select <$LANES x i1> %none, $L %odds, $L %place
  store $L %found, ptr %out, align 8
  ret void
}}

define internal void @find(ptr %keys, ptr noalias %out, i64 %size, $TABLE) {{
entry:
  %spare = alloca [$LANES x i64], align 8
  %spares = alloca [$LANES x i64], align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %whole ]
  %i1 = add i64 %i, $LANES
  %fits = icmp sle i64 %i1, %size
  %from = getelementptr $T, ptr %keys, i64 %i
  %to = getelementptr i64, ptr %out, i64 %i
  br i1 %fits, label %whole, label %rest
whole:
  call void @some(ptr %from, ptr %to, $TABLE)
  br label %next
rest:
  %left = sub i64 %size, %i
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %some, label %exit
some:
  %bytes = mul i64 %left, 8
  store $L zeroinitializer, ptr %spare, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %spare, ptr %from, i64 %bytes, i1 false)
  call void @some(ptr %spare, ptr %spares, $TABLE)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %spares, i64 %bytes, i1 false)
  br label %exit
exit:
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_SEARCH = """
; arguments: elements, result, last elements of the parts, table; then the numbers of elements, of those in
; a part and of those in the table, and the place of what is no number
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  arguments ptr x, ptr result, ptr pivots, ptr table, i64 n, i64 length, i64 m, i64 odd
  %start = mul i64 %lo, $BLOCK
  %end = mul i64 %hi, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  %size = sub i64 %stop, %start
  call void @find(ptr %x[$T %start], ptr %result[i64 %start], i64 %size, $TABLE)
  ret i32 0
}
"""

_INTERPOLATION = """
; arguments: elements, result, last elements of the parts, table, values, slopes, values left and right of the
; table; then the numbers of elements, of those in a part, and of those in the table
define i32 @phase0(ptr %args, i64 %lo, i64 %hi) {
entry:
  %found = alloca [$PIECE x i64], align 64
  arguments ptr x, ptr result, ptr pivots, ptr table, ptr values, ptr slopes, ptr ends, i64 n, i64 length,
    i64 m
  %odd = add i64 0, 0
  %low = load double, ptr %ends
  %high = load double, ptr %ends[double 1]
  %top = sub i64 %m, 1
  %first = load double, ptr %table
  %last = load double, ptr %table[double %top]
  %start = mul i64 %lo, $BLOCK
  %end = mul i64 %hi, $BLOCK
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %n)
  br label %piece
piece:
  %c = phi i64 [ %start, %entry ], [ %c1, %ready ], [ %c1, %mended ]
  %left = icmp slt i64 %c, %stop
  br i1 %left, label %bounds, label %exit
bounds:
  %c1 = add i64 %c, $PIECE
  %to = call i64 @llvm.smin.i64(i64 %c1, i64 %stop)
  %size = sub i64 %to, %c
  %xs = getelementptr double, ptr %x, i64 %c
  %rs = getelementptr double, ptr %result, i64 %c
  call void @find(ptr %xs, ptr %found, i64 %size, $TABLE)
  br label %value
value:
  %k = phi i64 [ 0, %bounds ], [ %k1, %value ]
  %bad = phi i1 [ false, %bounds ], [ %bad1, %value ]
  %u = load double, ptr %xs[double %k]
  %count = load i64, ptr %found[i64 %k]
  %before = sub i64 %count, 1
  %j = call i64 @llvm.smax.i64(i64 %before, i64 0)
  %x0 = load double, ptr %table[double %j]
  %y0 = load double, ptr %values[double %j]
  %slope = load double, ptr %slopes[double %j]
  %off = fsub double %u, %x0
  %rise = fmul double %slope, %off
  %y = fadd double %rise, %y0
  %at = fcmp oeq double %u, %x0
  %ya = select i1 %at, double %y0, double %y
  %less = fcmp olt double %u, %first
  %yl = select i1 %less, double %low, double %ya
  %more = fcmp ogt double %u, %last
  %yr = select i1 %more, double %high, double %yl
  %none = fcmp uno double %u, %u
  %yn = select i1 %none, double %u, double %yr
  store double %yn, ptr %rs[double %k]
  %new = fcmp uno double %yn, %yn
  %some = fcmp ord double %u, %u
  %lost = and i1 %new, %some
  %bad1 = or i1 %bad, %lost
  %k1 = add i64 %k, 1
  %kend = icmp eq i64 %k1, %size
  br i1 %kend, label %ready, label %value
ready:
  br i1 %bad1, label %mend, label %piece
mend:
  %i = phi i64 [ 0, %ready ], [ %i1, %mend1 ]
  %imore = icmp slt i64 %i, %size
  br i1 %imore, label %look, label %mended
look:
  %i1 = add i64 %i, 1
  %w = load double, ptr %xs[double %i]
  %ir = getelementptr double, ptr %rs, i64 %i
  %r = load double, ptr %ir
  %count1 = load i64, ptr %found[i64 %i]
  %p = sub i64 %count1, 1
  %wrong = fcmp uno double %r, %r
  %above = fcmp oge double %w, %first
  %below = fcmp olt double %w, %last
  %inside = and i1 %above, %below
  %try = and i1 %wrong, %inside
  br i1 %try, label %between, label %mend1
between:
  %px = getelementptr double, ptr %table, i64 %p
  %p0 = load double, ptr %px
  %apart = fcmp one double %p0, %w
  br i1 %apart, label %again, label %mend1
again:
  %p1 = load double, ptr %px[double 1]
  %py = getelementptr double, ptr %values, i64 %p
  %q0 = load double, ptr %py
  %q1 = load double, ptr %py[double 1]
  %slope1 = load double, ptr %slopes[double %p]
  %off1 = fsub double %w, %p1
  %rise1 = fmul double %slope1, %off1
  %z = fadd double %rise1, %q1
  %still = fcmp uno double %z, %z
  %flat = fcmp oeq double %q0, %q1
  %level = and i1 %still, %flat
  %zl = select i1 %level, double %q0, double %z
  store double %zl, ptr %ir
  br label %mend1
mend1:
  br label %mend
mended:
  br label %piece
exit:
  ret i32 0
}
"""

_TYPES = {"d": ("double", "fcmp ult", "fcmp ule"), "l": ("i64", "icmp slt", "icmp sle")}


def _finding(text: str, char: str, side: str) -> str:
    kind, less, most = _TYPES[char]
    odd = f"fcmp uno <{_LANES} x {kind}> %key, zeroinitializer"
    words = {
        "TABLE": "ptr %pivots, ptr %table, i64 %length, i64 %m, i64 %odd",
        "BEFORE": less if side == "left" else most,
        "ODD": odd if char == "d" else f"icmp ne <{_LANES} x i1> zeroinitializer, zeroinitializer",
        "LANES": _LANES, "BLOCK": BLOCK, "PIECE": _PIECE,
        "I": f"<{_LANES} x i32>", "L": f"<{_LANES} x i64>", "V": f"v{_LANES}i64", "T": kind,
    }  # fmt: skip
    return fill_template(_FIND + text, **words)


def search(kind: tuple[str, str]) -> Routine:
    """Return the routine that searches tables; ``kind`` is a type character (``d`` or ``l``) and the side of
    equal elements ("left" or "right")."""
    char, side = kind
    return Routine(f"search {char} {side}", _finding(_SEARCH, char, side), 1, 8)


def interpolation(_: None) -> Routine:
    """Return the routine of linear interpolation between points, by NumPy's formula."""
    return Routine("interpolation", _finding(_INTERPOLATION, "d", "right"), 1, 10)
