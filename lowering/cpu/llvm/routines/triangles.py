"""Small triangular systems with many right-hand sides by rows, as LLVM text.

BLAS libraries run products at the processor's peak, but triangular solves at half of it or less.  So a large
triangle is halved recursively (`dcarray.lowering.runtime.elimination`) down to this size, and solved
here by substitution: each row of the solution is its right-hand sides less the products with rows before it,
some columns at a time, which stay in registers.
"""

from __future__ import annotations

from .routine import fill_template

__all__ = ["MAX_ROWS", "triangle"]

MAX_ROWS = 32
"""The most rows of a triangle."""

_REGISTERS = 8  # of results: as many as two multiply-adds in each cycle need, of four cycles each

_TEXT = """
; Solve with the triangle %t, whose columns are %pitch apart, for %columns of the rows of %x, which are %apart:
; the upper one from the last row on, or the lower one, with ones on its diagonal
define internal void @triangle(i64 %upper, i64 %rows, i64 %columns, ptr %t, i64 %pitch, ptr %x, i64 %apart) #9 {
entry:
  %own = alloca [$SQUARE x $R], align 64
  %back = icmp ne i64 %upper, 0
  %last = sub i64 %rows, 1
  %end = mul i64 %last, %apart
  %start = select i1 %back, i64 %end, i64 0
  %first = getelementptr $E, ptr %x, i64 %start
  %minus = sub i64 0, %apart
  %step = select i1 %back, i64 %minus, i64 %apart
  br label %row
row:
  %s = phi i64 [ 0, %entry ], [ %s1, %diagonal ], [ %s1, %known ]
  %packing = icmp slt i64 %s, %rows
  br i1 %packing, label %open, label %solve
open:
  %s1 = add i64 %s, 1
  %sb = sub i64 %last, %s
  %i = select i1 %back, i64 %sb, i64 %s
  %line = mul i64 %s, $MOST
  br label %element
element:
  %q = phi i64 [ 0, %open ], [ %q1, %element ]
  %q1 = add i64 %q, 1
  %qb = sub i64 %last, %q
  %k = select i1 %back, i64 %qb, i64 %q
  %column = mul i64 %k, %pitch
  %at = add i64 %column, %i
  %v = load $E, ptr %t[$E %at], align $ALIGN
  %to = add i64 %line, %q
  %tp = getelementptr $E, ptr %own, i64 %to
  store $E %v, ptr %tp, align $ALIGN
  %more = icmp slt i64 %q1, %s1
  br i1 %more, label %element, label %diagonal
diagonal:
  br i1 %back, label %known, label %row
known:
  $RECIPROCAL
  br label %row
solve:
  br label %tile
tile:
  %c = phi i64 [ 0, %solve ], [ %c1, %whole ], [ %c1, %part ]
  %c1 = add i64 %c, $WIDTH
  %left = sub i64 %columns, %c
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %which, label %exit
which:
  %xp = getelementptr $E, ptr %first, i64 %c
  %full = icmp sge i64 %left, $WIDTH
  br i1 %full, label %whole, label %part
whole:
  call void @whole(ptr %own, i64 %rows, ptr %xp, i64 %step, i1 %back, i64 %left)
  br label %tile
part:
  call void @part(ptr %own, i64 %rows, ptr %xp, i64 %step, i1 %back, i64 %left)
  br label %tile
exit:
  ret void
}
attributes #9 = { noinline alignstack=64 "prefer-vector-width"="$BITS" "min-legal-vector-width"="$BITS" }
"""  # noqa: E501

_TILE = """
define internal void @$NAME(ptr %own, i64 %rows, ptr %x, i64 %step, i1 %scaled, i64 %left) #9 {
entry:
  $MASKS
  br label %row
row:
  %s = phi i64 [ 0, %entry ], [ %s1, %stored ]
  %s1 = add i64 %s, 1
  %away = mul i64 %s, %step
  %xs = getelementptr $E, ptr %x, i64 %away
  %from = mul i64 %s, $MOST
  %line = getelementptr $E, ptr %own, i64 %from
  $BEGIN
  %any = icmp sgt i64 %s, 0
  br i1 %any, label %term, label %summed
term:
  %q = phi i64 [ 0, %row ], [ %q1, %term ]
  $SUMS
  %q1 = add i64 %q, 1
  %far = mul i64 %q, %step
  %xq = getelementptr $E, ptr %x, i64 %far
  %tp = getelementptr $E, ptr %line, i64 %q
  $FACTORS
  $TERMS
  %more = icmp slt i64 %q1, %s
  br i1 %more, label %term, label %summed
summed:
  $TOTALS
  br i1 %scaled, label %scale, label %store
scale:
  %dp = getelementptr $E, ptr %line, i64 %s
  $DIAGONAL
  $SCALED
  br label %store
store:
  $STORES
  br label %stored
stored:
  %again = icmp slt i64 %s1, %rows
  br i1 %again, label %row, label %exit
exit:
  ret void
}
"""

