"""Specialisation of kernels: known strides and inner extents become constants in the kernel's text.

A kernel whose strides are arguments computes an address for each window, and the number of vectors, in each
row.  With constants, all windows share one address, and rows are straight-line code.  But such a kernel is
for these sizes only, so only kernels that are launched in each iteration of a loop are specialised fully."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from operator import is_
from typing import Any

from .affine import Affine, Term, affine
from .nodes import Binding, For, Kernel
from .walk import walk_statements

#: Integers up to this seldom vary between calls: the coordinates of points, the channels of pictures.
MAX_CONSTANT = 8


def specialise(kernel: Kernel, binding: Binding, most: int | None = None) -> tuple[Kernel, Binding]:
    """Return the kernel with known strides and known extents of innermost loops as constants.

    The trip counts of outer loops stay arguments, so that these are not unrolled.

    Parameters
    ----------
    kernel : Kernel
    binding : Binding
        An integer argument is known if it is a Python int here, and the same in a second launch.
    most : int, optional
        Specialise only integers up to this one.

    Returns
    -------
    kernel : Kernel
    binding : Binding
        The binding without the integers that became constants.  Both are the same objects if there are none.
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
    phases, routines = _with((kernel.phases, kernel.routines), known)
    new = Kernel(kernel.buffers, names, phases, routines)
    return new, left(binding)


def _counts(kernel: Kernel) -> list[Affine]:
    """Return the bounds of phases and of outer loops."""
    bounds = [phase.extent for phase in kernel.phases]
    bodies = [*[phase.body for phase in kernel.phases], *[routine.body for routine in kernel.routines]]
    for body in bodies:
        for stmt in walk_statements(body):
            if isinstance(stmt, For) and stmt.kind == "serial":
                bounds += (stmt.lower, *stmt.floors, *stmt.upper)
    return bounds


def _with(thing: Any, known: Mapping[str, int]) -> Any:
    """Return a part of a kernel with the values ``known`` substituted for integer arguments."""
    if isinstance(thing, Affine):
        if not any(term.arg in known for term in thing.terms):
            return thing
        return affine(thing.const, *(_term(term, known) for term in thing.terms))
    if isinstance(thing, tuple):
        items = [_with(part, known) for part in thing]
        return thing if all(map(is_, items, thing)) else tuple(items)
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {name: getattr(thing, name) for name in thing.__dataclass_fields__}
        replaced = {name: new for name, part in parts.items() if (new := _with(part, known)) is not part}
        return replace(thing, **replaced) if replaced else thing
    return thing


def _term(term: Term, known: Mapping[str, int]) -> Term:
    if term.arg is None or term.arg not in known:
        return term
    return Term(term.coef * known[term.arg], None, term.var)
