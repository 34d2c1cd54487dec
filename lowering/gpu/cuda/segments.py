"""Segments of a program: what becomes a graph, its nodes, and the order that they need.

A segment is a stretch of launches, copies and fills of memory, unbroken by anything that the host takes part
in.  Loops with constant bounds are unrolled into it while they are short.  The edges are those of
`dcarray.lowering.program.nodes.edges`, derived from windows, so that independent nodes overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from dcarray.ir import dims
from dcarray.ir.analysis.effects import families, touched_arrays
from dcarray.ir.nodes import Array, Compute, Const, Dim, Load, Nest, Region, Rows, Window
from dcarray.ir.records import record
from dcarray.ir.renaming import stmt_at
from dcarray.lowering.kernel.nodes import Binding, Pointer, Scratch
from dcarray.lowering.program import nodes

__all__ = ["Operation", "Segment", "all_segments", "partition"]

LIMIT = 512
"""The most nodes of a graph that loops are unrolled to."""


@record(frozen=True, slots=True)
class Operation:
    """A node of a graph.

    Attributes
    ----------
    kind : str
        A kernel, a copy of memory, or memory filled with one byte.
    launch : Launch
        The kernel, which does the same as a copy or a fill.
    target, source : tuple of str and Dim
        Of a copy or a fill: the array, and the first element in it.
    elements : Dim
        Of a copy or a fill: how many.
    byte : int
    """

    kind: Literal["kernel", "copy", "fill"]
    launch: nodes.Launch
    target: tuple[str, Dim] = ("", 0)
    source: tuple[str, Dim] = ("", 0)
    elements: Dim = 0
    byte: int = 0


@record(frozen=True, slots=True)
class Segment:
    """Operations that become one graph.

    Attributes
    ----------
    operations : tuple of Operation
    before : tuple of frozenset of int
        For each operation the earlier ones that it has to follow, without those that others imply.
    temporaries : tuple of Array
        Arrays that live in this segment only.
    uses : tuple of tuple of int
        For each temporary the operations that touch it; then, for each memory that a launch needs for
        itself, that launch.
    earlier : tuple of Alloc
        Memory that outlives the segment.
    later : tuple of Free
        Memory from before the segment.
    """

    operations: tuple[Operation, ...]
    before: tuple[frozenset[int], ...]
    temporaries: tuple[Array, ...]
    uses: tuple[tuple[int, ...], ...]
    earlier: tuple[nodes.Alloc, ...]
    later: tuple[nodes.Free, ...]


def partition(body: Iterable[nodes.Node], region: Region) -> Iterator[Segment | nodes.Node]:
    """Yield the segments of a body, and the nodes between them."""
    pending: list[nodes.Node] = []
    for node in body:
        if isinstance(node, nodes.Stop):  # no flags are raised
            continue
        straight = _unrolled(node, LIMIT - len(pending))
        if straight is None:
            yield from _segment(pending, region)
            pending = []
            straight = _unrolled(node, LIMIT)
        if straight is None:
            yield node
        else:
            pending += straight
    yield from _segment(pending, region)


def all_segments(program: nodes.Program) -> tuple[Segment, ...]:
    """Return all segments of a program, those in bodies of loops and branches included, in program order."""

    def inside(body: tuple[nodes.Node, ...]) -> Iterator[Segment]:
        for part in partition(body, program.region):
            if isinstance(part, Segment):
                yield part
            else:
                for inner in nodes.parts(part):
                    yield from inside(inner)

    return tuple(inside(program.body))


def _unrolled(node: nodes.Node, limit: int) -> list[nodes.Node] | None:
    """The node, or those of all iterations of a loop; None if it is no part of a graph of ``limit`` nodes."""
    match node:
        case nodes.Alloc() | nodes.Free():
            return [node]
        case nodes.Launch(binding=Binding(then=None)):
            return [node] if limit > 0 else None
        case nodes.Loop(var, (int(start), int(stop), int(step)), body):
            found: list[nodes.Node] = []
            for value in range(start, stop, step):
                for inner in body:
                    made = _at(inner, var, value)
                    straight = None if made is None else _unrolled(made, limit - len(found))
                    if straight is None:
                        return None
                    found += straight
            return found
        case _:
            return None


def _at(node: nodes.Node, var: str, value: int) -> nodes.Node | None:
    """A node in one iteration of a loop; None if that is not known."""
    values = {var: value}
    match node:
        case nodes.Launch(Compute() | Nest() | Rows() as stmt, _, binding):
            return replace(node, stmt=stmt_at(stmt, values), binding=_binding_at(binding, values))
        case nodes.Loop(_, bounds, body):
            inner = [_at(one, var, value) for one in body]
            start, stop, step = (dims.substitute(bound, values) for bound in bounds)
            known = tuple(one for one in inner if one is not None)
            return replace(node, bounds=(start, stop, step), body=known) if len(known) == len(inner) else None
        case _:
            return None


def _binding_at(binding: Binding, values: dict[str, Dim]) -> Binding:
    def pointer(one: Pointer | Scratch) -> Pointer | Scratch:
        if isinstance(one, Pointer):
            return replace(one, offset=dims.substitute(one.offset, values))
        return replace(one, size=dims.substitute(one.size, values))

    def each(numbers: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple([dims.substitute(number, values) for number in numbers])

    return replace(
        binding, pointers=tuple(map(pointer, binding.pointers)), ints=each(binding.ints),
        extents=each(binding.extents), work=each(binding.work),
        bytes=dims.substitute(binding.bytes, values), operations=dims.substitute(binding.operations, values),
    )  # fmt: skip


def _segment(body: list[nodes.Node], region: Region) -> Iterator[Segment | nodes.Node]:
    """Yield the segment of some nodes, or the nodes if there is too little for a graph."""
    launches = [node for node in body if isinstance(node, nodes.Launch)]
    if len(launches) < 2:
        yield from body
        return
    allocated = {node.array.name: node for node in body if isinstance(node, nodes.Alloc)}
    freed = {node.array.name: node for node in body if isinstance(node, nodes.Free)}
    inside = [node.array for name, node in allocated.items() if name in freed]
    root = families(region)
    used = [{root.get(name, name) for name in touched_arrays(launch.stmt)} for launch in launches]
    uses = [tuple(k for k, names in enumerate(used) if array.name in names) for array in inside]
    for k, launch in enumerate(launches):
        uses += [(k,) for pointer in launch.binding.pointers if isinstance(pointer, Scratch)]
    yield Segment(
        tuple([_operation(launch, region) for launch in launches]),
        _reduced(nodes.edges(tuple(launches), region)),
        tuple(inside),
        tuple(uses),
        tuple([node for name, node in allocated.items() if name not in freed]),
        tuple([node for name, node in freed.items() if name not in allocated]),
    )


def _reduced(before: tuple[frozenset[int], ...]) -> tuple[frozenset[int], ...]:
    """Edges without those that others imply."""
    closed: list[frozenset[int]] = []
    for edges in before:
        closed.append(edges.union(*(closed[k] for k in edges)))
    return tuple([
        frozenset(k for k in edges if not any(k in closed[other] for other in edges)) for edges in before
    ])  # fmt: skip


# ---- copies and fills -------------------------------------------------------------------------------
def _operation(launch: nodes.Launch, region: Region) -> Operation:
    """Return the operation for a launch: a copy or a fill of memory if it is one, else its kernel."""
    stmt = launch.stmt
    plain = Operation("kernel", launch)
    if not isinstance(stmt, Compute) or stmt.combine is not None or stmt.scan is not None:
        return plain
    arrays = {array.name: array for array in region.arrays}
    target = _first(stmt.target, arrays[stmt.target.array])
    if target is None:
        return plain
    elements: Dim = 1
    for extent in stmt.target.shape:
        elements = dims.simplify(elements * extent)
    there = stmt.target.array, target
    match stmt.body:
        case Const(bits=bits) if len(set(bits)) == 1:
            return Operation("fill", launch, there, elements=elements, byte=bits[0])
        case Load(window):
            source = _first(window, arrays[window.array])
            root, buffers = families(region), zip(launch.kernel.buffers, launch.binding.pointers, strict=True)
            value = any(buffer.by_value for buffer, one in buffers if one == Pointer(window.array, source))
            if source is not None and not value and root[window.array] != root[stmt.target.array]:
                return Operation("copy", launch, there, (window.array, source), elements)
    return plain


def _first(window: Window, array: Array) -> Dim | None:
    """The first element of a window whose elements lie one behind the other, in the order of its domain; None
    if they do not, or it is not known."""
    if array.strides is not None:
        return None
    first: Dim = 0
    axis = 0  # of the domain, the next one
    for ix, extent in zip(window.index, array.shape, strict=True):
        first = first * extent + ix.offset
        if ix.axis is None:
            if axis and extent != 1:  # axes of the domain before it would not lie together
                return None
            continue
        if ix.axis != axis or ix.stride != 1:
            return None
        whole = dims.prove_eq(window.shape[axis], extent) is True
        if not whole and axis:
            return None
        axis += 1
    return dims.simplify(first) if axis == len(window.shape) else None
