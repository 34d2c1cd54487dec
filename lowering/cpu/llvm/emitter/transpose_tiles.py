"""Transposition of tiles in registers, as LLVM text.

A tile is divided into squares: rows are loaded as vectors, exchange their halves, quarters, ... until they
are columns, and are stored.  So each cache line is accessed once or twice, whatever the distance between
rows; the next lines of the rows are prefetched.  The edges are copied element by element.
"""

from __future__ import annotations

from functools import cache

_SOURCE = """
define internal void @$name(ptr noalias %to, ptr noalias %from, i64 %across, i64 %along, i64 %rows, i64 %cols)
  noinline #0 {
entry:
  br label %cols.head
cols.head:
  %c = phi i64 [ 0, %entry ], [ %c.end, %rows.done ]
  %c.in = icmp slt i64 %c, %cols
  br i1 %c.in, label %cols.body, label %exit
cols.body:
  %c.end = add nsw i64 %c, $side
  %c.full = icmp sle i64 %c.end, %cols
  %c.stop = select i1 %c.full, i64 %c.end, i64 %cols
  br label %rows.head
rows.head:
  %r = phi i64 [ 0, %cols.body ], [ %r.end, %square ], [ %r.end, %edge.done ]
  %r.in = icmp slt i64 %r, %rows
  br i1 %r.in, label %rows.body, label %rows.done
rows.body:
  %r.end = add nsw i64 %r, $side
  %r.full = icmp sle i64 %r.end, %rows
  %full = and i1 %r.full, %c.full
  br i1 %full, label %square, label %edge
square:
$square
  br label %rows.head
edge:
  %r.stop = select i1 %r.full, i64 %r.end, i64 %rows
  br label %edge.col
edge.col:
  %y = phi i64 [ %c, %edge ], [ %y.next, %edge.next ]
  %y.in = icmp slt i64 %y, %c.stop
  br i1 %y.in, label %edge.row, label %edge.done
edge.row:
  %x = phi i64 [ %r, %edge.col ], [ %x.next, %edge.copy ]
  %x.in = icmp slt i64 %x, %r.stop
  br i1 %x.in, label %edge.copy, label %edge.next
edge.copy:
  %from.row = mul nsw i64 %x, %along
  %from.at = add nsw i64 %from.row, %y
  %from.p = getelementptr [$size x i8], ptr %from, i64 %from.at
  %to.row = mul nsw i64 %y, %across
  %to.at = add nsw i64 %to.row, %x
  %to.p = getelementptr [$size x i8], ptr %to, i64 %to.at
  %one = load i$bits, ptr %from.p, align $align
  store i$bits %one, ptr %to.p, align $align
  %x.next = add nsw i64 %x, 1
  br label %edge.row
edge.next:
  %y.next = add nsw i64 %y, 1
  br label %edge.col
edge.done:
  br label %rows.head
rows.done:
  br label %cols.head
exit:
  ret void
}
"""
_AHEAD = 128  # bytes


def _square(side: int, size: int) -> list[str]:
    """Return the instructions that load the rows of a square, transpose it, and store the columns."""
    unit = min(size, 8)
    units = size // unit
    vector = f"<{side * units} x i{8 * unit}>"
    lines: list[str] = []

    def place(what: str, along: str, outer: str, inner: str, number: int) -> str:
        start = f"%{what}{number}"
        lines.append(f"  {start}.k = add nsw i64 {outer}, {number}")
        lines.append(f"  {start}.row = mul nsw i64 {start}.k, {along}")
        lines.append(f"  {start}.at = add nsw i64 {start}.row, {inner}")
        lines.append(f"  {start}.p = getelementptr [{size} x i8], ptr %{what}, i64 {start}.at")
        return f"{start}.p"

    rows = []
    for number in range(side):
        at = place("from", "%along", "%r", "%c", number)
        rows.append(f"%v0.{number}")
        lines.append(f"  {rows[-1]} = load {vector}, ptr {at}, align {unit}")
        lines.append(f"  {at}.ahead = getelementptr i8, ptr {at}, i64 {_AHEAD}")
        lines.append(f"  call void @llvm.prefetch.p0(ptr {at}.ahead, i32 0, i32 2, i32 1)")
    distance, step = 1, 1
    while distance < side:
        mixed = list(rows)
        for number in range(side):
            first, second = number & ~distance, number | distance
            mask = []
            for column in range(side):
                lane = column & ~distance | (distance if number & distance else 0)
                lane += side if column & distance else 0
                mask += [f"i32 {lane * units + k}" for k in range(units)]
            mixed[number] = f"%v{step}.{number}"
            lines.append(
                f"  {mixed[number]} = shufflevector {vector} {rows[first]}, {vector} {rows[second]},"
                f" <{side * units} x i32> <{', '.join(mask)}>"
            )
        rows, distance, step = mixed, 2 * distance, step + 1
    for number in range(side):
        at = place("to", "%across", "%c", "%r", number)
        lines.append(f"  store {vector} {rows[number]}, ptr {at}, align {unit}")
    return lines


PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"


@cache
def transposer(size: int, vector_bits: int) -> tuple[str, str]:
    """Return the function ``name(to, from, across, along, rows, cols)`` of ``TransposeTile`` for elements of
    ``size`` bytes: its name, and its text."""
    side = max(2, min(16, vector_bits // 8 // size))
    text = _SOURCE.replace("$square", "\n".join(_square(side, size)))
    words = {"name": f"dc_turn{size}", "side": str(side), "size": str(size), "align": str(min(size, 8))}
    words["bits"] = str(8 * size)
    for word, value in words.items():
        text = text.replace(f"${word}", value)
    return words["name"], text
