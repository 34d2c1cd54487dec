"""Integer expressions with symbols: sums of products of symbols, floor divisions, remainders, maxima, minima.

Each has one canonical form, in which products are expanded, so that equal forms are equal expressions.  What
is a number without symbols is always an ``int``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import gcd
from typing import Any, Final, Literal, TypeAlias

from .integer_text import only_atom, text
from .relations import Relation, compare, is_never_negative

Kind = Literal["symbol", "max", "min", "mod", "floor"]
_RANKS: Final[dict[str, int]] = {"symbol": 2, "floor": 4, "mod": 5, "max": 6, "min": 7}
_NONE: Final[frozenset[str]] = frozenset()


class Atom:
    """A factor of a product: a symbol, or an operation on other expressions.

    Attributes
    ----------
    kind : str
    args : tuple
        The operands, the dividend first; of a symbol its name and its least value (None: any integer).
    names : frozenset of str
        The symbols in it.
    key : tuple
        What orders atoms, the same in every process.
    """

    __slots__ = ("_hash", "args", "key", "kind", "names")

    def __init__(self, kind: Kind, args: tuple[Any, ...]) -> None:
        self.kind, self.args = kind, args
        self._hash = hash((kind, args))
        if kind == "symbol":
            name, minimum = args
            self.names = frozenset((name,))
            self.key: tuple[Any, ...] = (_RANKS[kind], name, minimum is not None, minimum or 0)
        else:
            self.names = _NONE.union(*[arg.names for arg in args if type(arg) is not int])
            self.key = (_RANKS[kind], len(args), tuple([_key(arg) for arg in args]))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Atom
            and self._hash == other._hash
            and self.kind == other.kind
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:  # hashes of strings differ from process to process
        return Atom, (self.kind, self.args)

    def is_symbol(self, name: str) -> bool:
        """Whether the atom is the symbol with this name."""
        return self.kind == "symbol" and self.args[0] == name

    def at(self, values: Mapping[str, Integer]) -> Integer:
        """Return the atom with the symbols in ``values`` replaced."""
        if self.kind == "symbol":
            value = values.get(self.args[0])
            return _of_atom(self) if value is None else value
        if self.names.isdisjoint(values):
            return _of_atom(self)
        return _MAKERS[self.kind](*[arg if type(arg) is int else arg.at(values) for arg in self.args])


Product: TypeAlias = tuple[Atom, ...]  # in the order of their keys


class Expression:
    """An integer expression with symbols; plain numbers are ints.  See the module.

    Attributes
    ----------
    terms : dict
        The coefficients, none of them 0, of products of atoms.
    """

    __slots__ = ("_hash", "_names", "terms")
    __array_ufunc__ = None  # an integer of NumPy's leaves arithmetic to the methods here

    def __init__(self, terms: dict[Product, int]) -> None:
        self.terms = terms
        self._hash: int | None = None
        self._names: frozenset[str] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the symbols in the expression."""
        if self._names is None:
            self._names = _NONE.union(*[atom.names for product in self.terms for atom in product])
        return self._names

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Expression and hash(self) == hash(other) and self.terms == other.terms
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_terms, (self.terms,)

    def __repr__(self) -> str:
        return text(self)

    # ---- arithmetic -----------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Integer:
        terms = dict(self.terms)
        for product, count in terms_of(other).items():
            total = terms.get(product, 0) + count
            if total:
                terms[product] = total
            else:
                del terms[product]
        return _of_terms(terms)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return Expression({product: -count for product, count in self.terms.items()})

    def __sub__(self, other: Any) -> Integer:
        return self + (-other)

    def __rsub__(self, other: Any) -> Integer:
        return -self + other

    def __mul__(self, other: Any) -> Integer:
        if type(other) is not Expression:
            factor = operator.index(other)
            if factor == 1:
                return self
            return Expression({p: count * factor for p, count in self.terms.items()}) if factor else 0
        terms: dict[Product, int] = {}
        for a, n in self.terms.items():
            for b, m in other.terms.items():
                product = tuple(sorted((*a, *b), key=_key_of)) if a and b else a or b
                terms[product] = terms.get(product, 0) + n * m
        return _of_terms({product: count for product, count in terms.items() if count})

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Integer:
        power: Integer = 1
        for _ in range(exponent):
            power = self * power
        return power

    def __abs__(self) -> Integer:
        return maximum(self, -self)

    def __floordiv__(self, other: Any) -> Integer:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Integer:
        return floor_divide(other, self)

    def __mod__(self, other: Any) -> Integer:
        return remainder(self, other)

    def __rmod__(self, other: Any) -> Integer:
        return remainder(other, self)

    # ---- relations ------------------------------------------------------------------------------------
    def __ge__(self, other: Any) -> Relation | bool:
        return compare(">=", self, other)

    def __gt__(self, other: Any) -> Relation | bool:
        return compare(">", self, other)

    def __le__(self, other: Any) -> Relation | bool:
        return compare("<=", self, other)

    def __lt__(self, other: Any) -> Relation | bool:
        return compare("<", self, other)

    # ---- parts ----------------------------------------------------------------------------------------
    def atoms(self) -> set[Atom]:
        """Return the factors of all products."""
        return {atom for product in self.terms for atom in product}

    def symbols(self) -> set[Atom]:
        """Return the symbols, also those inside of operations."""
        symbols = set()
        for atom in self.atoms():
            if atom.kind == "symbol":
                symbols.add(atom)
            else:
                symbols.update(*[arg.symbols() for arg in atom.args if type(arg) is not int])
        return symbols

    def split(self, chosen: Callable[[Atom], bool]) -> tuple[Integer, Integer]:
        """Return ``(a, b)`` where ``a`` is the sum of the terms with exactly one chosen atom, without that
        atom, and ``b`` the sum of the other terms."""
        factor: dict[Product, int] = {}
        rest: dict[Product, int] = {}
        for product, count in self.terms.items():
            hits = [k for k, atom in enumerate(product) if chosen(atom)]
            if len(hits) == 1:
                left = product[: hits[0]] + product[hits[0] + 1 :]
                factor[left] = factor.get(left, 0) + count
            else:
                rest[product] = count
        return _of_terms({product: count for product, count in factor.items() if count}), _of_terms(rest)

    def at(self, values: Mapping[str, Integer]) -> Integer:
        """Return the expression with symbols replaced, all at once."""
        if self.names.isdisjoint(values):
            return self
        kept: dict[Product, int] = {}
        total: Integer = 0
        for product, count in self.terms.items():
            if all(atom.names.isdisjoint(values) for atom in product):
                kept[product] = count
                continue
            part: Integer = count
            for atom in product:
                part = part * atom.at(values)
            total = total + part
        return _of_terms(kept) + total


