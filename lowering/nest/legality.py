"""Legality of loop nests: the conditions under which statements may run point by point.

A statement means that everything is read before anything is written.  A loop nest preserves that if each
element that is written is read at the same point of the domain only, or not at all.

`dcarray.ir.analysis.independence` decides whether the iterations of a loop *statement* may run in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.nodes import Compute, Expr, Gather, Load, Window
from dcarray.lowering.errors import Unsupported

from .access import Memory, dense, equal

COMPILED = frozenset("?bhilqBHILQefdFD")  # type characters that kernels can hold


def used_axes(window: Window) -> frozenset[int]:
    """Return the domain axes that a window depends on; raise `Unsupported` if that is not known."""
    axes = set()
    for index in window.index:
        if index.axis is None or equal(index.stride, 0):
            continue
        if type(index.stride) is not int and dims.prove_eq(index.stride, 0) is not False:
            raise Unsupported("a stride may be zero")
        axes.add(index.axis)
    return frozenset(axes)


def reduced_axes(compute: Compute) -> frozenset[int]:
    """Return the domain axes that a statement reduces; raise `Unsupported` if it writes an element more than
    once without being a reduction."""
    shape = compute.target.shape
    axes = frozenset(range(len(shape))) - used_axes(compute.target)
    axes = frozenset(axis for axis in axes if not equal(shape[axis], 1))
    if axes and compute.combine is None:
        raise Unsupported("an element is written more than once")
    return axes


def check_types(*roots: Expr) -> None:
    """Check that kernels support the dtypes of all values; raise `Unsupported` if not."""
    for node in windows.walk(*roots):
        dtype: np.dtype[Any] = getattr(node, "dtype")  # noqa: B009
        if dtype.char not in COMPILED or not dtype.isnative:
            raise Unsupported(f"dtype {dtype} does not compile")


def check(computes: Sequence[Compute], memory: Memory) -> None:
    """Raise `Unsupported`, with the reason, if dtypes are wrong or statements cannot run point by point."""
    for compute in computes:
        check_types(compute.body, *([compute.init] if compute.init else []))
        if not dense(memory.arrays[compute.target.array]):
            raise Unsupported(f"elements of {compute.target.array} may share memory")
    folds = [bool(reduced_axes(compute)) for compute in computes]
    for number, writer in enumerate(computes):
        target = writer.target
        for other, compute in enumerate(computes):
            for load in windows.loads(compute.body):
                _apart(target, load, folds[number], memory)
            if compute.init is not None:
                for load in windows.loads(compute.init):
                    if not memory.disjoint(target, load.window) or isinstance(load, Gather):
                        raise Unsupported(f"overlap: an initial value reads {target.array}, which is written")
            if other > number and not memory.disjoint(target, compute.target):
                folding = folds[number] or folds[other]
                if folding or not memory.identical(target, compute.target):
                    raise Unsupported(f"overlap: {target.array} is written twice")


def _apart(target: Window, load: Load | Gather, folding: bool, memory: Memory) -> None:
    """Raise `Unsupported` if a load may read an element that another point of the domain writes."""
    window = load.window
    if memory.family(window.array) != memory.family(target.array):
        return
    if not isinstance(load, Gather):
        if memory.disjoint(target, window):
            return
        if not folding and memory.identical(target, window):
            return
    raise Unsupported(f"overlap: {window.array} is read where {target.array} is written")
