"""Dimensions: their canonical form, symbols, values and text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import gcd
from typing import Any

from .integers import Atom, Expression, symbol
from .nodes import Dim
from .relations import Relation

__all__ = [
    "dividends",
    "evaluate",
    "free_symbols",
    "is_number",
    "least_of",
    "linear",
    "show",
    "simplify",
    "slope",
    "span",
    "substitute",
    "symbol",
    "without_factor",
]


def simplify(dim: Any) -> Dim:
    """Return a dimension in canonical form; a NumPy integer becomes an ``int``."""
    return dim if type(dim) is int or type(dim) is Expression else operator.index(dim)


def free_symbols(dim: Dim) -> frozenset[str]:
    """Return the names of the symbols in ``dim``."""
    return frozenset() if type(dim) is int else dim.names


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Return a dimension with the symbols in ``values`` replaced by their values, all at the same time."""
    return dim if type(dim) is int else dim.at(values)


def slope(dim: Dim, var: str) -> Dim | None:
    """Return the coefficient of the variable in ``dim``; None if it is not linear in it."""
    if var not in free_symbols(dim):
        return 0
    pace, rest = dim.split(lambda atom: atom.is_symbol(var))
    return None if var in free_symbols(pace) or var in free_symbols(rest) else pace


def span(dim: Dim, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Return a lower and an upper bound of ``dim``, given such a pair for each symbol; None if a symbol has
    none, or if a divisor is not a positive number."""
    if type(dim) is int:
        return dim, dim
    low = high = 0
    for product, count in dim.terms.items():
        ends = [count, count]
        for atom in product:
            bounds = _atom_span(atom, ranges)
            if bounds is None:
                return None
            values = [a * b for a in ends for b in bounds]
            ends = [min(values), max(values)]
        low, high = low + ends[0], high + ends[1]
    return low, high


def _atom_span(atom: Atom, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    if atom.kind == "symbol":
        return ranges.get(atom.args[0])
    spans = [span(arg, ranges) for arg in atom.args]
    known = [one for one in spans if one is not None]
    if len(known) < len(spans):
        return None
    if atom.kind in ("max", "min"):
        choose = max if atom.kind == "max" else min
        return choose(low for low, _ in known), choose(high for _, high in known)
    (low, high), (divisor, most) = known
    if divisor != most or divisor <= 0:
        return None
    return (0, divisor - 1) if atom.kind == "mod" else (low // divisor, high // divisor)


def without_factor(e: Any) -> Any:
    """Return ``e`` divided by the common factor of its terms with symbols, its constant rounded down: the
    result is at least 0 if and only if ``e`` is."""
    terms = {} if type(e) is int else dict(e.terms)
    constant = terms.pop((), 0)
    factor = gcd(*terms.values())
    if factor < 2:
        return e
    return Expression({product: n // factor for product, n in terms.items()}) + constant // factor


def dividends(e: Any) -> Iterator[Any]:
    """Yield expressions that are at least 0 if ``e`` is: from ``a // 3 >= n`` follows ``a >= 3 * n``."""
    for atom in () if type(e) is int else e.atoms():
        if atom.kind == "floor" and type(atom.args[1]) is int and atom.args[1] > 0:
            pace, rest = e.split(lambda one, atom=atom: one == atom)
            if pace == 1:
                yield simplify(atom.args[0] + atom.args[1] * rest)


def evaluate(dim: Dim | Relation, values: Mapping[str, int]) -> int:
    """Return the value of ``dim``; raise KeyError if a symbol has no value."""
    if isinstance(dim, int):
        return dim
    names, code = _compiled(dim)
    return int(code(*[values[name] for name in names]))


@lru_cache(maxsize=4096)
def _compiled(dim: Any) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(dim.names))
    # Only identifiers, integers and operators that ``show`` wrote reach eval.
    return names, eval(f"lambda {', '.join(names)}: {show(dim)}", {"min": min, "max": max})


def linear(dim: Dim, names: Iterable[str]) -> tuple[Dim, dict[str, Dim]]:
    """Return ``dim`` as a sum, the part without the variables and the coefficient of each variable that
    occurs; raise ValueError if it is no such sum."""
    factors: dict[str, Dim] = {}
    if type(dim) is int:
        return dim, factors
    wanted = set(names)
    rest = simplify(dim)
    for var in sorted(free_symbols(rest) & wanted):
        if type(rest) is not int:
            factors[var], rest = rest.split(lambda atom, var=var: atom.is_symbol(var))
    if any(not wanted.isdisjoint(free_symbols(part)) for part in (rest, *factors.values())):
        raise ValueError(f"{show(dim)} is not linear in {', '.join(sorted(wanted))}")
    return rest, factors


def least_of(dim: Dim) -> tuple[Dim, ...]:
    """Return dimensions whose minimum is ``dim``: the operands of a ``min`` that is a term of it, each with
    the other terms added; ``dim`` alone if it has no such term."""
    if type(dim) is int:
        return (dim,)
    for product, count in sorted(dim.terms.items(), key=lambda term: [atom.key for atom in term[0]]):
        single = product[0] if len(product) == 1 else None
        if single is not None and single.kind == ("min" if count > 0 else "max"):
            rest = dim - Expression({product: count})
            return tuple(one for arg in single.args for one in least_of(count * arg + rest))
    return (dim,)


def is_number(dim: Dim, value: int) -> bool:
    """Return whether a dimension is the constant ``value``."""
    return type(dim) is int and dim == value


def show(dim: Dim | Relation) -> str:
    """Return a dimension or a relation as text that is also a Python expression in exact integers."""
    return str(dim)
