"""Interval arithmetic: bounds of the results of Python's operators on bounded integers."""

from __future__ import annotations

import operator
from collections.abc import Callable

Bounds = tuple[int, int]  # the smallest and the largest value

_CORNERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
MOST_BITS = 63  # of a shift


def result_bounds(op: str, a: Bounds, b: Bounds) -> Bounds | None:
    """Return bounds of ``x op y`` for all ``x`` and ``y`` within bounds for which Python has a result; None
    if no bounds are known."""
    if op in ("//", "%"):
        b = b[0] + (not b[0]), b[1] - (not b[1])
        if b[0] > b[1]:
            return None
        if b[0] < 0 < b[1]:
            most = max(map(abs, a if op == "//" else (b[0] + 1, b[1] - 1)))
            return -most, most
    if op in ("<<", ">>") and not 0 <= b[0] <= b[1] <= MOST_BITS:
        return None
    if op in _CORNERS:  # monotonic in each operand
        ends = [_CORNERS[op](x, y) for x in a for y in b]
        return min(ends), max(ends)
    if op == "%":
        return (0, b[1] - 1) if b[0] > 0 else (b[0] + 1, 0)
    if op == "&" and max(a[0], b[0]) >= 0:
        return 0, min(most for least, most in (a, b) if least >= 0)
    if op in ("&", "|", "^"):
        bits = max(_bits(x) for x in (*a, *b))
        return 0 if min(a[0], b[0]) >= 0 else -(1 << bits), (1 << bits) - 1
    return None


def _bits(x: int) -> int:
    """Return the number of bits of an int in two's complement, without the sign bit."""
    return (x if x >= 0 else ~x).bit_length()
