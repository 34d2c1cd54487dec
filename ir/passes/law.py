"""Laws: algebraic rewrites that passes apply; and equations that do not hold for floating-point numbers."""

from __future__ import annotations

from typing import Literal

from dcarray.ir.records import record

__all__ = ["Law", "NoLaw"]


@record(frozen=True, slots=True)
class Law:
    """An algebraic rewrite: two ways to compute the same values, the second of which is faster.

    Attributes
    ----------
    name : str
    by : str
        The pass that replaces one by the other.
    keeps : str
        "bits": the results are the same; "sums": sums are added up in another order (or by a library), and
        warnings may come for other elements.
    when : str
        The conditions under which the pass applies it.
    before, after : str
        In NumPy: code that makes ``r`` of ``a``, ``b``, ``x``, ``y``.
    region, rewritten : str
        The texts of two regions.
    """

    name: str
    by: str
    keeps: Literal["bits", "sums"]
    when: str
    before: str
    after: str
    region: str
    rewritten: str


@record(frozen=True, slots=True)
class NoLaw:
    """An equation that holds for real numbers but not for floating-point numbers, so that no pass uses it.

    Attributes
    ----------
    left, right : str
        Expressions of NumPy.
    why : str
    example : str
        Code that makes the operands for which they differ.
    """

    left: str
    right: str
    why: str
    example: str