Integer: TypeAlias = Any  # int | Expression: arithmetic on either gives either


def _key_of(atom: Atom) -> tuple[Any, ...]:
    return atom.key


def _key(dim: Integer) -> tuple[Any, ...]:
    """Return the key by which operands of atoms are sorted."""
    return tuple(sorted([(tuple([a.key for a in product]), n) for product, n in terms_of(dim).items()]))


def terms_of(dim: Any) -> dict[Product, int]:
    if type(dim) is Expression:
        return dim.terms
    number = operator.index(dim)
    return {(): number} if number else {}


def _of_terms(terms: dict[Product, int]) -> Integer:
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Expression(terms)


@lru_cache(maxsize=8192)
def _of_atom(atom: Atom) -> Expression:
    return Expression({(atom,): 1})


@lru_cache(maxsize=8192)
def symbol(name: str, minimum: int | None = 0) -> Expression:
    """Return a symbol that is at least ``minimum`` (None: any integer)."""
    return _of_atom(Atom("symbol", (name, minimum)))


# ---- operations ---------------------------------------------------------------------------------------
def _quotient(product: Product, count: int, by: Product, number: int) -> tuple[Product, int] | None:
    """Return the term ``count * product`` divided by ``number * by``; None if the quotient is no term."""
    if count % number:
        return None
    left = list(product)
    for atom in by:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left), count // number


