"""The schedule of a loop or branch with all its statements as one kernel, instead of many small ones.

A statement in it has the same loop nest as on its own, but with variables of enclosing loops in its offsets
and extents.  One thread runs a loop in order, so only vector loops need legality proofs, for all values of
those variables (`ir.dims.ranging`).  Iterations of the outermost loop alone are distributed over threads, if
they are independent (`ir.analysis.independence`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dcarray.ir import dims, nodes
from dcarray.ir.analysis.data_dependent import selected_index
from dcarray.ir.analysis.effects import Reason, touched_arrays
from dcarray.ir.analysis.independence import iteration_conflict, privatisable, privatised_arrays
from dcarray.ir.analysis.size_hints import UNKNOWN, SizeHints
from dcarray.ir.analysis.traffic import fused_traffic
from dcarray.ir.functions import function_calls
from dcarray.ir.nodes import Array, Branch, Call, Compute, Dim, Nest, Part, Region, Rows, TimeTiles, While
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.nest import expansion
from dcarray.lowering.nest.access import Arguments, memory_of, product, total
from dcarray.lowering.nest.body import Names
from dcarray.lowering.nest.legality import check_types
from dcarray.lowering.nest.loop_nest import EnclosingLoops, LoopNest, row_nests, row_phase, variable

from .cross_row_reductions import folds_rows
from .elementwise import elementwise_loops, schedule_row
from .loop_calls import CallMaker
from .reductions import schedule_reduction

_BOOL, _U8 = np.dtype(np.bool_), np.dtype(np.uint64)
WORTH = 1 << 18  # units of work from which on two threads pay
LAUNCH = 1 << 15  # the cost of a launch, in these units
MAX_CHUNKS = 64  # chunks of a parallel loop, at most
MAX_STACK = 1 << 15  # bytes of arrays that a thread has on its stack
MAX_SCRATCH = 1 << 26  # bytes of scratch for the private arrays of chunks
LIBRARY_FROM = 16  # rows and columns of a matrix product from which on a library is faster


def schedule_loops(
    stmt: nodes.Loop | While | Branch | Call, region: Region, cores: int = 2
) -> tuple[k.Kernel, k.Binding]:
    """Return the kernel, and its binding, of a loop or branch with all its statements, or of a draw."""
    maker = LoopMaker(region, cores)
    return kernel_of_loops(maker, stmt, *maker.phase(stmt))


def kernel_of_loops(
    maker: LoopMaker, stmt: nodes.Loop | While | Branch | Call, phase: k.Phase, extent: Dim
) -> tuple[k.Kernel, k.Binding]:
    """Return a loop's or branch's kernel and binding, given its phase and that phase's ``extent``."""
    region = maker.region
    buffers, pointers = maker.arguments.buffers()
    names = tuple(f"n{k}" for k in range(len(maker.arguments.ints)))
    # variables of loops around the kernel have no hints
    sizes = defaultdict(lambda: UNKNOWN, {s.name: maker.hints(dims.symbol(s.name)) for s in region.symbols})
    moved = fused_traffic(stmt, region, sizes)
    share = maker.work
    if phase.var != "one":  # the loop may be empty
        share = maker.hints(maker.work) // max(1, maker.hints(extent))
    ints = tuple(maker.arguments.ints)
    binding = k.Binding(pointers, ints, (extent,), (share,), moved.bytes, moved.operations)
    routines = tuple([one for one in maker.routines.values() if one is not None])
    return k.Kernel(buffers, names, (phase,), routines), binding


