"""The program of a plan, as data: what is allocated, copied, launched and called, in one valid order.

A node says which windows it reads and writes.  The dependence edges follow from these (`edges`) and are never
stored, so that any order that respects them gives the same results.  A target prints a program in its own
form: a Python driver, a graph of launches, a function of C.
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
    """Memory for a temporary array, until its `Free` in the same body."""

    array: Array
    position: int


@record(frozen=True, slots=True)
class Free:
    """The end of a temporary array's memory."""

    array: Array
    position: int


@record(frozen=True, slots=True)
class Copy:
    """A statement that moves elements and computes nothing, perhaps from one memory space to another."""

    stmt: Compute
    call: CallStep
    position: int

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that the call is given."""
        return self.stmt.target.array, *(load.window.array for load in loads(self.stmt.body))


@record(frozen=True, slots=True)
class Launch:
    """A statement that a compiled kernel does."""

    stmt: Stmt
    kernel: Kernel
    binding: Binding
    position: int
    loaded: Loaded | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> dict[str, str]:
        """The arrays behind the kernel's buffers."""
        pairs = zip(self.kernel.buffers, self.binding.pointers, strict=True)
        return {buffer.name: p.array for buffer, p in pairs if isinstance(p, Pointer)}


@record(frozen=True, slots=True)
class LibraryCall:
    """A statement that a library does."""

    stmt: Call
    call: CallStep
    position: int

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that the call is given."""
        return tuple([window.array for window in (*self.stmt.writes, *self.stmt.reads)])


@record(frozen=True, slots=True)
class HostCall:
    """A statement that is left to the interpreter, for ``reason``; ``names`` are the arrays it is given."""

    stmt: Stmt
    call: Interpreted
    names: tuple[str, ...]
    reason: str
    position: int


@record(frozen=True, slots=True)
class Stop:
    """The end of the run if a floating-point flag has been raised that the caller minds."""

    position: int


@record(frozen=True, slots=True)
class Loop:
    """``body`` for every value of ``var`` in ``range(*bounds)``, in order."""

    var: str
    bounds: tuple[Dim, Dim, Dim]
    body: tuple[Node, ...]
    position: int


@record(frozen=True, slots=True)
class While:
    """``head``, which makes the boolean array ``cond`` of one element, and if that is true ``body`` and then
    all of it again."""

    cond: str
    head: tuple[Node, ...]
    body: tuple[Node, ...]
    position: int


@record(frozen=True, slots=True)
class Branch:
    """``then`` if the boolean array ``cond`` of one element is true, else ``orelse``."""

    cond: str
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]
    position: int


Step = Copy | Launch | LibraryCall | HostCall
Node = Alloc | Free | Step | Stop | Loop | While | Branch


@record(frozen=True, slots=True)
class Program:
    """What a plan does.

    Attributes
    ----------
    region : Region
        Declares the symbols and the arrays, with those that hold conditions.
    body : tuple of nodes
        ``position`` of a node is that of the statement of the region that it belongs to.
    """

    region: Region
    body: tuple[Node, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The arrays that a run is given, in order: all but the temporaries."""
        return tuple([array.name for array in self.region.arrays if array.role != "temp"])

    def steps(self) -> tuple[Step, ...]:
        """The nodes that do something, in order.  The bytes that a launch in a loop moves are those of all
        iterations: where they differ, so many times those of the middle one."""
        return tuple(_steps(self.body))


def parts(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The bodies of a node."""
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
    """The windows that a node may read; those in a loop are all that they come by."""
    match node:
        case Copy(stmt=stmt) | Launch(stmt=stmt) | LibraryCall(stmt=stmt) | HostCall(stmt=stmt):
            return effects.reads(stmt)
        case While(cond=cond) | Branch(cond=cond):
            return (Window(cond, (), ()), *_inside(node, reads))
        case _:
            return _inside(node, reads)


def writes(node: Node) -> Windows:
    """The windows that a node may write; to allocate or to free an array is to write all of it."""
    match node:
        case Alloc(array) | Free(array):
            return (effects.anywhere(array.name),)
        case Copy(stmt=stmt) | Launch(stmt=stmt) | LibraryCall(stmt=stmt) | HostCall(stmt=stmt):
            return effects.writes(stmt)
        case _:
            return _inside(node, writes)


def _inside(node: Node, windows: Callable[[Node], Windows]) -> Windows:
    found = [window for part in parts(node) for inner in part for window in windows(inner)]
    if isinstance(node, Loop):
        found = [effects.widened_footprint(window, node.var, node.bounds) for window in found]
    return tuple(dict.fromkeys(found))


def touched(node: Node) -> frozenset[str]:
    """The names of the arrays that a node may read, write, allocate or free."""
    return frozenset(window.array for window in (*reads(node), *writes(node)))


def edges(body: tuple[Node, ...], region: Region) -> tuple[frozenset[int], ...]:
    """For each node of a body the positions of the earlier ones that it has to follow.  Memory that arrays
    share after the fact (`storage`) adds others, which are not among them."""
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
