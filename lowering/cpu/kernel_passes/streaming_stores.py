"""Streaming (nontemporal) stores to large arrays, whose elements would leave the caches before they are read.

An ordinary store first loads the cache line that it writes to, which doubles the memory traffic of a write.
A streaming store of whole lines does not (Intel, 64 and IA-32 Architectures Optimization Reference Manual,
chapter on software prefetching).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Region
from dcarray.lowering.cpu import caches
from dcarray.lowering.kernel.nodes import Affine, Binding, For, If, Kernel, Pointer, Stmt, Store
from dcarray.lowering.nest.access import total, unit_step

__all__ = ["stream_stores"]

MIN_ROW_BYTES = 512  # least bytes of a row: the partial lines at its ends are stored as usual


def stream_stores(kernel: Kernel, binding: Binding, region: Region) -> Kernel:
    """Return the kernel with streaming stores to large arrays that it only writes, row by row.

    The kernel's statements must not be in a loop, so that it never reads what it has written.
    """
    buffers = _written(kernel, binding, region)
    if not buffers:
        return kernel
    hints, ints = SizeHints(region), dict(zip(kernel.ints, binding.ints, strict=True))

    def number(name: str) -> int:
        return hints(ints[name])

    def loop(body: tuple[Stmt, ...], var: str, length: int) -> tuple[Stmt, ...]:
        # One store of a loop, since the lines of another may begin in other iterations.
        for place, stmt in enumerate(body):
            if isinstance(stmt, Store) and stmt.buffer in buffers and unit_step(stmt.at, var) == 1:
                if length * stmt.value.dtype.itemsize < MIN_ROW_BYTES:
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
    """Return the buffers of large arrays that the kernel writes and does not read."""
    arrays = {array.name: array for array in region.arrays}
    roots: dict[str, str] = {}
    for buffer, pointer in zip(kernel.buffers, binding.pointers, strict=True):
        if isinstance(pointer, Pointer) and pointer.array in arrays:
            roots[buffer.name] = arrays[pointer.array].base or pointer.array
    read = {roots.get(buffer.name) for buffer in kernel.buffers if "r" in buffer.access}

    def large(name: str) -> bool:
        size = total((*arrays[name].shape, arrays[name].dtype.itemsize))
        # Proved only where the hints say so: with symbolic sizes a proof becomes a guard of the plan.
        return (
            SizeHints(region)(size) >= caches.streaming_threshold()
            and dims.prove_le(caches.streaming_threshold(), size) is True
        )

    return {
        buffer.name
        for buffer in kernel.buffers
        if buffer.name in roots and roots[buffer.name] not in read and large(roots[buffer.name])
    }


def _length(loop: For, number: Callable[[str], int]) -> int:
    """Return the trip count of a loop, except in the last strip of a row; 0 if it is not known."""
    return min(_apart(bound, loop.lower, number) for bound in loop.upper)


def _apart(bound: Affine, start: Affine, number: Callable[[str], int]) -> int:
    """Return the distance of a bound from the start of a loop; 0 if it is not known."""
    distance = bound.const - start.const
    for term in set(bound.terms) - set(start.terms):
        if term.var is not None or term.arg is None:
            return 0
        distance += term.coef * number(term.arg)
    return distance
