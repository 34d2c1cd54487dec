"""C expressions of dimensions, in 64-bit integers."""

from __future__ import annotations

from dcarray.ir import dims
from dcarray.ir.integers import Atom, Product
from dcarray.ir.nodes import Dim


def variable(name: str) -> str:
    """Return the C name of a loop's variable."""
    return f"at_{name}"


def dimension(dim: Dim) -> str:
    """Return a dimension as an expression of C over the variables of loops, with parentheses where needed."""
    return str(dim) if type(dim) is int else _text(dims.simplify(dim))


def _text(dim: Dim) -> str:
    if type(dim) is int:
        return str(dim)
    parts = sorted([_product(product, count) for product, count in dim.terms.items()])
    return parts[0] if len(parts) == 1 else "(" + " + ".join(parts) + ")"


def _product(product: Product, count: int) -> str:
    factors = [_atom(atom) for atom in product]
    if count != 1 or not factors:
        factors.append(str(count))
    return factors[0] if len(factors) == 1 else "(" + " * ".join(sorted(factors)) + ")"


def _atom(atom: Atom) -> str:
    if atom.kind == "symbol":
        return variable(atom.args[0])
    first, *others = map(_text, atom.args)
    if atom.kind == "floor":
        (by,) = others
        return f"(({first} - {_modulo(first, by)}) / {by})"
    if atom.kind == "mod":
        return _modulo(first, *others)
    first, *others = sorted((first, *others))
    sign = ">" if atom.kind == "max" else "<"
    for other in others:
        first = f"({first} {sign} {other} ? {first} : {other})"
    return first


def _modulo(a: str, b: str) -> str:
    """Return the C expression of Python's ``a % b`` for a positive ``b``."""
    return f"(({a} % {b} + {b}) % {b})"
