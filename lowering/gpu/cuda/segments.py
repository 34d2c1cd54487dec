"""The parts of a device program that become CUDA graphs, each with its operations and their order.

A *segment* is a sequence of launches, copies and fills of memory in which the host takes no part.  Short
loops with constant bounds are unrolled into it.  Loops and branches that a boolean on the device decides are
operations with a body.  The edges between operations are those of `dcarray.lowering.program.nodes.edges`,
derived from windows, so that independent operations overlap.

The operations of a segment have consecutive numbers, each lower than those of the operations in its body.  A
``while`` loop consists of the operations that compute its condition, a *test* that passes the condition to
CUDA, and a conditional operation, whose body ends with the operations for the condition and another test.
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
        The launch of a kernel, a copy of memory, a fill of memory with one byte, the test of a condition, or
        a loop or branch that the test decides.
    node : Launch, While or Branch
        The program's node: the launch, of which a copy or a fill does the work; or the loop or branch.
    target, source : tuple of str and Dim
        For a copy or a fill: the array, and the number of the first element in it.
    elements : Dim
        For a copy or a fill: how many elements.
    byte : int
        For a fill: the value of each byte.
    parent : int
        The position of the loop or branch in whose body the operation is; -1 for none.
    conditional : int
        For a test: the position of the loop or branch that it decides.
    negated : bool
        For a test, loop or branch: whether the body runs if the condition is false.
    """

    kind: Literal["kernel", "copy", "fill", "test", "while", "if"]
    node: nodes.Launch | nodes.While | nodes.Branch
    target: tuple[str, Dim] = ("", 0)
    source: tuple[str, Dim] = ("", 0)
    elements: Dim = 0
    byte: int = 0
    parent: int = -1
    conditional: int = -1
    negated: bool = False


