"""Kernels that run again and again with the same sizes have them in their text.

A kernel whose strides are arguments computes an address for each window in each row, and asks in each row
how many vectors there are.  Where they are constants, one address serves, and rows are straight code.  It
serves no other sizes then; so only what is launched in every turn of a loop is made like that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .affine import Affine, Term, affine
from .nodes import Binding, For, Kernel
from .walk import walk_statements

#: What is no larger seldom varies: the coordinates of points, the channels of pictures.
SMALL = 8


def specialise(kernel: Kernel, binding: Binding, most: int | None = None) -> tuple[Kernel, Binding]:
    """The kernel with its strides, and the lengths of its innermost loops, as constants where they are known.

    How often the loops around those run stays an argument: they are not to be unrolled.

    Parameters
    ----------
    kernel : Kernel
    binding : Binding
        Its integers that are Python's own are known, if a second launch has the same.
    most : int, optional
        Only those up to this one.

    Returns
    -------
    kernel : Kernel
    binding : Binding
        Without the integers that are constants now; the same objects if there are none.
    """
    if binding.then is not None and binding.then.then is not None:
        return kernel, binding
    again = binding.ints if binding.then is None else binding.then.ints
    counts = {term.arg for at in _counts(kernel) for term in at.terms}
    known = {
        name: value
        for name, value, other in zip(kernel.ints, binding.ints, again, strict=True)
        if type(value) is type(other) is int and value == other and name not in counts
        if most is None or abs(value) <= most
    }
    if not known:
        return kernel, binding

    def left(bound: Binding) -> Binding:
        ints = (v for name, v in zip(kernel.ints, bound.ints, strict=True) if name not in known)
        return replace(bound, ints=tuple(ints), then=None if bound.then is None else left(bound.then))

    names = tuple(name for name in kernel.ints if name not in known)
    made = Kernel(kernel.buffers, names, _with(kernel.phases, known))
    return made, left(binding)


def _counts(kernel: Kernel) -> list[Affine]:
    """How far phases and loops around others go."""
    found = [phase.extent for phase in kernel.phases]
    for phase in kernel.phases:
        for stmt in walk_statements(phase.body):
            if isinstance(stmt, For) and stmt.kind == "serial":
                found += (stmt.lower, *stmt.floors, *stmt.upper)
    return found


def _with(thing: Any, known: Mapping[str, int]) -> Any:
    """A part of a kernel with these values of integer arguments."""
    if isinstance(thing, Affine):
        return affine(thing.const, *(_term(term, known) for term in thing.terms))
    if isinstance(thing, tuple):
        return tuple([_with(part, known) for part in thing])
    if is_dataclass(thing) and not isinstance(thing, type):
        replaced = {field.name: _with(getattr(thing, field.name), known) for field in fields(thing)}
        return replace(thing, **replaced)
    return thing


def _term(term: Term, known: Mapping[str, int]) -> Term:
    if term.arg is None or term.arg not in known:
        return term
    return Term(term.coef * known[term.arg], None, term.var)
