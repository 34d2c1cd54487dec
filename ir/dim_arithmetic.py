"""Dimensions: their canonical form, symbols, values and text.

Nothing here imports sympy while they are ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from .nodes import Dim


def simplify(dim: Any) -> Dim:
    """Return a dimension in its canonical form: an int when it is one, else an expanded sympy expression."""
    if type(dim) is int:
        return dim
    try:
        return operator.index(dim)
    except TypeError:
        return _expand(dim)


@lru_cache(maxsize=4096)
def _expand(dim: Any) -> Dim:
    dim = dim.expand()
    return int(dim) if dim.is_Integer else dim


def symbol(name: str, minimum: int | None = 0) -> Dim:
    """Return the integer symbol ``name``, at least ``minimum`` (None: any integer, as loop variables are)."""
    from ._symbols import SizeSymbol

    return SizeSymbol(name, minimum)


def free_symbols(dim: Dim) -> frozenset[str]:
    """Return the names of the symbols in ``dim``."""
    if type(dim) is int:
        return frozenset()
    return frozenset(s.name for s in dim.free_symbols)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Return a dimension with the named symbols replaced, all at once."""
    if type(dim) is int:
        return dim
    import sympy

    found = {s: sympy.sympify(values[s.name]) for s in dim.free_symbols if s.name in values}
    return simplify(dim.xreplace(found)) if found else dim


def slope(dim: Dim, var: str) -> Dim | None:
    """Return the coefficient of the variable in ``dim``; None if it is not linear in it."""
    if var not in free_symbols(dim):
        return 0
    found = next(s for s in dim.free_symbols if s.name == var)
    pace = simplify(dim.coeff(found))
    rest = simplify(dim - pace * found)
    return None if var in free_symbols(pace) or var in free_symbols(rest) else pace


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """Return the value of ``dim``; raise KeyError if a symbol has no value."""
    if type(dim) is int:
        return dim
    names, code = _compiled(dim)
    return int(code(*[values[name] for name in names]))


@lru_cache(maxsize=4096)
def _compiled(dim: Any) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(free_symbols(dim)))
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
    for var in sorted(getattr(rest, "free_symbols", ()), key=str):
        if var.name in wanted:
            factor = simplify(rest.coeff(var))
            rest = simplify(rest - factor * var)
            factors[var.name] = factor
    if any(not wanted.isdisjoint(free_symbols(part)) for part in (rest, *factors.values())):
        raise ValueError(f"{show(dim)} is not linear in {', '.join(sorted(wanted))}")
    return rest, factors


def least_of(dim: Dim) -> tuple[Dim, ...]:
    """Return the operands of a ``Min`` at the top of ``dim``, of which it is the least; else ``dim``
    alone."""
    if type(dim) is int:
        return (dim,)
    for atom in dim.args if dim.is_Add else (dim,):
        factor, found = atom.as_coeff_Mul()
        if type(found).__name__ == ("Min" if factor > 0 else "Max"):
            rest = dim - atom
            return tuple(one for arg in found.args for one in least_of(simplify(factor * arg + rest)))
    return (dim,)


def is_number(dim: Dim, value: int) -> bool:
    """Whether a dimension is this constant."""
    return type(dim) is int and dim == value


def show(dim: Dim) -> str:
    """Return a dimension (or a relation) as text that is also a Python expression in exact integers."""
    if type(dim) is int:
        return str(dim)
    return _show(simplify(dim) if not getattr(dim, "is_Relational", False) else dim)


_RELATIONS = {"Equality": "==", "Unequality": "!=", "LessThan": "<=", "StrictLessThan": "<"}
_RELATIONS.update({"GreaterThan": ">=", "StrictGreaterThan": ">"})


@lru_cache(maxsize=4096)
def _show(dim: Any) -> str:
    if isinstance(dim, int):
        return str(dim)
    if dim.is_Relational:
        return f"{show(dim.lhs)} {_RELATIONS[type(dim).__name__]} {show(dim.rhs)}"
    if dim.is_Symbol or dim.is_Integer:
        return str(dim)
    if dim.is_Add:
        out = ""
        # the constant goes last, whatever order sympy keeps
        for term in sorted(dim.args, key=lambda t: (t.is_Integer, t.sort_key())):
            text = _show(term)
            out += text if not out or text.startswith("-") else "+" + text
        return out
    if dim.is_Mul:
        head, *tail = dim.args
        if head == -1:
            return "-" + _factors(tail)
        return _factors(dim.args)
    if dim.is_Pow and dim.exp.is_Integer and dim.exp > 0:
        return _factors([dim.base] * int(dim.exp))
    name = type(dim).__name__
    if name == "floor":
        import sympy

        top, bottom = sympy.fraction(sympy.together(dim.args[0]))
        return f"(({show(simplify(top))})//{_divisor(bottom)})"
    if name == "Mod":
        return f"(({_show(dim.args[0])})%{_divisor(dim.args[1])})"
    if name in ("Max", "Min"):
        args = sorted(_show(a) for a in dim.args)
        return f"{name.lower()}({', '.join(args)})"
    raise ValueError(f"a dimension cannot hold {dim!r}")


def _divisor(dim: Any) -> str:
    return f"({_show(dim)})" if dim.is_Add or dim.is_Mul or dim.is_Pow else _show(dim)


def _factors(factors: Iterable[Any]) -> str:
    return "*".join(f"({_show(f)})" if f.is_Add else _show(f) for f in factors)
