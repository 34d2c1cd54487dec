"""The builder of a kernel for one statement: its loops, arguments and phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, Protocol

from dcarray.ir import dims, ops, windows
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Apply, Compute, Dim, Gather, Iota, Load, Part, Region
from dcarray.ir.nodes import Expr as Value
from dcarray.ir.records import record
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Binding, Expr, For, If, Kernel, Phase, Stmt, Term, affine

from .access import Arguments, Spot, equal, memory_of, positive, total
from .body import Names, Scope
from .legality import check, reduced_axes
from .order import can_join, choose

MIN_PARALLEL = 16  # iterations of a parallel loop that occupy many cores
Block = tuple[Stmt, ...]
Kind = Literal["serial", "vector"]


def variable(name: str, coef: int = 1) -> Affine:
    """Return a loop variable, or a multiple of it."""
    return affine(0, Term(coef, None, name))


@record(frozen=True, slots=True)
class LoopHeader:
    """The header of a loop, and the statements before and after the loop in the enclosing level.  With
    ``cond``, the loop runs only if that holds."""

    var: str
    lower: Affine
    upper: tuple[Affine, ...]
    step: int = 1
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    cond: Expr | None = None
    floors: tuple[Affine, ...] = ()


class SharedArguments(Protocol):
    """The arguments and the names that all statements of one kernel share."""

    arguments: Arguments
    names: Names


@record(frozen=True, slots=True)
class EnclosingLoops:
    """The loops of the kernel that enclose a statement: their variables, and typical values of these."""

    variables: Mapping[str, Affine] = field(default_factory=dict)
    typical: Mapping[str, int] = field(default_factory=dict)

    def varies(self, dim: Dim) -> bool:
        """Whether a dimension depends on the variables of the loops."""
        return not dims.free_symbols(dim).isdisjoint(self.variables)


#: The least work at a point, in additions: that of a copy, which loads and stores.
MIN_WORK = 3


class LoopNest:
    """The loops and arguments of one statement or nest, and the kernel phases that schedules add for it.

    With ``row_axes``, the statement is one of several that run row by row: that number of leading axes are
    the first loop, which is the phase. ``shared`` has the arguments and names of the kernel, such as those of
    a statement before. With ``enclosing``, it is inside of these loops of the kernel, and run by one thread.
    """

    def __init__(
        self,
        stmt: Part,
        region: Region,
        row_axes: int = 0,
        shared: SharedArguments | None = None,
        enclosing: EnclosingLoops | None = None,
    ) -> None:
        self.computes = (stmt,) if isinstance(stmt, Compute) else stmt.body
        self.memory = memory_of(region)
        self.hints = SizeHints(region, enclosing.typical if enclosing is not None else None)
        self.single_threaded = row_axes > 0 or enclosing is not None  # by one thread
        self.enclosing = enclosing
        self.shape = self.computes[0].target.shape
        check(self.computes, self.memory)
        folds = [reduced_axes(compute) for compute in self.computes]
        self.folds = [bool(axes) for axes in folds]
        folded = frozenset[int]().union(*folds)
        if any(axes and axes != folded for axes in folds):
            raise Unsupported("reductions over different axes in one nest")
        self.values = [self._value(c, f) for c, f in zip(self.computes, self.folds, strict=True)]
        self.arguments = Arguments(self.memory, len(self.shape), (), ())
        self.row_axes = row_axes
        accesses = self._accesses()
        fixed = {n.axis for v in self.values for n in windows.walk(v) if isinstance(n, Iota)}
        self.scan = self._scan(enclosing is not None or bool(row_axes))
        fixed |= set() if self.scan is None else {self.scan}
        if enclosing is not None:  # products of variables are not affine
            fixed |= {axis for axis, extent in enumerate(self.shape) if enclosing.varies(extent)}
        self.joined = can_join(self.shape, accesses, fixed, row_axes)
        summed = [v for v, c, f in zip(self.values, self.computes, self.folds, strict=True)
                  if f and c.combine == "add" and v.dtype.kind in "fc"]  # fmt: skip
        sums = [self.arguments.reach(load) for value in summed for load in windows.loads(value)]
        self.loops = choose(self.shape, accesses, folded, fixed, self.hints, row_axes, sums)
        arguments = shared.arguments if shared is not None else self.arguments
        variables = enclosing.variables if enclosing is not None else None
        self.arguments = arguments.kin(len(self.shape), self.loops.axes, self.loops.extents, variables)
        for access, write in self._accesses():
            self.arguments.note(access, "w" if write else "r")
        self.names: Names = shared.names if shared is not None else Names()
        self.variables = [variable(f"i{k}") for k in range(len(self.loops.axes))]
        self.nonempty = all(map(positive, self.loops.extents))
        self.phases: list[Phase] = []
        self.launches: list[tuple[Dim, Dim]] = []

    def _scan(self, beside: bool) -> int | None:
        """Return the axis along which the statement is a scan, or None; raise `Unsupported` for a scan that
        is ``beside`` other statements."""
        axes = [c.scan for c in self.computes if self._scans(c)]
        if axes and (beside or len(self.computes) > 1):
            raise Unsupported("a scan beside other statements")
        return axes[0] if axes else None

    def _scans(self, compute: Compute) -> bool:
        return compute.scan is not None and not equal(self.shape[compute.scan], 1)

    def _value(self, compute: Compute, fold: bool) -> Value:
        """Return the value that an element-wise statement stores, or a reduction folds, at one point."""
        if fold or self._scans(compute) or compute.combine is None:
            return compute.body
        old: Any = self.start(compute)
        return Apply(compute.combine, (old, compute.body), old.dtype)

    def start(self, compute: Compute) -> Value:
        """Return the initial value of a reduction."""
        return compute.init or Load(compute.target, self.memory.arrays[compute.target.array].dtype)

    def _accesses(self) -> list[tuple[Any, bool]]:
        accesses: dict[tuple[Any, bool], None] = {}
        for compute, value, fold in zip(self.computes, self.values, self.folds, strict=True):
            for root in (value, self.start(compute)) if fold else (value,):
                for load in windows.loads(root):
                    accesses[self.arguments.reach(load), False] = None
            accesses[self.arguments.access(compute.target), True] = None
        return list(accesses)

    # ---- pieces of kernels -------------------------------------------------------------------------
    def scope(self, depths: Sequence[int], deepest: int, hoist: bool) -> Scope:
        """Return the scope of a position in the loop nest; the parameters are those of `Scope`."""
        return Scope(self.arguments, self.names, self.variables, depths, deepest, hoist)

    def scope_at(
        self,
        phase: str,
        headers: Sequence[LoopHeader],
        level: int,
        hoist: bool,
        offset: int = 0,
        var: str = "",
    ) -> Scope:
        """Return the scope at depth ``level`` (the phase's loop is 1) inside of ``headers``; with ``offset``,
        that many iterations ahead in the loop over ``var``, by default the last but one."""
        levels = {phase: 1, **{head.var: 2 + k for k, head in enumerate(headers)}}
        scope = self.scope([levels.get(f"i{k}", 0) for k in range(len(self.loops.axes))], level, hoist)
        if offset:
            var = var or headers[-2].var
            scope.variables = [affine(offset, v) if v == variable(var) else v for v in self.variables]
        return scope

    def parallel_header(self, kept: Sequence[int]) -> tuple[str, Affine, Dim, Dim, list[LoopHeader]]:
        """Return the phase's loop, which is the first kept one: variable, extent, extent as a Dim, and points
        of an iteration; and the headers of the other kept loops."""
        extents = self.loops.extents
        if not kept or (self.enclosing is not None and not self.row_axes):
            return "one", affine(1), 1, total(extents), [*map(self.whole_loop, kept)]
        others = (extent for loop, extent in enumerate(extents) if loop != kept[0])
        extent = self.arguments.extent(kept[0])
        return f"i{kept[0]}", extent, extents[kept[0]], total(others), [*map(self.whole_loop, kept[1:])]

    def whole_loop(self, loop: int) -> LoopHeader:
        """Return the header of a whole loop."""
        return LoopHeader(f"i{loop}", affine(), self.arguments.bounds(loop))

    def strip_loop(self, loop: int, var: str, step: int) -> LoopHeader:
        """Return the outer loop of a strip-mined loop: ``var`` is the first iteration of each strip."""
        return LoopHeader(var, affine(), self.arguments.bounds(loop), step)

    def loop_from(self, loop: int, start: Affine, size: Affine) -> LoopHeader:
        """Return the header of a loop over at most ``size`` iterations from ``start``."""
        return LoopHeader(f"i{loop}", start, (affine(0, start, size), *self.arguments.bounds(loop)))

    def block_count(self, extent: Dim, size: Dim) -> Dim:
        """Return the number of blocks of ``size`` iterations that cover ``extent`` iterations."""
        return dims.simplify((extent + size - 1) // size)

    def at_most(self, value: Dim, limit: int) -> Dim:
        """Return the minimum of the value and a limit."""
        return dims.minimum(limit, value)

    def upper_bound(self, value: Dim) -> Dim:
        """Return a dimension's largest value over the enclosing loops; raise `Unsupported` if unknown."""
        if self.enclosing is None or not self.enclosing.varies(value):
            return value
        bound = dims.largest(value)
        if self.enclosing.varies(bound):
            raise Unsupported(f"it is not known how large {dims.show(value)} gets")
        return bound

    def largest(self, *values: Dim) -> Dim:
        """Return the maximum of some dimensions."""
        return dims.maximum(*values)

    def unless_empty(self, head: Dim) -> Dim:
        """Return the extent ``head`` of the phase, or 0 if the domain is empty."""
        if self.nonempty or len(self.loops.extents) < 2:
            return head
        points = total(self.loops.extents)
        if type(points) is int:
            return head if points else 0
        return head * dims.minimum(1, points)

    def add_phase(self, phase: Phase, extent: Dim, work: Dim) -> None:
        """Add a phase to the kernel, with its extent as a Dim and the work of one iteration."""
        self.phases.append(phase)
        self.launches.append((extent, dims.simplify(work)))

    def cost(self) -> int:
        """Return the work at one point of the domain, in additions."""
        every = windows.walk(*self.values)
        steps = sum(ops.OPS[n.op].cost for n in every if isinstance(n, Apply))
        steps += sum(isinstance(n, Load | Gather) for n in every)
        return max(MIN_WORK * len(self.values), round(steps))

    def operations(self) -> Dim:
        """Return the number of operations of the statement."""
        every = [n for n in windows.walk(*self.values) if isinstance(n, Apply) and n.op != "cast"]
        return (len(every) + sum(self.folds)) * total(self.shape)


def row_nests(
    body: Sequence[Part],
    region: Region,
    axes: int,
    shared: SharedArguments | None = None,
    enclosing: EnclosingLoops | None = None,
) -> list[LoopNest]:
    """Return the loop nests of statements that run row by row."""

    def nests(axes: int) -> list[LoopNest]:
        group: list[LoopNest] = []
        for part in body:
            group.append(LoopNest(part, region, axes, group[0] if group else shared, enclosing))
        return group

    group = nests(axes)
    # if the axes cannot be collapsed, a row is everything with the same first coordinate
    return group if all(nest.joined for nest in group) else nests(1)


def row_phase(nests: Sequence[LoopNest]) -> Phase:
    """Return one phase that joins the phases of several statements over the same rows."""
    rows = [phase for nest in nests for phase in nest.phases]
    assert all(phase.var == "i0" and phase.kind == "serial" for phase in rows)
    body = tuple(stmt for phase in rows for stmt in phase.body)
    pre = tuple(let for phase in rows for let in phase.pre)
    return Phase("i0", nests[0].arguments.bounds(0)[0], "serial", body, pre)


def make_kernel(nests: Sequence[LoopNest]) -> tuple[Kernel, Binding]:
    """Return the kernel of one statement, or of several that run row by row, and its binding."""
    first = nests[0]
    phases, launches = first.phases, first.launches
    if len(nests) > 1:
        phases = [row_phase(nests)]
        work = sum(nest.launches[0][1] for nest in nests)
        launches = [(first.loops.extents[0], dims.simplify(work))]
    return assemble_kernel(nests, phases, launches)


def assemble_kernel(
    nests: Sequence[LoopNest], phases: Sequence[Phase], launches: Sequence[tuple[Dim, Dim]]
) -> tuple[Kernel, Binding]:
    """Return the kernel, and its binding, of statements that share arguments, with the given phases;
    ``launches`` has the extent and the work per iteration of each phase."""
    first = nests[0]
    buffers, pointers = first.arguments.buffers()
    ints = tuple(f"n{k}" for k in range(len(first.arguments.ints)))
    binding = Binding(
        pointers,
        tuple(first.arguments.ints),
        tuple(extent for extent, _ in launches),
        tuple(work for _, work in launches),
        first.arguments.bytes(),
        dims.simplify(sum(nest.operations() for nest in nests)),
    )
    return Kernel(buffers, ints, tuple(phases)), binding


def wrap_loop(headers: list[LoopHeader], at: int, before: Block, after: Block) -> None:
    """Add statements before and after the loop number ``at``, outside of those that it has."""
    head = headers[at]
    headers[at] = replace(head, before=(*before, *head.before), after=(*head.after, *after))


def build_loops(
    scope: Scope, level: int, headers: Sequence[LoopHeader], kind: Kind, unroll: int = 0
) -> Block:
    """Return the body at depth ``level``: the loops ``headers``, nested, with all statements that the scope
    has collected.  ``kind`` and ``unroll`` are for the innermost loop."""
    body = scope.take(level + len(headers))
    for number, head in reversed(list(enumerate(headers))):
        own, times = (kind, unroll) if number == len(headers) - 1 else ("serial", 0)
        loop: Stmt = For(head.var, head.lower, head.upper, head.step, own, body, times, head.floors)
        if head.cond is not None:
            loop = If(head.cond, (loop,))
        body = (*scope.take(level + number), *head.before, loop, *head.after)
    return body


def evaluate_statements(nest: LoopNest, scope: Scope, fold: Callable[[int, Expr], None] | None) -> None:
    """Evaluate all statements at the scope; ``fold(number, value)`` receives the values of reductions."""
    for number, compute in enumerate(nest.computes):
        value = scope.evaluate(nest.values[number])
        if fold is not None and nest.folds[number]:
            fold(number, value)
            continue
        family = nest.memory.family(compute.target.array)
        later = (load for rest in nest.values[number + 1 :] for load in windows.loads(rest))
        scope.store(compute.target, value, any(nest.memory.family(x.window.array) == family for x in later))


def scope_of_statements(
    nest: LoopNest, phase: str, headers: Sequence[LoopHeader], tiles: Mapping[Spot, Spot]
) -> Scope:
    """Return the scope inside of the phase and the loops, in which all statements have been evaluated;
    ``tiles`` maps addresses to those of buffers that replace them."""
    level = {phase: 1, **{head.var: 2 + k for k, head in enumerate(headers)}}
    # Without points nothing is launched: values may be computed before the loops that use them.  A row may
    # have none, though.
    hoist = not nest.row_axes or nest.nonempty
    scope = nest.scope([level[f"i{k}"] for k in range(len(nest.loops.axes))], 1 + len(headers), hoist)
    scope.tiles = tiles
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    evaluate_statements(nest, scope, None)
    return scope
