"""Dimensions as expressions of C, for integers of 64 bits."""

from __future__ import annotations

from dcarray.ir import dims
from dcarray.ir.nodes import Dim


def variable(name: str) -> str:
    """The name in C of a loop's variable."""
    return f"at_{name}"


def dimension(dim: Dim) -> str:
    """Return a dimension as an expression of C over the variables of loops, with parentheses where needed."""
    return str(dim) if type(dim) is int else _text(dims.simplify(dim))


def _text(dim: Dim) -> str:
    if type(dim) is int:
        return str(dim)
    if dim.is_Integer:
        return str(int(dim))
    if dim.is_Symbol:
        return variable(dim.name)
    if dim.is_Add or dim.is_Mul:
        top, bottom = dim.as_numer_denom()
        if bottom != 1:
            raise ValueError(f"{dim} is no integer by its form")
        return "(" + (" + " if dim.is_Add else " * ").join(sorted(map(_text, dim.args))) + ")"
    if dim.is_Pow and dim.exp.is_Integer and dim.exp > 0:
        return "(" + " * ".join([_text(dim.base)] * int(dim.exp)) + ")"
    name = type(dim).__name__
    if name == "floor":
        top, bottom = dim.args[0].together().as_numer_denom()
        a, b = _text(top), _text(bottom)
        return f"(({a} - {_modulo(a, b)}) / {b})"
    if name == "Mod":
        return _modulo(*map(_text, dim.args))
    if name in ("Max", "Min"):
        sign = ">" if name == "Max" else "<"
        first, *others = sorted(map(_text, dim.args))
        for other in others:
            first = f"({first} {sign} {other} ? {first} : {other})"
        return first
    raise ValueError(f"a dimension cannot hold {dim!r}")


def _modulo(a: str, b: str) -> str:
    """The remainder that has the sign of the positive divisor, as Python's."""
    return f"(({a} % {b} + {b}) % {b})"