_REAL_RECIPROCAL = """
  %d = load $R, ptr %tp
  %inverse = fdiv $R 1.0, %d
  store $R %inverse, ptr %tp"""

# By the ratio of the smaller part to the larger one, so that no square overflows (Smith, 1962).
_COMPLEX_RECIPROCAL = """
  %ip = getelementptr $R, ptr %tp, i64 1
  %re = load $R, ptr %tp
  %im = load $R, ptr %ip
  %are = call $R @llvm.fabs.$KIND($R %re)
  %aim = call $R @llvm.fabs.$KIND($R %im)
  %low = fcmp olt $R %are, %aim
  %large = select i1 %low, $R %im, $R %re
  %small = select i1 %low, $R %re, $R %im
  %ratio = fdiv $R %small, %large
  %square = fmul $R %ratio, %ratio
  %sum = fadd $R %square, 1.0
  %whole.d = fmul $R %large, %sum
  %unit = fdiv $R 1.0, %whole.d
  %part.d = fmul $R %ratio, %unit
  %inverse = select i1 %low, $R %part.d, $R %unit
  %other = select i1 %low, $R %unit, $R %part.d
  %negative = fneg $R %other
  store $R %inverse, ptr %tp
  store $R %negative, ptr %ip"""


def triangle(char: str, bits: int) -> tuple[str, dict[str, object]]:
    """Return the template of the function ``@triangle`` and its words, for elements of a dtype (``f``, ``d``,
    ``F`` or ``D``) and vector registers of ``bits`` bits."""
    double, pairs = char in "dD", char in "FD"
    lanes = bits // (64 if double else 32)
    numbers = 2 if pairs else 1  # of an element
    vectors = _REGISTERS // numbers
    real, short = ("double", "f64") if double else ("float", "f32")
    words: dict[str, object] = {
        "SQUARE": MAX_ROWS * MAX_ROWS * numbers, "MOST": MAX_ROWS, "WIDTH": lanes * vectors // numbers,
        "RECIPROCAL": (_COMPLEX_RECIPROCAL if pairs else _REAL_RECIPROCAL).strip(), "KIND": short,
        "R": real, "BITS": bits,
    }  # fmt: skip
    tiles = [_tile(name, pairs, vectors, lanes, real, name == "part") for name in ("whole", "part")]
    vector = f"<{lanes} x {real}>"
    mangled, mask = f"v{lanes}{short}", f"<{lanes} x i1>"
    declared = [
        f"declare {vector} @llvm.masked.load.{mangled}.p0(ptr, i32, {mask}, {vector})",
        f"declare void @llvm.masked.store.{mangled}.p0({vector}, ptr, i32, {mask})",
        *([f"declare {real} @llvm.fabs.{short}({real})"] if pairs else []),
    ]
    return "\n".join([*declared, *tiles, _TEXT]), words