def _divided(top: Integer, bottom: Integer) -> tuple[Integer, Integer]:
    """Return ``(q, r)`` with ``top == q * bottom + r``, where ``q`` has the terms that ``bottom`` divides."""
    if top == bottom:
        return 1, 0
    if type(bottom) is int:
        by: Product = ()
        number = bottom
    elif len(bottom.terms) == 1:
        ((by, number),) = bottom.terms.items()
    else:
        return 0, top
    whole: dict[Product, int] = {}
    rest: dict[Product, int] = {}
    for product, count in terms_of(top).items():
        quotient = _quotient(product, count, by, number)
        if quotient is None:
            rest[product] = count
        else:
            whole[quotient[0]] = quotient[1]
    return _of_terms(whole), _of_terms(rest)


def _common(top: Expression, bottom: int) -> tuple[Integer, int, int]:
    """Return ``top`` without its constant, the constant, and the greatest common divisor of all
    coefficients but that and ``bottom``."""
    constant = top.terms.get((), 0)
    head = top - constant
    return head, constant, gcd(bottom, *terms_of(head).values())


def _exactly(dim: Integer, by: int) -> Integer:
    return _of_terms({product: count // by for product, count in terms_of(dim).items()})


def floor_divide(top: Integer, bottom: Integer) -> Integer:
    """Return the greatest integer that is at most ``top / bottom``."""
    if type(bottom) is int:
        if type(top) is int:
            return top // bottom
        if bottom < 0:
            return floor_divide(-top, -bottom)
    whole, rest = _divided(top, bottom)
    if type(bottom) is int and type(rest) is not int:
        head, constant, common = _common(rest, bottom)
        if common > 1:
            return whole + floor_divide(_exactly(head, common) + constant // common, bottom // common)
        whole, rest = whole + constant // bottom, head + constant % bottom
    elif type(bottom) is int:
        return whole + rest // bottom
    return whole if type(rest) is int and rest == 0 else whole + _of_atom(Atom("floor", (rest, bottom)))


def remainder(top: Integer, bottom: Integer) -> Integer:
    """Return ``top`` modulo ``bottom``, which has the sign of ``bottom``."""
    if type(top) is int and type(bottom) is int:
        return top % bottom
    if type(bottom) is int and bottom < 0:
        return -remainder(-top, -bottom)
    _, rest = _divided(top, bottom)
    if type(rest) is int:
        if rest == 0 or type(bottom) is int:
            return rest and rest % bottom
    elif type(bottom) is int:
        head, constant, common = _common(rest, bottom)
        if common > 1:
            reduced = remainder(_exactly(head, common) + constant // common, bottom // common)
            return reduced * common + constant % common
        rest = head + constant % bottom
    return _of_atom(Atom("mod", (rest, bottom)))


def maximum(*values: Integer) -> Integer:
    """Return the greatest of some values."""
    return _extreme("max", values)


def minimum(*values: Integer) -> Integer:
    """Return the least of some values."""
    return _extreme("min", values)


def _extreme(kind: Literal["max", "min"], values: Iterable[Integer]) -> Integer:
    left: list[Integer] = []
    for value in values:
        inner = only_atom(value)
        left += inner.args if inner is not None and inner.kind == kind else [value]
    sign = 1 if kind == "max" else -1
    kept: list[Integer] = []
    for value in left:
        if not any(is_never_negative(sign * (other - value)) for other in kept):
            kept = [other for other in kept if not is_never_negative(sign * (value - other))]
            kept.append(value)
    return kept[0] if len(kept) == 1 else _of_atom(Atom(kind, tuple(sorted(kept, key=_key))))


_MAKERS: Final[dict[str, Callable[..., Integer]]] = {
    "floor": floor_divide, "mod": remainder, "max": maximum, "min": minimum
}  # fmt: skip
