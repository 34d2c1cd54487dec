"""The text of integer expressions, made from their terms alone, without importing their classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .integers import Atom, Expression, Integer, Product

_PRODUCT = 3  # the rank of a product: between symbols and operations


@lru_cache(maxsize=8192)
def text(dim: Integer) -> str:
    """Return an expression as text that is also a Python expression in exact integers."""
    if type(dim) is int:
        return str(dim)
    return "".join(_signed(dim))


def _signed(dim: Expression) -> Iterator[str]:
    first = True
    for product, count in sorted(dim.terms.items(), key=_order):  # the constant goes last
        yield "-" if count < 0 else "" if first else "+"
        first = False
        factors = [_atom(atom) for atom in product]
        yield "*".join(factors if abs(count) == 1 and factors else [str(abs(count)), *factors])


def _order(term: tuple[Product, int]) -> tuple[Any, ...]:
    product, count = term
    if not product:
        return (1,)
    keys = [atom.key for atom in product]
    if all(atom == product[0] for atom in product):
        return 0, product[0].key[0], 1, keys[:1], len(keys), count
    return 0, _PRODUCT, len(keys), keys, 1, count


def only_atom(dim: Integer) -> Atom | None:
    """Return the atom that an expression consists of; None if it is not a single atom."""
    if type(dim) is int or len(dim.terms) != 1:
        return None
    ((product, count),) = dim.terms.items()
    return product[0] if count == 1 and len(product) == 1 else None


def _atom(atom: Atom) -> str:
    if atom.kind == "symbol":
        return str(atom.args[0])
    if atom.kind in ("max", "min"):
        return f"{atom.kind}({', '.join(sorted(map(text, atom.args)))})"
    top, bottom = atom.args
    single = type(bottom) is int or (only_atom(bottom) is not None)
    by = text(bottom) if single else f"({text(bottom)})"
    return f"(({text(top)}){'//' if atom.kind == 'floor' else '%'}{by})"