def _tile(name: str, pairs: bool, vectors: int, lanes: int, real: str, masked: bool) -> str:
    """Return the function that solves for a tile of columns in all rows; with ``masked``, for the columns
    that remain at the end of the rows."""
    size, kind = (8 if real == "double" else 4), f"<{lanes} x {real}>"
    mangled = f"v{lanes}f{size * 8}"
    mask, whole = f"<{lanes} x i1>", f"<{lanes} x i64>"

    def load(to: str, at: str, k: int) -> list[str]:
        place = f"%{to}.p{k} = getelementptr {real}, ptr %{at}, i64 {k * lanes}"
        if masked:
            asked = f"ptr %{to}.p{k}, i32 {size}, {mask} %mask{k}, {kind} zeroinitializer"
            return [place, f"%{to}{k} = call {kind} @llvm.masked.load.{mangled}.p0({asked})"]
        return [place, f"%{to}{k} = load {kind}, ptr %{to}.p{k}, align {size}"]

    def spread(to: str, at: str, k: int) -> list[str]:
        return [
            f"%{to}.p = getelementptr {real}, ptr %{at}, i64 {k}",
            f"%{to}.s = load {real}, ptr %{to}.p",
            f"%{to}.i = insertelement {kind} poison, {real} %{to}.s, i64 0",
            f"%{to} = shufflevector {kind} %{to}.i, {kind} poison, <{lanes} x i32> zeroinitializer",
        ]

    def swapped(to: str, what: str) -> str:
        """Return the instruction that swaps real and imaginary parts in a vector."""
        order = ", ".join(f"i32 {lane ^ 1}" for lane in range(lanes))
        return f"%{to} = shufflevector {kind} %{what}, {kind} poison, <{lanes} x i32> <{order}>"

    signs = "<" + ", ".join(f"{real} {'-1.0' if lane % 2 else '1.0'}" for lane in range(lanes)) + ">"
    parts: dict[str, list[str]] = {
        word: [] for word in ("MASKS", "BEGIN", "SUMS", "TERMS", "TOTALS", "SCALED", "STORES")
    }
    if masked:
        reals = "%count = mul i64 %left, 2" if pairs else "%count = add i64 %left, 0"
        parts["MASKS"] += [
            reals,
            f"%ends = insertelement {whole} poison, i64 %count, i64 0",
            f"%end = shufflevector {whole} %ends, {whole} poison, <{lanes} x i32> zeroinitializer",
        ]
    for k in range(vectors):
        if masked:
            places = ", ".join(f"i64 {k * lanes + lane}" for lane in range(lanes))
            parts["MASKS"].append(f"%mask{k} = icmp slt {whole} <{places}>, %end")
        parts["BEGIN"] += load("b", "xs", k)
        parts["SUMS"].append(f"%a{k} = phi {kind} [ %b{k}, %row ], [ %a.n{k}, %term ]")
        parts["TERMS"] += [
            *load("x", "xq", k),
            f"%m{k} = fmul contract {kind} %x{k}, %factor",
            f"%a.n{k} = fsub contract {kind} %a{k}, %m{k}",
        ]
        parts["TOTALS"].append(f"%sum{k} = phi {kind} [ %b{k}, %row ], [ %a.n{k}, %term ]")
        parts["SCALED"].append(f"%r{k} = fmul contract {kind} %{'all' if pairs else 'sum'}{k}, %unit")
        total, scaled = ("all", "z") if pairs else ("sum", "r")
        parts["STORES"].append(f"%y{k} = phi {kind} [ %{total}{k}, %summed ], [ %{scaled}{k}, %scale ]")
    if pairs:  # the products with imaginary parts are summed apart, and their parts swapped at the end
        for k in range(vectors):
            zero = "zeroinitializer"
            parts["SUMS"].append(f"%j{k} = phi {kind} [ {zero}, %row ], [ %j.n{k}, %term ]")
            parts["TERMS"] += [
                f"%n{k} = fmul contract {kind} %x{k}, %other",
                f"%j.n{k} = fadd contract {kind} %j{k}, %n{k}",
            ]
            parts["TOTALS"].append(f"%turn{k} = phi {kind} [ {zero}, %row ], [ %j.n{k}, %term ]")
        for k in range(vectors):
            parts["TOTALS"] += [
                swapped(f"turned{k}", f"turn{k}"),
                f"%signed{k} = fmul contract {kind} %turned{k}, {signs}",
                f"%all{k} = fadd contract {kind} %sum{k}, %signed{k}",
            ]
            parts["SCALED"] += [
                swapped(f"over{k}", f"all{k}"),
                f"%cross{k} = fmul contract {kind} %over{k}, %rest",
                f"%v{k} = fmul contract {kind} %cross{k}, {signs}",
                f"%z{k} = fsub contract {kind} %r{k}, %v{k}",
            ]
    for k in range(vectors):
        place = f"%y.p{k} = getelementptr {real}, ptr %xs, i64 {k * lanes}"
        if masked:
            given = f"{kind} %y{k}, ptr %y.p{k}, i32 {size}, {mask} %mask{k}"
            stored = f"call void @llvm.masked.store.{mangled}.p0({given})"
        else:
            stored = f"store {kind} %y{k}, ptr %y.p{k}, align {size}"
        parts["STORES"] += [place, stored]
    parts["FACTORS"] = spread("factor", "tp", 0) + (spread("other", "tp", 1) if pairs else [])
    parts["DIAGONAL"] = spread("unit", "dp", 0) + (spread("rest", "dp", 1) if pairs else [])
    return fill_template(_TILE, NAME=name, **{word: "\n  ".join(lines) for word, lines in parts.items()})
