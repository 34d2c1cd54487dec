"""The floating-point exceptions that each statement of a log can raise.

A kernel reports the exceptions of all its statements together.  If only one statement can raise a kind, it is
the culprit, and the warning gets the user's line of this statement (`fp_state.emit`).  If none can, the
kernel raised it by itself (a comparison with NaN does).  Only kinds that remain in doubt make the region run
again, which needs copies of what it overwrote.
"""

from __future__ import annotations

from dcarray.ir.log_entries import Statement
from dcarray.ir.ops import PLACES, SCANS

from .fp_bits import ALL, DIVIDE, INVALID, OVER, UNDER

NOBODY, DOUBT = -1, -2

# The exceptions that NumPy raises in operations in which a kernel raises exactly the same.
_PLAIN = {
    "add": OVER | INVALID, "subtract": OVER | INVALID, "multiply": OVER | UNDER | INVALID, "divide": ALL,
    "sqrt": INVALID, "square": OVER | UNDER | INVALID, "reciprocal": ALL,
}  # fmt: skip
# Operations in which NumPy raises nothing; those of the first set a kernel does by moving bits.
_MOVES = frozenset({"where", "negative", "positive", "absolute", "fabs", "copysign", "signbit"})
_QUIET = _MOVES | {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "maximum", "minimum", "fmax", "fmin", "isnan", "isinf", "isfinite",
}  # fmt: skip
_BY_ZERO = frozenset({"floor_divide", "remainder", "fmod", "reciprocal"})


def raises(entry: Statement) -> tuple[int, int]:
    """Return the bits of the exceptions that NumPy may raise in a statement, and that only a kernel may."""
    if entry.op == "take":
        return 0, 0
    if entry.kind == "call":
        # BLAS raises exceptions in the caller's thread, or loses them in one of its own
        return (OVER | UNDER | INVALID, 0) if entry.op == "blas.matmul" else (ALL, ALL)
    name, loop = entry.op, entry.loop
    if entry.kind == "map" and name == "cast":
        source, result = loop.split("->")
        return (0, 0) if source == result else (ALL, ALL)
    if not any(c in "efdFD" for c in loop):
        return (ALL, ALL) if name in _BY_ZERO else (0, 0)
    if name in PLACES:
        return 0, INVALID
    plain = entry.kind == "map" or name in SCANS
    name = SCANS.get(name, name)
    if plain and not any(c in "eFD" for c in loop):  # whose kernels take several operations for one
        if name in _PLAIN:
            return _PLAIN[name], 0
        if name in _QUIET:
            return 0, 0 if name in _MOVES else INVALID
    return ALL, ALL


def culprits(statements: list[Statement], odd: bool = False) -> tuple[int, ...]:
    """Return the statement that raises each kind of exception: its number, `NOBODY`, or `DOUBT`.

    With ``odd``, which stands for modes other than ignore, warn and raise, every possible kind is in doubt.
    """
    both = [raises(entry) for entry in statements]
    numbers = []
    for bit in (DIVIDE, OVER, UNDER, INVALID):
        able = [k for k, (real, _) in enumerate(both) if real & bit]
        sure = not odd and len(able) == 1 and not any(more & bit for _, more in both)
        numbers.append(able[0] if sure else DOUBT if able else NOBODY)
    return tuple(numbers)
