"""Symbolic sizes as plain data: what ``dc.symbol`` gives, and sums of them with integer factors."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword

from dcarray.ir.records import record

__all__ = ["LARGEST", "SymbolicSize", "symbol"]

#: The largest value of a size, and of an integer argument, for which a program is compiled.
LARGEST = (1 << 40) - 1
_TAKEN = frozenset({"min", "max", "range", "region", "symbols", "inout", "out", "temp"})


@record(frozen=True, slots=True)
class SymbolicSize:
    """A sum of symbolic sizes with integer factors, and a constant.

    Attributes
    ----------
    factors : tuple of (str, int)
        The names of the symbols in order, with their factors, which are not 0.
    constant : int
    """

    factors: tuple[tuple[str, int], ...]
    constant: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its symbols."""
        return tuple([name for name, _ in self.factors])

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return its value; raises KeyError for a symbol without one."""
        return self.constant + sum(factor * sizes[name] for name, factor in self.factors)

    def _plus(self, other: object, sign: int) -> SymbolicSize:
        if type(other) is int:
            return SymbolicSize(self.factors, self.constant + sign * other)
        if not isinstance(other, SymbolicSize):
            raise TypeError(f"a size is added to {type(other).__name__}")
        sums = dict(self.factors)
        for name, factor in other.factors:
            sums[name] = sums.get(name, 0) + sign * factor
        factors = tuple(sorted((name, factor) for name, factor in sums.items() if factor))
        return SymbolicSize(factors, self.constant + sign * other.constant)

    def __add__(self, other: object) -> SymbolicSize:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> SymbolicSize:
        return self._plus(other, -1)

    def __rsub__(self, other: object) -> SymbolicSize:
        return (-self)._plus(other, 1)

    def __neg__(self) -> SymbolicSize:
        return self * -1

    def __mul__(self, other: object) -> SymbolicSize:
        if type(other) is not int:
            raise TypeError(f"a symbolic size is multiplied by {type(other).__name__}, and not by an int")
        factors = tuple([(name, factor * other) for name, factor in self.factors if other])
        return SymbolicSize(factors, self.constant * other)

    __rmul__ = __mul__

    def __str__(self) -> str:
        text = ""
        for name, factor in self.factors:
            size = name if abs(factor) == 1 else f"{abs(factor)}*{name}"
            text += (" - " if text else "-") + size if factor < 0 else (" + " if text else "") + size
        if self.constant and text:
            return f"{text} {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text or str(self.constant)

    def __repr__(self) -> str:
        return str(self)


def symbol(name: str) -> SymbolicSize:
    """Return a symbolic size: an axis' length that is known at the call only.

    Parameters
    ----------
    name : str
        An identifier.  Equal names are one size.

    Raises
    ------
    TypeError, ValueError
        If the name is no string, or no identifier.
    """
    if not isinstance(name, str):
        raise TypeError(f"symbol() takes a name, not {type(name).__name__}")
    if not name.isidentifier() or iskeyword(name) or name in _TAKEN or name.startswith("_"):
        raise ValueError(f"symbol() takes an identifier that is not a reserved word, not {name!r}")
    return SymbolicSize(((name, 1),))
