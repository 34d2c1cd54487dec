"""Affine integer expressions of loop variables and integer arguments, for addresses and bounds in kernels."""

from __future__ import annotations

from dcarray.ir.records import record


@record(frozen=True, slots=True)
class Term:
    """A term ``coef * arg * var``: an integer, an integer argument and a loop variable (None: factor 1)."""

    coef: int
    arg: str | None = None
    var: str | None = None


@record(frozen=True, slots=True)
class Affine:
    """``const`` plus the sum of the terms.  Build it with ``affine``, which keeps it canonical."""

    const: int = 0
    terms: tuple[Term, ...] = ()


def affine(const: int = 0, *terms: Term | Affine) -> Affine:
    """Return the canonical sum of a constant, terms and other affine expressions."""
    total: dict[tuple[str, str], int] = {}
    todo = list(terms)
    for item in todo:
        if isinstance(item, Affine):
            const += item.const
            todo.extend(item.terms)
        elif item.arg is None and item.var is None:
            const += item.coef
        else:
            key = (item.var or "", item.arg or "")
            total[key] = total.get(key, 0) + item.coef
    merged = (Term(coef, arg or None, var or None) for (var, arg), coef in sorted(total.items()) if coef)
    return Affine(const, tuple(merged))
