"""Stores past the caches, of elements that would have left them anyhow before they are read.

An ordinary store first loads the line of the cache that it writes to, so that memory is asked twice for what
is written.  A store of whole lines that go to memory at once does without (nontemporal, or streaming, stores:
Intel, 64 and IA-32 Architectures Optimization Reference Manual, chapter on software prefetching).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Region
from dcarray.lowering.cpu import caches
from dcarray.lowering.kernel.nodes import Affine, Binding, For, If, Kernel, Pointer, Stmt, Store, Term
from dcarray.lowering.nest.access import total

__all__ = ["stream_stores"]

LONG = 512  # bytes of a row: the lines that its ends share with others are stored as ever


def stream_stores(kernel: Kernel, binding: Binding, region: Region) -> Kernel:
    """The kernel with stores past the caches where it only writes a large array, row by row.

    Parameters
    ----------
    kernel : Kernel
        Of statements that are not repeated: to what it has written it does not come back.
    binding : Binding
        Where its buffers are.
    region : Region

    Returns
    -------
    Kernel
        It does the same.
    """
    buffers = _written(kernel, binding, region)
    if not buffers:
        return kernel
    hints, ints = SizeHints(region), dict(zip(kernel.ints, binding.ints, strict=True))

    def number(name: str) -> int:
        return hints(ints[name])

    def loop(body: tuple[Stmt, ...], var: str, length: int) -> tuple[Stmt, ...]:
        # One store of a loop, since the lines of another may begin in other turns.
        for place, stmt in enumerate(body):
            if isinstance(stmt, Store) and stmt.buffer in buffers and _along(stmt.at, var):
                if length * stmt.value.dtype.itemsize < LONG:
                    return body
                return (*body[:place], replace(stmt, nontemporal=True), *body[place + 1 :])
        return body

    def inside(stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind="vector", step=1):
                return replace(stmt, body=loop(stmt.body, stmt.var, _length(stmt, number)))
            case For():
                return replace(stmt, body=tuple(map(inside, stmt.body)))
            case If():
                then, orelse = tuple(map(inside, stmt.then)), tuple(map(inside, stmt.orelse))
                return replace(stmt, then=then, orelse=orelse)
        return stmt

    phases = []
    for phase, extent in zip(kernel.phases, binding.extents, strict=True):
        if phase.kind == "vector":
            body = loop(phase.body, phase.var, hints(extent))
        else:
            body = tuple(map(inside, phase.body))
        phases.append(replace(phase, body=body))
    return replace(kernel, phases=tuple(phases))


def _written(kernel: Kernel, binding: Binding, region: Region) -> set[str]:
    """The buffers of large arrays of which the kernel reads nothing."""
    arrays = {array.name: array for array in region.arrays}
    roots: dict[str, str] = {}
    for buffer, pointer in zip(kernel.buffers, binding.pointers, strict=True):
        if isinstance(pointer, Pointer) and pointer.array in arrays:
            roots[buffer.name] = arrays[pointer.array].base or pointer.array
    read = {roots.get(buffer.name) for buffer in kernel.buffers if "r" in buffer.access}

    def large(name: str) -> bool:
        size = total((*arrays[name].shape, arrays[name].dtype.itemsize))
        # Asked only where it is likely: with sizes that vary, the answer is what the plan is bound to.
        return (
            SizeHints(region)(size) >= caches.streaming_threshold()
            and dims.prove_le(caches.streaming_threshold(), size) is True
        )

    return {
        buffer.name
        for buffer in kernel.buffers
        if buffer.name in roots and roots[buffer.name] not in read and large(roots[buffer.name])
    }


def _along(at: Affine, var: str) -> bool:
    """Does it move element by element with a loop?"""
    return [term for term in at.terms if term.var == var] == [Term(1, None, var)]


def _length(loop: For, number: Callable[[str], int]) -> int:
    """How many turns a loop has, but for the last piece of a row; 0 if that is not known."""
    return min(_apart(bound, loop.lower, number) for bound in loop.upper)


def _apart(bound: Affine, start: Affine, number: Callable[[str], int]) -> int:
    """How far a bound is from where a loop starts; 0 if that is not known."""
    found = bound.const - start.const
    for term in set(bound.terms) - set(start.terms):
        if term.var is not None or term.arg is None:
            return 0
        found += term.coef * number(term.arg)
    return found
