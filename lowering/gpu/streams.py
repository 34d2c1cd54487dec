"""The kernel that draws the numbers of NumPy's generator PCG64, one in each thread, with the same bits.

A step of the generator is ``s -> a * s + c`` modulo 2^128, and so are several steps, with other ``a`` and
``c``.  Thread ``k`` goes ``k`` steps: a table (`jumps`) has ``a`` and ``c`` for each digit of ``k``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dcarray.lowering.kernel.nodes import (
    Assign,
    Declare,
    Elem,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Local,
    Op,
    Stmt,
    Store,
    affine,
)
from dcarray.lowering.nest.body import literal
from dcarray.lowering.nest.loop_nest import variable

from .indexing import K, argument, per_element

__all__ = ["MULTIPLIER", "digits_of", "jumps", "numbers"]

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_DIGIT = 8  # bits
_WORD = (1 << 64) - 1
_BITS, _INT, _BOOL = np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.bool_)


@lru_cache(16)
def jumps(increment: int, digits: int) -> np.ndarray[Any, Any]:
    """Return ``a`` and ``c`` of the steps that each value of each 8-bit digit stands for, high words
    first."""
    every, a, c = [], MULTIPLIER, increment
    for _ in range(digits):
        one, added = 1, 0
        for _ in range(1 << _DIGIT):
            every += [one >> 64, one & _WORD, added >> 64, added & _WORD]
            one, added = one * a % (1 << 128), (added * a + c) % (1 << 128)
        a, c = one, added
    return np.array(every, np.uint64)


def digits_of(count: int) -> int:
    """Return how many 8-bit digits the positions of ``count`` numbers have."""
    return max(-(-(count - 1).bit_length() // _DIGIT), 1)


def _bits(name: str, *args: Expr | int) -> Expr:
    """Return the expression of an operation on unsigned integers of 64 bits."""
    return Op(name, tuple(literal(a, _BITS) if isinstance(a, int) else a for a in args), _BITS)


def _high_product(x: Expr, y: Expr) -> tuple[tuple[Stmt, ...], Expr]:
    """Return statements that bind the parts of a product of two words, and the expression of its high
    word."""
    names = {"a": x, "b": y}
    half = {n + "0": _bits("bitwise_and", v, (1 << 32) - 1) for n, v in names.items()}
    half |= {n + "1": _bits("right_shift", v, 32) for n, v in names.items()}
    at = {name: Local(name, _BITS) for name in (*half, "ab", "ba")}
    low = _bits("multiply", at["a0"], at["b0"])
    cross = {"ab": _bits("multiply", at["a0"], at["b1"]), "ba": _bits("multiply", at["a1"], at["b0"])}
    middle = _bits("right_shift", low, 32)
    total = _bits("multiply", at["a1"], at["b1"])
    for name in cross:
        middle = _bits("add", middle, _bits("bitwise_and", at[name], (1 << 32) - 1))
        total = _bits("add", total, _bits("right_shift", at[name], 32))
    binds = tuple(Let(name, value) for name, value in (half | cross).items())
    return binds, _bits("add", total, _bits("right_shift", middle, 32))


def numbers() -> Kernel:
    """Return the kernel that writes number ``k`` of the generator to ``p0[k]``.  ``p1`` has the two words of
    the generator's state from which the first number is made; ``p2`` has the table that `jumps` returns.

    Its integer arguments are the count of numbers and the count of digits (`digits_of`).
    """
    high, low, row = Local("high", _BITS), Local("low", _BITS), Local("row", _INT)

    def entry(word: int) -> Expr:
        return Elem("p2", affine(word), _BITS, ((row, affine(1)),))

    place = Op("right_shift", (Index(K), Index(variable("d", _DIGIT))), _INT)
    digit = Op("bitwise_and", (place, literal((1 << _DIGIT) - 1, _INT)), _INT)
    begin = Index(variable("d", 4 << _DIGIT))
    binds, top = _high_product(low, Local("m", _BITS))
    top = _bits("add", top, _bits("multiply", low, entry(0)))
    top = _bits("add", top, _bits("multiply", high, Local("m", _BITS)))
    added = Local("added", _BITS)
    carry = Op("cast", (Op("less", (Local("sum", _BITS), added), _BOOL),), _BITS)
    step = (
        Let("row", Op("add", (begin, Op("multiply", (digit, literal(4, _INT)), _INT)), _INT)),
        Let("m", entry(1)), Let("added", entry(3)), *binds, Let("top", _bits("add", top, entry(2))),
        Let("sum", _bits("add", _bits("multiply", low, Local("m", _BITS)), added)),
        Assign("high", _bits("add", Local("top", _BITS), carry)), Assign("low", Local("sum", _BITS)),
    )  # fmt: skip
    turn, mixed = Local("turn", _BITS), Local("mixed", _BITS)
    back = _bits("bitwise_and", _bits("subtract", 64, turn), 63)
    body = (
        Declare("high", Elem("p1", affine(), _BITS)),
        Declare("low", Elem("p1", affine(1), _BITS)),
        For("d", affine(), (argument(1),), 1, "serial", step),
        Let("turn", _bits("right_shift", high, 58)),
        Let("mixed", _bits("bitwise_xor", high, low)),
        Store(
            "p0", K, _bits("bitwise_or", _bits("right_shift", mixed, turn), _bits("left_shift", mixed, back))
        ),
    )
    return per_element([(_BITS, "w"), (_BITS, "r"), (_BITS, "r")], 3, body)
