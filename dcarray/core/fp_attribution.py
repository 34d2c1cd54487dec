"""Which floating-point exceptions an entry of a log can raise, and so whether it is clear who raised one.

A kernel reports the exceptions of all its statements together.  Where only one entry can have raised a kind,
it did; where none can, the kernel did by itself (a comparison with NaN does).  Only what remains in doubt
makes the region run again, for which what it overwrote has to be kept.
"""

from __future__ import annotations

from typing import Any

from dcarray.ir.ops import PLACES, SCANS

from .fp_state import ODD

DIVIDE, OVER, UNDER, INVALID = 1, 2, 4, 8
ALL = DIVIDE | OVER | UNDER | INVALID
RAISING = DIVIDE | OVER | INVALID
"""What Python's numbers may make errors of: all but underflow."""
NOBODY, DOUBT = -1, -2
MINDFUL = UNDER | ODD
"""What small numbers raise, too; and where NumPy does something odd with exceptions, all may be minded."""

# What NumPy raises in operations of which a kernel raises exactly the same.
_PLAIN = {
    "add": OVER | INVALID, "subtract": OVER | INVALID, "multiply": OVER | UNDER | INVALID, "divide": ALL,
    "sqrt": INVALID, "square": OVER | UNDER | INVALID, "reciprocal": ALL,
}  # fmt: skip
# Operations in which NumPy raises nothing, and which of them a kernel does by moving bits.
_MOVES = frozenset({"where", "negative", "positive", "absolute", "fabs", "copysign", "signbit"})
_QUIET = _MOVES | {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "maximum", "minimum", "fmax", "fmin", "isnan", "isinf", "isfinite",
}  # fmt: skip
_BY_ZERO = frozenset({"floor_divide", "remainder", "fmod", "reciprocal"})


def raises(entry: tuple[Any, ...]) -> tuple[int, int]:
    """What NumPy may raise in a statement, and what its kernel may raise beyond that, as bits."""
    if entry[0] == "call":
        # a product raises what BLAS does in the thread that NumPy is in, and for want of that in another
        return (OVER | UNDER | INVALID, 0) if entry[1] == "blas.matmul" else (ALL, ALL)
    name, loop = entry[1], entry[2]
    if entry[0] == "map" and name == "cast":
        source, result = loop.split("->")
        return (0, 0) if source == result else (ALL, ALL)
    if not any(c in "efdFD" for c in loop):
        return (ALL, ALL) if name in _BY_ZERO else (0, 0)
    if name in PLACES:
        return 0, INVALID
    plain = entry[0] == "map" or name in SCANS
    name = SCANS.get(name, name)
    if plain and not any(c in "eFD" for c in loop):  # those are made of several operations
        if name in _PLAIN:
            return _PLAIN[name], 0
        if name in _QUIET:
            return 0, 0 if name in _MOVES else INVALID
    return ALL, ALL


def culprits(statements: list[tuple[Any, ...]], odd: bool = False) -> tuple[int, ...]:
    """For each kind of exception, who has raised it if it was raised: the number of a statement, `NOBODY`, or
    `DOUBT`; all that may be raised is in doubt where NumPy does something ``odd`` with it."""
    both = [raises(entry) for entry in statements]
    found = []
    for bit in (DIVIDE, OVER, UNDER, INVALID):
        able = [k for k, (real, _) in enumerate(both) if real & bit]
        alone = not odd and len(able) == 1 and not any(more & bit for _, more in both)
        found.append(able[0] if alone else DOUBT if able else NOBODY)
    return tuple(found)