@record(frozen=True, slots=True)
class Segment:
    """A part of a program that becomes one CUDA graph (see the module's description).

    Attributes
    ----------
    operations : tuple of Operation
    before : tuple of frozenset of int
        For each operation the earlier ones that it has to follow, without those that others imply.  The first
        ones of a body follow its loop or branch; what follows the loop or branch follows the last ones.
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
        straight = _unrolled(node, MAX_NODES - _count(pending))
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
                straight = None if iteration is None else _all_unrolled(iteration, limit - _count(iterations))
                if straight is None:
                    return None
                iterations += straight
            return iterations
        case nodes.While(_, head, body):
            first, again = _all_unrolled(head, limit), _all_unrolled((*body, *head), limit)
            if first is None or again is None or _count(first) + _count(again) > limit - 3:
                return None
            return [*first, replace(node, head=(), body=tuple(again))]
        case nodes.Branch(_, then, orelse):
            sides = _all_unrolled(then, limit), _all_unrolled(orelse, limit)
            if sides[0] is None or sides[1] is None or _count(sides[0]) + _count(sides[1]) > limit - 4:
                return None
            return [replace(node, then=tuple(sides[0]), orelse=tuple(sides[1]))]
        case _:
            return None


def _all_unrolled(body: Iterable[nodes.Node], limit: int) -> list[nodes.Node] | None:
    unrolled: list[nodes.Node] = []
    for node in body:
        straight = _unrolled(node, limit - _count(unrolled))
        if straight is None:
            return None
        unrolled += straight
    return unrolled


def _count(body: Iterable[nodes.Node]) -> int:
    """Return an upper bound of the number of operations that some nodes become."""
    return sum(1 + sum(map(_count, nodes.parts(node))) for node in body)


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
        case nodes.While(_, head, body):
            first, inner = _all_at(head, var, value), _all_at(body, var, value)
            return None if first is None or inner is None else replace(node, head=first, body=inner)
        case nodes.Branch(_, then, orelse):
            one, other = _all_at(then, var, value), _all_at(orelse, var, value)
            return None if one is None or other is None else replace(node, then=one, orelse=other)
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
    recorded = _Operations(region)
    recorded.body(body, -1)
    if len(recorded.operations) < 2:
        yield from body
        return
    allocated = {node.array.name: node for node in body if isinstance(node, nodes.Alloc)}
    freed = {node.array.name: node for node in body if isinstance(node, nodes.Free)}
    inside = [n for n, _ in recorded.allocated.values() if n.array.name not in allocated.keys() - freed]
    uses = [recorded.users(node.array.name) for node in inside]
    for k, operation in enumerate(recorded.operations):
        if isinstance(operation.node, nodes.Launch):
            uses += [(k,) for one in operation.node.binding.pointers if isinstance(one, Scratch)]
    yield Segment(
        tuple(recorded.operations),
        tuple(recorded.before),
        tuple([node.array for node in inside]),
        tuple(uses),
        tuple([node for name, node in allocated.items() if name not in freed]),
        tuple([node for name, node in freed.items() if name not in allocated]),
    )


class _Operations:
    """The list of operations of a segment, while it is made.

    Attributes
    ----------
    allocated : dict
        For each array a node that allocates it, and the operation whose body has all its allocations, or -1.
    touched : list of set of str
        For each operation the arrays that it reads or writes.
    """

    def __init__(self, region: Region) -> None:
        self.region, self.root = region, families(region)
        self.operations: list[Operation] = []
        self.before: list[frozenset[int]] = []
        self.touched: list[set[str]] = []
        self.allocated: dict[str, tuple[nodes.Alloc, int]] = {}

    def body(self, body: Iterable[nodes.Node], parent: int) -> tuple[int, ...]:
        """Add operations for the nodes in the body of operation ``parent``; return those that nothing
        follows."""
        doing: list[nodes.Launch | nodes.While | nodes.Branch] = []
        for node in body:
            if isinstance(node, nodes.Launch | nodes.While | nodes.Branch):
                doing.append(node)
            elif isinstance(node, nodes.Alloc):
                name = node.array.name
                known = self.allocated.get(name, (node, parent))
                self.allocated[name] = known if known[1] == parent else (node, -1)
        before = _reduced(nodes.edges(tuple(doing), self.region))
        last: list[tuple[int, ...]] = []
        for node, earlier in zip(doing, before, strict=True):
            last.append(self.node(node, parent, [k for one in earlier for k in last[one]]))
        followed = frozenset().union(*before)
        return tuple([k for one, ends in enumerate(last) if one not in followed for k in ends])

    def node(
        self, node: nodes.Launch | nodes.While | nodes.Branch, parent: int, earlier: Iterable[int]
    ) -> tuple[int, ...]:
        """Add the operations of a node, after the operations ``earlier``; return those that come last in
        it."""
        match node:
            case nodes.Launch():
                operation = replace(_operation(node, self.region), parent=parent)
                return (self.add(operation, earlier, touched_arrays(node.stmt)),)
            case nodes.While(cond, _, body):
                inside = self.decided(node, "while", parent, earlier)
                ends = self.body(body, inside)
                return (self.add(Operation("test", node, parent=inside, conditional=inside), ends, [cond]),)
            case nodes.Branch(_, then, orelse):
                for negated, side in ((False, then), (True, orelse)):
                    if any(not isinstance(one, nodes.Alloc | nodes.Free) for one in side):
                        inside = self.decided(node, "if", parent, earlier, negated)
                        earlier = self.body(side, inside) or (inside,)
                return tuple(earlier)

    def decided(
        self, node: nodes.While | nodes.Branch, kind: Literal["while", "if"], parent: int,
        earlier: Iterable[int], negated: bool = False,
    ) -> int:  # fmt: skip
        """Add a test, and the loop or branch (``kind``) that it decides; return the position of the
        latter."""
        test = Operation("test", node, parent=parent, conditional=len(self.operations) + 1, negated=negated)
        at = self.add(test, earlier, [node.cond])
        return self.add(Operation(kind, node, parent=parent, negated=negated), [at], [node.cond])

    def add(self, operation: Operation, earlier: Iterable[int], touched: Iterable[str]) -> int:
        """Add an operation that follows others and reads or writes the arrays ``touched``; return its
        position."""
        self.operations.append(operation)
        first = {operation.parent} - {-1}
        self.before.append(frozenset(earlier) or frozenset(first))
        self.touched.append({self.root.get(name, name) for name in touched})
        return len(self.operations) - 1

    def users(self, name: str) -> tuple[int, ...]:
        """Return the operations that use an array's memory: all those of a body that uses an array from
        outside, since the next iteration may need the values."""
        home = self.allocated[name][1]
        users: set[int] = set()
        for k, names in enumerate(self.touched):
            if name in names and k not in users:
                while (parent := self.operations[k].parent) != home:
                    k = parent
                users.update(range(k, self.end(k)))
        return tuple(sorted(users))

    def end(self, at: int) -> int:
        """Return the position behind an operation and its body."""
        inside = {at}
        for k in range(at + 1, len(self.operations)):
            if self.operations[k].parent not in inside:
                return k
            inside.add(k)
        return len(self.operations)


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
