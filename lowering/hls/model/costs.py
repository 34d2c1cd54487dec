"""The costs of operations and memories on an FPGA: cycles, DSP slices, LUTs, flip-flops, block RAM.

The figures are common reports of Vitis HLS for UltraScale+ at 300 MHz (operators of the LogiCORE
Floating-Point IP, PG060; one DSP48E2 multiplies 27 by 18 bits), rounded.  They tell large operators from
small ones, not the result of a tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.ir.records import record

#: Cycles until the first word of a burst from the board's memory.
MEMORY_LATENCY = 64
#: The widest word of a block of RAM.
BLOCK_WIDTH = 36
#: Memories up to so many bits are made of LUTs.
LUT_MEMORY_BITS = 1024


@record(frozen=True, slots=True)
class Cost:
    """The resources of a piece of hardware, and its ``latency`` in cycles."""

    latency: int = 0
    dsp: int = 0
    lut: int = 0
    ff: int = 0
    bram: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both side by side: the sum of resources, and the larger latency."""
        return Cost(
            max(self.latency, other.latency),
            self.dsp + other.dsp,
            self.lut + other.lut,
            self.ff + other.ff,
            self.bram + other.bram,
        )


_F4 = {
    "add": Cost(7, 2, 220, 330), "multiply": Cost(4, 3, 80, 150), "divide": Cost(15, 0, 780, 760),
    "sqrt": Cost(16, 0, 480, 500), "compare": Cost(2, 0, 65, 66), "other": Cost(20, 10, 2000, 1600),
}  # fmt: skip
_F8 = {
    "add": Cost(7, 3, 640, 700), "multiply": Cost(7, 8, 130, 300), "divide": Cost(30, 0, 3200, 3300),
    "sqrt": Cost(29, 0, 1800, 1900), "compare": Cost(2, 0, 125, 130), "other": Cost(35, 30, 5000, 4500),
}  # fmt: skip
_CLASS = {
    **dict.fromkeys(("add", "subtract"), "add"),
    **dict.fromkeys(("multiply", "square"), "multiply"),
    **dict.fromkeys(("divide", "reciprocal", "true_divide"), "divide"),
    "sqrt": "sqrt",
    **dict.fromkeys(
        ("maximum", "minimum", "fmax", "fmin", "less", "less_equal", "greater", "greater_equal", "equal"),
        "compare",
    ),
    "not_equal": "compare",
}
_WIRES = frozenset(
    {"absolute", "fabs", "negative", "positive", "isnan", "isinf", "isfinite", "signbit", "copysign"}
)
_DIVISIONS = frozenset({"divide", "floor_divide", "remainder", "fmod", "divmod", "true_divide", "reciprocal"})


def operation(op: str, args: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> Cost:
    """Return the cost of the operation ``op`` for these dtypes of operands and result."""
    wide = max((*args, dtype), key=lambda one: (one.kind == "f", one.itemsize))
    bits = 1 if wide.kind == "b" else 8 * wide.itemsize
    if op == "where":
        return Cost(0, 0, (bits + 1) // 2, 0)
    if op == "cast":
        both = {one.kind == "f" for one in (*args, dtype)}
        if True not in both:
            return Cost()
        return Cost(5, 0, 5 * bits, 5 * bits) if False in both else Cost(2, 0, 2 * bits, 2 * bits)
    if wide.kind == "f":
        if op in _WIRES:
            return Cost(0, 0, 2, 0)
        return (_F4 if wide.itemsize == 4 else _F8)[_CLASS.get(op, "other")]
    if op in ("multiply", "square"):
        return multiplier(bits)
    if op in _DIVISIONS:
        return Cost(bits + 4, 0, bits * bits, 3 * bits * bits // 2)
    if op in ("left_shift", "right_shift"):
        return Cost(1, 0, bits * max(bits.bit_length() - 1, 1) // 2, bits)
    return Cost(1, 0, bits, bits)


def multiplier(bits: int) -> Cost:
    """Return the cost of an integer multiplier whose operands and result have ``bits`` bits."""
    if bits <= 10:
        return Cost(1, 0, bits * bits, bits)
    # products of 17 bits by 17, of which only those that reach into the low half
    parts = -(-bits // 17)
    dsp = parts * (parts + 1) // 2
    return Cost(1 if bits <= 17 else 4, dsp, 0 if dsp == 1 else bits, bits)


def memory(words: int, bits: int) -> Cost:
    """Return the cost of a memory with one write port and one read port, made of LUTs or of block RAM."""
    if words == 1:
        return Cost(1, 0, 4, bits)
    if words * bits <= LUT_MEMORY_BITS or words <= 32:
        return Cost(1, 0, bits * -(-words // 64), bits)
    blocks = []
    for width in (1, 2, 4, 9, 18, BLOCK_WIDTH):
        deep = 16384 // (1 << max(width.bit_length() - 1, 0)) if width < BLOCK_WIDTH else 512
        blocks.append(-(-bits // width) * -(-words // deep))
    return Cost(1, 0, 0, bits, min(blocks))


def shift_register(length: int, bits: int, taps: int) -> Cost:
    """Return the cost of a shift register: a LUT per 32 bits, flip-flops for the ``taps``."""
    if length <= taps:
        return Cost(0, 0, 0, length * bits)
    return Cost(0, 0, bits * -(-(length - taps) // 32), taps * bits)


def counter(limit: int) -> Cost:
    """Return the cost of a counter that starts again at ``limit``, including the comparison."""
    bits = max(int(limit).bit_length(), 1)
    return Cost(0, 0, bits + bits // 3 + 1, bits)
