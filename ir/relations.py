"""Signs and comparisons of integer expressions: proved to hold or not to hold, or else a `Relation`.

The class of expressions calls these functions in its comparisons, so they use only its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .integer_text import text

if TYPE_CHECKING:
    from .integers import Expression, Integer


# ---- signs --------------------------------------------------------------------------------------------
@lru_cache(maxsize=8192)
def is_never_negative(e: Integer) -> bool:
    """Whether an expression is proved to be at least 0 for all values of its symbols."""
    if type(e) is int:
        return bool(e >= 0)
    known = by_operation(e, is_never_negative)
    if known is not None:
        return known
    # With every symbol written as its minimum plus something >= 0, a polynomial without negative
    # coefficients cannot be negative.
    shift: dict[str, Integer] = {}
    for atom in e.atoms():
        name, least = atom.args
        if least is None:
            return False
        if least:
            shift[name] = atom.at({}) + least
    shifted = e.at(shift)
    return min([shifted] if type(shifted) is int else shifted.terms.values()) >= 0


def by_operation(e: Expression, proved: Callable[[Integer], bool]) -> bool | None:
    """Whether ``e >= 0`` is proved with its first operation (such as a division) replaced by bounds of it;
    None if it has no operations."""
    atom = min((a for a in e.atoms() if a.kind != "symbol"), key=lambda a: (-a.key[0], a.key), default=None)
    if atom is None:
        return None
    slope, rest = e.split(lambda one: one == atom)
    if type(slope) is not int or (type(rest) is not int and atom in rest.atoms()):
        return False
    up = slope > 0
    if atom.kind in ("max", "min"):
        proofs = (proved(slope * arg + rest) for arg in atom.args)
        # a sum with +max is at least that with any one argument; with +min every one must do
        return any(proofs) if (atom.kind == "max") == up else all(proofs)
    top, bottom = atom.args
    if type(bottom) is not int or bottom <= 0:
        return False
    if atom.kind == "mod":
        return proved(rest if up else slope * (bottom - 1) + rest)
    if abs(slope) == 1:  # an integer less a part of one below 1 is not negative where the integer is not
        return proved(slope * top + bottom * rest + (0 if up else bottom - 1))
    return proved(slope * (top - (bottom - 1 if up else 0)) + bottom * rest)


# ---- relations ----------------------------------------------------------------------------------------
class Relation:
    """A comparison of two integer expressions that holds for some values of the symbols only.

    Attributes
    ----------
    sign : str
        ``==``, ``!=``, ``<=``, ``<``, ``>=`` or ``>``.
    left, right : int or Expression
    """

    __slots__ = ("left", "right", "sign")

    def __init__(self, sign: str, left: Integer, right: Integer) -> None:
        self.sign, self.left, self.right = sign, left, right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relation) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return Relation, self._parts()

    def __bool__(self) -> bool:
        raise TypeError(f"whether {self} depends on its symbols")

    def __repr__(self) -> str:
        return f"{text(self.left)} {self.sign} {text(self.right)}"

    def _parts(self) -> tuple[str, Integer, Integer]:
        return self.sign, self.left, self.right

    @property
    def names(self) -> frozenset[str]:
        """The names of the symbols in both sides."""
        return frozenset[str]().union(
            *[side.names for side in (self.left, self.right) if type(side) is not int]
        )

    def at(self, values: Mapping[str, Integer]) -> Relation | bool:
        """Return the relation with symbols replaced, all at once."""
        left, right = (side if type(side) is int else side.at(values) for side in (self.left, self.right))
        return compare(self.sign, left, right)

    def least_zero(self) -> list[Integer]:
        """Return expressions that are at least 0 if the relation holds."""
        d = self.left - self.right
        match self.sign:
            case "==":
                return [d, -d]
            case "<=":
                return [-d]
            case "<":
                return [-d - 1]
            case ">=":
                return [d]
            case ">":
                return [d - 1]
        return []


def compare(sign: str, left: Integer, right: Integer) -> Relation | bool:
    """Return whether a comparison holds, or the relation if that depends on the symbols or is not known."""
    d = left - right
    if sign in ("<=", "<"):
        d = -d
    if sign in ("==", "!="):
        if type(d) is int:
            return (d == 0) == (sign == "==")
        if is_never_negative(d - 1) or is_never_negative(-d - 1):
            return sign == "!="
        return Relation(sign, left, right)
    if sign in (">", "<"):
        d = d - 1
    if is_never_negative(d):
        return True
    return False if is_never_negative(-d - 1) else Relation(sign, left, right)
