"""The parts of a device program that become CUDA graphs, each with its operations and their order.

A *segment* is a sequence of launches, copies and fills of memory in which the host takes no part.  Short
loops with constant bounds are unrolled into it.  The edges between operations are those of
`dcarray.lowering.program.nodes.edges`, derived from windows, so that independent operations overlap.
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

MAX_NODES = 512
"""The most operations of a segment: a loop that would exceed it is not unrolled."""


@record(frozen=True, slots=True)
class Operation:
    """An operation of a segment, from which the nodes of a graph are made.

    Attributes
    ----------
    kind : str
        The launch of a kernel, a copy of memory, or a fill of memory with one byte.
    node : Launch
        The program's node, of which a copy or a fill does the work.
    target, source : tuple of str and Dim
        For a copy or a fill: the array, and the number of the first element in it.
    elements : Dim
        For a copy or a fill: how many elements.
    byte : int
        For a fill: the value of each byte.
    """

    kind: Literal["kernel", "copy", "fill"]
    node: nodes.Launch
    target: tuple[str, Dim] = ("", 0)
    source: tuple[str, Dim] = ("", 0)
    elements: Dim = 0
    byte: int = 0


@record(frozen=True, slots=True)
class Segment:
    """A part of a program that becomes one CUDA graph (see the module's description).

    Attributes
    ----------
    operations : tuple of Operation
    before : tuple of frozenset of int
        For each operation the earlier ones that it has to follow, without those that others imply.
    temporaries : tuple of Array
        Arrays that are allocated and freed in this segment.
    uses : tuple of tuple of int
        For each temporary the operations that read or write it; then, for each scratch memory of a launch,
        that launch.
    earlier : tuple of Alloc
        Allocations that are made before the segment, since the arrays outlive it.
    later : tuple of Free
        Arrays from before the segment that are freed after it.
    """

    operations: tuple[Operation, ...]
    before: tuple[frozenset[int], ...]
    temporaries: tuple[Array, ...]
    uses: tuple[tuple[int, ...], ...]
    earlier: tuple[nodes.Alloc, ...]
    later: tuple[nodes.Free, ...]


def partition(body: Iterable[nodes.Node], region: Region) -> Iterator[Segment | nodes.Node]:
    """Yield the segments of a program's or loop's body, and the nodes between the segments, in order."""
    pending: list[nodes.Node] = []
    for node in body:
        if isinstance(node, nodes.Stop):  # no flags are raised
            continue
        straight = _unrolled(node, MAX_NODES - len(pending))
        if straight is None:
            yield from _segment(pending, region)
            pending = []
            straight = _unrolled(node, MAX_NODES)
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
    """Return a node as a list, and a short loop as the nodes of all its iterations; None if the node cannot
    be part of a segment, or would be more than ``limit`` operations."""
    match node:
        case nodes.Alloc() | nodes.Free():
            return [node]
        case nodes.Launch(binding=Binding(then=None)):
            return [node] if limit > 0 else None
        case nodes.Loop(var, (int(start), int(stop), int(step)), body):
            iterations: list[nodes.Node] = []
            for value in range(start, stop, step):
                iteration = _all_at(body, var, value)
                straight = None if iteration is None else _all_unrolled(iteration, limit - len(iterations))
                if straight is None:
                    return None
                iterations += straight
            return iterations
        case _:
            return None


def _all_unrolled(body: Iterable[nodes.Node], limit: int) -> list[nodes.Node] | None:
    unrolled: list[nodes.Node] = []
    for node in body:
        straight = _unrolled(node, limit - len(unrolled))
        if straight is None:
            return None
        unrolled += straight
    return unrolled


def _at(node: nodes.Node, var: str, value: int) -> nodes.Node | None:
    """Return a node as it is in the iteration with ``var == value``; None for a kind of node that no segment
    has."""
    values = {var: value}
    match node:
        case nodes.Launch(Compute() | Nest() | Rows() as stmt, _, binding):
            return replace(node, stmt=stmt_at(stmt, values), binding=_binding_at(binding, values))
        case nodes.Loop(_, bounds, body):
            start, stop, step = (dims.substitute(bound, values) for bound in bounds)
            inner = _all_at(body, var, value)
            return None if inner is None else replace(node, bounds=(start, stop, step), body=inner)
        case _:
            return None


def _all_at(body: Iterable[nodes.Node], var: str, value: int) -> tuple[nodes.Node, ...] | None:
    inner = [_at(node, var, value) for node in body]
    known = tuple([node for node in inner if node is not None])
    return known if len(known) == len(inner) else None


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
    """Yield the segment that consists of some nodes; or the nodes themselves if they are fewer than two
    operations."""
    launches = tuple([node for node in body if isinstance(node, nodes.Launch)])
    if len(launches) < 2:
        yield from body
        return
    root = families(region)
    touched = [{root.get(name, name) for name in touched_arrays(node.stmt)} for node in launches]
    allocated = {node.array.name: node for node in body if isinstance(node, nodes.Alloc)}
    freed = {node.array.name: node for node in body if isinstance(node, nodes.Free)}
    inside = [node.array for name, node in allocated.items() if name in freed]
    uses = [tuple([k for k, names in enumerate(touched) if array.name in names]) for array in inside]
    for k, node in enumerate(launches):
        uses += [(k,) for one in node.binding.pointers if isinstance(one, Scratch)]
    yield Segment(
        tuple([_operation(node, region) for node in launches]),
        _reduced(nodes.edges(launches, region)),
        tuple(inside),
        tuple(uses),
        tuple([node for name, node in allocated.items() if name not in freed]),
        tuple([node for name, node in freed.items() if name not in allocated]),
    )


def _reduced(before: tuple[frozenset[int], ...]) -> tuple[frozenset[int], ...]:
    """Return edges (for each operation, those before it) without the edges that others imply."""
    closed: list[frozenset[int]] = []
    for edges in before:
        closed.append(edges.union(*(closed[k] for k in edges)))
    return tuple([
        frozenset(k for k in edges if not any(k in closed[other] for other in edges)) for edges in before
    ])  # fmt: skip


# ---- copies and fills -------------------------------------------------------------------------------
def _operation(launch: nodes.Launch, region: Region) -> Operation:
    """Return the operation for a launch: a copy or a fill if the statement is one, else the kernel's
    launch."""
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
    """Return the number of a window's first element in its array, if the window's elements are contiguous and
    in the order of its axes; None if they are not, or if that is unknown."""
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
