"""The data classes of programs: allocations, copies, launches and calls, in one valid order.

A node has the windows that it reads and writes.  Dependence edges follow from these (`edges`) and are never
stored; any order that respects them gives the same results.  A target prints a program in its own form: a
Python driver, a graph of launches, or a C function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from dcarray.ir import dims
from dcarray.ir.analysis import effects
from dcarray.ir.nodes import Array, Call, Compute, Dim, Region, Stmt, Window
from dcarray.ir.records import record
from dcarray.ir.windows import loads
from dcarray.lowering.kernel.compiler import Loaded
from dcarray.lowering.kernel.nodes import Binding, Kernel, Pointer
from dcarray.lowering.runtime.library_calls import CallStep, Interpreted

Windows = tuple[Window, ...]


# ---- nodes ------------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Alloc:
    """The allocation of a temporary array, which lasts until its `Free` in the same body."""

    array: Array
    position: int


@record(frozen=True, slots=True)
class Free:
    """The release of a temporary array's memory."""

    array: Array
    position: int


@record(frozen=True, slots=True)
class Copy:
    """A statement that only copies elements, perhaps between memory spaces; it is no kernel."""

    stmt: Compute
    call: CallStep
    position: int

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that are passed to the call, the written one first."""
        return self.stmt.target.array, *(load.window.array for load in loads(self.stmt.body))


@record(frozen=True, slots=True)
class Launch:
    """A step of a program: one statement, run by a compiled kernel with the arrays bound to it."""

    stmt: Stmt
    kernel: Kernel
    binding: Binding
    position: int
    loaded: Loaded | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> dict[str, str]:
        """The arrays behind the kernel's buffers, by the buffers' names."""
        pairs = zip(self.kernel.buffers, self.binding.pointers, strict=True)
        return {buffer.name: p.array for buffer, p in pairs if isinstance(p, Pointer)}


@record(frozen=True, slots=True)
class LibraryCall:
    """A library call that a library runs."""

    stmt: Call
    call: CallStep
    position: int

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that are passed to the call, the written ones first."""
        return tuple([window.array for window in (*self.stmt.writes, *self.stmt.reads)])


@record(frozen=True, slots=True)
class HostCall:
    """A statement that the interpreter runs, because of ``reason``; ``names`` are the arrays passed to it."""

    stmt: Stmt
    call: Interpreted
    names: tuple[str, ...]
    reason: str
    position: int


@record(frozen=True, slots=True)
class Stop:
    """The point at which a run ends if it has raised one of the floating-point flags given by the caller."""

    position: int


@record(frozen=True, slots=True)
class Loop:
    """A loop that runs ``body`` for every value of ``var`` in ``range(*bounds)``, in order."""

    var: str
    bounds: tuple[Dim, Dim, Dim]
    body: tuple[Node, ...]
    position: int


@record(frozen=True, slots=True)
class While:
    """A while loop: it runs ``head``, which computes ``cond``, a boolean array of one element, and as long as
    that is true ``body`` and ``head`` again."""

    cond: str
    head: tuple[Node, ...]
    body: tuple[Node, ...]
    position: int


@record(frozen=True, slots=True)
class Branch:
    """A branch: it runs ``then`` if ``cond``, a boolean array of one element, is true, else ``orelse``."""

    cond: str
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]
    position: int


Step = Copy | Launch | LibraryCall | HostCall
Node = Alloc | Free | Step | Stop | Loop | While | Branch


@record(frozen=True, slots=True)
class Program:
    """A lowered region: its steps and allocations in order.

    Attributes
    ----------
    region : Region
        The region, which declares the symbols and the arrays, including those of conditions.
    body : tuple of nodes
        The nodes; ``position`` of a node is that of its statement in the region's body.
    """

    region: Region
    body: tuple[Node, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the arrays that a run needs, in order: all except the temporaries."""
        return tuple([array.name for array in self.region.arrays if array.role != "temp"])

    def steps(self) -> tuple[Step, ...]:
        """Return the nodes that run something, in order.  The bytes of a launch in a loop are those of all
        iterations, estimated by the middle one."""
        return tuple(_steps(self.body))


def parts(node: Node) -> tuple[tuple[Node, ...], ...]:
    """Return the bodies of a loop or branch; none for other nodes."""
    match node:
        case Loop(body=body):
            return (body,)
        case While(head=head, body=body):
            return head, body
        case Branch(then=then, orelse=orelse):
            return then, orelse
        case _:
            return ()


def _steps(body: tuple[Node, ...]) -> Iterator[Step]:
    for node in body:
        if isinstance(node, Step):
            yield node
        for part in parts(node):
            for step in _steps(part):
                yield _repeated(step, node.var, node.bounds) if isinstance(node, Loop) else step


def _repeated(step: Step, var: str, bounds: tuple[Dim, Dim, Dim]) -> Step:
    if not isinstance(step, Launch) or var not in dims.free_symbols(step.binding.bytes):
        return step
    start, stop, by = bounds
    count = len(range(start, stop, by)) if type(start) is type(stop) is type(by) is int else 1
    middle = dims.substitute(step.binding.bytes, {var: dims.simplify(start + count // 2 * by)})
    return replace(step, binding=replace(step.binding, bytes=dims.simplify(count * middle)))


# ---- what orders them -------------------------------------------------------------------------------
def reads(node: Node) -> Windows:
    """Return the windows that a node may read; of a loop, those of all iterations."""
    match node:
        case Copy(stmt=stmt) | Launch(stmt=stmt) | LibraryCall(stmt=stmt) | HostCall(stmt=stmt):
            return effects.reads(stmt)
        case While(cond=cond) | Branch(cond=cond):
            return (Window(cond, (), ()), *_inside(node, reads))
        case _:
            return _inside(node, reads)


def writes(node: Node) -> Windows:
    """Return the windows that a node may write; allocating or freeing an array counts as a write."""
    match node:
        case Alloc(array) | Free(array):
            return (effects.anywhere(array.name),)
        case Copy(stmt=stmt) | Launch(stmt=stmt) | LibraryCall(stmt=stmt) | HostCall(stmt=stmt):
            return effects.writes(stmt)
        case _:
            return _inside(node, writes)


def _inside(node: Node, windows: Callable[[Node], Windows]) -> Windows:
    inside = [window for part in parts(node) for inner in part for window in windows(inner)]
    if isinstance(node, Loop):
        inside = [effects.widened_footprint(window, node.var, node.bounds) for window in inside]
    return tuple(dict.fromkeys(inside))


def touched(node: Node) -> frozenset[str]:
    """Return the names of the arrays that a node may read, write, allocate or free."""
    return frozenset(window.array for window in (*reads(node), *writes(node)))


def edges(body: tuple[Node, ...], region: Region) -> tuple[frozenset[int], ...]:
    """Return for each node of a body the positions of the earlier nodes on which it depends.  Dependences
    through memory that temporaries come to share (`storage`) are not included."""
    root = effects.families(region)
    accesses = [(reads(node), writes(node)) for node in body]
    names = [frozenset(root[name] for name in touched(node)) for node in body]

    def ordered(a: int, b: int) -> bool:
        kinds = type(body[a]), type(body[b])
        if Stop in kinds:
            return True
        if Alloc in kinds or Free in kinds:  # windows without elements need memory, too
            return not names[a].isdisjoint(names[b])
        return effects.conflict(accesses[a], accesses[b], region) is not None

    return tuple([frozenset(a for a in range(b) if ordered(a, b)) for b in range(len(body))])