@dataclass(slots=True)
class LoopMaker(CallMaker):
    """The state of lowering a loop or branch of a region, with the statements in it, to one kernel."""

    region: Region
    cores: int
    names: Names = field(default_factory=Names)
    arguments: Arguments = field(init=False)
    enclosing: EnclosingLoops = field(default_factory=EnclosingLoops)
    times: Dim = 1  # the number of executions of the current statement
    middle: Mapping[str, Dim] = field(default_factory=dict)  # the middle iteration of the enclosing loops
    work: Dim = 0  # of all statements
    weighing: bool = False  # nothing but the work is of interest
    routines: dict[Any, k.Routine | None] = field(default_factory=dict)  # None: it is being made

    def __post_init__(self) -> None:
        self.arguments = Arguments(memory_of(self.region), 0, (), (), {})

    def of_function(self, region: Region, arguments: Arguments) -> LoopMaker:
        """Return a maker that lowers a function of the region into a routine of the same kernel."""
        maker = LoopMaker(region, 1, self.names, routines=self.routines)
        maker.arguments = arguments
        return maker

    @property
    def hints(self) -> SizeHints:
        """The plausible sizes at the current statement, in the middle of the enclosing loops."""
        return SizeHints(self.region, self.enclosing.typical)

    # ---- the whole ----------------------------------------------------------------------------------
    def phase(self, stmt: nodes.Loop | While | Branch | Call) -> tuple[k.Phase, Dim]:
        """Return the kernel phase of a statement of the region, and the phase's number of iterations."""
        if isinstance(stmt, nodes.Loop) and self.cores > 1 and selected_index(stmt) is None:
            phase = self.shared(stmt)
            if phase is not None:
                return phase
        stacks = self.stacks(self.locals(stmt))
        return k.Phase("one", k.affine(1), "serial", (*stacks, *self.statement(stmt))), 1

    def locals(self, stmt: nodes.Stmt) -> list[Array]:
        """Return the small temporaries that only this statement uses."""
        mine, others = touched_arrays(stmt), [other for other in self.region.body if other is not stmt]
        if len(others) == len(self.region.body):
            return []  # it is in a loop of the region, which may carry them from one iteration to the next
        used = frozenset[str]().union(*map(touched_arrays, others))
        based = {array.base for array in self.region.arrays if array.base is not None}
        based |= {window.array for call in function_calls((stmt,)) for window in call.reads if window.shape}
        return [
            array
            for array in self.region.arrays
            if array.role == "temp" and array.name in mine - used and array.name not in based
            if array.base is None and _bytes(array) <= MAX_STACK // 64
        ]

    def stacks(self, arrays: Sequence[Array]) -> tuple[k.Stmt, ...]:
        """Return declarations of stack buffers for arrays, which become private to the kernel."""
        stacks = [k.Stack(self.names("q"), array.dtype, max(1, total(array.shape))) for array in arrays]
        for array, stack in zip(arrays, stacks, strict=True):
            self.arguments.private[array.name] = stack.name, k.affine()
        return tuple(stacks)

    def shared(self, stmt: nodes.Loop) -> tuple[k.Phase, Dim] | None:
        """Return the phase in which threads share a loop's iterations, and its extent; None if iterations are
        dependent or sharing does not pay."""
        if any(window.shape for call in function_calls((stmt,)) for window in call.reads):
            return None
        trip_count, step = trip_count_of(stmt), stmt.bounds[2]
        if type(step) is not int or len(dims.least_of(dims.simplify(-step * stmt.bounds[0]))) > 1:
            return None
        if not stmt.parallel and iteration_conflict(stmt, self.region) is not None:
            return None
        trial = LoopMaker(self.region, 1, weighing=True)
        trial.statement(stmt)
        if trial.hints(trial.work) < WORTH or trial.hints(trip_count) < 2:
            return None
        small, large = self.private_arrays(stmt, MAX_STACK)
        each = sum(self.hints(total(array.shape)) * array.dtype.itemsize for array in large)
        pieces = min(MAX_CHUNKS, MAX_SCRATCH // max(each, 1))
        if pieces < min(2 * self.cores, trial.hints(trip_count)):
            return None
        size = dims.simplify(trip_count // pieces + 1)
        count = dims.simplify((trip_count + size - 1) // size)
        self.arguments.pieces = "g0", count
        width = self.arguments.integer(dims.simplify(size * abs(step)))
        for array in large:
            self.arguments.private[array.name] = self.arguments.scratch_per_piece(
                array.dtype, total(array.shape)
            )
        stacks = self.stacks(small)
        self.cores = 1  # the chunks occupy all of them
        loop = self.loop(stmt)
        begin = k.affine(0, loop.lower, product(width, variable("g0")))
        ends = (k.affine(0, begin, width), *loop.upper)
        piece = k.For(loop.var, begin, ends, loop.step, "serial", loop.body)
        return k.Phase("g0", self.arguments.integer(count), "serial", (*stacks, piece)), count

    def private_arrays(self, stmt: nodes.Loop, most: int) -> tuple[list[Array], list[Array]]:
        """Return the arrays of which each iteration of a parallel loop needs its own copy: the smallest ones,
        which fit in ``most`` bytes together, and the others."""
        with dims.ranging(stmt.var, stmt.bounds):
            names = privatisable(stmt.body, self.region)
        arrays = sorted((a for a in self.region.arrays if a.name in names), key=_bytes)
        small = [a for k, a in enumerate(arrays) if sum(map(_bytes, arrays[: k + 1])) <= most]
        large = arrays[len(small) :]
        if large and not isinstance(meeting := privatised_arrays(stmt, self.region), Reason):
            large = [a for a in large if a.name in meeting]  # iterations access disjoint parts of the others
        return small, large

    # ---- statements ---------------------------------------------------------------------------------
    def block(self, body: Iterable[nodes.Stmt]) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for the statements of a body."""
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: nodes.Stmt) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for one statement."""
        match stmt:
            case Compute() | Nest():
                return self.loop_nest(LoopNest(stmt, self.region, 0, self, self.enclosing))
            case Rows(body, axes):
                return self.rows(body, axes)
            case TimeTiles(body):
                return self.block(body)
            case Call("random.draw"):
                return self.draw(stmt)
            case Call("function.call"):
                return self.function(stmt)
            case Call():
                return self.statement(self.call(stmt))
            case nodes.Loop():
                place = selected_index(stmt)
                return (self.loop(stmt),) if place is None else self.selected_iteration(stmt, place)
            case While(cond, body):
                head, value = self.condition(cond)
                return (k.Repeat(head, value, self.block(body)),)
            case Branch(cond, then, orelse):
                head, value = self.condition(cond)
                return (*head, k.If(value, self.block(then), self.block(orelse)))
        raise TypeError(f"not a statement: {stmt!r}")

    def call(self, stmt: Call) -> Compute:
        """Return the reduction that computes the same as a library call; raise `Unsupported` if there is
        none, or if the library is faster."""
        plain = expansion.expand(stmt, self.region)
        if plain is None:
            raise Unsupported(f"a kernel cannot call {stmt.op}")
        if min(self.hints(extent) for extent in plain.target.shape[-3:]) >= LIBRARY_FROM:
            raise Unsupported(f"{stmt.op} of matrices is better left to a library")
        return plain

    def selected_iteration(self, stmt: nodes.Loop, place: nodes.Expr) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for the only iteration that does anything of a loop that
        `data_dependent.at_index` made: the one whose variable equals ``place``."""
        start, stop, step = stmt.bounds
        if step != 1:
            return (self.loop(stmt),)
        (branch,) = stmt.body
        assert isinstance(branch, Branch)
        head, value = self.condition(place)
        var = self.names("at")
        here = self.arguments.kin(0, (), (), self.enclosing.variables)
        low, high = (k.Index(here.number(dims.simplify(n))) for n in (start, stop))
        local = k.Local(var, value.dtype)
        within = [k.Op("less_equal", (low, local), _BOOL), k.Op("less", (local, high), _BOOL)]
        outside = self.enclosing, self.middle
        self.enter(stmt, variable(var))
        with dims.ranging(stmt.var, stmt.bounds):
            body = self.block(branch.then)
        self.enclosing, self.middle = outside
        return (*head, k.Let(var, value), k.If(k.Op("logical_and", tuple(within), _BOOL), body))

    def loop(self, stmt: nodes.Loop) -> k.For:
        """Return the kernel loop for a loop; one that counts down becomes one over the negated variable."""
        start, stop, step = stmt.bounds
        if type(step) is not int:
            raise Unsupported("the step of a loop is not known")
        sign = 1 if step > 0 else -1
        here = self.arguments.kin(0, (), (), self.enclosing.variables)
        # the greatest of some is the least of their negatives
        lower = [here.number(dims.simplify(-n)) for n in dims.least_of(dims.simplify(-sign * start))]
        upper = tuple(here.number(n) for n in dims.least_of(dims.simplify(sign * stop)))
        var = f"u{len(self.enclosing.variables)}"
        outside = self.enclosing, self.times, self.middle
        self.times = self.times * dims.substitute(trip_count_of(stmt), self.middle)
        self.enter(stmt, variable(var, sign))
        with dims.ranging(stmt.var, stmt.bounds):
            body = self.block(stmt.body) if outside[0].variables else self.outermost(stmt)
        self.enclosing, self.times, self.middle = outside
        return k.For(var, lower[0], upper, abs(step), "serial", body, 0, tuple(lower[1:]))

    def enter(self, stmt: nodes.Loop, value: k.Affine) -> None:
        """Enter a loop: statements lowered from now on are in it; ``value`` stands for its variable."""
        start, stop, _ = stmt.bounds
        typical = (self.hints(start) + self.hints(stop)) // 2
        middle = dims.substitute(dims.simplify((start + stop) // 2), self.middle)
        self.enclosing = EnclosingLoops(
            {**self.enclosing.variables, stmt.var: value}, {**self.enclosing.typical, stmt.var: typical}
        )
        self.middle = {**self.middle, stmt.var: middle}

    def outermost(self, stmt: nodes.Loop) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for the body of the outermost loop, as one thread runs them; raise
        `Unsupported` if launching its statements one by one on all cores is faster."""
        if self.cores > 1 and self.is_faster_launched(stmt):
            raise Unsupported("its statements are large enough for all cores")
        return self.block(stmt.body)

    def is_faster_launched(self, stmt: nodes.Loop) -> bool:
        """Whether launching the statements of the outermost loop one by one is faster."""
        trial = replace(self, names=Names(), weighing=True)
        alone, launched = 0, 0
        for inner in stmt.body:
            before = trial.work
            trial.statement(inner)
            work = self.hints(dims.simplify(trial.work - before)) // max(1, self.hints(self.times))
            alone += work
            can_use_threads = work >= WORTH and self.can_use_threads(inner)
            launched += LAUNCH + (work // 2 if can_use_threads else work)
        return launched < alone

    def can_use_threads(self, stmt: nodes.Stmt) -> bool:
        """Whether several threads can run a statement."""
        if isinstance(stmt, nodes.Loop):
            return stmt.parallel or iteration_conflict(stmt, self.region) is None
        return not isinstance(stmt, While | Branch)

    def condition(self, cond: nodes.Expr) -> tuple[tuple[k.Stmt, ...], k.Expr]:
        """Return the kernel statements that compute a condition, and the expression of its value."""
        check_types(cond)
        scope = self.point([cond])
        value = scope.evaluate(cond)
        return (*scope.take(0), *scope.take(1)), value

    # ---- plain statements ---------------------------------------------------------------------------
    def weigh(self, nest: LoopNest) -> None:
        """Add the work of a statement to the total."""
        self.work = self.work + self.times * nest.cost() * dims.substitute(total(nest.shape), self.middle)

    def loop_nest(self, nest: LoopNest) -> tuple[k.Stmt, ...]:
        """Return the kernel loops that run a statement; none if only work is counted (``weighing``)."""
        self.weigh(nest)
        if self.weighing:
            return ()
        if not any(nest.folds):
            return elementwise_loops(nest)
        schedule_reduction(nest)
        (phase,) = nest.phases
        return (*phase.pre, *phase.body)

    def rows(self, body: Sequence[Part], axes: int) -> tuple[k.Stmt, ...]:
        """Return the kernel statements for statements that run row by row."""
        nests = row_nests(body, self.region, axes, self, self.enclosing)
        if any(map(folds_rows, nests)):
            return self.block(body)
        for nest in nests:
            self.weigh(nest)
        if self.weighing:
            return ()
        for nest in nests:
            if any(nest.folds):
                schedule_reduction(nest)
            else:
                schedule_row(nest)
        phase = row_phase(nests)
        return (*phase.pre, k.For("i0", k.affine(), nests[0].arguments.bounds(0), 1, "serial", phase.body))


def trip_count_of(stmt: nodes.Loop) -> Dim:
    """Return the number of iterations of a loop."""
    start, stop, step = stmt.bounds
    if all(type(bound) is int for bound in stmt.bounds):
        return len(range(start, stop, step))
    sign = 1 if dims.prove_nonneg(step) is not False else -1
    return dims.maximum(0, (stop - start + step - sign) // step)


def _bytes(array: Array) -> int:
    """Return the size of an array in bytes; 2**62 if its shape is not known."""
    elements = total(array.shape)
    return max(1, elements) * array.dtype.itemsize if type(elements) is int else 1 << 62
